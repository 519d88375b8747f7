"""A technology: which source says what an action, an area or a leakage is, at one node and voltage.

A TOML file with `name`, `title`, `node_nm`, `voltage_v`, optional `unit` ("pJ", or "MAC" for
relative costs), and the tables `[energy]`, `[area]`, `[leakage]`.  Each maps a component kind, an
action of one ("register.clock"), or "default", to a source:

"table:NAME"      a published table (`energy_models.published`); NAME may be a TOML file
"synthesis:NAME"  coefficients measured by synthesis (`energy_models.logic`); likewise
"cacti:NODE"      the SRAM grid of that node (`energy_models.sram`); "cacti:45:itrs-hp": other cells
"dram:INTERFACE"  energy per bit of an off-chip interface
"none: REASON"    nobody has said: it is left out, and the reason is shown

Installed packages may add sources (`archsim.price_sources`) and technologies
(`archsim.technologies`).

A source of another node or voltage is scaled (`energy_models.scaling`), and says so.

A memory ("sram") is priced by its source, or as registers (`energy_models.register_file`) by the
sources of "register" and "mux" where these are less: each figure is the lower of the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

from energy_models.component import KINDS, Component
from energy_models.errors import EnergyError, nearest, require, require_known
from energy_models.estimator import Estimator, Quantity
from energy_models.frozen import frozen
from energy_models.reading import load_toml
from energy_models.register_file import register_file, register_file_value
from energy_models.scaling import scale
from energy_models.sources import ABSENT, open_source
from energy_models.technology_files import FOLDER, file_of, named_file, shipped_names
from energy_models.voltage import sram_energy_factor

QUANTITIES = ("energy", "area", "leakage")

What = Literal["energy", "area", "leakage"]


LARGEST_NM = 10_000
HIGHEST_V = 100
"""Beyond any technology: the first integrated circuits."""


@dataclass(frozen=True, kw_only=True)
class Technology:
    """Figures for components at one node and supply voltage, each with its source.

    unit: of dynamic energies, "pJ" or, where a table is relative, "MAC".
    sources: for each quantity, kind (or "default") → source, as in the file.
    sram_relative_voltage: supply of the SRAMs over their minimum voltage, below 1 for arrays that
    run with bit errors; dynamic energy follows `energy_models.voltage`.
    """

    name: str
    title: str
    node_nm: float
    voltage_v: float
    unit: str = "pJ"
    sources: Mapping[str, Mapping[str, str]]
    folder: Path = FOLDER
    sram_relative_voltage: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", frozen(self.sources))
        for what, value, most in (
            ("node_nm", self.node_nm, LARGEST_NM),
            ("voltage_v", self.voltage_v, HIGHEST_V),
        ):
            require(value > 0, f"{self.name}: {what} must be positive, not {value}")
            require(value <= most, f"{self.name}: {what} must be at most {most}, not {value:g}")
        require(
            self.unit in ("pJ", "MAC"), f"{self.name}: unit must be pJ or MAC, not {self.unit!r}"
        )
        for quantity, chosen in self.sources.items():
            for key in chosen:
                kind, _, action = key.partition(".")
                require(
                    key == "default" or kind in KINDS,
                    f"{self.name}: [{quantity}] has no kind {kind!r}; {nearest(kind, KINDS)}",
                )
                require(
                    not action or (quantity == "energy" and action in KINDS[kind][1]),
                    f"{self.name}: [{quantity}] has no {key!r}: a {kind} does not {action!r}",
                )
        sram_energy_factor(self.sram_relative_voltage)

    def check(self) -> None:
        """Open every source.  Raises `EnergyError` for one that is unknown or of another unit."""
        for spec, estimator in self._estimators.items():
            unit = getattr(estimator, "unit", "pJ")
            priced = spec in self.sources.get("energy", {}).values()
            require(
                not priced or unit == self.unit,
                f"technology {self.name} is in {self.unit}, but {spec} gives energies in {unit}",
            )

    @cached_property
    def _estimators(self) -> dict[str, Estimator]:
        specs = {spec for chosen in self.sources.values() for spec in chosen.values()}
        opened = sorted(spec for spec in specs if not spec.startswith(ABSENT))
        return {spec: open_source(spec, self.folder) for spec in opened}

    @cached_property
    def _bits(self) -> dict[tuple[str, str, str], Quantity | None]:
        """Figures of the parts of `register_file`, by quantity, kind and event, once found."""
        return {}

    def source(self, what: What, kind: str, action: str = "") -> str:
        """The source of a quantity for a kind (and action): "table:horowitz-2014".

        Raises `EnergyError` where the technology names none.
        """
        chosen = self.sources.get(what, {})
        for key in (f"{kind}.{action}", kind, "default"):
            if key in chosen:
                return chosen[key]
        given = ", ".join(chosen) or "none at all"
        raise EnergyError(
            f"technology {self.name} names no source for the {what} of a {kind}; it has: {given}"
        )

    def energy(self, component: Component, action: str) -> Quantity | None:
        """Dynamic energy of one event, in `unit`; None where the technology has no source."""
        return self._cheaper("energy", component, action, self._energy(component, action))

    def _energy(self, component: Component, action: str) -> Quantity | None:
        """The same, of a memory as a macro."""
        spec = self.source("energy", component.kind, action)
        if spec.startswith(ABSENT):
            return None
        estimator = self._estimators[spec]
        found = estimator.energy_pj(component, action)
        if component.kind == "dram" or self.unit == "MAC":
            return found  # the interface's own supply; a ratio has no node
        found = self._scaled(found, "energy", estimator)
        relative = component.relative_voltage or self.sram_relative_voltage
        if component.kind == "sram" and relative != 1:
            found = found.times(
                sram_energy_factor(relative), f"at {relative:g} of the minimum voltage"
            )
        return found

    def area_um2(self, component: Component) -> Quantity | None:
        """Area of one piece; None where the technology has no source."""
        return self._cheaper("area", component, "", self._static("area", component))

    def leakage_mw(self, component: Component) -> Quantity | None:
        """Static power of one piece; None where the technology has no source.

        At the technology's node but another supply it is the source's own, and says so.
        """
        return self._cheaper("leakage", component, "", self._static("leakage", component))

    def _cheaper(
        self, what: What, component: Component, action: str, macro: Quantity | None
    ) -> Quantity | None:
        """What it costs, or as registers if it is a memory with a source of which that is less."""
        if component.kind != "sram" or macro is None or not self._has_logic(what):
            return macro

        def ask(part: Component, event: str) -> Quantity | None:
            key = (what, part.kind, event)
            if key not in self._bits:
                found = self._energy(part, event) if event else self._static(what, part)
                self._bits[key] = found
            return self._bits[key]

        value = register_file_value(component, action, ask)
        if value is None or value >= macro.value:
            return macro
        return register_file(component, action, ask)

    def _has_logic(self, what: What) -> bool:
        """Whether it names a source of registers and multiplexers, be it that there is none."""
        chosen = self.sources.get(what, {})
        return "default" in chosen or {"register", "mux"} <= set(chosen)

    def absence(self, what: What, kind: str, action: str = "") -> str:
        """Why there is no source for a quantity of a kind; "" where there is one."""
        spec = self.source(what, kind, action)
        return spec.removeprefix(ABSENT).strip() if spec.startswith(ABSENT) else ""

    def _static(self, what: What, component: Component) -> Quantity | None:
        spec = self.source(what, component.kind)
        if spec.startswith(ABSENT):
            return None
        estimator = self._estimators[spec]
        if what == "area":
            return self._scaled(estimator.area_um2(component), what, estimator)
        leakage = estimator.leakage_mw(component)
        if estimator.node_nm == self.node_nm and estimator.voltage_v != self.voltage_v:
            return leakage.times(1, f"at {estimator.voltage_v:g} V: no method scales leakage")
        return self._scaled(leakage, what, estimator)

    def _scaled(self, found: Quantity, what: What, estimator: Estimator) -> Quantity:
        return scale(
            found,
            what,
            nodes_nm=(estimator.node_nm, self.node_nm),
            voltages_v=(estimator.voltage_v, self.voltage_v),
        )

    def record(self) -> dict[str, Any]:
        """Plain data: what is needed to price again."""
        return {
            "name": self.name,
            "title": self.title,
            "node_nm": self.node_nm,
            "voltage_v": self.voltage_v,
            "unit": self.unit,
            "sram_relative_voltage": self.sram_relative_voltage,
            **{name: dict(chosen) for name, chosen in self.sources.items()},
        }


def technology_toml(name: str) -> str:
    """The file of a technology, ready to edit.  Raises `EnergyError` for other names."""
    return named_file(name).read_text(encoding="utf-8")


def shipped_technologies() -> list[Technology]:
    """The technologies in the package, their sources not yet opened."""
    return [read_technology(FOLDER / f"{name}.toml") for name in shipped_names()]


def technologies() -> dict[str, str]:
    """The titles of the shipped technologies, by name."""
    return {one.name: one.title for one in shipped_technologies()}


def load_technology(
    name_or_path: str, *, voltage_v: float | None = None, sram_relative_voltage: float = 1.0
) -> Technology:
    """A technology by name, or the one in a TOML file, at its own or another supply voltage.

    Raises `EnergyError` for an unknown name and for a file that is not a technology.
    """
    found = read_technology(file_of(name_or_path))
    found = replace(
        found,
        voltage_v=found.voltage_v if voltage_v is None else voltage_v,
        sram_relative_voltage=sram_relative_voltage,
    )
    found.check()
    return found


def read_technology(path: Path) -> Technology:
    """The one in a TOML file, its sources not yet opened.  Raises `EnergyError`."""
    return _from_record(load_toml(path, EnergyError), path)


def _from_record(record: Mapping[str, Any], path: Path) -> Technology:
    wanted: dict[str, type | tuple[type, ...]] = {
        "name": str,
        "title": str,
        "node_nm": (int, float),
        "voltage_v": (int, float),
    }
    known = [*wanted, "unit", *QUANTITIES]
    for key in record:
        require_known(key, known, f"{path} has no {key!r}")
    for key, kind in wanted.items():
        require(key in record, f"{path}: {key} is missing")
        good = isinstance(record[key], kind) and not isinstance(record[key], bool)
        require(good, f"{path}: {key} must be a {'text' if kind is str else 'number'}")
    return Technology(
        name=record["name"],
        title=record["title"],
        node_nm=record["node_nm"],
        voltage_v=record["voltage_v"],
        unit=record.get("unit", "pJ"),
        sources={name: _chosen(path, name, record.get(name, {})) for name in QUANTITIES},
        folder=path.parent,
    )


def _chosen(path: Path, name: str, given: Any) -> dict[str, str]:
    require(isinstance(given, dict), f"{path}: [{name}] must be a table of kinds and sources")
    chosen = cast("dict[str, Any]", given)
    for kind, source in chosen.items():
        require(isinstance(source, str), f"{path}: [{name}] {kind} must be a text like 'cacti:45'")
    return chosen
