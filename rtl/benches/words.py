"""Packed words: payloads as rows of bytes, little-endian, the unused high bits 0."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

__all__ = ["pack_lanes", "pack_words", "unpack_lanes", "unpack_words"]


def pack_words(values: Iterable[int], bits: int) -> npt.NDArray[np.uint8]:
    """Pack unsigned integers of `bits` bits as uint8 `[n, ceil(bits / 8)]`.

    Raises `OverflowError` for a value which does not fit.
    """
    size = (bits + 7) // 8
    packed = bytearray()
    for value in values:
        if value >> bits:
            raise OverflowError(f"{value} does not fit into {bits} bits")
        packed += value.to_bytes(size, "little")
    return np.frombuffer(bytes(packed), np.uint8).reshape(-1, size).copy()


def unpack_words(words: npt.NDArray[np.uint8]) -> list[int]:
    """The unsigned integers in `words`, uint8 `[n, bytes]`."""
    size = words.shape[1]
    text = np.ascontiguousarray(words).tobytes()
    return [int.from_bytes(text[at : at + size], "little") for at in range(0, len(text), size)]


def pack_lanes(lanes: npt.NDArray[np.integer], lane_bits: int) -> npt.NDArray[np.uint8]:
    """Pack integers `[n, lanes]` as words uint8 `[n, ceil(lanes * lane_bits / 8)]`.

    Lane 0 is in the lowest bits; a negative value is taken in two's complement of `lane_bits`
    (1 to 64). Higher bits are cut off.
    """
    if not 1 <= lane_bits <= 64:
        raise ValueError(f"lane_bits must be 1 to 64, not {lane_bits}")
    n, width = lanes.shape
    wide = lanes.astype(np.uint64) if lanes.dtype.kind == "u" else lanes.astype("<i8")
    as_bytes = np.ascontiguousarray(wide, wide.dtype.newbyteorder("<")).view(np.uint8)
    if lane_bits % 8 == 0:
        return as_bytes.reshape(n, width, 8)[:, :, : lane_bits // 8].reshape(
            n, width * lane_bits // 8
        )
    bits = np.unpackbits(as_bytes.reshape(n, width, 8), axis=2, bitorder="little")
    flat = bits[:, :, :lane_bits].reshape(n, width * lane_bits)
    return np.packbits(flat, axis=1, bitorder="little")


def unpack_lanes(
    words: npt.NDArray[np.uint8], lanes: int, lane_bits: int, *, signed: bool = False
) -> npt.NDArray[np.int64] | npt.NDArray[np.uint64]:
    """The lanes in `words` uint8 `[n, bytes]`, as int64 (signed) or uint64 `[n, lanes]`."""
    if not 1 <= lane_bits <= 64:
        raise ValueError(f"lane_bits must be 1 to 64, not {lane_bits}")
    n = len(words)
    flat = np.unpackbits(words, axis=1, bitorder="little")[:, : lanes * lane_bits]
    bits = np.zeros((n, lanes, 64), np.uint8)
    bits[:, :, :lane_bits] = flat.reshape(n, lanes, lane_bits)
    if signed:
        bits[:, :, lane_bits:] = bits[:, :, lane_bits - 1 : lane_bits]
    as_bytes = np.packbits(bits, axis=2, bitorder="little").reshape(n, lanes * 8)
    return as_bytes.view("<i8" if signed else "<u8").reshape(n, lanes)
