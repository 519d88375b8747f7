"""Layers whose ofmaps stay in the PEs: the chain's timing, and where an ofmap cannot stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from archsim.errors import InputError
from archsim.layer.problem import problem_of
from archsim.machines.scnn.accounting import bytes_of
from archsim.machines.scnn.chain import can_stay, chain_timing
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.layer import Layer, layer_timing
from archsim.machines.scnn.mapping import Mapping, map_plane
from archsim.machines.scnn.timed_layer import ScnnTiming
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, synthetic

FOUR = Scnn(grid_rows=2, grid_columns=2, bank_entries=8)
FIRST = Conv2d(
    name="first", channels=2, filters=5, ifmap_height=7, ifmap_width=6, kernel_height=3,
    kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, relu=True,
)  # fmt: skip
SECOND = replace(FIRST, name="second", channels=5, filters=3)
THIRD = replace(FIRST, name="third", channels=3, filters=4, stride_height=2)
LAYERS = (FIRST, SECOND, THIRD)


def chain_operands(design: Scnn, layers: tuple[Layer, ...]) -> list[Operands]:
    """The ifmap of each layer is the ofmap before."""
    found = list[Operands]()
    ofmap: Any = None
    for layer in layers:
        own = synthetic(layer, bits=8, density=0.5, seed=4)
        found.append(own if ofmap is None else replace(own, ifmap=ofmap))
        ofmap = layer_timing(design, layer, found[-1]).ofmap
    return found


def alone(design: Scnn, layers: tuple[Layer, ...], operands: list[Operands]) -> list[ScnnTiming]:
    return [layer_timing(design, *pair) for pair in zip(layers, operands, strict=True)]


def test_what_stays_moves_no_bytes_and_is_not_waited_for() -> None:
    """FIRST stays for SECOND; THIRD has a stride, so SECOND leaves."""
    operands = chain_operands(FOUR, LAYERS)
    chained = chain_timing(FOUR, LAYERS, operands)
    plain = alone(FOUR, LAYERS, operands)
    moved = [bytes_of(timing) for timing in chained]
    usual = [bytes_of(timing) for timing in plain]
    assert [(one["ifmap"] > 0, one["ofmap"] > 0) for one in moved] == [
        (True, False), (False, True), (True, True),
    ]  # fmt: skip
    assert moved[0]["ifmap"] == usual[0]["ifmap"]
    assert moved[1]["ofmap"] == usual[1]["ofmap"]
    first, second = chained[0].passes[0], chained[1].passes[0]
    assert (first.cycles, second.starts[0]) == (first.drained[-1] + 3, 2)
    assert chained[2].cycles == plain[2].cycles
    assert [one.cycles < other.cycles for one, other in zip(chained, plain, strict=True)] == [
        True, True, False,
    ]  # fmt: skip
    for one, other in zip(chained, plain, strict=True):
        assert np.array_equal(one.ofmap, other.ofmap)


def test_actions_of_what_stays() -> None:
    """Nothing is loaded and nothing leaves; what the next layer reads has been written."""
    operands = chain_operands(FOUR, LAYERS)
    chained, plain = chain_timing(FOUR, LAYERS, operands), alone(FOUR, LAYERS, operands)
    assert chained[0].actions["oaram_read"] == chained[1].actions["iaram_write"] == 0
    assert chained[0].actions["oaram_write"] >= plain[1].actions["iaram_write"]
    for name in ("iaram_read", "product", "pair", "weight_write"):
        assert chained[1].actions[name] == plain[1].actions[name]


def test_outputs_are_walked_with_the_pitch_of_an_ifmap() -> None:
    """Six columns on two PEs: 3 own columns are 4 places; five filters in one group."""
    operands = chain_operands(FOUR, LAYERS)
    first = chain_timing(FOUR, LAYERS, operands)[0].passes[0].mapping
    assert first.output_cycles(0) == first.group_filters(0) * (4 * 4 + 1)
    assert replace(first, keep_ofmap=False).output_cycles(0) == first.group_filters(0) * 13


def test_products_stay_for_products() -> None:
    layers = tuple(MatMul(name=f"m{n}", m=5, k=k, n=other) for n, (k, other) in
                   enumerate(((3, 4), (4, 7), (7, 2))))  # fmt: skip
    operands = chain_operands(FOUR, layers)
    chained = chain_timing(FOUR, layers, operands)
    assert [one.ofmap_bits > 0 for one in chained] == [False, False, True]
    assert [one.ifmap_bits > 0 for one in chained] == [True, False, False]


def test_several_images_leave() -> None:
    layers = tuple(replace(one, batch=2) for one in (FIRST, SECOND))
    operands = chain_operands(FOUR, layers)
    cycles = [one.cycles for one in chain_timing(FOUR, layers, operands)]
    assert cycles == [one.cycles for one in alone(FOUR, layers, operands)]


@pytest.mark.parametrize(
    ("iaram", "oaram", "stay"),
    [(300, 300, [True, True]), (150, 300, [False, True]), (300, 150, [True, True])],
)
def test_lists_must_fit_the_memories_in_each_other_s_place(
    iaram: int, oaram: int, stay: list[bool]
) -> None:
    """The ofmap of the layer in the middle fits 30 vectors, not 15: where it stands depends on
    whether the ofmap before has stayed."""
    layers = (FIRST, replace(SECOND, filters=12), replace(THIRD, channels=12, stride_height=1))
    operands = chain_operands(FOUR, layers)
    design = replace(FOUR, iaram_bytes=iaram, oaram_bytes=oaram)
    found = chain_timing(design, layers, operands)
    assert [one.ofmap_bits == 0 for one in found] == [*stay, False]
    assert [one.ifmap_bits == 0 for one in found] == [False, *stay]
    assert layer_timing(design, layers[1], operands[1]).strips == (1 if oaram == 300 else 2)


def test_an_ifmap_that_is_another_is_refused() -> None:
    operands = chain_operands(FOUR, LAYERS)
    other = operands[1].ifmap.copy()
    other[0, 0, 0, 0] ^= 1
    with pytest.raises(InputError) as raised:
        chain_timing(FOUR, LAYERS, [operands[0], replace(operands[1], ifmap=other), operands[2]])
    assert str(raised.value) == (
        "ifmap of second must be the ofmap of first, of shape (1, 5, 7, 6), and is another of "
        "shape (1, 5, 7, 6)"
    )


def test_operands_are_for_every_layer() -> None:
    with pytest.raises(InputError, match="operands must be of each of 3 layers"):
        chain_timing(FOUR, LAYERS, chain_operands(FOUR, LAYERS)[:2])
    with pytest.raises(InputError, match="operands must be of each of 0 layers"):
        chain_timing(FOUR, (), ())


def _mapped(layer: Conv2d) -> Mapping:
    return map_plane(replace(FOUR, grid_rows=3), problem_of(layer), 2)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ({}, {}, None),
        ({"stride_width": 2}, {"ifmap_width": 3}, None),
        ({}, {"channels": 4}, "channels of the next pass must be 5, not 4"),
        ({}, {"stride_height": 2}, "stride along rows of the next pass must be 1, not 2"),
        ({}, {"stride_width": 3}, "stride along columns of the next pass must be 1, not 3"),
        ({"pad_top": 0}, {}, "rows of the next pass must be 6, not 7"),
        (
            {},
            {"kernel_height": 7, "pad_top": 0, "pad_bottom": 0},
            "rows of PEs of the next pass must be 3, not 2",
        ),
        (
            {"ifmap_width": 3, "kernel_width": 1, "pad_left": 0, "pad_right": 0},
            {"ifmap_width": 3, "kernel_width": 4, "pad_left": 0, "pad_right": 1},
            None,
        ),
        (
            {"ifmap_height": 3, "kernel_height": 2, "pad_top": 0, "pad_bottom": 0},
            {"ifmap_height": 2, "kernel_height": 2},
            "rows of PEs with outputs must be 3, all that are used, not 2",
        ),
    ],
)
def test_why_an_ofmap_cannot_stay(
    before: dict[str, int], after: dict[str, int], reason: str | None
) -> None:
    mapping, following = _mapped(replace(FIRST, **before)), _mapped(replace(SECOND, **after))
    assert can_stay(mapping, following) == reason
