"""Figures that two ways of the model give, side by side."""

from typing import Any

import numpy as np
import numpy.typing as npt

Pair = tuple[int, int]
"""What either way says of one figure."""


def first_apart(one: npt.NDArray[np.integer[Any]], other: npt.NDArray[np.integer[Any]]) -> Pair:
    """The first two numbers that differ; how many, if there are not as many; (0, 0) if none do."""
    if one.shape != other.shape:
        return one.size, other.size
    at = np.argwhere(one != other)[:1]
    return (int(one[tuple(at[0])]), int(other[tuple(at[0])])) if len(at) else (0, 0)


__all__ = ["Pair", "first_apart"]
