"""Matplotlib figures of a result: where the cycles went, utilisation, traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archsim.core.causes import CAUSES
from archsim.result import TRAFFIC

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from archsim.result import LayerResult, NetworkResult

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
"""Okabe and Ito, "Color Universal Design" (2008): colour-blind readers tell the eight apart."""

CAUSE_COLOURS = {
    "computing": GREEN,
    "filling": SKY,
    "draining": YELLOW,
    "wait_weight": ORANGE,
    "wait_ifmap": VERMILION,
    "wait_output": PURPLE,
    "control": BLACK,
    "memory": BLUE,
}
PORT_COLOURS = {"ifmap": VERMILION, "weight": ORANGE, "bias": BLACK, "ofmap": BLUE}

_FEW_LAYERS = 20
_MOST_LABELS = 150
_INCHES_PER_LAYER = 0.17
_NARROWEST, _WIDEST = 7.0, 18.0
_HEIGHT = 4.5
_LONGEST_LABEL = 24


@dataclass(frozen=True)
class ResultPlots:
    """Figures of one `NetworkResult`, one bar a layer, in the order of the network.

    Vector work takes no cycles of the array and is left out.  Each figure is drawn on `ax`, or
    on a new figure, wide enough for the layers, and returned as matplotlib's Axes.
    """

    result: NetworkResult

    def cycles(self, ax: Axes | None = None) -> Axes:
        """Cycles of every layer, stacked by where they went; the sums are the layers' cycles."""
        stacks = {name: [layer.where[name] for layer in self._layers] for name in CAUSES}
        drawn = self._axes(ax, f"{self.result.cycles:,} cycles")
        self._stack(drawn, stacks, CAUSE_COLOURS)
        drawn.set_ylabel("cycles")
        return drawn

    def utilization(self, ax: Axes | None = None) -> Axes:
        """Useful MACs over possible ones, in percent, and the mean over all cycles as a line."""
        mean = 100 * self.result.utilization
        drawn = self._axes(ax, f"{mean:.1f} % of the array's MACs")
        heights = [100 * layer.utilization for layer in self._layers]
        drawn.bar(range(len(heights)), heights, width=0.8, color=GREEN)
        drawn.axhline(mean, color=BLACK, linewidth=1.2, linestyle="--", label=f"mean {mean:.1f} %")
        drawn.set_ylim(0, 100)
        drawn.set_ylabel("utilisation (%)")
        _legend(drawn)
        return drawn

    def traffic(self, ax: Axes | None = None) -> Axes:
        """Bytes of every layer across each port of the core, stacked."""
        stacks = {name: [layer.bytes_moved[name] for layer in self._layers] for name in TRAFFIC}
        unit, divisor = _byte_unit(max((layer.total_bytes for layer in self._layers), default=0))
        total_unit, total_divisor = _byte_unit(sum(self.result.bytes_moved.values()))
        total = sum(self.result.bytes_moved.values()) / total_divisor
        drawn = self._axes(ax, f"{total:,.1f} {total_unit} across the ports")
        scaled = {name: [count / divisor for count in counts] for name, counts in stacks.items()}
        self._stack(drawn, scaled, PORT_COLOURS)
        drawn.set_ylabel(f"bytes moved ({unit})")
        return drawn

    @property
    def _layers(self) -> list[LayerResult]:
        return [layer for layer in self.result.layers if layer.cycles]

    def _axes(self, given: Axes | None, headline: str) -> Any:
        """`given`, or the axes of a new figure, with title, grid, and the layers' names.

        Of very many layers only every n-th is named.
        """
        count = len(self._layers)
        width = min(max(_NARROWEST, 2 + _INCHES_PER_LAYER * count), _WIDEST)
        ax: Any = _new_axes(width) if given is None else given
        ax.set_title(f"{self.result.network} on {self.result.design_name}: {headline}")
        ax.set_xlabel("layer")
        places = range(0, count, -(-count // _MOST_LABELS) or 1)
        names = [_short(self._layers[place].name) for place in places]
        size = "medium" if count <= _FEW_LAYERS else "x-small" if count <= 3 * _FEW_LAYERS else 5
        ax.set_xticks(places, names, rotation=90, fontsize=size)
        ax.set_xlim(-0.7, max(count, 1) - 0.3)
        ax.yaxis.grid(True, linewidth=0.5, alpha=0.5)
        ax.set_axisbelow(True)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        return ax

    def _stack(
        self, ax: Any, stacks: Mapping[str, Sequence[float]], colours: Mapping[str, str]
    ) -> None:
        """Stacked bars; what is zero in every layer gets no entry in the legend."""
        from matplotlib.ticker import StrMethodFormatter

        base = [0.0] * len(self._layers)
        for name, heights in stacks.items():
            if any(heights):
                label = name.replace("_", " for ") if name.startswith("wait_") else name
                places = range(len(heights))
                ax.bar(places, heights, 0.8, base, color=colours[name], label=label)
                base = [low + high for low, high in zip(base, heights, strict=True)]
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.12g}"))
        _legend(ax)


def _new_axes(width: float) -> Any:
    """Axes of a new pyplot figure, which notebooks show by themselves."""
    import matplotlib.pyplot as plt

    pyplot: Any = plt
    _, ax = pyplot.subplots(figsize=(width, _HEIGHT), layout="constrained")
    return ax


def _legend(ax: Any) -> None:
    """Beside the bars, where it hides none."""
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, reverse=True)


def _short(name: str) -> str:
    """A layer's name, its middle cut out where it is long."""
    if len(name) <= _LONGEST_LABEL:
        return name
    half = (_LONGEST_LABEL - 1) // 2
    return f"{name[:half]}…{name[-half:]}"


def _byte_unit(largest: int) -> tuple[str, int]:
    """The unit in which `largest` bytes are read well, and its bytes."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if largest >= size:
            return unit, size
    return "bytes", 1
