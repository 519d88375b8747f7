"""What crosses every port of a sparse core, and when: the model's answer in full.

Passes follow one another, each from its command to its last ofmap vector, or, where the ofmap
stays, to the cycle in which that is written; layers, each until its ofmap has left the off-chip
channel, where there is one.  The twin, for cores
that are walked by tiles, is `archsim.tiled.trace`.

passes = pass_words(SCNN_ISCA17, [LayerRun(layer=layer, operands=operands)])
found = sparse_answer(SCNN_ISCA17, passes)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from archsim.errors import require
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.passes import behind_the_channel
from archsim.machines.scnn.served import waits
from archsim.machines.scnn.timed_layer import counted
from archsim.machines.scnn.timing import PassTiming, Services, pass_timing
from archsim.machines.scnn.words import PORTS, PassWords
from archsim.numbers import IntArray
from archsim.ports import Transfers
from archsim.timing import Service

DATA_PORTS = PORTS[1:]


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseAnswer:
    """The model's answer for passes that follow one another (`archsim.ports.PortAnswer`).

    timings: of each pass, in its own cycles.  begins [passes]: in which its command crosses.
    gaps: by port, idle cycles of the memory side between a word and the one before, [words]; those
    of a pass's first data words count from the command, so they are in `earliest`, as are the
    cycles in which a channel offers words.
    cycles: from cycle 0 until the last ofmap vector has crossed, and left the channel.
    """

    timings: tuple[PassTiming, ...]
    begins: IntArray
    transfers: Mapping[str, Transfers]
    earliest: Mapping[str, IntArray]
    gaps: Mapping[str, IntArray]
    actions: Mapping[str, int]
    cycles: int


@dataclass(frozen=True, kw_only=True, eq=False)
class _Placed:
    """A pass in its cycles: of every port, [words]."""

    begin: int
    timing: PassTiming
    cycles: Mapping[str, IntArray]
    earliest: Mapping[str, IntArray]
    gaps: Mapping[str, IntArray]


def sparse_answer(
    design: Scnn,
    passes: Sequence[PassWords],
    gaps: Mapping[str, IntArray] | None = None,
    *,
    ready_cycle: int = 0,
) -> SparseAnswer:
    """The exact answer for passes that follow one another, at least one (`pass_words`).

    gaps: by port, idle cycles of the memory side before each word of all passes, [words]; ports
    left out never wait.  A pass's first word with idle cycles is there so many cycles after the
    command; one without is offered as soon as the word before has crossed.  None: words are
    offered, and taken, by the design's own off-chip memory, for each layer anew.
    ready_cycle: the first in which the core takes a command (after a reset, behind
    `bank_entries` cycles); later ones are taken behind the last ofmap vector of the pass before, or
    behind its last write where the ofmap stays.
    Raises `InputError` for gaps of another number than there are words.
    """
    if gaps is None and waits(design.off_chip):
        return _answer(design, passes, *_by_the_channel(design, passes, ready_cycle))
    idle = _by_pass(passes, gaps or {})
    placed: list[_Placed] = []
    free, command_free = ready_cycle, 0
    for one, own in zip(passes, idle, strict=True):
        begin = max(free, command_free + int(own["command"][0]))
        placed.append(_place(design, one, own, begin))
        free, command_free = begin + placed[-1].timing.cycles, begin + 1
    return _answer(design, passes, placed, free)


def _answer(
    design: Scnn, passes: Sequence[PassWords], placed: Sequence[_Placed], cycles: int
) -> SparseAnswer:
    return SparseAnswer(
        timings=tuple(one.timing for one in placed),
        begins=np.array([one.begin for one in placed], np.int64),
        transfers={
            port: Transfers(
                cycle=np.concatenate([one.cycles[port] for one in placed]),
                payload=np.concatenate([one.words[port] for one in passes]),
            )
            for port in PORTS
        },
        earliest={port: np.concatenate([one.earliest[port] for one in placed]) for port in PORTS},
        gaps={port: np.concatenate([one.gaps[port] for one in placed]) for port in PORTS},
        actions=counted(design, [one.timing for one in placed]),
        cycles=cycles,
    )


def _by_the_channel(
    design: Scnn, passes: Sequence[PassWords], ready_cycle: int
) -> tuple[list[_Placed], int]:
    """The passes in their cycles, and when the last layer's ofmap has left the channel."""
    placed: list[_Placed] = []
    begin = ready_cycle
    for _, some in groupby(passes, key=lambda one: one.number):
        layer = tuple(some)
        found = behind_the_channel(design, [one.strip for one in layer])
        assert found is not None, "the memory keeps a port waiting"
        held = begin  # until the layer before has left the channel
        for one, timing in zip(layer, found.passes, strict=True):
            still = {port: np.zeros(len(one.words[port]), np.int64) for port in PORTS}
            offered = {port: begin + cycles for port, cycles in timing.offered.items()}
            offered["command"] = np.full(1, held, np.int64)
            placed.append(_in_its_cycles(timing, begin, still | offered, still))
            begin += timing.cycles
        begin += found.behind_cycles
    return placed, begin


def _by_pass(
    passes: Sequence[PassWords], gaps: Mapping[str, IntArray]
) -> list[dict[str, IntArray]]:
    """Idle cycles before the words of each pass, by port."""
    split: dict[str, list[IntArray]] = {}
    for port in PORTS:
        ends = np.cumsum([len(one.words[port]) for one in passes])
        given = gaps.get(port, np.zeros(int(ends[-1]), np.int64))
        require(
            len(given) == int(ends[-1]),
            f"gaps of {port} must be {int(ends[-1])}, one for each word, not {len(given)}",
        )
        split[port] = np.split(given, ends[:-1])
    return [{port: split[port][number] for port in PORTS} for number in range(len(passes))]


def _place(design: Scnn, one: PassWords, idle: Mapping[str, IntArray], begin: int) -> _Placed:
    """A pass whose command crosses in cycle `begin`."""
    served = {port: Service(gaps=idle[port]) for port in DATA_PORTS}
    timing = pass_timing(design, one.strip.mapping, one.strip.operands, Services(**served))
    earliest = {port: np.zeros(len(idle[port]), np.int64) for port in PORTS}
    between = {port: idle[port].copy() for port in PORTS}
    for port in DATA_PORTS:
        if idle[port][:1].any():
            earliest[port][0] = begin + idle[port][0]
        between[port][:1] = 0
    return _in_its_cycles(timing, begin, earliest, between)


def _in_its_cycles(
    timing: PassTiming, begin: int, earliest: Mapping[str, IntArray], gaps: Mapping[str, IntArray]
) -> _Placed:
    own = {
        "command": np.zeros(1, np.int64),
        "ifmap": timing.ifmap_cycles,
        "weight": timing.weight_cycles,
        "bias": timing.bias_cycles,
        "ofmap": timing.ofmap_cycles,
    }
    cycles = {port: begin + own[port] for port in PORTS}
    return _Placed(begin=begin, timing=timing, cycles=cycles, earliest=earliest, gaps=gaps)


__all__ = ["SparseAnswer", "sparse_answer"]
