"""A choice by strobes of which at most one is 1, as components: AND-OR, as `rtl/core/one_hot.py`.

Counted in gates, from blocks that were measured: up to four ways are a multiplexer of as many ways,
which the mapper builds of AND and OR too (over a word its decoder is little).  Their words are ORed
two by two; a gate of two inputs with another behind it is priced as a two-way multiplexer of a bit.
"""

from archsim.designs import core_components as core
from archsim.designs.core_components import Components, Events, selectors, times

WAYS = 4
"""Of the widest multiplexer that is AND-OR in cells; one of more is a tree of multiplexers."""


def one_hot(name: str, shape: tuple[int, int], count: int, select: Events) -> Components:
    """`count` choices of (bits, ways): a word passes one multiplexer, and log2 of the ORs.

    What is not selected does not toggle: it is masked at the input.
    """
    bits, ways = shape
    full, left = divmod(ways, WAYS)
    found: Components = ()
    for part, number in ((WAYS, full), (left, 1)):
        if number and part > 1:
            sizes = {"bits": min(bits, core.WIDEST["mux"]), "ways": part}
            share = times(select, part * number / ways)
            found += core.block("mux", name, sizes, count * number, {"select": share})
    words = full + (left > 0)
    pairs, passed = or_pairs(words, alone=left == 1)
    return (*found, *selectors(name, bits, count * pairs, times(select, passed)))


def or_pairs(words: int, *, alone: bool) -> tuple[int, int]:
    """Of a tree that ORs words: its gates a bit in twos, and how many of the twos a word passes.

    alone: one of the words is a single way, masked by a gate of its own.
    """
    gates, levels = words - 1 + alone, (words - 1).bit_length() + alone
    return -(-gates // 2), -(-levels // 2)
