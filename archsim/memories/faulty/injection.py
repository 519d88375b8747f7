"""Masks of faulty cells of many words at once: `cell_hash`, compiled, words side by side."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined, kernel
from archsim.memories.faulty.cell_hash import (
    ADDRESS_TURN_Y,
    ADDRESS_TURNS,
    KIND_BITS,
    ROUND_CONSTANTS,
    ROUND_TURNS,
    SEED_TURNS,
    Words32,
)
from workloads.threads import in_threads

Bytes = npt.NDArray[np.uint8]

CHUNK_WORDS = 1 << 16
BLOCK_WORDS = 256
"""Words whose states are kept at once: they stay in the processor's first cache."""


@inlined
def _turned(value: np.uint32, by: np.uint32) -> np.uint32:
    return np.uint32(
        np.uint32(value << by) | np.uint32(value >> np.uint32((np.uint32(32) - by) & np.uint32(31)))
    )


@inlined
def _mixed(value: np.uint32) -> np.uint32:
    one = _turned(value, np.uint32(ROUND_TURNS[0]))
    other = _turned(value, np.uint32(ROUND_TURNS[1]))
    return np.uint32((one & other) ^ _turned(value, np.uint32(ROUND_TURNS[2])))


@kernel("(u4.1, u4.1), u4.2, u4.2, (int, int, int), (u1.2, u1.2)")
def mask_words(
    block: tuple[Words32, Words32],
    lanes: Words32,
    limits: Words32,
    place: tuple[int, int, int],
    masks: tuple[Bytes, Bytes],
) -> None:
    """Set the bits of faulty cells in bytes of zeros.

    block: room for x and y of some words.  lanes [bits, 5]: `lane_constants`.  limits [bits, 3]:
    what draws must be below, and of their kind, what it must be below to fail when 0 is stored,
    and from what on it fails when 1 is stored.  place: first address, step, key.
    masks [words, bytes]: wrong if 0 is stored, wrong if 1 is.
    """
    xs, ys = block
    if_zero, if_one = masks
    words = len(if_zero)
    key = np.uint32(place[2])
    seed = np.uint32(0)
    for turn in SEED_TURNS:
        seed ^= _turned(key, np.uint32(turn)) if turn else key
    for begin in range(0, words, len(xs)):
        count = min(len(xs), words - begin)
        for at in range(count):
            address = np.uint32(place[0] + (begin + at) * place[1])
            x, y = key, np.uint32(seed ^ _turned(address, np.uint32(ADDRESS_TURN_Y)))
            for turn in ADDRESS_TURNS:
                x = np.uint32(x ^ (_turned(address, np.uint32(turn)) if turn else address))
            for constant in ROUND_CONSTANTS:
                x, y = np.uint32(y ^ _mixed(x) ^ np.uint32(constant)), x
            xs[at], ys[at] = x, y
        for bit in range(len(lanes)):
            limit, below, above = limits[bit, 0], limits[bit, 1], limits[bit, 2]
            turn_x, turn_y, later = lanes[bit, 0], lanes[bit, 1], lanes[bit, 4]
            inverted_x, inverted_y = lanes[bit, 2], lanes[bit, 3]
            byte, shift = bit >> 3, np.uint8(bit & 7)
            if limit == 0:
                continue
            for at in range(count):
                x = np.uint32(_turned(xs[at], turn_x) ^ inverted_x)
                y = np.uint32(_turned(ys[at], turn_y) ^ inverted_y)
                x, y = np.uint32(y ^ _mixed(x)), _turned(x, later)
                x = np.uint32(y ^ _mixed(x))
                fails = np.uint8(np.uint32(x >> np.uint32(KIND_BITS)) < limit)
                kind = np.uint32(x & np.uint32((1 << KIND_BITS) - 1))
                if_zero[begin + at, byte] |= np.uint8((fails & np.uint8(kind < below)) << shift)
                if_one[begin + at, byte] |= np.uint8((fails & np.uint8(kind >= above)) << shift)


def fill(
    lanes: Words32, limits: Words32, place: tuple[int, int, int], masks: tuple[Bytes, Bytes]
) -> None:
    """`mask_words`, by the threads that the process may take."""

    def chunk(begin: int) -> None:
        parts = masks[0][begin : begin + CHUNK_WORDS], masks[1][begin : begin + CHUNK_WORDS]
        states = np.empty(BLOCK_WORDS, np.uint32), np.empty(BLOCK_WORDS, np.uint32)
        first = place[0] + begin * place[1]
        mask_words(states, lanes, limits, (first, place[1], place[2]), parts)

    in_threads(chunk, range(0, len(masks[0]), CHUNK_WORDS))


__all__ = ["fill", "mask_words"]
