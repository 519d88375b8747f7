"""The roofline of a design, and the layers under it.

Williams, Waterman, Patterson, "Roofline: an insightful visual performance model for multicore
architectures", CACM 52 (4), 2009: performance is at most the machine's peak, and at most
intensity × bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archsim.plots.axes import Layout, dress, legend, note, plain, told_apart
from archsim.plots.free_room import FreeRoom
from archsim.plots.palette import BLACK, BLUE, GREEN, ORANGE, PORT_COLOURS
from archsim.plots.units import significant
from archsim.result import TRAFFIC
from workloads.counts import counted

if TYPE_CHECKING:
    from archsim.machine.design import Design
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
    own = [port for port in TRAFFIC if port != "weight" or apart is None]
    others = tuple(port for port in own if design.word_bits(port))
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
class Point:
    """A layer as it is plotted: products a byte, products a cycle.

    bound: what sets the fewest cycles it could take, and that number in `least`.  roof: the most
    products a cycle at its intensity, of the array or of all channels together.
    """

    layer: LayerResult
    intensity: float
    rate: float
    bound: str
    least: float
    roof: float

    @property
    def place(self) -> tuple[float, float]:
        return self.intensity, self.rate


@dataclass(frozen=True, kw_only=True)
class Roofline:
    """What a roofline shows: its roofs, and the layers that move bytes and multiply.

    peak: products a cycle of the array; ridge: the products a byte at which all channels together
    bring as much as the array takes.
    """

    ways: tuple[Channel, ...]
    peak: int
    points: tuple[Point, ...]

    @property
    def bytes_per_cycle(self) -> float:
        return sum(way.bytes_per_cycle for way in self.ways)

    @property
    def ridge(self) -> float:
        return self.peak / self.bytes_per_cycle

    @property
    def products(self) -> str:
        """What is counted: of a sparse machine, what it multiplies."""
        sparse = any(point.layer.products is not None for point in self.points)
        return "products" if sparse else "MACs"

    @property
    def named_together(self) -> bool:
        """Whether a layer that may be named lies where others do."""
        found = _by_place(point.layer for point in self.points)
        return any(len(each) > 1 for each in found[: 2 * _NAMED])

    def bound(self) -> dict[str, list[Point]]:
        """The points by what bounds them, those of the most cycles first."""
        found: dict[str, list[Point]] = {}
        for point in self.points:
            found.setdefault(point.bound, []).append(point)
        return dict(sorted(found.items(), key=lambda item: -_cycles(item[1])))


def _cycles(points: Sequence[Point]) -> int:
    return sum(point.layer.cycles for point in points)


def roofline(result: NetworkResult, design: Design) -> Roofline:
    """The roofs of a design, and a result's layers under them."""
    ways, peak = channels(design), design.macs_per_cycle
    total = sum(way.bytes_per_cycle for way in ways)
    points: list[Point] = []
    for layer in result.layers:
        if layer.multiplied and layer.total_bytes and layer.cycles:
            bound, least = bound_by(layer, ways)
            intensity, rate = _place(layer)
            roof = min(float(peak), intensity * total)
            points.append(
                Point(
                    layer=layer, intensity=intensity, rate=rate, bound=bound, least=least, roof=roof
                )
            )
    return Roofline(ways=ways, peak=peak, points=tuple(points))


@dataclass(frozen=True, kw_only=True)
class RooflinePlot:
    """MACs a cycle over MACs a byte, both logarithmic; each layer is a point.

    Of a sparse machine it is the products that count: what it skips is not under its roof.
    """

    result: NetworkResult
    layout: Layout

    def draw(self, ax: Any) -> Any:
        """Roofs of the array, of all channels together, and of a weight channel alone."""
        from archsim.machine.registry import design_from_record

        design = design_from_record(dict(self.result.design), self.result.design_name)
        shown = roofline(self.result, design)
        height = _HEIGHT_NARROW if self.layout.narrow else _HEIGHT
        drawn = self.layout.axes(ax, _WIDTH, height)
        dress(drawn, self._title(shown), "both")
        drawn.set_xscale("log")
        drawn.set_yscale("log")
        drawn.set_xlabel(f"{shown.products} per off-chip byte")
        drawn.set_ylabel(f"{shown.products} per cycle")
        self._roofs(drawn, design, shown)
        self._points(drawn, shown)
        _plain_decades(drawn)
        legend(drawn)
        if ax is None:
            drawn.figure.draw_without_rendering()  # the axes get narrower, and then have less room
        self._name_largest(drawn, [point.layer for point in shown.points])
        return drawn

    def _title(self, shown: Roofline) -> str:
        bound = len(shown.bound().get(_ARRAY, ()))
        headline = f"the array bounds {bound} of {counted(len(shown.points), 'layer')}"
        return f"{self.result.network} on {self.result.design_name}: {headline}"

    def _roofs(self, ax: Any, design: Design, shown: Roofline) -> None:
        peak, total, ways = shown.peak, shown.bytes_per_cycle, shown.ways
        at = [point.intensity for point in shown.points]
        left, right = min(*at, shown.ridge, shown.ridge) / 2, max(*at, shown.ridge, shown.ridge) * 3
        ax.set_xlim(left, right)
        lowest = min([point.rate for point in shown.points] or [peak])
        ax.set_ylim(min(lowest, peak) / 3, peak * 2.5)
        array = f"array: {peak:,} MACs/cycle"
        ax.plot([peak / total, right], [peak, peak], color=BLACK, linewidth=1.6, label=array)
        together = ways[0].name if len(ways) == 1 else "ports"
        text = f"{together}: {round(total, 2):,.9g} bytes/cycle"
        ax.plot([left, peak / total], [left * total, peak], color=BLUE, linewidth=1.6, label=text)
        if design.off_chip.weight_bytes_per_cycle is not None:
            rate = ways[-1].bytes_per_cycle
            text = f"weight channel alone: {round(rate, 2):,.9g} bytes/cycle"
            reach = [left, peak / rate]
            style: dict[str, Any] = {"color": ORANGE, "linewidth": 1.6, "linestyle": "--"}
            ax.plot(reach, [rate * left, peak], label=text, **style)

    def _points(self, ax: Any, shown: Roofline) -> None:
        labelled: set[str] = set()
        for one in shown.points:
            bound, what = one.bound, shown.products
            label = "_" if bound in labelled else f"layer bound by the {bound}"
            labelled.add(bound)
            x, y = one.place
            style: dict[str, Any] = {"markersize": 6, "markeredgecolor": "none", "label": label}
            (point,) = ax.plot([x], [y], "o", color=_colour(bound, shown.ways), alpha=0.75, **style)
            text = f"{significant(x)} {what}/byte, {significant(y)} {what}/cycle"
            share = f"{100 * one.least / one.layer.cycles:.1f} % of what the {bound} allows"
            note(point, f"{one.layer.name}: {text}, {share}")

    def _name_largest(self, ax: Any, layers: Sequence[LayerResult]) -> None:
        """Names of the layers with the most cycles; of layers at one place, of the first."""
        alike = _by_place(layers)
        room = FreeRoom(ax, [_place(found[0]) for found in alike])
        firsts = [found[0].name for found in alike]
        names = dict(zip(firsts, told_apart(firsts, _LONGEST_NAME), strict=True))
        wanted = _NAMED_NARROW if self.layout.narrow else _NAMED
        for found in alike[: 2 * wanted]:
            more = f" + {len(found) - 1}" if len(found) > 1 else ""
            if room.write(plain(names[found[0].name] + more), _place(found[0])):
                wanted -= 1
            if not wanted:
                return


def _by_place(layers: Iterable[LayerResult]) -> list[list[LayerResult]]:
    """Layers that lie at one place of the figure, those of the most cycles first."""
    alike: dict[tuple[float, float], list[LayerResult]] = {}
    for layer in sorted(layers, key=lambda layer: -layer.cycles):
        alike.setdefault(_place(layer), []).append(layer)
    return list(alike.values())


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
