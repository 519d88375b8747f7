"""Records from plain data, as a TOML file has it: every key and type is looked at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, Field, fields
from typing import Any, cast

from archsim.errors import InputError, nearest

IMPLIED = "implied"
"""Of a field's metadata: it is not written where it has its default."""

FLOAT_LIMIT = 1e300
"""Above it a number is as good as infinite, which no design can be built with."""


def default_of(entry: Field[Any]) -> Any:
    """Of a field of a dataclass; MISSING where it has none."""
    if entry.default is MISSING and entry.default_factory is not MISSING:
        return entry.default_factory()
    return entry.default


def is_left_out(entry: Field[Any], value: Any) -> bool:
    """Whether plain data need not say it: it is the default of a field that is `IMPLIED`."""
    return bool(entry.metadata.get(IMPLIED)) and value == default_of(entry)


def check_table(where: str, name: str, value: Any) -> dict[str, Any]:
    """A copy of the table that stands under a name.  Raises `InputError` for anything else."""
    if not isinstance(value, dict):
        raise InputError(f"{where}: {name} must be a table, not {value!r}")
    return dict(cast("dict[str, Any]", value))


def check_keys(where: str, given: Iterable[str], known: list[str]) -> None:
    """Raise `InputError` for a key that is not known."""
    for key in given:
        if key not in known:
            raise InputError(f"{where} has no {key!r}; {nearest(key, known)}")


def build(where: str, kind: type, values: dict[str, Any]) -> Any:
    """Make the record; a missing, wrongly typed or refused value is the user's error."""
    for entry in fields(kind):
        if entry.name in values:
            _check_type(where, entry.name, str(entry.type), values[entry.name])
        elif entry.default is MISSING and entry.default_factory is MISSING:
            raise InputError(f"{where}: {entry.name} is missing")
    try:
        return kind(**values)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _check_type(where: str, name: str, wanted: str, value: Any) -> None:
    if value is None and wanted.endswith("| None"):
        return
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if wanted == "int" and not (number and isinstance(value, int)):
        raise InputError(f"{where}: {name} must be a whole number, not {value!r}")
    finite = number and -FLOAT_LIMIT <= cast("float", value) <= FLOAT_LIMIT
    if wanted.startswith("float") and not finite:
        raise InputError(f"{where}: {name} must be a number, not {value!r}")
    if wanted == "bool" and not isinstance(value, bool):
        raise InputError(f"{where}: {name} must be true or false, not {value!r}")


__all__ = ["FLOAT_LIMIT", "build", "check_keys", "check_table"]
