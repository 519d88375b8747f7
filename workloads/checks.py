"""Checks of whole numbers, whose messages share one grammar."""

from __future__ import annotations

from collections.abc import Mapping

from workloads.errors import WorkloadError


def positive(where: str, **values: int) -> None:
    """Raise WorkloadError unless every value is a whole number of at least 1.

    `where` is the layer, file or object which holds the values; it opens the message.
    """
    _check(where, values, least=1, word="positive")


def not_negative(where: str, **values: int) -> None:
    """Raise WorkloadError unless every value is a whole number of at least 0."""
    _check(where, values, least=0, word="zero or positive")


def _check(where: str, values: Mapping[str, int], least: int, word: str) -> None:
    for name, value in values.items():
        if type(value) is not int:
            raise WorkloadError(f"{where}: {name} must be a whole number, not {value!r}")
        if value < least:
            raise WorkloadError(f"{where}: {name} must be {word}, not {value}")
