"""The hardware of a tensor core as components.

Structural, from our own RTL: a floating-point unit has no kind of its own, and is the multipliers,
adders, shifters, multiplexers and registers that `rtl/core/dot_product.py` and `float_*.py`
instantiate, at their widths.  Detection of zeros, infinities and NaNs, which is small, is left out.

A set takes T slots (an `array_step` each) and is `rows` passes, so that a slot is rows / T of a
pass; in a pass every unit makes one dot product.  The operands of B change twice a set, those of A
and the sums with every pass.  The floating adders and the output sum operands as they are, so that
their units have no multipliers, and significands of one operand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import archsim.blocks as blocks
from archsim.blocks import (
    Components,
    Events,
    held_registers,
    moved_registers,
    registers,
    selectors,
    times,
)
from archsim.machine import components as every
from archsim.machine.unit_components import FloatUnits, IntegerUnits
from archsim.tiled import components as core

if TYPE_CHECKING:
    from archsim.machines.tensorcore.design import TensorCore

OUTPUT_STATE_BITS = {"integer": 169, "float": 86}
"""Flip-flops of the output stage's walk but for addresses and queue, counted in the netlist; of
integers with the multipliers and shifts that travel with the words."""

_ONE_WORD: Events = {"output_read": 1.0}
_ONE_CYCLE: Events = {"array_step": 1.0}


def tensorcore_components(design: TensorCore) -> Components:
    """Components in the order in which the data flow."""
    columns = design.columns
    return (
        every.off_chip(),
        *core.operand_memories(design, (design.ifmap_lanes, columns)),
        *_fragments(design),
        *_units(design),
        *_sums(design),
        *_array_control(design),
        *(_float_accumulators(design) if design.floating else core.accumulators(design, columns)),
        *core.bias_memory(design, columns),
        *_output(design),
        *core.packer(design, columns, ahead=design.output_registers > 0),
        *core.output_queue(design, columns),
        *_control(design),
    )


def _passes(design: TensorCore, each: float = 1.0) -> Events:
    """`each` events with every pass."""
    return {"array_step": each * design.rows / design.array.set_cycles}


def _sets(design: TensorCore, each: float) -> Events:
    """`each` events with every set."""
    return {"array_step": each / design.array.set_cycles}


def _fragments(design: TensorCore) -> Components:
    """The rows of A, a memory for each thread group; the columns of B, of two sets."""
    length, columns, bits = design.length, design.columns, design.operand_bits
    a, b = "array.row_fragments", "array.column_fragments"
    elements, chosen = length * columns, length * columns // 2
    return (
        *blocks.memory(
            a + blocks.WORDS, (2, length, bits, design.rows), _passes(design, 2), _passes(design)
        ),
        *moved_registers(a, bits, 2 * length, _passes(design)),
        *held_registers(b, bits, elements, _sets(design, elements)),
        *held_registers(b, bits, elements, _sets(design, elements)),
        *selectors(b, bits, chosen, _sets(design, 2 * chosen)),
        *registers(b, bits, chosen, _sets(design, 2 * chosen)),
    )


def _units(design: TensorCore) -> Components:
    """The dot-product units between their operand and result registers."""
    columns, dot, array = design.columns, design.dot, design.array
    operands = design.length * columns
    name, bits, waits = "array.unit", design.operand_bits, array.collect_cycles - 2
    written = array.pack_cycles + array.write_cycles - 1
    busy = _passes(design, columns)
    units = FloatUnits if design.floating else IntegerUnits
    return (
        *moved_registers(name, bits, waits * operands, _passes(design)),
        *registers(name, bits, waits * operands, _sets(design, 2 * waits * operands)),
        *moved_registers(name, design.accumulator_bits, waits * columns, _passes(design)),
        *units(name="array.dot", dot=dot, count=columns, busy=busy).components(),
        *moved_registers(name, design.accumulator_bits, written * columns, _passes(design)),
    )


def _sums(design: TensorCore) -> Components:
    """The sums under way, a word of all units' a pass; the finished ones, in four banks."""
    columns, bits = design.columns, design.accumulator_bits
    partial, finished = "array.partial_sums", "array.finished_sums"
    once, half = _passes(design), columns // 2
    leaving: Events = {"accumulator_write": 2.0}
    return (
        *blocks.memory(partial + blocks.WORDS, (1, columns, bits, design.rows), once, once),
        *selectors(partial, bits, columns, _passes(design, columns)),  # a sum begins anew
        *moved_registers(partial, bits, columns, once),
        *blocks.memory(finished + blocks.WORDS, (4, half, bits, design.rows), leaving, leaving),
        *selectors(finished, bits, columns, times({"accumulator_write": 1.0}, columns)),
    )


def _array_control(design: TensorCore) -> Components:
    """Three walks over rows, and the flags of sets, passes and blocks on their way."""
    array = design.array
    row = blocks.address_bits(array.group_rows)
    walks = 3 * (2 + row) + 5
    flags = 4 * array.set_cycles + 2 * array.drain_start_cycles + 4 + design.length - 1
    passes = (5 + row) * (array.result_cycles - 1)
    return moved_registers("array.control", 1, walks + flags + passes, _ONE_CYCLE)


def _float_accumulators(design: TensorCore) -> Components:
    """Rows of sums added up by floating adders, which a row that begins passes by."""
    columns, bits, name = design.columns, design.accumulator_bits, "accumulator.adder"
    unit = design.float_adder
    added: Events = {"accumulator_write": float(columns)}
    adding = FloatUnits(name=name, dot=unit, count=columns, busy=added, by_one=True)
    row: Events = {"accumulator_write": 1.0}
    return (
        *core.accumulator_memory(design, columns),
        *selectors("accumulator.memory", bits, columns, added),
        *selectors("accumulator.memory", bits, columns, {"output_read": float(columns)}),
        *adding.components(),
        *moved_registers(name, bits, columns * unit.latency_cycles, row),
        *selectors(name, bits, columns, added),
    )


def _output(design: TensorCore) -> Components:
    """The arithmetic of the output, a column each."""
    columns, ofmap = design.columns, design.operand_bits
    if not design.floating:
        bits = design.accumulator_bits, design.multiplier_bits
        return every.registered_requantizers(bits, ofmap, columns, design.output_registers)
    words: Events = {"output_read": float(columns)}
    unit = design.float_output.unit
    name = "output_stage.narrow"
    summing = FloatUnits(name=name, dot=unit, count=columns, busy=words, by_one=True)
    return (*summing.components(), *selectors(name, ofmap, columns, words))


def tensorcore_state_bits(design: TensorCore) -> int:
    """Flip-flops of control outside the array, what travels with rows of sums apart."""
    address = blocks.address_bits(design.depth("accumulator"))
    biases = blocks.address_bits(design.depth("bias"))
    kind = "float" if design.floating else "integer"
    depth = design.output_queue_depth
    queue = every.queue_state_bits(depth) + depth.bit_length()
    output = OUTPUT_STATE_BITS[kind] + address + biases + queue
    output += core.OUTPUT_AHEAD_BITS if design.output_registers else 0
    tokens = design.rows.bit_length() + 5 + address
    writing = 2 if design.floating else 1 + core.token_bits(design)
    walk = core.walk_state_bits(design, design.ifmap_lanes, chunk=design.length)
    return walk + output + tokens + writing


def _control(design: TensorCore) -> Components:
    """State machines, and what travels with the sets and with the rows of sums."""
    adding = design.accumulate_latency_cycles
    waits = design.result_latency_cycles - adding - 1 + (adding if design.floating else 0)
    bits = core.token_bits(design)
    return (
        *moved_registers("control.token", bits, waits, _ONE_CYCLE),
        *moved_registers("control.flags", 3, design.operand_latency_cycles, _ONE_CYCLE),
        every.control(tensorcore_state_bits(design)),
    )
