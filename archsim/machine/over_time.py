"""Where the cycles of a run went, over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class OverTime:
    """Where the cycles went, over time.

    edges_cycles: where the bins begin and end, [bins + 1], equally far apart.
    shares: of each bin's cycles, by cause in the order of `archsim.causes.CAUSES`,
    [bins, causes]; rows sum to 1.
    """

    edges_cycles: FloatArray
    shares: FloatArray

    @property
    def cycles(self) -> FloatArray:
        """Cycles by cause in each bin, [bins, causes]; summed over the bins, the run's `where`."""
        return self.shares * np.diff(self.edges_cycles)[:, None]


__all__ = ["FloatArray", "OverTime"]
