"""The error a user sees: what was wrong, where, and what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LARGEST = 1 << 40
"""No count of a design is larger, so that products of counts and widths stay within 64 bits."""


class InputError(ValueError):
    """Bad input.  The command line prints it as one line and exits with 2."""


def require(condition: bool, message: str) -> None:
    """Raise `InputError(message)` unless the condition holds."""
    if not condition:
        raise InputError(message)


def require_whole(least: int, word: str, **values: object) -> None:
    """Refuse what is not a whole number from `least` to `LARGEST`; `word` names the lower end."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f"{name} must be a whole number, not {value!r}")
        require(value >= least, f"{name} must {word}, not {value}")
        require(value <= LARGEST, f"{name} must be at most {LARGEST}, not {value}")


def require_positive(**values: int) -> None:
    """Refuse values below one, with the grammar "rows must be positive, not 0"."""
    require_whole(1, "be positive", **values)


def require_rate(**values: object) -> None:
    """Refuse what is not a finite number above zero."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{name} must be a number, not {value!r}")
        require(0 < value < float("inf"), f"{name} must be positive, not {value}")


def nearest(name: str, known: Iterable[str]) -> str:
    """The hint behind an unknown name: "did you mean rows?", or all there are."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=3)
    return f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(names)}"
