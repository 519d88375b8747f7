"""Random operands of a dot-product unit, aimed at its corners: for tests of model and hardware."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from archsim.arithmetic.dot_product import DotProduct
from archsim.arithmetic.float_datapath import FloatRules
from archsim.arithmetic.formats import FloatFormat
from archsim.numbers import IntArray

__all__ = ["RULES", "Operands", "every_operand", "random_operands"]

RULES = [
    FloatRules(),
    FloatRules(rounding="nearest_even"),
    FloatRules(aligned_fraction_bits=2),
    FloatRules(aligned_fraction_bits=1, rounding="nearest_even", accumulator_joins=False),
    FloatRules(aligned_fraction_bits=4, accumulator_joins=False),
    FloatRules(subnormal_inputs=False, rounding="nearest_even", aligned_fraction_bits=5),
    FloatRules(subnormal_outputs=False, rounding="nearest_even", aligned_fraction_bits=5),
]
"""Sets of rules which between them make every choice, with fewer and more bits than needed."""


class Operands(NamedTuple):
    """Patterns: a and b [n, k], c [n]."""

    a: IntArray
    b: IntArray
    c: IntArray


def every_operand(design: DotProduct) -> Operands:
    """Every combination of patterns: n = 2^(2 k · operand bits + accumulator bits)."""
    bits = design.operand.bits
    lanes = 2 * design.length
    number = np.arange(1 << (lanes * bits + design.accumulator.bits), dtype=np.int64)
    shifts = bits * np.arange(lanes)
    operands = (number[:, None] >> shifts) & ((1 << bits) - 1)
    return Operands(
        operands[:, : design.length], operands[:, design.length :], number >> (lanes * bits)
    )


def random_operands(design: DotProduct, count: int, seed: int) -> Operands:
    """`count` cases of each kind that the formats know, shuffled.

    Any patterns; the extreme patterns of the formats; for floats also exponents close together,
    at the bottom (subnormals) and at the top (overflow), and accumulators that cancel the products
    but for the last bits, with one lane or all of them in use.
    """
    rng = np.random.default_rng(seed)
    kinds: list[Callable[[DotProduct, int, np.random.Generator], Operands]] = [_any, _extreme]
    if isinstance(design.operand, FloatFormat):
        kinds += [_close, _bottom, _top, _cancelling, _opposite]
    made = [kind(design, count, rng) for kind in kinds]
    order = rng.permutation(count * len(kinds))
    return Operands(*(np.concatenate(column)[order] for column in zip(*made, strict=True)))


def _any(design: DotProduct, count: int, rng: np.random.Generator) -> Operands:
    lanes, length = 1 << design.operand.bits, design.length
    return Operands(
        rng.integers(0, lanes, (count, length)),
        rng.integers(0, lanes, (count, length)),
        rng.integers(0, 1 << design.accumulator.bits, count),
    )


def _extreme(design: DotProduct, count: int, rng: np.random.Generator) -> Operands:
    """Patterns around every change of meaning: ±0, ±1, the smallest and largest, ∞, NaN."""

    def around(form: object, bits: int) -> IntArray:
        half = 1 << (bits - 1)
        centres = [0, half]
        if isinstance(form, FloatFormat):
            one = form.bias << form.fraction_bits
            normal = 1 << form.fraction_bits
            centres += [x + s for x in (one, normal, form.infinity) for s in (0, half)]
        near = np.array([centre + step for centre in centres for step in (-1, 0, 1)])
        return near & ((1 << bits) - 1)

    operands = around(design.operand, design.operand.bits)
    shape = (count, design.length)
    accumulators = around(design.accumulator, design.accumulator.bits)
    return Operands(
        rng.choice(operands, shape), rng.choice(operands, shape), rng.choice(accumulators, count)
    )


def _floats(
    form: FloatFormat, shape: tuple[int, ...], lowest: IntArray, rng: np.random.Generator
) -> IntArray:
    """Any signs and fractions; exponent fields `lowest` to `lowest` + 3, as far as there are."""
    field = np.clip(lowest + rng.integers(0, 4, shape), 0, form.special_exponent - 1)
    fraction = rng.integers(0, 1 << form.fraction_bits, shape)
    fraction *= rng.integers(0, 4, shape) > 0
    return (rng.integers(0, 2, shape) * form.sign_mask) | (field << form.fraction_bits) | fraction


def _formats(design: DotProduct) -> tuple[FloatFormat, FloatFormat]:
    return design.datapath.operand, design.datapath.accumulator


def _close(design: DotProduct, count: int, rng: np.random.Generator) -> Operands:
    operand, accumulator = _formats(design)
    shape = (count, design.length)
    lowest = rng.integers(0, operand.special_exponent, (count, 1))
    a, b = (_floats(operand, shape, lowest, rng) for _ in range(2))
    unit = 2 * (lowest[:, 0] - operand.bias) + accumulator.bias
    spread = rng.integers(-design.datapath.sum_bits - 2, design.datapath.sum_bits + 2, count)
    return Operands(a, b, _floats(accumulator, (count,), unit + spread // 2, rng))


def _bottom(design: DotProduct, count: int, rng: np.random.Generator) -> Operands:
    operand, accumulator = _formats(design)
    shape = (count, design.length)
    low = np.zeros(count, np.int64)
    a = _floats(operand, shape, low[:, None], rng)
    b = _floats(operand, shape, rng.integers(0, operand.special_exponent, shape), rng)
    return Operands(a, b, _floats(accumulator, (count,), low, rng))


def _top(design: DotProduct, count: int, rng: np.random.Generator) -> Operands:
    operand, accumulator = _formats(design)
    shape = (count, design.length)
    top = np.full(count, operand.special_exponent - 3)
    a, b = (_floats(operand, shape, top[:, None], rng) for _ in range(2))
    c = _floats(accumulator, (count,), np.full(count, accumulator.special_exponent - 3), rng)
    return Operands(a, b, c)


def _cancelling(design: DotProduct, count: int, rng: np.random.Generator) -> Operands:
    """c is minus the sum of the products, or a neighbour of it."""
    operand, accumulator = _formats(design)
    a, b, _ = _close(design, count, rng)
    used = np.arange(design.length) < rng.integers(1, design.length + 1, (count, 1))
    a = np.where(used, a, 0)
    c = accumulator.encode(-(operand.decode(a) * operand.decode(b)).sum(axis=1))
    finite = (c & accumulator.infinity) != accumulator.infinity
    nudged = np.bitwise_xor(c, rng.integers(0, 4, count))
    return Operands(a, b, np.where(finite, nudged, c))


def _opposite(design: DotProduct, count: int, rng: np.random.Generator) -> Operands:
    """Products that cancel in pairs, beside a small accumulator."""
    operand, accumulator = _formats(design)
    a, b, c = _close(design, count, rng)
    pairs = design.length // 2
    a[:, pairs : 2 * pairs] = a[:, :pairs]
    b[:, pairs : 2 * pairs] = b[:, :pairs] ^ operand.sign_mask
    small = rng.integers(0, 2, count) == 0
    return Operands(a, b, np.where(small, c & accumulator.sign_mask, c))
