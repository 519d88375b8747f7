"""The kernels behind `archsim.machines.vsq.vector_products`, compiled by numba."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined, kernel
from archsim.machines.vsq.vector_kernels import (
    BITS,
    CLIPPED,
    DROPPED,
    HIGHEST,
    LARGEST_SCALE,
    LOWEST,
    SUM_BITS,
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


@kernel("i4.2, i8.1, (int, int, int, bool), i8.2")
def add_turned(
    collectors: Words, rules: IntArray, place: tuple[int, int, int, bool], sums: IntArray
) -> None:
    """Collectors [K, rows · width], wrapped to their width, to sums [pixels, K].

    place: the first pixel, how wide a row is, how many of it are pixels, and whether these are the
    first that are added: sums may then hold anything before."""
    first, width, wide, anew = place
    bits, sum_bits = 64 - rules[BITS], 64 - rules[SUM_BITS]
    rows = collectors.shape[1] // width
    for p in range(rows):
        for start in range(0, wide, _TURNED):
            end = min(start + _TURNED, wide)
            for k in range(len(collectors)):
                found = collectors[k, p * width + start : p * width + end]
                at = first + p * wide + start
                for q in range(end - start):
                    own = (np.int64(found[q]) << bits) >> bits
                    before = np.int64(0) if anew else sums[at + q, k]
                    sums[at + q, k] = ((before + own) << sum_bits) >> sum_bits


__all__ = ["add_turned", "add_vectors", "shifted_vectors"]
