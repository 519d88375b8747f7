"""Logic measured by synthesis: coefficient files, one for each library of cells.

A TOML file with the strings `name`, `library`, `library_source`, `library_sha256`, `tools`,
`method`, the numbers `node_nm`, `voltage_v`, and for each component kind a list of points: its
attributes, `cells` (how many cells it took), `area_um2`, `leakage_mw`, and `<action>_pj` for each
action. A point may name the `module` that it was measured on, where it is one of a real design.
`archsim characterize` writes such files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from energy_models.component import KINDS
from energy_models.errors import EnergyError, nearest, require, require_known
from energy_models.reading import load_toml

FOLDER = Path(__file__).parent / "coefficients"

LOGIC_KINDS = ("mac", "multiplier", "adder", "register", "mux", "one_hot", "shifter", "control")
"""The kinds of `KINDS` that are made of cells."""

_TEXTS = ("name", "library", "library_source", "library_sha256", "tools", "method")
_NUMBERS = ("node_nm", "voltage_v")


@dataclass(frozen=True, kw_only=True)
class Point:
    """One piece of hardware as measured: its sizes, and its figures in µm², mW and pJ.

    energy_pj: by action of its kind. cells: how many library cells it is made of.
    """

    kind: str
    sizes: Mapping[str, int]
    cells: int
    area_um2: float
    leakage_mw: float
    energy_pj: Mapping[str, float]
    module: str = ""

    @property
    def key(self) -> tuple[int, ...]:
        """The sizes in the order in which `KINDS` names them."""
        return tuple(self.sizes[name] for name in KINDS[self.kind][0])

    @property
    def text(self) -> str:
        """ "8 × 32"."""
        return " × ".join(map(str, self.key))


@dataclass(frozen=True, kw_only=True)
class Coefficients:
    """A coefficient file: where its figures are from, and the points by kind."""

    name: str
    library: str
    library_source: str
    library_sha256: str
    tools: str
    method: str
    node_nm: float
    voltage_v: float
    points: Mapping[str, tuple[Point, ...]] = field(default_factory=dict[str, tuple[Point, ...]])

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            value = getattr(self, name)
            require(value > 0, f"{self.name}: {name} must be positive, not {value:g}")
        for kind, points in self.points.items():
            seen: set[tuple[object, ...]] = set()
            for point in points:
                entry = (point.key, point.module)
                require(entry not in seen, f"{self.name}: {kind} {point.text} is given twice")
                seen.add(entry)

    def to_toml(self) -> str:
        """The file's text; `load_coefficients` reads it back."""
        lines = [f"{name} = {_quoted(getattr(self, name))}" for name in _TEXTS] + [
            f"{name} = {float(getattr(self, name))}" for name in _NUMBERS
        ]
        for kind, points in self.points.items():
            lines += ["", f"{kind} = [", *(f"  {{ {_row(point)} }}," for point in points), "]"]
        return "\n".join(lines) + "\n"


def coefficient_names() -> tuple[str, ...]:
    """The files that come with the package."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def load_coefficients(source: str | Path) -> Coefficients:
    """A file of the package by its name ("osu018"), or any file by its path.

    Raises `EnergyError` for an unknown name, and for a file that is not as described above.
    """
    path = source if isinstance(source, Path) else FOLDER / f"{source}.toml"
    if isinstance(source, str) and source.endswith(".toml"):
        path = Path(source)
    elif isinstance(source, str) and source not in coefficient_names():
        hint = nearest(source, coefficient_names())
        raise EnergyError(f"no coefficients {source!r}; {hint}; or give a path to a .toml file")
    return _coefficients(str(path), load_toml(path, EnergyError))


def _coefficients(where: str, record: dict[str, Any]) -> Coefficients:
    known = (*_TEXTS, *_NUMBERS, *LOGIC_KINDS)
    for name in record:
        require_known(name, known, f"{where}: unknown field {name!r}")
    for name in (*_TEXTS, *_NUMBERS):
        require(name in record, f"{where}: {name} is missing")
    for name in _TEXTS:
        require(isinstance(record[name], str), f"{where}: {name} must be text")
    points: dict[str, tuple[Point, ...]] = {}
    for kind in LOGIC_KINDS:
        rows = record.get(kind, [])
        require(isinstance(rows, list), f"{where}: {kind} must be a list of points")
        made = tuple(
            _point(f"{where}: {kind}, point {number}", kind, row)
            for number, row in enumerate(cast("list[object]", rows), 1)
        )
        if made:
            points[kind] = made
    return Coefficients(
        points=points,
        name=record["name"],
        library=record["library"],
        library_source=record["library_source"],
        library_sha256=record["library_sha256"],
        tools=record["tools"],
        method=record["method"],
        node_nm=_number(where, "node_nm", record["node_nm"]),
        voltage_v=_number(where, "voltage_v", record["voltage_v"]),
    )


def _point(where: str, kind: str, row: object) -> Point:
    if not isinstance(row, dict):
        raise EnergyError(f"{where} must be a table, not {row!r}")
    fields = cast("dict[str, object]", row)
    attributes, actions = KINDS[kind]
    wanted = (*attributes, "cells", "area_um2", "leakage_mw", *(f"{one}_pj" for one in actions))
    for name in fields:
        known = (*wanted, "module")
        require_known(name, known, f"{where}: unknown field {name!r}")
    for name in wanted:
        require(name in fields, f"{where}: {name} is missing")
    figures = {name: _number(where, name, fields[name]) for name in wanted}
    for name in (*attributes, "cells"):
        require(
            figures[name] == int(figures[name]) and (figures[name] > 0 or name == "cells"),
            f"{where}: {name} must be a positive whole number, not {fields[name]!r}",
        )
    return Point(
        kind=kind,
        sizes={name: int(figures[name]) for name in attributes},
        cells=int(figures["cells"]),
        area_um2=figures["area_um2"],
        leakage_mw=figures["leakage_mw"],
        energy_pj={action: figures[f"{action}_pj"] for action in actions},
        module=str(fields.get("module", "")),
    )


def _number(where: str, name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise EnergyError(f"{where}: {name} must be a number, not {value!r}")
    if not (math.isfinite(value) and value >= 0):
        raise EnergyError(f"{where}: {name} must not be negative, not {value!r}")
    return float(value)


def _quoted(text: str) -> str:
    if "\n" in text:
        return f'"""\n{text.rstrip()}\n"""'
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _row(point: Point) -> str:
    figures: dict[str, float] = {
        "area_um2": point.area_um2,
        "leakage_mw": point.leakage_mw,
        **{f"{action}_pj": value for action, value in point.energy_pj.items()},
    }
    parts = [f'module = "{point.module}"'] if point.module else []
    parts += [f"{name} = {size}" for name, size in (*point.sizes.items(), ("cells", point.cells))]
    parts += [f"{name} = {float(f'{value:.6g}')!r}" for name, value in figures.items()]
    return ", ".join(parts)
