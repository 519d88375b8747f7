"""How rates differ over the columns of an array: laws of place, of which a fault map has one.

Columns: on two of three profiled chips (Stutz et al., "Bit Error Robustness for Energy-Efficient
DNN Accelerators", MLSys 2021, maps of 2048 x 128 and 8192 x 128 bits) faults gather in columns.
Rates of columns drawn from a Gamma distribution of shape 0.10 to 0.19 have the variance over mean
that those maps' pictures show; 0.82 of the faults of chip 2 at 1 % are from 0 to 1.  The third chip
of the same measurement is independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from archsim.errors import require
from archsim.memories.faulty.cell_hash import key_of, lane_draw, row_state

Floats = npt.NDArray[np.float64]

PROFILED_SHAPE = 0.15
PROFILED_ZERO_TO_ONE = 0.82

STEPS = 50
"""Halvings until a quantile is exact to 1e-12."""

LARGEST = 40.0
"""Beyond shape + 12 √shape by so much lies less than 2^−33 of the distribution."""


class Law(Protocol):
    """A law of place.

    uniform: all columns have one rate.
    """

    uniform: ClassVar[bool]

    def factors(self, chip: int, memory: str, columns: int) -> Floats:
        """[columns]: the rate of each over the mean rate."""
        ...


@dataclass(frozen=True, kw_only=True)
class Independent:
    """Every cell alike."""

    uniform: ClassVar[bool] = True

    def factors(self, chip: int, memory: str, columns: int) -> Floats:
        """Ones."""
        return np.ones(columns)


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The rate of a column is drawn from a Gamma distribution of mean 1 and this shape.

    Where factor times rate is above 1 the column fails whole, and the mean is below the rate.
    """

    shape: float = PROFILED_SHAPE

    uniform: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require(
            0.01 <= self.shape <= 100,
            f"column_shape must be from 0.01 to 100, not {self.shape:.12g}",
        )

    def factors(self, chip: int, memory: str, columns: int) -> Floats:
        """Quantiles of what the hash draws for each column, as if it were an address."""
        return _factors(self.shape, key_of(chip, f"{memory}/columns"), columns)


@lru_cache(maxsize=256)
def _factors(shape: float, key: int, columns: int) -> Floats:
    state = row_state(np.arange(columns, dtype=np.uint32), key)
    drawn = lane_draw(state, 0).astype(np.float64)
    found = gamma_quantile(shape, (drawn + 0.5) / (1 << 32)) / shape
    found.flags.writeable = False
    return found


def gamma_quantile(shape: float, shares: Floats) -> Floats:
    """x with P(shape, x) = share: the inverse of the regularised lower incomplete gamma function.

    By halving in the logarithm of x, over its series (Abramowitz and Stegun, 6.5.29), for shapes
    up to 100 and shares up to 1 − 2^−33.
    """
    largest = LARGEST + shape + 12 * math.sqrt(shape)
    low = np.full(shares.shape, -700.0)
    high = np.full(shares.shape, math.log(largest))
    for _ in range(STEPS):
        middle = (low + high) / 2
        below = _lower_gamma(shape, middle) < shares
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.exp((low + high) / 2)


def _lower_gamma(shape: float, log_x: Floats) -> Floats:
    """P(shape, x), of the logarithm of x."""
    x = np.exp(log_x)
    term = np.full(x.shape, 1 / shape)
    total, number = term.copy(), 1
    while (term > 1e-16 * total).any():
        term = term * x / (shape + number)
        total += term
        number += 1
    return np.exp(shape * log_x - x + np.log(total) - math.lgamma(shape))
