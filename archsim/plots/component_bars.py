"""Figures with one bar a component: energy, area, bytes read and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archsim.errors import require
from archsim.plots.axes import Layout, dress, legend, note, separate_thousands
from archsim.plots.palette import DIRECTION_COLOURS, GROUP_COLOURS
from archsim.plots.units import Unit, area_unit, byte_text, byte_unit, energy_unit

if TYPE_CHECKING:
    from archsim.energy_account import EnergyAccount
    from archsim.result import NetworkResult
    from energy_models.component import Component
    from energy_models.pricing import FloatArray

_WIDTH = 8.0
_INCHES_PER_BAR, _INCHES_PER_BAR_NARROW = 0.3, 0.44
_LETTER_INCHES, _LEGEND_INCHES = 0.09, 1.5
"""About how wide a letter of ten points and the legend are."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One component: its parts in a base unit, and the figure that is written beside its bar."""

    name: str
    parts: Mapping[str, float]
    text: str

    @property
    def total(self) -> float:
        """The length of its bar."""
        return sum(self.parts.values())


@dataclass(frozen=True, kw_only=True)
class MemoryTraffic:
    """Bytes that one memory of the hierarchy gave and took."""

    name: str
    read_bytes: float
    written_bytes: float


def memory_traffic(
    components: Sequence[Component], counts: Mapping[str, float]
) -> tuple[MemoryTraffic, ...]:
    """Bytes read and written in every memory, off-chip and on, in the order of the components.

    Words count with their full width, whatever part of them is used.
    """
    found: dict[str, MemoryTraffic] = {}
    for one in components:
        if one.kind not in ("sram", "dram"):
            continue
        bits = one.attributes["word_bits"] if one.kind == "sram" else 1
        moved = {
            action: sum(events * counts[name] for name, events in counted.items()) * bits / 8
            for action, counted in one.actions.items()
        }
        before = found.get(one.name, MemoryTraffic(name=one.name, read_bytes=0, written_bytes=0))
        found[one.name] = MemoryTraffic(
            name=one.name,
            read_bytes=before.read_bytes + moved.get("read", 0.0),
            written_bytes=before.written_bytes + moved.get("write", 0.0),
        )
    return tuple(found.values())


def network_memory_traffic(result: NetworkResult) -> tuple[MemoryTraffic, ...]:
    """`memory_traffic` of a whole network on its design."""
    from archsim.energy import action_counts
    from archsim.machine.registry import design_from_record

    design = design_from_record(dict(result.design), result.design_name)
    totals: dict[str, float] = {}
    for layer in result.layers:
        if layer.cycles:
            for name, count in action_counts(layer, design).items():
                totals[name] = totals.get(name, 0.0) + count
    return memory_traffic(design.components, totals) if totals else ()


@dataclass(frozen=True, kw_only=True)
class ComponentBars:
    """Lying bars of the components; in a narrow layout the texts stand above them."""

    result: NetworkResult
    layout: Layout

    def energy(self, account: EnergyAccount, ax: Any) -> Any:
        """Energy by component, the largest first, each stacked by group; leakage as one bar."""
        parts = _by_name(account, account.dynamic.sum(axis=0))
        if account.static.sum():
            parts["leakage"] = {"leakage": float(account.static.sum())}
        unit = energy_unit(account, account.total)
        rows = _shares(parts, lambda value: energy_unit(account, value).text(value, digits=3))
        headline = f"{unit.text(account.total)} in {account.technology.name}"
        drawn = self._axes(ax, headline, len(rows))
        self._stacked(drawn, rows, unit)
        drawn.set_xlabel(f"energy ({unit.name})")
        return drawn

    def area(self, account: EnergyAccount, ax: Any) -> Any:
        """Area by component, the largest first, each stacked by group.

        Raises `InputError` if the technology has no areas.
        """
        total, name = account.area_um2, account.technology.name
        require(total is not None, f"technology {name} has no areas; choose one that does")
        parts = _by_name(account, np.nan_to_num(account.price_list.area_um2))
        unit = area_unit(total or 0.0)
        rows = _shares(parts, lambda value: area_unit(value).text(value, digits=3))
        drawn = self._axes(ax, f"{unit.text(total or 0.0)} in {name}", len(rows))
        self._stacked(drawn, rows, unit)
        drawn.set_xlabel(f"area ({unit.name})")
        return drawn

    def memory_bytes(self, ax: Any) -> Any:
        """Bytes read from and written to every memory."""
        moved = network_memory_traffic(self.result)
        total = sum(one.read_bytes + one.written_bytes for one in moved)
        headline = f"{byte_text(total)} in and out of memories"
        drawn = self._axes(ax, headline, 2 * len(moved))
        unit = byte_unit(max((max(o.read_bytes, o.written_bytes) for o in moved), default=0.0))
        rows = [
            Row(name=f"{one.name} {way}", parts={way: count}, text=byte_text(count))
            for one in moved
            for way, count in (("read", one.read_bytes), ("written", one.written_bytes))
        ]
        self._stacked(drawn, rows, unit, DIRECTION_COLOURS)
        drawn.set_xlabel(f"bytes ({unit.name})")
        return drawn

    def _axes(self, given: Any, headline: str, count: int) -> Any:
        each = _INCHES_PER_BAR_NARROW if self.layout.narrow else _INCHES_PER_BAR
        ax = self.layout.axes(given, _WIDTH, 1.0 + each * max(count, 2))
        dress(ax, f"{self.result.network} on {self.result.design_name}: {headline}", "x")
        return ax

    def _stacked(
        self, ax: Any, rows: Sequence[Row], unit: Unit, colours: Mapping[str, str] = GROUP_COLOURS
    ) -> None:
        """Bars from the top down, in the order of the rows."""
        thick = 0.4 if self.layout.narrow else 0.7
        base = np.zeros(len(rows))
        for part in [name for name in colours if any(row.parts.get(name) for row in rows)]:
            lengths = np.array([row.parts.get(part, 0.0) for row in rows]) / unit.size
            bars = ax.barh(range(len(rows)), lengths, thick, base, color=colours[part], label=part)
            for bar, row in zip(bars, rows, strict=True):
                value = unit.text(row.parts.get(part, 0.0), digits=5)
                note(bar, f"{row.name}: {part} {value}")
            base += lengths
        ax.set_xlim(0, self._right_end(ax, rows) / unit.size or 1.0)
        ax.set_ylim(max(len(rows), 1) - 0.5, -0.7)
        separate_thousands(ax.xaxis)
        self._name(ax, rows, unit)
        legend(ax)

    def _right_end(self, ax: Any, rows: Sequence[Row]) -> float:
        """Where the axis of values ends, in the base unit: behind each bar its figure has room."""
        if self.layout.narrow or not rows:
            return max((row.total for row in rows), default=0.0)
        letter = _LETTER_INCHES * float(ax.yaxis.label.get_fontsize()) / 10
        names = letter * max(len(row.name) for row in rows)
        inches = max(ax.figure.get_figwidth() - names - _LEGEND_INCHES, 3.0)
        rooms = [max(inches - letter * (len(row.text) + 1), inches / 3) for row in rows]
        return max(row.total * inches / room for row, room in zip(rows, rooms, strict=True))

    def _name(self, ax: Any, rows: Sequence[Row], unit: Unit) -> None:
        """Names and figures: beside the bars, or in a narrow layout above them."""
        if not self.layout.narrow:
            ax.set_yticks(range(len(rows)), [row.name for row in rows])
            for place, row in enumerate(rows):
                end = (row.total / unit.size, place)
                ax.annotate(row.text, end, (4, 0), textcoords="offset points", va="center")
            return
        ax.set_yticks([])
        across = ax.get_yaxis_transform()
        for place, row in enumerate(rows):
            ax.text(0, place - 0.25, row.name, transform=across, va="bottom")
            ax.text(1, place - 0.25, row.text, transform=across, va="bottom", ha="right")


def _by_name(account: EnergyAccount, values: FloatArray) -> dict[str, dict[str, float]]:
    """Values of the components [components], summed by name and within it by group."""
    from archsim.energy_account import GROUPS

    found: dict[str, dict[str, float]] = {}
    for one, value in zip(account.price_list.components, values.tolist(), strict=True):
        parts, group = found.setdefault(one.name, {}), GROUPS[one.kind]
        parts[group] = parts.get(group, 0.0) + value
    return found


def _shares(parts: Mapping[str, Mapping[str, float]], text: Callable[[float], str]) -> list[Row]:
    """Rows with their share of the whole, the largest first; without those of nothing."""
    whole = sum(sum(one.values()) for one in parts.values()) or 1.0
    sums = {name: sum(one.values()) for name, one in parts.items()}
    return [
        Row(
            name=name,
            parts=parts[name],
            text=f"{text(total)} ({100 * total / whole:.1f} %)",
        )
        for name, total in sorted(sums.items(), key=lambda item: -item[1])
        if total
    ]
