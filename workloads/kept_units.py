"""Which units of a row a product reads: the others are dropped for all of its rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError


@dataclass(frozen=True, kw_only=True)
class KeptUnits:
    """Of rows of `units`, those whose bit in `flags` is set, unit 0 in the lowest.

    Raises WorkloadError for flags of no unit, and of units that are not there.
    """

    units: int
    flags: int

    def __post_init__(self) -> None:
        units: Any = self.units
        if type(units) is not int or units < 1:
            raise WorkloadError(f"units of a row must be positive, not {units!r}")
        if self.flags >> self.units or self.flags < 0:
            raise WorkloadError(f"kept units must be of 0 to {self.units - 1}, and others are")
        if not self.flags:
            raise WorkloadError(f"of {self.units} units one at least must be kept, and none is")

    @classmethod
    def of(cls, units: int, kept: Iterable[int]) -> KeptUnits:
        """kept: the units, in any order."""
        flags = 0
        for unit in kept:
            if not 0 <= int(unit) < units:
                raise WorkloadError(f"kept units must be of 0 to {units - 1}, not {unit}")
            flags |= 1 << int(unit)
        return cls(units=units, flags=flags)

    @property
    def count(self) -> int:
        """How many are kept."""
        return self.flags.bit_count()

    def mask(self) -> NDArray[np.bool_]:
        """[units], whether each is kept."""
        raw = np.frombuffer(self.flags.to_bytes(-(-self.units // 8), "little"), np.uint8)
        return np.unpackbits(raw, count=self.units, bitorder="little").astype(np.bool_)

    def positions(self) -> NDArray[np.int64]:
        """[count], the units, in ascending order."""
        return np.flatnonzero(self.mask()).astype(np.int64)


__all__ = ["KeptUnits"]
