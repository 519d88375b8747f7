"""What a faulty memory of any way of access says of its cells, and what it does to them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from archsim.errors import InputError, require, require_whole
from archsim.memories.faulty.fault_map import FaultMap, rate_of
from archsim.memories.faulty.laws import Columns, Independent
from archsim.memories.faulty.measured import measured
from archsim.memory import FLIP_FLOPS, Cells, Use

Bits = npt.NDArray[np.uint8]

HALF_BIT = 30
"""The bit of an address that says in which half a word lies; below it stands a draw's number."""

LEAST_KEPT = 256
"""Rows whose masks are kept together, at least."""

MOST_KEPT_BITS = 1 << 23
"""Masks of more are made again each time: 64 of them are kept, two of a map."""

DIRECTORY = "directory"
"""The SRAM (`Cells`) of which `directory_map` is."""

MAPS = ("map", "directory_map")
"""Fields with the faults of an SRAM of words or rows, and of directories."""

MOST_SIDE = 16
"""Words side by side."""

MADE = ("rate", "chip", "zero_to_one", "one_to_zero", "stuck", "persistent", "draw",
        "column_shape", "protected_bits")  # fmt: skip
"""What says which cells fail where nothing was measured."""

MOST_ROWS = 1 << 20
"""Of a half: rows of which no draw reads the coins of another."""


@dataclass(frozen=True, kw_only=True)
class CellFaults:
    """The faults of a memory's cells, wherever it stands (`FaultMap` says what each field is).

    map: a file of measured faults (`measured`), in place of a rate and of all that says how cells
    fail; a voltage beside it prices alone.  It must have the memory's geometry: its rows hold the
    words of both halves, the second one's in its lower half, or those of all banks alike.  Of a
    compressed memory it is that of the rows, and directory_map that of the directories, of all
    group columns side by side.
    interleave: words side by side in a row of the array, bit by bit: neighbouring bits of a word
    lie so many columns apart, and fail apart where columns do.
    protected_bits: of every lane of a word.  column_shape: of the Gamma distribution of the rates
    of columns; None: every cell alike.  Neither is there in SRAMs of other words, as are the
    directories of compressed memories.
    """

    rate: float | None = None
    voltage: float | None = None
    chip: int = 0
    zero_to_one: float = 0.0
    one_to_zero: float = 0.0
    stuck: float = 0.0
    persistent: float = 1.0
    draw: int = 0
    column_shape: float | None = None
    protected_bits: tuple[int, ...] = ()
    map: str | None = None
    directory_map: str | None = None
    interleave: int = 1

    def __post_init__(self) -> None:
        side: Any = self.interleave
        require(
            type(side) is int and 1 <= side <= MOST_SIDE and side & (side - 1) == 0,
            f"interleave must be a power of two up to {MOST_SIDE}, not {side!r}",
        )
        self._check_map()
        given: Any = self.protected_bits
        if not isinstance(given, list | tuple):
            raise InputError(f"protected_bits must be a list of bits, not {given!r}")
        bits = tuple(cast("list[Any]", given))
        for bit in bits:
            require_whole(0, "not be negative", protected_bits=bit)
        object.__setattr__(self, "protected_bits", bits)
        if self.map is None:
            self._map("", max((0, *bits)) + 1, bits)

    def _check_map(self) -> None:
        """Raise `InputError` for a map with what would be of other faults."""
        require(
            self.map is not None or self.directory_map is None,
            "directory_map must be given beside map, the faults of the rows",
        )
        if self.map is None:
            return
        for name in MAPS:
            given: Any = getattr(self, name)
            if given is None and name != MAPS[0]:
                continue
            require(isinstance(given, str), f"{name} must be the name of a file, not {given!r}")
            measured(str(given))
        plain = {one.name: one.default for one in fields(CellFaults)}
        for name in MADE:
            require(
                getattr(self, name) == plain[name],
                f"map and {name} cannot both be given: a measured map says which cells fail",
            )

    @property
    def bit_rate(self) -> float:
        """The share of cells that may fail."""
        paths = [path for path in (self.map, self.directory_map) if path is not None]
        if paths:
            return max(measured(path).rate for path in paths)
        return rate_of(self.rate, self.voltage)

    def fault_map(self, use: Use, sram: str, row_bits: int) -> FaultMap:
        """The faults of an SRAM of words as they are, or of another one by its name (`Cells`)."""
        if self.map is not None:
            return self._of_file(use, sram, row_bits)
        if row_bits != use.word_bits:
            return self._map(f"{use.name}.{sram}", row_bits, ())
        starts = np.cumsum((0, *use.lane_bits[:-1]))
        bits = sorted(int(start) + bit for start in starts for bit in self.protected_bits)
        return self._map(f"{use.name}.{sram}", row_bits, tuple(bits))

    def _of_file(self, use: Use, sram: str, row_bits: int) -> FaultMap:
        """The measured faults.  Raises `InputError` for other geometries."""
        name = MAPS[sram == DIRECTORY]
        path = getattr(self, name)
        self.check_geometry(use, sram, (0, row_bits))
        found = measured(path)
        require(
            sram == DIRECTORY or row_bits == use.word_bits,
            f"map: {path} is of words as they are, and {use.name}'s {sram} have another form",
        )
        return FaultMap(
            words=1 << (HALF_BIT + 1),
            word_bits=row_bits,
            columns=found.columns,
            interleaved=self.interleave > 1,
            measured=found,
            second_half=0 if use.words else 1 << HALF_BIT,
        )

    def check_geometry(self, use: Use, sram: str, size: tuple[int, int]) -> None:
        """Raise `InputError` where a measured map's columns are not those of words side by side,
        or it has another number of words than there are; size: words of a half of the SRAM, 0
        where not known, and their bits."""
        if self.map is None:
            return
        name, (depth, bits) = MAPS[sram == DIRECTORY], size
        path = getattr(self, name)
        require(path is not None, f"{name} must be given beside map: {use.name}'s {sram} fails too")
        found = measured(path)
        side = found.columns // bits
        wanted = self.interleave if self.interleave > 1 else max(side, 1)
        words = use.words or 2 * depth
        halves = use.words or (f"2 x {depth}" if depth else "two halves of")
        require(
            side * bits == found.columns
            and side == wanted
            and side & (side - 1) == 0
            and (not words or found.rows * side == words)
            and (bool(use.words) or found.rows * side % 2 == 0),
            f"{name}: {path} has {found.rows} x {found.columns} cells, where {use.name} has "
            f"{halves} {'entries' if sram == DIRECTORY else 'words'} of {bits} bits, {wanted} in a "
            "row",
        )

    def check_lanes(self, use: Use) -> None:
        """Raise `InputError` for protected bits beyond a lane."""
        narrow = min(use.lane_bits)
        for bit in self.protected_bits:
            require(
                bit < narrow,
                f"protected_bits must be below the {narrow} bits of a lane, not {bit}",
            )

    def failing(self, use: Use, cells: Cells) -> Cells:
        """What is read of cells; rows of [rows, bits] or [columns, rows, bits]."""
        return {sram: self.failing_bits(use, sram, bits) for sram, bits in cells.items()}

    def failing_bits(self, use: Use, sram: str, bits: Bits) -> Bits:
        """What is read of an SRAM's cells, or of flip-flops, which do not fail."""
        if sram == FLIP_FLOPS:
            return bits
        rows = np.moveaxis(bits, 0, -2) if bits.ndim == 3 else bits
        flat = np.ascontiguousarray(rows).reshape(len(rows), -1)
        require(
            len(flat) <= MOST_ROWS,
            f"a faulty memory must have at most {MOST_ROWS} rows a half, not {len(flat)}",
        )
        faults = self.fault_map(use, sram, flat.shape[1])
        if_zero, if_one = wrong_bits(faults, use.half << HALF_BIT, len(flat))
        wrong = if_zero if if_zero is if_one else np.where(flat, if_one, if_zero)
        read = (flat ^ wrong).reshape(rows.shape)
        return np.moveaxis(read, -2, 0) if bits.ndim == 3 else read

    def _map(self, memory: str, bits: int, protected: tuple[int, ...]) -> FaultMap:
        return FaultMap(
            words=1 << (HALF_BIT + 1),
            word_bits=bits,
            chip=self.chip,
            memory=memory,
            rate=self.rate,
            voltage=self.voltage,
            zero_to_one=self.zero_to_one,
            one_to_zero=self.one_to_zero,
            stuck=self.stuck,
            persistent=self.persistent,
            draw=self.draw,
            protected_bits=protected,
            columns=bits * self.interleave,
            interleaved=self.interleave > 1,
            law=Independent() if self.column_shape is None else Columns(shape=self.column_shape),
        )


def wrong_bits(faults: FaultMap, first: int, rows: int) -> tuple[Bits, Bits]:
    """[rows, word_bits], of rows from `first` on: 1 where a bit is wrong if 0, or if 1, is stored.

    Both are one array where they are alike.  Tiles are read from the same rows again and again, so
    masks of small memories are kept.
    """
    if_zero, if_one = kept_masks(faults, first, rows)
    found = _unpacked(if_zero[:rows], faults.word_bits)
    return found, found if if_zero is if_one else _unpacked(if_one[:rows], faults.word_bits)


def wrong_of_rows(faults: FaultMap, first: int, rows: npt.NDArray[np.int64]) -> tuple[Bits, Bits]:
    """The same, of rows by their numbers behind `first`, in any order."""
    if_zero, if_one = kept_masks(faults, first, int(rows.max(initial=0)) + 1)
    found = _unpacked(if_zero[rows], faults.word_bits)
    return found, found if if_zero is if_one else _unpacked(if_one[rows], faults.word_bits)


def kept_masks(faults: FaultMap, first: int, rows: int) -> tuple[Bits, Bits]:
    """`FaultMap.masks` of so many rows from `first` on, or of some more."""
    known = 1 << max(rows - 1, LEAST_KEPT - 1).bit_length()
    if faults.measured is not None:  # no row behind those that are there
        known = rows
    if known * faults.word_bits <= MOST_KEPT_BITS:
        return _kept(faults, first, known)
    return faults.masks(first, rows)


def _unpacked(masks: Bits, bits: int) -> Bits:
    return np.unpackbits(masks, axis=1, count=bits, bitorder="little")


@lru_cache(maxsize=64)
def _kept(faults: FaultMap, first: int, rows: int) -> tuple[Bits, Bits]:
    return faults.masks(first, rows)


__all__ = ["HALF_BIT", "CellFaults", "wrong_bits", "wrong_of_rows"]
