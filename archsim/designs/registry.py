"""Designs by name, and as TOML: what `archsim list`, `show` and `--set` stand on.

Names come from the entry-point group `archsim.designs`, so that other packages add theirs: each
entry is a design (a frozen dataclass with a `kind`).
"""

from __future__ import annotations

import tomllib
from dataclasses import MISSING, Field, asdict, fields
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

from archsim.compressed_memory import Boveda
from archsim.core.core_design import CoreDesign
from archsim.core.design import Design
from archsim.designs.systolic import Systolic
from archsim.errors import InputError, nearest
from archsim.memory import OffChip, Plain
from archsim.stream_memory import BovedaStream, PlainStream

_PARTS: dict[str, dict[str, type]] = {
    "Scratchpad": {"plain": Plain, "boveda": Boveda},
    "StreamMemory": {"plain": PlainStream, "boveda": BovedaStream},
    "OffChip": {"": OffChip},
}
"""Types of fields that are records of their own, and the kinds that may stand there."""

FLOAT_LIMIT = 1e300
"""Above it a number is as good as infinite, which no design can be built with."""


@cache
def registered() -> dict[str, Design]:
    """All named designs."""
    found = sorted(entry_points(group="archsim.designs"), key=lambda entry: entry.name)
    return {entry.name: entry.load() for entry in found}


def _kinds() -> dict[str, type[Design]]:
    return {"systolic": Systolic, **{one.kind: type(one) for one in registered().values()}}


def _fields(kind: type[Any]) -> list[Field[Any]]:
    """The fields of a kind of design: its own first, then those of every core."""
    shared = [entry.name for entry in fields(CoreDesign)]
    return sorted(fields(kind), key=lambda entry: entry.name in shared)


def design_record(design: Design) -> dict[str, Any]:
    """A design as nested plain data, complete; the inverse of `design_from_record`."""
    record: dict[str, Any] = {"kind": design.kind}
    for entry in _fields(type(design)):
        value = getattr(design, entry.name)
        if str(entry.type) in _PARTS:
            kinds = {one: name for name, one in _PARTS[str(entry.type)].items()}
            inner = {key: item for key, item in asdict(value).items() if item is not None}
            name = kinds[type(value)]
            value = {"kind": name, **inner} if name else inner
        record[entry.name] = value
    return record


def _check_keys(where: str, given: dict[str, Any], known: list[str]) -> None:
    for key in given:
        if key not in known:
            raise InputError(f"{where} has no {key!r}; {nearest(key, known)}")


def _part(where: str, entry: Field[Any], value: Any) -> Any:
    """One nested record of a design."""
    name = entry.name
    if not isinstance(value, dict):
        raise InputError(f"{where}: {name} must be a table, not {value!r}")
    given = dict(cast("dict[str, Any]", value))
    kinds = _PARTS[str(entry.type)]
    kind = "" if "" in kinds else given.pop("kind", "plain")
    if not isinstance(kind, str) or kind not in kinds:
        raise InputError(f"{where}: {name} has no kind {kind!r}; {nearest(str(kind), kinds)}")
    known = [entry.name for entry in fields(kinds[kind])]
    _check_keys(f"{where}: {name}", given, known)
    return _build(f"{where}: {name}", kinds[kind], given)


def _build(where: str, kind: type, values: dict[str, Any]) -> Any:
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


def design_from_record(record: dict[str, Any], where: str) -> Design:
    """A design from nested plain data.  Unknown keys are refused, missing ones keep defaults."""
    given = dict(record)
    kind = given.pop("kind", "systolic")
    kinds = _kinds()
    if not isinstance(kind, str) or kind not in kinds:
        raise InputError(f"{where}: no design kind {kind!r}; {nearest(str(kind), kinds)}")
    known = _fields(kinds[kind])
    _check_keys(where, given, [entry.name for entry in known])
    parts = {
        entry.name: _part(where, entry, given[entry.name])
        for entry in known
        if str(entry.type) in _PARTS and entry.name in given
    }
    return _build(where, kinds[kind], {**given, **parts})


def load_design(name_or_path: str) -> Design:
    """A registered design, or the one in a TOML file."""
    if name_or_path in registered():
        return registered()[name_or_path]
    path = Path(name_or_path)
    if not (path.suffix == ".toml" or path.exists()):
        raise InputError(
            f"no design {name_or_path!r}; {nearest(name_or_path, registered())} "
            f"(or give a TOML file; `archsim show edge-16` prints one to start from)"
        )
    try:
        with path.open("rb") as file:
            return design_from_record(tomllib.load(file), str(path))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a TOML file: {error}") from error


def require_core(design: Design, verb: str) -> CoreDesign:
    """The design, if it is a core which is walked by tiles; else `InputError`."""
    if not isinstance(design, CoreDesign):
        raise InputError(f"archsim {verb} does not know designs of kind {design.kind} yet")
    return design


def with_settings(design: Design, settings: list[str]) -> Design:
    """A design with `key=value` settings, dots reaching into records (off_chip.burst_bytes=32).

    A new `kind` of a memory (ifmap_memory.kind=boveda) keeps what both kinds have.
    """
    record = design_record(design)
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise InputError(f"a setting is key=value, not {setting!r}")
        *path, last = key.strip().split(".")
        inner: Any = record
        for step in path:
            inner = cast("dict[str, Any]", inner).get(step) if isinstance(inner, dict) else None
        if not isinstance(inner, dict):
            raise InputError(f"the design has no {key!r}; {nearest(key, record)}")
        table, value = cast("dict[str, Any]", inner), _value(text.strip())
        if last == "kind" and path:
            _change_kind(table, value)
        table[last] = value
    return design_from_record(record, "the design")


def _change_kind(table: dict[str, Any], kind: Any) -> None:
    """Drop from a part's table what a part of that kind does not have."""
    known = [part for kinds in _PARTS.values() for name, part in kinds.items() if name == kind]
    names = [entry.name for part in known for entry in fields(part)]
    for key in [key for key in table if known and key not in names]:
        del table[key]


def _value(text: str) -> Any:
    """A TOML value; a bare word is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def design_name(design: Design) -> str:
    """The registered name of a design, or its kind and size."""
    for name, known in registered().items():
        if known == design:
            return name
    return f"{design.kind}-{design.size}"


def design_toml(design: Design) -> str:
    """The complete TOML of a design."""
    import tomli_w

    return tomli_w.dumps(design_record(design))


__all__ = [
    "design_from_record",
    "design_name",
    "design_record",
    "design_toml",
    "load_design",
    "registered",
    "require_core",
    "with_settings",
]
