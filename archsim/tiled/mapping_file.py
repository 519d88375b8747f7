"""Mappings as a TOML file: a table a layer, with the fields of `Tiling`; read and written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any, cast

from archsim.errors import InputError, nearest, require
from archsim.layer.problem import Tiling
from archsim.machine.option import Option
from energy_models.reading import load_toml


def load_mappings(path: str | Path) -> dict[str, Tiling]:
    """Mappings by layer name.  Raises `InputError` for what is no such file."""
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


MAPPINGS = Option(
    name="mappings",
    says="how layers are mapped, by name",
    more="([conv1] pixel_rows, pixel_columns, filters, channels, and order, images and groups "
    "(side by side) where they are not pixels_outer, 1 and 1); `archsim show mapping` writes one",
    word="--mapping",
    value="FILE.toml",
    read=load_mappings,
)
"""Of cores that are walked by tiles."""


def mappings_toml(mappings: Mapping[str, Tiling]) -> str:
    """What `load_mappings` reads."""
    import tomli_w

    return tomli_w.dumps({layer: asdict(tiling) for layer, tiling in mappings.items()})


__all__ = ["MAPPINGS", "load_mappings", "mappings_toml"]
