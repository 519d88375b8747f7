"""Components that every core shares: memories, streams, control.

What they are made of: `archsim.blocks`.  The small buffers of an array are memories in the emitted
core too, and components of the same kind as its large ones, with names that end in `WORDS`: whether
a memory costs less as registers is the technology's to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archsim.blocks import (
    Components,
    Events,
    adders,
    address_bits,
    held_registers,
    moved_registers,
    registers,
    selector_tree,
    selectors,
    times,
)
from archsim.tiled import machine_vector as mc

if TYPE_CHECKING:
    from archsim.tiled.design import CoreDesign

WINDOW_ADDRESS_BITS = 28

SHARED_STATE_BITS = 5332
"""Flip-flops of the tile walker, of the queues of commands, of a sequencer of the stream, of the
window's walk, of loaders, credits and counters, but for the addresses, counted in the netlist."""


PIPELINED_WALKER_BITS = 434
"""More in a tile walker with a register behind every sum and product, counted in its netlist."""

PIPELINED_SEQUENCER_BITS = 14
"""More in a sequencer, with registers for the first and the last slot and two for the last turn of
every loop: alone, and with the loops inside of it, of which the innermost has none; and whether the
three inner loops have one turn."""

WINDOW_BITS = 3 * 2 * WINDOW_ADDRESS_BITS + 20
"""Of what a window's bounds are compared with: three elements, now and at a run's first; a row."""

AHEAD_BITS = {True: 47 + WINDOW_BITS, False: 40 + WINDOW_BITS}
"""Of credits that are compared ahead, a register each, and of those for room in the queues of
commands, and whether all have room; whether each walk may start; of each loader whether words are
left, and whether one is; of the window its bounds', and whether a column or a row ends, now and at
the block's first pixel, and whether a tile has one.  Decoupled, with a walk of its own for
stationary loads, or not."""


def pipelining_bits(design: CoreDesign) -> int:
    """Flip-flops of the registers that `pipelined_control` adds."""
    if not design.pipelined_control:
        return 0
    decoupled = design.array_columns["dataflow"] in (mc.WEIGHT_STATIONARY, mc.INPUT_STATIONARY)
    sequencers = PIPELINED_SEQUENCER_BITS * (1 + decoupled)
    return PIPELINED_WALKER_BITS + sequencers + AHEAD_BITS[decoupled]


OUTPUT_AHEAD_BITS = 6
"""More in an output stage with `output_registers`, which compares a row ahead: whether the next row
is a short one, is the tile's last, is the last of its bias word; and three credits."""

GATHERING_BITS = 272
"""Of the commands and counters of a core with a gather unit: the words of a row in the walker's and
in the ifmap's queue, with rows there, and two counters."""


def gathering_bits(design: CoreDesign) -> int:
    """Flip-flops of commands and counters that a gather unit adds."""
    return GATHERING_BITS if design.gather else 0


def gather_unit(design: CoreDesign) -> Components:
    """The unit between the ifmap's loader and its scratchpad, where there is one."""
    return design.gather.components() if design.gather else ()


def operand_memories(
    design: CoreDesign, lanes: tuple[int, int], *, weight_delays: int = 1
) -> Components:
    """The scratchpads of the operands, of (ifmap, weight) lanes, and what puts words in order.

    weight_delays: registers between the weight scratchpad and the array.
    """
    ifmap, weight = lanes
    bits, wide = design.word_bits("ifmap") // ifmap, design.word_bits("weight") // weight
    every_lane: Events = {"ifmap_read": float(ifmap)}
    every_column: Events = {"weight_read": float(weight)}
    return (
        *gather_unit(design),
        *design.ifmap_memory.components(design.use("ifmap").as_lanes(ifmap)),
        *(registers("ifmap.memory", bits, ifmap, every_lane) if design.ifmap_registers else ()),
        *_rotation(bits, ifmap),
        *registers("ifmap.align", bits, ifmap, every_lane),
        *design.weight_memory.components(design.use("weight").as_lanes(weight)),
        *registers(
            "weight.memory", wide, weight_delays * weight, times(every_column, weight_delays)
        ),
        *waiting(design, ifmap),
    )


def waiting(design: CoreDesign, ifmap_lanes: int) -> Components:
    """Registers by which one operand waits for the other."""
    bits = waiting_bits(design, ifmap_lanes)
    return registers("ifmap.wait", bits, 1, {"ifmap_read": 1.0}) if bits else ()


def waiting_bits(design: CoreDesign, ifmap_lanes: int) -> int:
    """Flip-flops by which credits, addresses, and reads of a memory that is told of them, are late.

    An ifmap memory whose capacity hangs on values is told of each read, a cycle behind its issue.
    """
    asked = {
        "ifmap": 1 + WINDOW_ADDRESS_BITS + 2 * ifmap_lanes.bit_length(),
        "weight": 5,
    }
    total = 1 + design.read_wait_cycles("ifmap") if "ifmap" in design.stores else 0
    for name, bits in asked.items():
        kind = design.memory(name)
        total += design.read_wait_cycles(name) * (bits + 1) + kind.write_latency_cycles
    aligned = (ifmap_lanes - 1).bit_length() + 2 * ifmap_lanes.bit_length()
    total += (design.read_latency_cycles("ifmap") - 1) * aligned
    return total + design.weight_memory.read_latency_cycles - 1


def _rotation(bits: int, lanes: int) -> Components:
    """The rotator that puts the banks' words in order: log2(lanes) levels."""
    levels = (lanes - 1).bit_length()
    return selectors("ifmap.align", bits, lanes * levels, {"ifmap_read": float(lanes * levels)})


def accumulator_memory(design: CoreDesign, columns: int) -> Components:
    """The scratchpad of sums: two halves of a sum a column."""
    return design.accumulator_memory.macros(
        "accumulator.memory",
        (2, columns, design.accumulator_word_bits // columns, design.depth("accumulator")),
        {"accumulator_read": 1.0},
        {"accumulator_write": 1.0},
    )


def accumulators(design: CoreDesign, columns: int) -> Components:
    """Both halves of the accumulators of integers, each with adders of its own."""
    bits = design.accumulator_word_bits // columns
    rows_added: Events = {"accumulator_write": float(columns)}
    return (
        *accumulator_memory(design, columns),
        *adders("accumulator.adder", bits, 2 * columns, rows_added),
        *selectors("accumulator.adder", bits, 2 * columns, rows_added),
        *selectors("accumulator.memory", bits, columns, {"output_read": float(columns)}),
    )


def bias_memory(design: CoreDesign, lanes: int) -> Components:
    """Both halves of the bias memory, of so many lanes."""
    return design.bias_memory.macros(
        "output_stage.bias",
        (2, lanes, design.word_bits("bias") // lanes, design.depth("bias")),
        {"output_read": 1.0},
        {"bias_write": 1.0},
    )


def packer(design: CoreDesign, units: int, *, ahead: bool = False) -> Components:
    """What packs rows into words of so many units: a row and what is begun, turned and merged.

    The places travel beside the rows, from the read of the sums on.  ahead: whether a row completes
    a word is kept in a register.
    """
    name, bits = "output_stage.packer", design.word_bits("ofmap") // units
    row: Events = {"output_read": 1.0}
    place_bits = 3 + address_bits(units)
    turned = units * ((units - 1).bit_length() + 2)
    return (
        *moved_registers(name, place_bits, design.output_latency_cycles - 1, row),
        *registers(name, address_bits(units) + ahead, 1, row),
        *adders(name, address_bits(units) + 1, 2, times(row, 2)),
        *moved_registers(name, bits, units, row),
        *selectors(name, bits, turned, times(row, turned)),
        *held_registers(name, bits, units - 1, times(row, units - 1)),
    )


def output_queue(design: CoreDesign, lanes: int) -> Components:
    """The words that wait at the ofmap port, of so many lanes."""
    bits, queued = design.word_bits("ofmap") // lanes, design.output_queue_depth
    words: Events = {"ofmap_write": float(lanes)}
    return (
        *held_registers("output_stage.queue", bits, lanes * queued, words),
        *selector_tree("output_stage.queue", (bits, queued), lanes, words),
    )


def token_bits(design: CoreDesign) -> int:
    """What travels beside a row of sums: four flags and the row's address."""
    return 4 + address_bits(design.depth("accumulator"))


def walk_state_bits(design: CoreDesign, ifmap_lanes: int, *, chunk: int) -> int:
    """Flip-flops of the control of a core with one sequencer, tokens and output stage apart.

    Those of every core, and what grows with the addresses: loaders, weight reader, banks.  chunk:
    elements of a run that a fold takes; the lower bits of its multiples are 0 if it is even.
    """
    depths = [design.depth(name) for name in ("ifmap", "weight", "bias")]
    loaders = sum(map(address_bits, depths))
    weights = 2 * design.depth("weight").bit_length() + address_bits(design.depth("weight"))
    banks = ifmap_lanes + (ifmap_lanes - 1).bit_length() + 4 * ifmap_lanes.bit_length()
    banks -= ifmap_lanes * design.ifmap_memory.joined_halves
    weights -= design.weight_memory.joined_halves
    constant = (chunk & -chunk).bit_length() - 1
    shared = SHARED_STATE_BITS + pipelining_bits(design) + gathering_bits(design)
    return shared + loaders + weights + banks - constant
