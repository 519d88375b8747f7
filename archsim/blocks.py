"""Components that hardware of any kind is made of: registers, choices, adders, memories.

A block wider than the sources measure is given as several narrower ones that make it up.  The
registers of a core are clocked in every cycle; an action says which of them take new data.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from energy_models.component import Component

Events = Mapping[str, float]
Components = tuple[Component, ...]

WORDS = ".words"

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


def times(events: Events, factor: float) -> Events:
    """So many events for every one."""
    if factor == 1:
        return events
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


@lru_cache(maxsize=4096)
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
    sizes = {"word_bits": lanes * lane_bits, "depth": max(depth, 2)}
    ports = {"read_ports": 1, "write_ports": 1}
    return block("sram", name, sizes | ports, count, {"read": read, "write": write})


def address_bits(depth: int) -> int:
    """Bits of an address into so many words."""
    return max((depth - 1).bit_length(), 1)
