"""What became of points: values by objective, and errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from archsim.numbers import IntArray

FloatArray = npt.NDArray[np.float64]

DONE, REFUSED, FAILED = "done", "refused", "failed"
"""Of a point: computed; no such design, or one that the network does not fit; an error of ours, of
a library's or of the system's."""


@dataclass(kw_only=True)
class Outcome:
    """Points that were computed: designs on one network.

    numbers: of the designs; network: its place in the space.  values: by objective [designs], NaN
    where there is none.  errors: place → (status, why).  layers: cycles [designs, layers] where
    they are kept, else None.  cpu_seconds: that it took.
    """

    numbers: IntArray
    network: int
    values: dict[str, FloatArray]
    errors: dict[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])
    layers: IntArray | None = None
    cpu_seconds: float = 0.0

    @classmethod
    def of_error(cls, numbers: IntArray, network: int, names: Sequence[str], why: str) -> Outcome:
        """All of them failed."""
        values = {name: np.full(len(numbers), np.nan) for name in names}
        errors: dict[int, tuple[str, str]] = {at: (FAILED, why) for at in range(len(numbers))}  # noqa: C420
        return cls(numbers=numbers, network=network, values=values, errors=errors)

    @classmethod
    def joined(cls, parts: Sequence[Outcome]) -> Outcome:
        """Several outcomes on one network as one."""
        first = parts[0]
        edges = np.cumsum([0, *(len(one.numbers) for one in parts)]).tolist()
        starts = zip(edges, parts, strict=False)
        errors = {at + place: why for at, one in starts for place, why in one.errors.items()}
        width = max((one.layers.shape[1] for one in parts if one.layers is not None), default=None)
        return cls(
            numbers=np.concatenate([one.numbers for one in parts]),
            network=first.network,
            values={
                name: np.concatenate([one.values[name] for one in parts]) for name in first.values
            },
            errors=errors,
            layers=None if width is None else np.concatenate([one.cycles(width) for one in parts]),
        )

    def cycles(self, layers: int) -> IntArray:
        """`layers`, or where there is none, −1 for so many."""
        if self.layers is not None:
            return self.layers
        return np.full((len(self.numbers), layers), -1, np.int64)

    def taken(self, places: IntArray) -> Outcome:
        """Of some places only."""
        new = {old: at for at, old in enumerate(places.tolist())}
        return Outcome(
            numbers=self.numbers[places],
            network=self.network,
            values={name: column[places] for name, column in self.values.items()},
            errors={new[old]: why for old, why in self.errors.items() if old in new},
            layers=None if self.layers is None else self.layers[places],
            cpu_seconds=self.cpu_seconds,
        )


__all__ = ["DONE", "FAILED", "REFUSED", "Outcome"]
