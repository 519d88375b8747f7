"""What layers of SCNN's evaluation took, added over them, and of what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from archsim.papers.scnn_energy import NOTHING
from energy_models.pricing import FloatArray


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What layers took, added over them.

    dense: cycles of DCNN.  cycles: of SCNN, from the start of each pass's first group to its last
    sum that left.  ideal: of the oracle, `multiplications` over the core's multipliers.  bare:
    pairs of vectors in the PE that has most, of each pass: what would be left without bank
    conflicts, waiting and barriers.  The others are cycles of all PEs of the grid: multiplying
    pairs of vectors, held by banks (conflict), waiting for weights, skipping empty blocks, at
    barriers, draining after the last one, and unused (PEs that the plane does not reach).
    products: what the pairs would be with full lanes.  passes: of all layers.
    energy: pJ of each machine, [machines, parts] (`archsim.papers.scnn_energy`).
    """

    dense: float = 0
    cycles: float = 0
    ideal: float = 0
    bare: float = 0
    products: float = 0
    pairs: float = 0
    conflict: float = 0
    wait: float = 0
    skip: float = 0
    barrier: float = 0
    drain: float = 0
    unused: float = 0
    passes: float = 0
    energy: FloatArray = field(default_factory=lambda: NOTHING, compare=False)

    @property
    def speedup(self) -> float:
        return self.dense / self.cycles

    @property
    def oracle(self) -> float:
        return self.dense / self.ideal

    @property
    def bare_speedup(self) -> float:
        return self.dense / self.bare

    @property
    def utilization(self) -> float:
        """Per cent of the lanes of multiplied pairs that make a product."""
        return 100 * self.products / self.pairs

    @property
    def all_pe_cycles(self) -> float:
        """PEs × cycles."""
        busy = self.pairs + self.conflict + self.wait + self.skip
        return busy + self.barrier + self.drain + self.unused

    @property
    def idle(self) -> float:
        """Per cent of all PE cycles at barriers, draining, or in PEs that the plane misses."""
        return 100 * (self.barrier + self.drain + self.unused) / self.all_pe_cycles

    def scaled(self, factor: float) -> Tally:
        """So many times as much of everything."""
        found: dict[str, Any] = {
            one.name: factor * getattr(self, one.name) for one in fields(Tally)
        }
        return Tally(**found)

    def losses(self) -> dict[str, float]:
        """Where PE cycles went, per cent; what is missing to 100 made products."""
        lost = {
            "fragmentation": self.pairs - self.products,
            "bank conflicts": self.conflict,
            "broadcast": self.wait,
            "unused PEs": self.unused,
            "barriers": self.barrier,
            "halo and output": self.drain,
            "empty blocks": self.skip,
        }
        return {name: 100 * value / self.all_pe_cycles for name, value in lost.items()}


def total(tallies: Iterable[Tally]) -> Tally:
    """All of them together."""
    parts = list(tallies)
    found: dict[str, Any] = {
        one.name: sum(getattr(t, one.name) for t in parts) for one in fields(Tally)
    }
    return Tally(**found)


__all__ = ["Tally", "total"]
