"""Whole numbers that a user writes, however long."""

from __future__ import annotations

_MOST_DIGITS = 19
"""More are beyond 64 bits, and of thousands Python makes no number."""


def whole(text: str) -> int | None:
    """The number that a text of digits alone is; None of any other text, and of one beyond 64
    bits."""
    if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS:
        return int(text)
    return None


__all__ = ["whole"]
