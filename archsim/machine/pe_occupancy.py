"""How often every PE was busy, in the array and over time: what a machine's model answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from archsim.numbers import IntArray

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Lines:
    """Lines of PEs over time: rows of the array, or columns, or single PEs.

    name: of one ("row"); each: PEs in it; counts [bins, lines]: cycles · PEs that were busy.
    """

    name: str
    each: int
    counts: IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Occupancy:
    """How often every PE was busy.

    what: is counted ("useful MACs").  cycles: of the layers.  counts [rows, columns]: cycles in
    which each PE was busy.  edges_cycles [bins + 1]: where the spans of time begin and end;
    lines: busy cycles by lines of PEs in each span.  row, column: what those of PEs are called.
    """

    what: str
    name: str
    cycles: int
    counts: IntArray
    row: str
    column: str
    edges_cycles: IntArray
    lines: tuple[Lines, ...]

    @property
    def shares(self) -> FloatArray:
        """Share of the cycles in which each PE was busy: [rows, columns]."""
        return self.counts / max(self.cycles, 1)

    def over_time(self, lines: Lines) -> FloatArray:
        """Share of the PEs of each line that were busy, on average over each span: [bins, n]."""
        return lines.counts / (np.diff(self.edges_cycles)[:, None] * lines.each)
