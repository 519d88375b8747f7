"""Figures with one bar a layer, in the order of the network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archsim.causes import CAUSES
from archsim.plots.axes import (
    POINTS_PER_INCH,
    Layout,
    dress,
    legend,
    note,
    plain,
    separate_thousands,
    told_apart,
)
from archsim.plots.palette import (
    BLACK,
    CAUSE_COLOURS,
    GREEN,
    GROUP_COLOURS,
    PORT_COLOURS,
    cause_text,
)
from archsim.plots.units import Unit, byte_unit, energy_unit
from archsim.result import TRAFFIC

if TYPE_CHECKING:
    from archsim.energy_account import EnergyAccount
    from archsim.result import LayerResult, NetworkResult

_BAR = 0.8
_INCHES_PER_LAYER = 0.17
_HEIGHT = 4.5
_LARGEST_TEXT = 10.0
_LONGEST_NAME, _LONGEST_NAME_NARROW = 24, 20
_LAST_TICK = 0.9
"""Of the length of a narrow axis: no tick is farther out, so that its label has room."""
_LINE = 1.25
"""Of a line of text, over the size of its letters."""
_LETTER = 0.7
"""Of a letter's width with the space between names, likewise."""
_FEWEST = 5
"""Fewer layers get no wider bars."""


@dataclass(frozen=True, kw_only=True)
class Stack:
    """Values of the layers by part, to be stacked: name → [layers], in a base unit.

    unit: of the axis.  text: a value as it is shown on pointing at its bar.
    """

    values: Mapping[str, Sequence[float]]
    colours: Mapping[str, str]
    unit: Unit
    text: Callable[[float], str]
    label: Callable[[str], str] = str


@dataclass(frozen=True, kw_only=True)
class LayerBars:
    """Bars of the layers that take cycles: upright side by side, or lying in a narrow layout."""

    result: NetworkResult
    layout: Layout

    @property
    def layers(self) -> list[LayerResult]:
        """Those that take cycles."""
        return [layer for layer in self.result.layers if layer.cycles]

    def cycles(self, ax: Any) -> Any:
        """Cycles by cause."""
        stack = Stack(
            values={name: [layer.where[name] for layer in self.layers] for name in CAUSES},
            colours=CAUSE_COLOURS,
            unit=Unit(name="cycles", size=1),
            text=lambda value: f"{value:,} cycles",
            label=cause_text,
        )
        return self._stacked(self._axes(ax, f"{self.result.cycles:,} cycles"), stack, "cycles")

    def utilization(self, ax: Any) -> Any:
        """Useful MACs in percent of the array's, and the mean over all cycles as a line."""
        mean = 100 * self.result.utilization
        drawn = self._axes(ax, f"{mean:.1f} % of the array's MACs")
        lengths = [100 * layer.utilization for layer in self.layers]
        bars = self._bars(drawn, lengths, None, color=GREEN, label="useful MACs")
        for bar, layer, length in zip(bars, self.layers, lengths, strict=True):
            note(bar, f"{layer.name}: {length:.2f} %, {layer.macs:,} MACs")
        line = drawn.axvline if self.layout.narrow else drawn.axhline
        line(mean, color=BLACK, linewidth=1.2, linestyle="--", label=f"mean {mean:.1f} %")
        (drawn.set_xlim if self.layout.narrow else drawn.set_ylim)(0, 100)
        self._name_values(drawn, "utilisation (%)")
        legend(drawn)
        return drawn

    def traffic(self, ax: Any) -> Any:
        """Bytes by port."""
        total = sum(self.result.bytes_moved.values())
        unit = byte_unit(total)
        drawn = self._axes(ax, f"{total / unit.size:,.1f} {unit.name} across the ports")
        stack = Stack(
            values={name: [layer.bytes_moved[name] for layer in self.layers] for name in TRAFFIC},
            colours=PORT_COLOURS,
            unit=byte_unit(max((layer.total_bytes for layer in self.layers), default=0)),
            text=lambda value: f"{value:,} bytes",
        )
        return self._stacked(drawn, stack, f"bytes moved ({stack.unit.name})")

    def energy(self, account: EnergyAccount, ax: Any) -> Any:
        """Energy by group of components."""
        total = energy_unit(account, account.total)
        headline = f"{total.text(account.total)} in {account.technology.name}"
        unit = energy_unit(account, max(account.by_layer.values(), default=0.0))
        stack = Stack(
            values={name: account.layer_groups.get(name, []) for name in GROUP_COLOURS},
            colours=GROUP_COLOURS,
            unit=unit,
            text=lambda value: unit.text(value, digits=5),
        )
        return self._stacked(self._axes(ax, headline), stack, f"energy ({unit.name})")

    def _axes(self, given: Any, headline: str) -> Any:
        """`given`, or the axes of a new figure, with title, grid, and the layers' names."""
        count = len(self.layers)
        row = self.layout.smallest_text_points * _LINE / POINTS_PER_INCH
        height = 1.1 + row * max(count, 4) if self.layout.narrow else _HEIGHT
        ax = self.layout.axes(given, 2 + _INCHES_PER_LAYER * count, height)
        title = f"{self.result.network} on {self.result.design_name}: {headline}"
        dress(ax, title, "x" if self.layout.narrow else "y")
        self._name_layers(ax)
        return ax

    def _name_layers(self, ax: Any) -> None:
        """Names as large as there is room for; of very many layers only every n-th."""
        narrow, count = self.layout.narrow, len(self.layers)
        slack = max(_FEWEST - count, 0) / 2
        ends = (-0.7 - slack, count - 0.3 + slack)
        room = self._room_points(ax) / (ends[1] - ends[0])
        smallest = self.layout.smallest_text_points
        size = min(max(room / _LINE, smallest), _LARGEST_TEXT)
        places = range(0, count, 1 if narrow else max(1, round(smallest * _LINE / room + 0.3)))
        longest = _LONGEST_NAME_NARROW if narrow else _LONGEST_NAME
        every = told_apart([layer.name for layer in self.layers], longest)
        names = [plain(every[place]) for place in places]
        if narrow:
            ax.set_yticks(places, names, fontsize=size)
            ax.set_ylim(*reversed(ends))
            ax.tick_params(axis="x", top=True, labeltop=True)
            ax.xaxis.set_label_position("top")
            return
        upright = {"rotation": 90, "rotation_mode": "anchor", "ha": "right", "va": "center"}
        flat = max(map(len, names), default=0) * _LETTER * size < room
        ax.set_xticks(places, names, fontsize=size, **({} if flat else upright))
        ax.set_xlim(*ends)
        ax.set_xlabel("layer")

    def _room_points(self, ax: Any) -> float:
        """About the length of the axis along which the layers stand."""
        figure = ax.figure
        if self.layout.narrow:
            return ax.get_position().height * figure.get_figheight() * POINTS_PER_INCH
        return 0.8 * figure.get_figwidth() * POINTS_PER_INCH

    def _name_values(self, ax: Any, label: str) -> None:
        axis = ax.xaxis if self.layout.narrow else ax.yaxis
        separate_thousands(axis)
        axis.set_label_text(label)

    def _bars(self, ax: Any, lengths: Sequence[float], base: Any, **style: Any) -> Any:
        places = range(len(lengths))
        if self.layout.narrow:
            return ax.barh(places, lengths, _BAR, base, **style)
        return ax.bar(places, lengths, _BAR, base, **style)

    def _stacked(self, ax: Any, stack: Stack, label: str) -> Any:
        """Stacked bars; what is zero in every layer gets no entry in the legend."""
        base = [0.0] * len(self.layers)
        for name, values in stack.values.items():
            if not any(values):
                continue
            part = stack.label(name)
            lengths = [value / stack.unit.size for value in values]
            bars = self._bars(ax, lengths, base, color=stack.colours[name], label=part)
            for bar, layer, value in zip(bars, self.layers, values, strict=True):
                note(bar, f"{layer.name}: {part} {stack.text(value)}")
            base = [low + high for low, high in zip(base, lengths, strict=True)]
        self._name_values(ax, label)
        if self.layout.narrow:
            # a label at the end of the axis would leave the figure, whose layout ignores it
            right = ax.get_xlim()[1]
            last = max(tick for tick in ax.xaxis.get_majorticklocs() if tick <= right)
            ax.set_xlim(right=max(right, last / _LAST_TICK))
        legend(ax)
        return ax
