"""Steps that stay in the loaders' scratchpads, against memories that are written and read."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.machines.sparsetrain.design import SPARSETRAIN, SparseTrain
from archsim.machines.sparsetrain.keeping import Kept, kept_of
from archsim.machines.sparsetrain.tiling import COLUMN, COLUMNS, GROUP, ROW, ROWS, STEP, STEPS, Cut

PES = 2


def vectors(columns: int, design: SparseTrain, cut: Cut) -> int:
    """Of so many columns: those of a PE in its segments at once are one."""
    return len({(at // (design.pes * cut.segments), at % design.pes) for at in range(columns)})


def holds_what_is_read(kept: Kept, keys: list[tuple[int, ...]], room: int) -> None:
    """Steps are read where they were written, by the block that they are of, and lie in it."""
    memory: dict[int, tuple[tuple[int, ...], int]] = {}
    for number, key in enumerate(keys):
        place, steps = int(kept.place[number]), int(kept.steps[number])
        own = {place + at: (key, at) for at in range(steps)}
        assert not (kept.keep[number] and kept.again[number])
        if kept.keep[number]:
            assert place + steps <= room
            memory |= own
        if kept.again[number]:
            assert all(memory.get(at) == what for at, what in own.items())


@st.composite
def cuts(draw: st.DrawFn) -> Cut:
    """Tiles have columns for all segments of all PEs."""
    whole, part, segments = st.integers(1, 13), st.integers(1, 5), draw(st.sampled_from([1, 2]))
    return Cut(
        groups=draw(st.integers(1, 5)), rows=draw(whole), columns=draw(whole), steps=draw(whole),
        tile_rows=draw(part), tile_columns=PES * segments * draw(st.integers(1, 3)),
        block_steps=draw(part), segments=segments, by_columns=draw(st.booleans()),
    )  # fmt: skip


@given(cuts(), st.integers(0, 80), st.integers(0, 80), st.booleans())
def test_steps_are_read_where_they_were_written(
    cut: Cut, rows_room: int, columns_room: int, dealt: bool
) -> None:
    design = replace(
        SPARSETRAIN, pes=PES, lanes=4, row_scratchpad=rows_room, column_scratchpad=columns_room
    )
    blocks = cut.blocks
    rows, columns = kept_of(design, cut, blocks, dealt=dealt)
    assert rows.steps.tolist() == [int(one[ROWS] * one[STEPS]) for one in blocks]
    own = [vectors(int(one[COLUMNS]), design, cut) * int(one[STEPS]) for one in blocks]
    assert columns.steps.tolist() == own
    for kept, at, room in ((rows, ROW, rows_room), (columns, COLUMN, columns_room)):
        keys = [(int(one[GROUP]), int(one[at]), int(one[STEP])) for one in blocks]
        holds_what_is_read(kept, keys, room)
    assert not (dealt and (columns.keep | columns.again).any())


@pytest.mark.parametrize("by_columns", [False, True])
def test_with_room_for_all_every_step_crosses_once(by_columns: bool) -> None:
    cut = Cut(groups=5, rows=12, columns=12, steps=5, tile_rows=4, tile_columns=4, block_steps=2,
              by_columns=by_columns)  # fmt: skip
    design = replace(SPARSETRAIN, pes=PES, lanes=4, row_scratchpad=1000, column_scratchpad=1000)
    for kept, at in zip(kept_of(design, cut, cut.blocks, dealt=False), (ROW, COLUMN), strict=True):
        keys = Counter((one[GROUP], one[at], one[STEP]) for one in cut.blocks)
        assert len(keys) == 5 * 3 * 3
        assert kept.kept_steps == 5 * 12 * 5
        assert kept.again_steps == 2 * kept.kept_steps


def test_a_step_that_is_used_once_is_not_kept() -> None:
    cut = Cut(groups=2, rows=4, columns=4, steps=3, tile_rows=4, tile_columns=4, block_steps=3)
    design = replace(SPARSETRAIN, pes=PES, lanes=4, row_scratchpad=100, column_scratchpad=100)
    for kept in kept_of(design, cut, cut.blocks, dealt=False):
        assert not np.any(kept.keep | kept.again)
        assert kept.kept_steps == kept.again_steps == 0
