"""What crosses every port of a sparse core, and when: the model's answer in full.

Passes follow one another, each from its command to its last ofmap vector, or, where the ofmap
stays, to the cycle in which that is written.  The twin, for cores
that are walked by tiles, is `archsim.trace`.

passes = pass_words(SCNN_ISCA17, [LayerRun(layer=layer, operands=operands)])
found = sparse_answer(SCNN_ISCA17, passes)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from archsim.designs.scnn import Scnn
from archsim.errors import require
from archsim.numbers import IntArray
from archsim.ports import Transfers
from archsim.sparse.layer import counted
from archsim.sparse.timing import PassTiming, Services, pass_timing
from archsim.sparse.words import PORTS, PassWords
from archsim.timing import Service

DATA_PORTS = PORTS[1:]


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseAnswer:
    """The model's answer for passes that follow one another (`archsim.ports.PortAnswer`).

    timings: of each pass, in its own cycles.  begins [passes]: in which its command crosses.
    gaps: by port, idle cycles of the memory side between a word and the one before, [words]; those
    of a pass's first data words count from the command, so they are in `earliest`.
    """

    timings: tuple[PassTiming, ...]
    begins: IntArray
    transfers: Mapping[str, Transfers]
    earliest: Mapping[str, IntArray]
    gaps: Mapping[str, IntArray]
    actions: Mapping[str, int]

    @property
    def cycles(self) -> int:
        """From cycle 0 to the last ofmap vector, both included."""
        return int(self.transfers["ofmap"].cycle[-1]) + 1


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
    command; one without is offered as soon as the word before has crossed.
    ready_cycle: the first in which the core takes a command (after a reset, behind
    `bank_entries` cycles); later ones are taken behind the last ofmap vector of the pass before, or
    behind its last write where the ofmap stays.
    Raises `InputError` for gaps of another number than there are words.
    """
    waits = _by_pass(passes, gaps or {})
    placed: list[_Placed] = []
    free, command_free = ready_cycle, 0
    for one, own in zip(passes, waits, strict=True):
        begin = max(free, command_free + int(own["command"][0]))
        placed.append(_place(design, one, own, begin))
        free, command_free = begin + placed[-1].timing.cycles, begin + 1
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
    )


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


def _place(design: Scnn, one: PassWords, waits: Mapping[str, IntArray], begin: int) -> _Placed:
    """A pass whose command crosses in cycle `begin`."""
    served = {port: Service(gaps=waits[port]) for port in DATA_PORTS}
    timing = pass_timing(design, one.strip.mapping, one.strip.operands, Services(**served))
    own = {
        "command": np.zeros(1, np.int64),
        "ifmap": timing.ifmap_cycles,
        "weight": timing.weight_cycles,
        "bias": timing.bias_cycles,
        "ofmap": timing.ofmap_cycles,
    }
    earliest = {port: np.zeros(len(waits[port]), np.int64) for port in PORTS}
    between = {port: waits[port].copy() for port in PORTS}
    for port in DATA_PORTS:
        if waits[port][:1].any():
            earliest[port][0] = begin + waits[port][0]
        between[port][:1] = 0
    return _Placed(
        begin=begin,
        timing=timing,
        cycles={port: begin + own[port] for port in PORTS},
        earliest=earliest,
        gaps=between,
    )


__all__ = ["SparseAnswer", "sparse_answer"]
