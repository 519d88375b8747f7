"""Single SRAM banks as CACTI sees them: a grid of word widths and depths, and what lies between.

A file of `sram_grids` holds one technology node and cell, made by `benchmarks/sram_grid.py`.
Between points the figures follow a power law in depth at the two word widths around, then one in
word width.  Nothing is extrapolated.

`Grid.figures` is what CACTI says.  `Grid.least` is what a memory need cost: a bank with more words
or wider ones, of which a part is left unused, does as well, so it is the least of all that are as
large.  That rises in words and in width, and below the grid's first words it stays at their price.

CACTI chooses each bank's inner organisation anew, so that its own figures step, and now and then
fall, where a larger bank is organised differently: reading 8 bits from 32 Ki words of itrs-lstp at
45 nm costs 9 % less than from 16 Ki.  The grid keeps that; `benchmarks/sram_fit.md` has what it
means for interpolation.
"""

from __future__ import annotations

import csv
import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from operator import itemgetter
from pathlib import Path

from energy_models.errors import EnergyError, require_known

FOLDER = Path(__file__).parent / "sram_grids"
NODES_NM = (22, 32, 45, 65, 90)
"""With tables of their own in CACTI; its 16 nm is scaled from 22 nm, and so left out."""

CELLS = ("itrs-lstp", "itrs-hp")
"""Transistors of cells and periphery: low standby power, high performance."""

PORTS = ("1rw", "1r1w")
"""One port that reads or writes; one that reads and one that writes."""

FIGURES = ("read_pj", "write_pj", "area_um2", "leakage_mw")

Figures = tuple[float, ...]
"""One value for each of `FIGURES`; energies are of one word."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Figures of banks at one node, of one cell.

    source: tool, version and conditions.
    columns: for ports and word_bits, the figures by depth, depths ascending.
    """

    source: str
    voltage_v: float
    columns: Mapping[str, Mapping[int, Mapping[int, Figures]]]

    def widths(self, ports: str) -> list[int]:
        """The word widths there are, ascending."""
        return sorted(self.columns[ports])

    def depths(self, ports: str, word_bits: int) -> tuple[int, int]:
        """The least and the greatest depth of banks with that word, which may lie between widths.

        Raises `EnergyError` for a word outside the grid's.
        """
        around = [self.columns[ports][each] for each in self._around(ports, word_bits)]
        return max(min(column) for column in around), min(max(column) for column in around)

    def figures(self, ports: str, word_bits: int, depth: int) -> tuple[Figures, str]:
        """A bank's figures, and how they were had: "" for a point of the grid.

        Raises `EnergyError` outside the grid, with its range and the nearest point.
        """
        least, most = self.depths(ports, word_bits)
        if not least <= depth <= most:
            end = least if depth < least else most
            raise EnergyError(
                f"CACTI's grid has banks of {least} to {most} words of {word_bits} bits, "
                f"not of {depth}; nearest: {end} words"
            )
        widths = self._around(ports, word_bits)
        ends: list[tuple[int, Figures]] = []
        spans: list[str] = []
        for width in widths:
            column = self.columns[ports][width]
            depths = _around(list(column), depth)
            ends.append((width, _between(depth, [(at, column[at]) for at in depths])))
            if len(depths) > 1 and _words(depths) not in spans:
                spans.append(_words(depths))
        if len(widths) > 1:
            spans.insert(0, f"{widths[0]} and {widths[1]} bits")
        how = f"interpolated between {', '.join(spans)}" if spans else ""
        return _between(word_bits, ends), how

    def least(self, ports: str, word_bits: int, depth: int) -> tuple[Figures, str]:
        """The least figures of banks that hold so many words, and how they were had.

        Each figure by itself.  "" for a point of the grid which no larger bank undercuts.  Raises
        `EnergyError` for words of other widths than the grid's and for more of them.
        """
        shallowest, deepest = self.depths(ports, word_bits)
        if depth > deepest:
            self.figures(ports, word_bits, depth)  # refuses
        ends = [
            (width, self._hull(ports, width, depth)) for width in self._around(ports, word_bits)
        ]
        found = _between(word_bits, ends)
        own, how = self.figures(ports, word_bits, max(depth, shallowest))
        if depth < shallowest:
            return found, f"as of {shallowest} words, the fewest that CACTI was asked for"
        if any(least < other * (1 - 1e-9) for least, other in zip(found, own, strict=True)):
            return found, "; ".join(
                part for part in (how, "at most what a larger bank takes") if part
            )
        return found, how

    def _hull(self, ports: str, width: int, depth: int) -> Figures:
        """The least of banks whose words have this width of the grid, or one above."""
        wider = [
            _least_depth(self._rising[ports, each], depth)
            for each in self.widths(ports)
            if each >= width and depth <= max(self.columns[ports][each])
        ]
        return tuple(min(values) for values in zip(*wider, strict=True))

    @cached_property
    def _rising(self) -> Mapping[tuple[str, int], tuple[tuple[int, Figures], ...]]:
        """The columns, in which no point has more than one that is deeper."""
        return {
            (ports, width): _never_falling(column)
            for ports, columns in self.columns.items()
            for width, column in columns.items()
        }

    def _around(self, ports: str, word_bits: int) -> list[int]:
        widths = self.widths(ports)
        if not widths[0] <= word_bits <= widths[-1]:
            end = widths[0] if word_bits < widths[0] else widths[-1]
            raise EnergyError(
                f"CACTI's grid has words of {widths[0]} to {widths[-1]} bits, "
                f"not of {word_bits}; nearest: {end} bits"
            )
        return _around(widths, word_bits)


def file_of(node_nm: float, cell: str) -> Path:
    """Where the points of a node and cell are kept."""
    return FOLDER / f"{cell}_{node_nm:g}nm.csv"


@cache
def load_grid(node_nm: float, cell: str) -> Grid:
    """The grid of a node and cell.  Raises `EnergyError` where there is none."""
    require_known(cell, CELLS, f"no SRAM cell {cell!r}")
    if node_nm not in NODES_NM:
        close = min(NODES_NM, key=lambda known: abs(known - node_nm))
        raise EnergyError(
            f"no SRAM grid of {node_nm:g} nm: CACTI has tables of its own for "
            f"{', '.join(map(str, NODES_NM))} nm; scale from the nearest, {close} nm"
        )
    about: dict[str, str] = {}
    columns: dict[str, dict[int, dict[int, Figures]]] = {ports: {} for ports in PORTS}
    with file_of(node_nm, cell).open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file):
            if row[0].startswith("# "):
                name, _, value = ",".join(row)[2:].partition(" = ")
                about[name] = value
            elif row[0] in columns:
                column = columns[row[0]].setdefault(int(row[1]), {})
                column[int(row[2])] = tuple(map(float, row[3:]))
    source = f"{about['source']}, {cell}, {node_nm:g} nm, {about['temperature_k']} K"
    return Grid(source=source, voltage_v=float(about["voltage_v"]), columns=columns)


def _around(sizes: Sequence[int], size: int) -> list[int]:
    """The size itself if it is there, else the two around it; `sizes` ascend and span it."""
    at = bisect_left(sizes, size)
    return [size] if sizes[at] == size else [sizes[at - 1], sizes[at]]


def _between(size: int, ends: Sequence[tuple[int, Figures]]) -> Figures:
    """The one end's figures, or those of a power law through the two ends (`power_law`)."""
    (low, figures), (high, others) = ends[0], ends[-1]
    if low == high:
        return figures
    span, ratio = math.log(high / low), size / low
    return tuple(
        a * ratio ** (math.log(b / a) / span) for a, b in zip(figures, others, strict=True)
    )


def _never_falling(column: Mapping[int, Figures]) -> tuple[tuple[int, Figures], ...]:
    """A column's points by depth, each figure the least of its own and all deeper ones'."""
    found: list[tuple[int, Figures]] = []
    for depth in sorted(column, reverse=True):
        deeper = found[-1][1] if found else column[depth]
        found.append((depth, tuple(map(min, column[depth], deeper))))
    return tuple(reversed(found))


def _least_depth(column: Sequence[tuple[int, Figures]], depth: int) -> Figures:
    """The figures at a depth that is no greater than the column's last."""
    if depth <= column[0][0]:
        return column[0][1]
    at = bisect_left(column, depth, key=_depth)
    return column[at][1] if column[at][0] == depth else _between(depth, column[at - 1 : at + 1])


_depth = itemgetter(0)


def _words(depths: Sequence[int]) -> str:
    return f"{depths[0]} and {depths[1]} words"
