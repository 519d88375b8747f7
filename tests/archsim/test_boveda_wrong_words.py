"""Compressed words in cells that fail: the few that are read wrong are those that the way over
every bit finds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from archsim.errors import InputError
from archsim.memories.boveda.scratchpad import Boveda
from archsim.memories.faulty.scratchpad import Faulty
from archsim.memory import Plain, Use
from archsim.memory.at_once import seen, wrong_of
from archsim.numbers import IntArray

FAULTS: tuple[dict[str, Any], ...] = (
    {"rate": 0.001},
    {"rate": 0.02},
    {"rate": 0.3},
    {"rate": 0.1, "zero_to_one": 0.5, "one_to_zero": 0.4, "stuck": 0.1},
    {"rate": 0.05, "column_shape": 0.2, "persistent": 0.5, "draw": 3},
)


def _case(number: int) -> tuple[Faulty, Use, IntArray]:
    """A memory, how it is read, and tiles of it; values of all widths."""
    rng = np.random.default_rng(number)
    bits = int(rng.choice([4, 8, 16]))
    group, columns, units = (
        int(rng.choice(some)) for some in ([1, 3, 4, 16], [1, 2, 3], [1, 4, 16])
    )
    signed = bool(rng.integers(2))
    lanes, words, tiles = group * columns, int(rng.integers(1, 50)), int(rng.integers(1, 4))
    use = Use(
        name="ifmap", field="ifmap", lane_bits=(bits,) * lanes, lane_signed=(signed,) * lanes,
        half=int(rng.integers(2)),
    )  # fmt: skip
    inner = Boveda(capacity_bytes=2 * 64 * bits * lanes // 8, group=group, unit_words=units)
    low, high = inner.format(use).limits
    wide = rng.integers(low, high + 1, (tiles, words, lanes))
    drawn = wide >> rng.integers(0, bits, (tiles, words, 1))
    return Faulty(inner=inner, **FAULTS[number % len(FAULTS)], chip=number), use, drawn


@pytest.mark.parametrize("number", range(60))
def test_words_are_those_of_every_bit(number: int) -> None:
    memory, use, tiles = _case(number)
    right = np.stack([memory.read_back(use, memory.stored(use, one), len(one)) for one in tiles])
    found = tiles.reshape(-1).copy()
    places, change = wrong_of(memory, use, tiles)
    assert len(set(places.tolist())) == len(places) and (change != 0).all()
    found[places] += change
    assert np.array_equal(found.reshape(tiles.shape), right)
    assert np.array_equal(seen(memory, use, tiles[0]), right[0])
    narrow = tiles.astype(np.int32)
    assert all(map(np.array_equal, wrong_of(memory, use, narrow), (places, change)))


def test_words_that_do_not_fit_are_refused() -> None:
    memory, use, _ = _case(1)
    _, high = Boveda(capacity_bytes=64, group=1).format(use).limits
    with pytest.raises(InputError, match="words must be at most those of the directory"):
        wrong_of(memory, use, np.full((1, 200, use.lanes), high))
    with pytest.raises(InputError, match="words must take at most 64 rows"):
        wrong_of(memory, use, np.full((1, 100, use.lanes), high))


def test_memories_around_are_read_by_their_cells() -> None:
    """Cells that fail twice, and words as they are, have no short way over compressed rows."""
    memory, use, tiles = _case(2)
    plain = replace(memory, inner=Plain(capacity_bytes=4096))
    for around in (Faulty(inner=memory, rate=0.01), plain):
        found = tiles.reshape(-1).copy()
        places, change = wrong_of(around, use, tiles)
        found[places] += change
        own = [around.read_back(use, around.stored(use, one), len(one)) for one in tiles]
        assert np.array_equal(found.reshape(tiles.shape), np.stack(own))
