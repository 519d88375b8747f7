"""Ports whose every word has a gap of its own before it: random stalls, as the proof draws them.

The ofmap port then pushes back on the output stage.  `archsim.timing` has the same with arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archsim.kernels import inlined, kernel
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled import plan as pn
from archsim.tiled.packing import output_blocks


def join_gaps(cumulative: Sequence[IntArray]) -> IntArray:
    """G of the five ports in one array: where each begins, then the values; empty is regular."""
    lengths = np.array([len(values) for values in cumulative], np.int64)
    starts = 6 + np.concatenate([[0], np.cumsum(lengths)])
    return np.concatenate([starts, *cumulative])


@kernel
def no_gaps() -> IntArray:
    """`join_gaps` of five regular ports."""
    return np.full(6, 6, np.int64)


NO_GAPS: IntArray = join_gaps([np.zeros(0, np.int64)] * 5)
"""The same outside of kernels."""

NO_GAPS.flags.writeable = False


@kernel
def finish_time(word: int, port: int, gaps: IntArray) -> int:
    """G[word] of a port (`archsim.timing`)."""
    start: int = gaps[port]
    return gaps[start + word] if gaps[port + 1] > start else word + 1


@kernel
def cross(state: IntArray, places: IntArray, load: tuple[int, int, int], gaps: IntArray) -> int:
    """Let words cross a port; returns the first crossing.

    load: the port, the words, the cycle from which on the first one may.
    """
    port, words, ready = load
    base = places[pn.WORDS + port]
    before = finish_time(base - 1, port, gaps) if base > 0 else 0
    start = finish_time(base, port, gaps)
    first = max(ready, state[pn.CROSSED + port] + start - before)
    places[pn.WORDS + port] = base + words
    last = first + finish_time(base + words - 1, port, gaps) - start
    state[pn.CROSSED + port] = last
    return first


@inlined
def _drain_rows(
    row: IntArray, tile: tuple[int, int, int], crossed: IntArray, ready: IntArray,
    machine: IntArray, gaps: IntArray,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Read an output tile's rows one by one, through a port that pushes back.

    tile: the cycle from which it may be read, its first word, the crossing of the word before.  A
    vector's first row is read when the queue has places for the words that the vector completes,
    which the words `depth` before them give up as they cross; the rows behind it follow.
    crossed: [depth], the cycles of the last words, word w at w modulo depth; kept up to date.
    ready: [words of the layer] or empty: from when on each may cross, filled in.
    Returns the first read, the cycle after the last, the first crossing or -1, the last one.
    """
    start, word, last_out = tile
    depth, size = machine[mc.OUTPUT_QUEUE], machine[mc.OUTPUT_WORD_UNITS]
    units, end_word = row[cmd.BEGUN_UNITS], word + row[cmd.OUTPUT_WORDS]
    first_read: int = -1
    first_out: int = -1
    now: int = start
    end: int = start
    blocks = output_blocks(row, machine)
    for which in range(3):
        vectors, rows, first, later, total = blocks[0] if which == 0 else blocks[1]
        if which == 2:
            # what is begun of the layer's last word leaves as if a row followed
            end, missing = now, size - units
            vectors, rows, first, later, total = end_word - word, 1, missing, missing, missing
        for _ in range(vectors):
            completed, left = (units + total) // size, total
            if completed > 0:
                place = int((word + completed - 1) % depth)
                free = int(crossed[place]) + 1
                now = max(now, free)
            if first_read < 0:
                first_read = now
            for at in range(rows):
                brought = min(first if at == 0 else later, left)
                left -= brought
                units += brought
                if units >= size:
                    units -= size
                    may = now + machine[mc.OUTPUT_LATENCY]
                    if len(ready) > 0:
                        ready[word] = may
                    before = finish_time(word - 1, pn.OFMAP, gaps) if word > 0 else 0
                    last_out = max(may, last_out + finish_time(word, pn.OFMAP, gaps) - before)
                    first_out = last_out if first_out < 0 else first_out
                    crossed[word % depth] = last_out
                    word += 1
                now += 1
    return first_read, end, first_out, last_out


@kernel
def drain_with_gaps(
    row: IntArray, tile: tuple[int, int, int], crossed: IntArray, machine: IntArray, gaps: IntArray
) -> tuple[int, int, int, int]:
    """Read an output tile's accumulators through a port that pushes back.

    tile: the cycle from which on they may be read, the tile's first word, and the crossing of the
    one before.  crossed: [depth of the output queue] the last crossings, kept up to date.
    Returns the first read, the cycle after the last, the first crossing, -1 if no word does, and
    the last one of all.
    """
    return _drain_rows(row, tile, crossed, gaps[:0], machine, gaps)


@kernel
def ofmap_ready(tiles: IntArray, plan: IntArray, machine: IntArray, gaps: IntArray) -> IntArray:
    """The cycle from which on each ofmap word may cross, of the schedule `plan`: [words].

    A read that waited for a place in the queue delays the words behind it.
    """
    ready = np.zeros(tiles[:, cmd.OUTPUT_WORDS].sum(), np.int64)
    crossed, last, word = np.full(machine[mc.OUTPUT_QUEUE], -1, np.int64), -1, 0
    for at in range(len(tiles)):
        if tiles[at, cmd.LAST_K] == 1:
            tile = plan[at, pn.DRAIN_START], word, last
            last = _drain_rows(tiles[at], tile, crossed, ready, machine, gaps)[3]
            word += tiles[at, cmd.OUTPUT_WORDS]
    return ready
