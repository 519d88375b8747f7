"""Occupancy of the PEs: as many MACs as the layers have, on any machine, and what moves is busy.

Which PE does what in which cycle is compared with the RTL in `tests/rtl/test_occupancy.py`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim import InputError, simulate
from archsim.layer.intake import Drawing
from archsim.machine.interval import ARRAY
from archsim.machines.scnn.design import SCNN_ISCA17
from archsim.machines.systolic.design import DATAFLOWS, EDGE_16, Systolic
from archsim.machines.tensorcore.design import TensorCore
from archsim.machines.vsq.design import Vsq
from archsim.memory import OffChip, Plain
from archsim.occupancy import occupancy
from archsim.tiled.activity import layer_activity
from archsim.tiled.design import CoreDesign
from archsim.tiled.occupancy import layer_products
from workloads.builtin import builtin
from workloads.layers import Conv2d, MatMul, Network

MEMORIES: dict[str, Any] = {
    f"{name}_memory": Plain(capacity_bytes=4096) for name in ("ifmap", "weight", "accumulator")
} | {"off_chip": OffChip(bytes_per_cycle=3.0, latency_cycles=20)}

designs = st.one_of(
    st.builds(
        lambda rows, columns, dataflow: Systolic(
            rows=rows, columns=columns, dataflow=dataflow, **MEMORIES
        ),
        st.integers(1, 9), st.integers(1, 9), st.sampled_from(DATAFLOWS),
    ),
    st.builds(
        lambda octets, columns, half, length: TensorCore(
            octets=octets, group_columns=columns, rows=2 * half, length=length,
            operand="int8", accumulator="int32", **MEMORIES,
        ),
        st.integers(1, 2), st.integers(1, 3), st.integers(1, 5), st.integers(1, 4),
    ),
    st.builds(
        lambda lanes, times, hold: Vsq(
            lanes=lanes, vector=lanes * times, hold_cycles=hold, **MEMORIES
        ),
        st.integers(1, 4), st.integers(1, 3), st.integers(1, 7),
    ),
)  # fmt: skip
layers = st.one_of(
    st.builds(
        MatMul, name=st.just("product"), m=st.integers(1, 30), n=st.integers(1, 30),
        k=st.integers(1, 30), batch=st.integers(1, 3), shared_weight=st.just(False),
    ),
    st.builds(
        lambda groups, channels, filters, **rest: Conv2d(
            name="conv", groups=groups, channels=groups * channels, filters=groups * filters, **rest
        ),
        st.sampled_from([1, 2, 7]), st.integers(1, 9), st.integers(1, 6),
        ifmap_height=st.integers(3, 8), ifmap_width=st.integers(5, 9), batch=st.integers(1, 2),
        kernel_height=st.integers(1, 3), kernel_width=st.integers(1, 3), pad_left=st.integers(0, 1),
        stride_width=st.integers(1, 2), dilation_width=st.integers(1, 2),
    ),
)  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(design=designs, steps=st.integers(2, 9), rows=st.integers(1, 6), bins=st.integers(1, 50))
def test_steps_are_busy_as_layers_that_follow_each_other(
    design: CoreDesign, steps: int, rows: int, bins: int
) -> None:
    whole = MatMul(name="cell", m=steps * rows, n=7, k=5, steps=steps)
    step = MatMul(name="cell", m=rows, n=7, k=5)
    apart = tuple(replace(step, name=f"cell/{number}") for number in range(steps))
    one, many = (
        occupancy(simulate(design, Network(name="n", source="test", layers=of)), bins=bins)
        for of in ((whole,), apart)
    )
    assert one.counts.sum() == whole.macs
    assert np.array_equal(one.counts, many.counts)
    assert np.array_equal(one.edges_cycles, many.edges_cycles)
    for a, b in zip(one.lines, many.lines, strict=True):
        assert np.array_equal(a.counts, b.counts)


@settings(max_examples=60, deadline=None)
@given(design=designs, layer=layers)
def test_every_mac_of_a_layer_is_some_pes_and_no_pe_does_two_a_cycle(
    design: CoreDesign, layer: Conv2d | MatMul
) -> None:
    products = layer_products(design, layer)
    assert products.total.sum() == layer.macs
    cycles = layer_activity(design, layer).cycles
    at = np.unique(np.linspace(0, cycles, 40).astype(int))
    risen = np.diff([products.until(int(cycle)) for cycle in at], axis=0)
    assert np.array_equal(risen.sum(axis=0), products.total)
    assert risen.min() >= 0
    assert np.all(risen <= np.diff(at)[:, None, None])


@pytest.mark.parametrize("name", ["alexnet", "mobilenetv2"])
def test_a_network_over_time(name: str) -> None:
    result = simulate("edge-16", name)
    found = occupancy(result, bins=37)
    macs = sum(layer.macs for layer in result.layers)
    assert found.counts.sum() == macs
    assert found.shares.mean() == pytest.approx(result.utilization)
    assert found.edges_cycles[0] == 0
    assert found.edges_cycles[-1] == result.cycles
    rows, columns = found.lines
    assert np.array_equal(rows.counts.sum(axis=0), found.counts.sum(axis=1))
    assert np.array_equal(columns.counts.sum(axis=0), found.counts.sum(axis=0))
    assert np.array_equal(rows.counts.sum(axis=1), columns.counts.sum(axis=1))
    for lines in found.lines:
        assert found.over_time(lines).max() <= 1


def test_the_array_is_busy_only_while_words_stream() -> None:
    layer = builtin("alexnet").matrix_layers[2]
    products = layer_products(EDGE_16, layer)
    streams = [one for one in layer_activity(EDGE_16, layer) if one.unit == ARRAY]
    for one, after in pairwise(streams[:40]):
        assert one.tile is not None
        done = products.until(one.end_cycle) - products.until(one.start_cycle)
        assert done.sum() == one.tile.macs
        assert np.array_equal(products.until(one.end_cycle), products.until(after.start_cycle))


def test_a_layer_of_a_network_and_a_sparse_machine() -> None:
    layer = Conv2d(
        name="c", channels=5, filters=12, ifmap_height=17, ifmap_width=23, kernel_height=3,
        kernel_width=3,
    )  # fmt: skip
    network = Network(name="n", source="", layers=(layer, MatMul(name="fc", m=3, n=4, k=5)))
    assert occupancy(simulate(EDGE_16, network), "fc").counts.sum() == 60
    drawn = {
        one.name: SCNN_ISCA17.intake.synthetic(one, Drawing(density=0.5))
        for one in network.matrix_layers
    }
    result = simulate(SCNN_ISCA17, network, operands=drawn)
    found = occupancy(result)
    assert (
        found.edges_cycles.tolist() == np.cumsum([0, *(x.cycles for x in result.layers)]).tolist()
    )
    assert found.counts.sum() == sum(one.per_pe["load"].sum() for one in result.layers)
    assert found.lines[0].counts[0, 9] == result.layers[0].per_pe["load"][1, 1]


def test_what_there_is_not() -> None:
    result = simulate("edge-16", "alexnet")
    with pytest.raises(InputError, match=r"alexnet on edge-16 has no layer 'conx1' .*conv1"):
        occupancy(result, "conx1")
    with pytest.raises(InputError, match="bins must be positive, not 0"):
        occupancy(result, bins=0)
