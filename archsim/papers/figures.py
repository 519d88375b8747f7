"""A paper's figure, and a row of the table in which ours stands beside it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

from archsim.errors import InputError, require
from archsim.papers.evidence import Measured
from energy_models.frozen import frozen

_FOLDER = Path(__file__).parent

Progress = Callable[[str], None]
"""Told what is measured next, by comparisons that take long."""


def silent(_what: str) -> None:
    """The progress that nobody sees."""


State = Literal["reproduced", "explained", "not modelled"]

STATES: tuple[State, ...] = ("reproduced", "explained", "not modelled")
"""Of a row with a published figure: ours is within its tolerance; it is not, and something measured
shows why; it is not, and what the figure counts or depends on is not in our model, or is not
published."""

WIDEST, ARGUED = 0.25, 0.5
"""A tolerance is at most a quarter of its figure; with a reason (`wide`), less than half of it: 0,
half and double never pass."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One published number.

    value: above 0; None where the paper says something about it but gives no number.
    tolerance: in the figure's unit; `why` says why that much; `wide` why it is more than a quarter
    of the value, where it is.
    complement: the paper prints 0 %, which nothing can be a ratio of: what is compared is the rest
    of 100 %, in `value` and, by `row`, in ours.
    neutral: the value at which nothing would be gained, of a figure that is a gain over something
    (a ratio of 1, 100 % left): the tolerance is less than half of the gain, too.
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
    wide: str = ""
    complement: bool = False
    neutral: float | None = None

    def __post_init__(self) -> None:
        require(
            (self.value is None) == (self.tolerance is None),
            f"{self.key}: a value has a tolerance, and no value has none",
        )
        if self.value is None or self.tolerance is None:
            return
        require(
            self.value > 0,
            f"{self.key}: a figure must be above 0, not {self.value}: compare its complement or "
            "what is left",
        )
        share = self.tolerance / self.value
        require(
            share <= WIDEST * (1 + 1e-9) or (bool(self.wide) and share < ARGUED),
            f"{self.key}: the tolerance must be at most a quarter of the figure, or less than half "
            f"with a reason, not {100 * share:.0f} %",
        )
        require(
            self.neutral is None or self.tolerance < ARGUED * abs(self.value - self.neutral),
            f"{self.key}: the tolerance must be less than half of the gain",
        )

    def row(
        self,
        ours: float,
        reason: str = "",
        *,
        measured: Sequence[Measured] = (),
        missing: str = "",
    ) -> Row:
        """Ours beside it; where it is outside the tolerance, a measured reason, or what is missing.

        measured: kept where ours is outside and they explain it.  missing: what of the paper's
        figure is not in our model, for a row that nothing measured explains.
        """
        if self.complement:
            ours, measured = (
                100 - ours,
                [
                    replace(one, value=100 - one.value) if one.kind == "switch" else one
                    for one in measured
                ],
            )
        plain = Row(published=self, ours=ours, reason=reason, missing="?")
        if self.value is None or plain.within:
            return replace(plain, missing="")
        kept = tuple(one for one in measured if one.explains(self.value, ours))
        return replace(plain, measured=kept, missing="" if kept else missing)


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
    """A published figure, ours, and why they differ.

    reason: a remark.  measured: what shows why ours is outside the tolerance.  missing: what is not
    in our model, or not published.
    """

    published: Figure
    ours: float
    reason: str = ""
    measured: tuple[Measured, ...] = ()
    missing: str = ""

    def __post_init__(self) -> None:
        require(
            self.within is not False or bool(self.measured or self.missing),
            f"{self.published.key}: {self.ours} is outside the tolerance without a measured reason",
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

    @property
    def state(self) -> State | None:
        """One of `STATES`; None where the paper gives nothing."""
        if self.within is None:
            return None
        if self.within:
            return "reproduced"
        return "explained" if self.measured else "not modelled"

    @property
    def text(self) -> str:
        """The remark, what was measured, what is missing."""
        paper = self.published.value or 0.0
        shown = [one.text(paper, self.ours) for one in self.measured]
        return "; ".join(part for part in (self.reason, *shown, self.missing) if part)

    def record(self) -> dict[str, Any]:
        """The row as plain data; `tolerance` is in the row's unit."""
        paper = self.published.value or 0.0
        return {
            "figure": self.published.figure,
            "paper": self.published.value,
            "ours": self.ours,
            "unit": self.published.unit,
            "tolerance": self.published.tolerance,
            "within": self.within,
            "state": self.state,
            "reason": self.reason,
            "measured": [one.record(paper, self.ours) for one in self.measured],
            "missing": self.missing,
            "source": self.published.source,
            "tolerance_reason": self.published.why,
            "wide_reason": self.published.wide,
        }


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A paper's table with ours beside it; notes are what many rows have in common."""

    paper: str
    title: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    @property
    def states(self) -> dict[State, int]:
        """How many of the published figures are in each state."""
        found = [row.state for row in self.rows]
        return {state: found.count(state) for state in STATES}

    def record(self) -> dict[str, Any]:
        """The table as plain data."""
        return {
            "paper": self.paper,
            "title": self.title,
            "notes": list(self.notes),
            "states": dict(self.states),
            "rows": [row.record() for row in self.rows],
        }


@cache
def read_paper(name: str) -> Mapping[str, Any]:
    """The data file of a paper: `title`, `[[figure]]` and `[[series]]` (see `load_figures`)."""
    data = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return frozen(data)


def load_figures(name: str) -> dict[str, Figure]:
    """The figures of a paper by key, in the order of its data file.

    A `[[figure]]` has the fields of `Figure`; `value` and `tolerance` may be absent together.
    A `[[series]]` is one row of a published table: `values` by column, and a tolerance for each
    column, in the unit or, with `relative = true`, in per cent of the value; `most` caps it, in per
    cent of the value.  It becomes a figure "COLUMN.key" for every column; one of 0 % becomes its
    complement, with `rounding` for its tolerance.
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
    relative, most = bool(series.pop("relative", False)), float(series.pop("most", 100))
    rounding = float(series.pop("rounding", 0))
    key, figure = series.pop("key"), series.pop("figure")
    found: list[Figure] = []
    for column, value in values.items():
        tolerance = tolerances[column] * (value / 100 if relative else 1)
        entry = {
            **series,
            "key": f"{column}.{key}",
            "figure": f"{column}: {figure}",
            "value": value,
            "tolerance": min(tolerance, most * value / 100),
        }
        if value == 0:
            entry |= {
                "figure": f"{column}: all but {figure}",
                "value": 100,
                "tolerance": rounding,
                "complement": True,
                "why": "printed as 0 % with a decimal: the rest is compared",
            }
        found.append(_figure(name, entry))
    return found
