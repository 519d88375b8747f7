"""Sources of prices that packages add to those of `energy_models.sources`.

An entry of the group `archsim.price_sources` is called as the prefix by which technologies name it,
"csv" for "csv:figures.csv", and names a function of (what stands behind the colon, the folder of
the technology's file) that gives an `energy_models.estimator.Estimator`, or raises `EnergyError`.
`archsim.energy` lets technologies have them; `energy_models` by itself knows no plug-ins.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from math import inf
from pathlib import Path
from typing import Any

from archsim.errors import InputError
from archsim.plugins import lacking, needed, no_call, others, package_of, used
from energy_models.component import Component
from energy_models.errors import EnergyError
from energy_models.estimator import Estimator, Quantity
from energy_models.sources import PREFIXES, take_others

GROUP = "archsim.price_sources"

ANSWERS = ("name", "node_nm", "voltage_v", "energy_pj", "area_um2", "leakage_mw")
"""What an estimator has."""


def price_sources() -> Mapping[str, EntryPoint]:
    """The sources that packages add, by prefix, not yet loaded."""
    return others(GROUP, PREFIXES)


class _Installed:
    """As `energy_models.sources` asks for them."""

    @property
    def prefixes(self) -> tuple[str, ...]:
        return tuple(price_sources())

    def open(self, prefix: str, name: str, folder: Path) -> Estimator:
        """Raises `EnergyError`, with package and entry where a plug-in is broken."""
        entry = price_sources()[prefix]
        where = f"source '{prefix}:{name}' of package {package_of(entry)}"
        try:
            with used(where, EnergyError, EnergyError, InputError):
                found = needed(entry, no_call)(name, folder)
        except InputError as error:
            raise EnergyError(str(error)) from error
        if why := lacking(found, ANSWERS):
            raise EnergyError(f"{where} gives no estimator: {why}")
        return _Checked(found, where)


class _Checked:
    """An estimator of a package, whose figures are figures."""

    def __init__(self, estimator: Any, where: str) -> None:
        """where: the source, and the package that it is from."""
        self._estimator, self._where = estimator, where
        self.name, self.unit = str(estimator.name), getattr(estimator, "unit", "pJ")
        for size in ("node_nm", "voltage_v"):
            if not _above(getattr(estimator, size), 0):
                raise EnergyError(f"{where}: {size} must be a positive number")
        self.node_nm, self.voltage_v = float(estimator.node_nm), float(estimator.voltage_v)

    def energy_pj(self, component: Component, action: str) -> Quantity:
        """As of the estimator."""
        return self._asked("energy_pj", component, action)

    def area_um2(self, component: Component) -> Quantity:
        """Likewise."""
        return self._asked("area_um2", component)

    def leakage_mw(self, component: Component) -> Quantity:
        """Likewise."""
        return self._asked("leakage_mw", component)

    def _asked(self, what: str, component: Component, *action: str) -> Quantity:
        """Raises `EnergyError` for what it raises, and for what is no figure."""
        of = f"{self._where}: {what} of {' '.join([component.kind, *action])}"
        with used(of, EnergyError, EnergyError):
            found = getattr(self._estimator, what)(component, *action)
        if not isinstance(found, Quantity):
            raise EnergyError(f"{of} must be a Quantity, not {type(found).__name__}")
        if not (_above(found.value, 0) or found.value == 0):
            raise EnergyError(f"{of} must be a number from 0 on, not {found.value!r}")
        return found


def _above(value: Any, least: float) -> bool:
    """Whether it is a finite number, and above."""
    return isinstance(value, int | float) and least < value < inf


def use_installed() -> None:
    """Let technologies have the sources of installed packages."""
    take_others(_Installed())


__all__ = ["GROUP", "price_sources", "use_installed"]
