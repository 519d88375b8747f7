"""Sizes of components, and power laws between two printed sizes.

A figure y of size s between (s₁, y₁) and (s₂, y₂) is y₁·(s/s₁)^α with α = ln(y₂/y₁)/ln(s₂/s₁):
a straight line on logarithmic axes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from energy_models.entry import Entry

SIZES = {
    "mac": ("operand_bits",),
    "multiplier": ("a_bits", "b_bits"),
    "adder": ("bits",),
    "register": ("bits",),
    "mux": ("bits", "ways"),
    "one_hot": ("bits", "ways"),
    "shifter": ("bits",),
    "control": ("state_bits",),
    "sram": ("word_bits", "depth"),
    "dram": ("access_bits",),
}
"""For each kind, the attributes whose product is its size."""


NARROWEST_BITS = 8
"""A narrower word of a memory shares one of so many bits, and costs what an access to that does."""


@dataclass(frozen=True, kw_only=True)
class Between:
    """A figure derived from the printed sizes below and above (the same entry if size is equal)."""

    value: float
    low: Entry
    high: Entry
    how: str


def size_of(kind: str, attributes: Mapping[str, int | str]) -> int:
    """The product of the attributes that make a component large; 1 where one is not given."""
    return math.prod(int(attributes.get(name, 1)) for name in SIZES[kind])


def between(
    kind: str, attributes: Mapping[str, int], quantity: str, entries: Sequence[Entry]
) -> Between | None:
    """The figure of a component between two entries of its kind; None if they do not bracket it.

    Energy of an SRAM access is taken in proportion to the word's bits, but of no fewer than
    `NARROWEST_BITS`, so that what is interpolated in capacity is energy per bit of the word.  An
    SRAM smaller than all printed ones is taken as the smallest: it need cost no more.
    """
    size = size_of(kind, attributes)
    below = [entry for entry in entries if size_of(kind, entry.attributes) <= size]
    above = [entry for entry in entries if size_of(kind, entry.attributes) >= size]
    if kind == "sram" and above and not below:
        below = above = [min(above, key=lambda entry: size_of(kind, entry.attributes))]
    if not below or not above:
        return None
    low = max(below, key=lambda entry: size_of(kind, entry.attributes))
    high = min(above, key=lambda entry: size_of(kind, entry.attributes))
    by_word = kind == "sram" and quantity == "energy"
    points = [
        (size_of(kind, entry.attributes), entry.figure / (_word_bits(entry) if by_word else 1))
        for entry in (low, high)
    ]
    value = power_law(points[0], points[1], size)
    how = _law(kind, low, high, smaller=size < size_of(kind, low.attributes))
    if by_word:
        word_bits = max(attributes["word_bits"], NARROWEST_BITS)
        value *= word_bits
        if {word_bits} != {_word_bits(low), _word_bits(high)}:
            printed = " and ".join(str(n) for n in sorted({_word_bits(low), _word_bits(high)}))
            how += f"; in proportion to the word, {printed} bits there and {word_bits} here"
    return Between(value=value, low=low, high=high, how=how)


def power_law(low: tuple[float, float], high: tuple[float, float], size: float) -> float:
    """The figure at `size` on the power law through two points (size, figure)."""
    if low[0] == high[0]:
        return low[1]
    exponent = math.log(high[1] / low[1]) / math.log(high[0] / low[0])
    return low[1] * (size / low[0]) ** exponent


def nearest_entries(kind: str, attributes: Mapping[str, int], entries: Sequence[Entry]) -> str:
    """The two entries nearest in size, for messages."""
    size = size_of(kind, attributes)

    def distance(entry: Entry) -> float:
        return abs(math.log(size_of(kind, entry.attributes) / size))

    close = sorted(entries, key=distance)[:2]
    return "; ".join(entry.where for entry in close)


def _word_bits(entry: Entry) -> int:
    return int(entry.attributes["word_bits"])


def _law(kind: str, low: Entry, high: Entry, *, smaller: bool) -> str:
    what = "capacity" if kind == "sram" else " × ".join(SIZES[kind])
    if low is high:
        return f"as {low.text}, {'the smallest printed' if smaller else f'of the same {what}'}"
    return f"power law in {what} between {low.text} and {high.text}"
