"""Components that every core shares: blocks of logic, memories, streams, control.

A block wider than the sources measure is given as several narrower ones that make it up.  The
registers of a core are clocked in every cycle; an action says which of them take new data.

The small buffers of an array are memories in the emitted core too.  Components made of one have
names that end in `WORDS`, whether they are a macro or built of registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from archsim.compressed_memory import Boveda
from energy_models.component import Component

if TYPE_CHECKING:
    from archsim.core.core_design import CoreDesign

Events = Mapping[str, float]
Components = tuple[Component, ...]

SMALLEST_MACRO_BITS = 4096
FEWEST_MACRO_WORDS = 32
"""A memory of fewer bits or words is built of registers: memory macros are not so small."""

WORDS = ".words"
REQUANTIZE = "output_stage.requantize"

WIDEST = {
    "register": 1024,
    "mux": 128,
    "one_hot": 128,
    "adder": 64,
    "shifter": 64,
    "multiplier": 16,
}
"""Bits of the widest block that was synthesised; of a multiplier, of its narrower operand."""

NARROWEST = {"adder": 2, "shifter": 8, "multiplier": 2}

SHARED_STATE_BITS = 4749
"""Flip-flops of the tile walker, of the queues of commands, of a sequencer of the stream, of the
window's walk, of loaders, credits and counters, but for the addresses, counted in the netlist."""


def times(events: Events, factor: float) -> Events:
    """So many events for every one."""
    return {action: factor * number for action, number in events.items()}


def registers(name: str, bits: int, count: int, write: Events) -> Components:
    """`count` registers, clocked in every cycle, of which `write` says how many take new data."""
    found: list[Component] = []
    for part, parts in parts_of(bits, WIDEST["register"]):
        number, written = count * parts, times(write, parts)
        held: dict[str, float] = {"cycle": float(number)}
        for action, events in written.items():
            held[action] = held.get(action, 0.0) - events
        found += block("register", name, {"bits": part}, number, {"clock": held, "write": written})
    return tuple(found)


def moved_registers(name: str, bits: int, count: int, events: Events) -> Components:
    """`count` registers that all take new data with each of the events."""
    return registers(name, bits, count, times(events, count))


def held_registers(name: str, bits: int, count: int, write: Events) -> Components:
    """Registers that keep their data until they are written: each with a multiplexer before it."""
    return (*registers(name, bits, count, write), *selectors(name, bits, count, write))


def selectors(name: str, bits: int, count: int, select: Events) -> Components:
    """`count` two-way multiplexers."""
    return tuple(
        one
        for part, parts in parts_of(bits, WIDEST["mux"])
        for one in block(
            "mux", name, {"bits": part, "ways": 2}, count * parts, {"select": times(select, parts)}
        )
    )


def selector_tree(name: str, shape: tuple[int, int], count: int, select: Events) -> Components:
    """`count` trees of two-way multiplexers over (bits, ways); a word passes log2(ways) of them."""
    bits, ways = shape
    levels = (ways - 1).bit_length()
    if ways == 1:
        return ()
    return tuple(
        one
        for part, parts in parts_of(bits, WIDEST["mux"])
        for one in block(
            "mux",
            name,
            {"bits": part, "ways": 2},
            count * parts * (ways - 1),
            {"select": times(select, parts * levels)},
        )
    )


def adders(name: str, bits: int, count: int, add: Events) -> Components:
    """`count` adders."""
    return tuple(
        one
        for part, parts in parts_of(max(bits, NARROWEST["adder"]), WIDEST["adder"])
        for one in block(
            "adder",
            name,
            {"bits": max(part, NARROWEST["adder"])},
            count * parts,
            {"add": times(add, parts)},
        )
    )


def incrementers(name: str, bits: int, count: int, add: Events) -> Components:
    """`count` chains of half adders, which negate or round: each an adder of half the bits."""
    return adders(name, -(-bits // 2), count, add)


def shifters(name: str, bits: int, count: int, shift: Events) -> Components:
    """`count` barrel shifters of up to 64 bits."""
    sizes = {"bits": max(bits, NARROWEST["shifter"])}
    return block("shifter", name, sizes, count, {"shift": shift})


def multipliers(name: str, operands: tuple[int, int], count: int, multiply: Events) -> Components:
    """`count` multipliers of (a, b) bits.

    An operand beyond 16 bits (the narrower one) is cut into pieces, whose products are added; one
    of a single bit selects the other operand or 0.
    """
    wide, narrow = max(operands), min(operands)
    if narrow == 1:
        return selectors(name, wide, count, multiply)
    cut = parts_of(narrow, WIDEST["multiplier"])
    found: list[Component] = []
    for part, parts in cut:
        sizes = {"a_bits": wide, "b_bits": part}
        found += block(
            "multiplier", name, sizes, count * parts, {"multiply": times(multiply, parts)}
        )
    joints = sum(parts for _, parts in cut) - 1
    return (*found, *adders(name, wide + narrow, count * joints, times(multiply, joints)))


def adder_tree(name: str, shape: tuple[int, int], count: int, events: Events) -> Components:
    """`count` trees over (lanes, bits), a register behind each level, all busy with each event.

    A lane that a level leaves over is kept at its own width.
    """
    lanes, bits = shape
    left_over = bits
    found: Components = ()
    while lanes > 1:
        added, left = divmod(lanes, 2)
        bits += 1
        found += adders(name, bits, count * added, times(events, count * added))
        found += moved_registers(name, bits, count * added, events)
        found += moved_registers(name, left_over, count * left, events)
        lanes, left_over = added + left, left_over if left else bits
    return found


def block(
    kind: str, name: str, sizes: Mapping[str, int], count: int, actions: Mapping[str, Events]
) -> Components:
    """`count` pieces of a kind, or nothing if there are none."""
    if count == 0:
        return ()
    return (Component(name=name, kind=kind, count=count, attributes=sizes, actions=actions),)


def parts_of(bits: int, widest: int) -> tuple[tuple[int, int], ...]:
    """A width as even parts of at most `widest`: (bits, how many)."""
    parts = -(-bits // widest)
    if parts == 0:
        return ()
    narrow, wider = divmod(bits, parts)
    return tuple(
        (size, number) for size, number in ((narrow, parts - wider), (narrow + 1, wider)) if number
    )


def memory(name: str, shape: tuple[int, int, int, int], read: Events, write: Events) -> Components:
    """`count` one-read one-write memories of (count, lanes, lane_bits, depth)."""
    count, lanes, lane_bits, depth = shape
    word_bits, depth = lanes * lane_bits, max(depth, 2)
    if word_bits * depth >= SMALLEST_MACRO_BITS and depth >= FEWEST_MACRO_WORDS:
        sizes = {"word_bits": word_bits, "depth": depth, "read_ports": 1, "write_ports": 1}
        return block("sram", name, sizes, count, {"read": read, "write": write})
    return (
        *held_registers(name, lane_bits, count * lanes * depth, times(write, lanes)),
        *selector_tree(name, (lane_bits, depth), count * lanes, times(read, lanes)),
        *registers(name, lane_bits, count * lanes, times(read, lanes)),
    )


def off_chip() -> Component:
    """The off-chip memory: every bit that crosses a port."""
    bits = {f"{port}_bytes": 8.0 for port in ("ifmap", "weight", "bias")}
    return Component(
        name="off_chip.dram",
        kind="dram",
        actions={"read": bits, "write": {"ofmap_bytes": 8.0}},
    )


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
        *_ifmap_memory(design, ifmap, bits),
        *_rotation(bits, ifmap),
        *registers("ifmap.align", bits, ifmap, every_lane),
        *_weight_memory(design, weight, wide),
        *registers(
            "weight.memory", wide, weight_delays * weight, times(every_column, weight_delays)
        ),
        *waiting(design, ifmap),
    )


def waiting(design: CoreDesign, ifmap_lanes: int) -> Components:
    """Registers by which one operand waits for the other."""
    from archsim.designs.compressed_components import waiting_bits

    bits = waiting_bits(design, ifmap_lanes)
    return registers("ifmap.wait", bits, 1, {"ifmap_read": 1.0}) if bits else ()


def _ifmap_memory(design: CoreDesign, lanes: int, bits: int) -> Components:
    """Banks of a lane each, or one memory of compressed words."""
    from archsim.designs.compressed_components import compressed_memory

    every_lane: Events = {"ifmap_read": float(lanes)}
    if isinstance(design.ifmap_memory, Boveda):
        return compressed_memory(design, "ifmap", design.ifmap_memory)
    return (
        *memory(
            "ifmap.memory",
            (2 * lanes, 1, bits, design.depth("ifmap")),
            every_lane,
            {"ifmap_write": float(lanes)},
        ),
        *selectors("ifmap.memory", bits, lanes, every_lane),
    )


def _weight_memory(design: CoreDesign, lanes: int, bits: int) -> Components:
    """Two halves of whole words, plain or compressed."""
    from archsim.designs.compressed_components import compressed_memory

    if isinstance(design.weight_memory, Boveda):
        return compressed_memory(design, "weight", design.weight_memory)
    return (
        *memory(
            "weight.memory",
            (2, lanes, bits, design.depth("weight")),
            {"weight_read": 1.0},
            {"weight_write": 1.0},
        ),
        *selectors("weight.memory", bits, lanes, {"weight_read": float(lanes)}),
    )


def _rotation(bits: int, lanes: int) -> Components:
    """The rotator that puts the banks' words in order: log2(lanes) levels."""
    levels = (lanes - 1).bit_length()
    return selectors("ifmap.align", bits, lanes * levels, {"ifmap_read": float(lanes * levels)})


def accumulator_memory(design: CoreDesign, columns: int) -> Components:
    """The scratchpad of sums: two halves of a sum a column."""
    return memory(
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
        *selectors("accumulator.memory", bits, columns, {"ofmap_write": float(columns)}),
    )


def bias_memory(design: CoreDesign, lanes: int) -> Components:
    """Both halves of the bias memory, of so many lanes."""
    return memory(
        "output_stage.bias",
        (2, lanes, design.word_bits("bias") // lanes, design.depth("bias")),
        {"ofmap_write": 1.0},
        {"bias_write": 1.0},
    )


def scaled_sums(bits: tuple[int, int], columns: int, words: Events | None = None) -> Components:
    """For each column (sum + bias) · multiplier, of (sum, multiplier) bits: two registers.

    words: how many are made; by default a row with each `ofmap_write`.
    """
    name, words = REQUANTIZE, words or {"ofmap_write": float(columns)}
    return (
        *adders(name, bits[0] + 1, columns, words),
        *registers(name, bits[0] + 1, columns, words),
        *multipliers(name, (bits[0] + 1, bits[1]), columns, words),
        *registers(name, sum(bits) + 1, columns, words),
    )


def requantizers(bits: tuple[int, int], columns: int, words: Events | None = None) -> Components:
    """For each column a scaled sum, rounded by an addition and shifted; words as `scaled_sums`."""
    rounded, words = sum(bits) + 2, words or {"ofmap_write": float(columns)}
    return (
        *scaled_sums(bits, columns, words),
        *adders(REQUANTIZE, rounded, columns, words),
        *shifters(REQUANTIZE, rounded, columns, words),
    )


def output_queue(design: CoreDesign, lanes: int) -> Components:
    """The words that wait at the ofmap port, of so many lanes."""
    bits, queued = design.word_bits("ofmap") // lanes, design.output_queue_depth
    words: Events = {"ofmap_write": float(lanes)}
    return (
        *held_registers("output_stage.queue", bits, lanes * queued, words),
        *selector_tree("output_stage.queue", (bits, queued), lanes, words),
    )


def address_bits(depth: int) -> int:
    """Bits of an address into so many words."""
    return max((depth - 1).bit_length(), 1)


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
    constant = (chunk & -chunk).bit_length() - 1
    return SHARED_STATE_BITS + loaders + weights + banks - constant


def queue_state_bits(depth: int) -> int:
    """Flip-flops of the pointers and the level of a queue of so many words."""
    return 2 * address_bits(depth) + depth.bit_length()


def control(state_bits: int) -> Component:
    """State machines of so many flip-flops, clocked in every cycle."""
    return Component(
        name="control",
        kind="control",
        attributes={"state_bits": state_bits},
        actions={"clock": {"cycle": 1.0}},
    )
