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
    """line: what it says, without the white space around it; change: as `Mutant.change`.

    Without module or line it is of any.  reach: the fault does something, but only with layers that
    are too large to be a case.
    """

    module: str = ""
    line: str = ""
    change: str
    reach: bool = False
    reason: str

    def is_of(self, mutant: Mutant, text: str) -> bool:
        """Whether it is of this fault, of a line of this text."""
        there = (self.module or mutant.module, self.line or text, self.change)
        return there == (mutant.module, text, mutant.change)


@cache
def equivalents() -> tuple[Equivalent, ...]:
    """All entries.  Raises `TypeError` for one that lacks a key or has another."""
    entries = tomllib.loads(FILE.read_text(encoding="utf-8"))["equivalent"]
    return tuple(Equivalent(**entry) for entry in entries)


def reason_of(mutant: Mutant, text: str) -> Equivalent | None:
    """Why nothing can tell a fault of a line of this text; None where that is not said."""
    return next((one for one in equivalents() if one.is_of(mutant, text)), None)


def of_no_fault(made: Iterable[Mutant]) -> list[Equivalent]:
    """Entries that are of none of these faults."""
    faults = [(one, line_of(one)) for one in made]
    return [one for one in equivalents() if not any(one.is_of(*fault) for fault in faults)]
