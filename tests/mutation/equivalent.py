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
from tests.mutation.sources import column_of, line_of, number_alike

FILE = Path(__file__).with_name("equivalent.toml")


@dataclass(frozen=True, kw_only=True)
class Equivalent:
    """line: what it says, without the white space around it; change: as `Mutant.change`.

    column: where in it the edit is, of a line that has several such; which: of lines of the module
    that say the same, from 1 on.

    reach: the fault does something, but only with layers that are too large to be a case; it counts
    as one that is not caught.
    choice: another legal way is taken (a tiling, a program), of which model and RTL say the same;
    it is listed apart, with the test that sees it.
    kinds: of design, on which alone it changes nothing; () for all.
    """

    module: str
    line: str
    change: str
    column: int | None = None
    which: int | None = None
    reach: bool = False
    choice: bool = False
    kinds: tuple[str, ...] = ()
    reason: str

    def is_of(self, mutant: Mutant, text: str, column: int, kind: str = "") -> bool:
        """Whether it is of this fault, in this column of a line of this text, on designs of a kind;
        "": of whatever kind."""
        if kind and self.kinds and kind not in self.kinds:
            return False
        same = (self.module, self.line, self.change) == (mutant.module, text, mutant.change)
        if not same or self.column not in (None, column):
            return False
        return self.which is None or self.which == number_alike(mutant.module, mutant.line)


@cache
def equivalents() -> tuple[Equivalent, ...]:
    """All entries.  Raises `TypeError` for one that lacks a key or has another."""
    entries = tomllib.loads(FILE.read_text(encoding="utf-8"))["equivalent"]
    kinds = (tuple(entry.get("kinds", ())) for entry in entries)
    return tuple(
        Equivalent(**entry | {"kinds": one}) for entry, one in zip(entries, kinds, strict=True)
    )


def reason_of(mutant: Mutant, text: str, column: int, kind: str = "") -> Equivalent | None:
    """Why nothing can tell a fault of a line of this text, on designs of a kind; None where that is
    not said."""
    return next((one for one in equivalents() if one.is_of(mutant, text, column, kind)), None)


def of_not_one_fault(made: Iterable[Mutant]) -> list[Equivalent]:
    """Entries that are of none of these faults, or of several."""
    faults = [(one, line_of(one), column_of(one)) for one in made]
    return [one for one in equivalents() if sum(one.is_of(*fault) for fault in faults) != 1]
