"""Codecs by name: those of `reference_codecs`, and those that packages add.

An entry of the group `archsim.codecs` is called as the codec and names a `Codec`: what it takes for
a tensor, its title, its source.  `archsim compress` counts it beside the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any

from archsim.codecs.reference_codecs import CODECS, Bits, Codec
from archsim.errors import InputError, require
from archsim.plugins import loaded, others, package_of, used

GROUP = "archsim.codecs"


@cache
def codecs() -> Mapping[str, Codec]:
    """All codecs, the stored form first, those of other packages last; broken ones left out."""
    found = dict(CODECS)
    for name, entry in others(GROUP, CODECS).items():
        codec = loaded(entry, _why_no_codec)
        if codec is not None:
            found[name] = replace(codec, bits=_guarded(entry, codec.bits))
    return found


def package_of_codec(name: str) -> str:
    """Which package a codec is from."""
    return "archsim" if name in CODECS else package_of(others(GROUP, ())[name])


def _why_no_codec(found: Any) -> str:
    return "" if isinstance(found, Codec) else f"it must be a Codec, not {type(found).__name__}"


def _guarded(entry: EntryPoint, bits: Bits) -> Bits:
    """What fails in a codec of another package is told with its name, and so is no count."""
    where = f"codec {entry.name} of package {package_of(entry)}"

    def counted(*given: Any) -> int:
        with used(where, InputError, InputError):
            found: Any = bits(*given)
        good = isinstance(found, int) and not isinstance(found, bool) and found >= 0
        require(good, f"{where} must count bits, a whole number, not {found!r}")
        return found

    return counted


__all__ = ["GROUP", "codecs", "package_of_codec"]
