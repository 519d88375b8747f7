"""A choice by strobes of which at most one is 1, as components: AND-OR, as `rtl/core/one_hot.py`.

Words are blocks of their own kind, measured as they are mapped.  Strobes, which are needed by
themselves and so merge with nothing, are gates counted one by one: a two-way multiplexer is three
gates of two inputs, two AND and an OR, so a gate is priced as a third of it; inverters are left
out.  Words that go to many choices do so through buffers.
"""

from archsim.blocks import WIDEST, Components, Events, block, parts_of, selectors, times

SELECTOR_GATES = 3
"""Of a two-way multiplexer of one bit."""

MOST_WAYS = 32
"""Of the widest choice that was synthesised."""

FANOUT = 16
"""Pins that a gate drives at most, here and in the synthesis (`rtl.synthesis.buffers`)."""


def gates(name: str, number: int, passed: Events) -> Components:
    """So many gates of two inputs; passed: through how many of them what changes goes."""
    return selectors(name, 1, -(-number // SELECTOR_GATES), times(passed, 1 / SELECTOR_GATES))


def buffers(pins: int) -> int:
    """Of the tree through which one signal drives so many pins."""
    found = 0
    while pins > FANOUT:
        pins = -(-pins // FANOUT)
        found += pins
    return found


def spread(name: str, shape: tuple[int, int], count: int, changed: Events) -> Components:
    """The buffers of `count` words of (bits, pins that each bit drives); as large as gates."""
    bits, pins = shape
    number = bits * buffers(pins)
    return gates(name, count * number, times(changed, number)) if number else ()


def strobes(name: str, ways: int, count: int, choose: Events) -> Components:
    """`count` times an AND for each of the ways, and the OR of all, in a balanced tree.

    A strobe passes its AND and ⌈log2(ways)⌉ ORs.
    """
    levels = (ways - 1).bit_length()
    return gates(name, count * (2 * ways - 1), times(choose, 1 + levels))


def one_hot(name: str, shape: tuple[int, int], count: int, choose: Events) -> Components:
    """`count` choices of (bits, ways), ORed where there are more ways than in a block.

    A word passes the block of its way; what is not chosen is masked and passes nothing.
    """
    bits, ways = shape
    if ways == 1:
        return gates(name, count * bits, times(choose, bits))
    found: Components = ()
    groups = parts_of(ways, MOST_WAYS)
    for part, parts in parts_of(bits, WIDEST["one_hot"]):
        for size, number in groups:
            sizes = {"bits": part, "ways": size}
            share = times(choose, parts * size * number / ways)
            found += block("one_hot", name, sizes, count * parts * number, {"choose": share})
    joints = sum(number for _, number in groups) - 1
    return (*found, *gates(name, count * bits * joints, times(choose, bits * joints.bit_length())))
