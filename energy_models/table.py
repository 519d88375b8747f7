"""Published tables of energy, area and leakage: data in TOML, each figure with its source.

A file has `name`, `title`, `node_nm`, `voltage_v`, `source` (the publication), optionally `notes`
and `parts` (names of components that are not kinds of `energy_models.component`), and one
`[[entry]]` a figure (`energy_models.entry`).  A voltage that the publication does not state is
written `nan`; so is the node of a table of off-chip interfaces.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from energy_models.entry import Entry, positive_of, read_entry, text_of
from energy_models.errors import EnergyError, nearest, require, require_known
from energy_models.estimator import Quantity
from energy_models.reading import load_toml
from energy_models.units import RELATIVE

FOLDER = Path(__file__).parent / "tables"
REQUIRED_FIELDS = ("name", "title", "node_nm", "voltage_v", "source", "entry")
FIELDS = (*REQUIRED_FIELDS, "notes", "parts")


@dataclass(frozen=True, kw_only=True)
class Table:
    """A publication's figures at one technology node and supply voltage.

    node_nm, voltage_v: NaN where the publication does not say; entries may have their own.
    parts: components in it which are not kinds.
    """

    name: str
    title: str
    node_nm: float
    voltage_v: float
    source: str
    entries: tuple[Entry, ...]
    notes: str = ""
    parts: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        """Of its energies: "pJ", or "MAC" if they are relative to a multiply-accumulate."""
        return RELATIVE if any(entry.relative for entry in self.entries) else "pJ"

    def find(
        self, component: str, quantity: str, action: str = "", **attributes: int | str
    ) -> Quantity:
        """A figure as printed, by name: the way to parts that are not kinds.

        `find("float_adder", "energy", "add", bits=16, format="ieee")`.  All attributes of the
        entry must be given.  Raises `EnergyError` with the entries there are.
        """
        alike = [
            one for one in self.entries if (one.component, one.quantity) == (component, quantity)
        ]
        for entry in alike:
            if entry.attributes == attributes and action in (entry.actions or ("",)):
                return self.quantity(entry)
        sizes = ", ".join(f"{name}={value}" for name, value in attributes.items())
        wanted = " ".join(word for word in (f"{component}({sizes})", action, quantity) if word)
        have = "; ".join(entry.where for entry in alike)
        if not have:
            names = dict.fromkeys(e.component for e in self.entries if e.quantity == quantity)
            have = ", ".join(names) or "none"
        raise EnergyError(f"table {self.name} has no {wanted}; it has: {have}")

    def quantity(self, entry: Entry) -> Quantity:
        """An entry's figure with its publication, and the range if one is printed."""
        how = ""
        if entry.low is not None and entry.high is not None:
            middle = math.isclose(entry.value, (entry.low + entry.high) / 2)
            taken = "the middle" if middle else f"{entry.value:g}"
            how = f"{taken} of the printed {entry.low:g} to {entry.high:g} {entry.unit}"
        publication = entry.publication or self.source
        return Quantity(value=entry.figure, source=f"{publication}, {entry.source}", how=how)


def shipped_tables() -> dict[str, str]:
    """The titles of the tables that come with the package, by name."""
    return {path.stem: load_table(path).title for path in sorted(FOLDER.glob("*.toml"))}


def load_table(name_or_path: str | Path) -> Table:
    """A shipped table, or the one in a TOML file.

    Raises `EnergyError` for an unknown name, and for a file that is no table.
    """
    known = [path.stem for path in sorted(FOLDER.glob("*.toml"))]
    if isinstance(name_or_path, str) and not name_or_path.endswith(".toml"):
        if name_or_path not in known:
            raise EnergyError(f"no table {name_or_path!r}; {nearest(name_or_path, known)}")
        name_or_path = FOLDER / f"{name_or_path}.toml"
    path = Path(name_or_path)
    return read_table(load_toml(path, EnergyError), str(path))


def read_table(record: Mapping[str, object], place: str) -> Table:
    """A table from plain data, as a file has it; `place` says in messages what it is of.

    Raises `EnergyError`.
    """
    for name in record:
        require_known(name, FIELDS, f"{place}: no field {name!r}")
    for name in REQUIRED_FIELDS:
        require(name in record, f"{place}: {name} is missing")
    parts = _parts(record.get("parts", []), place)
    given = record["entry"]
    if not isinstance(given, list) or not given:
        raise EnergyError(f"{place}: entry must be one or more tables [[entry]]")
    entries = tuple(
        read_entry(one, f"{place}, entry {number}", parts)
        for number, one in enumerate(cast("list[object]", given), start=1)
    )
    _refuse_double(entries, place)
    _refuse_mixed(entries, place)
    return Table(
        name=text_of(record, "name", place),
        title=text_of(record, "title", place),
        node_nm=_point(record, "node_nm", place),
        voltage_v=_point(record, "voltage_v", place),
        source=text_of(record, "source", place),
        entries=entries,
        notes=text_of(record, "notes", place) if "notes" in record else "",
        parts=parts,
    )


def _point(record: Mapping[str, object], name: str, place: str) -> float:
    value = record[name]
    if isinstance(value, float) and math.isnan(value):
        return value
    return positive_of(record, name, place)


def _parts(given: object, place: str) -> tuple[str, ...]:
    names = cast("list[object]", given) if isinstance(given, list) else [None]
    parts = tuple(name for name in names if isinstance(name, str) and name)
    require(len(parts) == len(names), f"{place}: parts must be a list of names, not {given!r}")
    return parts


def _refuse_double(entries: tuple[Entry, ...], place: str) -> None:
    seen: dict[tuple[object, ...], int] = {}
    for number, entry in enumerate(entries, start=1):
        sizes = tuple(sorted(entry.attributes.items()))
        point = (entry.node_nm, entry.voltage_v)
        for action in entry.actions or ("",):
            key = (entry.component, sizes, entry.quantity, action, point)
            if key in seen:
                raise EnergyError(
                    f"{place}: entries {seen[key]} and {number} are both of {entry.where}"
                )
            seen[key] = number


def _refuse_mixed(entries: tuple[Entry, ...], place: str) -> None:
    kinds = {entry.relative for entry in entries if entry.quantity == "energy"}
    require(
        len(kinds) < 2,
        f"{place}: energies must be all in units of {RELATIVE}, or none of them",
    )
