"""The hardware of a systolic core as components: what energy and area are computed from.

Every flip-flop of the emitted core is here (a test counts them in the netlist: those of control
to 0.3 % of all, the others exactly), every memory with the shape that it has there.  A memory is
taken to be read only when an action reads it, as a macro with an enable would be; registers are
clocked in every cycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archsim.blocks import held_registers, moved_registers, registers, selectors
from archsim.machine import components as every
from archsim.tiled import components as core
from energy_models.component import Component

if TYPE_CHECKING:
    from archsim.machines.systolic.design import Systolic

CONTROL_BITS = {"decoupled": 8352, "coupled": 6203}
"""Flip-flops of the tile walker, the command queues, sequencers, loaders, counters and the output
stage's walk, counted in the netlist; a few more or less with the widths of addresses.  Decoupled:
with a walk of its own for stationary loads (weight- and input-stationary)."""

HELD_SUM_BITS = 116
"""More with `accumulator_registers`: which sums go around, the half that is read, and a command of
the output stage on its way."""

BLOCK_BITS = 24
"""More where rows are of pixels: what is left of the filters and pixels of a block."""


def systolic_components(design: Systolic) -> tuple[Component, ...]:
    """Components in the order in which the data flow."""
    lanes = design.ifmap_lanes, design.weight_lanes
    delays = 2 if design.dataflow == "output_stationary" else 1
    return (
        every.off_chip(),
        *core.operand_memories(design, lanes, weight_delays=delays),
        *_array(design),
        *core.accumulators(design, design.columns),
        *_held_sums(design),
        *core.bias_memory(design, design.bias_lanes),
        *_requantizers(design),
        *core.packer(design, design.columns, ahead=design.output_registers > 0),
        *core.output_queue(design, design.columns),
        every.control(control_state_bits(design)),
    )


def _requantizers(design: Systolic) -> tuple[Component, ...]:
    bits = design.accumulator_bits, design.multiplier_bits
    return every.registered_requantizers(
        bits, design.operand_bits, design.columns, design.output_registers
    )


def _held_sums(design: Systolic) -> tuple[Component, ...]:
    """With a register behind the accumulators: of both halves, and of the bias beside them."""
    if not design.accumulator_registers:
        return ()
    rows, columns = design.columns, design.columns
    bits, read = design.accumulator_bits, {"output_read": float(design.bias_lanes)}
    return (
        *registers("accumulator.adder", bits, 2 * columns, {"accumulator_write": float(rows)}),
        *selectors("accumulator.adder", bits, 2 * columns, {"accumulator_write": float(rows)}),
        *registers(every.REQUANTIZE, bits, design.bias_lanes, read),
    )


def _triangle(lanes: int) -> int:
    """Registers of a skew of so many lanes."""
    return lanes * (lanes - 1) // 2


def _skew(name: str, bits: int, lanes: int, action: str) -> tuple[Component, ...]:
    return moved_registers(name, bits, _triangle(lanes), {action: 1.0})


def _array(design: Systolic) -> tuple[Component, ...]:
    pes, bits = design.rows * design.columns, design.operand_bits
    mac = Component(
        name="array.mac",
        kind="mac",
        count=pes,
        attributes={
            "operand_bits": design.operand_bits,
            "accumulator_bits": design.accumulator_bits,
        },
        actions={"mac": {"mac": 1.0}},
    )
    products: tuple[Component, ...] = ()
    if design.product_registers:
        kept = 2 * bits * design.product_registers  # both operands; the product
        products = registers("array.pe", kept, pes, {"array_step": float(pes)})
    if design.dataflow == "output_stationary":
        delayed = 2 * design.product_registers + (design.product_registers > 0)
        late = moved_registers("array.skew", 1, delayed, {"array_step": 1.0})
        return (mac, *products, *late, *_accumulating_registers(design))
    return (mac, *products, *_stationary_registers(design))


def _stationary_registers(design: Systolic) -> tuple[Component, ...]:
    """Of weight- and input-stationary PEs: moving operand and sum, the chain, two held operands."""
    rows, columns, bits = design.rows, design.columns, design.operand_bits
    pes = rows * columns
    chains = rows if design.dataflow == "input_stationary" else columns
    return (
        *registers("array.pe", bits + 1, pes, {"array_step": float(pes)}),
        *registers("array.pe", design.accumulator_bits, pes, {"array_step": float(pes)}),
        *registers("array.pe", bits + 4, pes, {"stationary_step": float(pes)}),
        *held_registers("array.pe", bits, 2 * pes, {"stationary_step": float(chains)}),
        *selectors("array.pe", bits, pes, {"array_step": float(pes)}),
        *_skew("array.skew", bits + 1, rows, "array_step"),
        *_skew("array.skew", bits + 2, chains, "stationary_step"),
        *_skew("array.skew", design.accumulator_bits, columns, "array_step"),
    )


def _accumulating_registers(design: Systolic) -> tuple[Component, ...]:
    """Of output-stationary PEs: both operands, the sum, the kept sum and the way out."""
    rows, columns, bits = design.rows, design.columns, design.operand_bits
    pes, total = rows * columns, design.accumulator_bits
    step = {"array_step": float(pes)}
    leaving = {"accumulator_write": columns * (rows + 1) / 2}
    return (
        *registers("array.pe", bits + 2, pes, step),
        *registers("array.pe", bits, pes, step),
        *registers("array.pe", total, pes, step),
        *selectors("array.pe", total, pes, step),  # a sum begins anew
        *held_registers("array.pe", total, pes, {"accumulator_write": float(columns)}),
        *held_registers("array.pe", total + 2, pes, leaving),
        *registers("array.skew", bits, rows * rows, {"array_step": float(rows * rows)}),
        *selectors("array.skew", bits, rows * rows, {"array_step": float(rows * rows)}),
        *_skew("array.skew", 2, rows, "array_step"),
        *_skew("array.skew", bits + 1, columns, "array_step"),
        *_skew("array.skew", total, columns, "accumulator_write"),
    )


def control_state_bits(design: Systolic) -> int:
    """Flip-flops of control: those of `CONTROL_BITS`, and the tokens beside every row of sums."""
    decoupled = design.dataflow != "output_stationary"
    token_bits = 4 + (max(design.depth("accumulator"), 2) - 1).bit_length()
    travelling = design.result_latency_cycles - (1 if decoupled else 2)
    blocks = BLOCK_BITS if design.dataflow == "input_stationary" else 0
    walks = CONTROL_BITS["decoupled" if decoupled else "coupled"] + core.pipelining_bits(design)
    output = core.OUTPUT_AHEAD_BITS if design.output_registers else 0
    output += HELD_SUM_BITS * design.accumulator_registers
    return walks + blocks + output + token_bits * travelling + core.gathering_bits(design)
