"""From a source's name in a technology to the estimator behind it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Protocol

from energy_models.errors import EnergyError, nearest
from energy_models.estimator import Estimator

ABSENT = "none:"

PREFIXES = {
    "table": "a published table",
    "synthesis": "coefficients measured by synthesis",
    "cacti": "SRAMs of CACTI, interpolated",
    "dram": "energy of a bit at an off-chip interface",
}
"""What a source may begin with, and what it is then."""


class Others(Protocol):
    """Sources of other packages."""

    @property
    def prefixes(self) -> tuple[str, ...]:
        """By which technologies name them; none of `PREFIXES`."""
        ...

    def open(self, prefix: str, name: str, folder: Path) -> Estimator:
        """The estimator of "prefix:name" in a technology of that folder.  Raises `EnergyError`."""
        ...


_others: list[Others] = []


def take_others(others: Others) -> None:
    """Let technologies name the sources of other packages too, from now on."""
    _others[:] = [others]


def _prefixes() -> Iterator[str]:
    yield from PREFIXES
    for others in _others:
        yield from others.prefixes


def open_source(spec: str, folder: Path) -> Estimator:
    """The estimator that a source like "table:horowitz-2014" names.

    A name that ends in .toml is a file; a relative one lies in `folder`.
    Raises `EnergyError` for an unknown prefix, name or file.
    """
    prefix, colon, name = spec.partition(":")
    known = list(_prefixes())
    if not colon or prefix not in known:
        raise EnergyError(
            f"no source {spec!r}: it must begin with {', '.join(f'{one}:' for one in known)} "
            f"or {ABSENT}; {nearest(prefix, known)}"
        )
    if prefix not in PREFIXES:
        return _others[0].open(prefix, name, folder)
    if name.endswith(".toml"):
        return _open(prefix, folder / name)
    return _shipped(prefix, name)


@cache
def _shipped(prefix: str, name: str) -> Estimator:
    """A source in the package is read once; a user's file may change."""
    return _open(prefix, name)


def forget_sources() -> None:
    """Read the package's sources anew when they are next asked for."""
    _shipped.cache_clear()


def _open(prefix: str, name: str | Path) -> Estimator:
    if prefix == "table":
        from energy_models.published import TableEstimator
        from energy_models.table import load_table

        return TableEstimator(load_table(name))
    if prefix == "synthesis":
        from energy_models.logic import LogicEstimator

        return LogicEstimator(name)
    if prefix == "cacti":
        from energy_models.sram import SramEstimator

        node, colon, cell = str(name).partition(":")
        if colon:
            return SramEstimator(node_nm=_node(node), cell=cell)
        return SramEstimator(node_nm=_node(node))
    from energy_models.published import DramEstimator

    return DramEstimator(str(name))


def _node(name: str) -> int:
    if not (name.isascii() and name.isdigit() and len(name) < 20):
        raise EnergyError(
            f"source 'cacti:{name[:60]}': the node must be a whole number of nanometres"
        )
    return int(name)
