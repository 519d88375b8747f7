"""From a source's name in a technology to the estimator behind it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from energy_models.errors import EnergyError, nearest
from energy_models.estimator import Estimator

ABSENT = "none:"

PREFIXES = ("table", "synthesis", "cacti", "dram")


def open_source(spec: str, folder: Path) -> Estimator:
    """The estimator that a source like "table:horowitz-2014" names.

    A name that ends in .toml is a file; a relative one lies in `folder`.
    Raises `EnergyError` for an unknown prefix, name or file.
    """
    prefix, colon, name = spec.partition(":")
    if not colon or prefix not in PREFIXES:
        raise EnergyError(
            f"no source {spec!r}: it must begin with {', '.join(f'{one}:' for one in PREFIXES)} "
            f"or {ABSENT}; {nearest(prefix, PREFIXES)}"
        )
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
    if not (name.isascii() and name.isdigit()):
        raise EnergyError(f"source 'cacti:{name}': the node must be a whole number of nanometres")
    return int(name)
