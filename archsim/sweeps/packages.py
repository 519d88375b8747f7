"""Installed packages that a space computes with, besides archsim: their machines, memories,
objectives, technologies, price sources and importers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from archsim.errors import InputError
from archsim.importers import importers
from archsim.objectives import objective_entries
from archsim.plugins import OURS, package_names, package_of
from archsim.price_sources import price_sources
from archsim.sweeps.prices import Prices
from archsim.sweeps.space import Space
from archsim.technologies import technology_entries

Packages = dict[str, str]
"""Versions by name."""


def packages_of(space: Space) -> Packages:
    """Those that a space computes with."""
    known = package_names()
    modules = {
        module.partition(".")[0]
        for machine in space.machines
        for variant in machine.variants
        for module in _modules(variant.base)
    }
    found = {known[module] for module in modules if module in known}
    found |= {package_of(objective_entries()[name]) for name in space.measured}
    found |= set(_of_prices(space))
    endings = {Path(one).suffix[1:] for one in space.networks if isinstance(one, str)}
    found |= {package_of(entry) for name, entry in importers().items() if name in endings}
    return versions(found - {OURS})


def _modules(part: Any) -> Iterator[str]:
    """Of a design's class and of all records in it."""
    yield type(part).__module__
    for entry in fields(part):
        value = getattr(part, entry.name)
        if is_dataclass(value):
            yield from _modules(value)


def _of_prices(space: Space) -> Iterator[str]:
    entries, sources = technology_entries(), price_sources()
    prices = Prices(space)
    for name, _ in prices.supplies:
        if name in entries:
            yield package_of(entries[name])
    for technology in prices.check():
        for chosen in technology.sources.values():
            for source in chosen.values():
                prefix = source.partition(":")[0]
                if prefix in sources:
                    yield package_of(sources[prefix])


def versions(names: Iterable[str]) -> Packages:
    """The versions that are installed here; "" of a package that is not."""
    found: Packages = {}
    for name in sorted(names):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return found


def told(packages: Mapping[str, str]) -> str:
    """Names and versions: "own-parts 0.1"."""
    return ", ".join(f"{name} {said}" if said else f"no {name}" for name, said in packages.items())


def require_packages(wanted: Mapping[str, str], where: str) -> None:
    """Raise `InputError` for packages that are not installed here."""
    here = versions(wanted)
    missing = {name: said for name, said in wanted.items() if not here[name]}
    if missing:
        raise InputError(
            f"{where} computes with {told(missing)}, which is not installed here; install it, or "
            "read the study where it is"
        )


__all__ = ["Packages", "packages_of", "require_packages", "told", "versions"]
