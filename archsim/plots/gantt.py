"""What each port and unit of a core does for each tile of a layer: bars over cycles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archsim.errors import InputError, nearest, require, require_positive
from archsim.machine.interval import (
    ARRAY,
    ARRAY_WAITS,
    LOADERS,
    OFMAP_PORT,
    OUTPUT_STAGE,
    WRITES,
    Interval,
)
from archsim.plots.axes import Layout, dress, legend, note, separate_thousands, shortened
from archsim.plots.palette import CAUSE_COLOURS, PORT_COLOURS, cause_text
from workloads.layers import Conv2d, MatMul
from workloads.steps import one_step

if TYPE_CHECKING:
    from archsim.machine.model import Answer
    from archsim.result import LayerResult, NetworkResult

UNITS = (*LOADERS, ARRAY_WAITS, ARRAY, OUTPUT_STAGE, OFMAP_PORT, WRITES)
"""From the top down, as data flow."""

_MOST, _MOST_NARROW = 24, 8
_WIDTH, _INCHES_PER_UNIT = 12.0, 0.42
_BAR, _THIN, _PALE = 0.72, 0.2, 0.45
_LONGEST_NAME = 40
_EDGE_POINTS = 0.6
"""Around a bar, so that one of few cycles is seen."""


@dataclass(frozen=True)
class LayerRun:
    """A layer by its name, and what each unit did in it."""

    name: str
    answer: Answer

    @property
    def cycles(self) -> int:
        """From its command to its last ofmap word."""
        return self.answer.cycles

    @property
    def steps(self) -> int:
        """Its tiles."""
        return self.answer.steps


@dataclass(frozen=True, kw_only=True)
class Window:
    """Which tiles are shown: at most one of the three, else the first; and at most how many."""

    tiles: slice | range | None = None
    cycles: tuple[int, int] | None = None
    around: int | None = None
    most: int | None = None

    def chosen(self, run: LayerRun, most: int) -> range:
        """The numbers of the tiles, one behind the other.

        Raises `InputError` for two choices at once, and for a window in which nothing happens.
        """
        given = [one for one in (self.tiles, self.cycles, self.around) if one is not None]
        require(len(given) <= 1, "only one of tiles, cycles and around can be given")
        if self.most is not None:
            require_positive(most=self.most)
        count, most = run.steps, self.most or most
        if self.around is not None:
            return self._around(run, self.around, most)
        wanted = range(count)
        if self.cycles is not None:
            wanted = run.answer.steps_within(*self.cycles)
        elif self.tiles is not None:
            wanted = _numbers(self.tiles, count)
        require(len(wanted) > 0, f"{run.name} has {count:,} tiles, and none of these")
        last = (
            isinstance(self.tiles, slice)
            and self.tiles.stop is None
            and (self.tiles.start is not None and self.tiles.start < 0)
        )
        return wanted[-most:] if last else wanted[:most]

    def _around(self, run: LayerRun, cycle: int, most: int) -> range:
        """As many tiles on either side of the one that streams at a cycle, or next after it."""
        inside = 0 <= cycle < run.cycles
        require(inside, f"around must be a cycle of {run.name}, 0 to {run.cycles - 1:,}")
        count = run.steps
        near = run.answer.steps_within(cycle, cycle + 1) or range(count)
        streams = (one for one in run.answer.of_steps(near) if one.unit == ARRAY)
        behind = (one.tile.number for one in streams if one.tile and one.end_cycle > cycle)
        at = next(behind, near[-1])
        first = min(max(at - most // 2, 0), max(count - most, 0))
        return range(first, min(first + most, count))


def _numbers(tiles: slice | range, count: int) -> range:
    found = range(count)[tiles] if isinstance(tiles, slice) else tiles
    require(found.step == 1, f"tiles must follow one another, not every {found.step}")
    return range(max(found.start, 0), min(found.stop, count))


@dataclass(frozen=True, kw_only=True)
class GanttPlot:
    """Bars of the tiles, those of every second one fainter; a unit is a row."""

    result: NetworkResult
    layout: Layout

    def draw(self, layer: str | None, window: Window, ax: Any) -> Any:
        """Loads, streams and drains of some tiles of a layer."""
        run = layer_run(self.result, layer)
        numbers = window.chosen(run, _MOST_NARROW if self.layout.narrow else _MOST)
        shown = list(run.answer.of_steps(numbers))
        units = [unit for unit in UNITS if any(one.unit == unit for one in shown)]
        drawn = self.layout.axes(ax, _WIDTH, 1.6 + _INCHES_PER_UNIT * len(units))
        left, right = self._limits(shown, window)
        dress(drawn, self._title(run, numbers, (left, right)), "x")
        labelled: set[str] = set()
        for one in shown:
            if one.end_cycle > left and one.start_cycle < right:
                self._bar(drawn, one, units, labelled)
        drawn.set_yticks(range(len(units)), units)
        drawn.set_ylim(len(units) - 0.5, -0.5)
        drawn.set_xlim(left, right)
        drawn.set_xlabel("cycles from the start of the layer\nthin: asked for, no word yet")
        separate_thousands(drawn.xaxis)
        self._name_tiles(drawn, [one for one in shown if one.unit == ARRAY])
        legend(drawn)
        return drawn

    def _limits(self, shown: list[Interval], window: Window) -> tuple[int, int]:
        if window.cycles is not None:
            return window.cycles
        starts, ends = [one.start_cycle for one in shown], [one.end_cycle for one in shown]
        return min(starts), max(ends)

    def _title(self, run: LayerRun, numbers: range, cycles: tuple[int, int]) -> str:
        count = run.steps
        which = f"tiles {numbers[0]:,} to {numbers[-1]:,} of {count:,}"
        if len(numbers) == count:
            which = f"all {count:,} tiles" if count > 1 else "its one tile"
        name = shortened(run.name, _LONGEST_NAME)
        where = f"{self.result.network} on {self.result.design_name}"
        return f"{where}: {name}, {which}, cycles {cycles[0]:,} to {cycles[1]:,}"

    def _bar(self, ax: Any, one: Interval, units: list[str], labelled: set[str]) -> None:
        colour, label = _look(one)
        pale = one.unit != ARRAY_WAITS and one.tile is not None and one.tile.number % 2
        (bar,) = ax.barh(
            [units.index(one.unit)],
            [one.cycles],
            _THIN if one.what == "request" else _BAR,
            [one.start_cycle],
            color=colour,
            edgecolor=colour,
            linewidth=_EDGE_POINTS,
            alpha=_PALE if pale else 1.0,
            label="_" if label in labelled else label,
        )
        labelled.add(label)
        tile = "" if one.tile is None else f" tile {one.tile.number:,}"
        moved = f", {one.bytes_moved:,} bytes" if one.bytes_moved else ""
        when = f"cycles {one.start_cycle:,} to {one.end_cycle:,}"
        note(bar, f"{one.unit}: {cause_text(one.what)}{tile}, {when} ({one.cycles:,}){moved}")

    def _name_tiles(self, ax: Any, streams: list[Interval]) -> None:
        """Numbers of the tiles above their streams, as many as there is room for."""
        room = 12 if not self.layout.narrow else 5
        left, right = ax.get_xlim()
        inside = [
            (middle, one.tile.number)
            for one in streams
            if one.tile and left <= (middle := (one.start_cycle + one.end_cycle) / 2) <= right
        ]
        kept: list[tuple[float, int]] = []
        for middle, number in inside:
            if not kept or middle - kept[-1][0] >= (right - left) / room:
                kept.append((middle, number))
        above = ax.secondary_xaxis("top")
        above.set_xticks([middle for middle, _ in kept], [f"tile {number:,}" for _, number in kept])
        above.patch.set_visible(False)
        above.tick_params(length=0)
        above.spines["top"].set_visible(False)


def _look(one: Interval) -> tuple[str, str]:
    """Colour, and what the legend calls it: causes alone, since units stand beside their rows."""
    if one.unit in (ARRAY, ARRAY_WAITS):
        cause = "computing" if one.unit == ARRAY else one.what
        return CAUSE_COLOURS[cause], cause_text(cause)
    if one.unit in LOADERS:
        return PORT_COLOURS[one.unit.split()[0]], "_"
    return PORT_COLOURS["ofmap"], "_"


def layer_run(result: NetworkResult, layer: str | None = None) -> LayerRun:
    """The run of a layer of a result, in the tiling of the result; that of most cycles.

    Raises `InputError` for a layer of which nothing tells what was done when without operands.
    """
    from archsim.machine.registry import design_from_record

    design = design_from_record(dict(result.design), result.design_name)
    where = f"{result.network} on {result.design_name}"
    timed = {one.name: one for one in result.layers if isinstance(one.work, (Conv2d, MatMul))}
    if not timed:
        raise InputError(f"{where} has no layer that the array computes")
    if layer is not None and layer not in timed:
        raise InputError(f"{where} has no layer {layer!r} of tiles; {nearest(layer, timed)}")
    found = timed[layer] if layer else longest(list(timed.values()))
    assert isinstance(found.work, (Conv2d, MatMul))
    model = design.machine_model()
    answer = model.answer(one_step(found.work), None, model.options_as_run(found))
    return LayerRun(found.name, answer)


def longest(layers: list[LayerResult]) -> LayerResult:
    """The layer of most cycles, the first of equals."""
    return max(layers, key=lambda one: one.cycles)
