"""What figures and captions say of a sparse machine, whose products are fewer than its MACs."""

from __future__ import annotations

import re
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from archsim import EDGE_16, NetworkResult, simulate
from archsim.energy import account, action_counts
from archsim.layer.intake import Drawing
from archsim.machines.scnn.design import SCNN_ISCA17
from archsim.plots.component_bars import MemoryTraffic, memory_traffic
from archsim.plots.roofline import bound_by, channels
from archsim.report import captions
from workloads.builtin import builtin
from workloads.layers import Network

LAYERS = Network(name="two", source="here", layers=builtin("alexnet").matrix_layers[2:4])


@pytest.fixture(scope="module")
def result() -> NetworkResult:
    mpl.use("Agg")
    operands = {
        layer.name: SCNN_ISCA17.intake.synthetic(layer, Drawing(density=0.3))
        for layer in LAYERS.matrix_layers
    }
    return simulate(SCNN_ISCA17, LAYERS, operands=operands)


def test_layers_are_under_the_roof_with_their_products(result: NetworkResult) -> None:
    assert any(layer.macs > layer.cycles * layer.macs_per_cycle for layer in result.layers)
    ax: Any = result.plot.roofline()
    points = [line.get_xydata()[0] for line in ax.get_lines() if line.get_marker() == "o"]
    wanted = [
        (one.multiplied / one.total_bytes, one.multiplied / one.cycles) for one in result.layers
    ]
    assert np.array(points) == pytest.approx(np.array(wanted))
    assert all(y <= SCNN_ISCA17.macs_per_cycle for _, y in points)
    assert ax.get_ylabel() == "products per cycle"
    for layer in result.layers:
        assert bound_by(layer, channels(SCNN_ISCA17))[1] <= layer.cycles


def test_what_was_not_multiplied_is_shared_out(result: NetworkResult) -> None:
    shares = [float(text) for text in re.findall(r"([\d.]+) %", captions.utilization(result))]
    assert sum(shares) == pytest.approx(100, abs=0.2)
    one, other = (layer.cycles * layer.macs_per_cycle - layer.multiplied for layer in result.layers)
    assert max(shares) == pytest.approx(100 * max(one, other) / (one + other), abs=0.1)


def moved(result: NetworkResult) -> tuple[MemoryTraffic, ...]:
    counts: dict[str, float] = {}
    for layer in result.layers:
        for name, number in action_counts(layer).items():
            counts[name] = counts.get(name, 0.0) + number
    return memory_traffic(account(result).price_list.components, counts)


def test_memories_of_pes_are_no_scratchpads_of_operands(result: NetworkResult) -> None:
    text = captions.memory_bytes(moved(result))
    assert text.endswith("what many PEs store counts in each of them.")


def test_scratchpads_give_more_bytes_than_the_off_chip_memory() -> None:
    memories = moved(simulate(EDGE_16, LAYERS))
    read = {one.name: one.read_bytes for one in memories}
    ratio = (read["ifmap.memory"] + read["weight.memory"]) / read["off_chip.dram"]
    text = captions.memory_bytes(memories)
    assert text.endswith(f"the operand scratchpads {ratio:.1f} times as many bytes.")
