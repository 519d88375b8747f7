"""What a result says of a layer is of one kind, whatever the machine: its readers ask no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from archsim.causes import CAUSES
from archsim.errors import InputError
from archsim.result import TRAFFIC, LayerResult

_CAUSES = frozenset[str](CAUSES)
_PORTS = frozenset[str](TRAFFIC)


def checked(result: LayerResult, machine: str) -> LayerResult:
    """The same result of a layer that takes cycles, as a machine gives it.

    Raises `InputError`, with machine and layer, unless its cycles have a count for every cause and
    are their sum, and its bytes one for every port.
    """
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


def _counts(given: Mapping[str, int], names: frozenset[str]) -> bool:
    return not given.keys() ^ names and min(given.values()) >= 0


def _refuse(result: LayerResult, machine: str, why: str) -> NoReturn:
    raise InputError(f"{machine} machines, {result.name}: cycles {why}")


__all__ = ["checked"]
