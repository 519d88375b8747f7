"""What a result says of a layer is of one kind, whatever the machine: its readers ask no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from archsim.causes import CAUSES
from archsim.errors import InputError
from archsim.result import TRAFFIC, LayerResult

_CAUSES = frozenset[str](CAUSES)
_PORTS = frozenset[str](TRAFFIC)


def checked(given: Any, machine: str) -> LayerResult:
    """The same result of a layer that takes cycles, as a machine gives it.

    Raises `InputError`, with machine and layer, unless it is a `LayerResult`, its cycles have a
    count for every cause and are their sum, its bytes one for every port, and what it counts are
    whole numbers of Python.
    """
    if not isinstance(given, LayerResult):
        name = type(given).__name__
        raise InputError(f"{machine} machines: a layer's result must be a LayerResult, not {name}")
    result: LayerResult = given
    _check_whole(result, machine)
    spent = sum(result.where.values())
    if spent != result.cycles:
        _refuse(result, machine, f"by cause must sum to its {result.cycles} cycles, not to {spent}")
    if not _counts(result.where, _CAUSES):
        names = ", ".join(CAUSES)
        _refuse(result, machine, f"by cause must be counts of {names}, not {dict(result.where)}")
    if not _counts(result.bytes_moved, _PORTS):
        names, given = ", ".join(TRAFFIC), dict(result.bytes_moved)
        raise InputError(
            f"{machine} machines, {result.name}: bytes by port must be counts of {names}, "
            f"not {given}"
        )
    return result


def _check_whole(result: LayerResult, machine: str) -> None:
    """A sum of whole numbers is one, and of others none."""
    peak: Any = result.macs_per_cycle
    if type(peak) is not int or peak < 1:
        why = f"macs_per_cycle must be a positive whole number, not {peak!r}"
        raise InputError(f"{machine} machines: {why}")
    for what, counts in (
        ("cycles", {"cycles": result.cycles}),
        ("cycles", result.where),
        ("bytes", result.bytes_moved),
        ("actions", result.actions),
    ):
        try:
            if type(sum(counts.values())) is int:
                continue
        except TypeError:
            pass
        wrong = next(name for name, count in counts.items() if type(count) is not int)
        raise InputError(
            f"{machine} machines, {result.name}: {what} must be whole numbers, not "
            f"{wrong} {counts[wrong]!r}"
        )


def _counts(given: Mapping[str, int], names: frozenset[str]) -> bool:
    return not given.keys() ^ names and min(given.values()) >= 0


def _refuse(result: LayerResult, machine: str, why: str) -> NoReturn:
    raise InputError(f"{machine} machines, {result.name}: cycles {why}")


__all__ = ["checked"]
