"""Checks of whole numbers, whose messages share one grammar."""

from __future__ import annotations

from collections.abc import Mapping

from workloads.errors import WorkloadError
from workloads.limits import HIGHEST, check_limit, limits
from workloads.names import LONGEST_KEPT, printable


def positive(where: str, **values: int) -> None:
    """Raise WorkloadError unless every value is a whole number of at least 1.

    `where` is the layer, file or object which holds the values; it opens the message.
    """
    _check(where, values, least=1, word="positive")


def not_negative(where: str, **values: int) -> None:
    """Raise WorkloadError unless every value is a whole number of at least 0."""
    _check(where, values, least=0, word="zero or positive")


def named(kind: str, name: str) -> None:
    """Raise WorkloadError unless a name can be shown, as `workloads.names.printable` makes it."""
    if len(name) > LONGEST_KEPT or not name.isprintable():
        shown = printable(name)
        raise WorkloadError(
            f"{kind} name must be at most {LONGEST_KEPT} printable characters, not {shown!r}"
        )


def countable(where: str, **counts: int) -> None:
    """Raise WorkloadError unless counts (MACs, elements) are whole numbers of at most 62 bits."""
    for name, count in counts.items():
        if type(count) is not int or count < 0:
            raise WorkloadError(f"{where}: {name} must be zero or positive, not {count!r:.60}")
        if count > HIGHEST:
            raise WorkloadError(f"{where}: {name} must be at most 2^62; make the tensors smaller")


def _check(where: str, values: Mapping[str, int], least: int, word: str) -> None:
    most = limits().size
    for name, value in values.items():
        if type(value) is not int:
            raise WorkloadError(f"{where}: {name} must be a whole number, not {value!r:.60}")
        if value < least:
            raise WorkloadError(f"{where}: {name} must be {word}, not {value}")
        if value > most:
            check_limit("size", value, f"{where}: {name}")
