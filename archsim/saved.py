"""Results that were saved, read back: what `archsim run --json` printed or `-o DIR` wrote."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from archsim.errors import InputError, require
from archsim.schema.check import check, kind_of
from archsim.schema.result import PORTS, RESULT, WHERE
from archsim.schema.versions import in_present_version
from archsim.version import VERSION
from energy_models.reading import read_text
from workloads.limits import limits
from workloads.names import printable

RESULT_FILE = "result.json"
"""Its name in a folder of `archsim run -o DIR`."""

Record = dict[str, Any]

Figure = TypeVar("Figure", int, float)

LONGEST_TEXT = 4000
"""Characters of a text that are kept."""


@dataclass(frozen=True, kw_only=True)
class SavedLayer:
    """One layer of a saved result: the fields of `archsim.result.LayerResult` that are saved.

    where: cycles by cause.  bytes_moved: by port.  tiling: its sizes and order, None for vector
    work.  energy: by component, None for vector work and where the result has no energies.
    """

    name: str
    kind: str
    macs: int
    vector_operations: int
    cycles: int
    serial_cycles: int
    utilization: float
    where: Mapping[str, int]
    bytes_moved: Mapping[str, int]
    actions: Mapping[str, int]
    tiles: int
    folds: int
    tiling: Mapping[str, Any] | None
    operands: str
    energy: Mapping[str, float] | None

    @property
    def identity(self) -> tuple[str, str, int, int]:
        """Name, kind, MACs, vector operations: the same for layers of one name and shape.

        A saved result keeps no shapes, so that this is as near as it comes to them.
        """
        return self.name, self.kind, self.macs, self.vector_operations

    @property
    def total_bytes(self) -> int:
        """Bytes that crossed all ports."""
        return sum(self.bytes_moved.values())

    @property
    def total_energy(self) -> float | None:
        """Energy of all components; None where there is none."""
        return None if self.energy is None else math.fsum(self.energy.values())


@dataclass(frozen=True, kw_only=True)
class SavedEnergy:
    """Energies of a result, in `unit`: "pJ", or "MAC" where the technology's costs are relative.

    Static energy is the entry "leakage" of `by_component` and `by_group`.  missing: what no source
    says and the sums leave out.
    """

    unit: str
    total: float
    by_component: Mapping[str, float]
    by_group: Mapping[str, float]
    missing: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SavedArea:
    """Areas in µm²; by_group is empty in older results."""

    total_um2: float
    by_component: Mapping[str, float]
    by_group: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class SavedResult:
    """A network on a design, as it was saved.

    path: the file, or what the caller named the record.  design: nested plain data (see
    `archsim.machine.registry.design_record`).  version: of the archsim that simulated.
    technology: nested plain data as well, empty where none was chosen.  options: chosen of the
    machine for the run, nested plain data.
    """

    path: str
    version: str
    design_name: str
    design: Mapping[str, Any]
    network: str
    network_source: str
    skipped: tuple[str, ...]
    seed: int | None
    cycles: int
    serial_cycles: int
    seconds: float
    macs: int
    utilization: float
    where: Mapping[str, int]
    bytes_moved: Mapping[str, int]
    actions: Mapping[str, int]
    layers: tuple[SavedLayer, ...]
    technology: Mapping[str, Any]
    energy: SavedEnergy | None
    area: SavedArea | None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def total_bytes(self) -> int:
        """Bytes that crossed all ports."""
        return sum(self.bytes_moved.values())

    @property
    def technology_name(self) -> str:
        """ "" where none was chosen."""
        return str(self.technology.get("name", ""))

    @property
    def energy_delay(self) -> float | None:
        """Energy-delay product in the energies' unit · s; None without energies."""
        return None if self.energy is None else self.energy.total * self.seconds


def load_result(path: Path | str) -> SavedResult:
    """Read a file of `archsim run --json`, or a folder of `archsim run -o DIR`.

    The file is checked with the schema (`docs/schema/result.json`), keys that it does not name are
    passed over, and results of earlier versions are read too.  Raises `InputError` for what cannot
    be read, is not JSON, or is not a result.
    """
    given = Path(path)
    try:
        file = given / RESULT_FILE if given.is_dir() else given
        text = read_text(file, InputError, what="a JSON file", most=limits().file_mib << 20)
        record: Any = json.loads(text)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{given} is not a JSON file: {error}") from error
    return parse_result(record, str(given))


def parse_result(record: Any, path: str) -> SavedResult:
    """A result from what `json.loads` makes of it; `path` names it in messages.

    Results of every version of the schema are read (`archsim.schema.versions`).
    """
    version = ""
    try:
        require(isinstance(record, dict), f"it must be an object, not {kind_of(record)}")
        if isinstance(record.get("archsim"), str):
            version = _text(record["archsim"])
        saved = in_present_version(record)
        check(saved, RESULT)
        result = _result(saved, path)
        _check_sums(result)
    except InputError as error:
        wanted = f"a result that archsim {VERSION} can read"
        writer = f" (archsim {version} wrote it)" if version not in ("", VERSION) else ""
        raise InputError(f"{path} is not {wanted}{writer}: {error}") from error
    return result


def _result(saved: Record, path: str) -> SavedResult:
    """The view of a record that fits the schema."""
    energy = _energy(saved["energy"]) if saved.get("energy") else None
    spent = _layer_energies(saved["energy"]) if energy else {}
    return SavedResult(
        path=path,
        version=_text(saved["archsim"]),
        **{name: _text(saved[name]) for name in ("design_name", "network", "network_source")},
        **{name: saved[name] for name in ("design", "seed", "cycles", "serial_cycles", "macs")},
        skipped=tuple(map(_text, saved["skipped"])),
        seconds=float(saved["seconds"]),
        utilization=float(saved["utilization"]),
        where=saved["where"],
        bytes_moved=saved["bytes_moved"],
        actions=_by_name(saved["actions"]),
        layers=tuple(_layer(layer, spent) for layer in saved["layers"]),
        technology=saved.get("technology") or {},
        energy=energy,
        area=_area(saved["area"]) if saved.get("area") else None,
        options=saved.get("options") or {},
    )


def _layer(saved: Record, spent: Mapping[str, Mapping[str, float]]) -> SavedLayer:
    name = _text(saved["name"])
    counted = ("macs", "vector_operations", "cycles", "serial_cycles", "tiles", "folds", "tiling")
    return SavedLayer(
        name=name,
        **{name: saved[name] for name in counted},
        kind=_text(saved["kind"]),
        utilization=float(saved["utilization"]),
        where={cause: saved[cause] for cause in WHERE},
        bytes_moved={port: saved[f"{port}_bytes"] for port in PORTS},
        actions=_by_name(saved["actions"]),
        operands=_text(saved["operands"]),
        energy=spent.get(name),
    )


def _energy(saved: Record) -> SavedEnergy:
    return SavedEnergy(
        unit=_text(saved["unit"]),
        total=float(saved["total"]),
        by_component=_by_name(saved["by_component"]),
        by_group=_by_name(saved["by_group"]),
        missing=tuple(map(_text, saved["missing"])),
    )


def _layer_energies(saved: Record) -> dict[str, dict[str, float]]:
    return {_text(name): _by_name(found) for name, found in saved["layers"].items()}


def _area(saved: Record) -> SavedArea:
    parts = _by_name(saved["by_component"])
    groups = _by_name(saved.get("by_group", {}))
    return SavedArea(total_um2=float(saved["total_um2"]), by_component=parts, by_group=groups)


def _text(text: str) -> str:
    """Text, fit to be shown whatever the file holds."""
    return printable(text, LONGEST_TEXT)


def _by_name(figures: Mapping[str, Figure]) -> dict[str, Figure]:
    """Figures under names that are fit to be shown."""
    return {_text(name): figure for name, figure in figures.items()}


def _check_sums(result: SavedResult) -> None:
    """Refuse totals that are not the sums of the layers, and layers of one name."""
    for name, times in Counter(layer.name for layer in result.layers).items():
        require(times == 1, f"{times} layers are named {name!r}")
    totals = {
        name: (getattr(result, name), [getattr(layer, name) for layer in result.layers])
        for name in ("cycles", "serial_cycles", "macs")
    }
    for name, total in result.where.items():
        totals[f"where.{name}"] = (total, [layer.where[name] for layer in result.layers])
    for name, total in result.bytes_moved.items():
        totals[f"bytes_moved.{name}"] = total, [one.bytes_moved[name] for one in result.layers]
    for name, (total, parts) in totals.items():
        require(total == sum(parts), f"{name} is {total}, but its layers sum to {sum(parts)}")
