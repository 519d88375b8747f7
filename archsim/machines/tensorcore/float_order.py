"""In which order a core of floats sums the products of an output: the elements of its filters."""

from __future__ import annotations

import numpy as np

from archsim.layer.problem import Problem
from archsim.numbers import IntArray


def elements(problem: Problem, channel_tile: int, length: int) -> tuple[IntArray, IntArray]:
    """Elements of a filter [R, S, C] in order, -1 where a chunk is filled up; the tiles' ends."""
    rows, columns = problem.kernel_height, problem.kernel_width
    shape = (rows, columns, problem.channels)
    every = np.arange(rows * columns * problem.channels).reshape(shape)
    runs = rows if problem.dilation_width == 1 else rows * columns
    parts: list[IntArray] = []
    for first in range(0, problem.channels, channel_tile):
        run = every[:, :, first : first + channel_tile].reshape(runs, -1)
        filled = np.pad(run, ((0, 0), (0, -run.shape[1] % length)), constant_values=-1)
        parts.append(filled.reshape(-1))
    return np.concatenate(parts), np.cumsum([len(part) for part in parts])


def block_elements(problem: Problem, groups: int, length: int) -> list[tuple[IntArray, IntArray]]:
    """`elements` of every group of a block, -1 also where another group's channels lie.

    Of chunks without an element of the group that follow each other one is kept: with products
    of 0 a sum is rounded once, and then stays.
    """
    rows, columns = problem.kernel_height, problem.kernel_width
    every = np.arange(rows * columns * problem.channels).reshape(rows, columns, 1, -1)
    runs = rows if problem.dilation_width == 1 else rows * columns
    found: list[tuple[IntArray, IntArray]] = []
    for group in range(groups):
        own = np.full((rows, columns, groups, problem.channels), -1)
        own[:, :, group : group + 1] = every
        run = own.reshape(runs, -1)
        filled = np.pad(run, ((0, 0), (0, -run.shape[1] % length)), constant_values=-1)
        chunks = filled.reshape(-1, length)
        empty = (chunks < 0).all(axis=1)
        kept = chunks[~(empty & np.roll(empty, 1)) | (np.arange(len(chunks)) == 0)].reshape(-1)
        found.append((kept, np.array([len(kept)])))
    return found
