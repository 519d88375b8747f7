"""Technologies that packages add to those of `energy_models`.

An entry of the group `archsim.technologies` is called as the technology and names the path of its
TOML file (`energy_models.technology`), in which `name` says the same.  `energy_models` by itself
knows no plug-ins: whoever names a technology in archsim loads it here.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from archsim import price_sources
from archsim.errors import InputError
from archsim.plugins import loaded, needed, others
from energy_models import technology as of_files
from energy_models.errors import EnergyError
from energy_models.technology import Technology, read_technology
from energy_models.technology_files import shipped_names, take_others

GROUP = "archsim.technologies"


def technology_entries() -> Mapping[str, EntryPoint]:
    """The technologies that packages add, by name, not yet read."""
    return others(GROUP, shipped_names())


def installed_technologies() -> dict[str, Technology]:
    """The same, read; broken ones left out, with a warning."""
    found = {name: loaded(one, _check(name)) for name, one in technology_entries().items()}
    return {name: read_technology(Path(path)) for name, path in found.items() if path is not None}


def _check(name: str) -> Any:
    """Says why what an entry names is no technology of that name."""

    def why_not(found: Any) -> str:
        if not isinstance(found, str | Path):
            return f"it must be the path of a TOML file, not {type(found).__name__}"
        try:
            said = read_technology(Path(found)).name
        except EnergyError as error:
            return str(error)
        return "" if said == name else f"its file says that it is {said!r}"

    return why_not


class _Installed:
    """As `energy_models.technology_files` asks for them."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(technology_entries())

    def path(self, name: str) -> Path:
        """Raises `EnergyError`, with package and entry where a plug-in is broken."""
        try:
            return Path(needed(technology_entries()[name], _check(name)))
        except InputError as error:
            raise EnergyError(str(error)) from error


def use_installed() -> None:
    """Let the technologies and the sources of prices of installed packages be named."""
    take_others(_Installed())
    price_sources.use_installed()


def load_technology(
    name_or_path: str, *, voltage_v: float | None = None, sram_relative_voltage: float = 1.0
) -> Technology:
    """As `energy_models.technology.load_technology`, those of installed packages among them."""
    use_installed()
    return of_files.load_technology(
        name_or_path, voltage_v=voltage_v, sram_relative_voltage=sram_relative_voltage
    )


__all__ = [
    "GROUP",
    "installed_technologies",
    "load_technology",
    "technology_entries",
    "use_installed",
]
