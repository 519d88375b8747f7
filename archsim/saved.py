"""Results that were saved, read back: what `archsim run --json` printed or `-o DIR` wrote."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archsim.errors import InputError, require
from archsim.json_table import JsonTable
from archsim.version import VERSION

RESULT_FILE = "result.json"
"""Its name in a folder of `archsim run -o DIR`."""


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
    """Areas in µm²."""

    total_um2: float
    by_component: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class SavedResult:
    """A network on a design, as it was saved.

    path: the file, or what the caller named the record.  design: nested plain data (see
    `archsim.designs.registry.design_record`).  version: of the archsim that simulated.
    technology: nested plain data as well, empty where none was chosen.
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

    Keys that this version does not know are passed over.  Raises `InputError` for what cannot be
    read, is not JSON, or is not a result; a result of another version of archsim is read as long
    as everything needed is in it.
    """
    given = Path(path)
    try:
        file = given / RESULT_FILE if given.is_dir() else given
        text = file.read_text(encoding="utf-8")
        record: Any = json.loads(text)
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{given} is not a JSON file: {error}") from error
    return parse_result(record, str(given))


def parse_result(record: Any, path: str) -> SavedResult:
    """A result from what `json.loads` makes of it; `path` names it in messages."""
    version = ""
    try:
        saved = JsonTable(record)
        version = saved.text("archsim")
        result = _result(saved, path)
        _check_sums(result)
    except InputError as error:
        wanted = f"a result that archsim {VERSION} can read"
        writer = f" (archsim {version} wrote it)" if version not in ("", VERSION) else ""
        raise InputError(f"{path} is not {wanted}{writer}: {error}") from error
    return result


def _result(saved: JsonTable, path: str) -> SavedResult:
    energy = _energy(saved.table("energy")) if "energy" in saved else None
    where, bytes_moved = saved.counts("where"), saved.counts("bytes_moved")
    spent = _layer_energies(saved.table("energy")) if energy else {}
    layers = [
        _layer(layer, (tuple(where), tuple(bytes_moved)), spent) for layer in saved.tables("layers")
    ]
    return SavedResult(
        path=path,
        version=saved.text("archsim"),
        design_name=saved.text("design_name"),
        design=saved.table("design").data,
        network=saved.text("network"),
        network_source=saved.text("network_source"),
        skipped=tuple(map(str, saved.array("skipped"))),
        seed=saved.count("seed") if "seed" in saved else None,
        cycles=saved.count("cycles"),
        serial_cycles=saved.count("serial_cycles"),
        seconds=saved.number("seconds"),
        macs=saved.count("macs"),
        utilization=saved.number("utilization"),
        where=where,
        bytes_moved=bytes_moved,
        actions=saved.counts("actions"),
        layers=tuple(layers),
        technology=saved.table("technology").data if "technology" in saved else {},
        energy=energy,
        area=_area(saved.table("area")) if "area" in saved else None,
    )


def _layer(
    saved: JsonTable,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    spent: Mapping[str, Mapping[str, float]],
) -> SavedLayer:
    """A layer; `names` are those of the causes and of the ports, which it has side by side."""
    name = saved.text("name")
    causes, ports = names
    return SavedLayer(
        name=name,
        kind=saved.text("kind"),
        macs=saved.count("macs"),
        vector_operations=saved.count("vector_operations"),
        cycles=saved.count("cycles"),
        serial_cycles=saved.count("serial_cycles"),
        utilization=saved.number("utilization"),
        where={cause: saved.count(cause) for cause in causes},
        bytes_moved={port: saved.count(f"{port}_bytes") for port in ports},
        actions=saved.counts("actions"),
        tiles=saved.count("tiles"),
        folds=saved.count("folds"),
        tiling=saved.table("tiling").data if "tiling" in saved else None,
        operands=saved.text("operands"),
        energy=spent.get(name),
    )


def _energy(saved: JsonTable) -> SavedEnergy:
    return SavedEnergy(
        unit=saved.text("unit"),
        total=saved.number("total"),
        by_component=saved.numbers("by_component"),
        by_group=saved.numbers("by_group"),
        missing=tuple(map(str, saved.array("missing"))),
    )


def _layer_energies(saved: JsonTable) -> dict[str, dict[str, float]]:
    layers = saved.table("layers")
    return {name: layers.numbers(name) for name in layers.data}


def _area(saved: JsonTable) -> SavedArea:
    parts = saved.numbers("by_component")
    return SavedArea(total_um2=saved.number("total_um2"), by_component=parts)


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
