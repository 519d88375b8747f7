"""Integer arithmetic as hardware does it, and lanes packed into port words."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

AnyIntArray = npt.NDArray[np.signedinteger[Any]]
"""Operands as they are kept: int8 up to 8 bits, else wider."""


def ceil_div(numerator: int, denominator: int) -> int:
    """⌈numerator / denominator⌉ for integers."""
    return -(-numerator // denominator)


def bit_ceil(value: int) -> int:
    """The smallest power of two that is at least `value` (1 for 1)."""
    return 1 << max(value - 1, 0).bit_length()


def wrap(values: IntArray, bits: int) -> IntArray:
    """Two's complement wrap-around to `bits` bits: what a register of that width keeps."""
    if bits >= 64:
        return values
    half = np.int64(1) << np.int64(bits - 1)
    mask = (np.int64(1) << np.int64(bits)) - np.int64(1)
    return ((values + half) & mask) - half


def saturate(values: IntArray, bits: int) -> IntArray:
    """Clip to the signed range of `bits` bits."""
    return np.clip(values, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def rescale(values: IntArray, multiplier: int, shift: int) -> IntArray:
    """values × multiplier / 2^shift, rounded half up (towards +∞); exact below 2^62."""
    product = values * np.int64(multiplier)
    if shift == 0:
        return product
    return (product + (np.int64(1) << np.int64(shift - 1))) >> np.int64(shift)


def pack_lanes(payload: IntArray, lane_bits: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Pack lanes into words, lane 0 in the lowest bits.

    payload is [n, lanes]; the answer is [n, ⌈Σ lane_bits / 8⌉] bytes, little-endian.
    """
    total = sum(lane_bits)
    if len(set(lane_bits)) == 1 and lane_bits[0] in (8, 16, 32, 64):
        return np.ascontiguousarray(payload.astype(f"<i{lane_bits[0] // 8}")).view(np.uint8)
    bits = np.zeros((len(payload), total), np.uint8)
    at = 0
    for lane, width in enumerate(lane_bits):
        shifts = np.arange(width, dtype=np.int64)
        bits[:, at : at + width] = (payload[:, lane, None] >> shifts) & 1
        at += width
    return np.packbits(bits, axis=1, bitorder="little")


def unpack_lanes(
    words: npt.NDArray[np.uint8], lane_bits: tuple[int, ...], lane_signed: tuple[bool, ...]
) -> IntArray:
    """The inverse of `pack_lanes`: words [n, bytes] to payload [n, lanes]."""
    bits = np.unpackbits(words, axis=1, bitorder="little")
    payload = np.zeros((len(words), len(lane_bits)), np.int64)
    at = 0
    for lane, (width, signed) in enumerate(zip(lane_bits, lane_signed, strict=True)):
        weights = np.int64(1) << np.arange(width, dtype=np.int64)
        if signed:
            weights[-1] = -weights[-1]
        payload[:, lane] = bits[:, at : at + width].astype(np.int64) @ weights
        at += width
    return payload
