"""Other ways to the figures of a layer on a sparse core: all have to say what its passes say."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from archsim.layer.problem import problem_of
from archsim.machines.scnn.accounting import bytes_of, pe_cycles, where_of
from archsim.machines.scnn.answer import sparse_answer
from archsim.machines.scnn.chain import chain_timing
from archsim.machines.scnn.command import scnn_ports
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.layer import (
    layer_tensors,
    layer_timing,
    plan_layer,
    planned_timing,
)
from archsim.machines.scnn.lists import longest_list
from archsim.machines.scnn.mapping import largest_group
from archsim.machines.scnn.passes import served
from archsim.machines.scnn.strips import Strip, strips_of
from archsim.machines.scnn.timed_layer import ScnnTiming
from archsim.machines.scnn.timing import PassTiming, Services, pass_timing
from archsim.machines.scnn.words import LayerRun, PassWords, pass_words
from archsim.numbers import IntArray
from archsim.timing import Service
from rtl.apart import Pair, first_apart
from rtl.draw import Draw
from rtl.slow_memory import slow_off_chip
from rtl.stepped.sparse_channel import INPUTS, Crossed, OfferedWords
from workloads.layers import Conv2d, MatMul


def figures_apart(design: Scnn, runs: Sequence[LayerRun]) -> Mapping[str, Pair]:
    """Figures that two ways of the model give, by name, where they are not the same.

    Of the last layer, or of all where each ofmap stays but the last, on the design with an off-chip
    memory that is slow: pass by pass with all words, and as layers with neither; words as they are
    offered, and as a queue of transfers offers them; words that cross as they are offered, and as a
    port that is idle so long lets them; behind a latency, and behind as many idle cycles; outputs
    of strips, and those that there are; the parts of the cycles, and their sum; words, and bytes.
    Strips are the fewest, and groups of filters the largest, that fit, where none were chosen.
    """
    last = runs[-1]
    chained = len(runs) > 1 and all(run.keep_ofmap for run in runs[:-1])
    chained &= not any(isinstance(run.layer, MatMul) for run in runs)  # layers alone may fold these
    some = tuple(runs) if chained else (last,)
    slow = replace(design, off_chip=slow_off_chip(Draw(last.layer.macs, len(runs))))
    apart: dict[str, Pair] = {}
    for name, two in _pairs(slow, some):
        if two[0] != two[1]:
            apart.setdefault(name, two)
    return apart


def _pairs(design: Scnn, runs: tuple[LayerRun, ...]) -> Iterator[tuple[str, Pair]]:
    passes = pass_words(design, runs)
    words = sparse_answer(design, passes)
    layers = _timed(design, runs)
    yield "cycles by passes and layers", (words.cycles, sum(one.cycles for one in layers))
    for name, count in words.actions.items():
        yield f"{name} by passes and layers", (count, sum(one.actions[name] for one in layers))
    for number, layer in enumerate(layers):
        own = [one for one in passes if one.number == number]
        yield from _in_parts(design, own, layer)
        outputs = sum(
            len(one.strip.rows) * len(one.strip.columns) * one.strip.mapping.filters for one in own
        )
        yield "outputs of passes and of the layer", (outputs, _outputs(design, runs[number]))
        programs = [_by_a_queue(design, own, spread=one) for one in (False, True)[: len(own)]]
        for found in programs:
            yield from found.items()
        ends = [found["end by passes and a queue"][1] for found in programs]
        yield "cycles by layers and the better program", (layer.cycles, min(ends))
    yield from _late_ports(design, passes[0], latency=int(words.cycles) % 50)
    for one in passes:
        if not runs[one.number].choice:
            yield "filters in a group", _largest_group(design, one.strip)
    if len(runs) == 1 and isinstance(runs[0].layer, Conv2d) and not runs[0].choice:
        yield "strips, and the fewest that fit", _strips(design, runs[0])


def _outputs(design: Scnn, run: LayerRun) -> int:
    return layer_tensors(design, run.layer, run.operands, run.pool)[2].size


def _late_ports(design: Scnn, one: PassWords, *, latency: int) -> Iterator[tuple[str, Pair]]:
    """A pass whose ports have a latency, and one whose ports are idle before their first words."""
    strip, late, idle = one.strip, dict[str, Service](), dict[str, Service]()
    for port in INPUTS:
        gaps = np.zeros(max(1, len(one.words[port])), np.int64)
        gaps[0] = 1 + latency
        late[port], idle[port] = Service(latency_cycles=latency), Service(gaps=gaps)
    by_latency, by_gaps = (
        _ports_of(pass_timing(design, strip.mapping, strip.operands, Services(**services)))
        for services in (late, idle)
    )
    for port, cycles in by_latency.items():
        yield f"{port} by latency and idle cycles", first_apart(cycles, by_gaps[port])


def _in_parts(
    design: Scnn, passes: Sequence[PassWords], layer: ScnnTiming
) -> Iterator[tuple[str, Pair]]:
    """What is a sum of others, and what is counted as words."""
    yield "cycles and their causes", (layer.cycles, sum(where_of(layer).values()))
    busy = np.sum(list(pe_cycles(layer).values()), axis=0)
    yield (
        "cycles of PEs and their parts",
        first_apart(busy, np.full_like(busy, layer.compute_cycles)),
    )
    for one in layer.free or layer.passes:
        pes, most = one.pes, one.compute_cycles
        parts = pes.busy + pes.wait + pes.skip + pes.barrier + pes.drain
        yield "a PE's cycles and what it does", first_apart(parts, np.full_like(parts, most))
    bits, moved = {port.name: port.bits for port in scnn_ports(design)}, bytes_of(layer)
    for port, count in moved.items():
        words = sum(len(one.words[port]) for one in passes)
        yield f"{port} bytes and words", (count, -(-words * bits[port] // 8))


def _by_a_queue(design: Scnn, passes: Sequence[PassWords], *, spread: bool) -> dict[str, Pair]:
    """A layer in a program, and its transfers one by one (`rtl.stepped.sparse_channel`); and its
    ports, if they are idle until words are offered."""
    found = served(design, [one.strip for one in passes], spread=spread)
    crossed = [Crossed(cycles=one.cycles, ports=_ports_of(one)) for one in found.passes]
    queue = OfferedWords(design, passes, crossed, spread=spread)
    apart = {"end by passes and a queue": (found.cycles, queue.written)}
    begins = accumulate((one.cycles for one in found.passes), initial=0)
    for number, (begin, one, words) in enumerate(zip(begins, found.passes, passes, strict=False)):
        for port in INPUTS:
            offers = np.array(queue.offers[port, number], np.int64) - begin
            apart[f"{port} {number} offered by passes and a queue"] = first_apart(
                one.offered[port], offers
            )
        idle = {port: _idle(one.offered[port], _ports_of(one)[port]) for port in INPUTS}
        free = pass_timing(design, words.strip.mapping, words.strip.operands, Services(**idle))
        for port, cycles in _ports_of(free).items():
            apart[f"{port} {number} by a channel and idle ports"] = first_apart(
                _ports_of(one)[port], cycles
            )
    return apart


def _ports_of(one: PassTiming) -> dict[str, IntArray]:
    return {
        "ifmap": one.ifmap_cycles, "weight": one.weight_cycles, "bias": one.bias_cycles,
        "ofmap": one.ofmap_cycles,
    }  # fmt: skip


def _idle(offered: IntArray, crossed: IntArray) -> Service:
    """A port that offers each word no earlier than it was offered."""
    before = np.concatenate([np.full(1, -1, np.int64), crossed])[: len(offered)]
    return Service(gaps=np.maximum(offered - before - 1, 0))


def _largest_group(design: Scnn, strip: Strip) -> Pair:
    """How many filters are in a group, and how many could be by the lists that these make."""
    size = strip.mapping.group_size
    if design.group_rule != "accumulators":
        return size, size
    for more in range(largest_group(design, strip.mapping), 0, -1):
        mapping = replace(strip.mapping, group_size=more)
        if longest_list(design, mapping, strip.operands.weight) <= design.weight_fifo_vectors:
            return size, more
    return size, 0


def _strips(design: Scnn, run: LayerRun) -> Pair:
    """Of the first image and conv group: how many there are, and the fewest that fit."""
    ifmap, weight, ofmap = layer_tensors(design, run.layer, run.operands, run.pool)
    first, problem = (ifmap[0, 0], weight[0], ofmap[0, 0]), problem_of(run.layer)
    found = (strips_of(design, problem, first, run.pool, from_one=one) for one in (False, True))
    fewer, fewest = map(len, found)
    return fewer, fewest


def _timed(design: Scnn, runs: tuple[LayerRun, ...]) -> tuple[ScnnTiming, ...]:
    if len(runs) == 1:
        (run,) = runs
        if run.choice:
            plan = plan_layer(design, run.layer, run.operands, choice=run.choice)
            return (planned_timing(design, plan),)
        return (layer_timing(design, run.layer, run.operands, pool=run.pool),)
    layers, operands = [run.layer for run in runs], [run.operands for run in runs]
    return chain_timing(design, layers, operands, pools=[run.pool for run in runs])


__all__ = ["figures_apart"]
