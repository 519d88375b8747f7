"""Words as the bits of an SRAM, and back: lane by lane, each lane's lowest bit first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt

from archsim.numbers import IntArray

Bits = npt.NDArray[np.uint8]


def bits_of(words: IntArray, lane_bits: Sequence[int]) -> Bits:
    """[words, Σ lane_bits] of words [words, lanes]; of a lane its lowest bits."""
    found = np.empty((len(words), sum(lane_bits)), np.uint8)
    for lanes, place, bits in _runs(lane_bits):
        part = np.ascontiguousarray(words[:, lanes], _type_of(bits))
        flat = np.unpackbits(part.view(np.uint8), axis=1, bitorder="little")
        each = flat.reshape(*part.shape, 8 * part.itemsize)[:, :, :bits]
        found[:, place] = each.reshape(len(words), bits * part.shape[1])
    return found


def words_of(bits: Bits, lane_bits: Sequence[int], lane_signed: Sequence[bool]) -> IntArray:
    """The words [words, lanes] of bits [words, Σ lane_bits]; signed lanes as two's complement."""
    words = np.empty((len(bits), len(lane_bits)), np.int64)
    for lanes, place, width in _runs(lane_bits):
        kind = np.dtype(_type_of(width))
        count = lanes.stop - lanes.start
        each = np.zeros((len(bits), count, 8 * kind.itemsize), np.uint8)
        each[:, :, :width] = bits[:, place].reshape(len(bits), count, width)
        flat = each.reshape(len(bits), 8 * kind.itemsize * count)
        packed = np.packbits(flat, axis=1, bitorder="little")
        part = packed.view(kind).astype(np.int64)
        above = np.int64(64 - width)
        words[:, lanes] = np.where(lane_signed[lanes], part << above >> above, part)
    return words


def _runs(lane_bits: Sequence[int]) -> Iterator[tuple[slice, slice, int]]:
    """Neighbouring lanes of one width: which lanes, which bits, how wide each."""
    lane = bit = 0
    for width, some in groupby(lane_bits):
        count = len(list(some))
        yield slice(lane, lane + count), slice(bit, bit + count * width), width
        lane, bit = lane + count, bit + count * width


def _type_of(bits: int) -> str:
    """The narrowest of whole bytes, lowest first."""
    return next(f"<u{size}" for size in (1, 2, 4, 8) if bits <= 8 * size)


__all__ = ["Bits", "bits_of", "words_of"]
