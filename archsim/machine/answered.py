"""What a result says of a layer is of one kind, whatever the machine: its readers ask no more."""

from __future__ import annotations

from archsim.causes import CAUSES
from archsim.errors import require
from archsim.result import TRAFFIC, LayerResult


def checked(result: LayerResult, machine: str) -> LayerResult:
    """The same result of a layer that takes cycles, as a machine gives it.

    Raises `InputError`, with machine and layer, unless its cycles have a count for every cause and
    are their sum, and its bytes one for every port.
    """
    where = f"{machine} machines, {result.name}"
    for what, given, names in (
        ("cycles by cause", result.where, CAUSES),
        ("bytes by port", result.bytes_moved, TRAFFIC),
    ):
        require(
            set(given) == set(names) and min(given.values()) >= 0,
            f"{where}: {what} must be counts of {', '.join(names)}, not {dict(given)}",
        )
    spent = sum(result.where.values())
    require(
        spent == result.cycles,
        f"{where}: cycles by cause must sum to its {result.cycles} cycles, not to {spent}",
    )
    return result


__all__ = ["checked"]
