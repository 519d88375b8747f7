"""A stream of vectors whose cells fail: values and indices of compressed lists, in every PE.

A vector's element is a value and above it its index, so that `protected_bits` says of both what
does not fail: from value_bits on they are the index's.  The flag `last` lies beside, and does not
fail: a machine counts its lists by it.  What a wrong index does is the machine's to say.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from archsim.blocks import Components, Events
from archsim.errors import InputError, require
from archsim.memories.faulty.cell_faults import (
    HALF_BIT,
    LEAST_KEPT,
    MOST_KEPT_BITS,
    MOST_ROWS,
    CellFaults,
    wrong_bits,
    wrong_of_rows,
)  # fmt: skip
from archsim.memories.faulty.components import at_voltage
from archsim.memories.faulty.fault_map import FaultMap
from archsim.memory import Cells, PlainStream, StreamMemory, StreamUse, Use
from archsim.memory.at_once import BoolArray
from archsim.memory.bits import Bits, words_of
from archsim.memory.plain import WORDS
from archsim.memory.seam import Access, StreamWords
from archsim.numbers import AnyIntArray, IntArray, bit_ceil


def words_use(use: StreamUse) -> Use:
    """Vectors as words of elements, without their flags."""
    return Use(
        name="activation",
        field="activation_memory",
        lane_bits=(use.element_bits,) * use.lanes,
        lane_signed=(False,) * use.lanes,
        half=use.half,
    )


@dataclass(frozen=True, kw_only=True)
class FaultyStream(CellFaults):
    """inner: the stream whose cells fail, one that keeps vectors as they are; the rest: how
    (`CellFaults`, `FaultMap`).

    With `voltage` its SRAMs are priced at that supply.
    """

    inner: StreamMemory = field(default_factory=PlainStream)

    kind: ClassVar[str] = "faulty"
    access: ClassVar[Access] = "stream"
    stepped: ClassVar[bool] = False
    by_value: ClassVar[bool] = False

    @property
    def exact(self) -> bool:
        """At no rate at all."""
        return self.bit_rate == 0 and self.inner.exact

    @property
    def latency_cycles(self) -> int:
        return self.inner.latency_cycles

    def check(self, use: StreamUse) -> None:
        """As the inner one; raise `InputError` for protected bits beyond an element, a measured map
        of another geometry, a compressed inner one, and for more vectors than the hash tells
        apart."""
        self.inner.check(use)
        name = words_use(use).field
        require(
            self.inner.exact and not self.inner.by_value,
            f"{name}: inner must be plain, not {self.inner.kind}: only vectors that lie as they "
            "are have failing cells",
        )
        words = words_use(use)
        self.check_lanes(words)
        try:
            self.check_geometry(words, WORDS, (use.pes << use.row_bits, words.word_bits))
        except InputError as error:
            raise InputError(f"{name}: {error}") from error
        rows = bit_ceil(max(use.pes, 2)) << use.row_bits
        require(
            rows <= MOST_ROWS,
            f"{name}: the memories of all PEs must have at most {MOST_ROWS} vectors to fail, in "
            f"powers of two, not {rows}",
        )

    def words_map(self, use: StreamUse) -> FaultMap:
        """The faults of vectors as they are."""
        whole = words_use(use)
        return self.fault_map(whole, WORDS, whole.word_bits)

    def as_read(
        self, use: StreamUse, elements: tuple[IntArray, IntArray], rows: IntArray
    ) -> tuple[IntArray, IntArray]:
        """With the faults of their cells."""
        values, indices = elements
        low, sign = (1 << use.value_bits) - 1, np.int64(1) << (use.value_bits - 1)
        some, zero, one = self._masks_of(use, rows)
        words = values[some] & low | indices[some] << use.value_bits
        words = words & one | ~words & zero
        values, indices = values.copy(), indices.copy()
        values[some], indices[some] = ((words & low) ^ sign) - sign, words >> use.value_bits
        return values, indices

    def _masks_of(self, use: StreamUse, rows: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Of rows by their numbers which have a failing cell [n]; of those [n, lanes] what bits of
        elements read where 0 is stored, and where 1 is."""
        faults, first, bits = self.words_map(use), use.half << HALF_BIT, words_use(use).lane_bits
        count = bit_ceil(max(int(rows.max(initial=0)) + 1, LEAST_KEPT))
        if faults.measured is None and count * faults.word_bits <= MOST_KEPT_BITS:
            fails, zero, one = _element_masks(faults, first, count, bits)
            some = np.flatnonzero(fails[rows])
            return some, zero[rows[some]], one[rows[some]]
        return np.arange(len(rows)), *_as_numbers(wrong_of_rows(faults, first, rows), bits)

    def entries(self, rows: int) -> int:
        """As the inner one."""
        return self.inner.entries(rows)

    def content(self, use: StreamUse, lists: Any, pes: int) -> None:
        """Nothing hangs on values."""

    def least_bits(self, use: StreamUse, tensor: AnyIntArray) -> int:
        """As the inner one."""
        return self.inner.least_bits(use, tensor)

    def why_not(self, use: StreamUse, lists: Any, pes: int) -> str | None:
        """As the inner one, of the lists that are meant."""
        return self.inner.why_not(use, lists, pes)

    def macros(
        self, name: str, shape: tuple[int, int, int, int], read: Events, write: Events
    ) -> Components:
        """The inner one's at the voltage: what makes cells fail on an FPGA is not in the chip."""
        return at_voltage(self.inner.macros(name, shape, read, write), self.voltage)

    def words(self, use: StreamUse) -> tuple[StreamWords, ...]:
        """As the inner one."""
        return self.inner.words(use)

    def logic(self, use: StreamUse, address_bits: int) -> Components:
        """As the inner one."""
        return self.inner.logic(use, address_bits)

    def state_bits(self, address_bits: int) -> tuple[int, int]:
        """As the inner one."""
        return self.inner.state_bits(address_bits)

    def event_bits(self, use: StreamUse) -> tuple[int, ...]:
        """As the inner one."""
        return self.inner.event_bits(use)

    def stored(self, use: StreamUse, vectors: IntArray) -> Cells:
        """As the inner one."""
        return self.inner.stored(use, vectors)

    def read_back(self, use: StreamUse, cells: Cells, vectors: int) -> IntArray:
        """As the inner one: faults are of whole vectors (`as_read`)."""
        return self.inner.read_back(use, cells, vectors)

    def at(self, rate: float) -> FaultyStream:
        """The same cells at another rate."""
        return replace(self, rate=rate, voltage=None)


@lru_cache(maxsize=8)
def _element_masks(
    faults: FaultMap, first: int, rows: int, lane_bits: tuple[int, ...]
) -> tuple[BoolArray, IntArray, IntArray]:
    """Of so many rows from a first one on whether one has a failing cell, and [rows, lanes] what is
    read of its bits."""
    wrong = wrong_bits(faults, first, rows)
    fails: BoolArray = np.logical_or(wrong[0].any(axis=1), wrong[1].any(axis=1))
    return fails, *_as_numbers(wrong, lane_bits)


def _as_numbers(wrong: tuple[Bits, Bits], lane_bits: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """Bits that are wrong where 0 is stored, and where 1 is, as what is read of lanes."""
    plain = (False,) * len(lane_bits)
    if_zero = words_of(wrong[0], lane_bits, plain)
    if_one = if_zero if wrong[1] is wrong[0] else words_of(wrong[1], lane_bits, plain)
    low = np.array([(1 << bits) - 1 for bits in lane_bits], np.int64)
    return if_zero, ~if_one & low


__all__ = ["FaultyStream", "words_use"]
