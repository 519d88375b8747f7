"""How well the hash of cells draws: every statistic against what independent bits would give.

Bounds are five standard deviations of the binomial, and wider where many are looked at.
"""

from itertools import pairwise

import numpy as np
import pytest

from archsim.memories.faulty.cell_hash import HASH_BITS, draws, key_of
from archsim.memories.faulty.fault_map import FaultMap

ROWS = 1 << 14


def test_every_bit_of_a_draw_is_a_fair_coin() -> None:
    drawn = draws(key_of(5, "weight"), np.arange(ROWS), 8)
    ones = np.stack([(drawn >> bit & 1).mean(axis=0) for bit in range(HASH_BITS)])
    assert np.abs(ones - 0.5).max() < 5 * 0.5 / np.sqrt(ROWS)


def changed_bits(first: np.ndarray, second: np.ndarray) -> float:
    """The furthest from a half of the share of changed bits, over bits of a draw."""
    differs = first ^ second
    return max(abs((differs >> bit & 1).mean() - 0.5) for bit in range(HASH_BITS))


@pytest.mark.parametrize("bit", range(0, 24, 3))
def test_any_bit_of_an_address_or_a_chip_changes_half_of_all(bit: int) -> None:
    addresses = np.arange(ROWS)
    base = draws(7, addresses, 2)
    assert changed_bits(base, draws(7, addresses ^ (1 << bit), 2)) < 6 * 0.5 / np.sqrt(2 * ROWS)
    assert changed_bits(base, draws(7 ^ (1 << bit), addresses, 2)) < 6 * 0.5 / np.sqrt(2 * ROWS)


@pytest.mark.parametrize(("first", "bits"), [(0, 64), (1 << 20, 640)])
def test_pairs_of_bits_of_a_word_fail_together_as_often_as_chance_has_it(
    first: int, bits: int
) -> None:
    """Also of words next to each other."""
    rate = 1 / 16
    masks = FaultMap(words=1 << 32, word_bits=bits, chip=3, rate=rate).masks(first, ROWS)[0]
    fails = np.unpackbits(masks, axis=1, bitorder="little")[:, :: bits // 64].astype(np.float32)
    for other in (fails, np.roll(fails, 1, axis=0), np.roll(fails, 8, axis=0)):
        together = fails.T @ other
        if other is fails:
            together = together[np.triu_indices(64, 1)]
        scores = (together - ROWS * rate**2) / np.sqrt(ROWS * rate**2)
        assert abs(scores.mean()) < 0.2 and 0.9 < scores.std() < 1.15 and scores.max() < 7


def test_counts_of_chips_words_and_columns_are_binomial() -> None:
    rate, bits, words, chips = 0.02, 128, 2048, 40
    of_chip, of_word, of_column = [], [], []
    for chip in range(chips):
        fails = np.unpackbits(
            FaultMap(words=words, word_bits=bits, chip=chip, rate=rate).masks()[0], axis=1
        )
        of_chip.append(fails.sum())
        of_word.append(fails.sum(axis=1))
        of_column.append(fails.sum(axis=0))
    for counts, trials in ((of_chip, bits * words), (of_word, bits), (of_column, words)):
        found = np.concatenate([np.atleast_1d(one) for one in counts])
        mean, variance = trials * rate, trials * rate * (1 - rate)
        assert abs(found.mean() - mean) < 5 * np.sqrt(variance / len(found))
        spread = np.sqrt(2 / (len(found) - 1) + 1 / (variance * len(found)))
        assert abs(found.var(ddof=1) / variance - 1) < 5 * spread


def test_chips_share_faults_as_chance_has_it() -> None:
    rate, bits, words = 0.05, 64, 4096
    maps = [
        FaultMap(words=words, word_bits=bits, chip=chip, rate=rate).masks()[0] for chip in range(30)
    ]
    expected = rate**2 * bits * words
    for one, other in pairwise(maps):
        shared = np.bitwise_count(one & other).sum()
        assert abs(shared - expected) < 5 * np.sqrt(expected)
