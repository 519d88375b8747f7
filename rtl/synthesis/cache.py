"""Results of synthesis, shared by all processes of a user."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from rtl.benches.build_cache import build_once, cache_key

__all__ = ["code_digest", "kept"]


def kept(key: tuple[str, ...], write: Callable[[Path], None]) -> Path:
    """The folder with the result of all that `key` lists, written by `write(folder)` if need be.

    It appears whole or not at all.
    """
    return build_once("synthesis", cache_key(*key), write)


@cache
def code_digest() -> str:
    """A digest of this package's sources: a result is only as good as what computed it."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return cache_key(*(file.read_text(encoding="utf-8") for file in files))
