"""The SCNN core's RTL: every word and every cycle of every port as the stepped oracle has them."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import memory
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scnn_bench import EventOracle, compiled, differences, event_differences, simulated
from scnn_passes import LayerPass, Shape, expected, random_pass

from archsim.designs.scnn import Scnn
from archsim.errors import InputError
from archsim.sparse.mapping import map_plane
from archsim.sparse.scnn_command import Output, command_fields, command_values
from rtl.core import sram
from rtl.scnn import ScnnCore, core_members

ONE = Scnn(
    grid_rows=1, grid_columns=1, weight_lanes=2, ifmap_lanes=2, banks=4, bank_entries=16,
    weight_fifo_vectors=8, filter_group=3, iaram_bytes=700, oaram_bytes=700, index_bits=2,
)  # fmt: skip
PAIR = replace(ONE, grid_columns=2, bank_entries=12)
FOUR = replace(ONE, grid_rows=2, grid_columns=2, banks=8)
FOUR_WIDE = replace(FOUR, weight_lanes=4, ifmap_lanes=4, banks=32, bank_entries=8)
SIX = replace(FOUR, grid_rows=3, banks=4, weight_lanes=3, bank_entries=17)

SMALLEST = Shape(plane=(1, 1))
SQUARE = Shape(plane=(4, 5), channels=2, filters=4, kernel=(3, 3), pad=(1, 1), has_bias=True)
STRIDED = replace(SQUARE, plane=(6, 7), stride=(2, 2), relu=True)
FLAT = Shape(plane=(1, 7), channels=3, filters=5)
UNEVEN = Shape(plane=(3, 4), channels=2, filters=4, kernel=(1, 5), stride=(2, 3), pad=(2, 1))
"""Its last row of PEs has inputs and no outputs; what it reaches is not at the border."""


@pytest.mark.parametrize(
    ("design", "shape"), [(ONE, SMALLEST), (ONE, SQUARE), (PAIR, STRIDED), (PAIR, FLAT)]
)
def test_a_pass(design: Scnn, shape: Shape) -> None:
    layer = random_pass(design, shape, seed=1, longest_gap=3)
    assert differences([layer], simulated(design)) == []


def test_passes_follow_one_another() -> None:
    """What belongs to the next pass is offered early; the first command comes late."""
    layers = [random_pass(PAIR, shape, seed=2) for shape in (FLAT, UNEVEN, SQUARE)]
    assert differences(layers, simulated(PAIR), offered=30) == []


def test_late_biases_hold_the_drain_back() -> None:
    plain = random_pass(ONE, replace(SQUARE, filters=8), seed=3)
    late = replace(plain, gaps={"bias": [90] * 8})
    assert expected(late).cycles["ofmap"][0] > expected(plain).cycles["ofmap"][0]
    assert differences([late], simulated(ONE)) == []


def test_a_grid() -> None:
    layers = [random_pass(FOUR, shape, seed=3, longest_gap=9) for shape in (UNEVEN, FLAT)]
    assert differences(layers, simulated(FOUR)) == []


@st.composite
def designs(draw: st.DrawFn) -> Scnn:
    """Any small core."""
    return Scnn(
        grid_rows=draw(st.integers(1, 2)),
        grid_columns=draw(st.integers(1, 2)),
        weight_lanes=draw(st.integers(1, 3)),
        ifmap_lanes=draw(st.integers(1, 3)),
        banks=draw(st.sampled_from([1, 2, 4])),
        bank_entries=draw(st.sampled_from([16, 17, 33])),
        weight_fifo_vectors=draw(st.sampled_from([1, 2, 5, 13])),
        filter_group=draw(st.integers(1, 5)),
        iaram_bytes=512,
        oaram_bytes=512,
        index_bits=draw(st.sampled_from([1, 2, 4])),
        operand_bits=draw(st.sampled_from([4, 16])),
        accumulator_bits=draw(st.sampled_from([12, 24])),
    )


@st.composite
def shapes(draw: st.DrawFn, side: int = 6) -> Shape:
    """Any small layer."""
    pad = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    plane = draw(st.integers(1, side)), draw(st.integers(1, side))
    kernel = tuple(
        draw(st.integers(1, min(5, size + 2 * around)))
        for size, around in zip(plane, pad, strict=True)
    )
    return Shape(
        plane=plane,
        channels=draw(st.integers(1, 3)),
        filters=draw(st.integers(1, 7)),
        kernel=(kernel[0], kernel[1]),
        stride=(draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        pad=pad,
        has_bias=draw(st.booleans()),
        relu=draw(st.booleans()),
    )


def any_pass(design: Scnn, draw: Any) -> LayerPass:
    """A pass that fits the design."""
    densities = st.sampled_from([0.0, 0.3, 0.7, 1.0])
    layer = random_pass(
        design,
        draw(shapes()),
        draw(st.integers(0, 99)),
        density=(draw(densities), draw(densities)),
        longest_gap=draw(st.sampled_from([0, 2, 20])),
    )
    try:
        expected(layer)
    except InputError:
        assume(False)
    return layer


@settings(max_examples=6, deadline=None)
@given(design=designs(), data=st.data())
def test_any_pass_on_any_core(design: Scnn, data: st.DataObject) -> None:
    layer = any_pass(design, data.draw)
    assert differences([layer], simulated(design)) == []


def test_every_pair_of_every_pe() -> None:
    """The cycles that each pair of vectors takes, its products in each, and the skips."""
    layers = [random_pass(PAIR, shape, seed=4, longest_gap=2) for shape in (SQUARE, STRIDED)]
    kinds = np.zeros(4, np.int64)
    for layer in layers:
        oracle = EventOracle(layer)
        oracle.run()
        kinds += np.array(list(oracle.events.values())).sum(axis=0)
        assert event_differences(layer) == []
    assert (kinds > 0).all()


def test_banks_are_cleared_after_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memories hold anything when the clock begins, but for what the simulator cannot say."""
    _dirty(monkeypatch)
    assert differences([random_pass(ONE, SQUARE, seed=5)], simulated(ONE)) == []


def test_banks_that_are_not_cleared_show(monkeypatch: pytest.MonkeyPatch) -> None:
    _dirty(monkeypatch)
    plain = ScnnCore.elaborate

    def mutated(self: Any, platform: object) -> Module:
        m = plain(self, platform)
        for pe in self.pes.values():
            m.d.comb += pe.clear.valid.eq(0)
        return m

    monkeypatch.setattr(ScnnCore, "elaborate", mutated)
    assert differences([random_pass(ONE, SQUARE, seed=5)], simulated(ONE)) != []


def _dirty(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = memory.Memory

    def filled(*, shape: int, depth: int, init: list[int]) -> memory.Memory:
        return plain(shape=shape, depth=depth, init=[0x5A5A5A % (1 << shape)] * depth)

    monkeypatch.setattr(sram, "memory", SimpleNamespace(Memory=filled))


def random_passes(design: Scnn, count: int, seed: int) -> list[LayerPass]:
    """Passes of all kinds that fit."""
    rng = np.random.default_rng(seed)
    found: list[LayerPass] = []
    while len(found) < count:
        kernel = tuple(rng.integers(1, 4, 2).tolist())
        shape = Shape(
            plane=tuple(rng.integers(1, 9, 2).tolist()),
            channels=int(rng.integers(1, 4)),
            filters=int(rng.integers(1, 8)),
            kernel=(kernel[0], kernel[1]),
            stride=tuple(rng.integers(1, 3, 2).tolist()),
            pad=(kernel[0] // 2, kernel[1] // 2),
            has_bias=bool(rng.integers(2)),
            relu=bool(rng.integers(2)),
        )
        layer = random_pass(
            design,
            shape,
            int(rng.integers(1 << 20)),
            density=(rng.choice([0.1, 0.5, 1]), rng.choice([0.1, 0.5, 1])),
            longest_gap=int(rng.choice([0, 0, 3, 20])),
        )
        try:
            expected(layer)
        except InputError:
            continue
        found.append(layer)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("design", [ONE, FOUR, FOUR_WIDE, SIX])
def test_many_passes_in_the_emitted_verilog(design: Scnn) -> None:
    run = compiled(design)
    for seed in range(10):
        assert differences(random_passes(design, 20, seed), run, offered=seed * 9) == []


def test_one_core_in_the_emitted_verilog() -> None:
    run = compiled(PAIR)
    assert differences(random_passes(PAIR, 30, seed=6), run) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [("bank_hash", "dnnsim"), ("barrier", "channel"), ("sparsity", "weights")],
)
def test_variants_of_the_model_alone_are_refused(field: str, value: str) -> None:
    with pytest.raises(InputError, match=f"{field} must be .* in the RTL of scnn, not {value}"):
        core_members(replace(ONE, **{field: value}))


def test_a_command_holds_its_numbers() -> None:
    mapping = map_plane(FOUR, UNEVEN.problem, 3)
    values = command_values(FOUR, mapping, Output(multiplier=5, shift=2, relu=True))
    fields = {entry.name: value for entry, value in zip(command_fields(FOUR), values, strict=True)}
    assert fields["filters"] == 3
    assert fields["filters_last"] == 1
    assert fields["groups"] == 2
    assert (fields["multiplier"], fields["shift"], fields["relu"]) == (5, 2, 1)


def test_numbers_that_a_command_cannot_hold_are_refused() -> None:
    mapping = map_plane(ONE, replace(FLAT, plane=(1, 5000)).problem, 1)
    with pytest.raises(InputError, match="a PE's part of the ifmap width must be at most 4096"):
        command_values(ONE, mapping, Output())
    mapping = map_plane(ONE, replace(FLAT, kernel=(1, 99), pad=(0, 99)).problem, 1)
    with pytest.raises(InputError, match="kernel width must be at most 32"):
        command_values(ONE, mapping, Output())
    mapping = map_plane(ONE, FLAT.problem, 1)
    with pytest.raises(InputError, match="shift must be from 0 to 63 in a command of an scnn core"):
        command_values(ONE, mapping, Output(shift=64))
