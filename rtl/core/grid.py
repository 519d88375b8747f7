"""What grids of PEs are made of: rows, in bands where there are many, and skew around them."""

from typing import Any

from amaranth.hdl import Cat, Module, Value
from amaranth.lib import wiring

from rtl.core.delay import Skew
from rtl.hierarchy import place

BAND = 16
"""Rows that stand in one module where an array has more, so that they are emitted once."""


def place_rows(
    m: Module,
    rows: int,
    kinds: tuple[type[wiring.Component], type[wiring.Component]],
    shape: Any,
    lut_rows: int = 0,
) -> list[tuple[Any, slice]]:
    """The rows from top to bottom, or bands of them; each with which rows it is.

    kinds: of a row, and of a band.  lut_rows: the last so many have their products in look-up
    tables.
    """
    row, band = kinds
    placed: list[tuple[Any, slice]] = []
    if rows <= BAND:
        for at in range(rows):
            own = {"in_luts": True} if at >= rows - lut_rows else {}
            placed.append((place(m, f"row_{at}", row, **shape, **own), slice(at, at + 1)))
        return placed
    for number, first in enumerate(range(0, rows, BAND)):
        end = min(first + BAND, rows)
        last = min(max(lut_rows - (rows - end), 0), end - first)
        own = {"lut_rows": last} if last else {}
        line = place(m, f"band_{number}", band, rows=end - first, **shape, **own)
        placed.append((line, slice(first, end)))
    return placed


def skewed(m: Module, name: str, values: list[Value], *, falling: bool = False) -> list[Value]:
    """Skew equal lanes; returns the skewed lanes."""
    bits = len(values[0])
    skew = place(m, name, Skew, lanes=len(values), bits=bits, falling=falling)
    m.d.comb += skew.i.eq(Cat(value[:bits] for value in values))
    return [skew.o.word_select(lane, bits) for lane in range(len(values))]
