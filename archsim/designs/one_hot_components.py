"""A choice by strobes of which at most one is 1, as components: AND-OR, as `rtl/core/one_hot.py`.

Gates are counted one by one.  A two-way multiplexer is three gates of two inputs, two AND and an
OR, so a gate is priced as a third of it; inverters are left out.
"""

from archsim.designs.core_components import Components, Events, selectors, times

SELECTOR_GATES = 3
"""Of a two-way multiplexer of one bit."""


def gates(name: str, number: int, passed: Events) -> Components:
    """So many gates of two inputs; passed: through how many of them what changes goes."""
    return selectors(name, 1, -(-number // SELECTOR_GATES), times(passed, 1 / SELECTOR_GATES))


def one_hot(name: str, shape: tuple[int, int], count: int, select: Events) -> Components:
    """`count` choices of (bits, ways): n AND and n − 1 OR a bit, in a balanced tree.

    A word passes an AND and ⌈log2(ways)⌉ ORs; what is not selected is masked and passes nothing.
    """
    bits, ways = shape
    levels = (ways - 1).bit_length()
    return gates(name, count * bits * (2 * ways - 1), times(select, bits * (1 + levels)))
