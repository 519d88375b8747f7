"""What crosses the ports of a layer, word by word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from archsim.machines.sparsetrain.design import SIDES
from archsim.machines.sparsetrain.tiling import (
    COLUMN,
    COLUMNS,
    FIRST,
    GROUP,
    LAST,
    ROW,
    ROWS,
    STEP,
    STEPS,
    vectors_of,
)
from archsim.machines.sparsetrain.timing import Counts
from archsim.machines.sparsetrain.vectors import AnyArray, stepped
from archsim.machines.sparsetrain.work import LayerWork
from archsim.numbers import IntArray

OPERANDS = (("row", ROW, ROWS), ("column", COLUMN, COLUMNS))


def ones_of(work: LayerWork) -> tuple[Counts, Counts]:
    """Values that are not zero, of each step of rows and of columns that crosses, in order."""
    rows, columns = (
        _joined([piece.sum(axis=1) for piece in _crossing(work, number, flags != 0)], 0)
        for number, flags in enumerate(work.vectors)
    )
    return rows.astype(np.uint8), columns.astype(np.uint8)


def stream_words(work: LayerWork) -> dict[str, IntArray]:
    """Of every port, [words, lanes], but the ofmap's."""
    found: dict[str, IntArray] = {"command": commands(work)}
    for number, (name, _, _) in enumerate(OPERANDS):
        blocks = list(_crossing(work, number, work.vectors[number]))
        steps = _joined(blocks, work.design.lanes)
        found[f"{name}_mask"] = (steps != 0).astype(np.int64)
        found[name] = packed(steps[steps != 0], work.design.lanes)
    if work.design.skip_outputs:
        found["needed"] = _joined(list(_needed(work)), work.design.columns)
    return found


def commands(work: LayerWork) -> IntArray:
    """A command for each block."""
    masked = np.full(len(work.blocks), int(work.needed is not None))
    split = np.full(len(work.blocks), int(work.cut.segments > 1))
    flags = (
        *((masked,) if work.design.skip_outputs else ()),
        *((split,) if work.design.segments > 1 else ()),
    )
    sizes = (work.blocks[:, at] for at in (ROWS, COLUMNS, STEPS, FIRST, LAST))
    stays = (
        column
        for name, kept in zip(SIDES, work.kept, strict=True)
        if work.design.kept_steps(name)
        for column in (kept.place, kept.keep, kept.again)
    )
    return np.stack([*sizes, *flags, *stays], axis=1)


def packed(values: IntArray, lanes: int) -> IntArray:
    """Values in words one behind the other, the last filled with zeros."""
    return np.pad(values, (0, -len(values) % lanes)).reshape(-1, lanes)


def ofmap_words(work: LayerWork, sums: AnyArray) -> IntArray:
    """The words that leave: of each row of a tile its sets of columns, a PE's sum in each lane.

    sums: [groups, rows, columns], 0 where they are not computed.
    """
    pes, found = work.design.pes, list[AnyArray]()
    short = -work.cut.columns % pes
    whole = np.pad(work.in_order(sums), ((0, 0), (0, 0), (0, short)))
    for block in work.blocks[work.blocks[:, LAST] == 1]:
        rows = slice(block[ROW], block[ROW] + block[ROWS])
        left = block[COLUMN] // pes
        sets = slice(left, left - (-block[COLUMNS] // pes))
        tile = whole[block[GROUP], rows].reshape(block[ROWS], -1, pes)[:, sets]
        found.append(tile[work.words_needed[block[GROUP], rows, sets]])
    return _joined(found, pes)


def _crossing(work: LayerWork, number: int, vectors: AnyArray) -> Iterator[AnyArray]:
    """Of each block its steps that cross, [steps, lanes]."""
    _, at, many = OPERANDS[number]
    lanes, own_lanes = work.design.lanes, work.step_lanes
    steps = stepped(vectors, own_lanes)
    for block in work.blocks[~work.kept[number].again]:
        own: IntArray = np.arange(block[at], block[at] + block[many], dtype=np.int64)
        own = own if at == ROW else work.columns_of(block)
        when = slice(block[STEP], block[STEP] + block[STEPS])
        found = steps[block[GROUP], own][:, when]
        if at == COLUMN and work.cut.segments > 1:
            found = bundled(found, work.design.pes, work.cut.segments)
        yield np.pad(found.reshape(-1, found.shape[2]), ((0, 0), (0, lanes - found.shape[2])))


def bundled(columns: AnyArray, pes: int, segments: int) -> AnyArray:
    """Columns of a block [columns, steps, lanes of a segment] as its column vectors [vectors,
    steps, lanes]: those of a PE side by side, as many as there are segments."""
    count, steps, lanes = columns.shape
    whole = np.pad(columns, ((0, -count % (pes * segments)), (0, 0), (0, 0)))
    split = whole.reshape(-1, segments, pes, steps, lanes).transpose(0, 2, 3, 1, 4)
    vectors = split.reshape(-1, steps, segments * lanes)
    return vectors[: vectors_of(count, pes, segments)]


def _needed(work: LayerWork) -> Iterator[IntArray]:
    """Of each tile's rows a word, a bit for each of its columns."""
    if work.placed is None:
        return
    for block in work.blocks[work.blocks[:, FIRST] == 1]:
        rows = slice(block[ROW], block[ROW] + block[ROWS])
        columns = slice(block[COLUMN], block[COLUMN] + block[COLUMNS])
        own = work.placed[block[GROUP], rows, columns].astype(np.int64)
        yield np.pad(own, ((0, 0), (0, work.design.columns - own.shape[1])))


def _joined(pieces: list[AnyArray], lanes: int) -> AnyArray:
    """One behind the other; nothing of so many lanes where there are none."""
    if not pieces:
        return np.zeros((0, lanes) if lanes else 0, np.int64)
    return np.concatenate(pieces)


def word_counts(work: LayerWork) -> Mapping[str, int]:
    """Words that cross each port."""
    loads = work.loads.sum(axis=0).tolist()
    again = [one.again_steps for one in work.kept]
    values = [int(value) for value in _values(work)]
    lanes = work.design.lanes
    found = {
        "command": len(work.blocks),
        "row_mask": loads[0] - again[0],
        "row": -(-values[0] // lanes),
        "column_mask": loads[1] - again[1],
        "column": -(-values[1] // lanes),
        "needed": loads[2],
        "ofmap": loads[4],
    }
    return {port.name: found[port.name] for port in work.design.ports}


def _values(work: LayerWork) -> Iterator[int]:
    """Values of rows and of columns that are not zero, as often as they cross."""
    for number, (_, at, many) in enumerate(OPERANDS):
        words = work.non_zero[number]
        ones = np.bitwise_count(words).astype(np.int64).cumsum(axis=1).cumsum(axis=2)
        sums = np.pad(ones, ((0, 0), (1, 0), (1, 0)))
        blocks = work.blocks[~work.kept[number].again]
        group, top, left = blocks[:, GROUP], blocks[:, at], blocks[:, STEP]
        bottom, right = top + blocks[:, many], left + blocks[:, STEPS]
        yield int(
            (
                sums[group, bottom, right] - sums[group, top, right]
                - sums[group, bottom, left] + sums[group, top, left]
            ).sum()
        )  # fmt: skip


__all__ = ["bundled", "commands", "ofmap_words", "ones_of", "packed", "stream_words", "word_counts"]
