"""What a result says of a layer is of one kind, whatever the machine: its readers ask no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from archsim.causes import CAUSES
from archsim.errors import InputError
from archsim.result import TRAFFIC, Actions, LayerResult
from energy_models.frozen import FrozenDict

_CAUSES = frozenset[str](CAUSES)
_PORTS = frozenset[str](TRAFFIC)


class Checks:
    """Looks at a machine's results of layers; what several share, and cannot change, once."""

    def __init__(self, machine: str) -> None:
        self._machine = machine
        self._seen: dict[tuple[int, ...], tuple[object, ...]] = {}

    def checked(self, given: Any) -> LayerResult:
        """The same result of a layer that takes cycles, as the machine gives it.

        Raises `InputError`, with machine and layer, unless it is a `LayerResult`, its cycles have a
        count for every cause and are their sum, its bytes one for every port, and what it counts
        are whole numbers of Python.
        """
        if not isinstance(given, LayerResult):
            name = type(given).__name__
            raise InputError(
                f"{self._machine} machines: a layer's result must be a LayerResult, not {name}"
            )
        result: LayerResult = given
        counts = result.where, result.bytes_moved, result.actions
        held = (*counts, result.cycles, result.macs_per_cycle)
        key = tuple(map(id, held))
        if key not in self._seen:
            _check_whole(result, self._machine)
            _check_complete(result, self._machine)
            if {FrozenDict, Actions}.issuperset(map(type, counts)):
                self._seen[key] = held  # which keeps them, and so their ids, as they are
        return result


def _check_complete(result: LayerResult, machine: str) -> None:
    """Every cycle has a cause, and every port its bytes."""
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


__all__ = ["Checks"]
