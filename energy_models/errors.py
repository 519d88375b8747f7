"""The one exception which bad input to this package raises."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class EnergyError(ValueError):
    """A table, technology, library or component cannot be used, or an entry is missing.

    The message says what was wrong, where, and what would be right; it is fit to be shown to a
    user as it stands, without a traceback.
    """


def require(condition: bool, message: str) -> None:
    """Raise `EnergyError(message)` unless the condition holds."""
    if not condition:
        raise EnergyError(message)


def require_known(name: str, known: Iterable[str], message: str) -> None:
    """Raise `EnergyError` with the nearest names behind the message unless the name is known."""
    if name not in (names := tuple(known)):
        raise EnergyError(f"{message}; {nearest(name, names)}")


def nearest(name: str, known: Iterable[str]) -> str:
    """The hint behind an unknown name: "did you mean multiplier?", or all there are."""
    names = list(known)
    close = get_close_matches(name, names, n=3)
    return f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(names)}"
