"""What installed packages add: entry points, found alike for ours and for other people's.

A broken one (it cannot be imported, is not what its group wants, or takes a name that is taken) is
left out with a warning that names the package and the entry.  It never stops what does not need it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from archsim.errors import InputError

OURS = "archsim"
"""The package whose entries come first where a name is given twice."""


class PluginWarning(UserWarning):
    """A plug-in that is left out."""


@cache
def plugins(group: str) -> dict[str, EntryPoint]:
    """The entries of a group by name, in the order of the alphabet, not yet loaded."""
    return _named(entry_points(group=group))


def _named(found: Iterable[EntryPoint]) -> dict[str, EntryPoint]:
    """By name; of two with one name ours, or the first by package, and a warning."""
    kept: dict[str, EntryPoint] = {}
    for entry in sorted(found, key=lambda one: (one.name, package_of(one) != OURS, one.value)):
        other = kept.setdefault(entry.name, entry)
        if other.value != entry.value:
            leave_out(entry, f"the name is taken by {other.value} of package {package_of(other)}")
    return kept


def package_of(entry: EntryPoint) -> str:
    """The name of the package that has the entry."""
    return entry.dist.name if entry.dist is not None else entry.module.partition(".")[0]


def leave_out(entry: EntryPoint, why: str) -> None:
    """Warn that an entry is not used."""
    warnings.warn(_line(entry, why), PluginWarning, stacklevel=3)


Check = Callable[[Any], str]
"""Says of what an entry names why it does not belong in its group; nothing if it does."""


def loaded(entry: EntryPoint, check: Check = lambda _: "") -> Any:
    """What an entry names; None, with a warning, where that is broken."""
    try:
        return needed(entry, check)
    except InputError as error:
        warnings.warn(str(error), PluginWarning, stacklevel=2)
        return None


def needed(entry: EntryPoint, check: Check = lambda _: "") -> Any:
    """What an entry names.  Raises `InputError` where that is broken, with package and entry.

    What an entry of our own raises is raised as it is: then archsim is broken, not a plug-in.
    """
    try:
        found = entry.load()
        why = check(found)
    except (Exception, SystemExit) as error:
        if package_of(entry) == OURS:
            raise
        raise InputError(_line(entry, _said(error))) from error
    if why:
        raise InputError(_line(entry, why))
    return found


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _line(entry: EntryPoint, why: str) -> str:
    return f"{entry.name} ({entry.group}) of package {package_of(entry)} cannot be used: {why}"


__all__ = ["PluginWarning", "leave_out", "loaded", "needed", "package_of", "plugins"]
