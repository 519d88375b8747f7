"""What installed packages add: entry points, found alike for ours and for other people's.

A broken one (it cannot be imported, is not what its group wants, takes a name that is taken, or its
package requires another version of archsim) is left out with a warning that names the package and
the entry.  It never stops what does not need it.

| group | an entry is called | and names |
|---|---|---|
| `archsim.designs` | as the design | a design (`archsim.machine.design.Design`) |
| `archsim.rtl` | as the kind of design | its component (`rtl.registry`) |
| `archsim.memories` | `<access>.<kind>` | a kind of memory (`archsim.memory.kinds`) |
| `archsim.memory_rtl` | likewise | its hardware (`rtl.core.memory`) |
| `archsim.codecs` | as the codec | a `Codec` (`archsim.codecs.known`) |
| `archsim.price_sources` | as the source's prefix | what opens it (`archsim.price_sources`) |
| `archsim.technologies` | as the technology | its TOML file's path (`archsim.technologies`) |
| `archsim.objectives` | as the objective | what measures it (`archsim.objectives`) |
| `archsim.importers` | as the files end, without the dot | what reads one (`archsim.importers`) |
| `archsim.commands` | as the verb | what adds it to the command line (`archsim.cli.verbs`) |

Entries of any other group of `archsim.` nobody looks for; `archsim list` warns of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from traceback import walk_tb
from typing import Any

from archsim.errors import InputError, nearest
from archsim.interrupts import Ended
from archsim.version import VERSION

OURS = "archsim"
"""The package whose entries come first where a name is given twice."""


GROUPS = tuple(
    f"{OURS}.{what}"
    for what in (
        "designs", "rtl", "memories", "memory_rtl", "codecs", "price_sources", "technologies",
        "objectives", "importers", "commands",
    )
)  # fmt: skip
"""All that there are."""


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


def others(group: str, ours: Iterable[str]) -> dict[str, EntryPoint]:
    """The entries of a group of which we have some that are no entries; `ours`: their names."""
    found = dict(plugins(group))
    for name in set(ours) & set(found):
        leave_out(found.pop(name), f"the name is taken by package {OURS}")
    return found


def package_of(entry: EntryPoint) -> str:
    """The name of the package that has the entry."""
    return entry.dist.name if entry.dist is not None else entry.module.partition(".")[0]


def leave_out(entry: EntryPoint, why: str) -> None:
    """Warn that an entry is not used."""
    warnings.warn(_line(entry, why), PluginWarning, stacklevel=3)


Check = Callable[[Any], str]
"""Says of what an entry names why it does not belong in its group; nothing if it does."""


def lacking(found: object, answers: Iterable[str]) -> str:
    """Why something does not belong: it has not all these attributes."""
    missing = sorted(name for name in answers if not hasattr(found, name))
    return f"it lacks {', '.join(missing)}" if missing else ""


def no_call(found: object) -> str:
    """Why something does not belong: it cannot be called."""
    return "" if callable(found) else f"it must be callable, not {type(found).__name__}"


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
    Of others' anything is taken for a fault (a panic of a compiled module and what skips a test
    are no `Exception`), but that somebody asked the command to end.
    """
    if unfit := _made_for_others(entry.dist):
        raise InputError(_line(entry, unfit))
    try:
        found = entry.load()
        why = check(found)
    except (KeyboardInterrupt, Ended):
        raise
    except BaseException as error:
        if package_of(entry) == OURS:
            raise
        raise InputError(_line(entry, _said(error))) from error
    if why:
        raise InputError(_line(entry, why))
    return found


@contextmanager
def used(where: str, kind: type[Exception], *told: type[Exception]) -> Generator[None]:
    """What a part of a package raises meanwhile becomes an error of that kind, which names it.

    told: kinds that are raised as they are.  One that ends the process (`sys.exit`) is a fault too;
    that somebody asked the command to end is none.
    """
    try:
        yield
    except (KeyboardInterrupt, Ended, *told):
        raise
    except BaseException as error:
        raise kind(f"{where} failed: {type(error).__name__}: {error}") from error


def blame(error: BaseException) -> str:
    """Which installed package an error comes out of, where, and what it is; "" if out of none.

    Where no line of a package raised it, the package of the nearest object that archsim had in
    hand there: what its methods gave was not what was asked.
    """
    packages = package_names()

    def of(module: object) -> str:
        """The package that a module is of; ours where no entry says so."""
        return packages.get(str(module).partition(".")[0], OURS)

    frames = list(reversed(list(walk_tb(error.__traceback__))))
    for frame, line in frames:
        module = str(frame.f_globals.get("__name__", ""))
        if of(module) != OURS:
            return f"package {of(module)} failed in {module}, line {line}: {_said(error)}"
    for frame, _ in frames:
        for kind in _in_hand(frame.f_locals.values()):
            if of(kind.__module__) != OURS:
                place = f"{frames[0][0].f_globals.get('__name__', '')}, line {frames[0][1]}"
                about = f"with its {kind.__name__} in {place}"
                return f"package {of(kind.__module__)} failed {about}: {_said(error)}"
    return ""


def package_names() -> dict[str, str]:
    """By top-level module, the installed packages that add anything to archsim, and archsim."""
    entries = _installed()
    return {one.value.partition(":")[0].partition(".")[0]: package_of(one) for one in entries}


def _installed() -> list[EntryPoint]:
    """What all packages add, in groups that there are or not."""
    installed = entry_points()
    groups = (group for group in sorted(installed.groups) if group.startswith(f"{OURS}."))
    return [entry for group in groups for entry in installed.select(group=group)]


def warn_of_unknown_groups() -> None:
    """Warn of entries that nobody looks for, since their group is none of `GROUPS`."""
    known = [group.partition(".")[2] for group in GROUPS]
    for entry in _installed():
        if entry.group not in GROUPS:
            hint = nearest(entry.group.partition(".")[2], known)
            leave_out(entry, f"there is no group {entry.group}; {hint}")


def _in_hand(values: Iterable[object]) -> Iterator[type[Any]]:
    """The classes of objects, and of what these hold."""
    for value in values:
        yield type(value)
        yield from map(type, getattr(value, "__dict__", {}).values())


def _made_for_others(package: Distribution | None) -> str:
    """Why a package is not for this version of archsim; "" where it is, or says nothing."""
    if package is None or package.name == OURS:
        return ""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    for text in package.requires or ():
        try:
            wanted = Requirement(text)
        except InvalidRequirement:
            continue
        ours = canonicalize_name(wanted.name) == OURS
        applies = wanted.marker is None or wanted.marker.evaluate({"extra": ""})
        if ours and applies and not wanted.specifier.contains(VERSION, prereleases=True):
            return f"its package requires {OURS} {wanted.specifier}, and this is {VERSION}"
    return ""


def _said(error: BaseException) -> str:
    if isinstance(error, InputError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _line(entry: EntryPoint, why: str) -> str:
    return f"{entry.name} ({entry.group}) of package {package_of(entry)} cannot be used: {why}"


__all__ = [
    "PluginWarning",
    "blame",
    "lacking",
    "leave_out",
    "loaded",
    "needed",
    "no_call",
    "others",
    "package_names",
    "package_of",
    "plugins",
    "used",
    "warn_of_unknown_groups",
]
