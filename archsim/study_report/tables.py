"""What the page of a study tells in numbers: the best, what matters, what the front shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archsim.plots.units import area_unit, byte_text, si_text, significant
from archsim.sweeps.objectives import unit_told
from archsim.sweeps.sensitivity import Sensitivity, sensitivities, shared_by

if TYPE_CHECKING:
    from archsim.study_report.shown import Fronts, Shown
    from archsim.sweeps.study import Study


_BASE = {"seconds": (1.0, "s"), "energy_pj": (1e-12, "J"), "edp_pj_s": (1e-12, "J·s")}
"""Of an objective, what its unit is in base units, and their symbol."""


@dataclass(frozen=True)
class Best:
    """The least of an objective on a network, and the point that has it."""

    network: str
    objective: str
    value: str
    unit: str
    number: int
    settings: str


@dataclass(frozen=True)
class Cell:
    """A share of variance as text, and how dark its square is, 0 … 1."""

    text: str
    share: float
    told: str


@dataclass(frozen=True)
class Matter:
    """Fields × objectives: how much each moves each, the most moving field first."""

    network: str
    objectives: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


@dataclass(frozen=True)
class Common:
    """A field, and its values on the front."""

    field: str
    values: str
    of: int
    same: bool


def best_of(study: Study, fronts: Fronts) -> list[Best]:
    """For every network and objective, the least that fulfils the requirements."""
    found: list[Best] = []
    for network, of in fronts.items():
        for objective in study.objectives:
            if not len(of[(objective,)]):
                continue
            point = study.points(of[(objective,)][:1]).iloc[0]
            named = [name for name in study.fields if point[name] is not None]
            settings = ", ".join(f"{name} {written(point[name])}" for name in named)
            value, unit = told(float(point[objective]), objective)
            found.append(Best(network, objective, value, unit, int(point["number"]), settings))
    return found


def matters(shown: Shown) -> list[Matter]:
    """How much every field moves every objective, on each network."""
    fields = [axis.name for axis in shown.fields]
    objectives = [axis.name for axis in shown.objectives]
    found: list[Matter] = []
    for network in shown.networks:
        points = shown.points[shown.points["network"] == network]
        told = sensitivities(points, fields, objectives)
        if told:
            found.append(_matter(network, fields, objectives, told))
    return found


def _matter(
    network: str, fields: list[str], objectives: list[str], told: list[Sensitivity]
) -> Matter:
    by = {(one.field, one.objective): one for one in told}
    kept = [name for name in objectives if any(one.objective == name for one in told)]
    names = {field for field, _ in by}
    order = sorted(names, key=lambda f: -sum(by[f, o].share for o in kept if (f, o) in by))
    rows = tuple((field, tuple(_cell(by.get((field, o))) for o in kept)) for field in order)
    return Matter(network, tuple(kept), rows)


def _cell(one: Sensitivity | None) -> Cell:
    if one is None:
        return Cell("", 0.0, "")
    told = (
        f"{one.field}: least {one.objective} at {written(one.best)}, most at {written(one.worst)}, "
        f"{one.ratio:.3g} times as much"
    )
    return Cell(f"{100 * one.share:.0f} %", one.share, told)


def commons(study: Study, fronts: Fronts, network: str) -> tuple[list[Common], int]:
    """What the designs on the front of all objectives share, and how many they are."""
    front = study.points(fronts[network][study.objectives])
    sizes = {name: len(values) for name, values in study.space.fields.items()}
    found = [
        Common(
            field=one.field,
            values=", ".join(f"{written(value)} ({count:,})" for value, count in one.values[:8])
            + (", …" if len(one.values) > 8 else ""),
            of=one.of,
            same=one.same,
        )
        for one in shared_by(front, sizes)
    ]
    return found, len(front)


def refusals(study: Study, most: int = 20) -> dict[str, int]:
    """Why points were not computed, and how many of them, the most frequent first."""
    query = (
        "SELECT error, count(*) FROM points WHERE status != 'done' "
        "GROUP BY error ORDER BY count(*) DESC, error LIMIT ?"
    )
    return dict(study.store.rows(query, [most]))


def told(value: float, objective: str) -> tuple[str, str]:
    """A value of an objective as it is read well: the number, and its unit."""
    if objective in _BASE:
        factor, symbol = _BASE[objective]
        text, unit = si_text(value * factor, symbol).rsplit(" ", 1)
        return text, unit
    if objective == "area_um2":
        unit = area_unit(value)
        return significant(value / unit.size), unit.name
    if objective == "footprint_bytes":
        text, unit = byte_text(int(value)).rsplit(" ", 1)
        return text, unit
    return written(value), unit_told(objective)


def written(value: Any) -> str:
    """A value of a field or an objective."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    number = float(value)
    if number.is_integer() and abs(number) < 1e15:
        return f"{int(number):,}"
    return f"{number:.4g}"


__all__ = ["Best", "Cell", "Common", "Matter", "best_of", "commons", "matters", "refusals"]
