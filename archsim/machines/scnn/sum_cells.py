"""Sums in a PE's banks: the cells that they lie in, where they go, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from archsim.codecs.zero_run import BoolArray
from archsim.layer.values import requantize
from archsim.machines.scnn.axis import Axis
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.mapping import Mapping
from archsim.memory import Use
from archsim.memory.at_once import (
    CodedWords,
    Reader,
    bit_by_bit,
    coded_words,
    reader,
    words_that_fail,
    wrong_bits,
)
from archsim.numbers import IntArray, wrap

Kind = TypeVar("Kind", bound=np.generic)


class AfterSums(NamedTuple):
    """What becomes of sums: the bias of each filter [K], or 0; multiplier and shift; ReLU; bits of
    an output."""

    bias: IntArray | int
    scaling: tuple[int, int]
    relu: bool
    bits: int

    def of(self, filters: slice | IntArray, sums: IntArray) -> IntArray:
        """Outputs of sums [..., filters], or of sums [n] of so many filters."""
        bias = self.bias if isinstance(self.bias, int) else self.bias[filters]
        return requantize(sums, bias, self.scaling, self.relu, self.bits)


@dataclass(frozen=True, kw_only=True, eq=False)
class SumCells:
    """Of a half of the banks of a mapping's PEs, by the sums [PEs, addresses] that lie there."""

    design: Scnn
    mapping: Mapping
    half: int

    @cached_property
    def _use(self) -> Use:
        return self.design.use("accumulator").in_half(self.half)

    @cached_property
    def _words(self) -> IntArray:
        """[PEs, addresses]: the word of each sum among those of all banks."""
        design, mapping = self.design, self.mapping
        places = (mapping.place(pe) for pe in range(mapping.used_pes))
        pes = np.array([row * design.grid_columns + column for row, column in places])
        entry, bank = np.divmod(np.arange(mapping.accumulators), design.banks)
        return (pes[:, None] * design.banks + bank << design.bank_entry_bits) + entry

    @cached_property
    def masks(self) -> tuple[IntArray, IntArray] | None:
        """[PEs, addresses] each: bits that read 1 where 0 is stored, and where 1 is; None where
        bits do not fare by themselves."""
        memory, count = self.design.accumulator_memory, self.design.bank_words
        found = bit_by_bit(memory, self._use, count)
        return None if found is None else (found[0][self._words, 0], found[1][self._words, 0])

    @cached_property
    def coded(self) -> CodedWords | None:
        """Of sums [PEs, addresses] behind check bits; None without any, and where they are not
        known to be read by a code."""
        memory, count = self.design.accumulator_memory, self.design.bank_words
        found = coded_words(memory, self._use, count)
        if found is None:
            return None
        return found._replace(zero=found.zero[self._words], one=found.one[self._words])

    @cached_property
    def fails(self) -> BoolArray:
        """[PEs, addresses]: whether a sum may be read otherwise than it was written."""
        if self.masks is not None:
            return wrong_bits(self._use, self.masks) != 0  # words have one lane
        memory, count = self.design.accumulator_memory, self.design.bank_words
        return words_that_fail(memory, self._use, count)[self._words]

    @cached_property
    def _reader(self) -> Reader:
        return reader(self.design.accumulator_memory, self._use, self.design.bank_words)

    def read_at(self, places: tuple[IntArray, IntArray], values: IntArray) -> IntArray:
        """What is read of values [n] stored at places: PEs and addresses, [n] each."""
        if self.masks is not None:
            zero, one = (mask[places] for mask in self.masks)
            return read_by((zero, one), values, self.design.accumulator_bits)
        return self._reader(self._words[places], values[:, None])[:, 0]

    def read(self, sums: IntArray) -> IntArray:
        """What is read of sums [PEs, addresses], all of them stored."""
        found, (pes, places) = sums.copy(), np.nonzero(self.fails)
        found[pes, places] = self.read_at((pes, places), sums[pes, places])
        return found


def read_by(masks: tuple[IntArray, IntArray], values: IntArray, bits: int) -> IntArray:
    """What is read of values; masks: bits of them that read 1 where 0 is stored, and where 1 is."""
    zero, one = masks
    return wrap(values & one | ~values & zero, bits)


def planes(mapping: Mapping, sums: npt.NDArray[Kind]) -> npt.NDArray[Kind]:
    """A view [PEs, rows, columns, filters of the pitch] of sums [PEs, addresses]."""
    shape = mapping.rows.extent, mapping.columns.extent, mapping.filter_pitch
    return sums.reshape(len(sums), *shape)


class Move(NamedTuple):
    """Sums from a PE to another, rows and columns of either one's region; kept: also where they
    were."""

    source: tuple[int, slice, slice]
    target: tuple[int, slice, slice]
    kept: bool


@lru_cache(maxsize=32)
def moves_of(mapping: Mapping) -> tuple[tuple[Move, ...], ...]:
    """Halos to the left, to the right, up and down, then copies: those of a step side by side."""
    steps = (
        tuple(_moves_to(mapping, step, across=across, kept=kept))
        for kept in (False, True)
        for across in (True, False)
        for step in (-1, 1)
    )
    return tuple(one for one in steps if one)


def _moves_to(mapping: Mapping, step: int, *, across: bool, kept: bool) -> Iterator[Move]:
    """Of every PE to the one before, or the next one, of its row (across) or of its column."""
    for pe in range(mapping.used_pes):
        place = mapping.place(pe)
        axis, at = (mapping.columns, place[1]) if across else (mapping.rows, place[0])
        if not 0 <= at + step < axis.pes:
            continue
        beside, other = (mapping.rows, place[0]) if across else (mapping.columns, place[1])
        moved = _copied(axis, at, step) if kept else _halo(axis, at, step)
        along = _along(beside, other, across=across, kept=kept)
        if not (moved and along):
            continue
        to = pe + step * (1 if across else mapping.columns.pes)
        ends: list[tuple[int, slice, slice]] = []
        for number, one in ((pe, at), (to, at + step)):
            pair = _in_region(along, beside.region(other)), _in_region(moved, axis.region(one))
            first, second = pair if across else pair[::-1]
            ends.append((number, first, second))
        yield Move(source=ends[0], target=ends[1], kept=kept)


def _halo(axis: Axis, pe: int, step: int) -> range:
    """Outputs whose sums a PE sends to the one before, or to the next."""
    region = axis.region(pe)
    if step < 0:
        return range(region.start, region.start + axis.below(pe))
    return range(region.stop - axis.above(pe), region.stop)


def _copied(axis: Axis, pe: int, step: int) -> range:
    """Outputs that the PE before, or the next one, has in windows of its own."""
    own, (before, behind) = axis.owned(pe), axis.sent(pe)
    if step < 0:
        return range(own.start, own.start + before)
    return range(own.stop - behind, own.stop)


def _along(axis: Axis, pe: int, *, across: bool, kept: bool) -> range:
    """Outputs along the border that sums cross: all of a region to the sides and, up and down, the
    PE's own; of copies its own, then all that it holds."""
    own = axis.owned(pe)
    if not kept:
        return axis.region(pe) if across else own
    if across:
        return own
    return range(own.start - axis.copies_before(pe), own.stop + axis.copies_behind(pe))


def _in_region(outputs: range, region: range) -> slice:
    return slice(outputs.start - region.start, outputs.stop - region.start)


__all__ = ["AfterSums", "Move", "SumCells", "moves_of", "planes", "read_by"]
