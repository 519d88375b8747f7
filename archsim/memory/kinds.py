"""Kinds of memory by name, as packages add them, and memories as plain data.

An entry of the group `archsim.memories` is called `<access>.<kind>`, "scratchpad.plain", and names
a frozen dataclass that answers for that way of access (`archsim.memory.seam.PROTOCOLS`).  A kind
around another one has a field that holds a memory, by whose default the way of access is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any, cast

from archsim.errors import InputError, nearest
from archsim.memory.seam import PROTOCOLS, Access
from archsim.plugins import leave_out, loaded, package_of, plugins
from archsim.records import build, check_keys, check_table, default_of, is_left_out

GROUP = "archsim.memories"

PLAIN = "plain"

MADE_FOR: dict[Access, str] = {
    "scratchpad": "a tile is read at any address while the next one is written",
    "stream": "vectors are read from the first to the last, again and again",
    "bank": "a word at any address is read in the next cycle",
}
"""What a machine does with a memory of each way of access."""


@cache
def _entries() -> Mapping[str, Mapping[str, EntryPoint]]:
    """By way of access, by kind; plain ones first."""
    found: dict[str, dict[str, EntryPoint]] = {access: {} for access in PROTOCOLS}
    for name, entry in plugins(GROUP).items():
        access, dot, kind = name.partition(".")
        if access in found and dot and kind:
            found[access][kind] = entry
        else:
            leave_out(entry, f"it must be called <access>.<kind>, access {', '.join(PROTOCOLS)}")
    first = sorted(found)
    return {
        access: dict(sorted(found[access].items(), key=lambda one: one[0] != PLAIN))
        for access in first
    }


def _answers(protocol: type) -> set[str]:
    """What a kind must have."""
    found: set[str] = set()
    for base in protocol.__mro__:
        found |= set(vars(base).get("__annotations__", {}))
        found |= {name for name in vars(base) if not name.startswith("_")}
    return found


@cache
def _kind(access: Access, name: str) -> type[Any] | None:
    """The class of a kind; None where it cannot be had, of which a warning tells."""

    def why_not(found: Any) -> str:
        if not (isinstance(found, type) and is_dataclass(found)):
            return "it must be a dataclass"
        had = {entry.name for entry in fields(found)} | set(dir(found))
        lacking = sorted(_answers(PROTOCOLS[access]) - had)
        if lacking:
            return f"it lacks {', '.join(lacking)}"
        said: Any = found
        if (said.access, said.kind) != (access, name):
            return f"it says that it is {said.access}.{said.kind}"
        return ""

    return loaded(_entries()[access][name], why_not)


def kinds(access: Access) -> dict[str, type[Any]]:
    """All kinds for a way of access, those that cannot be had left out."""
    found = {name: _kind(access, name) for name in _entries()[access]}
    return {name: one for name, one in found.items() if one is not None}


def package_of_kind(access: Access, name: str) -> str:
    """Which package a kind is from."""
    return package_of(_entries()[access][name])


@cache
def access_of(entry: Field[Any]) -> Access | None:
    """The way of access of the memory in a dataclass's field; None if no memory stands there."""
    found = getattr(default_of(entry), "access", None)
    return found if found in PROTOCOLS else None


def memory_record(memory: Any, *, complete: bool = False) -> dict[str, Any]:
    """A memory as nested plain data; the inverse of `memory_from_record`.

    complete: fields too that are left out where they have their default (`IMPLIED`).
    """
    record: dict[str, Any] = {"kind": memory.kind}
    for entry in fields(memory):
        value = getattr(memory, entry.name)
        if is_left_out(entry, value) and not complete:
            continue
        inner = access_of(entry)
        record[entry.name] = memory_record(value, complete=complete) if inner else value
    return {name: value for name, value in record.items() if value is not None}


def memory_from_record(where: str, name: str, access: Access, value: Any) -> Any:
    """The memory of a field from plain data; `where` is whose.  Raises `InputError`."""
    given = check_table(where, name, value)
    kind = _known(where, name, access, given.pop("kind", PLAIN))
    where = f"{where}: {name}"
    known = {entry.name: entry for entry in fields(kind)}
    check_keys(where, given, list(known))
    for key in given:
        inner = access_of(known[key])
        if inner is not None:
            given[key] = memory_from_record(where, key, inner, given[key])
    return build(where, kind, given)


def _known(where: str, name: str, access: Access, kind: Any) -> type[Any]:
    """The class of a kind that a user names."""
    known = _entries()[access]
    if not isinstance(kind, str):
        raise InputError(f"{where}: {name} has no kind {kind!r}; known: {', '.join(known)}")
    found = _kind(access, kind) if kind in known else None
    if found is not None:
        return found
    if kind in known:
        raise InputError(f"{where}: {name}: the kind {kind!r} is left out, as a warning says")
    if any(kind in others for others in _entries().values()):
        raise InputError(
            f"{where}: {name} must be {' or '.join(known)}, not {kind}: {MADE_FOR[access]}, which "
            f"that kind is not made for"
        )
    raise InputError(f"{where}: {name} has no kind {kind!r}; {nearest(kind, known)}")


def change_kind(table: dict[str, Any], access: Access, name: Any) -> None:
    """Make the plain data of a memory fit another kind, in place.

    What that kind has not is dropped.  Of a kind around another one the memory of before becomes
    the inner one; where a kind around another one stood, what was inside it counts.  A kind that is
    not known is left for `memory_from_record` to refuse.
    """
    known = isinstance(name, str) and name in _entries()[access]
    kind = _kind(access, name) if known else None
    if kind is None:
        return
    inner = [entry.name for entry in fields(kind) if access_of(entry) == access]
    if inner:
        table[inner[0]] = dict(table)
    else:
        while held := [key for key, value in table.items() if isinstance(value, dict)]:
            before = cast("dict[str, Any]", table[held[0]])
            table.clear()
            table.update(before)
    names = [entry.name for entry in fields(kind)]
    for key in [key for key in table if key not in names]:
        del table[key]


def forget() -> None:
    """Look for kinds anew, where packages were installed meanwhile."""
    _entries.cache_clear()
    _kind.cache_clear()


__all__ = [
    "GROUP",
    "access_of",
    "change_kind",
    "forget",
    "kinds",
    "memory_from_record",
    "memory_record",
    "package_of_kind",
]
