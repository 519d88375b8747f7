"""The kernels behind `archsim.machines.vsq.vector_products`, compiled by numba."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined, kernel
from archsim.machines.vsq.vector_kernels import (
    CLIPPED,
    DROPPED,
    HIGHEST,
    LARGEST_SCALE,
    LOWEST,
)
from archsim.numbers import AnyIntArray, IntArray

Words = npt.NDArray[np.int32]

_TURNED = 8
"""Pixels that are turned at a time: what they touch stays in the nearest cache."""


@kernel("i?.2, int, u1.4")
def shifted_vectors(weight: AnyIntArray, channels: int, out: npt.NDArray[np.uint8]) -> None:
    """Weights [K, C · taps], plus 128, as the vectors of every tap: out [taps, J, K, V], with zeros
    behind the last channel."""
    taps, vectors, filters, length = out.shape
    for tap in range(taps):
        for j in range(vectors):
            low = j * length
            count = min(length, channels - low)
            for k in range(filters):
                row, own = out[tap, j, k], weight[k, low * taps + tap :]
                if taps == 1:
                    for i in range(count):
                        row[i] = np.int64(own[i]) + 128
                else:
                    for i in range(count):
                        row[i] = np.int64(own[i * taps]) + 128
                for i in range(count, length):
                    row[i] = 128


@inlined
def _step(dots: Words, a_scales: Words, own: np.int32, rules: IntArray, sums: Words) -> None:
    """A vector of one filter with that of every pixel: all [pixels], within 32 bits."""
    half, largest = np.int32((1 << rules[DROPPED]) >> 1), np.int32(rules[LARGEST_SCALE])
    dropped = rules[DROPPED] & 31
    lowest, highest = np.int32(rules[LOWEST]), np.int32(rules[HIGHEST])
    if rules[CLIPPED]:
        for n in range(len(sums)):
            scale = np.int32(np.int32(np.int32(own * a_scales[n]) + half) >> dropped)
            term = np.int32(dots[n] * min(scale, largest))
            sums[n] = min(max(np.int32(sums[n] + term), lowest), highest)
    else:
        for n in range(len(sums)):
            scale = np.int32(np.int32(np.int32(own * a_scales[n]) + half) >> dropped)
            sums[n] += np.int32(dots[n] * min(scale, largest))


@kernel("i4.3, i4.2, i4.2, i8.1, i4.2")
def add_vectors(
    dots: Words, a_scales: Words, w_scales: Words, rules: IntArray, collectors: Words
) -> None:
    """Vectors in order: dots [vectors, K, pixels], scales [vectors, pixels] and [vectors, K], to
    collectors [K, pixels]."""
    for k in range(len(collectors)):
        for t in range(len(dots)):
            _step(dots[t, k], a_scales[t], w_scales[t, k], rules, collectors[k])


@kernel("i4.2, int, i?.2")
def add_collectors(collectors: Words, bits: int, totals: AnyIntArray) -> None:
    """Collectors [K, pixels], wrapped to their width, to totals [K, pixels], which may wrap at
    theirs."""
    lost = (32 - bits) & 31
    for k in range(len(collectors)):
        for n in range(collectors.shape[1]):
            totals[k, n] += np.int32(np.int32(collectors[k, n] << lost) >> lost)


@kernel("i?.2, int, (int, int, int), i8.2")
def turn(found: AnyIntArray, bits: int, place: tuple[int, int, int], sums: IntArray) -> None:
    """Sums [K, rows · width], wrapped to a width, as sums [pixels, K].

    place: the first pixel, how wide a row is, and how many of it are pixels."""
    (first, width, wide), lost = place, 64 - bits
    rows = found.shape[1] // width
    for p in range(rows):
        for start in range(0, wide, _TURNED):
            end = min(start + _TURNED, wide)
            for k in range(len(found)):
                own = found[k, p * width + start : p * width + end]
                at = first + p * wide + start
                for q in range(end - start):
                    sums[at + q, k] = (np.int64(own[q]) << lost) >> lost


__all__ = ["add_collectors", "add_vectors", "shifted_vectors", "turn"]
