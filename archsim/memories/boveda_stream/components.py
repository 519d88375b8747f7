"""Memories of a sparse core's activations that compress values, as components.

Every flip-flop and every memory is that of the RTL (`rtl/memories/boveda_stream/`), counted in the
netlist by a test.  Events: an entry is written and read with its vector, a row of values as
often as the RTL counts it (`archsim.machines.scnn.stream_actions`); what packs and unpacks works
with every vector.  Rows that are read ahead beyond the last vector of a pass cost nothing here.
"""

from __future__ import annotations

import archsim.blocks as blocks
from archsim.blocks import Components, Events, adders, incrementers, registers, selectors, times
from archsim.memories.boveda_stream.stream import BovedaStream
from archsim.memory import StreamUse
from archsim.memory.plain import STREAM_READS as READS
from archsim.memory.plain import STREAM_WRITES as WRITES
from archsim.memory.seam import StreamWords

CORE_STATE_BITS = 4 + 4 + 4 * 48
"""Flip-flops outside the PEs beside those of plain memories: of what settles, at both ends, and
counters of rows."""

PE_STATE_BITS = 2 + 1 + 2
"""Of a PE: which memory is written and read, whether the walk begins, and the strobes of two
vectors under way."""

ROW_READS: Events = {"iaram_row_read": 1.0, "oaram_row_read": 1.0}


def stream_words(use: StreamUse, memory: BovedaStream) -> tuple[StreamWords, ...]:
    """Of one memory: rows of values in an even and an odd bank, and entries."""
    name, rows, entries = use.name, use.rows, memory.entries(use.rows)
    lanes, bits = use.lanes, use.value_bits
    read: Events = {f"{name}_read": 1.0}
    write: Events = {f"{name}_write": 1.0}
    columns = lanes // memory.group
    return (
        (
            name,
            (2 * columns, memory.group * bits, -(-rows // 2)),
            {f"{name}_row_read": 1.0},
            {f"{name}_row_write": 1.0},
        ),
        (f"{name}.marks", (1, lanes * use.index_bits + 1, entries), read, write),
        (f"{name}.widths", (1, memory.width_bits(lanes, bits), entries), read, write),
    )


def stream_logic(use: StreamUse, memory: BovedaStream, address_bits: int) -> Components:
    """What packs, unpacks, and chooses between the memories; address_bits: of an entry."""
    return (
        *_choices(use, memory, address_bits),
        *_packing(use, memory, address_bits),
        *_unpacking(use, memory),
    )


def stream_state_bits(address_bits: int) -> int:
    """Flip-flops of control in a PE, beside those that plain memories have: the addresses of two
    vectors under way."""
    return PE_STATE_BITS + 2 * address_bits


def _columns(use: StreamUse, memory: BovedaStream) -> int:
    return use.lanes // memory.group


def _row_bits(use: StreamUse) -> int:
    """Of a row's number in the larger memory."""
    return blocks.address_bits(use.most_rows)


def _choices(use: StreamUse, memory: BovedaStream, address_bits: int) -> Components:
    """Of two vectors to write, and of what either memory has read."""
    name, pes, columns = "memories", use.pes, _columns(use, memory)
    lanes, bits = use.lanes, use.value_bits
    entry = lanes * use.index_bits + 1 + memory.width_bits(lanes, bits)
    return (
        *selectors(name, use.vector_bits + 1 + address_bits, pes, WRITES),
        *selectors(name, entry, pes, READS),
        *selectors(name, memory.group * bits, 2 * columns * pes, ROW_READS),
    )


def _packing(use: StreamUse, memory: BovedaStream, address_bits: int) -> Components:
    """Magnitudes, widths, codes, shifted into the columns, and the rows that are begun."""
    name, pes, columns = "pack", use.pes, _columns(use, memory)
    lanes, bits = use.lanes, use.value_bits
    code = bits.bit_length() - 1
    each_lane, each = times(WRITES, float(lanes)), times(WRITES, float(columns))
    small = bits - 1 + code + 1 + code + _row_bits(use)
    return (
        *incrementers(name, bits, pes * lanes, each_lane),
        *registers(name, bits, 3 * pes * lanes, times(each_lane, 3.0)),
        *registers(name, small, pes * columns, each),
        *selectors(name, 2 * bits, pes * lanes * code, times(each_lane, float(code))),
        *selectors(name, bits, 3 * pes * lanes, times(each_lane, 3.0)),
        *adders(name, code + 1, pes * columns, each),
        *adders(name, _row_bits(use), pes * columns, each),
    )


def _unpacking(use: StreamUse, memory: BovedaStream) -> Components:
    """Bits of two rows, shifted out, masked and made two's complement, in a register."""
    name, pes, columns = "unpack", use.pes, _columns(use, memory)
    lanes, bits = use.lanes, use.value_bits
    code = bits.bit_length() - 1
    each_lane, each = times(READS, float(lanes)), times(READS, float(columns))
    levels = float(code + 2)
    return (
        *selectors(name, bits, 2 * pes * lanes, times(each_lane, 2.0)),
        *selectors(name, bits, pes * lanes * (code + 2), times(each_lane, levels)),
        *incrementers(name, bits, pes * lanes, each_lane),
        *registers(name, bits + use.index_bits, pes * lanes, each_lane),
        *registers(name, 1, pes, READS),
        *registers(name, code + _row_bits(use), pes * columns, each),
        *adders(name, code + 1, pes * columns, each),
        *adders(name, _row_bits(use), 2 * pes * columns, times(each, 2.0)),
    )
