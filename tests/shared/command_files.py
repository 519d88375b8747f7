"""Documented commands as a reader types them, with the files that they read: small ones, under the
names that the pages give them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from documented import ROOT
from onnx import TensorProto, helper, numpy_helper

from archsim import EDGE_16, simulate
from archsim.machine.registry import design_toml
from rtl.synthesis.liberty import DEFAULT_LIBRARY

SIDE = 16

SECONDS = 3600


def typed(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a shell, in a folder with the files that it names."""
    lay_out(folder, command)
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env={
            **{name: text for name, text in os.environ.items() if name != "COLUMNS"},
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "OMP_NUM_THREADS": "1",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def lay_out(folder: Path, command: str) -> None:
    """Write into a folder what a command names; scripts are copied, for they write beside them."""
    for name in ("benchmarks", "notebooks"):
        if f"{name}/" in command:
            shutil.copytree(ROOT / name, folder / name)
    if "benchmarks/" in command:
        shutil.copytree(ROOT / "tests" / "data", folder / "tests" / "data")
    makers = {
        "model.onnx": lambda path: _model(
            path, "batch" if "--dim" in command or "--input" in command else 1
        ),
        "inputs.npz": _arrays,
        "photo.npz": _arrays,
        "weights.npy": _weights,
        "cells.lib": lambda path: shutil.copy(DEFAULT_LIBRARY, path),
        "mine.toml": lambda path: path.write_text(design_toml(EDGE_16), encoding="utf-8"),
        "space.toml": lambda path: path.write_text(SPACE, encoding="utf-8"),
        "study/": _study,
        "a.json": _result,
        "b.json": _result,
    }
    before = command.partition(" > ")[0]
    for name, make in makers.items():
        if name in before.split():
            make(folder / name)


SPACE = """
networks = ["alexnet"]
objectives = ["cycles", "energy", "area"]
[[machine]]
design = "edge-16"
fields = { rows = [4, 8], columns = [8, 16] }
"""


def _study(path: Path) -> None:
    """One that is begun; a command that begins it continues it."""
    from archsim.sweeps import Study, load_space

    space = path.parent / "space.toml"
    space.write_text(SPACE, encoding="utf-8")
    with Study.begin(path, load_space(space)[0]) as study:
        study.run()


def _model(path: Path, batch: int | str) -> None:
    """A convolution, a rectifier and a fully connected layer; a batch with a name is dynamic."""
    drawn = np.random.default_rng(0)
    weights = {
        "w1": drawn.normal(size=(4, 3, 3, 3)).astype(np.float32),
        "w2": drawn.normal(size=(4 * SIDE * SIDE, 10)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["image", "w1"], ["c"], name="conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu1"),
        helper.make_node("Flatten", ["r"], ["f"], name="flatten"),
        helper.make_node("Gemm", ["f", "w2"], ["scores"], name="head"),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [batch, 3, SIDE, SIDE])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [batch, 10])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(path))


def _arrays(path: Path) -> None:
    np.savez(path, image=np.random.default_rng(1).random((1, 3, SIDE, SIDE), dtype=np.float32))


def _weights(path: Path) -> None:
    np.save(path, np.random.default_rng(2).integers(-30, 30, (4, 3, 3, 3)).astype(np.int8))


def _result(path: Path) -> None:
    path.write_text(simulate("edge-16", "alexnet").to_json(), encoding="utf-8")
