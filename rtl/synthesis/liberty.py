"""A standard-cell library: area, leakage, capacitance, energy and function of every cell.

Read from a Liberty file (`.lib`, or `.lib.gz`). Its units are honoured and left behind: areas are
in µm² (Liberty states no unit of area; every public library means µm²), capacitances in pF,
energies in pJ, leakage in mW. An `internal_power` table holds energy per transition, in the unit
voltage_unit² × capacitive_load_unit.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from energy_models.errors import EnergyError, require
from rtl.synthesis.liberty_tables import InternalEnergy, Units, internal_energy

__all__ = [
    "DEFAULT_LIBRARY",
    "Cell",
    "CellLibrary",
    "Pin",
    "Storage",
    "library_text",
    "read_library",
]

DEFAULT_LIBRARY = Path("/usr/share/qflow/tech/osu018/osu018_stdcells.lib")
"""The 180 nm library which Debian packages: `apt-get install qflow-tech-osu018`."""

MOST_BYTES = 256 << 20
"""Of a library's text, unpacked: public ones have below 60 MB."""

_NODES_NM = {"osu018": 180.0, "osu035": 350.0, "osu050": 500.0, "sky130": 130.0}
"""Technology node by how a library's name begins; Liberty itself does not state it."""

_SPECIAL = ("dont_use", "is_isolation_cell", "is_level_shifter", "always_on")
"""Cells with one of these are for power domains or not at all; plain logic must not use them."""


@dataclass(frozen=True, kw_only=True)
class Pin:
    """A pin of a cell.

    direction: "input", "output", "inout" or "internal".
    function: of an output, its Liberty expression over input pins and state variables.
    energy: what the cell itself spends at a transition of this pin, without charging its load;
    None where the library has no figure.
    """

    name: str
    direction: str
    capacitance_pf: float
    function: str | None = None
    three_state: str | None = None
    is_clock: bool = False
    energy: InternalEnergy | None = None


@dataclass(frozen=True, kw_only=True)
class Storage:
    """What a register or latch stores, as Liberty expressions over its input pins.

    variables: names of the state and of its complement, which output functions refer to.
    clock: a register samples `data` as it rises; a latch follows `data` while it holds.
    """

    kind: str
    variables: tuple[str, str]
    data: str
    clock: str
    clear: str | None = None
    preset: str | None = None


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell: area in µm², leakage in mW (None where the library states none), pins.

    dont_use: the library says so, or it serves power domains or gates a clock: synthesis must not
    choose it for plain logic.
    """

    name: str
    area: float
    leakage_mw: float | None
    dont_use: bool
    storage: Storage | None
    pins: Mapping[str, Pin]

    @property
    def is_register(self) -> bool:
        """It samples on a clock edge."""
        return self.storage is not None and self.storage.kind == "ff"

    @property
    def is_latch(self) -> bool:
        """It is transparent at a level of its clock."""
        return self.storage is not None and self.storage.kind == "latch"

    @property
    def inputs(self) -> tuple[Pin, ...]:
        return tuple(pin for pin in self.pins.values() if pin.direction == "input")

    @property
    def outputs(self) -> tuple[Pin, ...]:
        return tuple(pin for pin in self.pins.values() if pin.direction == "output")


@dataclass(frozen=True, kw_only=True)
class CellLibrary:
    """The cells of a Liberty file, by name.

    digest: SHA-256 of its text. voltage_v: its nominal supply. node_nm: known for the libraries
    of `_NODES_NM` only, else None. slew_ns: transition time at which energies were read.
    """

    name: str
    path: Path
    digest: str
    voltage_v: float
    node_nm: float | None
    slew_ns: float
    cells: Mapping[str, Cell]


def read_library(path: Path = DEFAULT_LIBRARY, *, slew_ns: float = 0.1) -> CellLibrary:
    """Read a Liberty file; energies at input transitions of `slew_ns` (0.1 ns).

    Raises `EnergyError`, in one line, for a file that is missing, that is not Liberty, or that
    has no cells.
    """
    from liberty.parser import parse_liberty
    from liberty.tokenized import ParserError

    text = library_text(path)
    try:
        group = parse_liberty(text)
    except (ParserError, ValueError, IndexError, RecursionError) as error:
        reason = " ".join(str(error).split())[:120]
        raise EnergyError(f"{path} is not a Liberty library: {reason}") from None
    where = f"{path} is not a Liberty library"
    require(group.group_name == "library", f"{where}: it begins with {group.group_name!r}")
    require(bool(group.get_groups("cell")), f"{where}: it has no cells")
    try:
        units = Units.of(group, slew_ns)
        cells = [_cell(cell, units) for cell in group.get_groups("cell")]
        voltage = _voltage(group)
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise EnergyError(f"{where}: {error}") from None
    name = str(group.args[0]).strip('"') if group.args else path.name
    return CellLibrary(
        name=name,
        path=path,
        digest=hashlib.sha256(text.encode()).hexdigest(),
        voltage_v=voltage,
        node_nm=next((nm for start, nm in _NODES_NM.items() if name.startswith(start)), None),
        slew_ns=slew_ns,
        cells={cell.name: cell for cell in cells},
    )


def library_text(path: Path) -> str:
    """A Liberty file's text, unpacked. Raises `EnergyError` if it cannot be had."""
    hint = ""
    if str(path).startswith("/usr/share/qflow/tech/"):
        library = path.parent.name
        hint = f"; it comes with Debian's package: apt-get install qflow-tech-{library}"
    if not path.is_file():
        raise EnergyError(f"no Liberty library at {path}{hint}")
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            data = (gzip.GzipFile(fileobj=file) if packed else file).read(MOST_BYTES + 1)
        require(len(data) <= MOST_BYTES, f"{path} must be at most {MOST_BYTES:,} bytes, unpacked")
        return data.decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise EnergyError(f"{path} is not a Liberty library: {error}") from None


def _value(group: Any, name: str) -> str | None:
    """An attribute as text, unquoted; None if the group lacks it."""
    found = group.get_attributes(name)
    return str(found[0]).strip('"').strip() if found else None


def _flag(group: Any, name: str) -> bool:
    return (_value(group, name) or "false").lower() == "true"


def _number(group: Any, name: str, default: float | None = None) -> float:
    """A number that is not negative, `default` if it is not stated."""
    text = _value(group, name)
    owner = f"{group.group_name} {' '.join(str(arg) for arg in group.args)}".replace('"', "")
    if text is None:
        if default is None:
            raise ValueError(f"{owner} has no {name}")
        return default
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{name} of {owner} is not a number: {text!r}") from None
    if not 0 <= number < float("inf"):
        raise ValueError(f"{name} of {owner} must not be negative: {text}")
    return number


def _voltage(library: Any) -> float:
    """Nominal supply in V: the library's own, or its first operating conditions'."""
    unit = _value(library, "voltage_unit") or "1V"
    match = re.fullmatch(r"(\d*\.?\d*)(m?)V", unit)
    if match is None:
        raise ValueError(f"voltage_unit {unit!r} is not understood")
    scale = float(match[1] or 1) * (1e-3 if match[2] else 1)
    for group in (library, *library.get_groups("operating_conditions")):
        for name in ("nom_voltage", "voltage"):
            if _value(group, name) is not None:
                return _number(group, name) * scale
    raise ValueError("it states no voltage")


def _cell(group: Any, units: Units) -> Cell:
    name = str(group.args[0]).strip('"')
    leakage = None
    if _value(group, "cell_leakage_power") is not None:
        leakage = _number(group, "cell_leakage_power") * units.leakage_mw
    pins = [_pin(pin, units) for pin in group.get_groups("pin")]
    return Cell(
        name=name,
        area=_number(group, "area", 0.0),
        leakage_mw=leakage,
        dont_use=any(_flag(group, name) for name in _SPECIAL)
        or _value(group, "clock_gating_integrated_cell") is not None,
        storage=_storage(group),
        pins={pin.name: pin for pin in pins},
    )


def _storage(group: Any) -> Storage | None:
    for kind, data, clock in (("ff", "next_state", "clocked_on"), ("latch", "data_in", "enable")):
        for state in group.get_groups(kind):
            names = [str(arg).strip('"') for arg in state.args]
            return Storage(
                kind=kind,
                variables=(names[0], names[1]),
                data=_value(state, data) or "",
                clock=_value(state, clock) or "",
                clear=_value(state, "clear"),
                preset=_value(state, "preset"),
            )
    return None


def _pin(group: Any, units: Units) -> Pin:
    return Pin(
        name=str(group.args[0]).strip('"'),
        direction=_value(group, "direction") or "input",
        capacitance_pf=_number(group, "capacitance", 0.0) * units.capacitance_pf,
        function=_value(group, "function"),
        three_state=_value(group, "three_state"),
        is_clock=_flag(group, "clock"),
        energy=internal_energy(group, units),
    )
