"""Tilings by layer from a TOML file: a table a layer, with the fields of `Tiling`."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, cast

from archsim.errors import InputError, nearest, require
from archsim.layer.problem import Tiling
from archsim.machine.option import Option
from energy_models.reading import load_toml


def load_tilings(path: str | Path) -> dict[str, Tiling]:
    """Tilings by layer name.  Raises `InputError` for what is no such file."""
    tables = load_toml(Path(path), InputError)
    return {layer: _tiling(f"{path}: [{layer}]", table) for layer, table in tables.items()}


def _tiling(where: str, table: Any) -> Tiling:
    names = [entry.name for entry in fields(Tiling)]
    needed = [entry.name for entry in fields(Tiling) if entry.default is MISSING]
    if not isinstance(table, dict):
        raise InputError(f"{where} must be a table of {', '.join(names)}")
    given = cast("dict[str, Any]", table)
    for name in given:
        require(name in names, f"{where} has no {name!r}; {nearest(name, names)}")
    for name in needed:
        require(name in given, f"{where}: {name} is missing")
    try:
        return Tiling(**given)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


TILINGS = Option(
    name="tilings",
    says="how layers are cut, by name",
    more="([conv1] pixel_rows, pixel_columns, filters, channels, and order, images and groups "
    "(side by side) where they are not pixels_outer, 1 and 1)",
    word="--tiling",
    value="FILE.toml",
    read=load_tilings,
)
"""Of cores that are walked by tiles."""

__all__ = ["TILINGS", "load_tilings"]
