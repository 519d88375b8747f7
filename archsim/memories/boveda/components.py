"""A compressed scratchpad as components: rows, directories, and what packs and unpacks.

Every flip-flop and every memory is that of the RTL (`rtl/memories/boveda/column.py`), counted in
the netlist by a test.  Events: banks of rows and directories are read, and rows written, as often
as counted from the values (`archsim.memories.boveda.rows`), or at most if there were none
(`archsim.energy`), entries as often as tiles have units; what places and unpacks works with every
read of a word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archsim.blocks import (
    NARROWEST,
    Components,
    Events,
    adders,
    address_bits,
    incrementers,
    memory,
    registers,
    selectors,
    times,
)
from archsim.memories.boveda.population_count import count_stages
from archsim.memories.boveda.store import ROW_ACTIONS
from archsim.memory import Use

if TYPE_CHECKING:
    from archsim.memories.boveda.scratchpad import Boveda

COUNTER_BITS = 48


class _Shape:
    """Sizes of a compressed scratchpad; `straddles` as `rtl.memories.boveda.scratchpad` has it."""

    def __init__(self, use: Use, memory: Boveda) -> None:
        name = use.name
        self.name, self.memory = name, memory
        self.straddles = use.by_lane
        self.lanes, self.bits, self.signed = use.lanes, use.lane_bits[0], use.lane_signed[0]
        self.columns = use.lanes // memory.group
        self.rows, self.units = memory.rows(use.word_bits), memory.units(use.word_bits)
        self.entry = memory.entry_bits(use.word_bits, self.bits)
        self.banks = 2 if self.straddles else 1
        self.pieces = use.lanes if self.straddles else self.columns
        self.code = self.bits.bit_length() - 1
        self.read: Events = {f"{name}_read": 1.0}
        self.write: Events = {f"{name}_write": 1.0}
        self.row_read: Events = {f"{name}_row_read": 1.0}
        self.row_write: Events = {f"{name}_row_write": 1.0}
        self.entry_read: Events = {f"{name}_entry_read": 1.0}
        self.entry_write: Events = {f"{name}_entry_write": 1.0}

    @property
    def address(self) -> int:
        """Bits of a word's number."""
        return self.memory.unit_words.bit_length() - 1 + address_bits(self.units)


def compressed_memory(use: Use, scratchpad: Boveda) -> Components:
    """All of a scratchpad."""
    shape = _Shape(use, scratchpad)
    return (
        *_memories(shape),
        *_held(shape),
        *_packing(shape),
        *_places(shape),
        *_unpacking(shape),
        *_counts(shape),
    )


def _memories(shape: _Shape) -> Components:
    """Rows in an even and an odd bank, directories; two halves of each."""
    depth = -(-shape.rows // 2)
    lanes = shape.lanes // shape.pieces
    units = -(-shape.units // shape.banks)
    return (
        *memory(
            f"{shape.name}.memory",
            (4 * shape.pieces, lanes, shape.bits, depth),
            shape.row_read,
            shape.row_write,
        ),
        *selectors(
            f"{shape.name}.memory",
            shape.bits,
            2 * shape.lanes,
            times(shape.row_read, float(lanes)),
        ),
        *memory(
            f"{shape.name}.directory",
            (2 * shape.banks * shape.columns, 1, shape.entry, units),
            shape.entry_read,
            shape.entry_write,
        ),
        *selectors(
            f"{shape.name}.directory", shape.entry, shape.banks * shape.columns, shape.entry_read
        ),
    )


def _held(shape: _Shape) -> Components:
    """Which row and which entry every bank's output holds, and whether it is the wanted one."""
    name, rows, entries = f"{shape.name}.held", 2 * shape.pieces, shape.banks * shape.columns
    row = address_bits(-(-shape.rows // 2)) + 2
    entry = address_bits(-(-shape.units // shape.banks)) + 2
    words = shape.columns * (2 if shape.straddles else 1)
    levels = (shape.lanes - 1).bit_length() if shape.straddles else 0
    return (
        *registers(name, row, rows, shape.row_read),
        *registers(name, entry, entries, shape.entry_read),
        *adders(name, row, rows, times(shape.read, float(rows))),
        *adders(name, entry, entries, times(shape.read, float(entries))),
        *adders(name, shape.code + 1, words, times(shape.read, float(words))),
        *selectors(name, shape.lanes, levels, times(shape.read, float(levels))),
    )


def _counts(shape: _Shape) -> Components:
    """What counts rows and entries: bits and sums of a cycle, and the counters."""
    name, entries = f"{shape.name}.count", shape.banks * shape.columns
    counted = (
        (2 * shape.pieces, shape.read),
        (2 * shape.columns, shape.write),
        (entries, shape.read),
        (entries, shape.write),
    )
    found: Components = registers(name, COUNTER_BITS, len(ROW_ACTIONS), {})
    for bits, events in counted:
        # n bits take about as many full adders, two of them in the narrowest adder
        pairs = bits // NARROWEST["adder"]
        sums = sum(most.bit_length() for stage in count_stages(bits) for most in stage)
        found += adders(name, NARROWEST["adder"], pairs, times(events, float(pairs)))
        found += registers(name, sums, 1, events)
    return found


def _packing(shape: _Shape) -> Components:
    """Magnitudes, widths, codes, shifted into the columns; the unit's entry as it grows."""
    name, lanes, columns = f"{shape.name}.pack", shape.lanes, shape.columns
    each_lane, each = times(shape.write, float(lanes)), times(shape.write, float(columns))
    small = shape.bits - shape.signed + 2 * shape.code + 1 + (shape.rows + 1).bit_length()
    entry = address_bits(shape.rows) + (shape.memory.unit_words - 1) * shape.code
    levels = float(shape.code)
    negate = incrementers(name, shape.bits, lanes, each_lane) if shape.signed else ()
    return (
        *negate,
        *registers(name, shape.bits, 3 * lanes, times(each_lane, 3.0)),
        *registers(name, small, columns, each),
        *registers(name, entry, columns, times(each, 1 / shape.memory.unit_words)),
        *selectors(name, entry, columns, each),
        *selectors(name, 2 * shape.bits, lanes * shape.code, times(each_lane, levels)),
        *selectors(name, shape.bits, 4 * lanes, times(each_lane, 4.0)),
        *adders(name, shape.code + 1, columns, each),
        *adders(name, address_bits(shape.rows), 2 * columns, times(each, 2.0)),
    )


def _places(shape: _Shape) -> Components:
    """The sum of a unit's widths before the word, the row that it gives, and their registers."""
    name, columns = f"{shape.name}.place", shape.columns
    each = times(shape.read, float(columns))
    memory = shape.memory
    unit_words, row = memory.unit_words, address_bits(shape.rows)
    sum_bits = max((unit_words * shape.bits - 1).bit_length(), 2)
    found = row + 2 * shape.code + 1
    words = 2 if shape.straddles else 1
    address = shape.address
    kept = memory.place_registers
    late = (
        (2 + kept) * (3 + address)
        + 1
        + address
        + 2
        + (4 * shape.lanes + 1 if shape.straddles else 2)
    )
    late += kept * (1 + (2 * shape.lanes if shape.straddles else 1))
    sums = row + sum_bits + shape.code + 1 + (row + shape.code + 2 if shape.straddles else 0)
    return (
        *registers(name, sums, kept * columns, each),
        *registers(name, shape.lanes * shape.bits, kept, shape.write),
        *selectors(name, shape.code, columns * unit_words * words, times(each, unit_words * words)),
        *adders(name, sum_bits, columns * unit_words, times(each, float(unit_words))),
        *adders(name, row, columns * words, times(each, float(words))),
        *registers(name, found, columns * words, times(each, float(words))),
        *registers(name, late, 1, shape.read),
    )


def _unpacking(shape: _Shape) -> Components:
    """Bits of two rows, shifted out, masked and made two's complement, in a register."""
    name, lanes = f"{shape.name}.unpack", shape.lanes
    each_lane = times(shape.read, float(lanes))
    placed = 2 * shape.code + 2
    back = incrementers(name, shape.bits, lanes, each_lane) if shape.signed else ()
    levels = shape.code + 2
    return (
        *registers(name, placed, shape.pieces, times(shape.read, float(shape.pieces))),
        *selectors(name, shape.bits, 2 * lanes, times(each_lane, 2.0)),
        *selectors(name, shape.bits, lanes * levels, times(each_lane, float(levels))),
        *back,
        *registers(name, shape.bits, lanes, each_lane),
    )


__all__ = ["compressed_memory"]
