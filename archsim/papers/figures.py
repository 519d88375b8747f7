"""A paper's figure, and a row of the table in which ours stands beside it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from archsim.errors import InputError, require

_FOLDER = Path(__file__).parent

Progress = Callable[[str], None]
"""Told what is measured next, by comparisons that take long."""


def silent(_what: str) -> None:
    """The progress that nobody sees."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One published number.

    value: None where the paper says something about it but gives no number.
    tolerance: in the figure's unit; `why` says why that much.
    source: table, section or figure of the paper, and how it was derived if it was.
    """

    key: str
    group: str
    figure: str
    value: float | None
    unit: str
    tolerance: float | None
    why: str
    source: str

    def __post_init__(self) -> None:
        require(
            (self.value is None) == (self.tolerance is None),
            f"{self.key}: a value has a tolerance, and no value has none",
        )

    def row(self, ours: float, reason: str = "") -> Row:
        """Ours beside it; a reason is required where it is outside the tolerance."""
        return Row(published=self, ours=ours, reason=reason)


def unpublished(*, key: str, group: str, figure: str, unit: str, source: str) -> Figure:
    """A figure of ours beside which the paper has nothing."""
    return Figure(
        key=key,
        group=group,
        figure=figure,
        value=None,
        unit=unit,
        tolerance=None,
        why="not published: not judged",
        source=source,
    )


@dataclass(frozen=True, kw_only=True)
class Row:
    """A published figure, ours, and why they differ (or a remark, or nothing)."""

    published: Figure
    ours: float
    reason: str = ""

    def __post_init__(self) -> None:
        require(
            self.within is not False or bool(self.reason),
            f"{self.published.key}: {self.ours} is outside the tolerance without a reason",
        )

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, in the figure's unit; None where the paper gives nothing."""
        return None if self.published.value is None else self.ours - self.published.value

    @property
    def within(self) -> bool | None:
        """Whether ours is within the tolerance; None where the paper gives nothing."""
        if self.difference is None or self.published.tolerance is None:
            return None
        return abs(self.difference) <= self.published.tolerance

    def record(self) -> dict[str, Any]:
        """The row as plain data; `tolerance` is in the row's unit."""
        return {
            "figure": self.published.figure,
            "paper": self.published.value,
            "ours": self.ours,
            "unit": self.published.unit,
            "tolerance": self.published.tolerance,
            "within": self.within,
            "reason": self.reason,
            "source": self.published.source,
            "tolerance_reason": self.published.why,
        }


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A paper's table with ours beside it; notes are what many rows have in common."""

    paper: str
    title: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """The table as plain data."""
        return {
            "paper": self.paper,
            "title": self.title,
            "notes": list(self.notes),
            "rows": [row.record() for row in self.rows],
        }


@cache
def read_paper(name: str) -> Mapping[str, Any]:
    """The data file of a paper: `title`, `[[figure]]` and `[[series]]` (see `load_figures`)."""
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def load_figures(name: str) -> dict[str, Figure]:
    """The figures of a paper by key, in the order of its data file.

    A `[[figure]]` has the fields of `Figure`; `value` and `tolerance` may be absent together.
    A `[[series]]` is one row of a published table: `values` by column, and a tolerance for each
    column, in the unit or, with `relative = true`, in per cent of the value.  It becomes a figure
    "COLUMN.key" for every column.
    """
    data = read_paper(name)
    figures = [_figure(name, entry) for entry in data.get("figure", ())]
    for series in data.get("series", ()):
        figures += _series(name, dict(series))
    return {figure.key: figure for figure in figures}


def _figure(name: str, entry: Mapping[str, Any]) -> Figure:
    fields: dict[str, Any] = {"value": None, "tolerance": None}
    fields.update(entry)
    try:
        return Figure(**fields)
    except TypeError as error:
        raise InputError(f"papers/{name}.toml: {error}") from error


def _series(name: str, series: dict[str, Any]) -> list[Figure]:
    values = cast("dict[str, float]", series.pop("values"))
    tolerances = cast("dict[str, float]", series.pop("tolerances"))
    relative = bool(series.pop("relative", False))
    key, figure = series.pop("key"), series.pop("figure")
    return [
        _figure(
            name,
            {
                **series,
                "key": f"{column}.{key}",
                "figure": f"{column}: {figure}",
                "value": value,
                "tolerance": tolerances[column] * (value / 100 if relative else 1),
            },
        )
        for column, value in values.items()
    ]
