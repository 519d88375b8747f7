"""Where the cycles went in the course of a run, and the utilisation of the layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archsim.causes import CAUSES
from archsim.plots.axes import Layout, dress, legend, note, separate_thousands
from archsim.plots.palette import BLACK, CAUSE_COLOURS, cause_text
from archsim.plots.units import count_unit

if TYPE_CHECKING:
    from archsim.machine.over_time import FloatArray, OverTime
    from archsim.result import LayerResult, NetworkResult

_WIDTH, _HEIGHT, _HEIGHT_NARROW = 10.0, 4.0, 3.6


@dataclass(frozen=True, kw_only=True)
class ActivityPlot:
    """Shares of the causes, stacked to 100 %, over the cycles of the run."""

    result: NetworkResult
    layout: Layout

    def draw(self, over_time: OverTime | None, ax: Any) -> Any:
        """From bins of a timeline; without one, one bin a layer."""
        layers = [layer for layer in self.result.layers if layer.cycles]
        ends = np.cumsum([0, *(layer.cycles for layer in layers)])
        edges, shares = (
            (ends, _layer_shares(layers))
            if over_time is None
            else (over_time.edges_cycles, over_time.shares)
        )
        height = _HEIGHT_NARROW if self.layout.narrow else _HEIGHT
        drawn = self.layout.axes(ax, _WIDTH, height)
        cycles = self.result.cycles
        computing = 100 * self.result.where["computing"] / cycles if cycles else 0.0
        headline = f"computing in {computing:.1f} % of the cycles"
        dress(drawn, f"{self.result.network} on {self.result.design_name}: {headline}", "y")
        unit = count_unit(cycles, "cycles")
        if layers:
            self._stack(drawn, edges / unit.size, shares)
            self._layers(drawn, ends / unit.size, layers)
        drawn.set_xlim(0, max(cycles, 1) / unit.size)
        drawn.set_ylim(0, 100)
        drawn.set_xlabel("cycles" if unit.size == 1 else f"time ({unit.name})")
        drawn.set_ylabel("share of cycles (%)")
        separate_thousands(drawn.xaxis)
        legend(drawn)
        return drawn

    def _stack(self, ax: Any, edges: FloatArray, shares: FloatArray) -> None:
        base = np.zeros(len(edges) - 1)
        for cause, share in zip(CAUSES, 100 * shares.T, strict=True):
            if share.any():
                colour, text = CAUSE_COLOURS[cause], cause_text(cause)
                ax.stairs(base + share, edges, baseline=base, fill=True, color=colour, label=text)
                base = base + share

    def _layers(self, ax: Any, ends: FloatArray, layers: list[LayerResult]) -> None:
        """The utilisation of every layer as a line; over each a mark that shows nothing."""
        heights = [100 * layer.utilization for layer in layers]
        style: dict[str, Any] = {"color": BLACK, "linewidth": 1.3, "baseline": None}
        ax.stairs(heights, ends, label="utilisation of the layer", **style)
        for start, end, layer in zip(ends[:-1], ends[1:], layers, strict=True):
            span = ax.axvspan(start, end, facecolor="none", edgecolor="none")
            text = f"{layer.cycles:,} cycles, utilisation {100 * layer.utilization:.1f} %"
            note(span, f"{layer.name}: {text}")


def _layer_shares(layers: list[LayerResult]) -> FloatArray:
    """Share of each layer's cycles by cause: [layers, causes]."""
    return np.array([[layer.where[c] / layer.cycles for c in CAUSES] for layer in layers])
