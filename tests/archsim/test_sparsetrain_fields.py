"""Dot products side by side in the fields of words, against one behind the other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from archsim.machines.sparsetrain.block_work import block_work
from archsim.machines.sparsetrain.design import SPARSETRAIN, SparseTrain
from archsim.machines.sparsetrain.fields import BATCH, MOST_STEPS, fields_of
from archsim.machines.sparsetrain.kernels import bundled_words, choose, window_of
from archsim.machines.sparsetrain.tiling import COLUMN, COLUMNS, GROUP, ROW, ROWS, STEP, STEPS, Cut
from archsim.numbers import IntArray


def one_by_one(
    design: SparseTrain, words: Any, outputs: Any, blocks: IntArray, segments: int
) -> Any:
    """`block_work`, an output after the other, a cycle after the other."""
    (needed, order, tile_rows), (row_words, column_words) = outputs, words
    window, lanes, pes = window_of(design, segments), design.lanes, design.pes
    ring, found = lanes // segments, np.zeros((len(blocks), 6), np.int64)
    for line, block in zip(found, blocks, strict=True):
        group, steps, ends = block[GROUP], block[STEPS], np.zeros(pes, np.int64)
        dealt, sizes = order[group, block[ROW] // tile_rows], np.array([pes, segments, ring])
        bundles = bundled_words(column_words[group], dealt, block, sizes)
        for row in range(block[ROW], block[ROW] + block[ROWS]):
            for vector, b in enumerate(bundles):
                first = vector // pes * pes * segments + vector % pes
                own = [at for at in range(segments) if first + at * pes < block[COLUMNS]]
                if needed.size:
                    own = [at for at in own if needed[group, row, block[COLUMN] + first + at * pes]]
                if not own:
                    continue
                wanted = np.uint64(sum(((1 << ring) - 1) << (at * ring) for at in own))
                a = row_words[group, row, block[STEP] : block[STEP] + steps]
                pairs = int(np.bitwise_count(a & b & wanted).sum())
                taken = cycles_of(a & b & wanted, window)
                ends[vector % pes] += taken
                line += (taken, pairs, len(own), steps, 0, max(-(-pairs // lanes), 1))
        line[4] = ends.max()
    return found


def cycles_of(pairs: Any, window: Any) -> int:
    """Of a dot product."""
    rows, steps = window[4], len(pairs)
    left = np.concatenate([pairs, np.zeros(rows, np.uint64)])
    head = cycles = 0
    while head < steps:
        head += choose(left[head : head + rows], window) if rows > 1 else 1
        cycles += 1
    return cycles


def drawn(seed: int, design: SparseTrain, segments: int) -> Any:
    """A layer cut into blocks: words, outputs, blocks."""
    draws = np.random.default_rng(seed)
    rows, columns = int(draws.integers(1, 40)), int(draws.integers(1, 30))
    steps = int(draws.choice([1, 5, 40, 70]))
    sizes = [int(draws.integers(1, whole + 1)) for whole in (rows, steps)]
    tile_columns = design.pes * segments * int(draws.integers(1, 4))
    cut = Cut(
        groups=2, rows=rows, columns=columns, steps=steps, segments=segments,
        tile_rows=sizes[0], tile_columns=tile_columns, block_steps=sizes[1],
    )  # fmt: skip
    ring = design.lanes // segments
    density = draws.choice([0.1, 0.5, 0.9, 1.0])

    def words(vectors: int) -> Any:
        bits = draws.random((2, vectors, steps, ring)) < density
        return (bits * (np.uint64(1) << np.arange(ring, dtype=np.uint64))).sum(
            axis=3, dtype=np.uint64
        )

    everywhere = np.uint64(sum(1 << at * ring for at in range(segments)))
    needed = draws.random((2, rows, columns)) < draws.choice([0.05, 0.6])
    if draws.random() < 0.4:
        needed = np.zeros((0, 0, 0), np.bool_)
    order = np.array([[draws.permutation(columns)] for _ in range(2)])
    return (words(rows) * everywhere, words(columns)), (needed, order, rows), cut.blocks


@pytest.mark.parametrize("seed", range(60))
def test_side_by_side_is_one_by_one(seed: int) -> None:
    draws = np.random.default_rng([seed, 1])
    lanes = int(draws.choice([1, 2, 4, 8, 16, 32, 64]))
    segments = int(draws.choice([one for one in (1, 2, 4, 8) if one <= lanes]))
    design = replace(
        SPARSETRAIN, lanes=lanes, pes=int(draws.choice([1, 2, 8])), segments=segments,
        look_ahead=int(draws.integers(0, 4)), look_aside=int(draws.integers(0, 6)),
    )  # fmt: skip
    words, outputs, blocks = drawn(seed, design, segments)
    expected = one_by_one(design, words, outputs, blocks, segments)
    rows, columns = words
    fields = fields_of(design, segments)
    found = block_work(rows, columns, outputs, blocks, fields, design.pes)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("look_ahead", [0, 2])
def test_more_steps_than_a_field_counts(look_ahead: int) -> None:
    design = replace(SPARSETRAIN, lanes=4, pes=2, look_ahead=look_ahead)
    steps = MOST_STEPS + 20
    full = np.full((1, 3, steps), 15, np.uint64)
    blocks = Cut(
        groups=1, rows=3, columns=3, steps=steps, tile_rows=3, tile_columns=4, block_steps=steps
    ).blocks
    outputs = (np.zeros((0, 0, 0), np.bool_), np.arange(3).reshape(1, 1, 3), 3)
    (found,) = block_work(full, full, outputs, blocks, fields_of(design, 1), 2)
    assert found.tolist() == [9 * steps, 36 * steps, 9, 9 * steps, 6 * steps, 9 * steps]


def test_more_rows_than_a_batch_has_words() -> None:
    """A block's rows are never in two batches."""
    design, rows, steps = replace(SPARSETRAIN, lanes=4, pes=2), BATCH + 45, 4
    draws = np.random.default_rng(5)
    words: Any = tuple(
        draws.integers(0, 16, (1, many, steps)).astype(np.uint64) for many in (rows, 3)
    )
    blocks = Cut(
        groups=1, rows=rows, columns=3, steps=steps, tile_rows=rows, tile_columns=4,
        block_steps=steps,
    ).blocks  # fmt: skip
    outputs = (np.zeros((0, 0, 0), np.bool_), np.arange(3).reshape(1, 1, 3), rows)
    found = block_work(words[0], words[1], outputs, blocks, fields_of(design, 1), 2)
    assert np.array_equal(found, one_by_one(design, words, outputs, blocks, 1))
