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
def _put_weight(
    lane: Words, base: Any, cut: tuple[Any, Any], operands: tuple[IntArray, Words, IntArray],
    value: Any,
) -> None:  # fmt: skip
    """A weight at the place of a lane that is not zero, where the grid has its tap.

    cut: rows and columns of taps of its phase; operands: as for `change_weights`.
    """
    (rows, columns), (weights, by_tap, used) = cut, operands
    if lane[0] != 0 and lane[2] < rows and lane[3] < columns:
        at = base + np.int64(lane[2]) * columns + lane[3]
        used[at] += int(value != 0) - int(weights[lane[1], at] != 0)
        weights[lane[1], at] = value
        by_tap[at, lane[1]] = value


@kernel
def change_weights(
    pe: Any,
    seen: tuple[Changed, Meant, Grid],
    operands: tuple[IntArray, Words, IntArray],
    back: bool,
) -> None:
    """Make weights those that a PE reads, or, back, those that are meant again.

    operands: weights [filters, channels · taps], and [channels · taps, filters]; how many are not
    zero at each tap [channels · taps].  No two elements of a list are at one tap of a filter.
    """
    (ends, numbers, lanes), (right, list_of), (each, begins, counts) = seen
    begin, end = ends[pe - 1] if pe else np.int64(0), ends[pe]
    for turn in range(2):
        for n in range(begin, end):
            vector = numbers[n]
            channel, phase = divmod(list_of[vector], len(begins))
            base, cut = channel * each + begins[phase], (counts[phase, 0], counts[phase, 1])
            for lane in range(lanes.shape[1]):
                meant, read = right[vector, lane], lanes[n, lane]
                own = meant if (turn == 1) == back else read  # first zeros where the others were
                value = np.int64(own[0]) if turn == 1 else np.int64(0)
                if meant[1] == read[1] and meant[2] == read[2] and meant[3] == read[3]:
                    if turn == 0 or meant[0] == read[0]:
                        continue  # no other element is there, before or behind
                    own = meant if meant[0] != 0 else read
                _put_weight(own, base, cut, operands, value)


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
    "Grid",
    "Meant",
    "change_weights",
    "move_sums",
    "pool_words",
    "put_elements",
    "read_coded",
    "read_words",
]
