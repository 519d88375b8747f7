"""Kernels behind `archsim.machines.scnn.few_sums` beside its walk: operands as PEs read them, sums
that go to neighbours, and windows over sums as PEs read those."""

from __future__ import annotations

from typing import Any

import numpy as np

from archsim.kernels import inlined, kernel
from archsim.machines.scnn.kernels import BoolArray
from archsim.machines.scnn.seen_kernels import Words
from archsim.numbers import IntArray

Changed = tuple[IntArray, IntArray, Words]
"""Vectors of weights that PEs read otherwise, as `archsim.machines.scnn.seen_weights.Changed`."""

Cells = tuple[IntArray, IntArray, BoolArray]
"""Of sums: bits that read 1 where 0 is stored, and where 1 is [n]; which are read past check bits
[n], whose cells lie above theirs."""

Code = tuple[int, IntArray, IntArray]
"""How sums are read past check bits: bits of a sum; those that each check bit is of [checks]; by
syndrome those that are turned, -1 where zeros are read."""

Meant = tuple[Words, IntArray]
"""All vectors' lanes as they are meant, and the list of a group that each is in."""

Edits = tuple[IntArray, IntArray, IntArray, IntArray, IntArray]
"""Weights that PEs read otherwise: those behind the last one of each PE [PEs]; of each its place
among channels · taps, its filter, what is read, and what is meant [n]."""

Grid = tuple[int, IntArray, IntArray]
"""Taps of all phases; where those of a phase begin [phases]; each phase's rows and columns of taps
[phases, 2]."""


@kernel("(i8.2, i8.2, i8.1), i8.2")
def put_elements(lists: tuple[IntArray, IntArray, IntArray], out: IntArray) -> None:
    """Put the values of lists that are not zero at their positions, `out` [lists, places]; those
    beyond are left out.

    lists: values and positions [vectors, lanes], and where each begins.
    """
    values, positions, starts = lists
    for number in range(len(out)):
        own = out[number]
        for vector in range(starts[number], starts[number + 1]):
            for lane in range(values.shape[1]):
                value, at = values[vector, lane], positions[vector, lane]
                if value != 0 and at < len(own):
                    own[at] = value


@inlined
def _place_of(lane: Words, first: Any, cut: tuple[Any, Any]) -> Any:
    """Where a lane's weight lies among channels · taps; -1 of one without a value, or beyond the
    grid.  first: the place of the list's first tap; cut: rows and columns of its taps."""
    if lane[0] == 0 or lane[2] >= cut[0] or lane[3] >= cut[1]:
        return np.int64(-1)
    return first + np.int64(lane[2]) * cut[1] + np.int64(lane[3])


@inlined
def _alike(one: Words, other: Words) -> Any:
    """Whether two lanes are."""
    same = one[0] == other[0] and one[1] == other[1]
    return same and one[2] == other[2] and one[3] == other[3]


@kernel(
    "(i8.1, i8.1, i4.3), (i4.3, i8.1), (int, i8.1, i8.2), (i8.2, i8.2), "
    "(i8.1, i8.1, i8.1, i8.1, i8.1)"
)
def find_edits(
    changed: Changed, meant: Meant, grid: Grid, weights: tuple[IntArray, IntArray], out: Edits
) -> int:
    """What each PE's weights are otherwise than meant, into `out`, which has room for both lanes
    of every one that changed; how many they are.

    weights [filters, channels · taps]: as they are meant, twice; the second is worked on.  No two
    elements of a list are at one tap of a filter.
    """
    (ends, numbers, lanes), (right, list_of), (as_meant, own) = changed, meant, weights
    (behind, places, filters, read, before), (each, begins, counts) = out, grid
    count = 0
    for pe in range(len(ends)):
        some = ends[pe - 1] if pe else np.int64(0), ends[pe]
        for turn in range(3):  # zeros where weights were, then those that are read, then what is
            for n in range(some[0], some[1]):  # not as it was, which is once more what it was
                vector = numbers[n]
                channel, phase = divmod(list_of[vector], len(begins))
                first, cut = channel * each + begins[phase], (counts[phase, 0], counts[phase, 1])
                for lane in range(2 * lanes.shape[1]):
                    was, now, is_read = right[vector, lane >> 1], lanes[n, lane >> 1], lane & 1
                    if turn == 1 - is_read or _alike(was, now):
                        continue
                    its = now if is_read else was
                    at = _place_of(its, first, cut)
                    if at < 0:
                        continue
                    filter_, value = its[1], own[its[1], at]
                    if turn < 2:
                        own[filter_, at] = np.int64(its[0]) if turn else np.int64(0)
                    elif value != as_meant[filter_, at]:
                        places[count], filters[count] = at, filter_
                        read[count], before[count] = value, as_meant[filter_, at]
                        own[filter_, at] = as_meant[filter_, at]
                        count += 1
        behind[pe] = count
    return count


@kernel
def change_weights(
    pe: Any, edits: Edits, operands: tuple[IntArray, Words, IntArray], back: bool
) -> None:
    """Make weights those that a PE reads, or, back, those that are meant again.

    operands: weights [filters, channels · taps], and [channels · taps, filters]; how many are not
    zero at each tap [channels · taps].
    """
    (ends, places, filters, read, meant), (weights, by_tap, used) = edits, operands
    for n in range(ends[pe - 1] if pe else np.int64(0), ends[pe]):
        at, filter_ = places[n], filters[n]
        value, other = (meant[n], read[n]) if back else (read[n], meant[n])
        used[at] += int(value != 0) - int(other != 0)
        weights[filter_, at] = value
        by_tap[at, filter_] = value


@inlined
def _odd(value: Any) -> Any:
    """1 where an odd number of its bits is 1, else 0."""
    left = np.uint64(value)
    for shift in (32, 16, 8, 4, 2, 1):
        left ^= left >> np.uint64(shift)
    return np.int64(left & np.uint64(1))


@inlined
def read_coded(held: Any, word: tuple[Any, Any], code: Code) -> Any:
    """What is read past check bits of a word, of which bits above its width are no matter.

    word: bits that read 1 where 0 is stored, and where 1 is, those of check bits above the data's.
    """
    (zero, one), (bits, covers, corrections) = word, code
    every = (np.int64(1) << bits) - 1
    low, syndrome = held & every, np.int64(0)
    wrong = ((~low & zero) | (low & ~one)) & every
    for check in range(len(covers)):
        at = bits + check
        checked = _odd(low & covers[check])
        read = ((one if checked else zero) >> at) & 1
        syndrome |= (_odd(wrong & covers[check]) ^ checked ^ read) << check
    turned = corrections[syndrome]
    return np.int64(0) if turned < 0 else low ^ wrong ^ turned


@inlined
def _read(held: Any, half: Cells, n: Any, code: Code, above: Any) -> Any:
    """What is read of a word, of its own width."""
    zero, one, coded = half
    if coded[n]:
        return (read_coded(held, (zero[n], one[n]), code) << above) >> above
    return (held & one[n]) | (~held & zero[n])


@kernel("i8.2, (i8.1, i8.1, b1.1), i8.1, (int, i8.1, i8.1), int, i8.2")
def read_words(
    sums: IntArray, half: Cells, which: IntArray, code: Code, above: int, found: IntArray
) -> None:
    """What is read of some sums [groups, n]; above: bits of 64 that a sum lacks."""
    for group in range(len(sums)):
        for n in range(len(which)):
            read = _read(sums[group, which[n]], half, which[n], code, above)
            found[group, n] = (read << above) >> above


@kernel("i8.2, (i8.1, i8.1, b1.1), (i8.1, i8.1, bool), (int, i8.1, i8.1), int")
def move_sums(
    sums: IntArray, half: Cells, ends: tuple[IntArray, IntArray, bool], code: Code, above: int
) -> None:
    """Add sums [groups, n] to others, each read where it is and where it goes, all of a step.

    ends: which, and to which, all of them different; whether they are kept: else zeros are then
    stored where they were.  above: bits of 64 that a sum lacks.
    """
    sources, targets, kept = ends
    for group in range(len(sums)):
        own = sums[group]
        for n in range(len(sources)):
            source, target = np.uint64(sources[n]), np.uint64(targets[n])
            sent = _read(own[source], half, source, code, above)
            there = _read(own[target], half, target, code, above)
            own[target] = ((there + sent) << above) >> above
            if not kept:
                own[source] = 0


@inlined
def _windows(at: Any, window: IntArray, given: tuple[Any, Any]) -> tuple[Any, Any]:
    """The windows that an output is in, of those that a PE gives out: the first, and the one behind
    the last.  window: size, stride and padding."""
    size, stride, pad = window[0], window[1], window[2]
    first = (at + pad - size + stride) // stride
    return max(first, given[0]), min((at + pad) // stride + 1, given[1])


@inlined
def _largest(plane: IntArray, filter_: Any, rows: tuple[Any, Any], columns: tuple[Any, Any]) -> Any:
    found = plane[rows[0], columns[0], filter_]
    for p in range(rows[0], rows[1]):
        for q in range(columns[0], columns[1]):
            found = max(found, plane[p, q, filter_])
    return found


@inlined
def _in_plane(number: Any, window: IntArray, outputs: Any) -> tuple[Any, Any]:
    """The outputs of a window: the first, and the one behind the last."""
    first = number * window[1] - window[2]
    return max(first, np.int64(0)), min(first + window[0], np.int64(outputs))


@kernel("(i8.2, i8.1, i8.1), (i8.2, i8.2), (i8.1, i8.1), i8.3, i8.3")
def pool_words(
    words: tuple[IntArray, IntArray, IntArray],
    given: tuple[IntArray, IntArray],
    windows: tuple[IntArray, IntArray],
    plane: IntArray,
    found: IntArray,
) -> None:
    """The largest of windows, found [U, V, K], in which PEs see words of their own.

    words: PE by PE, row and column of an output and filter [n, 3], the PE, and the output that it
    makes of the word.  given [PEs, 2]: along both axes the first window that a PE gives out, and
    the one behind its last.  windows: size, stride and padding along both.  plane [P, Q, K]: what
    is seen of all others; outputs of words are then a PE's, for each that sees one has its own.
    """
    (places, pes, values), begin = words, 0
    while begin < len(values):
        end, pe = begin, pes[begin]
        while end < len(values) and pes[end] == pe:
            plane[places[end, 0], places[end, 1], places[end, 2]] = values[end]
            end += 1
        for n in range(begin, end):
            p, q, k = places[n, 0], places[n, 1], places[n, 2]
            above, below = _windows(p, windows[0], (given[0][pe, 0], given[0][pe, 1]))
            left, right = _windows(q, windows[1], (given[1][pe, 0], given[1][pe, 1]))
            for u in range(above, below):
                rows = _in_plane(u, windows[0], plane.shape[0])
                for v in range(left, right):
                    columns = _in_plane(v, windows[1], plane.shape[1])
                    found[u, v, k] = _largest(plane, k, rows, columns)
        begin = end


__all__ = [
    "Changed",
    "Code",
    "Edits",
    "Grid",
    "Meant",
    "change_weights",
    "find_edits",
    "move_sums",
    "pool_words",
    "put_elements",
    "read_coded",
    "read_words",
]
