"""The hardware of a vector MAC core with per-vector scales as components.

Structural, from `rtl/core/vector_lane.py`, `vector_array.py` and `vector_requantize.py`: every
multiplier, adder, multiplexer and register that they instantiate, at its width.  Two things have no
kind of their own: the ROM of reciprocals is the multiplexers that its constants leave, and a
division by a constant is the adders of its digits.

In every slot (an `array_step`) every lane multiplies V pairs, adds them up, scales the sum and
adds it to an entry of its collector.  That a gated lane keeps still where a scale product is 0
depends on the operands, and is not in the account; its registers and multiplexers are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    from archsim.codecs.vector_output import VectorOutput
    from archsim.machines.vsq.design import Vsq

WORDS_PER_SELECTOR = 16
"""Words of a ROM for each two-way multiplexer that is left of its tree, a bit of the words: what
constants merge.  Synthesised on OSU 180 nm, 64 words leave 5 a bit and 256 words 13."""

OUTPUT_STATE_BITS = 135
"""Flip-flops of the output stage's walk but for addresses, queue and rows, from the netlist."""

ROUNDING_BITS = 7
"""Shift and ReLU, which travel with a row of sums."""


def vsq_components(design: Vsq) -> Components:
    """Components in the order in which the data flow."""
    output = design.output
    return (
        every.off_chip(),
        *core.operand_memories(design, (design.ifmap_lanes, design.lanes)),
        *_array(design),
        *core.accumulators(design, design.lanes),
        *core.bias_memory(design, design.lanes),
        *_rescale(output),
        *(_scale(output) if output.scaled else ()),
        *core.packer(design, output.word_units),
        *core.output_queue(design, 1),
        *_control(design),
    )


def _array(design: Vsq) -> Components:
    lanes, lane, mac = design.lanes, design.lane, design.mac
    step: Events = {"array_step": float(lanes)}
    weight = design.word_bits("weight") // lanes
    begun: Events = {"weight_read": float(lanes)}
    return (
        *held_registers("array.weight", weight, lanes, begun),
        *(_scale_path(design, step) if lane.scaled else ()),
        *multipliers(
            "array.multiply",
            (mac.weight.bits, mac.activation.bits),
            lanes * lane.length,
            times(step, lane.length),
        ),
        *moved_registers("array.multiply", lane.product_bits, lanes * lane.length, _ONE_STEP),
        *blocks.adder_tree("array.tree", (lane.length, lane.product_bits), lanes, _ONE_STEP),
        *moved_registers(
            "array.token", _token_bits(design), lanes * lane.accumulate_cycle, _ONE_STEP
        ),
        *_collector(design, step),
    )


_ONE_STEP: Events = {"array_step": 1.0}


def _scale_path(design: Vsq, step: Events) -> Components:
    """The product of two scales, rounded, beside the products and the tree; then the scaling."""
    lanes, lane, mac = design.lanes, design.lane, design.mac
    factors = [form.scale_bits for form in (mac.weight, mac.activation) if form.scale_bits]
    product = multipliers("array.scale", (max(factors), min(factors)), lanes, step)
    rounded = mac.dropped_bits > 0
    held = lane.scale_bits + lane.length * (mac.weight.bits + mac.activation.bits)
    waits = 1 + lane.tree_levels
    dot_bits = mac.dot_bits(lane.length)
    return (
        *(product if len(factors) == 2 else ()),
        *(incrementers("array.scale", mac.full_scale_bits, lanes, step) if rounded else ()),
        *(held_registers("array.hold", held, lanes, step) if lane.gated else ()),
        *moved_registers("array.scale", lane.scale_bits, lanes * waits, _ONE_STEP),
        *multipliers("array.scale", (dot_bits, lane.scale_bits), lanes, step),
        *moved_registers("array.scale", lane.term_bits, lanes, _ONE_STEP),
    )


def _token_bits(design: Vsq) -> int:
    """Entry of the collectors, valid, first, last, and of a gated lane whether the term is 0."""
    return 3 + blocks.address_bits(design.hold_cycles) + design.gated


def _collector(design: Vsq, step: Events) -> Components:
    """Partial sums that are read, added to, limited and written; those given out are kept."""
    lanes, lane, bits = design.lanes, design.lane, design.collector_bits
    name = "array.collector"
    given: Events = {"accumulator_write": float(lanes)}
    entry = blocks.address_bits(design.hold_cycles)
    saturating = design.overflow == "saturate"
    return (
        *blocks.memory(name + blocks.WORDS, (lanes, 1, bits, design.hold_cycles), step, step),
        *selectors(name, bits, lanes, step),  # a sum begins anew
        *(selectors(name, lane.term_bits, lanes, step) if lane.gated else ()),
        *adders(name, bits + saturating, lanes, step),
        *(selectors(name, bits, lanes, step) if saturating else ()),
        *held_registers(name, bits, lanes, given),
        *registers(name, entry + 1, lanes, given),
        *selectors(name, entry, lanes, given),
    )


_ONE_WORD: Events = {"output_read": 1.0}


def _rescale(output: VectorOutput) -> Components:
    """z of every lane: its multiplier a cycle late; the sum scaled, shifted, rounded, limited."""
    name, lanes = every.REQUANTIZE, output.lanes
    words: Events = {"output_read": float(lanes)}
    shifted, z_bits = output.product_bits + 1, output.high.bit_length() + output.form.signed
    return (
        *selectors("output_stage.bias", output.bias_bits // lanes, lanes, words),  # of two halves
        *moved_registers(name, output.multiplier_bits, lanes, _ONE_WORD),
        *every.scaled_sums((output.sum_bits, output.multiplier_bits), lanes),
        *shifters(name, shifted, lanes, words),
        *incrementers(name, shifted, lanes, words),
        *selectors(name, z_bits, 2 * lanes, times(words, 2)),
        *moved_registers(name, ROUNDING_BITS, 2, _ONE_WORD),
    )


def _scale(output: VectorOutput) -> Components:
    """The scales of the vectors of a row, and its values divided by them."""
    name, lanes, vectors = "output_stage.scale", output.lanes, output.vectors_per_row
    form, bits, rows = output.form, output.high.bit_length(), output.rows_per_vector
    scale_bits = form.scale_bits or 0
    words: Events = {"output_read": float(lanes)}
    compared, sign = lanes - vectors, int(form.signed)
    found = (
        *(incrementers(name, bits, lanes, words) if form.signed else ()),  # |z|
        *moved_registers(name, bits + sign, lanes * (1 + output.wait_cycles), _ONE_WORD),
        *adders(name, bits, compared, times(_ONE_WORD, compared)),
        *selectors(name, bits, compared, times(_ONE_WORD, compared)),
        *moved_registers(name, bits, vectors, _ONE_WORD),
        *_quotient_of_top(output),
        *moved_registers(name, scale_bits, 3 * vectors, _ONE_WORD),  # and on to the ofmap
    )
    if rows > 1:
        found += _gathered_rows(output)
    return (*found, *_divided(output, words))


def _quotient_of_top(output: VectorOutput) -> Components:
    """⌈top / Qmax⌉ of every vector: a product with a constant is the sum of its digits."""
    name, vectors = "output_stage.scale", output.vectors_per_row
    (constant,) = output.scale_division.multipliers
    bits, digits = output.high.bit_length() + 1, _digits(constant)
    sums = vectors * digits  # one more than digits are joined: top + Qmax - 1
    return adders(name, bits, sums, times(_ONE_WORD, sums))


def _digits(number: int) -> int:
    """Digits of a number that are not 0, if they may be -1, 0 or 1 (the fewest there can be)."""
    return (number ^ (3 * number)).bit_count()


def _gathered_rows(output: VectorOutput) -> Components:
    """What a vector of several rows adds: the maximum over rows, and scales that wait for them."""
    name, vectors, rows = "output_stage.scale", output.vectors_per_row, output.rows_per_vector
    bits, scale_bits = output.high.bit_length(), output.form.scale_bits or 0
    each = times(_ONE_WORD, vectors)
    return (
        *selectors(name, bits, 2 * vectors, times(each, 2)),
        *adders(name, bits, vectors, each),
        *moved_registers(name, bits, vectors, _ONE_WORD),
        *moved_registers(name, scale_bits, rows * vectors, _ONE_WORD),
        *blocks.selector_tree(name, (scale_bits, rows + 1), vectors, each),
        *moved_registers(name, _row_token_bits(output), (rows + 5) * vectors, _ONE_WORD),
    )


def _row_token_bits(output: VectorOutput) -> int:
    """Of a row: whether it is its vector's first, and how many rows that has less than G."""
    return 1 + (output.rows_per_vector - 1).bit_length()


def _divided(output: VectorOutput, words: Events) -> Components:
    """The reciprocal of every scale, and each value times it."""
    name, lanes, vectors = "output_stage.divide", output.lanes, output.vectors_per_row
    form, by, bits = output.form, output.value_division, output.high.bit_length()
    left = max(by.bits * len(by.multipliers) // WORDS_PER_SELECTOR, 1) * vectors
    value = form.largest.bit_length()
    sign = int(form.signed)
    return (
        *selectors(name, 1, left, times(_ONE_WORD, left)),
        *moved_registers(name, by.bits, vectors, _ONE_WORD),
        *adders(name, bits + 1, lanes, words),
        *moved_registers(name, bits + 1, lanes, _ONE_WORD),
        *multipliers(name, (bits + 1, by.bits), lanes, words),
        *moved_registers(name, value + 2 * sign, lanes, _ONE_WORD),
        *(incrementers(name, value, lanes, words) if form.signed else ()),
        *(selectors(name, value + 1, lanes, words) if form.signed else ()),
    )


def vsq_state_bits(design: Vsq) -> int:
    """Flip-flops of control: the walks, with the addresses of sums and biases twice."""
    output, depth = design.output, design.output_queue_depth
    addresses = 2 * (
        blocks.address_bits(design.depth("accumulator")) + blocks.address_bits(design.depth("bias"))
    )
    rows = output.rows_per_vector
    row = (rows - 1).bit_length()
    if rows > 1:
        row += _row_token_bits(output) + output.latency_cycles - 1
    queue = every.queue_state_bits(depth) + depth.bit_length()
    tokens = blocks.address_bits(design.depth("accumulator")) + 1
    return (
        core.walk_state_bits(design, design.ifmap_lanes, chunk=1)
        + core.token_bits(design)
        + 1
        + tokens
        + OUTPUT_STATE_BITS
        + addresses
        + row
        + queue
    )


def _control(design: Vsq) -> Components:
    """State machines, and what travels with the slots and with the rows of sums."""
    waits = design.result_latency_cycles - 1
    flags = 4 + blocks.address_bits(design.hold_cycles)
    return (
        *moved_registers("control.token", core.token_bits(design), waits, _ONE_STEP),
        *moved_registers("control.step", flags, design.operand_latency_cycles, _ONE_STEP),
        every.control(vsq_state_bits(design)),
    )
