"""When groups, metadata and rows cross the ports of Boveda's compressor and decompressor.

One pass over the groups: each crossing is the latest of what it waits for (a queue recurrence), so
that stalls on any port come out exactly.  The units are `rtl/core/boveda_compressor.py` and
`boveda_decompressor.py`; what they wait for is in docs/contracts/boveda.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from archsim.errors import require
from archsim.numbers import IntArray

__all__ = [
    "CompressorCycles",
    "DecompressorCycles",
    "Pace",
    "RowUse",
    "compressor_cycles",
    "decompressor_cycles",
    "row_use",
]

NO_CYCLES: IntArray = np.zeros(0, np.int64)

HELD_ROWS = 2
"""Rows that the decompressor holds."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """When the other side of a port offers, or accepts, word k: start(k) = max(earliest[k],
    x(k − 1) + 1 + gaps[k]) with x(k − 1) the crossing of the word before (x(−1) = −1).

    earliest, gaps: int64 [words], or empty: 0 for every word.
    """

    earliest: IntArray = field(default_factory=lambda: NO_CYCLES)
    gaps: IntArray = field(default_factory=lambda: NO_CYCLES)

    def start(self, word: int, before: int) -> int:
        """The first cycle in which `word` can cross; `before`: x(word − 1)."""
        gap = int(self.gaps[word]) if len(self.gaps) else 0
        earliest = int(self.earliest[word]) if len(self.earliest) else 0
        return max(earliest, before + 1 + gap)

    def require_words(self, port: str, words: int) -> None:
        """Raise `InputError` if cycles are given for fewer than `words` words."""
        for name, cycles in (("earliest", self.earliest), ("gaps", self.gaps)):
            require(
                len(cycles) == 0 or len(cycles) >= words,
                f"{name} of {port} must be {words}, not {len(cycles)}",
            )


ALWAYS = Pace()


@dataclass(frozen=True, kw_only=True)
class RowUse:
    """The rows of each group, numbered through all units: int64 [groups] each.

    ended: rows that end with or before the group.  needed: rows that must be there to read it, up
    to the last that holds its bits (or rows of before, for a group of no bits).
    """

    ended: IntArray
    needed: IntArray

    @property
    def rows(self) -> int:
        return int(self.ended[-1]) if len(self.ended) else 0


def row_use(widths: IntArray, last: IntArray, container_bits: int) -> RowUse:
    """The rows of groups with these widths [groups] (0 to container_bits).

    last [groups]: 1 for the last of a unit; the groups after it begin a new row.
    A group at p reaches end = p + w.  It ends its row if end ≥ B, or if it is its unit's last and
    end > 0, and the next row too if it is the last and end > B.
    """
    require(len(widths) == len(last), f"last must be {len(widths)}, not {len(last)}")
    require(
        not len(widths) or (int(widths.min()) >= 0 and int(widths.max()) <= container_bits),
        f"widths must be 0 to {container_bits}",
    )
    ended, needed = np.zeros_like(widths), np.zeros_like(widths)
    rows = pointer = 0
    for group, (width, is_last) in enumerate(zip(widths.tolist(), last.tolist(), strict=True)):
        end = pointer + width
        needed[group] = rows + (width > 0) + (end > container_bits)
        rows += -(-end // container_bits) if is_last else end // container_bits
        pointer = 0 if is_last else end % container_bits
        ended[group] = rows
    return RowUse(ended=ended, needed=needed)


@dataclass(frozen=True, kw_only=True)
class CompressorCycles:
    """Cycles at which words cross: groups `i`, `widths` [groups], `row` [rows]."""

    i: IntArray
    widths: IntArray
    row: IntArray


def compressor_cycles(
    use: RowUse, *, i: Pace = ALWAYS, widths: Pace = ALWAYS, row: Pace = ALWAYS
) -> CompressorCycles:
    """The cycles of a compressor, for groups whose rows are `use`.

    Group k crosses at a, is coded at b and merged at c; row j crosses at r:

        a[k] = max(start, b[k−1])        b[k] = max(a[k] + 1, c[k−1])
        c[k] = max(b[k] + 1, widths[k−1], r[rows so far − 1] if it ends a row,
                   r[first of two] + 1 if group k − 1 ended two)
        widths[k] = max(start, c[k] + 1)      r[j] = max(start, c + 1)

    and the second row of a group that ends two is offered from r[first] + 1 on.
    """
    groups = len(use.ended)
    for name, pace, words in (("i", i, groups), ("widths", widths, groups), ("row", row, use.rows)):
        pace.require_words(name, words)
    taken, named = [-1], [-1]
    rows: list[int] = [-1]
    coded = merged = blocked = -1
    before = 0
    for k, ended in enumerate(use.ended.tolist()):
        taken.append(max(i.start(k, taken[-1]), coded))
        coded = max(taken[-1] + 1, merged)
        merged = max(coded + 1, named[-1], blocked)
        if ended > before:
            merged = max(merged, rows[-1])
        named.append(max(widths.start(k, named[-1]), merged + 1))
        offered = merged + 1
        for j in range(before, ended):
            rows.append(max(row.start(j, rows[-1]), offered))
            offered = rows[-1] + 1
        blocked = rows[-2] + 1 if ended == before + 2 else -1
        before = ended
    return CompressorCycles(i=_array(taken), widths=_array(named), row=_array(rows))


@dataclass(frozen=True, kw_only=True)
class DecompressorCycles:
    """Cycles at which words cross: `widths` and groups `o` [groups], `row` [rows]."""

    widths: IntArray
    row: IntArray
    o: IntArray


def decompressor_cycles(
    use: RowUse, *, widths: Pace = ALWAYS, row: Pace = ALWAYS, o: Pace = ALWAYS
) -> DecompressorCycles:
    """The cycles of a decompressor, for groups whose rows are `use`.

    Row j crosses at r, group k is read as its metadata cross at d, expanded at e, and crosses at o:

        r[j] = max(start, d of the group that ends row j − 2)
        d[k] = max(start, e[k−1], r[last row that it needs] + 1)
        e[k] = max(d[k] + 1, o[k−1])        o[k] = max(start, e[k] + 1)
    """
    groups = len(use.ended)
    for name, pace, words in (("widths", widths, groups), ("row", row, use.rows), ("o", o, groups)):
        pace.require_words(name, words)
    read, out = [-1], [-1]
    rows: list[int] = [-1]
    given_up: list[int] = []
    expanded = -1

    def fetch(count: int) -> None:
        while len(rows) <= count:
            j = len(rows) - 1
            room = given_up[j - HELD_ROWS] if j >= HELD_ROWS else 0
            rows.append(max(row.start(j, rows[-1]), room))

    ends: list[int] = use.ended.tolist()
    needs: list[int] = use.needed.tolist()
    for k, (ended, needed) in enumerate(zip(ends, needs, strict=True)):
        fetch(needed)
        there = rows[needed] + 1 if needed else 0
        read.append(max(widths.start(k, read[-1]), expanded, there))
        given_up += [read[-1]] * (ended - len(given_up))
        expanded = max(read[-1] + 1, out[-1])
        out.append(max(o.start(k, out[-1]), expanded + 1))
    fetch(use.rows)
    return DecompressorCycles(widths=_array(read), row=_array(rows), o=_array(out))


def _array(cycles: list[int]) -> IntArray:
    """Without the word −1."""
    return np.array(cycles[1:], np.int64)
