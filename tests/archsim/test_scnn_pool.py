"""Max pooling in the sparse core: model and stepped oracle, values, chains."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scnn_cases import Case, answers, cases, differences, operands_of, services, words_of

from archsim.errors import InputError
from archsim.layer.problem import problem_of
from archsim.machines.scnn.chain import can_stay, chain_timing
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.layer import layer_passes, layer_timing, layer_values, plan_layer
from archsim.machines.scnn.mapping import map_plane
from archsim.machines.scnn.pooling import windows_of
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands
from workloads.pooling import MaxPool, max_pool


@st.composite
def pools(draw: st.DrawFn) -> MaxPool:
    pair = st.tuples(st.integers(1, 4), st.integers(1, 4))
    window = draw(pair)
    pad = draw(st.integers(0, window[0] - 1)), draw(st.integers(0, window[1] - 1))
    return MaxPool(window=window, stride=draw(pair), pad=pad, ceil=draw(st.booleans()))


@settings(
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(cases(), pools(), st.integers(1, 4))
def test_fast_model_equals_the_stepped_one(case: Case, pool: MaxPool, queue: int) -> None:
    """Every figure of every pass, and the values."""
    assume(isinstance(case.layer, Conv2d))
    case = replace(case, pool=pool, design=replace(case.design, bank_queue=queue))
    known = answers(case)
    assume(known is not None)
    assert known is not None
    passes, stepped = known
    found = layer_timing(case.design, case.layer, case.operands, services(case), pool)
    values = layer_values(case.design, case.layer, case.operands, pool)
    check_values(case, values, found.ofmap)
    filters = problem_of(case.layer).filters
    planes = values.reshape(-1, filters, *values.shape[-2:]).transpose(0, 2, 3, 1)
    strips = [(number, strip) for number, some in enumerate(passes) for strip in some]
    for (number, strip), one, oracle in zip(strips, found.passes, stepped, strict=True):
        assert strip.mapping.group_size == oracle["group_size"]
        assert differences(one, oracle) == []
        assert words_of(strip.operands.ofmap) == oracle["ofmap_words"]
        rows, columns = (slice(r.start, r.stop) for r in (strip.rows, strip.columns))
        assert (planes[number, rows, columns] == oracle["ofmap"]).all()


def check_values(case: Case, values: Any, ofmap: Any) -> None:
    """The maxima of the layer's own values."""
    assert case.pool is not None
    plain = layer_values(case.design, case.layer, case.operands)
    pooled = max_pool(np.moveaxis(plain, 1, -1), case.pool)
    assert np.array_equal(values, np.moveaxis(pooled, -1, 1))
    assert np.array_equal(values, ofmap)


CONV = Conv2d(
    name="conv", channels=2, filters=5, ifmap_height=11, ifmap_width=9, kernel_height=3,
    kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, bias=True,
)  # fmt: skip
SMALL = Scnn(grid_rows=2, grid_columns=3, filter_group=2, bank_entries=9)
THREE = MaxPool(window=(3, 3), stride=(2, 2))
TWO = MaxPool(window=(2, 2), stride=(2, 2))
PADDED = MaxPool(window=(3, 3), stride=(1, 2), pad=(1, 2), ceil=True)
ONE = MaxPool(window=(1, 1), stride=(1, 1))


def timed(pool: MaxPool | None, layer: Conv2d = CONV, design: Scnn = SMALL) -> Any:
    return layer_timing(design, layer, operands_of(layer, (0.5, 0.5), seed=1), pool=pool)


def test_a_window_of_one_is_no_pooling_but_for_the_clear() -> None:
    plain, pooled = timed(None), timed(ONE)
    assert np.array_equal(plain.ofmap, pooled.ofmap)
    (one,), (other,) = plain.passes, pooled.passes
    assert other.mapping.copy_cycles(0) == 0
    for group in range(one.mapping.groups):
        spent = one.drained[group] - one.drain_starts[group]
        assert other.drained[group] - other.drain_starts[group] == spent + SMALL.bank_entries
    assert pooled.actions["window_read"] == plain.actions["zeroed"] == pooled.actions["output"]
    assert plain.actions["window_read"] == plain.actions["cleared"] == 0


def test_cycles_by_counting() -> None:
    """11 x 9 outputs, windows of 3 x 3 two apart: 5 x 4 pooled ones on 2 x 3 PEs, 3 x 2 in each, so
    that a PE owns 6 x 4 outputs, the last ones what is left: 5 x 1; it sees one more row and column
    behind them."""
    mapping = timed(THREE).passes[0].mapping
    rows, columns = mapping.rows, mapping.columns
    assert [rows.owned(pe) for pe in range(2)] == [range(6), range(6, 11)]
    assert [columns.owned(pe) for pe in range(3)] == [range(4), range(4, 9), range(9, 9)]
    assert (rows.most_copies, columns.most_copies) == ((0, 1), (0, 1))
    assert mapping.copy_cycles(0) == 2 * 2 * (6 * 1 + 1 * 5)
    assert mapping.output_cycles(0) == 2 * (3 * 2 * 9 + 1) + 9
    assert mapping.copy_sums().tolist() == [0, 6, 0, 5, 5 + 5, 0]
    reads = timed(THREE).actions["window_read"]
    assert reads == 5 * 4 * 9 * 5


def test_padding_is_not_zero() -> None:
    """Where all outputs are below 0, so are the pooled ones."""
    operands = operands_of(CONV, (1.0, 1.0), seed=1)
    low = replace(operands, bias=np.full(5, -(2**22), np.int32), multiplier=1, shift=0)
    values = layer_values(SMALL, CONV, low, PADDED)
    assert values.shape[-2:] == (11, 6)
    assert (values < 0).all()


def test_strips_are_of_pooled_rows() -> None:
    """Rows that two strips see are computed in both."""
    layer = replace(CONV, ifmap_height=24)
    operands = operands_of(layer, (1.0, 1.0), seed=1)
    pool = replace(THREE, pad=(1, 1))
    tight = replace(SMALL, iaram_bytes=110)
    strips = layer_passes(tight, layer, operands, pool)[0]
    assert len(strips) > 2
    assert [row for strip in strips for row in strip.rows] == list(range(12))
    rows = [strip.mapping.rows for strip in strips]
    assert sum(one.outputs for one in rows) == 24 + (len(strips) - 1)
    assert [one.window.pad for one in rows] == [1] + [0] * (len(strips) - 1)
    assert layer_timing(tight, layer, operands, pool=pool).strips == len(strips)


@pytest.mark.parametrize(
    ("layer", "pool", "message"),
    [
        (
            MatMul(name="fc", m=2, n=3, k=4),
            TWO,
            "fc: a matrix product must have no pooling, not MaxPool(window=(2, 2), stride=(2, 2), "
            "pad=(0, 0), ceil=False)",
        ),
        (
            CONV,
            MaxPool(window=(2, 12), stride=(1, 1)),
            "conv: max pooling: the window must be at most the padded plane's 9 columns, not 12",
        ),
    ],
)
def test_poolings_that_are_refused(layer: Conv2d | MatMul, pool: MaxPool, message: str) -> None:
    with pytest.raises(InputError) as raised:
        plan_layer(SMALL, layer, operands_of(layer, (0.5, 0.5), seed=1), pool)
    assert str(raised.value) == message


def test_only_neighbours_copy() -> None:
    """A window that sees two PEs further needs fewer PEs."""
    problem = problem_of(replace(CONV, kernel_height=1, kernel_width=1, pad_top=0, pad_left=0,
                                 pad_bottom=0, pad_right=0))  # fmt: skip
    grid = Scnn(grid_rows=1, grid_columns=8)
    pool = MaxPool(window=(1, 4), stride=(1, 1))
    columns = map_plane(grid, problem, 1, windows_of(pool, (11, 9))).columns
    assert columns.window.outputs == 6
    assert (columns.give, columns.pes, columns.most_copies) == (3, 2, (0, 3))


def test_events_of_components() -> None:
    """What the accumulators read and write, and what is requantised, in a pooled layer."""
    actions = timed(THREE).actions
    assert actions["copy_sum"] > 0 == actions["zeroed"]
    assert actions["cleared"] == 3 * 6 * SMALL.banks * SMALL.bank_entries
    moved = actions["product"] + 2 * actions["halo_sum"]
    words, products, maxima = (
        next(one for one in SMALL.components if one.name == name and one.kind == kind)
        for name, kind in (
            ("accumulator.words", "sram"),
            ("output_stage.requantize", "multiplier"),
            ("maximum", "adder"),
        )
    )
    written = sum(actions[name] * number for name, number in words.actions["write"].items())
    assert written == moved + actions["copy_sum"] + actions["cleared"]
    for one in (products, maxima):
        (events,) = one.actions.values()
        assert events["window_read"] == events["zeroed"] > 0 == events.get("output", 0)


# chains

ALEX = (
    Conv2d(name="conv1", channels=2, filters=4, ifmap_height=27, ifmap_width=27, kernel_height=5,
           kernel_width=5, stride_height=2, stride_width=2, relu=True),
    Conv2d(name="conv2", channels=4, filters=6, ifmap_height=5, ifmap_width=5, kernel_height=3,
           kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, relu=True),
    Conv2d(name="conv3", channels=6, filters=3, ifmap_height=5, ifmap_width=5, kernel_height=3,
           kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, relu=True),
)  # fmt: skip
VGG = (
    Conv2d(name="conv1_2", channels=2, filters=4, ifmap_height=16, ifmap_width=12, kernel_height=3,
           kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, relu=True),
    Conv2d(name="conv2_1", channels=4, filters=5, ifmap_height=8, ifmap_width=6, kernel_height=3,
           kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, relu=True),
    Conv2d(name="conv2_2", channels=5, filters=4, ifmap_height=8, ifmap_width=6, kernel_height=3,
           kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, relu=True),
    Conv2d(name="conv3_1", channels=4, filters=4, ifmap_height=4, ifmap_width=3, kernel_height=3,
           kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, relu=True),
)  # fmt: skip
CHAINS = {
    "AlexNet": (ALEX, (THREE, None, THREE)),
    "VGG": (VGG, (TWO, None, TWO, TWO)),
}
FOUR = Scnn(grid_rows=2, grid_columns=2)


def chain_operands(layers: tuple[Conv2d, ...], behind: tuple[Any, ...]) -> list[Operands]:
    """The ifmap of each layer is the pooled ofmap before."""
    found = list[Operands]()
    ofmap: Any = None
    for layer, pool in zip(layers, behind, strict=True):
        own = operands_of(layer, (0.6, 0.6), seed=1)
        found.append(own if ofmap is None else replace(own, ifmap=ofmap))
        ofmap = layer_values(FOUR, layer, found[-1], pool)
    return found


@pytest.mark.parametrize("name", CHAINS)
def test_pooled_ofmaps_stay(name: str) -> None:
    """Each for the next layer, although its plane is the pooled one; with pitches of an ifmap."""
    layers, behind = CHAINS[name]
    operands = chain_operands(layers, behind)
    chained = chain_timing(FOUR, layers, operands, pools=behind)
    alone = [layer_timing(FOUR, *one[:2], pool=one[2]) for one in
             zip(layers, operands, behind, strict=True)]  # fmt: skip
    kept = [one.passes[0].mapping.keep_ofmap for one in chained]
    assert kept == [True] * (len(layers) - 1) + [False]
    for one, other in zip(chained, alone, strict=True):
        assert np.array_equal(one.ofmap, other.ofmap)
        assert one.actions["window_read"] == other.actions["window_read"]
    first = chained[0].passes[0].mapping
    pitch = {"AlexNet": 4, "VGG": 4}[name]
    taps = behind[0].window[0] * behind[0].window[1]
    assert first.output_cycles(0) == 4 * (first.rows.give * pitch * taps + 1) + FOUR.bank_entries


def test_a_pooled_ofmap_that_cannot_stay() -> None:
    """Three PEs have inputs; the 2 pooled outputs are given out by two of them."""
    wide = Scnn(grid_rows=1, grid_columns=4)
    layer = replace(VGG[0], ifmap_height=1, kernel_height=1, pad_top=0, pad_bottom=0)
    pool = MaxPool(window=(1, 6), stride=(1, 6))
    small = replace(layer, channels=4, ifmap_width=2)
    plans = [
        plan_layer(wide, one, operands_of(one, (0.5, 0.5), seed=1), behind)
        for one, behind in ((layer, pool), (small, None))
    ]
    reason = can_stay(*(plan.passes[0][0].mapping for plan in plans))
    assert reason == "columns of PEs of the next pass must be 3, not 2"
    mapping = plans[0].passes[0][0].mapping
    assert [bool(mapping.columns.given(pe)) for pe in range(3)] == [True, True, False]


def test_pools_are_of_every_layer() -> None:
    layers, behind = CHAINS["VGG"]
    with pytest.raises(InputError, match="pools must be of each of 4 layers, not of 3"):
        chain_timing(FOUR, layers, chain_operands(layers, behind), pools=behind[:3])
