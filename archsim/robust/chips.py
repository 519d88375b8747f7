"""A chip's persistent bit errors, where its weights lie one behind the other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from archsim.robust.random_flips import require_error_rate


def chip_flips(chip: int, count: int, bits: int, rate: float) -> npt.NDArray[np.uint8]:
    """For each of `count` codes, its bits that are wrong on this chip at this rate.

    Persistent: those at a lower rate are among those at a higher one.
    """
    require_error_rate(rate)
    places = np.arange(count * bits, dtype=np.uint64).reshape(count, bits)
    drawn = _mixed(places + _mixed(np.array([chip], np.uint64)))
    wrong = (drawn >> np.uint64(32)) < np.uint64(round(rate * 2**32))
    return (wrong << np.arange(bits, dtype=np.uint8)).sum(axis=1, dtype=np.uint8)


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64's output function."""
    with np.errstate(over="ignore"):
        z = values + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


__all__ = ["chip_flips"]
