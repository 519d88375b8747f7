"""The kernel behind `archsim.machines.scnn.addresses`, compiled by numba."""

from __future__ import annotations

import numpy as np

from archsim.kernels import kernel
from archsim.machines.scnn.kernels import BoolArray
from archsim.numbers import IntArray

Found = tuple[IntArray, IntArray, BoolArray, BoolArray, IntArray]
"""Starts [lists + 1], and of vectors held, valued, near and place, as `Activations` has them."""

Along = tuple[IntArray, IntArray]
"""Along an axis: of each PE the place of its first input at the first tap among those of its
addresses [PEs, phases]; how many these are [PEs]."""


@kernel(
    "(i8.2, i8.2, i8.1), i8.2, (i8.2, i8.1), (i8.2, i8.1), (int, int, int, int, int), "
    "(i8.1, i8.1, b1.2, b1.2, i8.2)"
)
def place_anywhere(
    lists: tuple[IntArray, IntArray, IntArray],
    origins: IntArray,
    rows: Along,
    columns: Along,
    coding: tuple[int, int, int, int, int],
    out: Found,
) -> None:
    """Lists by PE and block [lists], as they are read, by block and PE.

    lists: values and positions [vectors, lanes], -1 of none, and where each begins.  origins
    [phases, PEs]: what is added to a place.  coding: bits of a column in a position, and of a row;
    places from a row to the next; the last tap of rows and of columns.
    """
    (values, positions, begins), (starts, held, valued, near, place) = lists, out
    column_bits, row_bits, pitch, last_row, last_column = coding
    phases, pes = origins.shape
    blocks, to = (len(begins) - 1) // pes, 0
    for block in range(blocks):
        phase = block % phases
        for pe in range(pes):
            starts[block * pes + pe] = to
            own = pe * blocks + block
            for vector in range(begins[own], begins[own + 1]):
                count = 0
                for lane in range(values.shape[1]):
                    position = positions[vector, lane]
                    y = (position >> column_bits) & ((np.int64(1) << row_bits) - 1)
                    x = position & ((np.int64(1) << column_bits) - 1)
                    row, column = y + rows[0][pe, phase], x + columns[0][pe, phase]
                    here = values[vector, lane] != 0
                    count += int(position >= 0)
                    valued[to, lane] = here
                    here &= last_row <= row and row < rows[1][pe]
                    here &= last_column <= column and column < columns[1][pe]
                    near[to, lane] = here
                    place[to, lane] = origins[phase, pe] + y * pitch + x if here else 0
                held[to] = count
                to += 1
    starts[len(begins) - 1] = to


__all__ = ["place_anywhere"]
