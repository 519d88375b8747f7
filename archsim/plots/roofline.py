"""The roofline of a design, and the layers under it.

Williams, Waterman, Patterson, "Roofline: an insightful visual performance model for multicore
architectures", CACM 52 (4), 2009: performance is at most the machine's peak, and at most
intensity × bandwidth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archsim.plots.axes import Layout, dress, legend, note, shortened
from archsim.plots.free_room import FreeRoom
from archsim.plots.palette import BLACK, BLUE, GREEN, ORANGE, PORT_COLOURS
from archsim.plots.units import significant
from archsim.result import TRAFFIC

if TYPE_CHECKING:
    from archsim.core.design import Design
    from archsim.result import LayerResult, NetworkResult

_WIDTH, _HEIGHT, _HEIGHT_NARROW = 8.0, 5.2, 4.6
_NAMED, _NAMED_NARROW = 6, 3
_LONGEST_NAME = 18
_ARRAY = "array"


@dataclass(frozen=True, kw_only=True)
class Channel:
    """A way to the off-chip memory, the ports that share it, and its bandwidth."""

    name: str
    ports: tuple[str, ...]
    bytes_per_cycle: float

    def cycles(self, bytes_moved: Mapping[str, int]) -> float:
        """The fewest in which a layer's bytes can cross it."""
        return sum(bytes_moved[port] for port in self.ports) / self.bytes_per_cycle


def channels(design: Design) -> tuple[Channel, ...]:
    """The ways to the off-chip memory; a port on its own is never faster than a word a cycle."""
    memory = design.off_chip
    apart = memory.weight_bytes_per_cycle
    found: list[Channel] = []
    if apart is not None:
        found.append(_port("weight", design, apart))
    others = tuple(port for port in TRAFFIC if port != "weight" or apart is None)
    if memory.shared and memory.bytes_per_cycle:
        name = "off-chip memory" if apart is None else f"memory of {', '.join(others)}"
        return (Channel(name=name, ports=others, bytes_per_cycle=memory.bytes_per_cycle), *found)
    return (*(_port(port, design, memory.bytes_per_cycle) for port in others), *found)


def _port(port: str, design: Design, bytes_per_cycle: float) -> Channel:
    word = design.word_bits(port) / 8
    rate = min(word, bytes_per_cycle) if bytes_per_cycle else word
    return Channel(name=f"{port} channel", ports=(port,), bytes_per_cycle=rate)


def bound_by(layer: LayerResult, ways: Sequence[Channel]) -> tuple[str, float]:
    """What sets the layer's fewest cycles (the array or a channel), and that number."""
    least = {_ARRAY: layer.multiplied / layer.macs_per_cycle}
    least |= {way.name: way.cycles(layer.bytes_moved) for way in ways}
    slowest = max(least, key=lambda name: least[name])
    return slowest, least[slowest]


@dataclass(frozen=True, kw_only=True)
class RooflinePlot:
    """MACs a cycle over MACs a byte, both logarithmic; each layer is a point.

    Of a sparse machine it is the products that count: what it skips is not under its roof.
    """

    result: NetworkResult
    layout: Layout

    def draw(self, ax: Any) -> Any:
        """Roofs of the array, of all channels together, and of a weight channel alone."""
        from archsim.designs.registry import design_from_record

        design = design_from_record(dict(self.result.design), self.result.design_name)
        ways = channels(design)
        layers = [layer for layer in self.result.layers if layer.multiplied and layer.total_bytes]
        height = _HEIGHT_NARROW if self.layout.narrow else _HEIGHT
        drawn = self.layout.axes(ax, _WIDTH, height)
        dress(drawn, self._title(layers, ways), "both")
        drawn.set_xscale("log")
        drawn.set_yscale("log")
        drawn.set_xlabel(f"{self._what} per off-chip byte")
        drawn.set_ylabel(f"{self._what} per cycle")
        self._roofs(drawn, design, ways, layers)
        self._points(drawn, layers, ways)
        self._name_largest(drawn, layers)
        _plain_decades(drawn)
        legend(drawn)
        return drawn

    @property
    def _what(self) -> str:
        sparse = any(layer.products is not None for layer in self.result.layers)
        return "products" if sparse else "MACs"

    def _title(self, layers: Sequence[LayerResult], ways: Sequence[Channel]) -> str:
        bound = sum(bound_by(layer, ways)[0] == _ARRAY for layer in layers)
        headline = f"the array bounds {bound} of {len(layers)} layers"
        return f"{self.result.network} on {self.result.design_name}: {headline}"

    def _roofs(
        self, ax: Any, design: Design, ways: Sequence[Channel], layers: Sequence[LayerResult]
    ) -> None:
        peak = design.macs_per_cycle
        total = sum(way.bytes_per_cycle for way in ways)
        at = [_place(layer)[0] for layer in layers] or [peak / total]
        left, right = min(*at, peak / total) / 2, max(*at, peak / total) * 3
        ax.set_xlim(left, right)
        lowest = min([_place(layer)[1] for layer in layers] or [peak])
        ax.set_ylim(min(lowest, peak) / 3, peak * 2.5)
        array = f"array: {peak:,} MACs/cycle"
        ax.plot([peak / total, right], [peak, peak], color=BLACK, linewidth=1.6, label=array)
        together = "ports" if len(ways) > 1 else ways[0].name
        text = f"{together}: {round(total, 2):,.9g} bytes/cycle"
        ax.plot([left, peak / total], [left * total, peak], color=BLUE, linewidth=1.6, label=text)
        if design.off_chip.weight_bytes_per_cycle is not None:
            rate = ways[-1].bytes_per_cycle
            text = f"weight channel alone: {round(rate, 2):,.9g} bytes/cycle"
            reach = [left, peak / rate]
            style: dict[str, Any] = {"color": ORANGE, "linewidth": 1.6, "linestyle": "--"}
            ax.plot(reach, [rate * left, peak], label=text, **style)

    def _points(self, ax: Any, layers: Sequence[LayerResult], ways: Sequence[Channel]) -> None:
        labelled: set[str] = set()
        for layer in layers:
            bound, least = bound_by(layer, ways)
            label = "_" if bound in labelled else f"layer bound by the {bound}"
            labelled.add(bound)
            x, y = _place(layer)
            style: dict[str, Any] = {"markersize": 6, "markeredgecolor": "none", "label": label}
            (point,) = ax.plot([x], [y], "o", color=_colour(bound, ways), alpha=0.75, **style)
            text = f"{significant(x)} {self._what}/byte, {significant(y)} {self._what}/cycle"
            share = f"{100 * least / layer.cycles:.1f} % of what the {bound} allows"
            note(point, f"{layer.name}: {text}, {share}")

    def _name_largest(self, ax: Any, layers: Sequence[LayerResult]) -> None:
        """Names of the layers with the most cycles; of layers at one place, of the first."""
        alike: dict[tuple[float, float], list[LayerResult]] = {}
        for layer in sorted(layers, key=lambda layer: -layer.cycles):
            alike.setdefault(_place(layer), []).append(layer)
        room = FreeRoom(ax, list(alike))
        wanted = _NAMED_NARROW if self.layout.narrow else _NAMED
        for place, found in list(alike.items())[: 2 * wanted]:
            more = f" + {len(found) - 1}" if len(found) > 1 else ""
            if room.write(shortened(found[0].name, _LONGEST_NAME) + more, place):
                wanted -= 1
            if not wanted:
                return


def _place(layer: LayerResult) -> tuple[float, float]:
    """Products a byte, products a cycle."""
    return layer.multiplied / layer.total_bytes, layer.multiplied / layer.cycles


def _colour(bound: str, ways: Sequence[Channel]) -> str:
    """That of the port to which a channel belongs; one for a channel that ports share."""
    ports = {way.name: way.ports for way in ways}.get(bound)
    if ports is None:
        return GREEN
    return PORT_COLOURS[ports[0]] if len(ports) == 1 else BLUE


def _plain_decades(ax: Any) -> None:
    """Powers of ten in full: 0.1, 1, 1,000."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(base=10, numticks=12))
        axis.set_major_formatter(StrMethodFormatter("{x:,.12g}"))
        axis.set_minor_formatter(NullFormatter())
