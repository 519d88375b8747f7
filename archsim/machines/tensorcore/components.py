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

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import archsim.blocks as blocks
from archsim.blocks import (
    Components,
    Events,
    adders,
    held_registers,
    incrementers,
    moved_registers,
    multipliers,
    registers,
    selectors,
    shifters,
    times,
)
from archsim.machine import components as every
from archsim.tiled import components as core

if TYPE_CHECKING:
    from archsim.arithmetic.dot_product import DotProduct
    from archsim.arithmetic.float_datapath import FloatDatapath
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
        *core.packer(design, columns),
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
    units = _FloatUnits if design.floating else _IntegerUnits
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


@dataclass(frozen=True, kw_only=True)
class _IntegerUnits:
    """`count` units of `rtl.core.dot_product.IntegerDotProduct`.

    busy: how many of them compute with an action.
    """

    name: str
    dot: DotProduct
    count: int
    busy: Events

    def components(self) -> Components:
        """Multipliers, adder tree, and the accumulator's sum that waits for them."""
        name, dot, busy, count = self.name, self.dot, self.busy, self.count
        bits, length, total = dot.operand.bits, dot.length, dot.accumulator.bits
        each = times(busy, 1 / count)
        return (
            *multipliers(name, (bits, bits), length * count, times(busy, length)),
            *moved_registers(name, 2 * bits, length * count, each),
            *blocks.adder_tree(name, (length, 2 * bits), count, each),
            *moved_registers(name, total, count * (1 + dot.tree_levels), each),
            *adders(name, total, count, busy),
            *moved_registers(name, total, count, each),
        )


class _Maker(Protocol):
    """What makes `count` blocks of a width: `adders` and its like."""

    def __call__(self, name: str, bits: int, count: int, events: Events, /) -> Components: ...


@dataclass(frozen=True, kw_only=True)
class _FloatUnits:
    """`count` units of `rtl.core.dot_product.FloatDotProduct`, whose accumulator joins the sum.

    busy: how many of them compute with an action.  by_one: the second factors are all 1.0, so that
    a term is the operand.
    """

    name: str
    dot: DotProduct
    count: int
    busy: Events
    by_one: bool = False

    @property
    def path(self) -> FloatDatapath:
        return self.dot.datapath

    def components(self) -> Components:
        """Stage by stage: multiply; align and add up; normalise and round."""
        return (*self._terms(), *self._aligned_sum(), *self._rounded(), *self._registers())

    def _each(self, maker: _Maker, bits: int, number: int = 1) -> Components:
        """`number` blocks in every unit."""
        return maker(self.name, bits, self.count * number, times(self.busy, number))

    def _terms(self) -> Components:
        """Products and accumulator taken apart, and the largest of their exponents."""
        path, length = self.path, self.dot.length
        exponent, offset = path.exponent_bits, path.accumulator_offset > 0
        if self.by_one:
            products = self._each(selectors, path.operand.exponent_bits, length)
            offsets = length + offset
        else:
            products = self._products()
            offsets = length * (1 + (path.product_offset > 0)) + offset
        return (
            *products,
            *self._each(selectors, path.accumulator.exponent_bits),
            *self._each(adders, exponent, offsets),
            *self._each(selectors, exponent, length + 1),
            *self._each(adders, exponent, length),  # comparisons
            *self._each(selectors, exponent, length),
        )

    def _products(self) -> Components:
        """Both factors taken apart, and their significands multiplied."""
        length, operand = self.dot.length, self.path.operand
        significand = operand.fraction_bits + 1
        factors = (significand, significand)
        busy = times(self.busy, length)
        return (
            *self._each(selectors, operand.exponent_bits, 2 * length),
            *multipliers(self.name, factors, self.count * length, busy),
        )

    @property
    def _widths(self) -> tuple[int, int]:
        """Bits of an aligned product (below 4 units, by one below 2) and of the aligned
        accumulator, signed."""
        path = self.path
        gained = path.rules.aligned_fraction_bits - path.accumulator.fraction_bits
        return path.aligned_product_bits - self.by_one, path.accumulator_bits + gained + 1

    def _aligned_sum(self) -> Components:
        """Every term at its distance from the largest, with its sign; then their sum."""
        path, length = self.path, self.dot.length
        product, addend = self._widths
        found = self._each(adders, path.exponent_bits, length + 1)
        for bits, number in ((product, length), (addend, 1)):
            found += self._each(shifters, bits - 1, number)
            found += self._each(incrementers, bits, number)
            found += self._each(selectors, bits, number)
        each = times(self.busy, 1 / self.count)
        tree = blocks.adder_tree(self.name, (length, product), self.count, each)
        return (*found, *tree, *self._each(adders, path.sum_bits - self.by_one))

    def _rounded(self) -> Components:
        """Magnitude, leading zeros, shift (as far as the exponent allows), rounding, specials."""
        path, form = self.path, self.path.accumulator
        magnitude = path.sum_bits - 1
        word = magnitude + path.underflow_bits
        rounds = path.rules.rounding == "nearest_even"
        kept = word if rounds else min(path.accumulator_bits, word)
        zeros = (1 << (magnitude - 1).bit_length()) - 1
        exponents = 4 if path.underflow_bits else 3
        return (
            *self._each(incrementers, magnitude),
            *self._each(selectors, magnitude),
            *self._each(selectors, 1, zeros + _shift_selectors(magnitude, word, kept)),
            *self._each(adders, path.exponent_bits + 1, exponents),
            *self._each(selectors, path.exponent_bits + 1),
            *self._each(incrementers, form.bits),
            *self._each(selectors, form.bits),
        )

    def _registers(self) -> Components:
        """Terms, largest exponent, specials; what waits for the tree; the result."""
        path, length, levels = self.path, self.dot.length, self.dot.tree_levels
        exponent, (_, addend) = path.exponent_bits, self._widths
        term = path.operand.fraction_bits + 1 if self.by_one else path.product_bits
        each = times(self.busy, 1 / self.count)

        def kept(bits: int, number: int = 1) -> Components:
            return moved_registers(self.name, bits, self.count * number, each)

        return (
            *kept(1 + exponent + term, length),
            *kept(1 + exponent + path.accumulator_bits),
            *kept(exponent, 1 + levels),
            *kept(3, 1 + levels),
            *kept(addend, levels),
            *kept(path.accumulator.bits),
        )


def _shift_selectors(inputs: int, outputs: int, kept: int) -> int:
    """Two-way multiplexers of a left shift of `inputs` bits within `outputs`, upper `kept` used.

    Stages shift by 1, 2, 4, …  A bit of a stage is a multiplexer if what is used comes of it, and
    if bits of the input come to both of its ways; with one way it is a gate, and left out.
    """
    stages = (outputs - 1).bit_length()
    needed = set(range(outputs - kept, outputs))
    count = 0
    for stage in reversed(range(stages)):
        step = 1 << stage
        reached = min(inputs + step - 1, outputs)
        count += sum(step <= bit < reached for bit in needed)
        needed |= {bit - step for bit in needed if bit >= step}
    return count


def _float_accumulators(design: TensorCore) -> Components:
    """Rows of sums added up by floating adders, which a row that begins passes by."""
    columns, bits, name = design.columns, design.accumulator_bits, "accumulator.adder"
    unit = design.float_adder
    added: Events = {"accumulator_write": float(columns)}
    adding = _FloatUnits(name=name, dot=unit, count=columns, busy=added, by_one=True)
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
        return every.requantizers((design.accumulator_bits, design.multiplier_bits), columns)
    words: Events = {"output_read": float(columns)}
    unit = design.float_output.unit
    name = "output_stage.narrow"
    summing = _FloatUnits(name=name, dot=unit, count=columns, busy=words, by_one=True)
    return (*summing.components(), *selectors(name, ofmap, columns, words))


def tensorcore_state_bits(design: TensorCore) -> int:
    """Flip-flops of control outside the array, what travels with rows of sums apart."""
    address = blocks.address_bits(design.depth("accumulator"))
    biases = blocks.address_bits(design.depth("bias"))
    kind = "float" if design.floating else "integer"
    depth = design.output_queue_depth
    queue = every.queue_state_bits(depth) + depth.bit_length()
    output = OUTPUT_STATE_BITS[kind] + address + biases + queue
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
