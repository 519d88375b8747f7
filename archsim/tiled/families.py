"""Layers on many designs, of which those that differ in the depths of memories alone share answers.

Depths have a say in which tiles fit, and in nothing else.  So what a search found on one design
holds on every other on which all that it asked fits, or does not, as there: where each depth lies
between the most words that fitted and the fewest that did not.  The mapper `fast` needs less: that
what it took fits, and no more does (docs/adr/0063-tiers-of-cycles.md).  And what is known of other
designs of a family shortens the search on one: a tiling that fits, and a tier that none is below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled.choice import choose_mapping, tiles_of
from archsim.tiled.cycles import cycles_of
from archsim.tiled.near import CUT_OFF, EFFORT_COLUMNS, NOT_ALL, near_tiling, same_sizes
from archsim.tiled.near_layer import KNOWN, LISTS, new_lists
from archsim.tiled.near_meet import FloatArray
from archsim.tiled.near_memo import SHARED_ROOM, forget, new_memo
from archsim.tiled.side_by_side import block_problem
from archsim.tiled.tile_fit import pixel_words, weight_words

NONE_FITS, TOO_MANY_TILES = -1, -2
"""In place of a layer's cycles."""

FITTED, LACKED = 0, mc.MEMORIES
"""Of an answer, + memory: the least depth for which it holds, and the least for which it may not.
They are noted behind the columns of a watched machine."""

CYCLES, MOVED, SURE, SIZES = range(2 * mc.MEMORIES, 2 * mc.MEMORIES + 4)
"""Of an answer: the layer's cycles, its bytes as the mapper `fast` counts them, its cycles where no
tiling that fits is of a lower tier, else 0, and from here on the sizes of the tiling."""

KEPT = 256
"""Answers of a family that are kept for a layer, the last ones."""

ANY_DEPTH = 1 << 62


class Answers(NamedTuple):
    """rows: [KEPT, SIZES + TILING_COLUMNS], in a ring; counts: [2], those that are there, and where
    the next one goes; memo, lists: what is known of the layer's tilings (`archsim.tiled.near_memo`)
    and sizes (`archsim.tiled.near_layer`)."""

    rows: IntArray
    counts: IntArray
    memo: IntArray
    lists: IntArray


Search = Callable[[Answers, IntArray, IntArray], bool]
"""`_answer` or `_answer`."""


@inlined
def _holds(row: IntArray, machine: IntArray) -> bool:
    """Whether an answer holds on a machine of its family."""
    for memory in range(mc.MEMORIES):
        depth = machine[mc.IFMAP_DEPTH + memory]
        if depth < row[FITTED + memory] or depth >= row[LACKED + memory]:
            return False
    return True


@kernel
def _known(answers: Answers, machine: IntArray) -> int:
    """The place of an answer that holds, the last ones first; -1 if there is none."""
    at = answers.counts[1]
    for _ in range(answers.counts[0]):
        at = KEPT - 1 if at == 0 else at - 1
        if _holds(answers.rows[at], machine):
            return at
    return -1


@kernel
def _timed(answers: Answers, problem: IntArray, machine: IntArray, row: IntArray, most: int) -> int:
    """The cycles of an answer's tiling: from the search, or from another answer of the same tiling,
    if there is one."""
    tiling = row[SIZES:]
    block = block_problem(problem, tiling[pb.T_GROUPS])
    if tiles_of(block, tiling, most) > most:
        return TOO_MANY_TILES
    if row[CYCLES] > 0:
        return row[CYCLES]
    for at in range(answers.counts[0]):
        if at != answers.counts[1] and same_sizes(answers.rows[at, SIZES:], tiling):
            return answers.rows[at, CYCLES]
    return cycles_of(block, tiling, machine)


@kernel
def _watch(machine: IntArray, watched: IntArray) -> None:
    """Set a watched machine, of which nothing has been asked yet."""
    for column in range(mc.MACHINE_COLUMNS):
        watched[column] = machine[column]
    for memory in range(mc.MEMORIES):
        watched[mc.MACHINE_COLUMNS + FITTED + memory] = 0
        watched[mc.MACHINE_COLUMNS + LACKED + memory] = ANY_DEPTH


@kernel
def _answer_roughly(answers: Answers, problem: IntArray, watched: IntArray) -> bool:
    """Search as the mapper `rough` does, into the next answer; whether a tiling fits."""
    row = answers.rows[answers.counts[1]]
    some = choose_mapping(problem, watched, row[SIZES:])
    for note in range(2 * mc.MEMORIES):
        row[note] = watched[mc.MACHINE_COLUMNS + note]
    return some


@kernel
def _needs(row: IntArray, problem: IntArray, machine: IntArray, tiling: IntArray) -> None:
    """Note what a tiling takes of each memory."""
    block = block_problem(problem, tiling[pb.T_GROUPS])
    ifmap, sums = pixel_words(block, machine, tiling)
    weights, biases = weight_words(block, machine, tiling[pb.T_FILTERS], tiling[pb.T_CHANNELS])
    for memory, words in enumerate((ifmap, weights, sums, biases)):
        row[FITTED + memory] = max(row[FITTED + memory], words)


@kernel
def _what_is_known(answers: Answers, machine: IntArray, best: FloatArray, tiling: IntArray) -> int:
    """Write the fastest tiling of all answers that fits, and what it takes, into `tiling` and
    `best`; returns cycles of the tier below which none is that fits, or 0."""
    tier = 0
    for at in range(answers.counts[0]):
        row = answers.rows[at]
        if at == answers.counts[1] or row[CYCLES] < 0:
            continue
        fits = less = True
        for memory in range(mc.MEMORIES):
            depth = machine[mc.IFMAP_DEPTH + memory]
            fits = fits and row[FITTED + memory] <= depth
            less = less and depth < row[LACKED + memory]
        if less:
            tier = max(tier, row[SURE])
        if fits and row[CYCLES] < best[0]:
            best[0], best[1] = row[CYCLES], row[MOVED]
            for size in range(pb.TILING_COLUMNS):
                tiling[size] = row[SIZES + size]
    return tier


@kernel
def _answer(answers: Answers, problem: IntArray, watched: IntArray) -> bool:
    """Search as the mapper `fast` does, into the next answer; whether a tiling fits.

    It holds for less of any memory into which what was taken fits.
    """
    row, best = answers.rows[answers.counts[1]], np.full(2, np.inf)
    machine = watched[: mc.MACHINE_COLUMNS]
    tilings = np.zeros((2, pb.TILING_COLUMNS), np.int64)
    effort = np.zeros(EFFORT_COLUMNS, np.int64)
    tier = _what_is_known(answers, machine, best, tilings[1])
    near_tiling(problem, machine, True, best, tilings, effort, answers.memo, answers.lists, tier)
    some = np.isfinite(best[0])
    row[SURE] = 0
    if not some:
        some = _answer_roughly(answers, problem, watched)
    else:
        for note in range(mc.MEMORIES):
            row[FITTED + note] = 0
        for size in range(pb.TILING_COLUMNS):
            row[SIZES + size] = tilings[0, size]
        _needs(row, problem, machine, tilings[0])
        for note in range(mc.MEMORIES):
            row[LACKED + note] = ANY_DEPTH
        row[CYCLES], row[MOVED] = int(best[0]), int(best[1])
        if effort[CUT_OFF] < NOT_ALL:
            row[SURE] = int(best[0])
    for memory in range(mc.MEMORIES):
        depth = machine[mc.IFMAP_DEPTH + memory]
        if effort[CUT_OFF] > 0:
            row[FITTED + memory] = depth
        row[LACKED + memory] = min(row[LACKED + memory], depth + 1)
    return some


@kernel
def _alike(machine: IntArray, other: IntArray) -> bool:
    """Whether two machines differ in the depths of memories alone."""
    for column in range(mc.MACHINE_COLUMNS):
        depth = mc.IFMAP_DEPTH <= column < mc.IFMAP_DEPTH + mc.MEMORIES
        if machine[column] != other[column] and not depth:
            return False
    return True


@kernel
def _next(answers: Answers) -> None:
    """The answer is kept."""
    answers.counts[0] = min(answers.counts[0] + 1, KEPT)
    answers.counts[1] = (answers.counts[1] + 1) % KEPT


@kernel
def _find(search: Search, answers: Answers, problem: IntArray, watched: IntArray, most: int) -> int:
    """Search for a layer on the machine that is watched; the place of the answer, which is kept."""
    machine, at = watched[: mc.MACHINE_COLUMNS], answers.counts[1]
    row = answers.rows[at]
    row[CYCLES] = NONE_FITS
    for size in range(pb.TILING_COLUMNS):
        row[SIZES + size] = 0
    if search(answers, problem, watched):
        row[CYCLES] = _timed(answers, problem, machine, row, most)
    _next(answers)
    return at


@kernel
def _time_all(
    search: Search, problems: IntArray, machines: IntArray, most: int
) -> tuple[IntArray, IntArray]:
    """What `time_many` gives."""
    designs, layers = len(machines), len(problems)
    cycles = np.zeros((designs, layers), np.int64)
    tilings = np.zeros((designs, layers, pb.TILING_COLUMNS), np.int64)
    counts = np.zeros(2, np.int64)
    rows, memo = np.zeros((KEPT, SIZES + pb.TILING_COLUMNS), np.int64), new_memo(SHARED_ROOM)
    answers = Answers(rows, counts, memo, new_lists())
    watched = np.zeros(mc.MACHINE_COLUMNS + 2 * mc.MEMORIES, np.int64)
    for layer in range(layers):
        for design in range(designs):
            machine = machines[design]
            if design == 0 or not _alike(machine, machines[design - 1]):
                counts[0] = counts[1] = 0
                forget(memo)
                answers.lists[0, LISTS, KNOWN] = 0
            at = _known(answers, machine)
            if at < 0:
                _watch(machine, watched)
                at = _find(search, answers, problems[layer], watched, most)
            row = answers.rows[at]
            cycles[design, layer] = row[CYCLES]
            for size in range(pb.TILING_COLUMNS):
                tilings[design, layer, size] = row[SIZES + size]
    return cycles, tilings


@kernel("i8.2, i8.2, int")
def time_many(problems: IntArray, machines: IntArray, most: int) -> tuple[IntArray, IntArray]:
    """Cycles [designs, layers] and tilings [designs, layers, TILING_COLUMNS].

    machines: families next to each other, more memory first (`in_families`).  Cycles are NONE_FITS
    where no tiling fits, and TOO_MANY_TILES where it has more than `most` tiles.
    """
    return _time_all(_answer, problems, machines, most)


@kernel("i8.2, i8.2, int")
def time_many_roughly(
    problems: IntArray, machines: IntArray, most: int
) -> tuple[IntArray, IntArray]:
    """The same with every layer mapped as the mapper `rough` does.

    A kernel of its own: who does not ask for that search does not wait until it is compiled.
    """
    return _time_all(_answer_roughly, problems, machines, most)


def in_families(machines: IntArray) -> tuple[IntArray, npt.NDArray[np.intp]]:
    """Distinct machines as `time_many` takes them, and which of them each is: [designs]."""
    depths = np.arange(mc.IFMAP_DEPTH, mc.IFMAP_DEPTH + mc.MEMORIES)
    others = np.setdiff1d(np.arange(mc.MACHINE_COLUMNS), depths)
    keys = machines[:, np.concatenate([others, depths])]
    keys[:, len(others) :] *= -1
    _, first, same = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return np.ascontiguousarray(machines[first]), same.reshape(-1)


__all__ = ["TOO_MANY_TILES", "in_families", "time_many", "time_many_roughly"]
