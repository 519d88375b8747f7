"""Which PE completes an output, which gives out a pooled one, and what it copies from neighbours.

PE i gives out the pooled outputs [i · give, (i + 1) · give) and owns the outputs [i · own,
(i + 1) · own), own = give · stride of the windows: those by which its windows advance.  The last PE
that gives any out owns all the rest.  Without pooling a window is an output.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from archsim.machines.scnn.pooling import Window
from archsim.numbers import ceil_div


@dataclass(frozen=True, kw_only=True)
class Ownership:
    """Outputs along an axis over PEs in a row.

    outputs: of the plane; those behind the last window are left out.  pes: PEs that are used.
    own: outputs of each PE but the last.  window: of the pooling behind them.
    """

    outputs: int
    pes: int
    own: int
    window: Window

    @cached_property
    def give(self) -> int:
        """Pooled outputs of each PE but the last."""
        return self.own // self.window.stride

    @cached_property
    def givers(self) -> int:
        """PEs that give out pooled outputs; they come first."""
        return ceil_div(self.window.outputs, self.give)

    def given(self, pe: int) -> range:
        """The pooled outputs that a PE gives out, maybe none."""
        most = self.window.outputs
        return range(min(pe * self.give, most), min((pe + 1) * self.give, most))

    def own_start(self, pe: int) -> int:
        """The first output that a PE owns, or the number of them."""
        return min(pe * self.own, self.outputs) if pe < self.givers else self.outputs

    def owned(self, pe: int) -> range:
        """The outputs whose sums a PE completes, maybe none; the last that gives any out has all
        the rest."""
        return range(self.own_start(pe), self.own_start(pe + 1))

    def seen(self, pe: int) -> range:
        """The outputs between the first and the last in a PE's windows."""
        return self.window.seen(self.given(pe), self.outputs)

    def copies_before(self, pe: int) -> int:
        """Outputs in a PE's windows that the PE before owns."""
        seen = self.seen(pe)
        return len(range(seen.start, min(seen.stop, self.own_start(pe))))

    def copies_behind(self, pe: int) -> int:
        """Outputs in a PE's windows that the next PE owns."""
        seen = self.seen(pe)
        return len(range(max(seen.start, self.own_start(pe + 1)), seen.stop))

    @cached_property
    def most_owned(self) -> int:
        return max(len(self.owned(pe)) for pe in range(self.pes))

    @cached_property
    def most_held(self) -> int:
        """The most of a PE's own outputs and copies."""
        return max(len(self.owned(pe)) + self.copies(pe) for pe in range(self.pes))

    def copies(self, pe: int) -> int:
        """Outputs in a PE's windows that its neighbours own."""
        return self.copies_before(pe) + self.copies_behind(pe)

    @cached_property
    def most_copies(self) -> tuple[int, int]:
        """The most before a PE's own outputs, and behind them."""
        pes = range(self.pes)
        return max(map(self.copies_before, pes)), max(map(self.copies_behind, pes))

    def sent(self, pe: int) -> tuple[int, int]:
        """Own outputs of a PE that are copied: by the PE before, by the next."""
        before = self.copies_behind(pe - 1) if pe else 0
        return before, self.copies_before(pe + 1) if pe + 1 < self.pes else 0

    def reads(self, pe: int) -> int:
        """Outputs in a PE's windows, counted in each of them."""
        given = self.given(pe)
        return sum(len(self.window.seen(range(u, u + 1), self.outputs)) for u in given)


__all__ = ["Ownership"]
