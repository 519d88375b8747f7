"""A choice by strobes of which at most one is 1."""

from collections.abc import Sequence
from functools import reduce
from operator import or_

from amaranth.hdl import C, Cat, Module, Signal, Value


def chosen(choices: Sequence[tuple[Value, Value]]) -> Value:
    """The value whose strobe is 1; 0 if none is.

    choices: (strobe, value), one at least; all values have the same width.  AND-OR: each value
    masked by its strobe, all of them ORed by a balanced tree.  Combinational; ⌈log2(n)⌉ + 1 gates
    of two inputs deep, n AND and n − 1 OR a bit.  If two strobes are 1, it is the OR of both.
    """
    return any_of([value & strobe.replicate(len(value)) for strobe, value in choices])


def any_of(words: Sequence[Value]) -> Value:
    """OR of words, one at least, by a balanced tree."""
    level = list(words)
    while len(level) > 1:
        level = [reduce(or_, level[at : at + 2]) for at in range(0, len(level), 2)]
    return level[0] if level else C(0, 1)


def lowest_of(m: Module, word: Value, group: int = 16) -> Value:
    """The lowest bit that is 1, alone; 0 if none is.

    Combinational: in groups of so many bits at once, and among groups, so that a carry runs through
    one group and once over all of them, where word & −word runs through the whole word.

    Which groups have one, and which is the lowest of them, stand in signals of `m`: an expression
    is written out wherever it is read, and each group reads them.
    """
    if len(word) <= group:
        return (word & (~word + 1))[: len(word)]
    parts = [word[at : at + group] for at in range(0, len(word), group)]
    some, first = (Signal(len(parts), name=f"{name}_of_{len(parts)}") for name in ("some", "first"))
    m.d.comb += [some.eq(Cat(part.any() for part in parts)), first.eq(lowest_of(m, some, group))]
    return Cat(
        lowest_of(m, part, group) & here.replicate(len(part))
        for part, here in zip(parts, first, strict=True)
    )


def index_of(one_hot: Value) -> Value:
    """The number of the bit that is 1; 0 if none is.  If several are, the OR of their numbers."""
    width = max((len(one_hot) - 1).bit_length(), 1)
    return Cat(
        any_of([one_hot[at] for at in range(len(one_hot)) if at >> bit & 1] or [C(0, 1)])
        for bit in range(width)
    )
