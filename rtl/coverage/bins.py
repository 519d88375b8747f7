"""Bins: situations in which faults hide, each with a predicate: was a case in it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from archsim.numbers import IntArray
from archsim.ports import PortAnswer
from rtl.conformance import Case


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """A case and what the model says of it; behind a run also what was watched inside the RTL.

    inside: by `Watch.name` the values that its wires had (`rtl.benches.bench.Watch`).
    """

    case: Case
    expected: PortAnswer
    inside: Mapping[str, int] = field(default_factory=dict[str, int])

    @cached_property
    def gaps(self) -> Mapping[str, IntArray]:
        """By port, idle cycles of the memory side before each word."""
        return self.case.waits(self.expected)

    def words(self, port: str) -> IntArray:
        """What crosses a port, [words, lanes]."""
        return self.expected.transfers[port].payload


@dataclass(frozen=True, kw_only=True)
class Bin:
    """A situation: its name, why faults hide there, and whether a case was in it.

    aim: the name of the aim (`Verification.aims`) that makes cases which mostly are.
    inside: the predicate reads wires of the RTL, so only a run can tell.
    """

    name: str
    why: str
    hit: Callable[[Seen], bool]
    aim: str = ""
    inside: bool = False


class Coverage:
    """How many cases were in each bin."""

    def __init__(self, bins: Iterable[Bin]) -> None:
        self.bins = tuple(bins)
        self.hits = {one.name: 0 for one in self.bins}
        if len(self.hits) != len(self.bins):
            raise ValueError("bins must have names of their own")

    def add(self, seen: Seen) -> None:
        """Count a case in every bin that it is in."""
        for one in self.bins:
            self.hits[one.name] += bool(one.hit(seen))

    @property
    def missing(self) -> tuple[Bin, ...]:
        """Bins that no case was in."""
        return tuple(one for one in self.bins if not self.hits[one.name])

    def record(self) -> dict[str, Any]:
        """Bins, how many were hit, and by how many cases each, as plain data."""
        return {
            "bins": len(self.bins),
            "hit": len(self.bins) - len(self.missing),
            "missing": [one.name for one in self.missing],
            "cases": dict(self.hits),
        }

    def explained(self) -> dict[str, Any]:
        """The record, and of each bin why it matters and which aim leads to it."""
        return {
            **self.record(),
            "why": {one.name: one.why for one in self.bins},
            "aims": {one.name: one.aim for one in self.bins if one.aim},
        }

    def line(self) -> str:
        """In words: bins hit of how many, the missing ones by name."""
        hit = len(self.bins) - len(self.missing)
        names = "; ".join(one.name for one in self.missing)
        return f"coverage: {hit} of {len(self.bins)} bins" + (
            f"; missing: {names}" if names else ""
        )


__all__ = ["Bin", "Coverage", "Seen"]
