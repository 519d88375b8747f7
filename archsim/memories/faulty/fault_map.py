"""Which cells of a memory fail on a chip, at which rate, and how: a value that stores no map.

A cell is drawn by a hash of (chip, address, bit) (`cell_hash`) and fails where the draw is below
the rate: so the faults at a lower rate are some of those at a higher one, as on chips whose supply
falls (Stutz et al., MLSys 2021, section 3), and a memory of any size needs no map.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from archsim.errors import require, require_positive, require_whole
from archsim.memories.faulty import injection
from archsim.memories.faulty.cell_hash import (
    KIND_BITS,
    THRESHOLD_BITS,
    key_of,
    lane_constants,
)
from archsim.memories.faulty.laws import Independent, Law
from archsim.memories.faulty.measured import Measured
from energy_models.errors import EnergyError
from energy_models.voltage import bit_error_rate

Bytes = npt.NDArray[np.uint8]

MOST_CHIPS = 1 << 32
MOST_DRAWS = 1 << 10
MOST_WORDS = 1 << 32

KINDS = 1 << KIND_BITS

DRAW_TURN = 20
"""A draw's number stands above the address."""

SOMETIMES = 1 << (THRESHOLD_BITS - 1)
"""A cell that fails sometimes does in half of the draws."""


@dataclass(frozen=True, kw_only=True)
class FaultMap:
    """The faults of a memory of `words` words of `word_bits`.

    chip: its number, the seed; memory: a name, so that memories of a chip differ.
    rate: the share of cells that may fail; or voltage: the supply over V_min that stands for it
    (`energy_models.voltage`).
    zero_to_one, one_to_zero: the shares of the faulty cells that read 1, or 0, whatever is stored;
    stuck: those that do either, half of them each; all others flip what is stored.  Shares count in
    1/256, rates in 2^−24.
    persistent: the share of the faulty cells that fail always, those that fail at the lowest rates;
    the others fail in half of the draws, and draw says which of these.
    protected_bits: of a word, which never fail.
    columns: of the array, word_bits · 2^n: words lie side by side in its rows; None: one a row.
    interleaved: bit by bit: neighbouring bits of a word lie 2^n columns apart.
    law: how rates differ over the columns.
    measured: the faults themselves; then no rate is given, and of the rest nothing counts.  Words
    lie in its array from the first row on, those of `second_half` and behind in its lower half.

    Raises `InputError` for what cannot be.
    """

    words: int
    word_bits: int
    chip: int = 0
    memory: str = ""
    rate: float | None = None
    voltage: float | None = None
    zero_to_one: float = 0.0
    one_to_zero: float = 0.0
    stuck: float = 0.0
    persistent: float = 1.0
    draw: int = 0
    protected_bits: tuple[int, ...] = ()
    columns: int | None = None
    interleaved: bool = False
    law: Law = field(default_factory=Independent)
    measured: Measured | None = None
    second_half: int = 0

    def __post_init__(self) -> None:
        require_positive(words=self.words, word_bits=self.word_bits)
        require(self.words <= MOST_WORDS, f"words must be at most {MOST_WORDS}, not {self.words}")
        require_numbers(self.chip, self.draw)
        if self.measured is None:
            rate_of(self.rate, self.voltage)
        require_shares(self.zero_to_one, self.one_to_zero, self.stuck, self.persistent)
        require_protected(self.protected_bits, self.word_bits, "word")
        side = self.side_by_side
        require(
            side * self.word_bits == (self.columns or self.word_bits) and side & (side - 1) == 0,
            f"columns must be a power of two times the {self.word_bits} bits of a word, not "
            f"{self.columns}",
        )

    @property
    def bit_rate(self) -> float:
        """The share of cells that may fail."""
        return self.measured.rate if self.measured else rate_of(self.rate, self.voltage)

    @property
    def side_by_side(self) -> int:
        """Words in a row of the array."""
        return max((self.columns or self.word_bits) // self.word_bits, 1)

    @property
    def key(self) -> int:
        """What stands for chip and memory in the hash."""
        return key_of(self.chip, self.memory)

    @property
    def coin_key(self) -> int:
        """What stands for them where cells fail sometimes."""
        return ~self.key & 0xFFFFFFFF

    @cached_property
    def thresholds(self) -> npt.NDArray[np.uint32]:
        """[words side by side, word_bits]: a cell fails where its draw is below."""
        return self._thresholds(self.bit_rate)

    @cached_property
    def always_thresholds(self) -> npt.NDArray[np.uint32]:
        """[words side by side, word_bits]: it fails in every draw where its draw is below."""
        return self._thresholds(self.bit_rate * self.persistent)

    @property
    def kind_limits(self) -> tuple[int, int]:
        """Kinds below the first fail where 0 is stored, from the second on where 1 is."""
        return kind_limits(self.zero_to_one, self.one_to_zero, self.stuck)

    @property
    def expected_rate(self) -> float:
        """The mean over the columns: below the rate where some fail whole, or are protected."""
        return float(self.thresholds.mean()) / (1 << THRESHOLD_BITS)

    def masks(self, first: int = 0, count: int | None = None) -> tuple[Bytes, Bytes]:
        """Of words from `first` on: which bits are wrong if 0 is stored, and which if 1 is.

        Each [count, ⌈word_bits / 8⌉], a word's lowest bit first.
        """
        count = self.words - first if count is None else count
        require_whole(0, "not be negative", first=first, count=count)
        require(
            first + count <= self.words,
            f"first + count must be at most the {self.words} words, not {first + count}",
        )
        if self.measured is not None:
            return self._of_measured(self.measured, first, count)
        found = self._masks(self.thresholds, first, count, self.key, self.kind_limits)
        if self.persistent == 1:
            return found
        always = self._masks(self.always_thresholds, first, count, self.key, self.kind_limits)
        coins = self._coins(first, count)
        return always[0] | found[0] & coins, always[1] | found[1] & coins

    def inject(self, values: npt.NDArray[np.generic], first: int = 0) -> npt.NDArray[np.generic]:
        """What is read of values of whole bytes, which lie one behind the other from word `first`.

        A copy, of the same shape and type.  word_bits must be a multiple of the value's bits.
        """
        size = values.dtype.itemsize
        require(
            self.word_bits % (8 * size) == 0,
            f"word_bits must be a multiple of the {8 * size} bits of a value, not {self.word_bits}",
        )
        given = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        word_bytes = self.word_bits // 8
        words = -(-len(given) // word_bytes)
        if_zero, if_one = (one.reshape(-1)[: len(given)] for one in self.masks(first, words))
        found = given ^ (if_zero if if_zero is if_one else (if_zero & ~given | if_one & given))
        return found.view(values.dtype).reshape(values.shape)

    def at(self, rate: float) -> FaultMap:
        """The same chip at another rate."""
        return replace(self, rate=rate, voltage=None)

    def _of_measured(self, found: Measured, first: int, count: int) -> tuple[Bytes, Bytes]:
        """Of cells that were measured."""
        words = np.arange(first, first + count)
        if self.second_half:
            half = found.rows * (found.columns // self.word_bits) // 2
            words = np.where(words < self.second_half, words, words - self.second_half + half)
        masks = found.masks(words, self.word_bits, alternate=self.interleaved)
        if_zero, if_one = (np.packbits(one, axis=1, bitorder="little") for one in masks)
        return if_zero, if_one

    def _thresholds(self, rate: float) -> npt.NDArray[np.uint32]:
        columns = self.side_by_side * self.word_bits
        rates = np.minimum(rate * self.law.factors(self.chip, self.memory, columns), 1)
        found = np.rint(rates * (1 << THRESHOLD_BITS)).astype(np.uint32)
        if self.interleaved:
            found = np.ascontiguousarray(found.reshape(self.word_bits, self.side_by_side).T)
        found = found.reshape(self.side_by_side, self.word_bits)
        found[:, list(self.protected_bits)] = 0
        return found

    def _masks(
        self,
        thresholds: npt.NDArray[np.uint32],
        first: int,
        count: int,
        key: int,
        kinds: tuple[int, int],
    ) -> tuple[Bytes, Bytes]:
        """Of the cells below such thresholds."""
        below, above = kinds
        shape = count, -(-self.word_bits // 8)
        flips = (below, above) == (KINDS, 0)
        if_zero = np.zeros(shape, np.uint8)
        if_one = if_zero if flips else np.zeros(shape, np.uint8)
        side = self.side_by_side
        for place in range(side):
            begin = (place - first) % side
            parts = if_zero[begin::side], if_one[begin::side]
            limits = np.empty((self.word_bits, 3), np.uint32)
            limits[:, 0], limits[:, 1], limits[:, 2] = thresholds[place], below, above
            injection.fill(self._lanes, limits, (first + begin, side, key), parts)
        return if_zero, if_one

    @cached_property
    def _lanes(self) -> npt.NDArray[np.uint32]:
        return np.array([lane_constants(bit) for bit in range(self.word_bits)], np.uint32)

    def _coins(self, first: int, count: int) -> Bytes:
        """[count, bytes]: which cells that fail sometimes do in this draw."""
        thresholds = np.full((1, self.word_bits), SOMETIMES, np.uint32)
        alone = replace(self, columns=None, law=Independent())
        first += self.draw << DRAW_TURN
        return alone._masks(thresholds, first, count, self.coin_key, (KINDS, 0))[0]


def rate_of(rate: float | None, voltage: float | None) -> float:
    """The one of both that is given, as a rate.  Raises `InputError`."""
    require(
        (rate is None) != (voltage is None),
        "a faulty memory needs a rate or a voltage (of its cells, over the lowest without errors), "
        f"not {'both' if rate is not None else 'neither'}",
    )
    if voltage is not None:
        try:
            return bit_error_rate(voltage)
        except EnergyError as error:
            require(False, f"voltage: {error}")
    found = rate if rate is not None else 0.0
    require(0 <= found <= 1, f"rate must be from 0 to 1, not {shown(found)}")
    return float(found)


def shown(number: float) -> str:
    """As short as it can be without being another number."""
    return f"{number:g}" if float(f"{number:g}") == number else f"{number}"


def require_numbers(chip: int, draw: int) -> None:
    """Refuse what the hash could not tell apart."""
    require_whole(0, "not be negative", chip=chip, draw=draw)
    require(chip < MOST_CHIPS, f"chip must be below {MOST_CHIPS}, not {chip}")
    require(draw < MOST_DRAWS, f"draw must be below {MOST_DRAWS}, not {draw}")


def require_shares(zero_to_one: float, one_to_zero: float, stuck: float, persistent: float) -> None:
    """Refuse shares that are none, or more than all."""
    shares = {"zero_to_one": zero_to_one, "one_to_zero": one_to_zero, "stuck": stuck}
    for name, share in (shares | {"persistent": persistent}).items():
        require(0 <= share <= 1, f"{name} must be from 0 to 1, not {shown(share)}")
    total = sum(shares.values())
    require(total <= 1, f"{' + '.join(shares)} must be at most 1, not {shown(total)}")


def require_protected(bits: tuple[int, ...], most: int, what: str) -> None:
    """Refuse protected bits that are not there."""
    for bit in bits:
        require_whole(0, "not be negative", protected_bits=bit)
        require(bit < most, f"protected_bits must be below the {most} bits of a {what}, not {bit}")


def kind_limits(zero_to_one: float, one_to_zero: float, stuck: float) -> tuple[int, int]:
    """Kinds below the first fail where 0 is stored, from the second on where 1 is."""
    above = round(KINDS * (zero_to_one + stuck / 2))
    below = max(KINDS - round(KINDS * (one_to_zero + stuck / 2)), above)
    return below, above


__all__ = ["FaultMap"]
