"""Faults that change nothing that can be seen, each with the reason: `equivalent.toml`.

An entry is found by what the line says, not by its number, so that it outlives edits elsewhere in
the file; once the line itself is edited the entry applies no more, and a test says so.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.mutation.operators import Mutant
from tests.mutation.sources import line_of

FILE = Path(__file__).with_name("equivalent.toml")


@dataclass(frozen=True, kw_only=True)
class Equivalent:
    """line: what it says, without the white space around it; change: as `Mutant.change`."""

    module: str
    line: str
    change: str
    reason: str


@cache
def equivalents() -> tuple[Equivalent, ...]:
    """All entries.  Raises `TypeError` for one that lacks a key or has another."""
    entries = tomllib.loads(FILE.read_text(encoding="utf-8"))["equivalent"]
    return tuple(Equivalent(**entry) for entry in entries)


def reason_of(mutant: Mutant, text: str) -> str | None:
    """Why a fault of a line of this text changes nothing; None where that is not said."""
    fault = (mutant.module, text, mutant.change)
    return next(
        (one.reason for one in equivalents() if (one.module, one.line, one.change) == fault), None
    )


def of_no_fault(made: Iterable[Mutant]) -> list[Equivalent]:
    """Entries that are of none of these faults."""
    faults = {(one.module, line_of(one), one.change) for one in made}
    return [one for one in equivalents() if (one.module, one.line, one.change) not in faults]
