"""Saved results side by side: ratios to the first, what changed in the designs, which layers moved.

The first result is the baseline.  A ratio is a figure over the baseline's; the speedup is the other
way round, the baseline's seconds over a result's, so that above 1 a result is faster.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archsim.comparison.changes import Change, changes_in
from archsim.comparison.figures import (
    ComparedFigure,
    Values,
    in_order,
    layer_figures,
    network_figures,
    ratio,
)
from archsim.comparison.notes import LABELS, notes_on, same_work
from archsim.errors import require
from archsim.result import NetworkResult
from archsim.saved import SavedLayer, SavedResult, parse_result

if TYPE_CHECKING:
    import pandas as pd

    from archsim.plots.compared import ComparisonPlots

MOVERS = 10
"""How many layers are the largest movers."""

TEXT_COLUMNS = ("layer", "kind", "group", "figure", "unit")

MOST = len(LABELS)


@dataclass(frozen=True, kw_only=True)
class ComparedLayer:
    """Layers of one name and shape; None for each result that has no such layer.

    A saved result keeps no shapes: layers are of one shape here if kind, MACs and vector operations
    are the same.  figures: cycles, utilisation, bytes moved, and energies where there are any.
    """

    name: str
    kind: str
    macs: int
    vector_operations: int
    layers: tuple[SavedLayer | None, ...]
    figures: tuple[ComparedFigure, ...]

    @property
    def cycles(self) -> ComparedFigure:
        """The layer's cycles in every result."""
        return self.figures[0]

    @property
    def in_all(self) -> bool:
        """Whether every result has the layer."""
        return None not in self.layers

    @property
    def moved_cycles(self) -> float:
        """The largest difference to the baseline's cycles, up or down; 0 without a baseline."""
        first, *others = self.cycles.values
        if first is None:
            return 0
        return max(abs(value - first) for value in (first, *others) if value is not None)

    def record(self) -> dict[str, Any]:
        """The layer as plain data."""
        return {
            "name": self.name,
            "kind": self.kind,
            "macs": self.macs,
            "vector_operations": self.vector_operations,
            "figures": [figure.record() for figure in self.figures],
        }


@dataclass(frozen=True, kw_only=True)
class ResultComparison:
    """Two or more results, the baseline first; `labels` are A, B, C … in that order.

    layers: those of the baseline in order, then those that only others have.
    technology_changes: among the results that have a technology.
    """

    results: tuple[SavedResult, ...]
    labels: tuple[str, ...]
    design_changes: tuple[Change, ...]
    technology_changes: tuple[Change, ...]
    figures: tuple[ComparedFigure, ...]
    layers: tuple[ComparedLayer, ...]
    notes: tuple[str, ...]

    @property
    def speedups(self) -> Values:
        """The baseline's seconds over each result's: above 1 it is faster than the baseline.

        None for all of them where the results are not of the same layers.
        """
        seconds = [one.seconds for one in self.results]
        if not same_work(self.results):
            return (None,) * len(seconds)
        return tuple(ratio(seconds[0], one) for one in seconds)

    def group(self, name: str, unit: str = "") -> dict[str, Values]:
        """The figures of a group by name: the heights of stacked bars, a stack for each result.

        unit: where results give a group in two units, which; without it that of the first.
        """
        found = [one for one in self.figures if one.group == name]
        return {one.name: one.values for one in found if one.unit == (unit or found[0].unit)}

    @property
    def plot(self) -> ComparisonPlots:
        """Matplotlib figures: `comparison.plot.cycles()`, `.energy()`, `.area()`, `.overview()`."""
        from archsim.plots.compared import ComparisonPlots

        return ComparisonPlots(self)

    def largest_movers(self, count: int | None = MOVERS) -> tuple[ComparedLayer, ...]:
        """The layers whose cycles differ most from the baseline's, by cycles; None for all."""
        moved = [layer for layer in self.layers if layer.moved_cycles]
        return tuple(sorted(moved, key=lambda layer: -layer.moved_cycles)[:count])

    def record(self) -> dict[str, Any]:
        """The comparison as plain data."""
        return {
            "baseline": self.labels[0],
            "results": [
                {
                    "label": label,
                    "path": one.path,
                    "archsim": one.version,
                    "design_name": one.design_name,
                    "network": one.network,
                    "seed": one.seed,
                    "technology": one.technology_name,
                }
                for label, one in zip(self.labels, self.results, strict=True)
            ],
            "notes": list(self.notes),
            "design_changes": [change.record() for change in self.design_changes],
            "technology_changes": [change.record() for change in self.technology_changes],
            "speedups": list(self.speedups),
            "figures": [figure.record() for figure in self.figures],
            "layers": [layer.record() for layer in self.layers],
            "largest_movers": [layer.name for layer in self.largest_movers()],
        }

    def to_frame(self) -> pd.DataFrame:
        """One row a figure: of the networks (`layer` is empty), then of every layer.

        Columns: layer, kind, group, figure, unit; A, B … the values; B/A … the ratios.
        """
        import pandas as pd

        frame = pd.DataFrame(self._rows(), columns=self._columns)
        return frame.astype(dict.fromkeys(self._columns[len(TEXT_COLUMNS) :], "float64"))

    def to_csv(self) -> str:
        """The rows of `to_frame`, counts without a decimal point."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self._columns, *self._rows()])
        return text.getvalue()

    @property
    def _columns(self) -> list[str]:
        ratios = [f"{label}/{self.labels[0]}" for label in self.labels[1:]]
        return [*TEXT_COLUMNS, *self.labels, *ratios]

    def _rows(self) -> list[tuple[str | float | None, ...]]:
        whole = [("", "network", figure) for figure in self.figures]
        parts = [(one.name, one.kind, figure) for one in self.layers for figure in one.figures]
        return [
            (name, kind, one.group, one.name, one.unit, *one.values, *one.ratios[1:])
            for name, kind, one in [*whole, *parts]
        ]


def compare_results(results: Sequence[SavedResult | NetworkResult]) -> ResultComparison:
    """Compare results with the first of them.  Raises `InputError` unless they are 2 to 26."""
    count = len(results)
    require(2 <= count <= MOST, f"a comparison is of 2 to {MOST} results, not {count}")
    saved = tuple(
        parse_result(json.loads(one.to_json()), f"result {at}")
        if isinstance(one, NetworkResult)
        else one
        for at, one in enumerate(results, 1)
    )
    return ResultComparison(
        results=saved,
        labels=tuple(LABELS[:count]),
        design_changes=changes_in([one.design for one in saved]),
        technology_changes=changes_in([one.technology for one in saved if one.technology]),
        figures=network_figures(saved),
        layers=_layers(saved),
        notes=notes_on(saved),
    )


def _layers(results: Sequence[SavedResult]) -> tuple[ComparedLayer, ...]:
    """Layers of one identity side by side."""
    by_identity = [{layer.identity: layer for layer in one.layers} for one in results]
    units = [one.energy.unit if one.energy else "" for one in results]
    compared: list[ComparedLayer] = []
    for identity in in_order(by_identity):
        name, kind, macs, operations = identity
        layers = tuple(one.get(identity) for one in by_identity)
        compared.append(
            ComparedLayer(
                name=name,
                kind=kind,
                macs=macs,
                vector_operations=operations,
                layers=layers,
                figures=layer_figures(layers, units),
            )
        )
    return tuple(compared)
