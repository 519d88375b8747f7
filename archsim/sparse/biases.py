"""When bias words cross into a sparse core, after a pass has been timed (docs/contracts/scnn.md).

The queue holds 2 · `filter_group` words, so that those of two groups are there.  Word n is given
back when the list of filter n is ended: DS(g) + HALO(g) + COPY(g) + (k + 1) · the cycles of a list
(`Mapping.list_cycles`) for the k-th filter of group g.
"""

from __future__ import annotations

import numpy as np

from archsim.designs.scnn import Scnn
from archsim.errors import InputError
from archsim.numbers import IntArray
from archsim.sparse.timing import PassTiming

TAKEN_CYCLES = 2
"""From the crossing of a group's last word to the first cycle in which its drain may start."""


def bias_crossings(design: Scnn, timing: PassTiming, gaps: IntArray) -> IntArray:
    """The cycle in which each bias word crosses, counted from the pass's command: [filters].

    gaps [filters], or [0] where the layer has no biases: idle cycles of the port before each word.
    Word n crosses at

        max(1, crossing before + 1 + gaps[n], word n − 2 · filter_group given back)

    A pass is timed without its biases (`pass_timing`), as they are early enough unless a port of
    many gaps or a group of next to no work makes a drain wait for them.  Raises `InputError` then.
    """
    depth = 2 * design.filter_group
    given_back, groups = _given_back(timing)
    cycles = np.zeros(len(gaps), np.int64)
    before = -1
    for n, gap in enumerate(gaps.tolist()):
        room = int(given_back[n - depth]) if n >= depth else 0
        before = max(1, before + 1 + gap, room)
        cycles[n] = before
    late = np.flatnonzero(cycles + TAKEN_CYCLES > timing.drain_starts[groups[: len(cycles)]])
    if len(late):
        n = int(late[0])
        raise InputError(
            f"the bias of filter {n} crosses in cycle {cycles[n]}, so late that the drain of its "
            f"group, from cycle {timing.drain_starts[groups[n]]}, would wait for it, which the "
            f"model does not time; the port must offer it {TAKEN_CYCLES} cycles before"
        )
    return cycles


def _given_back(timing: PassTiming) -> tuple[IntArray, IntArray]:
    """Of every filter: the cycle in which its word's place is free, and its group."""
    mapping = timing.mapping
    groups, number = np.divmod(np.arange(mapping.filters), mapping.group_size)
    moves = np.array([mapping.move_cycles(group) for group in range(mapping.groups)], np.int64)
    each = mapping.list_cycles
    return timing.drain_starts[groups] + moves[groups] + (number + 1) * each, groups
