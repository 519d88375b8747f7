"""Small helpers on a seeded generator, for cases."""

import numpy as np

from archsim.numbers import IntArray


class Draw:
    """Small helpers on a seeded generator."""

    def __init__(self, *seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def whole(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return int(self.rng.integers(low, max(low, high) + 1))

    def one_of(self, *choices: int) -> int:
        """One of the choices, which are whole."""
        assert all(int(choice) == choice for choice in choices), choices
        return int(self.rng.choice(choices))

    def chance(self, probability: float) -> bool:
        """True with that probability."""
        return bool(self.rng.random() < probability)

    def gaps(self, words: int) -> IntArray:
        """Idle cycles before each word: none, rare and long, or everywhere, [words]."""
        rate, longest = ((0.0, 1), (0.05, 40), (0.4, 3), (0.9, 2))[self.whole(0, 3)]
        gaps = self.rng.integers(1, longest + 1, words) * (self.rng.random(words) < rate)
        return gaps.astype(np.int64)
