"""Which points of a study are on its page, and what the page knows of every column."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from archsim.errors import require
from archsim.numbers import IntArray
from archsim.sweeps.objectives import titled
from archsim.sweeps.plots import LOGARITHMIC

if TYPE_CHECKING:
    from archsim.sweeps.study import Study

MOST_POINTS = 100_000
"""Points on a page; of more, fronts and a sample that is drawn evenly."""

FEW = 16
"""Values of a field that are chosen one by one; of more, a range is."""


@dataclass(frozen=True)
class Axis:
    """A field or an objective as an axis: numbers from low to high, or values with names.

    values: of a field with few values, all of them in order; else none.
    """

    name: str
    title: str
    objective: bool
    low: float
    high: float
    logarithmic: bool
    values: tuple[Any, ...] = ()

    @property
    def categorical(self) -> bool:
        """Whether its values are no numbers."""
        return any(isinstance(one, (str, bool)) for one in self.values)

    def record(self) -> dict[str, Any]:
        """For the page's script."""
        return {
            "name": self.name,
            "title": self.title,
            "objective": self.objective,
            "low": self.low,
            "high": self.high,
            "logarithmic": self.logarithmic,
            "values": list(self.values) if self.categorical else [],
        }


@dataclass(frozen=True)
class Shown:
    """What a page shows: rows of points, and axes of all fields and objectives."""

    points: pd.DataFrame
    fields: tuple[Axis, ...]
    objectives: tuple[Axis, ...]
    networks: tuple[str, ...]
    computed: int

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Of fields, then of objectives."""
        return self.fields + self.objectives

    @property
    def whole(self) -> bool:
        """Whether all points that were computed are there."""
        return len(self.points) == self.computed


Fronts = Mapping[str, Mapping[tuple[str, ...], IntArray]]
"""By network, the points on the fronts over some objectives."""


def fronts_of(study: Study) -> Fronts:
    """The fronts that a page tells of, over all objectives, over each, and over every two: found in
    one pass for each network."""
    names = study.objectives
    wanted = [names, *((one,) for one in names), *combinations(names, 2)]
    distinct = list(dict.fromkeys(wanted))
    return {name: study.fronts(distinct, network=name) for name in study.space.network_names}


def shown_of(study: Study, fronts: Fronts, most: int = MOST_POINTS) -> Shown:
    """The points of a study for its page.  Raises `InputError` where none was computed."""
    computed = study.counts.get("done", 0)
    require(computed > 0, f"{study.path}: no point of the study was computed, so nothing is shown")
    points = study.frame() if computed <= most else _sampled(study, fronts, most)
    points = points.sort_values("number", ignore_index=True)
    fields = [_axis(points, name, objective=False) for name in _varied(study, points)]
    objectives = [_axis(points, name, objective=True) for name in study.objectives]
    return Shown(
        points=points,
        fields=tuple(fields),
        objectives=tuple(objectives),
        networks=tuple(n for n in study.space.network_names if (points["network"] == n).any()),
        computed=computed,
    )


def _varied(study: Study, points: pd.DataFrame) -> list[str]:
    """The machine if there are several, and fields that have more than one value."""
    named = ["machine", *study.fields]
    return [name for name in named if points[name].nunique(dropna=False) > 1]


def _sampled(study: Study, fronts: Fronts, most: int) -> pd.DataFrame:
    """All fronts, and a sample of the rest."""
    numbers = [one for of in fronts.values() for one in of.values()]
    best = study.points(np.unique(np.concatenate(numbers)))
    return pd.concat([_drawn(study, most), best]).drop_duplicates("number")


def _drawn(study: Study, most: int) -> pd.DataFrame:
    """At most so many of the points that were computed, drawn evenly, always the same."""
    query = (
        "SELECT * FROM (SELECT * FROM points WHERE status = 'done') "
        f"USING SAMPLE reservoir({most} ROWS) REPEATABLE (1)"
    )
    return study.store.connection.execute(query).df()


def _axis(points: pd.DataFrame, name: str, *, objective: bool) -> Axis:
    column = points[name]
    numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    title = titled(name)
    if not numeric:
        texts = tuple(sorted({_text(one) for one in column.tolist()}))
        return Axis(name, title, objective, 0, max(len(texts) - 1, 1), False, texts)
    values = column.to_numpy(np.float64)
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    few: Sequence[Any] = sorted(set(finite.tolist()))
    kept = tuple(few) if not objective and len(few) <= FEW else ()
    wide = low > 0 and high / low >= (8 if kept and _powers(few) else LOGARITHMIC)
    return Axis(name, title, objective, low, high if high > low else low + 1, wide, kept)


def _powers(values: Sequence[float]) -> bool:
    """Whether they are powers of two, or a multiple of one."""
    steps = [math.log2(b / a) for a, b in pairwise(values) if a > 0]
    return bool(steps) and all(abs(step - round(step)) < 1e-9 for step in steps)


def _text(value: Any) -> str:
    """A value that is no number; none where the design has no such field."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    return value if isinstance(value, str) else "none"


def columns_of(shown: Shown) -> dict[str, Any]:
    """Columns for Bokeh: numbers as arrays, texts as lists; NaN where a machine has no such field.

    A field of texts is there twice: as it reads, and, with "#", as the place of its axis.
    """
    found: dict[str, Any] = {"number": shown.points["number"].to_numpy(np.int64).astype(np.float64)}
    found["network"] = _codes(shown.points["network"].tolist(), shown.networks)
    for axis in shown.axes:
        column = shown.points[axis.name]
        if axis.categorical:
            texts = [_text(one) for one in column.tolist()]
            found[axis.name] = texts
            found[f"#{axis.name}"] = _codes(texts, axis.values)
        else:
            found[axis.name] = column.to_numpy(np.float64)
    return found


def _codes(texts: list[Any], names: Sequence[Any]) -> Any:
    """The place of each text among names."""
    places = {name: at for at, name in enumerate(names)}
    return np.array([places[one] for one in texts], np.int32)


__all__ = ["FEW", "MOST_POINTS", "Axis", "Fronts", "Shown", "columns_of", "fronts_of", "shown_of"]
