"""Words as the bits of an SRAM, and back: lane by lane, each lane's lowest bit first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from archsim.numbers import IntArray

Bits = npt.NDArray[np.uint8]


def bits_of(words: IntArray, lane_bits: Sequence[int]) -> Bits:
    """[words, Σ lane_bits] of words [words, lanes]; of a lane its lowest bits."""
    lanes = [(words[:, lane, None] >> np.arange(bits)) & 1 for lane, bits in enumerate(lane_bits)]
    return np.concatenate(lanes, axis=1).astype(np.uint8)


def words_of(bits: Bits, lane_bits: Sequence[int], lane_signed: Sequence[bool]) -> IntArray:
    """The words [words, lanes] of bits [words, Σ lane_bits]; signed lanes as two's complement."""
    ends = np.cumsum(lane_bits)
    words = np.empty((len(bits), len(lane_bits)), np.int64)
    for lane, (end, width, signed) in enumerate(zip(ends, lane_bits, lane_signed, strict=True)):
        weights = np.int64(1) << np.arange(width, dtype=np.int64)
        if signed:
            weights[-1] = -weights[-1]
        words[:, lane] = bits[:, end - width : end].astype(np.int64) @ weights
    return words


__all__ = ["Bits", "bits_of", "words_of"]
