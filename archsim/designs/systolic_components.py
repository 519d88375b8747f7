"""The hardware of a systolic core as components: what energy and area are computed from.

Every flip-flop of the emitted core is here (a test counts them in the netlist: those of control
to 0.3 % of all, the others exactly), every memory with the shape that it has there.  A memory is
taken to be read only when an action reads it, as a macro with an enable would be; registers are
clocked in every cycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from energy_models.component import Component

if TYPE_CHECKING:
    from archsim.designs.systolic import Systolic

Events = Mapping[str, float]

SMALLEST_MACRO_BITS = 4096
FEWEST_MACRO_WORDS = 32
"""A memory of fewer bits or words is built of registers: memory macros are not so small."""

CONTROL_BITS = {"decoupled": 7260, "coupled": 5360}
"""Flip-flops of the tile walker, the command queues, sequencers, loaders, counters and the output
stage's walk, counted in the netlist; a few more or less with the widths of addresses.  Decoupled:
with a walk of its own for stationary loads (weight- and input-stationary)."""


def systolic_components(design: Systolic) -> tuple[Component, ...]:
    """Components in the order in which the data flow."""
    return (
        _off_chip(),
        *_operand_memories(design),
        *_array(design),
        *_accumulators(design),
        *_output_stage(design),
        *_control(design),
    )


def _off_chip() -> Component:
    bits = {f"{port}_bytes": 8.0 for port in ("ifmap", "weight", "bias")}
    return Component(
        name="off_chip.dram",
        kind="dram",
        actions={"read": bits, "write": {"ofmap_bytes": 8.0}},
    )


def _memory(
    name: str, shape: tuple[int, int, int, int], read: Events, write: Events
) -> tuple[Component, ...]:
    """`count` one-read one-write memories of (count, lanes, lane_bits, depth)."""
    count, lanes, lane_bits, depth = shape
    word_bits, depth = lanes * lane_bits, max(depth, 2)
    if word_bits * depth >= SMALLEST_MACRO_BITS and depth >= FEWEST_MACRO_WORDS:
        sizes = {"word_bits": word_bits, "depth": depth, "read_ports": 1, "write_ports": 1}
        actions = {"read": read, "write": write}
        return (Component(name=name, kind="sram", count=count, attributes=sizes, actions=actions),)
    return (
        *_held_registers(name, lane_bits, count * lanes * depth, _times(write, lanes)),
        *_selector_tree(name, (lane_bits, depth), count * lanes, _times(read, lanes)),
        _registers(name, lane_bits, count * lanes, _times(read, lanes)),
    )


def _times(events: Events, factor: float) -> Events:
    return {action: factor * number for action, number in events.items()}


def _registers(name: str, bits: int, count: int, write: Events) -> Component:
    """`count` registers, clocked in every cycle, of which `write` says how many take new data."""
    held: dict[str, float] = {"cycle": float(count)}
    for action, events in write.items():
        held[action] = held.get(action, 0.0) - events
    return Component(
        name=name,
        kind="register",
        count=count,
        attributes={"bits": bits},
        actions={"clock": held, "write": write},
    )


def _held_registers(name: str, bits: int, count: int, write: Events) -> tuple[Component, ...]:
    """Registers that keep their data until they are written: each with a multiplexer before it."""
    return (_registers(name, bits, count, write), _selectors(name, bits, count, write))


def _selectors(name: str, bits: int, count: int, select: Events) -> Component:
    """`count` two-way multiplexers."""
    return Component(
        name=name,
        kind="mux",
        count=count,
        attributes={"bits": bits, "ways": 2},
        actions={"select": select},
    )


def _selector_tree(
    name: str, shape: tuple[int, int], count: int, select: Events
) -> tuple[Component, ...]:
    """`count` trees of two-way multiplexers over (bits, ways); a word passes log2(ways) of them."""
    bits, ways = shape
    if ways == 1:
        return ()
    return (_selectors(name, bits, count * (ways - 1), _times(select, (ways - 1).bit_length())),)


def _operand_memories(design: Systolic) -> tuple[Component, ...]:
    bits, lanes, wide = design.operand_bits, design.ifmap_lanes, design.weight_lanes
    every_lane: Events = {"ifmap_read": float(lanes)}
    every_column: Events = {"weight_read": float(wide)}
    delays = 2 if design.dataflow == "output_stationary" else 1
    return (
        *_memory(
            "ifmap.memory",
            (2 * lanes, 1, bits, design.depth("ifmap")),
            every_lane,
            {"ifmap_write": float(lanes)},
        ),
        _selectors("ifmap.memory", bits, lanes, every_lane),
        *_rotation(bits, lanes),
        _registers("ifmap.align", bits, lanes, every_lane),
        *_memory(
            "weight.memory",
            (2, wide, bits, design.depth("weight")),
            {"weight_read": 1.0},
            {"weight_write": 1.0},
        ),
        _selectors("weight.memory", bits, wide, every_column),
        _registers("weight.memory", bits, delays * wide, _times(every_column, delays)),
    )


def _rotation(bits: int, lanes: int) -> tuple[Component, ...]:
    """The rotator that puts the banks' words in order: log2(lanes) levels."""
    levels = (lanes - 1).bit_length()
    if not levels:
        return ()
    every = {"ifmap_read": float(lanes * levels)}
    return (_selectors("ifmap.align", bits, lanes * levels, every),)


def _triangle(lanes: int) -> int:
    """Registers of a skew of so many lanes."""
    return lanes * (lanes - 1) // 2


def _skew(name: str, bits: int, lanes: int, action: str) -> tuple[Component, ...]:
    count = _triangle(lanes)
    return (_registers(name, bits, count, {action: float(count)}),) if count else ()


def _array(design: Systolic) -> tuple[Component, ...]:
    pes = design.rows * design.columns
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
    if design.dataflow == "output_stationary":
        return (mac, *_accumulating_registers(design))
    return (mac, *_stationary_registers(design))


def _stationary_registers(design: Systolic) -> tuple[Component, ...]:
    """Of weight- and input-stationary PEs: moving operand and sum, the chain, two held operands."""
    rows, columns, bits = design.rows, design.columns, design.operand_bits
    pes = rows * columns
    chains = rows if design.dataflow == "input_stationary" else columns
    return (
        _registers("array.pe", bits + 1, pes, {"array_step": float(pes)}),
        _registers("array.pe", design.accumulator_bits, pes, {"array_step": float(pes)}),
        _registers("array.pe", bits + 4, pes, {"stationary_step": float(pes)}),
        *_held_registers("array.pe", bits, 2 * pes, {"stationary_step": float(chains)}),
        _selectors("array.pe", bits, pes, {"array_step": float(pes)}),
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
        _registers("array.pe", bits + 2, pes, step),
        _registers("array.pe", bits, pes, step),
        _registers("array.pe", total, pes, step),
        _selectors("array.pe", total, pes, step),  # a sum begins anew
        *_held_registers("array.pe", total, pes, {"accumulator_write": float(columns)}),
        *_held_registers("array.pe", total + 2, pes, leaving),
        _registers("array.skew", bits, rows * rows, {"array_step": float(rows * rows)}),
        _selectors("array.skew", bits, rows * rows, {"array_step": float(rows * rows)}),
        *_skew("array.skew", 2, rows, "array_step"),
        *_skew("array.skew", bits + 1, columns, "array_step"),
        *_skew("array.skew", total, columns, "accumulator_write"),
    )


def _accumulators(design: Systolic) -> tuple[Component, ...]:
    columns, bits = design.columns, design.accumulator_bits
    rows_added: Events = {"accumulator_write": float(columns)}
    return (
        *_memory(
            "accumulator.memory",
            (2, columns, bits, design.depth("accumulator")),
            {"accumulator_read": 1.0},
            {"accumulator_write": 1.0},
        ),
        Component(
            name="accumulator.adder",
            kind="adder",
            count=2 * columns,
            attributes={"bits": bits},
            actions={"add": rows_added},
        ),
        _selectors("accumulator.adder", bits, 2 * columns, rows_added),
        _selectors("accumulator.memory", bits, columns, {"ofmap_write": float(columns)}),
    )


def _output_stage(design: Systolic) -> tuple[Component, ...]:
    columns, bits = design.columns, design.accumulator_bits
    product = bits + 1 + design.multiplier_bits
    words: Events = {"ofmap_write": float(columns)}
    queued = design.output_queue_depth

    def each(kind: str, action: str, **sizes: int) -> Component:
        return Component(
            name="output_stage.requantize",
            kind=kind,
            count=columns,
            attributes=sizes,
            actions={action: words},
        )

    return (
        *_memory(
            "output_stage.bias",
            (2, design.bias_lanes, bits, design.depth("bias")),
            {"ofmap_write": 1.0},
            {"bias_write": 1.0},
        ),
        each("adder", "add", bits=bits + 1),
        _registers("output_stage.requantize", bits + 1, columns, words),
        each("multiplier", "multiply", a_bits=bits + 1, b_bits=design.multiplier_bits),
        _registers("output_stage.requantize", product, columns, words),
        each("adder", "add", bits=product + 1),
        each("shifter", "shift", bits=product + 1),
        *_held_registers("output_stage.queue", design.operand_bits, columns * queued, words),
        *_selector_tree("output_stage.queue", (design.operand_bits, queued), columns, words),
    )


def control_state_bits(design: Systolic) -> int:
    """Flip-flops of control: those of `CONTROL_BITS`, and the tokens beside every row of sums."""
    decoupled = design.dataflow != "output_stationary"
    token_bits = 4 + (max(design.depth("accumulator"), 2) - 1).bit_length()
    travelling = design.result_latency_cycles - (1 if decoupled else 2)
    return CONTROL_BITS["decoupled" if decoupled else "coupled"] + token_bits * travelling


def _control(design: Systolic) -> tuple[Component, ...]:
    return (
        Component(
            name="control",
            kind="control",
            attributes={"state_bits": control_state_bits(design)},
            actions={"clock": {"cycle": 1.0}},
        ),
    )
