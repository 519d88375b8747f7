"""Mappings as a TOML file: a table a layer, with the fields of `Tiling`; read and written."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any, cast

from archsim.errors import InputError, nearest
from archsim.layer.problem import Tiling
from archsim.machine.option import Option
from archsim.tiled.block_check import MappingError
from archsim.tiled.toml_lines import lines_of
from energy_models.reading import load_toml_text, read_text


class FileMappings(dict[str, Tiling]):
    """Mappings of a file, by layer name, and its text, by which messages say where they stand.

    table: of all of them, where the name in the file is another.
    """

    def __init__(self, path: str, text: str, table: str | None = None) -> None:
        super().__init__()
        self.path, self.text, self.table = path, text, table

    def place(self, *names: str) -> str:
        """Where a layer's table, or a key of it, stands."""
        lines = lines_of(self.text)
        names = names if self.table is None else (self.table, *names[1:])
        while names not in lines and names:
            names = names[:-1]
        return f"{self.path}: line {lines[names]}" if names else self.path


def place_of(mappings: Mapping[str, Tiling], layer: str) -> str | None:
    """Where the mapping of a layer stands, if it is of a file."""
    return mappings.place(layer) if isinstance(mappings, FileMappings) else None


def mapping_of_step(mappings: Mapping[str, Tiling], layer: str, step: str) -> Mapping[str, Tiling]:
    """A layer's mapping, which it has, as that of a step of it."""
    if not isinstance(mappings, FileMappings):
        return {step: mappings[layer]}
    found = FileMappings(mappings.path, mappings.text, layer)
    found[step] = mappings[layer]
    return found


@contextmanager
def told_where(mappings: Mapping[str, Tiling], layer: str) -> Generator[None]:
    """An illegal mapping of a layer is refused with its line, where it is of a file."""
    try:
        yield
    except MappingError as error:
        place = place_of(mappings, layer)
        if place is None:
            raise
        raise InputError(f"{place}: {error}") from error


def load_mappings(path: str | Path) -> FileMappings:
    """Mappings by layer name.  Raises `InputError` for what is no such file."""
    text = read_text(Path(path), InputError, what="a TOML file")
    found = FileMappings(str(path), text)
    for layer, table in load_toml_text(text, str(path), InputError).items():
        found[layer] = _tiling(found, layer, table)
    return found


def _tiling(file: FileMappings, layer: str, table: Any) -> Tiling:
    """The mapping in a table."""
    names = [entry.name for entry in fields(Tiling)]
    needed = [entry.name for entry in fields(Tiling) if entry.default is MISSING]
    if not isinstance(table, dict):
        raise InputError(f"{file.place(layer)}: [{layer}] must be a table of {', '.join(names)}")
    given = cast("dict[str, Any]", table)
    for name in given:
        if name not in names:
            place = file.place(layer, name)
            raise InputError(f"{place}: [{layer}] has no {name!r}; {nearest(name, names)}")
    for name in needed:
        if name not in given:
            raise InputError(f"{file.place(layer)}: [{layer}]: {name} is missing")
    try:
        return Tiling(**given)
    except InputError as error:
        place = file.place(layer, str(error).partition(" ")[0])
        raise InputError(f"{place}: [{layer}]: {error}") from error


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


__all__ = [
    "MAPPINGS",
    "FileMappings",
    "load_mappings",
    "mapping_of_step",
    "mappings_toml",
    "place_of",
    "told_where",
]
