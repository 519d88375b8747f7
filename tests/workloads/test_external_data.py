"""Weights in files beside the model: read where they are said to be, or refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from workloads.errors import WorkloadError
from workloads.onnx_import import import_onnx
from workloads.operands import from_onnx

WEIGHT = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


def written(folder: Path, kind: int = TensorProto.FLOAT, **said: Any) -> Path:
    """A model whose weight lies where `said` says."""
    tensor = TensorProto(name="w", data_type=kind, dims=WEIGHT.shape)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in said.items():
        tensor.external_data.add(key=key, value=str(value))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="layer")],
        "outside",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [tensor],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@settings(max_examples=20, deadline=None)
@given(offset=st.integers(0, 40), said=st.booleans(), behind=st.integers(0, 9))
def test_values_are_read_at_their_place(
    tmp_path_factory: pytest.TempPathFactory, offset: int, said: bool, behind: int
) -> None:
    folder = tmp_path_factory.mktemp("model")
    (folder / "within").mkdir()
    data = bytes(offset) + WEIGHT.tobytes() + bytes(behind)
    (folder / "within" / "w.bin").write_bytes(data)
    more = {"length": WEIGHT.nbytes} if said else {}
    path = written(folder, location="within/w.bin", offset=offset, **more)
    x = np.random.default_rng(1).normal(size=(5, 6)).astype(np.float32)
    found = from_onnx(path, {"x": x}, bits=16)["layer"]
    assert np.abs(found.weight[0] * found.weight_scale - WEIGHT).max() < 1e-4
    assert import_onnx(path).macs == 5 * 6 * 4


def test_as_onnx_writes_them(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(WEIGHT.tobytes())
    model = onnx.load(written(tmp_path, location="w.bin"))
    onnx.save(model, tmp_path / "saved.onnx", save_as_external_data=True, size_threshold=0)
    x = np.ones((5, 6), np.float32)
    found = from_onnx(tmp_path / "saved.onnx", {"x": x}, bits=16)["layer"]
    assert np.abs(found.weight[0] * found.weight_scale - WEIGHT).max() < 1e-4


BAD = {
    "absent": ({"location": "none.bin"}, "no such file: 'none.bin'"),
    "a folder": ({"location": "."}, "no such file: '.'"),
    "above": ({"location": "../w.bin"}, "must lie beside the model, not at '../w.bin'"),
    "around": ({"location": "within/../../w.bin"}, "must lie beside the model"),
    "absolute": ({"location": "/etc/passwd"}, "must lie beside the model, not at '/etc/passwd'"),
    "linked": ({"location": "link"}, "must lie beside the model, not at 'link'"),
    "in a circle": ({"location": "circle"}, "no such file|cannot be found"),
    "nowhere": ({}, "must lie beside the model, not at ''"),
    "no name": ({"location": "w\0.bin"}, "must lie beside the model"),
    "a long name": ({"location": "w" * 70_000}, "no such file|cannot be found|too long"),
    "too short": ({"location": "short.bin"}, "short.bin must have 96 bytes, not 95"),
    "too late": ({"location": "w.bin", "offset": 1}, "w.bin must have 97 bytes, not 96"),
    "far": ({"location": "w.bin", "offset": 10**18}, "must have 10+96 bytes, not 96"),
    "a part": ({"location": "w.bin", "length": 92}, "must have 96 bytes for its shape, not '92'"),
    "too long": (
        {"location": "w.bin", "length": 10**15},
        "for its shape, not '10{15}'",
    ),
    "negative": ({"location": "w.bin", "offset": -1}, "its offset must be a whole number"),
    "no number": ({"location": "w.bin", "length": "x\n"}, "must have 96 bytes for its shape"),
    "strings": ({"location": "w.bin", "kind": TensorProto.STRING}, "not a valid ONNX model"),
    "no type": ({"location": "w.bin", "kind": 99}, "'w'"),
}


@pytest.mark.parametrize("name", BAD)
def test_others_are_refused_in_one_line(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "model"
    (folder / "within").mkdir(parents=True)
    (tmp_path / "w.bin").write_bytes(WEIGHT.tobytes())
    (folder / "w.bin").write_bytes(WEIGHT.tobytes())
    (folder / "short.bin").write_bytes(WEIGHT.tobytes()[:-1])
    (folder / "link").symlink_to(tmp_path / "w.bin")
    (folder / "circle").symlink_to(folder / "circle")
    said, message = BAD[name]
    with pytest.raises(WorkloadError, match=message) as caught:
        import_onnx(written(folder, **said))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 600
