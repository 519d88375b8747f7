"""Sources of prices that packages add to those of `energy_models.sources`.

An entry of the group `archsim.price_sources` is called as the prefix by which technologies name it,
"csv" for "csv:figures.csv", and names a function of (what stands behind the colon, the folder of
the technology's file) that gives an `energy_models.estimator.Estimator`, or raises `EnergyError`.
`archsim.energy` lets technologies have them; `energy_models` by itself knows no plug-ins.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path

from archsim.errors import InputError
from archsim.plugins import lacking, needed, no_call, others, package_of
from energy_models.errors import EnergyError
from energy_models.estimator import Estimator
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
            found = needed(entry, no_call)(name, folder)
        except EnergyError:
            raise
        except InputError as error:
            raise EnergyError(str(error)) from error
        except Exception as error:
            raise EnergyError(f"{where} failed: {type(error).__name__}: {error}") from error
        if why := lacking(found, ANSWERS):
            raise EnergyError(f"{where} gives no estimator: {why}")
        return found


def use_installed() -> None:
    """Let technologies have the sources of installed packages."""
    take_others(_Installed())


__all__ = ["GROUP", "price_sources", "use_installed"]
