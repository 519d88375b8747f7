"""Words that are read by masks of whole lanes are those that are read bit by bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from archsim.memories.boveda.scratchpad import Boveda
from archsim.memories.faulty.bank import FaultyBank
from archsim.memories.faulty.scratchpad import Faulty
from archsim.memory import Plain, PlainBank, Use
from archsim.memory.at_once import seen
from archsim.numbers import IntArray

PLAIN = Plain(capacity_bytes=1 << 16)
USES = {
    "bytes": ((8,) * 5, (True,) * 5),
    "scales": ((4, 4, 6, 1), (True, True, False, False)),
    "sums": ((33, 64, 24), (True, True, True)),
}
FAULTS: dict[str, dict[str, Any]] = {
    "flips": {},
    "one way": {"zero_to_one": 0.7, "one_to_zero": 0.2, "stuck": 0.1},
    "columns": {"column_shape": 0.5, "interleave": 2},
    "at times": {"persistent": 0.5, "draw": 3},
    "protected": {"protected_bits": (0,)},
}


def _words(bits: tuple[int, ...], count: int) -> IntArray:
    """Also beyond the lanes' widths, whose lowest bits are kept."""
    draws = np.random.default_rng(count)
    return draws.integers(-(1 << 62), 1 << 62, (count, len(bits)))


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("count", [1, 300])
def test_masks_of_lanes_are_the_cells(use: str, faults: str, count: int) -> None:
    bits, signed = USES[use]
    for half in (0, 1):
        own = Use(name="x", field="x", lane_bits=bits, lane_signed=signed, half=half)
        words = _words(bits, count)
        for memory in (
            Faulty(inner=PLAIN, rate=0.2, chip=2, **FAULTS[faults]),
            FaultyBank(rate=0.2, chip=2, **FAULTS[faults]),
        ):
            masks = memory.masks(own, count)
            assert masks is not None
            direct = masks.read(words)
            right = memory.read_back(own, memory.stored(own, words), count)
            assert (direct == right).all()
            assert (seen(memory, own, words) == right).all()
            at = masks.failing
            within = at[0] < count
            some = at[0][within], at[1][within]
            assert (masks.read_at(some, words[some]) == right[some]).all()
            others = np.ones(words.shape, bool)
            others[some] = False
            plain = PLAIN.read_back(own, PLAIN.stored(own, words), count)
            assert (right[others] == plain[others]).all()
            assert (direct != plain).any()


@dataclass(frozen=True, kw_only=True)
class Turned(PlainBank):
    """Words that lie in their cells otherwise."""

    kind: ClassVar[str] = "turned"

    def stored(self, use: Use, words: IntArray) -> Any:
        return super().stored(use, ~words)

    def read_back(self, use: Use, cells: Any, words: int) -> IntArray:
        return ~super().read_back(use, cells, words)


def test_other_forms_go_by_their_cells() -> None:
    use = Use(name="x", field="x", lane_bits=(8,) * 16, lane_signed=(True,) * 16)
    words = np.random.default_rng(0).integers(-128, 128, (64, 16))
    for memory in (
        Faulty(inner=Boveda(capacity_bytes=1 << 16), rate=0.05),
        Faulty(inner=Faulty(inner=PLAIN, rate=0.05), rate=0.05, chip=1),
        FaultyBank(inner=Turned(), rate=0.05, zero_to_one=1.0),
    ):
        assert memory.masks(use, len(words)) is None
        right = memory.read_back(use, memory.stored(use, words), len(words))
        assert (seen(memory, use, words) == right).all()
        assert (right != words).any()


def test_masks_of_large_memories_are_not_kept() -> None:
    use = Use(name="x", field="x", lane_bits=(8,) * 16, lane_signed=(True,) * 16)
    words = np.zeros(((1 << 13) + 1, 16), np.int64)
    assert Faulty(inner=PLAIN, rate=0.05).masks(use, len(words)) is None
    assert Faulty(inner=PLAIN, rate=0.05).masks(use, len(words) - 1) is not None
