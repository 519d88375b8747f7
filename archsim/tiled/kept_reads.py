"""What the tiles of a layer have read of its weights and biases, kept for the next ifmap.

Pictures in batches meet the same weights in the same cells, whose faults need not be found again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from archsim.numbers import AnyIntArray
from archsim.tiled.changed_operands import Exceptions

MOST_KEPT = 1 << 20
"""Elements: with more of them, their products weigh more."""

Read = tuple[AnyIntArray, Exceptions]
"""As `archsim.tiled.changed_operands.OperandReads.changes` answers."""


@dataclass(frozen=True, eq=False)
class KeptReads:
    """Of one layer in one tiling; by operand, what was meant, and what was read."""

    _each: dict[str, tuple[AnyIntArray, Read]] = field(
        default_factory=dict[str, tuple[AnyIntArray, Read]]
    )

    def read(self, name: str, meant: AnyIntArray, read: Callable[[], Read]) -> Read:
        """What is read of "ifmap", "weight" or "bias": what was, where the same was meant."""
        if name in self._each and np.array_equal(self._each[name][0], meant):
            return self._each[name][1]
        found = read()
        if name != "ifmap" and meant.size <= MOST_KEPT:
            found[0].flags.writeable = False
            self._each[name] = meant.copy(), found
        return found


__all__ = ["KeptReads"]
