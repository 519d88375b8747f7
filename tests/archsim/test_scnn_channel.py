"""The off-chip channel of the sparse core: the model against a stepped one, its bounds, what may
not slow it, and batches."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice
from typing import Any

import numpy as np
import pytest
from scnn_channel import Passes

from archsim.errors import InputError
from archsim.machines.scnn.accounting import bytes_of
from archsim.machines.scnn.chain import chain_timing
from archsim.machines.scnn.design import SCNN_4PE, SCNN_DNNSIM, SCNN_ISCA17, Scnn
from archsim.machines.scnn.layer import layer_timing, plan_layer
from archsim.machines.scnn.passes import behind_the_channel, served
from archsim.machines.scnn.strips import Strip
from archsim.machines.scnn.timing import Services
from archsim.machines.scnn.words import LayerRun, PassWords, pass_words
from archsim.memory import OffChip
from archsim.plots.roofline import channels
from archsim.simulate import simulate
from rtl.cases import Draw
from rtl.sparse_cases import random_layer, random_operands
from rtl.stepped.sparse_channel import INPUTS, Crossed, OfferedWords
from workloads.layers import Conv2d, MatMul, Network
from workloads.operands import Operands, synthetic

RATES = (0.0, 0.3, 0.9, 1.7, 3.0, 8.0, 33.3, 500.0)
LATENCIES = (0, 0, 5, 40, 300)
MOST_WEIGHTS = 1500
"""Vectors of a case: the stepped core takes a millisecond for each."""


def random_memory(draw: Draw, latencies: tuple[int, ...] = LATENCIES) -> OffChip:
    """Any bandwidth, a channel for weights now and then, or for each port."""
    apart = (None, None, None, 0.7, 6.0)
    return OffChip(
        bytes_per_cycle=RATES[draw.whole(0, len(RATES) - 1)],
        weight_bytes_per_cycle=apart[draw.whole(0, 4)],
        latency_cycles=draw.one_of(*latencies),
        burst_bytes=draw.one_of(1, 3, 16, 64, 1000),
        shared=draw.chance(0.75),
    )


def random_design(draw: Draw) -> Scnn:
    return Scnn(
        grid_rows=draw.whole(1, 2),
        grid_columns=draw.whole(1, 2),
        weight_lanes=draw.whole(1, 3),
        ifmap_lanes=draw.whole(1, 3),
        banks=draw.one_of(1, 2, 4),
        bank_entries=draw.one_of(16, 17, 33),
        weight_fifo_vectors=draw.one_of(2, 5, 13),
        filter_group=draw.whole(1, 5),
        iaram_bytes=draw.one_of(60, 512),
        oaram_bytes=draw.one_of(60, 512),
        index_bits=draw.one_of(1, 2, 4),
        operand_bits=draw.one_of(4, 16),
        accumulator_bits=draw.one_of(12, 24),
        bank_queue=draw.whole(1, 5),
    )


def random_cases(seed: int, latencies: tuple[int, ...] = LATENCIES) -> Iterator[Any]:
    """(draw, design, layer, operands), without end; layers that do not fit are left out."""
    for number in count():
        draw = Draw(seed, number)
        design = replace(random_design(draw), off_chip=random_memory(draw, latencies))
        layer = random_layer(draw, design)
        operands = random_operands(draw, design, layer)
        try:
            plan_layer(design, layer, operands)
        except InputError:
            continue
        yield draw, design, layer, operands


def stepped_cases() -> Iterator[tuple[Scnn, list[PassWords]]]:
    """Those that take the stepped core less than a second or two."""
    for _, design, layer, operands in random_cases(3):
        passes = pass_words(design, [LayerRun(layer=layer, operands=operands)])
        words = sum(len(one.words["weight"]) for one in passes)
        if len(passes) <= 12 and words <= MOST_WEIGHTS:
            yield design, passes


def strips_of(design: Scnn, layer: Any, operands: Operands) -> list[Strip]:
    return [strip for some in plan_layer(design, layer, operands).passes for strip in some]


def test_the_model_is_the_stepped_core() -> None:
    """Every word of every port of every pass, and the end, in both programs."""
    several = 0
    for number, (design, passes) in enumerate(islice(stepped_cases(), 90)):
        several += len(passes) > 1
        for spread in (False, True):
            found = served(design, [one.strip for one in passes], spread=spread)
            oracle = Passes(design, passes, spread=spread)
            figures = oracle.run()
            where = number, spread, design.off_chip
            for timing, known, own in zip(found.passes, figures, oracle.oracles, strict=True):
                for name in ("ifmap_cycles", "weight_cycles", "ofmap_cycles", "drained"):
                    assert np.array_equal(getattr(timing, name), known[name]), (where, name)
                assert timing.bias_cycles.tolist() == own.bias_cycles, where
                for port in ("ifmap", "weight", "bias"):
                    begin = oracle.begins[own.number]
                    offers = np.array(oracle.offers[port, own.number], np.int64) - begin
                    assert np.array_equal(timing.offered[port], offers), (where, port)
            assert found.cycles == oracle.written, where
    assert several > 30


def test_a_queue_of_transfers_offers_what_the_model_offers() -> None:
    """The one that `verify` compares with, which is given when words cross."""
    for design, passes in islice(stepped_cases(), 60):
        for spread in (False, True):
            found = served(design, [one.strip for one in passes], spread=spread)
            crossed = [
                Crossed(cycles=one.cycles, ports={
                    "ifmap": one.ifmap_cycles, "weight": one.weight_cycles,
                    "bias": one.bias_cycles, "ofmap": one.ofmap_cycles})
                for one in found.passes
            ]  # fmt: skip
            queue, begin = OfferedWords(design, passes, crossed, spread=spread), 0
            for number, one in enumerate(found.passes):
                for port in INPUTS:
                    assert queue.offers[port, number] == (begin + one.offered[port]).tolist()
                begin += one.cycles
            assert queue.written == found.cycles


def test_a_memory_without_limits_keeps_nothing_waiting() -> None:
    """The channel's own sums with a rate of 0, and no channel at all: ports free, to the cycle."""
    for draw, design, layer, operands in islice(random_cases(4), 60):
        unlimited = replace(design, off_chip=OffChip(burst_bytes=draw.one_of(1, 64)))
        free = layer_timing(unlimited, layer, operands, Services())
        assert behind_the_channel(unlimited, []) is None
        assert layer_timing(unlimited, layer, operands).cycles == free.cycles
        for spread in (False, True):
            found = served(unlimited, strips_of(unlimited, layer, operands), spread=spread)
            assert found.cycles == free.cycles
            for one, other in zip(found.passes, free.passes, strict=True):
                assert np.array_equal(one.weight_cycles, other.weight_cycles)
                assert np.array_equal(one.bias_cycles, other.bias_cycles)


def test_a_faster_memory_slows_no_layer() -> None:
    """Cycles fall, or stay, with more bandwidth, a shorter latency, a channel of its own."""
    for _, design, layer, operands in islice(random_cases(5), 40):
        memory, before = design.off_chip, None
        for rate in (0.3, 0.7, 1.5, 2.0, 7.7, 64.0, 5000.0, 0.0):
            faster = replace(memory, bytes_per_cycle=rate)
            cycles = layer_timing(replace(design, off_chip=faster), layer, operands).cycles
            assert before is None or cycles <= before, (rate, layer)
            before = cycles
        now = layer_timing(design, layer, operands).cycles
        for changed in (
            replace(memory, latency_cycles=memory.latency_cycles // 2),
            replace(memory, shared=False),
            OffChip(),
        ):
            cycles = layer_timing(replace(design, off_chip=changed), layer, operands).cycles
            assert cycles <= now, (changed, layer)


def _layers() -> list[Conv2d | MatMul]:
    """Memory-bound and compute-bound ones, cut into strips or not."""
    conv: dict[str, Any] = {
        "kernel_height": 3, "kernel_width": 3, "pad_top": 1, "pad_left": 1, "pad_bottom": 1,
        "pad_right": 1, "bias": True,
    }  # fmt: skip
    return [
        Conv2d(name="deep", channels=32, filters=24, ifmap_height=20, ifmap_width=20, **conv),
        Conv2d(name="wide", channels=3, filters=16, ifmap_height=24, ifmap_width=28, **conv),
        Conv2d(name="images", channels=16, filters=16, ifmap_height=14, ifmap_width=14, batch=3,
               **conv),
        MatMul(name="fc", m=1, n=300, k=1024, bias=True),
        MatMul(name="rows", m=5, n=100, k=512, bias=True),
    ]  # fmt: skip


@pytest.mark.parametrize("layer", _layers(), ids=lambda layer: layer.name)
def test_layers_are_bound_by_their_ports_or_by_the_channel(layer: Conv2d | MatMul) -> None:
    """Within 5 % of the larger one where the other is at most half of it, beside the first ifmap
    and the last ofmap, which nothing hides."""
    design = replace(SCNN_ISCA17, grid_rows=2, grid_columns=2, iaram_bytes=2000, oaram_bytes=4000)
    operands = synthetic(layer, bits=8, density=0.4, seed=1)
    free = layer_timing(design, layer, operands)
    moved = sum(bytes_of(free).values())
    for share in (0.1, 0.3, 0.5, 1.0, 2.0, 4.0, 20.0):
        rate = round(1024 * moved / free.cycles / share) / 1024
        memory = OffChip(bytes_per_cycle=rate, latency_cycles=50)
        timing = layer_timing(replace(design, off_chip=memory), layer, operands)
        busy = moved / rate
        assert timing.cycles >= max(free.cycles, busy - 1)
        if share <= 0.5 or share >= 2:
            ends = timing.passes[0].ifmap_bits + timing.passes[-1].ofmap_bits
            larger = max(busy, free.cycles)
            assert timing.cycles <= 1.05 * larger + ends / 8 / rate + 50 + 64, share


def test_what_simulate_says_of_a_layer_that_waits() -> None:
    """A fully connected layer at 2 B a cycle: bytes over bandwidth, and where they went."""
    layer = MatMul(name="fc", m=1, n=300, k=1024, bias=True)
    operands = synthetic(layer, bits=8, density=0.4, seed=1)
    network = Network(name="n", source="a test", layers=(layer,))
    design = replace(SCNN_ISCA17, off_chip=OffChip(bytes_per_cycle=2.0, latency_cycles=100))
    (result,) = simulate(design, network, operands={"fc": operands}).layers
    (free,) = simulate(SCNN_ISCA17, network, operands={"fc": operands}).layers
    assert result.bytes_moved == free.bytes_moved
    assert sum(result.bytes_moved.values()) / 2 <= result.cycles
    assert result.cycles <= 1.02 * sum(result.bytes_moved.values()) / 2 + 200
    assert result.where == {**free.where, "memory": result.cycles - free.cycles}
    assert sum(result.where.values()) == result.cycles > 4 * free.cycles
    assert np.array_equal(result.ofmap, free.ofmap)  # pyright: ignore[reportArgumentType]
    (way,) = channels(design)
    assert result.cycles >= way.cycles(result.bytes_moved)


def test_an_ofmap_that_stays_does_not_pass_the_channel() -> None:
    layers = tuple(
        Conv2d(
            name=name, channels=8, filters=8, ifmap_height=8, ifmap_width=8, kernel_height=1,
            kernel_width=1,
        )
        for name in ("one", "two")
    )  # fmt: skip
    design = replace(SCNN_ISCA17, off_chip=OffChip(bytes_per_cycle=1.0))
    first = synthetic(layers[0], bits=8, density=0.9, seed=1)
    ofmap = layer_timing(design, layers[0], first).ofmap.astype(np.int16)
    operands = [first, replace(first, ifmap=ofmap)]
    alone = [layer_timing(design, *pair) for pair in zip(layers, operands, strict=True)]
    chained = chain_timing(design, layers, operands)
    spared = alone[0].ofmap_bits + alone[1].ifmap_bits
    saved = sum(one.cycles for one in alone) - sum(one.cycles for one in chained)
    assert spared / 8 <= saved + 2 and not chained[0].ofmap_bits


def image(layer: Conv2d | MatMul, operands: Operands, number: int) -> Operands:
    """Those of an image, or of a row of a fully connected layer."""
    some = slice(number, number + 1)
    rows = operands.ifmap[:, some] if isinstance(layer, MatMul) else operands.ifmap[some]
    return replace(operands, ifmap=rows)


def test_no_image_costs_more_than_alone() -> None:
    """Whatever the latency; layers tiny, depthwise and fully connected, 2 to 9 images."""
    faster = 0
    for draw, design, drawn, _ in islice(random_cases(6, (0, 7, 100, 500, 3000)), 100):
        images = draw.whole(2, 9)
        if isinstance(drawn, MatMul):
            one = replace(drawn, m=1, batch=1, shared_weight=True)
            together = replace(one, m=images)
        else:
            groups = draw.whole(2, 6) if draw.chance(0.3) else 0
            one = replace(drawn, batch=1)
            one = replace(one, channels=groups, filters=groups, groups=groups) if groups else one
            together = replace(one, batch=images)
        operands = random_operands(draw, design, together)
        try:
            cycles = layer_timing(design, together, operands).cycles
        except InputError:
            continue
        alone = sum(
            layer_timing(design, one, image(one, operands, number)).cycles
            for number in range(images)
        )
        assert cycles <= alone, (design.off_chip, together)
        faster += cycles < alone
    assert faster > 20


def test_the_published_bandwidth_is_more_than_the_ports_carry() -> None:
    """Shipped cores have no limit: with the paper's 50 GB/s they take no thousandth longer."""
    layer = Conv2d(
        name="c", channels=64, filters=32, ifmap_height=28, ifmap_width=28, kernel_height=3,
        kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, bias=True,
    )  # fmt: skip
    operands = synthetic(layer, bits=8, density=0.4, seed=1)
    assert SCNN_ISCA17.off_chip == SCNN_4PE.off_chip == SCNN_DNNSIM.off_chip == OffChip()
    ports = ("ifmap", "weight", "bias")
    assert sum(SCNN_ISCA17.word_bits(port) for port in ports) / 8 < 25
    for design in (SCNN_ISCA17, SCNN_4PE):
        free = layer_timing(design, layer, operands).cycles
        limited = replace(design, off_chip=OffChip(bytes_per_cycle=50.0))
        assert free < layer_timing(limited, layer, operands).cycles <= 1.001 * free + 4
