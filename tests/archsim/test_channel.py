"""The off-chip channel: the scan against a stepped core, its bounds, and what may not slow it."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from archsim import CLOUD_128, EDGE_16, TPU_V1
from archsim.errors import InputError
from archsim.layer.problem import Tiling
from archsim.machine.registry import design_name
from archsim.machines.systolic.design import DATAFLOWS, Systolic
from archsim.machines.vsq.design import Vsq
from archsim.memory import OffChip, Plain
from archsim.memory.ticks import TICK, TICK_BITS
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled import plan as pn
from archsim.tiled.channel import leave
from archsim.tiled.choice import find_tiling
from archsim.tiled.gaps import NO_GAPS
from archsim.tiled.packing import output_blocks, row_of_word
from archsim.tiled.schedule import schedule
from archsim.tiled.summary import count_cycles
from archsim.tiled.timing import plan_tiling, time_layer
from archsim.tiled.trace import answer
from archsim.tiled.traffic import port_bytes, services_of
from archsim.tiled.walk import walk, walk_layer
from rtl.stepped.core import Stepped
from workloads.builtin import builtin
from workloads.kept_units import KeptUnits
from workloads.layers import Conv2d, MatMul
from workloads.operands import synthetic

SMALL = Plain(capacity_bytes=2048)
RATES = (0.0, 0.3, 0.9, 1.7, 3.0, 8.0, 33.3, 500.0)

memories = st.builds(
    OffChip,
    bytes_per_cycle=st.sampled_from(RATES),
    weight_bytes_per_cycle=st.sampled_from([None, None, 0.7, 6.0]),
    latency_cycles=st.sampled_from([0, 0, 5, 40, 300]),
    burst_bytes=st.sampled_from([1, 3, 16, 64, 1000]),
    shared=st.sampled_from([True, True, True, False]),
)
designs = st.builds(
    Systolic,
    rows=st.integers(1, 6),
    columns=st.integers(1, 6),
    dataflow=st.sampled_from(DATAFLOWS),
    ifmap_memory=st.just(SMALL),
    weight_memory=st.just(SMALL),
    accumulator_memory=st.just(SMALL),
    off_chip=memories,
    gather_units=st.sampled_from([0, 0, 60]),
)


@st.composite
def tilings(draw: Any, design: Systolic, layer: Conv2d | MatMul) -> Tiling:
    """One that fits."""
    problem = design.numerics.problem(layer)
    tiling = Tiling(
        pixel_rows=draw(st.integers(1, problem.out_height)),
        pixel_columns=draw(st.integers(1, problem.out_width)),
        filters=draw(st.integers(1, problem.filters)),
        channels=draw(st.integers(1, problem.channels)),
        order=draw(st.sampled_from(["pixels_outer", "filters_outer"])),
    )
    try:
        return plan_tiling(design, layer, tiling)
    except InputError:
        assume(False)
        raise


products = st.builds(
    MatMul,
    name=st.just("product"),
    m=st.integers(1, 20),
    n=st.integers(1, 20),
    k=st.integers(1, 30),
    bias=st.booleans(),
)
convolutions = st.builds(
    Conv2d,
    name=st.just("convolution"),
    channels=st.sampled_from([2, 6, 12]),
    filters=st.sampled_from([2, 8, 14]),
    ifmap_height=st.integers(3, 7),
    ifmap_width=st.integers(3, 7),
    kernel_height=st.integers(1, 3),
    kernel_width=st.integers(1, 3),
    groups=st.sampled_from([1, 2]),
    batch=st.integers(1, 2),
    bias=st.booleans(),
)
layers = products | convolutions


def tiles_of(design: Systolic, layer: Conv2d | MatMul, tiling: Tiling) -> IntArray:
    return walk(design.numerics.problem(layer).vector(), tiling.vector(), design.machine)


@settings(max_examples=70, deadline=None)
@given(st.data(), designs, layers)
def test_the_scan_is_the_stepped_core(
    data: st.DataObject, design: Systolic, layer: Conv2d | MatMul
) -> None:
    """Every word of every port, and the end, with the channel as a queue of transfers."""
    tiling = data.draw(tilings(design, layer))
    if design.gather_units and isinstance(layer, MatMul):
        units = layer.k + data.draw(st.integers(0, 30))
        order = np.random.default_rng(layer.m).permutation(units)
        layer = replace(layer, kept=KeptUnits.of(units, order[: layer.k].tolist()))
    tiles = tiles_of(design, layer, tiling)
    assume(len(tiles) <= 60)
    found = answer(design, layer, tiling, synthetic(layer, bits=8, seed=1))
    stepped = Stepped(design, tiles)
    assert stepped.run() == found.cycles == time_layer(design, layer, tiling).cycles
    for port, cycles in stepped.crossed.items():
        assert found.transfers[port].cycle.tolist() == cycles, port


@settings(max_examples=60, deadline=None)
@given(st.data(), designs, layers)
def test_a_faster_memory_slows_no_tiling(
    data: st.DataObject, design: Systolic, layer: Conv2d | MatMul
) -> None:
    """Cycles fall, or stay, with more bandwidth, a shorter latency, a channel of its own."""
    tiling = data.draw(tilings(design, layer))
    memory = design.off_chip
    before = None
    for rate in (0.3, 0.7, 1.5, 2.0, 7.7, 64.0, 5000.0, 0.0):
        faster = replace(memory, bytes_per_cycle=rate)
        cycles = time_layer(replace(design, off_chip=faster), layer, tiling).cycles
        assert before is None or cycles <= before, rate
        before = cycles
    now = time_layer(design, layer, tiling).cycles
    for changed in (
        replace(memory, latency_cycles=memory.latency_cycles // 2),
        replace(memory, shared=False),
        replace(memory, bytes_per_cycle=0.0, weight_bytes_per_cycle=None, latency_cycles=0),
    ):
        assert time_layer(replace(design, off_chip=changed), layer, tiling).cycles <= now


@settings(max_examples=60, deadline=None)
@given(designs, layers)
def test_no_channel_is_faster_than_its_rate(design: Systolic, layer: Conv2d | MatMul) -> None:
    try:
        result = time_layer(design, layer)
    except InputError:
        assume(False)
        raise
    memory, moved = design.off_chip, dict(result.bytes_moved)
    if memory.weight_bytes_per_cycle is not None:
        assert result.cycles >= moved.pop("weight") / memory.weight_bytes_per_cycle
    if memory.bytes_per_cycle:
        busiest = sum(moved.values()) if memory.shared else max(moved.values())
        assert result.cycles >= busiest / memory.bytes_per_cycle
    assert sum(result.where.values()) == result.cycles
    assert min(result.where.values()) >= 0


def bounds(design: Systolic, tiles: IntArray) -> tuple[int, float, float]:
    """Cycles with channels infinitely fast; of the busiest one; of the first loads and the last
    outputs, which nothing hides: channel, port, latencies of memory and core, a burst."""
    services = services_of(design.machine)
    free = services.copy()
    free[:, pn.WORD_TICKS] = 0
    ports_free = int(schedule(tiles, design.machine, free, NO_GAPS)[-1, pn.WRITTEN])
    time = services[:, pn.WORD_TICKS] / 65536
    moved = port_bytes(tiles, design.machine)[1:]
    word_bytes = design.machine[mc.IFMAP_WORD_BYTES : mc.OFMAP_WORD_BYTES + 1]
    ways = services[1:, pn.CHANNEL]
    busy = np.bincount(ways, moved // word_bytes * time[1:]).max()
    first, last = tiles[0], tiles[-1]
    words = first[cmd.IFMAP_WORDS : cmd.BIAS_WORDS + 1]
    ends = (words * time[1:4]).sum() + words.max() + last[cmd.OUTPUT_WORDS] * (1 + time[4])
    ends += design.off_chip.latency_cycles + design.result_latency_cycles + 64
    return ports_free, float(busy), float(ends)


def test_networks_are_bound_by_their_ports_or_by_the_channel() -> None:
    """Within 5 % of the larger one where it rules, beside the first loads and the last outputs."""
    judged = 0
    for design in (CLOUD_128, EDGE_16, TPU_V1):
        for name in ("resnet50", "mobilenetv2", "bert-base", "googlenet", "lstm-zaremba-medium"):
            for problem in {design.numerics.problem(one) for one in builtin(name).matrix_layers}:
                tiling = find_tiling(problem, design.machine)
                assert tiling
                tiles = walk(problem.vector(), tiling.vector(), design.machine)
                cycles = int(count_cycles(tiles, design.machine))
                ports_free, busy, ends = bounds(design, tiles)
                lower, upper = sorted((ports_free, busy))
                assert cycles >= upper
                if lower < 0.7 * upper:
                    assert cycles <= 1.05 * upper + ends, (design_name(design), name, problem)
                    judged += 1
    assert judged > 200


def test_a_small_operand_does_not_crawl_beside_an_idle_channel() -> None:
    """A product of one row on `edge-16`: its weights fill channel and array alike."""
    layer = MatMul(name="fc", m=1, n=1000, k=2048)
    result = time_layer(EDGE_16, layer)
    assert result.cycles <= 1.02 * result.bytes_moved["weight"] / 16
    assert result.cycles < 137_486  # with a channel for every port, which its latency delayed


@pytest.mark.parametrize("latency", [0, 100])
def test_latency_passes_once(latency: int) -> None:
    """Words are asked for ahead: twice the tiles do not wait twice as long."""
    memory = OffChip(bytes_per_cycle=16.0, latency_cycles=latency)
    design = replace(EDGE_16, off_chip=memory)
    free = replace(design, off_chip=replace(memory, latency_cycles=0))
    for k in (2048, 8192):
        layer = MatMul(name="fc", m=1, n=1000, k=k)
        tiling = find_tiling(design.numerics.problem(layer), design.machine)
        late = time_layer(design, layer, tiling).cycles - time_layer(free, layer, tiling).cycles
        assert latency <= late <= 2 * latency


def test_no_word_of_an_output_tile_leaves_before_it_has_crossed() -> None:
    """Of rows that complete words in ones and twos: the lead is that of the word that binds most,
    of all words, at rates close to one a cycle."""
    found = set[int]()
    for lanes, filters in product((1, 4), range(2, 13)):
        design = Vsq(lanes=lanes, vector=2 * lanes)
        layer = Conv2d(name="c", channels=2, filters=2 * filters - 1, ifmap_height=4,
                       ifmap_width=5, kernel_height=1, kernel_width=1)  # fmt: skip
        tiling = Tiling(pixel_rows=2, pixel_columns=3, filters=filters, channels=1)
        machine = design.machine
        for row in walk_layer(design.numerics.problem(layer), tiling, machine):
            words = int(row[cmd.OUTPUT_WORDS])
            rows = [int(row_of_word(row, word, machine)) for word in range(words)]
            found |= {int(block[1]) for block in output_blocks(row, machine)}
            for share in range(1, 24, 2):
                ticks = TICK + share * TICK // 24
                behind = [(at - rows[0] << TICK_BITS) - n * ticks for n, at in enumerate(rows)]
                assert leave(row, (rows[0], rows[-1]), ticks, machine) == max(behind)
    assert {1, 2} <= found
