"""The function of (chip, address, bit) that decides which cells fail.

32 bits that look drawn: a few rounds of a Feistel network whose function is that of the SIMON
ciphers (Beaulieu et al., "The SIMON and SPECK Lightweight Block Ciphers", DAC 2015), so that a
round is one table of four inputs a bit, and no carry.  ROW_ROUNDS of them are of the address
alone, shared by all bits of a word; LANE_ROUNDS are of a bit, from the same state, turned and
inverted by constants of that bit, which cost nothing.  It is no cipher: it has few rounds and no
secret.  How well it draws is tested (`tests/archsim/test_cell_hash.py`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Turn = Callable[[Any, int], Any]
"""A word rotated to the left by so many places: of NumPy, or of hardware."""

Keep = Callable[[Any], Any]
"""What a round made, by a name: in hardware a signal, so that it is made once."""

Words32 = npt.NDArray[np.uint32]

HASH_BITS = 32
ROW_ROUNDS = 8
LANE_ROUNDS = 2

THRESHOLD_BITS = 24
"""The upper bits of a draw that are compared with the rate."""

KIND_BITS = HASH_BITS - THRESHOLD_BITS
"""The lower bits, which say how a cell fails."""

ADDRESS_TURNS = 0, 11, 20
ADDRESS_TURN_Y = 16
SEED_TURNS = (0, 9, 23)
ROUND_TURNS = 1, 8, 2

GOLDEN = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio."""

ROUND_CONSTANTS = tuple((GOLDEN >> 32) * (number + 1) & 0xFFFFFFFF for number in range(ROW_ROUNDS))


def turned(value: Any, by: int) -> Any:
    """A word of 32 bits (or an array of uint32) rotated to the left."""
    by %= HASH_BITS
    if by == 0:
        return value
    return (value << by | value >> (HASH_BITS - by)) & 0xFFFFFFFF


def unnamed(value: Any) -> Any:
    """As it is."""
    return value


def mixed(value: Any, turn: Turn = turned) -> Any:
    """The function of a round."""
    one, other, third = ROUND_TURNS
    return (turn(value, one) & turn(value, other)) ^ turn(value, third)


def splitmix(value: int) -> int:
    """64 bits of a number (Steele et al., "Fast Splittable Pseudorandom Number Generators", 2014),
    for constants."""
    value = (value + GOLDEN) & (1 << 64) - 1
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & (1 << 64) - 1
    value = (value ^ value >> 27) * 0x94D049BB133111EB & (1 << 64) - 1
    return value ^ value >> 31


@lru_cache(maxsize=1 << 14)
def lane_constants(bit: int) -> tuple[int, int, int, int, int]:
    """Of a bit of a word: what x and y are turned by and inverted with, and the turn of x behind
    the first round: (turn of x, turn of y, inverted x, inverted y, later turn)."""
    drawn = splitmix(bit)
    turn = splitmix(drawn) % HASH_BITS
    later = (bit // HASH_BITS + 1) % HASH_BITS
    return turn, (turn + bit) % HASH_BITS, drawn & 0xFFFFFFFF, drawn >> HASH_BITS, later


def key_of(chip: int, memory: str) -> int:
    """The 32 bits that stand for a memory of a chip: the chip's number, and the memory's name."""
    return (chip ^ zlib.crc32(memory.encode())) & 0xFFFFFFFF


def row_state(address: Any, key: Any, turn: Turn = turned, keep: Keep = unnamed) -> tuple[Any, Any]:
    """x and y of addresses: what all bits of a word have in common."""
    x, y = key, turn(address, ADDRESS_TURN_Y)
    for by in ADDRESS_TURNS:
        x = x ^ turn(address, by)
    for by in SEED_TURNS:
        y = y ^ turn(key, by)
    x, y = keep(x), keep(y)
    for constant in ROUND_CONSTANTS:
        x, y = keep(y ^ mixed(x, turn) ^ constant), x
    return x, y


def lane_draw(state: tuple[Any, Any], bit: int, turn: Turn = turned, keep: Keep = unnamed) -> Any:
    """The 32 bits of a cell, of the state of its address."""
    turn_x, turn_y, inverted_x, inverted_y, later = lane_constants(bit)
    x, y = keep(turn(state[0], turn_x) ^ inverted_x), turn(state[1], turn_y) ^ inverted_y
    for number in range(LANE_ROUNDS):
        x, y = keep(y ^ mixed(x, turn)), turn(x, later if number == 0 else 0)
    return x


def draws(key: int, addresses: npt.ArrayLike, bits: int) -> Words32:
    """[addresses, bits]: of every cell of words of so many bits."""
    given = np.asarray(addresses, np.uint32)
    state = row_state(given, key & 0xFFFFFFFF)
    return np.stack([lane_draw(state, bit) for bit in range(bits)], axis=-1).astype(np.uint32)
