"""Random cases for the conformance suite, of whatever kind the design is."""

import numpy as np

from archsim.machine.design import Design
from archsim.numbers import IntArray
from rtl.conformance import Case
from rtl.registry import verification_of

LONGEST_WORDS = 20_000
"""At all ports of a case."""


class Draw:
    """Small helpers on a seeded generator."""

    def __init__(self, *seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def whole(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return int(self.rng.integers(low, max(low, high) + 1))

    def one_of(self, *choices: int) -> int:
        """One of the choices."""
        return int(self.rng.choice(choices))

    def chance(self, probability: float) -> bool:
        """True with that probability."""
        return bool(self.rng.random() < probability)

    def gaps(self, words: int) -> IntArray:
        """Idle cycles before each word: none, rare and long, or everywhere, [words]."""
        rate, longest = ((0.0, 1), (0.05, 40), (0.4, 3), (0.9, 2))[self.whole(0, 3)]
        gaps = self.rng.integers(1, longest + 1, words) * (self.rng.random(words) < rate)
        return gaps.astype(np.int64)


def random_case(
    seed: int, number: int, design: Design, *, longest_words: int = LONGEST_WORDS
) -> Case:
    """Case `number` of a seed, on a design: a layer of awkward shape, and stalls on every port.

    Raises `InputError` for designs of a kind without RTL, and where no layer fits the design.
    """
    return verification_of(design).random_case(seed, number, design, longest_words)
