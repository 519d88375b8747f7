"""Sums of floats in the order in which lanes take their products; compiled by numba.

Which products a sum takes in together is what the window chooses in a cycle
(`archsim.machines.sparsetrain.kernels`); what they add up to is the arithmetic of
`archsim.arithmetic.float_dot`, by the same steps in float64 (`_joined` says why they are exact).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from archsim.arithmetic.float_kernels import (
    LOW,
    Unit,
    over,
    pattern_of,
    power_of,
    rounded,
    term_of,
)
from archsim.kernels import inlined, kernel
from archsim.machines.sparsetrain.kernels import (
    Outputs,
    Window,
    Words,
    bundled_words,
    choose,
    ones,
)
from archsim.machines.sparsetrain.tiling import COLUMN, COLUMNS, GROUP, ROW, ROWS, STEP, STEPS
from archsim.numbers import IntArray

Singles = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

Operands = tuple[Words, Words, Singles, Singles]
"""Of rows and of columns the bits [groups, vectors, steps] (`LayerWork.lane_words`) and the values
[groups, vectors, steps · lanes of a segment]."""


@inlined
def _joined(partial: float, own: float, held: float, unit: Unit) -> float:
    """A sum that takes in products, which are aligned to the power `own` and added up.

    Every step is exact but those that cut and round, as they should: a product has 16 bits, an
    aligned one is a whole number of steps 2^(E - F), 64 of them have at most 33 bits, and scaling
    is by powers of two within the range of float64.  ∞ and NaN go through the same operations, by
    IEEE 754.  A sum of -0, which only rounding makes, is +0 a cycle later.
    """
    c, c_power = term_of(held, unit)
    largest = max(own, c_power)
    total = 0.0 + np.trunc(partial * (own * over(largest, 0)))
    total += np.trunc(c * over(largest, unit.aligned_bits))
    return rounded(total * (largest * unit.aligned_step), unit)


@inlined
def _taken(
    taken: Words, at: int, lanes: int, operands: tuple[Doubles, Doubles], found: Doubles
) -> tuple[int, float]:
    """The products [2, products] that lanes took in a cycle, with their powers: into `found`; how
    many they are, and the largest power.

    taken: pairs of each row of the window, of one segment alone.  at: the first of these rows.
    """
    row, column = operands
    count, largest = 0, LOW
    for ahead in range(len(taken)):
        word = taken[ahead]
        while word:
            low = word & (~word + np.uint64(1))
            word ^= low
            value = (at + ahead) * lanes + ones(low - np.uint64(1))
            power = row[1, value] * column[1, value]
            found[0, count], found[1, count] = row[0, value] * column[0, value], power
            largest = max(largest, power)
            count += 1
    return count, largest


@inlined
def _dot(
    words: tuple[Words, Words],
    operands: tuple[Doubles, Doubles],
    held: Doubles,
    work: tuple[Words, Words, Doubles],
    window: Window,
    unit: Unit,
) -> None:
    """Takes the products of two vectors in, a cycle after the other: into each segment's sum.

    words: pairs of each step that are wanted; of each segment its lanes.  held: sums [segments].
    operands: of the row and of the column (`_spread`).  work: what the window holds, what is taken
    of it, products: to be used.
    """
    pairs, segments = words
    left, taken, found = work
    rows, whole, steps = window[4], window[5], len(pairs)
    for ahead in range(rows):
        left[ahead] = pairs[ahead] if ahead < steps else np.uint64(0)
    before = np.zeros(rows, np.uint64)
    head = 0
    while head < steps:
        for ahead in range(rows):
            before[ahead] = left[ahead]
        done = choose(left, window)
        for segment in range(len(segments)):
            for ahead in range(rows):
                taken[ahead] = (before[ahead] ^ left[ahead]) & segments[segment]
            count, largest = _taken(taken, head, whole, operands, found)
            scale, partial = over(largest, unit.aligned_bits), 0.0
            for n in range(count):
                partial += np.trunc(found[0, n] * scale)
            held[segment] = _joined(partial, largest, held[segment], unit)
        head += done
        for ahead in range(rows):
            come = head + ahead
            if ahead + done < rows:
                left[ahead] = left[ahead + done]
            else:
                left[ahead] = pairs[come] if come < steps else np.uint64(0)


@inlined
def _spread(values: Singles, first: int, ring: int, into: Doubles, unit: Unit) -> None:
    """Values of a vector's steps and their powers, into lanes from the first on: [2, values]."""
    lanes = into.shape[1] // (len(values) // ring)
    for value in range(len(values)):
        at = value // ring * lanes + first + value % ring
        into[0, at] = values[value]
        into[1, at] = power_of(values[value], unit.least_normal)


@kernel(
    "(u8.3, u8.3, f4.3, f4.3), (b1.3, i8.3, int), i8.2, (i8.1, i8.1, u8.1, u8.1, int, int, int), "
    "(int, Unit(int, int, int, float, float, float, float, float, float, float, bool)), f8.3"
)
def block_sums(
    operands: Operands,
    outputs: Outputs,
    blocks: IntArray,
    window: Window,
    machine: tuple[int, Unit],
    sums: Doubles,
) -> None:
    """Takes the products of blocks into the sums [groups, rows, columns], in the blocks' order.

    machine: PEs; the arithmetic.
    """
    row_words, column_words, row_values, column_values = operands
    needed, order, tile_rows = outputs
    pes, unit = machine
    lanes, segments = window[5], window[6]
    ring = lanes // segments
    sizes = np.array([pes, segments, ring])
    low = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - ring)
    masks = np.zeros(segments, np.uint64)
    for own in range(segments):
        masks[own] = low << np.uint64(own * ring)
    left, taken = np.zeros(window[4], np.uint64), np.zeros(window[4], np.uint64)
    work = (left, taken, np.zeros((2, lanes)))
    held = np.zeros(segments)
    for number in range(len(blocks)):
        block = blocks[number]
        group, first, steps = block[GROUP], block[STEP], block[STEPS]
        dealt = order[group, block[ROW] // tile_rows]
        bundles = bundled_words(column_words[group], dealt, block, sizes)
        span = (first * ring, (first + steps) * ring)
        columns = np.zeros((len(bundles), 2, steps * lanes))
        for place in range(block[COLUMNS]):
            vector = place // (pes * segments) * pes + place % pes
            own = place // pes % segments
            values = column_values[group, dealt[block[COLUMN] + place], span[0] : span[1]]
            _spread(values, own * ring, ring, columns[vector], unit)
        own_row, pairs = np.zeros((2, steps * lanes)), np.zeros(steps, np.uint64)
        for row in range(block[ROW], block[ROW] + block[ROWS]):
            for own in range(segments):
                values = row_values[group, row, span[0] : span[1]]
                _spread(values, own * ring, ring, own_row, unit)
            for vector in range(len(bundles)):
                at = vector // pes * pes * segments + vector % pes
                wanted = np.uint64(0)
                for own in range(segments):
                    place = at + own * pes
                    if place < block[COLUMNS] and (
                        not needed.size or needed[group, row, block[COLUMN] + place]
                    ):
                        wanted |= masks[own]
                        held[own] = sums[group, row, dealt[block[COLUMN] + place]]
                if wanted == 0:
                    continue
                for step in range(steps):
                    pairs[step] = (
                        row_words[group, row, first + step] & bundles[vector, step] & wanted
                    )
                _dot((pairs, masks), (own_row, columns[vector]), held, work, window, unit)
                for own in range(segments):
                    if wanted & masks[own]:
                        sums[group, row, dealt[block[COLUMN] + at + own * pes]] = held[own]


@kernel("f8.1, Unit(int, int, int, float, float, float, float, float, float, float, bool), i8.1")
def patterns(values: Doubles, unit: Unit, found: IntArray) -> None:
    """Of numbers of the accumulator's format."""
    for at in range(len(values)):
        found[at] = pattern_of(values[at], unit)


__all__ = ["block_sums", "patterns"]
