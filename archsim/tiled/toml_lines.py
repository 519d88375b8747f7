"""The lines of a TOML file on which its tables and their keys stand, for messages."""

from __future__ import annotations

import tomllib
from typing import Any, cast

Lines = dict[tuple[str, ...], int]
"""By names, from the outermost table's on; the first line is 1."""


def lines_of(text: str) -> Lines:
    """Of text that is TOML; a value of several lines stands on its first one, or is left out."""
    found: Lines = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), start=1):
        if "=" not in line and "[" not in line:
            continue
        try:
            said: dict[str, Any] = tomllib.loads(line.rstrip("\r"))
        except (ValueError, RecursionError):
            continue
        if line.lstrip().startswith("["):
            table = _header(said)
            found.setdefault(table, number)
        else:
            _note(found, table, said, number)
    return found


def _header(said: dict[str, Any]) -> tuple[str, ...]:
    """The names of a table's header, which holds nothing else."""
    names: list[str] = []
    while said:
        name = next(iter(said))
        names.append(name)
        inner: Any = said[name]
        said = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
    return tuple(names)


def _note(found: Lines, table: tuple[str, ...], said: dict[str, Any], number: int) -> None:
    """Note the keys that a line says, those of tables within it too."""
    for name, value in said.items():
        names = (*table, name)
        found.setdefault(names, number)
        if isinstance(value, dict):
            _note(found, names, cast("dict[str, Any]", value), number)


__all__ = ["Lines", "lines_of"]
