"""What is done between two matrix layers of a SimpleNet on a machine: the ofmap of one as the ifmap
of the next, in one pass (`archsim.robust.vector_kernels`).

Each float32 is rounded as NumPy's passes one behind the other round it
(`archsim.robust.vector_unit`), its sums in their order: results are the same to the last bit, on
every processor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.numbers import IntArray, ceil_div
from archsim.robust.vector_kernels import BLOCK, normalized
from archsim.robust.vector_unit import Floats, within
from workloads.errors import WorkloadError
from workloads.quantize import Integers, quantize_at, storage
from workloads.simplenet import NormalizedConvolution
from workloads.threads import in_threads, threads


@dataclass(frozen=True, eq=False)
class Ifmap:
    """Of a layer: integers [n, C, H, W], and sums of all channels of the floats that they stand for
    [n, 1, H, W], for the offset of codes."""

    integers: Integers
    channel_sums: Floats


def _most(bits: int) -> int:
    """The largest integer of so many bits, symmetric about 0."""
    return (1 << (bits - 1)) - 1


@dataclass(frozen=True)
class Levels:
    """Integers of so many bits, in units of `scale`."""

    scale: float
    bits: int

    @classmethod
    def up_to(cls, largest: float, bits: int) -> Levels:
        """Whose largest stands for that."""
        return cls(largest / _most(bits), bits)

    @property
    def most(self) -> int:
        """The largest."""
        return _most(self.bits)

    @property
    def vector(self) -> tuple[float, float, float]:
        """For the kernel: scale, the largest, and how near to an integer a float32 must be to be
        sure of it: it is off by about 2^-23 of itself, and by less than 2^-22 of the largest."""
        usual = 2.0**-100 < self.scale < 2.0**100
        return self.scale, float(self.most), 0.5 - self.most * 2.0**-22 if usual else -1.0


def first_ifmap(pictures: Floats, levels: Levels) -> Ifmap:
    """Of pictures [n, C, H, W]."""
    integers = quantize_at(pictures, levels.scale, levels.bits)
    return Ifmap(integers, pictures.sum(axis=1, keepdims=True))


@dataclass(frozen=True, kw_only=True)
class Sums:
    """A layer's, as its array made them: `array` [n, K, P, Q] times `unit`, which are float32; they
    are limited to ± largest, and what is no number is 0.  beside: added to them [n, 1, P, Q], or to
    none [0, 1, P, Q]."""

    array: npt.NDArray[Any]
    unit: float
    largest: float
    beside: Floats

    def floats(self) -> Floats:
        """What they stand for."""
        found = within(self.array.astype(np.float32) * np.float32(self.unit), self.largest)
        return found + self.beside if len(self.beside) else found


def unit_of(reals: Callable[[npt.NDArray[Any]], Floats], ofmap: npt.NDArray[Any]) -> float | None:
    """What 1 of an ofmap of bytes [n, K, P, Q] stands for, where `reals`, which says of each value
    of a filter what it stands for, is a product of float32 by it; else None."""
    if ofmap.dtype != np.int8:
        return None
    every = np.arange(-128, 128, dtype=np.int8).reshape(-1, 1, 1, 1)
    said = reals(np.broadcast_to(every, (256, ofmap.shape[1], 1, 1)))
    unit = said[128 + 1, 0, 0, 0]
    return float(unit) if np.array_equal(said, np.broadcast_to(every * unit, said.shape)) else None


def ifmap_behind(
    layer: NormalizedConvolution, sums: Sums, weights: Mapping[str, Floats], levels: Levels
) -> Ifmap:
    """Group normalisation, ReLU and maximum pooling of a layer's sums, quantised.

    Raises WorkloadError where something is no number.
    """
    pictures, channels, height, width = sums.array.shape
    rows, columns = height // layer.pool, width // layer.pool
    each = channels // layer.groups
    integers = np.empty((pictures, channels, rows, columns), storage(levels.bits))
    channel_sums = np.empty((pictures, 1, rows, columns), np.float32)
    rules = (
        (sums.unit, sums.largest, *levels.vector),
        (1 + weights[f"{layer.name}.scale"], weights[f"{layer.name}.shift"]),
        (each, width, layer.pool, columns),
        (halves_of(each * height * width), halves_of(channels)),
    )
    given = sums.array.reshape(pictures, -1), sums.beside.reshape(-1, height * width)
    made = integers.reshape(pictures, -1), channel_sums.reshape(pictures, -1)

    def part(at: slice) -> bool:
        return normalized((given[0][at], given[1][at]), *rules, (made[0][at], made[1][at]))

    few = ceil_div(pictures, threads())
    if not all(in_threads(part, [slice(at, at + few) for at in range(0, pictures, few)])):
        raise WorkloadError("quantisation: every value must be finite, not NaN or infinite")
    return Ifmap(integers, channel_sums)


@lru_cache
def halves_of(terms: int) -> IntArray:
    """The order in which NumPy adds up terms side by side: [blocks, 2], the end of each block, and
    how many sums are added to the ones before them when it is done."""
    blocks: list[tuple[int, int]] = []

    def halve(start: int, end: int, done: int) -> None:
        if end - start <= BLOCK:
            blocks.append((end, done))
            return
        middle = start + (end - start) // 16 * 8
        halve(start, middle, 0)
        halve(middle, end, done + 1)

    halve(0, terms, 0)
    return np.array(blocks, np.int64)
