"""`SCNN_DNNSIM` beside DNNsim: what its binary counted, and what its rules say in plain loops.

`tests/data/dnnsim.toml` is measured (`benchmarks/dnnsim.md`).  `plain_count`
(`tests/shared/dnnsim_plain.py`) says its rules value by value.
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dnnsim_plain import plain_count
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from archsim import simulate
from archsim.errors import InputError
from archsim.machines.scnn.design import SCNN_DNNSIM, SCNN_ISCA17, Scnn
from archsim.machines.scnn.layer import layer_passes, layer_timing, layer_values
from archsim.machines.scnn.timing import Services
from archsim.memories.boveda_stream.stream import BovedaStream
from workloads.layers import Conv2d, MatMul, Network
from workloads.operands import Operands, synthetic
from workloads.pooling import MaxPool

DATA = Path(__file__).parents[1] / "data" / "dnnsim.toml"
MEASURED: list[dict[str, Any]] = tomllib.loads(DATA.read_text(encoding="utf-8"))["layer"]

Layer = Conv2d | MatMul


def counts(design: Scnn, layer: Layer, operands: Operands) -> dict[str, list[int]]:
    """Ours of each image, with DNNsim's names and units."""
    lanes = design.weight_lanes * design.ifmap_lanes
    passes = layer_timing(design, layer, operands).passes
    return {
        "cycles": [one.cycles for one in passes],
        "mults": [int(one.pes.products.sum()) for one in passes],
        "idle_conflicts": [int(one.pes.conflict.sum()) * lanes for one in passes],
    }


def drawn(layer: Layer, densities: tuple[float, float], seed: int) -> Operands:
    """Ifmap and weight of a density each, as `benchmarks/dnnsim_peer.py` draws them."""
    ifmap, weight = (synthetic(layer, bits=8, density=one, seed=seed) for one in densities)
    return replace(ifmap, weight=weight.weight)


@pytest.mark.parametrize("row", MEASURED, ids=[row["shape"]["name"] for row in MEASURED])
def test_what_dnnsim_counted(row: dict[str, Any]) -> None:
    shape = dict(row["shape"])
    layer = (MatMul if shape.pop("kind") == "matmul" else Conv2d)(**shape)
    operands = drawn(layer, tuple(row["densities"]), row["seed"])
    values = [int((one != 0).sum()) for one in (operands.ifmap, operands.weight)]
    assert values == row["values"], "other operands than those that were measured"
    assert counts(replace(SCNN_DNNSIM, **row["machine"]), layer, operands) == row["dnnsim"]


def test_what_was_measured_has_all_kinds() -> None:
    shapes = [row["shape"] for row in MEASURED]
    convolutions = [one for one in shapes if one["kind"] == "conv2d"]
    assert len(shapes) >= 60 and len(convolutions) < len(shapes)
    assert {one["stride_height"] for one in convolutions} >= {1, 2, 3, 4}
    assert {one["groups"] for one in convolutions} >= {1, 2, 3, 4}
    assert max(one["kernel_height"] for one in convolutions) == 11
    assert any(one["channels"] == one["groups"] > 1 for one in convolutions)
    assert any(one["ifmap_height"] == one["ifmap_width"] == 1 for one in convolutions)
    assert any(one.get("pad_top", 0) >= one["kernel_height"] for one in convolutions)
    assert any(one.get("pad_top", 0) % one["stride_height"] for one in convolutions)
    assert any(len(row["dnnsim"]["cycles"]) > 1 for row in MEASURED)
    assert len({str(row["machine"]) for row in MEASURED}) >= 6


@st.composite
def designs(draw: st.DrawFn) -> Scnn:
    whole = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    return replace(
        SCNN_DNNSIM, grid_rows=whole(1, 3), grid_columns=whole(1, 3), weight_lanes=whole(1, 5),
        ifmap_lanes=whole(1, 5), banks=2 ** whole(0, 6), bank_entries=whole(1, 40),
    )  # fmt: skip


@st.composite
def layers(draw: st.DrawFn) -> Layer:
    whole = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    if whole(0, 9) == 0:
        return MatMul(name="m", m=whole(1, 2), n=whole(1, 6), k=draw(st.sampled_from([1, 30, 260])))
    kernel, groups = (whole(1, 4), whole(1, 4)), draw(st.sampled_from([1, 1, 2, 3]))
    channels = groups * draw(st.sampled_from([1, 1, 2, 3]))
    pads = [whole(0, 5) for _ in range(4)]
    low = [max(size - before - behind, 1) for size, before, behind in
           zip(kernel, pads[::2], pads[1::2], strict=True)]  # fmt: skip
    return Conv2d(
        name="c", channels=channels, filters=groups * whole(1, 5), groups=groups,
        ifmap_height=low[0] + draw(st.sampled_from([0, 0, 1, 4])),
        ifmap_width=low[1] + draw(st.sampled_from([0, 0, 1, 4])),
        kernel_height=kernel[0], kernel_width=kernel[1],
        stride_height=whole(1, 4), stride_width=whole(1, 4), batch=draw(st.sampled_from([1, 1, 2])),
        pad_top=pads[0], pad_bottom=pads[1], pad_left=pads[2], pad_right=pads[3],
    )  # fmt: skip


@settings(max_examples=250, deadline=None)
@given(designs(), layers(), st.integers(0, 10**6), st.data())
def test_any_layer_is_counted_by_the_rules(
    design: Scnn, layer: Layer, seed: int, data: st.DataObject
) -> None:
    density = st.sampled_from([0.0, 0.1, 0.5, 1.0])
    operands = drawn(layer, (data.draw(density), data.draw(density)), seed)
    try:
        found = counts(design, layer, operands)
    except InputError as error:
        assert "sums of one filter" in str(error)
        reject()
    assert found == plain_count(design, layer, operands)


CONV = Conv2d(
    name="c", channels=3, filters=7, ifmap_height=9, ifmap_width=8, kernel_height=3,
    kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1,
)  # fmt: skip
SMALL = replace(
    SCNN_DNNSIM, grid_rows=2, grid_columns=2, weight_lanes=2, ifmap_lanes=2, banks=8,
    bank_entries=12,
)  # fmt: skip
"""Groups of 4 filters for `CONV`."""


@pytest.mark.parametrize(
    "change", [{"barrier": "group"}, {"bank_hash": "linear"}, {"group_rule": "accumulators"}]
)
def test_with_one_rule_of_ours_it_is_our_core(change: dict[str, Any]) -> None:
    """Then there are ports, strips and an output, and the count is another one."""
    operands = drawn(CONV, (0.6, 0.6), 1)
    ours: Any = change
    mixed = layer_timing(replace(SMALL, **ours), CONV, operands)
    assert mixed.ofmap_bits > 0 == layer_timing(SMALL, CONV, operands).ofmap_bits
    assert mixed.cycles > sum(counts(SMALL, CONV, operands)["cycles"])


@pytest.mark.parametrize(
    "change",
    [
        {"index_bits": 1}, {"bank_queue": 8}, {"weight_fifo_vectors": 1}, {"filter_group": 1},
        {"strip_rows": 1}, {"iaram_bytes": 12, "oaram_bytes": 12},
    ],
)  # fmt: skip
def test_what_dnnsim_has_not_does_not_count(change: dict[str, Any]) -> None:
    """Indices and placeholders, queues, FIFOs, and memories that have to hold anything."""
    operands, other = drawn(CONV, (0.2, 0.2), 3), replace(SMALL, **change)
    assert counts(other, CONV, operands) == counts(SMALL, CONV, operands)


def test_groups_follow_the_output_tile() -> None:
    """Stride 4: 9 × 9 inputs on 2 × 2 PEs are 3 × 3 outputs, 2 × 2 in a PE."""
    layer = replace(
        CONV, ifmap_width=9, stride_height=4, stride_width=4, filters=99,
        pad_bottom=2, pad_right=2,
    )  # fmt: skip
    (found,) = layer_timing(SMALL, layer, drawn(layer, (1.0, 1.0), 1)).passes
    assert found.mapping.group_size == 96 // 4 and len(found.starts) == 5
    ours = layer_passes(
        replace(SMALL, barrier="group", weight_fifo_vectors=9999), layer, drawn(layer, (1, 1), 1)
    )
    assert ours[0][0].mapping.group_size == 96 // 4


def test_lists_of_nothing_cost_nothing_but_halos() -> None:
    operands = replace(drawn(CONV, (1.0, 1.0), 1), ifmap=np.zeros((1, 3, 9, 8), np.int8))
    timing = layer_timing(SMALL, CONV, operands)
    halo = max(6, 5) * 1  # a side of the 6 × 5 tile, one output deep
    assert timing.cycles == CONV.filters * halo
    assert timing.products == 0 and timing.per_pe("busy").sum() == 0


def test_every_cycle_of_every_pe_is_accounted_for() -> None:
    layer = replace(CONV, batch=2)
    timing = layer_timing(SMALL, layer, drawn(layer, (0.5, 0.5), 1))
    parts = (timing.per_pe(name) for name in ("busy", "wait", "skip", "barrier", "drain"))
    assert np.array_equal(np.sum([*parts], axis=0), np.full((2, 2), timing.cycles))
    assert timing.compute_cycles == timing.cycles
    assert len(timing.passes) == 2 and timing.utilization > 0
    for one in timing.passes:
        spans = (one.ends - one.starts) + (one.drained - one.drain_starts)
        assert spans.sum() == one.cycles


def test_values_are_those_of_the_layer() -> None:
    operands = drawn(CONV, (0.5, 0.5), 1)
    ofmap = layer_timing(SMALL, CONV, operands).ofmap
    assert np.array_equal(ofmap, layer_values(SCNN_ISCA17, CONV, operands))


def test_where_dnnsim_never_ends_or_reads_beside_its_arrays() -> None:
    """The choices of `docs/contracts/scnn.md`."""
    with pytest.raises(InputError) as raised:
        layer_timing(replace(SMALL, bank_entries=2), CONV, drawn(CONV, (1.0, 1.0), 1))
    assert str(raised.value) == (
        "c: a PE has 20 sums of one filter, but 8 banks of 2 hold 16; bank_entries of at least 3 "
        "would do"
    )
    one_each = replace(CONV, groups=3, filters=6)  # there, channels 3, 4 and 5 of 3
    folded = Conv2d(name="f", channels=1200, filters=6, groups=6, ifmap_height=1, ifmap_width=1,
                    kernel_height=1, kernel_width=1)  # fmt: skip  # and fold 5 of 5
    for layer in (one_each, folded):
        operands = drawn(layer, (0.7, 0.7), 1)
        assert counts(SMALL, layer, operands) == plain_count(SMALL, layer, operands)
        assert counts(SMALL, layer, operands)["mults"][0] > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"sparsity": "weights"},
            "sparsity must be both where cycles are counted as DNNsim does, not weights",
        ),
        (
            {"activation_memory": BovedaStream()},
            "activation_memory must be plain where cycles are counted as DNNsim does",
        ),
    ],
)
def test_designs_that_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        replace(SCNN_DNNSIM, **change)
    assert str(raised.value) == message


def test_what_only_our_core_has_is_refused() -> None:
    operands = drawn(CONV, (0.5, 0.5), 1)
    network = Network(name="n", layers=(CONV,), source="here")
    pool = MaxPool(window=(2, 2), stride=(2, 2))
    for ask, message in (
        (lambda: layer_passes(SMALL, CONV, operands), "c: a layer has no strips and ports where"),
        (lambda: layer_timing(SMALL, CONV, operands, Services()), "ports have no services where"),
        (lambda: layer_timing(SMALL, CONV, operands, pool=pool), "layers have no pool where"),
        (
            lambda: simulate(SMALL, network, operands={"c": operands}, chain=True),
            "ofmaps do not stay, and are not pooled, where group_rule is dnnsim",
        ),
        (
            lambda: layer_timing(
                SMALL, (wide := replace(CONV, dilation_height=2)), drawn(wide, (1.0, 1.0), 1)
            ),
            "c: dilation must be 1 in DNNsim's count, not 2x1",
        ),
    ):
        with pytest.raises(InputError) as raised:
            ask()
        assert str(raised.value).startswith(message)


def test_a_network_is_simulated() -> None:
    layers = (CONV, MatMul(name="m", m=2, n=5, k=30))
    network = Network(name="n", layers=layers, source="here")
    operands = {layer.name: drawn(layer, (0.5, 0.5), 1) for layer in layers}
    result = simulate(SMALL, network, operands=operands)
    expected = [sum(counts(SMALL, one, operands[one.name])["cycles"]) for one in layers]
    assert [one.cycles for one in result.layers] == expected
    assert all(sum(one.where.values()) == one.cycles for one in result.layers)
    assert all(sum(one.bytes_moved.values()) == 0 for one in result.layers)
    assert all(one.operands.endswith(", counted as DNNsim does") for one in result.layers)


def test_the_published_size() -> None:
    assert SCNN_DNNSIM.accumulators == 6144
    assert SCNN_DNNSIM.multipliers == 1024
