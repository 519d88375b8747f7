"""From a source's name in a technology to the estimator behind it."""

from __future__ import annotations

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
    path = folder / name if name.endswith(".toml") else name
    if prefix == "table":
        from energy_models.published import TableEstimator
        from energy_models.table import load_table

        return TableEstimator(load_table(path))
    if prefix == "synthesis":
        from energy_models.logic import LogicEstimator

        return LogicEstimator(path)
    if prefix == "cacti":
        from energy_models.sram import SramEstimator

        return SramEstimator(node_nm=_node(spec, name))
    from energy_models.published import DramEstimator

    return DramEstimator(name)


def _node(spec: str, name: str) -> int:
    if not (name.isascii() and name.isdigit()):
        raise EnergyError(f"source {spec!r}: the node must be a whole number of nanometres")
    return int(name)
