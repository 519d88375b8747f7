"""What the PEs of a grid did: load, bank conflicts and idle cycles of each, as maps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archsim.plots.axes import Layout, note, plain
from archsim.plots.palette import BLUE, GREEN, ORANGE

if TYPE_CHECKING:
    import numpy.typing as npt

    from archsim.result import LayerResult, NetworkResult

    Shares = npt.NDArray[np.float64]

MAPS = {"load": GREEN, "conflict": ORANGE, "idle": BLUE}
"""load: pairs of vectors enter the banks; conflict: they wait for one; idle: all other cycles."""

_CELL_INCHES, _GAP = 0.42, 1.0

_PALEST, _DARKEST = 0.05, 0.7
"""Opacity of a cell without and with all of the cycles: a number is to be read on both."""


def pe_shares(layers: list[LayerResult]) -> dict[str, Shares]:
    """Share of the layers' cycles that each PE spent with each of `MAPS`: [rows, columns].

    The cycles are those of computing: from a pass's first group to its last sum.
    """
    total = {name: sum(layer.per_pe[name] for layer in layers) for name in MAPS}
    whole = sum(total.values())
    return {name: np.asarray(count) / np.maximum(whole, 1) for name, count in total.items()}


@dataclass(frozen=True, kw_only=True)
class PeMaps:
    """The grid of PEs once for each of `MAPS`, the darker the more of the cycles."""

    result: NetworkResult
    layout: Layout

    def draw(self, layer: str | None, ax: Any) -> Any:
        """Of one layer, or of all layers that have figures by PE.

        Raises `InputError` for a layer that has none.
        """
        shares = pe_shares(self._layers(layer))
        rows, columns = shares["load"].shape
        pitch = (rows + _GAP) if self.layout.narrow else (columns + _GAP)
        wide = columns if self.layout.narrow else 3 * pitch - _GAP
        high = 3 * pitch - _GAP if self.layout.narrow else rows
        width = max(wide * _CELL_INCHES, 4.0)
        drawn = self.layout.axes(ax, width, (high + 1.5) / wide * width)
        drawn.set_title(plain(self._title(layer, shares)))
        drawn.set_axis_off()
        drawn.set_aspect("equal")
        drawn.set_xlim(-0.05, wide + 0.05)
        drawn.set_ylim(high + 0.05, -0.8)
        for place, (name, colour) in enumerate(MAPS.items()):
            corner = (0.0, place * pitch) if self.layout.narrow else (place * pitch, 0.0)
            self._grid(drawn, shares[name], (name, colour), corner)
        return drawn

    def _layers(self, layer: str | None) -> list[LayerResult]:
        from archsim.errors import InputError, nearest

        found = [one for one in self.result.layers if one.per_pe]
        named = [one for one in found if layer in (None, one.name)]
        if not named:
            known = [one.name for one in found]
            what = "no layer" if layer is None else f"no layer {layer!r}"
            raise InputError(
                f"{self.result.network} on {self.result.design_name} has {what} with figures "
                f"by PE; " + (nearest(str(layer), known) if known else "sparse machines have them")
            )
        return named

    def _title(self, layer: str | None, shares: dict[str, Shares]) -> str:
        load = 100 * shares["load"]
        what = self.result.network if layer is None else layer
        spread = f"load from {load.min():.0f} to {load.max():.0f} % of the cycles"
        return f"{what} on {self.result.design_name}: {spread}"

    def _grid(
        self, ax: Any, shares: Shares, look: tuple[str, str], corner: tuple[float, float]
    ) -> None:
        from matplotlib.patches import Rectangle

        name, colour = look
        left, top = corner
        mean = f"{name}: mean {100 * shares.mean():.1f} %"
        ax.text(left + shares.shape[1] / 2, top - 0.15, mean, ha="center", va="bottom")
        for row, column, share in _cells(shares):
            opacity = _PALEST + (_DARKEST - _PALEST) * share
            cell = Rectangle(
                (left + column, top + row), 1, 1, facecolor=colour, alpha=opacity,
                edgecolor="none", label="_",
            )  # fmt: skip
            ax.add_patch(cell)
            note(cell, f"PE ({row}, {column}): {name} in {100 * share:.1f} % of the cycles")
            if shares.size <= 64:
                self._number(ax, (left + column, top + row), share)

    def _number(self, ax: Any, corner: tuple[float, float], share: float) -> None:
        size = max(self.layout.smallest_text_points, 8.0)
        at = (corner[0] + 0.5, corner[1] + 0.5)
        ax.text(*at, f"{100 * share:.0f}", ha="center", va="center", fontsize=size)


def _cells(shares: Shares) -> Iterator[tuple[int, int, float]]:
    for (row, column), share in np.ndenumerate(shares):
        yield row, column, float(share)
