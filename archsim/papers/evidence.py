"""Why ours differs from a paper's figure: a reason counts where something measured shows it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from archsim.errors import require

Kind = Literal["switch", "count"]

LEAST_CLOSED = 0.1
"""A switch that closes less of the gap explains nothing."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A measured reason.

    what: the cause that is taken away ("whole tiles, by hand"), or what was counted ("each weight
    is fetched").  value, unit: of the row itself without the cause (kind "switch"), or the count.
    how: where the value is from: a call, a command, or a field of the data file.
    """

    kind: Kind
    what: str
    value: float
    unit: str
    how: str

    def __post_init__(self) -> None:
        require(math.isfinite(self.value), f"{self.what}: {self.value} is no measurement")
        require(bool(self.what and self.how), f"{self.what or '?'}: what and how must be said")

    def closed(self, paper: float, ours: float) -> float:
        """The part of the way from ours to the paper's, in ratios, that the switch takes; 1: all.

        A figure on the other side of the paper's counts by how near it is there.
        """
        if min(self.value, ours, paper) <= 0:
            return 1 - abs(self.value - paper) / abs(ours - paper) if ours != paper else 0.0
        gap = abs(math.log(ours / paper))
        return 1 - abs(math.log(self.value / paper)) / gap if gap else 0.0

    def explains(self, paper: float, ours: float) -> bool:
        """A count does; a switch if it brings the row nearer, or past the paper's figure, but not
        past it by more than twice as much as ours is off."""
        if self.kind == "count":
            return True
        closed = self.closed(paper, ours)
        between = (self.value - paper) * (ours - paper) < 0 and closed >= -1
        return between or closed >= LEAST_CLOSED

    def text(self, paper: float, ours: float) -> str:
        """ "whole tiles, by hand: 14.2 (61 % nearer)"."""
        shown = f"{self.what}: {self.value:.4g}"
        if self.kind == "count":
            return f"{shown} {self.unit}".rstrip()
        if (self.value - paper) * (ours - paper) < 0:
            return f"{shown} (beyond the paper's)"
        return f"{shown} ({100 * self.closed(paper, ours):.0f} % nearer)"

    def record(self, paper: float, ours: float) -> dict[str, Any]:
        """Plain data."""
        found: dict[str, Any] = {
            "kind": self.kind,
            "what": self.what,
            "value": self.value,
            "unit": self.unit,
            "how": self.how,
        }
        return found | ({"closed": self.closed(paper, ours)} if self.kind == "switch" else {})


def switch(what: str, value: float, how: str) -> Measured:
    """The row's own figure without a cause; its unit is the row's."""
    return Measured(kind="switch", what=what, value=value, unit="", how=how)


def count(what: str, value: float, unit: str, how: str) -> Measured:
    """Something counted that shows a cause."""
    return Measured(kind="count", what=what, value=value, unit=unit, how=how)


__all__ = ["LEAST_CLOSED", "Kind", "Measured", "count", "switch"]
