"""What a sweep would do: points, those that are none and why, and what time and memory it takes."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from archsim.errors import InputError, require
from archsim.numbers import IntArray
from archsim.sweeps.evaluation import Evaluator
from archsim.sweeps.search import Search
from archsim.sweeps.space import Space

LOOKED_AT = 100_000
"""Designs that are made, to see which are none; of larger spaces so many drawn ones."""

CHUNK = 1 << 14

TIMED = 24
"""Designs that are computed on every network, for the time."""

TIMED_SECONDS = 2.0
"""About what that takes at most: where points are costly, fewer are."""

ROW_BYTES = 64
"""Of a point in the file, its objectives and fields apart (8 each); measured to be above that."""


@dataclass(kw_only=True)
class DryRun:
    """designs: of the space, before constraints; looked_at: so many of them, all or drawn;
    broken: by constraint, how many break it; refused: by reason, how many and one of them;
    allowed: how many are designs and break none.  point_seconds: CPU of one point, measured on a
    few.  All counts are of `looked_at`; `points` is of the space, scaled from them where they are
    not all.
    """

    space: Space
    designs: int
    looked_at: int = 0
    allowed: int = 0
    broken: dict[str, int] = field(default_factory=dict[str, int])
    refused: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    point_seconds: float = 0.0
    asked: int = 0

    @property
    def exact(self) -> bool:
        """Whether all designs were looked at."""
        return self.looked_at == self.designs

    @property
    def points(self) -> int:
        """Points that there are to compute."""
        share = self.allowed / self.looked_at if self.looked_at else 0.0
        found = self.allowed if self.exact else round(share * self.designs)
        return min(found, self.asked) * len(self.space.networks)

    @property
    def file_bytes(self) -> int:
        """About the size of the study's file."""
        columns = len(self.space.fields) + len(self.space.objectives)
        return self.points * (ROW_BYTES + 8 * columns)

    def record(self, workers: int) -> dict[str, Any]:
        """Plain data."""
        return {
            "designs": self.designs,
            "looked_at": self.looked_at,
            "allowed": self.allowed,
            "points": self.points,
            "exact": self.exact,
            "broken": self.broken,
            "refused": {
                why: {"designs": n, "such_as": one} for why, (n, one) in self.refused.items()
            },
            "point_seconds": self.point_seconds,
            "seconds": self.points * self.point_seconds / workers,
            "file_bytes": self.file_bytes,
        }


def dry_run(space: Space, search: Search) -> DryRun:
    """Look at a space, and compute a few points.  Raises `InputError` where none is left."""
    evaluator = Evaluator(space)
    evaluator.check()
    count = space.design_count
    found = DryRun(space=space, designs=count, asked=search.most(count))
    good: list[IntArray] = []
    for numbers in _looked_at(count, search.seed):
        good.append(_look(evaluator, numbers, found))
    allowed = np.concatenate(good)
    require(
        len(allowed) > 0,
        f"the space is empty: of {found.looked_at:,} designs none is left; {_why(found)}",
    )
    chosen = np.random.default_rng(search.seed).permutation(allowed)[:TIMED]
    for network in range(len(space.networks)):
        one = _timed(evaluator, chosen[:1], network)
        if one < TIMED_SECONDS:  # what is made once is not counted
            one = _timed(evaluator, chosen[:1], network)
        some = chosen[: max(int(TIMED_SECONDS / max(one, 1e-6)), 1)]
        spent = one if len(some) == 1 else _timed(evaluator, some, network) / len(some)
        found.point_seconds += spent / len(space.networks)
    return found


def _timed(evaluator: Evaluator, designs: IntArray, network: int) -> float:
    """CPU seconds of computing designs."""
    began = time.process_time()
    evaluator.outcome(designs, network)
    return time.process_time() - began


def _looked_at(count: int, seed: int) -> Iterator[IntArray]:
    """All designs, or some drawn ones, in chunks."""
    if count > LOOKED_AT:
        drawn = np.random.default_rng(seed).integers(count, size=LOOKED_AT, dtype=np.int64)
        yield from (drawn[at : at + CHUNK] for at in range(0, LOOKED_AT, CHUNK))
        return
    for start in range(0, count, CHUNK):
        yield np.arange(start, min(start + CHUNK, count), dtype=np.int64)


def _look(evaluator: Evaluator, numbers: IntArray, found: DryRun) -> IntArray:
    """Count what is wrong with designs; those with which nothing is."""
    grid = evaluator.grid
    found.looked_at += len(numbers)
    for text, count in grid.broken(numbers).items():
        found.broken[text] = found.broken.get(text, 0) + count
    numbers = numbers[grid.allowed(numbers)]
    good = np.ones(len(numbers), np.bool_)
    for place, design in enumerate(evaluator.designs(numbers)):
        if isinstance(design, InputError):
            good[place] = False
            why = re.sub(r"-?\d[\d,.]*", "…", str(design))
            count, first = found.refused.get(why, (0, str(design)))
            found.refused[why] = (count + 1, first)
    found.allowed += int(good.sum())
    return numbers[good]


def _why(found: DryRun) -> str:
    """What leaves none, the commonest first."""
    parts = [(count, f"{text!r} excludes {count:,}") for text, count in found.broken.items()]
    parts += [(count, f"{count:,} are refused: {first}") for count, first in found.refused.values()]
    return "; ".join(text for _, text in sorted(parts, reverse=True)) or "it has no design"


__all__ = ["DryRun", "dry_run"]
