"""What every unit of a sparse core did in a layer, and when: the intervals of a run over time.

Units, and what they do (`docs/contracts/scnn.md` has the cycles):

layers         one interval a layer, named after it
ifmap loader   load: a pass's lists go to the PEs
weight loader  load: the vectors of a group of filters are broadcast, from the first to the last
groups         group n: from S to B, when the last PE has ended
PE r c         compute n: from S of group n to the PE's own end; barrier: until the next group
               begins (after the last, until B)
output stage   halo: sums go to neighbours; drain: sums are read, and the ofmap is compressed
ofmap port     leave: the ofmap's vectors cross

How many of a PE's cycles it computed, waited for weights or for banks is known for a pass, not for
each group: see `archsim.machines.scnn.accounting.where_of`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from archsim.machine.interval import LAYERS, LOADERS, OFMAP_PORT, OUTPUT_STAGE, Interval, Track
from archsim.machines.scnn.answer import SparseAnswer, sparse_answer
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.timing import PassTiming
from archsim.machines.scnn.words import LayerRun, PassWords, pass_words

GROUPS = "groups"
IFMAP, WEIGHT = LOADERS[:2]


def pe_unit(row: int, column: int) -> str:
    """The track of a PE."""
    return f"PE {row} {column}"


def sparse_tracks(design: Scnn) -> tuple[Track, ...]:
    """All units, in the order in which they are shown; single PEs are drawn, and not counted."""
    pes = [
        pe_unit(row, column)
        for row in range(design.grid_rows)
        for column in range(design.grid_columns)
    ]
    return (
        Track(unit=LAYERS),
        *(Track(unit=unit, does=("load",)) for unit in (IFMAP, WEIGHT)),
        Track(unit=GROUPS, does=("group",)),
        *(Track(unit=pe) for pe in pes),
        Track(unit=OUTPUT_STAGE, does=("halo", "drain")),
        Track(unit=OFMAP_PORT, does=("leave",)),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseActivity:
    """The run of one layer; iterating gives its intervals, those of each unit in order of time."""

    design: Scnn
    run: LayerRun
    start_cycle: int
    passes: list[PassWords]
    answer: SparseAnswer

    @property
    def cycles(self) -> int:
        """From the layer's first command to its last ofmap vector."""
        return self.answer.cycles

    def __iter__(self) -> Iterator[Interval]:
        yield self._interval(LAYERS, self.run.layer.name, (0, self.cycles))
        begins = self.answer.begins.tolist()
        for begin, one, timing in zip(begins, self.passes, self.answer.timings, strict=True):
            yield from self._loads(begin, one, timing)
            yield from self._groups(begin, timing)
            yield from self._drains(begin, timing)

    def _interval(self, unit: str, what: str, cycles: tuple[int, int], bits: int = 0) -> Interval:
        return Interval(
            unit=unit,
            what=what,
            layer=self.run.layer.name,
            start_cycle=self.start_cycle + cycles[0],
            end_cycle=self.start_cycle + cycles[1],
            bytes_moved=-(-bits // 8),
        )

    def _loads(self, begin: int, one: PassWords, timing: PassTiming) -> Iterator[Interval]:
        loaded = begin + timing.ifmap_cycles
        yield self._interval(
            IFMAP, "load", (int(loaded[0]), int(loaded[-1]) + 1), timing.ifmap_bits
        )
        each = self.design.word_bits("weight")
        ends = np.cumsum([0, *one.weight_vectors]).tolist()
        for first, end in pairwise(ends):
            crossed = begin + timing.weight_cycles[[first, end - 1]]
            span = int(crossed[0]), int(crossed[1]) + 1
            yield self._interval(WEIGHT, "load", span, (end - first) * each)

    def _groups(self, begin: int, timing: PassTiming) -> Iterator[Interval]:
        starts, ends = (begin + timing.starts).tolist(), (begin + timing.ends).tolist()
        nexts = [*starts[1:], ends[-1]]
        for group, (start, end, following) in enumerate(zip(starts, ends, nexts, strict=True)):
            yield self._interval(GROUPS, f"group {group}", (start, end))
            for pe, own in enumerate((begin + timing.pe_ends[group]).tolist()):
                unit = pe_unit(*timing.mapping.place(pe))
                yield self._interval(unit, f"compute {group}", (start, own))
                if following > own:
                    yield self._interval(unit, "barrier", (own, following))

    def _drains(self, begin: int, timing: PassTiming) -> Iterator[Interval]:
        starts, ends = (begin + timing.drain_starts).tolist(), (begin + timing.drained).tolist()
        for group, (start, end) in enumerate(zip(starts, ends, strict=True)):
            read = start + timing.mapping.halo_cycles(group)
            if read > start:
                yield self._interval(OUTPUT_STAGE, "halo", (start, read))
            yield self._interval(OUTPUT_STAGE, "drain", (read, end))
        left = begin + timing.ofmap_cycles
        yield self._interval(
            OFMAP_PORT, "leave", (int(left[0]), int(left[-1]) + 1), timing.ofmap_bits
        )


def sparse_activity(design: Scnn, run: LayerRun, start_cycle: int = 0) -> SparseActivity:
    """The run of a layer whose ports never wait, as `archsim.simulate` times it.

    Raises `InputError` as `archsim.machines.scnn.answer.sparse_answer`.
    """
    passes = pass_words(design, [run])
    return SparseActivity(
        design=design,
        run=run,
        start_cycle=start_cycle,
        passes=passes,
        answer=sparse_answer(design, passes),
    )


__all__ = ["GROUPS", "SparseActivity", "pe_unit", "sparse_activity", "sparse_tracks"]
