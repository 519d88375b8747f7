"""Two sweeps over memory sizes compared at equal sizes, and at equal traffic.

Between the sizes of a sweep values are interpolated linearly over the logarithm of the size; a
larger memory counts as no worse than a smaller one, since tilings for the smaller fit it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log

import numpy as np

from archsim.papers.boveda_machines import Step

WORTH = 0.995
"""Of the traffic with half the memory: above it more memory is not worth having."""

Curve = Sequence[tuple[float, float]]
"""Sizes in rising order, and values that never rise."""


def curve(points: Iterable[tuple[float, float]]) -> Curve:
    """(size, value) in rising order of size, each value the least of its size and all smaller."""
    best: list[tuple[float, float]] = []
    for size, value in sorted(points):
        best.append((size, min(value, best[-1][1]) if best else value))
    return best


def value_at(given: Curve, size: float) -> float:
    """Interpolated over log size; beyond both ends the end's value."""
    return float(np.interp(log(size), [log(at) for at, _ in given], [value for _, value in given]))


def size_for(given: Curve, value: float) -> float | None:
    """The least size with at most this value; None where the smallest has less, or none has."""
    if given[0][1] <= value or given[-1][1] > value:
        return None
    for (small, more), (large, less) in pairwise(given):
        if less <= value:
            share = (more - value) / (more - less)
            return exp(log(small) + share * (log(large) - log(small)))
    raise AssertionError("the last value is at most the one asked for")


@dataclass(frozen=True, kw_only=True)
class Gain:
    """Compressed memories over plain ones, in per cent; negative is less.

    off_chip, cycles: with as many bytes in all, directories included.  size: of the least
    compressed memories with the plain ones' traffic; None where half the plain memory has as little
    traffic (within 0.5 %), and where it lies beyond the sweep.  memories, total: energy with as
    many bytes of rows; None where it is not known.
    """

    off_chip: float
    cycles: float
    size: float | None
    memories: float | None = None
    total: float | None = None


def gains(steps: Sequence[Step]) -> list[Gain]:
    """Of every step of a sweep."""
    small = [step.compressed for step in steps]
    traffic = curve((one.size_bytes, one.off_chip_bytes) for one in small)
    cycles = curve((one.size_bytes, one.cycles) for one in small)
    plain = curve((step.plain.size_bytes, step.plain.off_chip_bytes) for step in steps)
    plain_cycles = curve((step.plain.size_bytes, step.plain.cycles) for step in steps)
    found: list[Gain] = []
    before = float("inf")
    for step, (size, moved), (_, taken) in zip(steps, plain, plain_cycles, strict=True):
        enough = size_for(traffic, moved) if moved < WORTH * before else None
        found.append(
            Gain(
                off_chip=change(value_at(traffic, size), moved),
                cycles=change(value_at(cycles, size), taken),
                size=None if enough is None else change(enough, size),
                memories=_energy(step.compressed.memories_pj, step.plain.memories_pj),
                total=_energy(step.compressed.total_pj, step.plain.total_pj),
            )
        )
        before = moved
    return found


def _energy(new: float | None, old: float | None) -> float | None:
    return None if new is None or old is None else change(new, old)


def change(new: float, old: float) -> float:
    """In per cent; negative is less."""
    return 100 * (new / old - 1)


def energies(memories: float, total: float) -> str:
    """Changes of energy in per cent, as a remark."""
    return f"energy of memories {memories:+.0f} %, of all {total:+.1f} %"


__all__ = ["Curve", "Gain", "change", "curve", "energies", "gains", "size_for", "value_at"]
