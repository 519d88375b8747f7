"""The fast model of the sparse core against the stepped one, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scnn_cases import (
    Case,
    answers,
    cases,
    differences,
    operands_of,
    services,
    weight_words,
    words_of,
)

from archsim.errors import InputError
from archsim.machines.scnn.dense import DCNN, Dcnn, oracle_cycles
from archsim.machines.scnn.design import MOST_BANKS, SCNN_4PE, SCNN_ISCA17, Scnn
from archsim.machines.scnn.layer import (
    layer_passes,
    layer_timing,
    layer_values,
    plan_layer,
    planned_timing,
)
from archsim.machines.scnn.timing import Services
from archsim.timing import Service
from workloads import reference
from workloads.layers import Conv2d, MatMul
from workloads.operands import synthetic


@settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.filter_too_much])
@given(cases(), st.integers(1, 5))
def test_fast_model_equals_the_stepped_one(case: Case, queue: int) -> None:
    case = replace(case, design=replace(case.design, bank_queue=queue))
    known = answers(case)
    assume(known is not None)
    assert known is not None
    passes, stepped = known
    plan = plan_layer(case.design, case.layer, case.operands, whole=True)
    timing = planned_timing(case.design, plan, services(case))
    strips = [strip for some in passes for strip in some]
    ofmap = np.zeros((len(passes), *_plane(case)), np.int64)
    place = [number for number, some in enumerate(passes) for _ in some]
    for number, strip, one, oracle in zip(place, strips, timing.passes, stepped, strict=True):
        assert strip.mapping.group_size == oracle["group_size"]
        assert differences(one, oracle) == []
        assert words_of(strip.operands.ifmap) == oracle["ifmap_words"]
        assert weight_words(case.design, strip) == oracle["weight_words"]
        assert words_of(strip.operands.ofmap) == oracle["ofmap_words"]
        rows, columns = (slice(r.start, r.stop) for r in (strip.rows, strip.columns))
        ofmap[number, rows, columns] = oracle["ofmap"]
    assert (ofmap == _split(case, layer_values(case.design, case.layer, case.operands))).all()
    _check_sums(timing)


def _plane(case: Case) -> tuple[int, int, int]:
    layer = case.layer
    if isinstance(layer, MatMul):
        return 1, layer.m, layer.n
    return layer.ofmap_height, layer.ofmap_width, layer.filters // layer.groups


def _split(case: Case, ofmap: Any) -> Any:
    """[images · groups, P, Q, K]."""
    if isinstance(case.layer, MatMul):
        return ofmap.reshape(-1, *_plane(case))
    rows, columns, filters = _plane(case)
    return ofmap.reshape(-1, filters, rows, columns).transpose(0, 2, 3, 1)


def _check_sums(timing: Any) -> None:
    """Every cycle of every PE has one cause; counts and totals are those of the passes."""
    for one in timing.passes:
        pes = one.pes
        spent = pes.busy + pes.wait + pes.skip + pes.barrier + pes.drain
        assert (spent == one.compute_cycles).all()
        assert (pes.busy == pes.pairs + pes.conflict).all()
    assert timing.actions["product"] == sum(int(one.pes.products.sum()) for one in timing.passes)
    assert timing.cycles == sum(one.cycles for one in timing.passes)
    lanes = timing.design.weight_lanes * timing.design.ifmap_lanes
    assert timing.lanes_idle == timing.actions["pair"] * lanes - timing.products
    assert 0 <= timing.utilization <= 1


CONV = Conv2d(
    name="conv", channels=3, filters=5, ifmap_height=9, ifmap_width=8, kernel_height=3,
    kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, relu=True, bias=True,
)  # fmt: skip
SMALL = Scnn(grid_rows=2, grid_columns=2)


def test_values_are_the_reference_s() -> None:
    operands = synthetic(CONV, bits=8, density=0.5, seed=3)
    wide = Scnn(operand_bits=8)
    assert (layer_values(wide, CONV, operands) == reference.compute(CONV, operands, bits=8)).all()


def test_a_plane_that_does_not_fit_is_cut_into_the_fewest_strips() -> None:
    operands = operands_of(CONV, (0.9, 0.5), seed=1)
    whole = layer_timing(SMALL, CONV, operands)
    assert whole.strips == 1
    tight = replace(SMALL, iaram_bytes=80)
    cut = layer_timing(tight, CONV, operands)
    sizes = [len(strip.rows) for strip in layer_passes(tight, CONV, operands)[0]]
    assert cut.strips == len(sizes) > 1
    assert sum(sizes) == CONV.ofmap_height
    assert set(sizes[:-1]) == {sizes[0]}
    assert sizes[-1] <= sizes[0]
    assert cut.weight_bits == len(sizes) * whole.weight_bits
    per_strip = [one.ifmap_bits for one in cut.passes]
    assert max(per_strip) <= 4 * tight.iaram_vectors * (tight.ifmap_vector_bits + 1)


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 1000])
def test_strips_have_no_more_rows_than_asked(rows: int) -> None:
    operands = operands_of(CONV, (0.9, 0.5), seed=1)
    asked = replace(SMALL, strip_rows=rows)
    sizes = [len(strip.rows) for strip in layer_passes(asked, CONV, operands)[0]]
    assert sum(sizes) == CONV.ofmap_height
    assert max(sizes) <= rows
    assert len(sizes) == -(-CONV.ofmap_height // min(rows, CONV.ofmap_height))
    assert (layer_values(asked, CONV, operands) == layer_values(SMALL, CONV, operands)).all()
    with pytest.raises(InputError, match=r"^strip_rows must not be negative, not -1$"):
        replace(SMALL, strip_rows=-1)


def test_a_row_of_pixels_is_cut_into_columns() -> None:
    layer = MatMul(name="m", m=24, n=3, k=20)
    operands = synthetic(layer, bits=8, seed=1)
    tight = replace(SMALL, iaram_bytes=200)
    timing = layer_timing(tight, layer, operands)
    assert timing.strips == 3
    assert [one.mapping.columns.outputs for one in timing.passes] == [8, 8, 8]


@pytest.mark.parametrize("port", ["ifmap", "weight", "ofmap"])
def test_bursts_are_gaps(port: str) -> None:
    """A regular service is the explicit one of the same intervals."""
    operands = operands_of(CONV, (0.5, 0.5), seed=2)
    bursts = Service(burst_words=3, numerator=17, denominator=2)
    gaps = np.diff(bursts.finish_times(2000), prepend=0) - 1
    regular = layer_timing(SMALL, CONV, operands, Services(**{port: bursts}))
    explicit = layer_timing(SMALL, CONV, operands, Services(**{port: Service(gaps=gaps)}))
    assert regular.cycles == explicit.cycles > layer_timing(SMALL, CONV, operands).cycles
    for one, other in zip(regular.passes, explicit.passes, strict=True):
        for name in ("ifmap_cycles", "weight_cycles", "ofmap_cycles"):
            assert (getattr(one, name) == getattr(other, name)).all()


def test_the_latency_of_a_port_counts_from_the_command() -> None:
    operands = operands_of(CONV, (0.5, 0.5), seed=2)
    late = Services(weight=Service(latency_cycles=500), ifmap=Service(latency_cycles=7))
    timing = layer_timing(SMALL, CONV, operands, late).passes[0]
    assert timing.weight_cycles[0] == 501
    assert timing.ifmap_cycles[0] == 8
    free = layer_timing(SMALL, CONV, operands).passes[0]
    assert (timing.pes.products == free.pes.products).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grid_rows": 0}, "grid_rows must be positive, not 0"),
        ({"weight_lanes": -1}, "weight_lanes must be positive, not -1"),
        ({"banks": 24}, "banks must be a power of two, not 24"),
        ({"banks": 1 << 16}, "banks must be at most 32768, not 65536"),
        ({"bank_queue": 0}, "bank_queue must be positive, not 0"),
        ({"bank_queue": 1.5}, "bank_queue must be a whole number, not 1.5"),
        ({"operand_bits": 17}, "operand_bits must be 2 to 16, not 17"),
        ({"accumulator_bits": 63}, "accumulator_bits must be 2 to 62, not 63"),
        ({"bank_hash": "xor"}, "bank_hash must be one of linear, dnnsim, not 'xor'"),
        ({"barrier": "none"}, "barrier must be one of group, channel, not 'none'"),
        (
            {"sparsity": "none"},
            "sparsity must be one of both, weights, activations, not 'none'",
        ),
        ({"iaram_bytes": 9}, "iaram_bytes must hold a vector of 80 bits, not 9 bytes"),
        ({"clock_hz": 0}, "clock_hz must be positive, not 0"),
    ],
)
def test_designs_that_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        Scnn(**changes)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("changes", "layer", "message"),
    [
        (
            {},
            replace(CONV, dilation_height=2),
            "conv: dilation must be 1 in a sparse core (any stride is supported), not 2x1",
        ),
        (
            {"weight_fifo_vectors": 2},
            CONV,
            "conv: weight_fifo_vectors must be at least 3 (the longest list of one filter's "
            "weights), not 2",
        ),
        (
            {"grid_columns": 1, "grid_rows": 1, "bank_entries": 1, "banks": 4},
            CONV,
            "conv: a PE's part of one filter has 1x8 sums, but 4 banks of 1 hold 4; "
            "bank_entries of at least 2 would do",
        ),
        (
            {"iaram_bytes": 50},
            CONV,
            "conv: iaram_bytes must be at least 60 (6 vectors in a PE, for the smallest strip of "
            "the plane), not 50",
        ),
        (
            {"oaram_bytes": 40},
            CONV,
            "conv: oaram_bytes must be at least 50 (5 vectors in a PE, for the smallest strip of "
            "the plane), not 40",
        ),
    ],
)
def test_layers_that_are_refused(changes: dict[str, Any], layer: Conv2d, message: str) -> None:
    operands = synthetic(layer, bits=8, density=1.0, seed=1)
    with pytest.raises(InputError) as raised:
        layer_timing(replace(SMALL, **changes), layer, operands)
    assert str(raised.value) == message


def test_the_most_banks_count_as_fewer_do() -> None:
    """Of 65536 the number of no bank would be that of the first: such a design is refused."""
    operands = operands_of(CONV, (0.5, 0.5), seed=2)
    some, most = (
        layer_timing(replace(SMALL, banks=banks, bank_entries=1), CONV, operands)
        for banks in (2048, MOST_BANKS)
    )
    assert some.actions == most.actions and some.cycles == most.cycles


def test_a_dilation_that_is_none_is_taken() -> None:
    layer = replace(CONV, kernel_height=1, dilation_height=2, pad_top=0, pad_bottom=0)
    assert layer_timing(SMALL, layer, synthetic(layer, bits=8)).cycles > 0


def test_published_instances_have_1024_multipliers() -> None:
    assert SCNN_ISCA17.multipliers == SCNN_4PE.multipliers == DCNN.multipliers == 1024
    assert SCNN_ISCA17.iaram_vectors == 1024
    whole = (SCNN_ISCA17.pes * SCNN_ISCA17.accumulators, SCNN_4PE.pes * SCNN_4PE.accumulators)
    assert whole[0] == whole[1]


def test_sparsity_of_one_operand_costs_more_pairs() -> None:
    operands = operands_of(CONV, (0.3, 0.3), seed=5)
    both, weights, activations = (
        layer_timing(replace(SMALL, sparsity=kind), CONV, operands).actions
        for kind in ("both", "weights", "activations")
    )
    assert both["product"] == weights["product"] == activations["product"]
    assert both["pair"] < weights["pair"]
    assert both["pair"] < activations["pair"]


def test_dense_cycles_by_counting() -> None:
    """Every dot product of every PE, one by one."""
    design = Dcnn(grid_rows=2, grid_columns=3, vector=2)
    most = 0
    for row in range(2):
        for column in range(3):
            mine = [
                (p, q)
                for p in range(CONV.ofmap_height)
                for q in range(CONV.ofmap_width)
                if (p // 5, q // 3) == (row, column)
            ]
            most = max(most, len(mine) * CONV.filters * 9 * len(range(0, CONV.channels, 2)))
    assert design.cycles(CONV) == most
    assert design.multipliers == 12
    assert oracle_cycles(design, 25) == 3
    with pytest.raises(InputError, match="vector must be positive, not 0"):
        Dcnn(vector=0)
