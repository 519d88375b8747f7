"""Layers in faulty memories: the fast ways compute what output tiles one by one do."""

from typing import Any

import numpy as np
import pytest

from archsim.layer.intake import Drawing
from archsim.machine.registry import load_design, with_settings
from archsim.simulate import simulate
from archsim.tiled import layer_values
from workloads.layers import Conv2d, MatMul, Network

LAYERS: dict[str, Any] = {
    "plane": Conv2d(
        name="plane", channels=20, ifmap_height=9, ifmap_width=11, filters=40, kernel_height=3,
        kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, batch=3, bias=True,
    ),
    "groups": Conv2d(
        name="groups", channels=16, ifmap_height=6, ifmap_width=6, filters=32, kernel_height=3,
        kernel_width=3, groups=4, batch=2,
    ),
    "product": MatMul(name="product", m=30, n=50, k=70),
}  # fmt: skip
SMALL = ("ifmap_memory.capacity_bytes=2048", "accumulator_memory.capacity_bytes=4096")


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("memory", ["weight", "bias"])
@pytest.mark.parametrize("size", [(), SMALL])
def test_tiles_at_once_are_tiles_one_by_one(
    name: str, memory: str, size: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = [f"{memory}_memory.kind=faulty", f"{memory}_memory.rate=0.02"]
    design = with_settings(load_design("edge-16"), [*size, *faults])
    layer = LAYERS[name]
    network = Network(name="one", layers=(layer,), source="here")
    operands = {name: design.intake.synthetic(layer, Drawing(seed=1))}
    found: list[Any] = []
    for most in (layer_values.MOST_WEIGHTS, 500, 0):
        monkeypatch.setattr(layer_values, "MOST_WEIGHTS", most)
        result = simulate(design, network, operands=operands)
        found.append(result.layers[0].ofmap)
    right = simulate(load_design("edge-16"), network, operands=operands).layers[0].ofmap
    assert right is not None
    assert all(np.array_equal(one, found[0]) for one in found)
    assert not np.array_equal(found[0], right) or (memory, name) != ("weight", "plane")


def test_sums_of_vectors_over_several_channel_tiles_are_computed() -> None:
    """A channel tile that is not the last has no bias word, and of vectors not its multipliers."""
    sizes = ("lanes=2", "vector=4", "ifmap_memory.capacity_bytes=64", *SMALL[1:])
    faults = ("accumulator_memory.kind=faulty", "accumulator_memory.rate=0.01")
    design = with_settings(load_design("vsq-16"), [*sizes, *faults])
    layer = MatMul(name="deep", m=3, n=4, k=256)
    operands = {"deep": design.intake.synthetic(layer, Drawing(seed=1))}
    network = Network(name="one", layers=(layer,), source="here")
    found = simulate(design, network, operands=operands).layers[0]
    assert found.tiling is not None and found.tiling.channels < 256 // 4
    assert found.ofmap is not None
