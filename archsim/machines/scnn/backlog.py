"""What the banks of a PE have still to add, a field of bits for each, several in a word.

The highest bit of a field is 0 between pairs, so fields do not meet.  A cycle takes one from every
field that is not 0; a pair adds its products.  A bank's queue is never too long from pairs before,
since a pair waits for the one before it, so of a word one comparison of all fields tells whether a
pair waits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined
from archsim.machines.scnn.design import Scnn
from archsim.numbers import IntArray, ceil_div

SmallArray = npt.NDArray[np.int32]
BankArray = npt.NDArray[np.uint16]
WordArray = npt.NDArray[np.uint64]

Lanes = tuple[IntArray, SmallArray]
"""Lanes of each vector, of activations those with an element, of weights those with a value
[vectors]; address of each [vectors, lanes], `WORDS` times where banks are packed, behind the table
for one without a value."""

Words = tuple[np.uint64, np.uint64, np.uint64, np.uint64]

Plane = tuple[BankArray, WordArray, WordArray]
"""Bank of each address; one product in its field (`one_at`), and how fields lie (`rules`)."""

(
    BITS,  # of a field
    ONES,  # 1 in every field
    HIGHEST,  # the highest bit of every field
    MOST,  # the largest number in a field
    PLACES,  # of a bank's queue
    SLACK,  # in every field: with more than PLACES it gives the highest bit
    RULE_COLUMNS,
) = range(7)

WORDS = 4
"""Of a PE; a register of a vector unit holds them."""

STEP = 4
"""Lanes that are handled at a time."""

MOST_ADDRESSES = 1 << 18
"""Of a table of packed banks, so that it stays small."""


def padded(lanes: int) -> int:
    """The next multiple of `STEP`."""
    return ceil_div(lanes, STEP) * STEP


def packs(design: Scnn, addresses: int) -> bool:
    """Whether a PE's banks are packed, or products handled one by one."""
    return design.banks * _bits(design) <= 64 * WORDS and addresses <= MOST_ADDRESSES


def _bits(design: Scnn) -> int:
    """Of a field, so that what a full queue and a pair of vectors add to stays below its highest
    bit."""
    lanes = design.weight_lanes * design.ifmap_lanes
    return next(bits for bits in (8, 16, 32, 64) if design.bank_queue + lanes <= 1 << (bits - 1))


def rules(design: Scnn) -> WordArray:
    """[RULE_COLUMNS] how fields lie."""
    bits = _bits(design)
    ones = sum(1 << place for place in range(0, 64, bits))
    most = (1 << (bits - 1)) - 1
    places = min(design.bank_queue, most)
    found = (bits, ones, ones << (bits - 1), most, places, ones * (most - places))
    return np.array(found, np.uint64)


def banks_at(design: Scnn, bank_at: BankArray) -> BankArray:
    """[4 · addresses] bank of each address; behind them that of products that are not sent: where
    lanes without a value are added."""
    return np.pad(bank_at, (0, 3 * len(bank_at)), constant_values=design.banks)


def one_at(design: Scnn, bank_at: BankArray) -> WordArray:
    """[4 · addresses · WORDS] one in the field of each address's bank; nothing at those of products
    that are not sent."""
    each = 64 // _bits(design)
    table = np.zeros((design.banks + 1, WORDS), np.uint64)
    banks = np.arange(design.banks)
    table[banks, banks // each] = np.uint64(1) << (banks % each * _bits(design)).astype(np.uint64)
    found = np.zeros((4, bank_at.size * WORDS), np.uint64)
    found[0] = table[bank_at].reshape(-1)
    return found.reshape(-1)


@inlined
def _one_more(of: Words, one_at: WordArray, at: int) -> Words:
    """A product at an address."""
    row = np.uint64(at)
    return (
        of[0] + one_at[row],
        of[1] + one_at[row + np.uint64(1)],
        of[2] + one_at[row + np.uint64(2)],
        of[3] + one_at[row + np.uint64(3)],
    )


@inlined
def _four_more(of: Words, one_at: WordArray, to: int, weights: tuple[int, int, int, int]) -> Words:
    """Products of an activation with four weights."""
    of = _one_more(of, one_at, to + weights[0])
    of = _one_more(of, one_at, to + weights[1])
    of = _one_more(of, one_at, to + weights[2])
    return _one_more(of, one_at, to + weights[3])


@inlined
def _products(pair: tuple[int, int], lanes: tuple[Lanes, Lanes], one_at: WordArray) -> Words:
    """Of each bank, how many of a pair's products.

    Lanes are taken by the four, those without a value too: whether there is a value is seldom
    known beforehand, and a branch that is guessed wrong takes longer than 16 products.
    """
    (a_count, a_address), (w_count, w_address) = lanes
    of = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    a, w = np.uint64(pair[0]), np.uint64(pair[1])
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    for i in range(np.uint64(0), np.uint64(a_count[a]), np.uint64(STEP)):
        for f in range(np.uint64(0), np.uint64(w_count[w]), np.uint64(STEP)):
            four = (
                w_address[w, f],
                w_address[w, f + one],
                w_address[w, f + two],
                w_address[w, f + three],
            )
            of = _four_more(of, one_at, a_address[a, i], four)
            of = _four_more(of, one_at, a_address[a, i + one], four)
            of = _four_more(of, one_at, a_address[a, i + two], four)
            of = _four_more(of, one_at, a_address[a, i + three], four)
    return of


@inlined
def _after(backlog: np.uint64, gone: np.uint64, fields: WordArray) -> np.uint64:
    """A word's fields, less what is `gone` in each, and at least 0."""
    left = (backlog | fields[HIGHEST]) - gone
    more = left & fields[HIGHEST]
    return left & (more - (more >> (fields[BITS] - np.uint64(1))))


@inlined
def _longest(backlog: Words, fields: WordArray) -> int:
    """The largest field."""
    most = np.uint64(0)
    for word in backlog:
        left = word
        while left > 0:
            most = max(most, left & fields[MOST])
            left = (left >> (fields[BITS] - np.uint64(1))) >> np.uint64(1)
    return int(np.int64(most))


@inlined
def send_pair(
    passed: int,
    pair: tuple[int, int],
    lanes: tuple[Lanes, Lanes],
    plane: Plane,
    backlog: Words,
) -> tuple[int, Words]:
    """A pair of vectors that enters so many cycles behind the pair before: the cycles that it
    takes, the backlog then."""
    fields = plane[2]
    gone = fields[ONES] * np.uint64(min(passed, int(np.int64(fields[MOST]))))
    of = _products(pair, lanes, plane[1])
    now_0 = _after(backlog[0], gone, fields) + of[0]
    now_1 = _after(backlog[1], gone, fields) + of[1]
    now_2 = _after(backlog[2], gone, fields) + of[2]
    now_3 = _after(backlog[3], gone, fields) + of[3]
    slack, now, cycles = fields[SLACK], (now_0, now_1, now_2, now_3), 1
    full = (now_0 + slack) | (now_1 + slack) | (now_2 + slack) | (now_3 + slack)
    if full & fields[HIGHEST]:
        cycles = _longest(now, fields) - int(np.int64(fields[PLACES])) + 1
    return cycles, now


__all__ = [
    "PLACES",
    "WORDS",
    "BankArray",
    "Lanes",
    "Plane",
    "SmallArray",
    "WordArray",
    "banks_at",
    "one_at",
    "packs",
    "padded",
    "rules",
    "send_pair",
]
