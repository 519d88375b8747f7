"""How busy the PEs are: a map of the array, and lines of PEs over time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from archsim.plots.axes import Layout, dress, note, plain, separate_thousands
from archsim.plots.shades import scale_bar, shades
from archsim.plots.units import count_unit

if TYPE_CHECKING:
    from archsim.numbers import IntArray
    from archsim.occupancy import FloatArray, Occupancy
    from archsim.result import LayerResult, NetworkResult

_MAP_INCHES = 3.6
"""Height of a map; at most this many times as wide as high, or as high as wide."""
_FLATTEST = 2.5
_MOST_NOTES = 400
_MOST_NUMBERS = 64
_WIDTH, _PANEL_INCHES, _GAP = 10.0, 1.6, 0.2


@dataclass(frozen=True, kw_only=True)
class OccupancyPlot:
    """Maps of an `Occupancy`, the stronger the colour the more of the cycles a PE was busy."""

    result: NetworkResult
    layout: Layout

    def array(self, found: Occupancy, ax: Any) -> Any:
        """The array as a map: of each PE the share of cycles in which it was busy."""
        shares = found.shares
        rows, columns = shares.shape
        flat = min(max(columns / rows, 1 / _FLATTEST), _FLATTEST)
        drawn = self.layout.axes(ax, _MAP_INCHES * max(flat, 1) + 2.5, _MAP_INCHES + 1)
        drawn.set_title(plain(self._title(found)), wrap=True)
        most = float(shares.max()) or 1.0
        shades(drawn, shares / most, (0, columns, rows, 0), numbered=shares.size <= _MOST_NUMBERS)
        drawn.set_box_aspect(1 / flat)
        drawn.set_anchor("W" if self.layout.narrow else "C")
        drawn.set_xlim(0, columns)
        drawn.set_ylim(rows, 0)
        self._axis(drawn.xaxis, found.column, columns)
        self._axis(drawn.yaxis, found.row, rows)
        for box, text in _notes(found):
            self._note(drawn, box, text)
        if shares.size <= _MOST_NUMBERS:
            self._numbers(drawn, shares)
        scale_bar(drawn, most, "busy (% of the cycles)", narrow=self.layout.narrow)
        return drawn

    def over_time(self, found: Occupancy, ax: Any) -> Any:
        """Lines of PEs, rows above columns, from the start of the run to its end."""
        panels = len(found.lines)
        drawn = self.layout.axes(ax, _WIDTH, 1.3 + _PANEL_INCHES * max(panels, 2))
        dress(drawn, self._title(found), "x")
        drawn.grid(False)
        unit = count_unit(found.cycles, "cycles")
        ticks: dict[float, str] = {}
        for at, lines in enumerate(found.lines):
            top, count = at * (1 + _GAP), lines.counts.shape[1]
            shares = found.over_time(lines)
            for left, right, part in _spans(found.edges_cycles, shares):
                ends = left / unit.size, right / unit.size
                shades(drawn, part.T, (*ends, top + 1, top))
            ticks[top + 0.5 / count] = f"{lines.name} 0"
            if count > 1:
                ticks[top + 1 - 0.5 / count] = f"{lines.name} {count - 1}"
        drawn.set_yticks(list(ticks), list(ticks.values()))
        drawn.set_ylim(panels * (1 + _GAP) - _GAP, 0)
        drawn.set_xlim(0, found.cycles / unit.size)
        drawn.set_xlabel("cycles" if unit.size == 1 else f"time ({unit.name})")
        separate_thousands(drawn.xaxis)
        for start, end, layer in self._layers(found):
            share = f"{100 * layer.utilization:.1f} % of the array's MACs"
            text = f"{layer.name}: {share}, cycles {start:,} to {end:,}"
            self._note(drawn, (start / unit.size, 0, end / unit.size, drawn.get_ylim()[0]), text)
        scale_bar(drawn, 1.0, "busy PEs of the line (%)", narrow=self.layout.narrow)
        return drawn

    def _title(self, found: Occupancy) -> str:
        shares = 100 * found.shares
        spread = f"PEs busy in {shares.min():.1f} to {shares.max():.1f} % of the cycles"
        return f"{found.name} on {self.result.design_name}: {spread}"

    def _layers(self, found: Occupancy) -> Iterator[tuple[int, int, LayerResult]]:
        """The layers that are shown, with their first and last cycle."""
        layers = [one for one in self.result.layers if one.cycles]
        named = [one for one in layers if one.name == found.name and one.cycles == found.cycles]
        start = 0
        for one in named or layers:
            yield start, start + one.cycles, one
            start += one.cycles

    def _axis(self, axis: Any, name: str, count: int) -> None:
        """Numbers of lines of PEs, each at its middle."""
        step = max(1, -(-count // (4 if self.layout.narrow else 8)))
        step = step if count <= 16 else 1 << (step - 1).bit_length()
        places = np.arange(0, count, step)
        axis.set_ticks(places + 0.5, [str(place) for place in places])
        axis.set_label_text(f"{name} of PEs" if name in ("row", "column") else name)

    def _numbers(self, ax: Any, shares: FloatArray) -> None:
        size = max(self.layout.smallest_text_points, 8.0)
        for (row, column), share in np.ndenumerate(shares):
            text = f"{100 * float(share):.0f}"
            ax.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=size)

    def _note(self, ax: Any, box: tuple[float, float, float, float], text: str) -> None:
        from matplotlib.patches import Rectangle

        left, top, right, bottom = box
        none: dict[str, Any] = {"facecolor": "none", "edgecolor": "none", "label": "_"}
        mark = Rectangle((left, top), right - left, bottom - top, **none)
        ax.add_patch(mark)
        note(mark, text)


def _spans(edges: IntArray, shares: FloatArray) -> Iterator[tuple[int, int, FloatArray]]:
    """Spans of time of one length that follow one another are one picture."""
    lengths = np.diff(edges)
    changed = np.flatnonzero(lengths[1:] != lengths[:-1]) + 1
    for first, after in pairwise([0, *changed.tolist(), len(lengths)]):
        yield int(edges[first]), int(edges[after]), shares[first:after]


def _bands(values: FloatArray) -> list[tuple[int, int]]:
    """Runs of equal rows: first and last, both included."""
    changed = np.flatnonzero((values[1:] != values[:-1]).any(axis=1)) + 1
    edges = [0, *changed.tolist(), len(values)]
    return [(first, after - 1) for first, after in pairwise(edges)]


def _notes(found: Occupancy) -> Iterator[tuple[tuple[float, float, float, float], str]]:
    """What blocks of PEs that are all alike do; nothing where there are too many blocks."""
    shares = found.shares
    rows, columns = _bands(shares), _bands(shares.T)
    if len(rows) * len(columns) > _MOST_NOTES:
        return
    for top, bottom in rows:
        for left, right in columns:
            where = f"{_numbers(found.row, top, bottom)}, {_numbers(found.column, left, right)}"
            text = f"{where}: busy in {100 * shares[top, left]:.2f} % of the cycles"
            yield (left, top, right + 1, bottom + 1), text


def _numbers(name: str, first: int, last: int) -> str:
    return f"{name} {first}" if first == last else f"{name}s {first} to {last}"
