"""The figures of a study: `study.plot.front()` and its neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from archsim.errors import require
from archsim.plots.axes import NOTEBOOK, Layout, dress, legend, plain
from archsim.plots.palette import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION
from archsim.sweeps.objectives import titled
from archsim.sweeps.sensitivity import sensitivities

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from archsim.sweeps.study import Study

FloatArray = npt.NDArray[np.float64]

LINES = 300
"""Designs that are drawn as lines, besides those on the front."""

COLOURS = (BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE)
"""Of objectives side by side."""

LOGARITHMIC = 20
"""Largest over smallest value from which on an axis is logarithmic."""


@dataclass(frozen=True)
class StudyPlots:
    """Figures of one study, of the points that were computed.

    network: of which, where the study has several.  Each figure is drawn on `ax`, or on a new
    figure, and returned as matplotlib's Axes.
    """

    study: Study
    layout: Layout = NOTEBOOK

    def front(
        self,
        x: str | None = None,
        y: str | None = None,
        *,
        network: str | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """All points over two objectives (the study's first two), and their front as steps.

        Raises `InputError` for an objective that the study does not have.
        """
        names = self.study.objectives
        require(len(names) > 1, f"{self.study.path}: a front has two objectives, the study has one")
        chosen = [self.study.objective(x or names[0]), self.study.objective(y or names[1])]
        points = self._points(network)
        front = self.study.front(chosen, network=self.study.one_network(network))
        drawn = self.layout.axes(ax, 7.5, 4.8)
        drawn.scatter(points[chosen[0]], points[chosen[1]], s=6, color=BLUE, alpha=0.35, lw=0)
        drawn.step(
            front[chosen[0]],
            front[chosen[1]],
            where="post",
            color=VERMILION,
            marker="o",
            markersize=4,
            label=f"front: {len(front):,} of {len(points):,} designs",
        )
        for axis, name in zip((drawn.xaxis, drawn.yaxis), chosen, strict=True):
            axis.set_label_text(titled(name))
            if _wide(points[name].to_numpy(np.float64)):
                (drawn.set_xscale if axis is drawn.xaxis else drawn.set_yscale)("log")
        dress(drawn, self._title(network), "both")
        legend(drawn)
        return drawn

    def parallel(self, *, network: str | None = None, ax: Axes | None = None) -> Axes:
        """A line a design over all fields that vary and all objectives; the front's in orange."""
        points = self._points(network)
        front = set(self.study.front(network=self.study.one_network(network))["number"])
        fields = [name for name in self.study.fields if points[name].nunique(dropna=False) > 1]
        names = [*fields, *self.study.objectives]
        heights = np.stack([_heights(points[name]) for name in names], axis=1)
        best = points["number"].isin(front).to_numpy()
        drawn = self.layout.axes(ax, 1.6 * len(names) + 1, 4.4)
        rest = np.flatnonzero(~best)
        some = rest[:: max(math.ceil(len(rest) / LINES), 1)]
        places = np.arange(len(names))
        drawn.plot(places, heights[some].T, color=GREY, lw=0.6, alpha=0.3)
        lines = drawn.plot(places, heights[best].T, color=ORANGE, lw=1.2, alpha=0.9)
        if lines:
            lines[0].set_label(f"front: {int(best.sum()):,} designs")
        for place, name in enumerate(names):
            drawn.axvline(place, color="black", lw=0.6)
            low, high = _ends(points[name])
            drawn.text(place, 1.02, high, ha="center", va="bottom", fontsize=8)
            drawn.text(place, -0.02, low, ha="center", va="top", fontsize=8)
        drawn.set_xticks(places, [plain(titled(name)) for name in names], rotation=20, ha="right")
        drawn.tick_params(axis="x", pad=12)
        drawn.set_yticks([])
        dress(drawn, self._title(network), "x")
        for side in ("left", "bottom"):
            drawn.spines[side].set_visible(False)
        drawn.set_title(drawn.get_title(), pad=18)
        legend(drawn)
        return drawn

    def sensitivity(self, *, network: str | None = None, ax: Axes | None = None) -> Axes:
        """How much of each objective's spread each field explains by itself, in percent
        (`archsim.sweeps.sensitivity`)."""
        points = self._points(network)
        objectives = list(self.study.objectives)
        found = sensitivities(points, list(self.study.fields), objectives)
        shares = {(one.field, one.objective): 100 * one.share for one in found}
        objectives = [name for name in objectives if any(o == name for _, o in shares)]
        total = {f: sum(shares.get((f, o), 0.0) for o in objectives) for f, _ in shares}
        fields = sorted(total, key=lambda name: total[name])
        drawn = self.layout.axes(ax, 7.5, 1.2 + 0.28 * len(fields) * max(len(objectives), 1))
        height = 0.8 / max(len(objectives), 1)
        for at, objective in enumerate(objectives):
            places = np.arange(len(fields)) + 0.4 - height * (at + 0.5)
            values = [shares.get((name, objective), 0.0) for name in fields]
            drawn.barh(places, values, height, color=COLOURS[at % len(COLOURS)], label=objective)
        drawn.set_yticks(np.arange(len(fields)), [plain(name) for name in fields])
        drawn.set_xlabel("share of the variance of the logarithm, %")
        drawn.set_xlim(0, 100)
        dress(drawn, self._title(network), "x")
        drawn.legend(frameon=False)
        return drawn

    def _points(self, network: str | None) -> pd.DataFrame:
        found = self.study.frame(network=self.study.one_network(network))
        require(len(found) > 0, f"{self.study.path}: no point of the study was computed")
        return found

    def _title(self, network: str | None) -> str:
        name = self.study.space.name or self.study.path.name
        return f"{name}, {self.study.one_network(network)}"


def _wide(values: FloatArray) -> bool:
    known = values[np.isfinite(values)]
    return len(known) > 0 and known.min() > 0 and known.max() / known.min() >= LOGARITHMIC


def _heights(column: pd.Series[Any]) -> FloatArray:
    """Where values lie on an axis of height 1; numbers of a wide spread by their logarithms."""
    values = _numbers(column)
    if _wide(values):
        values = np.log(values)
    low, high = np.nanmin(values), np.nanmax(values)
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


def _numbers(column: pd.Series[Any]) -> FloatArray:
    """Numbers as they are; texts by their places in the alphabet."""
    if column.dtype.kind in "iuf":
        return column.to_numpy(np.float64)
    codes, _ = column.astype("string").factorize(sort=True)
    return np.where(codes < 0, np.nan, codes.astype(np.float64))


def _ends(column: pd.Series[Any]) -> tuple[str, str]:
    """The least and the largest value as texts."""
    if column.dtype.kind in "iuf":
        return _short(column.min()), _short(column.max())
    texts = sorted(column.dropna().astype(str))
    return plain(texts[0]), plain(texts[-1])


def _short(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e8 else f"{value:,.4g}"


__all__ = ["LOGARITHMIC", "StudyPlots"]
