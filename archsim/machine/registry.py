"""Designs by name, and as TOML: what `archsim list`, `show` and `--set` stand on.

Names come from the entry-point group `archsim.designs`, so that other packages add theirs: each
entry is a design (a frozen dataclass with a `kind`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import Field, asdict, fields, is_dataclass
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from tomllib import TOMLDecodeError
from typing import Any, cast

from archsim.errors import InputError, nearest, require, require_clock
from archsim.machine.design import Design
from archsim.machine.option import Option
from archsim.memory.kinds import access_of, change_kind, memory_from_record, memory_record
from archsim.memory.seam import Access
from archsim.plugins import PluginWarning, loaded, needed, plugins
from archsim.records import build, check_keys, check_table, default_of, is_left_out
from energy_models.frozen import FrozenDict
from energy_models.reading import load_toml, parse_toml

DEFAULT_KIND = "systolic"
"""Of a file that names none."""

_loaded: dict[str, Design] = {}
"""Named designs whose modules were imported."""


def _entries() -> dict[str, EntryPoint]:
    """All named designs, not yet loaded."""
    return plugins("archsim.designs")


def _why_no_design(found: Any) -> str:
    """What is wrong with what an entry names; its model is made, so that no method is missing."""
    if not isinstance(found, Design):
        return f"it must be a design, not {type(found).__name__}"
    if not is_ours(found):
        from archsim.machine.model import MachineModel

        model: Any = found.machine_model()
        if not isinstance(model, MachineModel):
            return f"its machine_model() must be a MachineModel, not {type(model).__name__}"
        if why := _why_not_told(found):
            return why
    options: Any = found.options
    if not (isinstance(options, tuple) and all(isinstance(one, Option) for one in options)):  # pyright: ignore[reportUnknownVariableType]
        return f"its options must be a tuple of Option, not {options!r}"
    return ""


def _why_not_told(design: Design) -> str:
    """What is wrong with what lists tell of a design."""
    for name in ("kind", "size", "summary"):
        told: Any = getattr(design, name)
        if not (isinstance(told, str) and told.strip() and told.isprintable()):
            return f"its {name} must be a line of text, not {told!r}"
    if design.kind.split() != [design.kind]:
        return f"its kind must be a word, not {design.kind!r}"
    require_clock(design.clock_hz)
    return ""


def _load(name: str) -> Design:
    """Raises `InputError` for a broken plug-in."""
    if name not in _loaded:
        _loaded[name] = needed(_entries()[name], _why_no_design)
    return _loaded[name]


@cache
def registered_names() -> list[str]:
    """Of the registered designs, none of which is imported for it."""
    return list(_entries())


def registered() -> dict[str, Design]:
    """All named designs, but for broken ones, which are warned of."""
    for name, entry in _entries().items():
        if name not in _loaded and (found := loaded(entry, _why_no_design)) is not None:
            _loaded[name] = found
    return FrozenDict({name: _loaded[name] for name in _entries() if name in _loaded})


def _kinds() -> dict[str, type[Design]]:
    """Classes by kind; of two kinds with one name ours, or the first, and a warning."""
    found: dict[str, type[Design]] = {}
    for name, one in sorted(registered().items(), key=lambda item: not is_ours(item[1])):
        known = found.setdefault(one.kind, type(one))
        if known is not type(one):
            why = f"designs of kind {one.kind!r} are those of {known.__module__}"
            warnings.warn(f"{name} of {type(one).__module__}: {why}", PluginWarning, stacklevel=2)
    return found


def is_ours(design: Design) -> bool:
    """Whether its kind comes with archsim."""
    return type(design).__module__.startswith("archsim.")


def _fields(kind: type[Any]) -> list[Field[Any]]:
    """The fields of a kind of design: its own first, then those that it shares with others."""
    first = next(one for one in reversed(kind.__mro__) if is_dataclass(one))
    shared = [] if first is kind else [entry.name for entry in fields(first)]
    return sorted(fields(kind), key=lambda entry: entry.name in shared)


def design_record(design: Design) -> dict[str, Any]:
    """A design as nested plain data; the inverse of `design_from_record`.

    Memories of which nothing but the kind can be said are left out where they are plain.
    """
    return _record(design, complete=False)


def complete_record(design: Design) -> dict[str, Any]:
    """`design_record` with every memory, those that may be left out too."""
    return _record(design, complete=True)


def _record(design: Design, *, complete: bool) -> dict[str, Any]:
    record: dict[str, Any] = {"kind": design.kind}
    for entry in _fields(type(design)):
        value = getattr(design, entry.name)
        if is_left_out(entry, value) and not complete:
            continue
        if access_of(entry):
            value = memory_record(value, complete=complete)
        elif _is_part(entry):
            value = {key: item for key, item in asdict(value).items() if item is not None}
        record[entry.name] = value
    return record


def _part(where: str, entry: Field[Any], value: Any) -> Any:
    """One nested record of a design: a memory of some kind, or what is of one kind only."""
    access = access_of(entry)
    if access:
        return memory_from_record(where, entry.name, access, value)
    given = check_table(where, entry.name, value)
    kind = cast("type[Any]", type(default_of(entry)))
    check_keys(f"{where}: {entry.name}", given, [one.name for one in fields(kind)])
    return build(f"{where}: {entry.name}", kind, given)


@cache
def _is_part(entry: Field[Any]) -> bool:
    """Whether a field is a record of its own."""
    return is_dataclass(default_of(entry))


def design_from_record(record: dict[str, Any], where: str) -> Design:
    """A design from nested plain data.  Unknown keys are refused, missing ones keep defaults."""
    given = dict(record)
    kind = given.pop("kind", DEFAULT_KIND)
    kinds = _kinds()
    if not isinstance(kind, str) or kind not in kinds:
        raise InputError(f"{where}: no design kind {kind!r}; {nearest(str(kind), kinds)}")
    known = _fields(kinds[kind])
    check_keys(where, given, [entry.name for entry in known])
    parts = {
        entry.name: _part(where, entry, given[entry.name])
        for entry in known
        if entry.name in given and _is_part(entry)
    }
    return build(where, kinds[kind], {**given, **parts})


def load_design(name_or_path: str) -> Design:
    """A registered design, or the one in a TOML file."""
    if name_or_path in _entries():
        return _load(name_or_path)
    path = Path(name_or_path)
    if not (path.suffix == ".toml" or path.exists()):
        from workloads.named import network_names

        if name_or_path in network_names():
            raise InputError(f"{name_or_path} is a workload; the design is named before it")
        raise InputError(
            f"no design {name_or_path!r}; {nearest(name_or_path, _entries())} "
            f"(or give a TOML file; `archsim show edge-16` prints one to start from)"
        )
    return design_from_record(load_toml(path, InputError), str(path))


def with_settings(design: Design, settings: list[str]) -> Design:
    """A design with `key=value` settings, dots reaching into records (off_chip.burst_bytes=32).

    A new `kind` of a memory (ifmap_memory.kind=boveda) keeps what both kinds have.
    """
    if not settings:
        return design
    record = complete_record(design)
    parts: dict[str, Access | None] = {
        entry.name: access_of(entry) for entry in _fields(type(design))
    }
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise InputError(f"a setting is key=value, not {setting!r}")
        *path, last = key.strip().split(".")
        inner: Any = record
        for step in path:
            inner = cast("dict[str, Any]", inner).get(step) if isinstance(inner, dict) else None
        if not isinstance(inner, dict):
            raise InputError(f"the design has no {key!r}; {nearest(path[0], record)}")
        table, value = cast("dict[str, Any]", inner), _value(setting, text.strip())
        access = parts.get(path[0]) if path else None
        if last == "kind" and access:
            change_kind(table, access, value)
        table[last] = value
    return design_from_record(record, "the design")


LONGEST_SETTING = 1000
"""Characters; no value of a design needs as many."""


def _value(setting: str, text: str) -> Any:
    """A TOML value of one line; a bare word is a string."""
    shown = repr(f"{setting[:60]}…" if len(setting) > 60 else setting)
    require(
        len(text) <= LONGEST_SETTING and text.isprintable(),
        f"a setting is key=value, a line of at most {LONGEST_SETTING} characters, not {shown}",
    )
    try:
        return parse_toml(f"value = {text}", f"the setting {shown}", InputError)["value"]
    except TOMLDecodeError:
        return text


def _named() -> Iterator[tuple[str, Design]]:
    """All named designs, first those that need no import."""
    yield from list(_loaded.items())
    yield from registered().items()


def design_name(design: Design) -> str:
    """The registered name of a design, or its kind and size."""
    for name, known in _named():
        if known == design:
            return name
    return f"{design.kind}-{design.size}"


def design_toml(design: Design) -> str:
    """The complete TOML of a design."""
    import tomli_w

    return tomli_w.dumps(design_record(design))


__all__ = [
    "complete_record",
    "design_from_record",
    "design_name",
    "design_record",
    "design_toml",
    "is_ours",
    "load_design",
    "registered",
    "with_settings",
]
