"""Spaces as TOML: read, and written.

name = "arrays"                      # optional
networks = ["resnet50"]
objectives = ["cycles", "energy", "area"]
technology = "45nm"                  # optional, as are voltage_v, layers; of several, lists
requirements = ["area_um2 <= 2e6"]   # optional: what a design of use fulfils

[[machine]]
design = "edge-16"                   # or a file, or a table as `archsim show` prints it
constraints = ["rows <= columns"]
mapper = "rough"                     # optional: how layers are mapped (`--mapper` of `run`)

[machine.fields]
rows = [8, 16, 32]
columns = { from = 8, to = 64, step = 8 }
ifmap_memory.capacity_bytes = { powers_of_two = [16384, 262144] }
off_chip.bytes_per_cycle = { from = 4, to = 64, times = 2 }

[objective.test_error]               # optional: what an objective of a package is set to
images = 500

[search]                             # optional; as options of `archsim sweep`
method = "exhaustive"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

from archsim.errors import InputError, require
from archsim.layer.intake import Drawing
from archsim.machine.design import Design
from archsim.machine.registry import design_from_record, load_design
from archsim.records import build, check_keys, check_table
from archsim.sweeps.search import Search, search_from_record
from archsim.sweeps.space import MachineSpace, Space
from archsim.sweeps.values import is_range, values_of
from energy_models.reading import load_toml

KEYS = [
    "name", "networks", "objectives", "technology", "voltage_v", "requirements", "layers",
    "machine", "objective", "search",
]  # fmt: skip
MACHINE_KEYS = ["name", "design", "fields", "constraints", "operands", "mapper"]


def load_space(path: Path | str) -> tuple[Space, Search]:
    """The space of a TOML file, and how it says to be searched.  Raises `InputError`.

    Files that it names are looked for beside it first.
    """
    file = Path(path)
    record = load_toml(file, InputError)
    return space_from_record(record, str(file), file.parent)


def space_from_record(
    record: Mapping[str, Any], where: str, folder: Path | None = None
) -> tuple[Space, Search]:
    """A space from plain data.  where: names it in messages; folder: of the files that it names."""
    check_keys(where, record, KEYS)
    machines = record.get("machine", [])
    require(isinstance(machines, list), f"{where}: machines are [[machine]], in double brackets")
    try:
        space = Space(
            name=_text(where, "name", record.get("name", "")),
            machines=tuple(_machine(where, one, folder) for one in cast("list[Any]", machines)),
            networks=tuple(_found(one, folder) for one in _texts(where, "networks", record, [])),
            objectives=tuple(_texts(where, "objectives", record, ["cycles"])),
            technology=_technology(where, record, folder),
            voltage_v=_voltage(where, record),
            settings=_settings(where, record),
            requirements=tuple(_texts(where, "requirements", record, [])),
            layers=_truth(where, record),
        )
    except InputError as error:
        said = str(error)
        raise InputError(said if said.startswith(where) else f"{where}: {said}") from error
    table = check_table(where, "search", record.get("search", {}))
    return space, search_from_record(table, f"{where}: search")


def _machine(where: str, given: Any, folder: Path | None) -> MachineSpace:
    table = check_table(where, "machine", given)
    check_keys(f"{where}: machine", table, MACHINE_KEYS)
    require("design" in table, f"{where}: a machine has a design, a name, a file or a table")
    varied = check_table(where, "fields", table.get("fields", {}))
    operands = check_table(where, "operands", table.get("operands", {}))
    check_keys(f"{where}: operands", operands, [entry.name for entry in fields(Drawing)])
    drawing = build(f"{where}: operands", Drawing, operands)
    given = _flat(varied)
    if "technology" in given:
        given["technology"] = _technology(where, given, folder)
    return MachineSpace(
        name=_text(where, "name", table.get("name", "")),
        design=_design(where, table["design"], folder),
        fields=given,
        constraints=tuple(_texts(where, "constraints", table, [])),
        drawing=drawing,
        mapper=_text(where, "mapper", table.get("mapper", "")),
    )


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Fields by dotted name; tables that are ranges are values."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict) and not is_range(cast("dict[str, Any]", value)):
            found |= _flat(cast("dict[str, Any]", value), f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def _design(where: str, given: Any, folder: Path | None) -> Design:
    if isinstance(given, str):
        return load_design(_found(given, folder))
    return design_from_record(check_table(where, "design", given), f"{where}: design")


def _found(name: str, folder: Path | None) -> str:
    """The file of that name beside the space, if there is one; else the name as it is."""
    beside = None if folder is None else folder / name
    if beside is not None and beside.is_file():
        return str(beside.resolve())
    return str(Path(name).resolve()) if Path(name).is_file() else name


def _text(where: str, name: str, value: Any) -> str:
    require(isinstance(value, str), f"{where}: {name} must be a text, not {value!r}")
    return value


def _texts(
    where: str, name: str, record: Mapping[str, Any], default: list[str] | None = None
) -> list[str]:
    value = record.get(name, default)
    require(value is not None, f"{where}: {name} are missing")
    good = isinstance(value, list) and all(isinstance(one, str) for one in cast("list[Any]", value))
    require(good, f"{where}: {name} must be a list of texts, not {value!r}")
    return cast("list[str]", value)


def _technology(where: str, record: Mapping[str, Any], folder: Path | None) -> Any:
    """A name or file, or several."""
    value = record.get("technology")
    if isinstance(value, list):
        return [_found(one, folder) for one in _texts(where, "technology", record)]
    return None if value is None else _found(_text(where, "technology", value), folder)


def _voltage(where: str, record: Mapping[str, Any]) -> Any:
    """A number, or several: a list or a range, as a field's."""
    value = record.get("voltage_v")
    if isinstance(value, (list, dict)):
        return list(values_of("voltage_v", value))
    good = isinstance(value, (int, float)) and not isinstance(value, bool)
    require(value is None or good, f"{where}: voltage_v must be a number, not {value!r}")
    return value


def _settings(where: str, record: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Of objectives, by name."""
    given = record.get("objective", {})
    require(
        not isinstance(given, list | str),
        f"{where}: objective.NAME is what one is set to; the list is objectives",
    )
    table = check_table(where, "objective", given)
    return {name: check_table(where, f"objective.{name}", one) for name, one in table.items()}


def _truth(where: str, record: Mapping[str, Any]) -> bool:
    value = record.get("layers", False)
    require(isinstance(value, bool), f"{where}: layers must be true or false, not {value!r}")
    return value


def space_toml(space: Space, search: Search | None = None) -> str:
    """A space as TOML, complete: bases are written out."""
    import tomli_w

    record = {k: v for k, v in space.record().items() if v not in (None, "", [])}
    if search is not None:
        record["search"] = {k: v for k, v in search.record().items() if v is not None}
    return tomli_w.dumps(record)


__all__ = ["load_space", "space_from_record", "space_toml"]
