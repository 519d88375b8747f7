"""How much every field of a space moves an objective, told from the points that were computed.

Of a field, the points fall into groups of one value, or of a range of values where there are more
than `MOST_GROUPS`.  Its share is how much of the variance of the objective's logarithm lies between
the groups: 0 where it does nothing by itself, 1 where it decides all.  What fields do only together
is in no share, so that shares sum to 1 at most.  On a full grid it is the first-order index of
Sobol (1993); of other points that index is estimated without the bias that groups of few points
bring (omega squared; Hays, Statistics for Psychologists, 1963).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

MOST_GROUPS = 32
"""Groups of a field's values."""

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sensitivity:
    """What one field does to one objective.

    share: of the variance, 0 … 1.  ratio: the worst value's geometric mean over the best value's.
    best, worst: those values; of ranges, their middle.
    """

    field: str
    objective: str
    share: float
    ratio: float
    best: Any
    worst: Any


def sensitivities(
    points: pd.DataFrame, fields: Sequence[str], objectives: Sequence[str]
) -> list[Sensitivity]:
    """Of every field that varies, for every objective, the most moving first.

    points: a row each, of one network.  Objectives that are nowhere above 0, and fields of one
    value, have none.
    """
    found: list[Sensitivity] = []
    for objective in objectives:
        values = points[objective].to_numpy(np.float64)
        known = np.isfinite(values) & (values > 0)
        if known.sum() < 3 or np.ptp(values[known]) == 0:
            continue
        logs, full = np.log(values[known]), _is_grid(points.loc[known, list(fields)])
        for field in fields:
            codes, names = groups_of(points[field][known])
            if len(names) > 1:
                found.append(_sensitivity(field, objective, logs, (codes, names), full=full))
    return sorted(found, key=lambda one: (objectives.index(one.objective), -one.share))


def groups_of(column: pd.Series[Any]) -> tuple[npt.NDArray[np.int64], list[Any]]:
    """The group of each point, and each group's value; points without a value have group −1."""
    if column.nunique() > MOST_GROUPS and pd.api.types.is_numeric_dtype(column):
        cut = pd.qcut(column, MOST_GROUPS, duplicates="drop")
        codes = np.asarray(cut.cat.codes, np.int64)
        middles = [float(column[codes == code].median()) for code in range(len(cut.cat.categories))]
        return codes, middles
    codes, names = pd.factorize(column, sort=True)
    return codes.astype(np.int64), list(names)


def _sensitivity(
    field: str,
    objective: str,
    logs: FloatArray,
    groups: tuple[npt.NDArray[np.int64], list[Any]],
    *,
    full: bool,
) -> Sensitivity:
    """full: of a full grid, whose groups differ by nothing else."""
    codes, names = groups
    has = codes >= 0
    logs, codes = logs[has], codes[has]
    counts = np.bincount(codes, minlength=len(names))
    filled = counts > 0
    means = np.full(len(names), np.nan)
    means[filled] = np.bincount(codes, logs, len(names))[filled] / counts[filled]
    between = float(np.nansum(counts * (means - logs.mean()) ** 2))
    total = float(((logs - logs.mean()) ** 2).sum())
    best, worst = int(np.nanargmin(means)), int(np.nanargmax(means))
    return Sensitivity(
        field=field,
        objective=objective,
        share=between / total if full else _unbiased(between, total, counts),
        ratio=float(np.exp(means[worst] - means[best])),
        best=names[best],
        worst=names[worst],
    )


def _is_grid(points: pd.DataFrame) -> bool:
    """Whether they are all combinations of their values, each as often, and ranges are of one."""
    sizes = [int(points[name].nunique()) for name in points]
    whole = math.prod(sizes)
    if max(sizes, default=0) > MOST_GROUPS or not len(points) or len(points) % whole:
        return False
    counts = points.groupby(list(points), dropna=False).size()
    return len(counts) == whole and counts.min() == counts.max()


def _unbiased(between: float, total: float, counts: npt.NDArray[np.int64]) -> float:
    """Omega squared, from sums of squares and the points of each group."""
    points, groups = int(counts.sum()), int((counts > 0).sum())
    if total <= 0 or points <= groups:
        return 0.0
    within = max(total - between, 0.0) / (points - groups)
    return min(max((between - (groups - 1) * within) / (total + within), 0.0), 1.0)


@dataclass(frozen=True)
class Shared:
    """The values that a field takes on a front.

    values: each with its points on the front, the most frequent first.  of: values that it has.
    """

    field: str
    values: tuple[tuple[Any, int], ...]
    of: int

    @property
    def same(self) -> bool:
        """Whether the whole front has one value, though there are others."""
        return len(self.values) == 1 and self.of > 1


def shared_by(front: pd.DataFrame, fields: dict[str, int]) -> list[Shared]:
    """What the designs of a front have in common: fields of fewest values first.

    fields: by name, how many values each has in the space.
    """
    found: list[Shared] = []
    for name, of in fields.items():
        counts = front[name].value_counts()
        values = tuple((value, int(count)) for value, count in counts.items())
        if of > 1 and values:
            found.append(Shared(name, values, of))
    return sorted(found, key=lambda one: len(one.values) / one.of)


__all__ = ["MOST_GROUPS", "Sensitivity", "Shared", "groups_of", "sensitivities", "shared_by"]
