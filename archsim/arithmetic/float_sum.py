"""Floating sums beside the dot products: partial sums added up, and sums made an ofmap.

Both are dot products with factors of 1.0, so that one datapath, its model and its proof serve; in
hardware they have no multipliers (`FloatDotProduct`, `by_one`):

    accumulate    o = held + sums · 1.0              `adder`
    output        o = 0 + sums · 1.0 + bias · 1.0    `narrowing`; with ReLU `FloatOutput`

How far they are from correctly rounded (p is the accumulator's `fraction_bits`, F the aligned ones
and E the exponent of the larger term, at least that of the smallest normal number):

* `adder`, to nearest, F ≥ 2 p + 2: always correctly rounded.  With fewer bits, or truncating, the
  smaller term loses less than 2^(E - F) (the larger one nothing if F ≥ p), and the sum less than a
  unit of its last place, or half of it, in rounding.
* `narrowing`: correctly rounded, but for one case: a term lies exactly half-way between two numbers
  of the ofmap, and the other is not 0 but below 2^(E - F).  Then it is dropped, and the tie goes to
  even.  The case needs an ofmap with fewer fraction bits or less range than the accumulator, and
  an accumulator with more range than F bits hold: FP32 and BF16 have it (F = 55), FP16 (F = 39
  holds every sum) has not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from archsim.arithmetic.dot_product import DotProduct
from archsim.arithmetic.float_datapath import WIDEST_SUM, FloatRules
from archsim.arithmetic.formats import FloatFormat
from archsim.numbers import IntArray

__all__ = [
    "FloatOutput",
    "accumulate_latency_cycles",
    "add_floats",
    "adder",
    "narrowing",
    "one_of",
    "widest_alignment_bits",
]

BLOCK = 1 << 14
"""Sums that are rounded at a time, so that what lies between stays in the processor's cache."""


def one_of(form: FloatFormat) -> int:
    """The pattern of 1.0."""
    return form.bias << form.fraction_bits


def adder(accumulator: FloatFormat, rules: FloatRules) -> DotProduct:
    """The unit of o = c + a · 1.0: one product, all patterns of the accumulator.

    `accumulator_joins` makes no difference: of one product nothing is cut twice.  It is symmetric:
    c + a = a + c.
    """
    return DotProduct(length=1, operand=accumulator, accumulator=accumulator, rules=rules)


def add_floats(unit: DotProduct, held: IntArray, sums: IntArray) -> IntArray:
    """Patterns held + sums of an `adder`, int64 of any shape that both have.

    Raises InputError for what is not a pattern of the accumulator.
    """
    one = np.full((held.size, 1), one_of(unit.datapath.accumulator), np.int64)
    return unit.compute(sums.reshape(-1, 1), one, held.reshape(-1)).reshape(held.shape)


def accumulate_latency_cycles(unit: DotProduct) -> int:
    """1 + latency of the adder: from a row's token to the write of what it held plus its sums.

    The token is a cycle ahead of the sums, for the read.  A row may come again as many cycles
    later: before that, it is not yet written.
    """
    return 1 + unit.latency_cycles


def widest_alignment_bits(form: FloatFormat, length: int) -> int:
    """Aligned fraction bits for a sum of `length` numbers of the format, as exact as can be.

    As many as lie between the unit of its largest exponent and its smallest subnormal, so that
    every sum is exact; but no more than WIDEST_SUM leaves, which is 58 - ⌊log2(4 length + 2)⌋.
    """
    exact = form.special_exponent - 2 + form.fraction_bits
    return min(exact, WIDEST_SUM - 1 - (4 * length + 2).bit_length())


def narrowing(accumulator: FloatFormat, operand: FloatFormat) -> DotProduct:
    """The unit of o = 0 + a_0 · 1.0 + a_1 · 1.0: two patterns of `accumulator`, one of `operand`.

    Rounded to nearest, once.  Aligned with 55 bits from FP32 and BF16, 39 from FP16.
    """
    rules = FloatRules(
        aligned_fraction_bits=widest_alignment_bits(accumulator, 2), rounding="nearest_even"
    )
    return DotProduct(length=2, operand=accumulator, accumulator=operand, rules=rules)


@dataclass(frozen=True, kw_only=True)
class FloatOutput:
    """o = relu(sums + bias), from the accumulator's format to the ofmap's, rounded once.

    ReLU: what has its sign bit set becomes +0.  A NaN stays one, since the one NaN that comes out
    of arithmetic has no sign.  A sum of 0 is +0.
    """

    accumulator: FloatFormat
    ofmap: FloatFormat

    @cached_property
    def unit(self) -> DotProduct:
        """The dot-product unit that adds and rounds."""
        return narrowing(self.accumulator, self.ofmap)

    @property
    def latency_cycles(self) -> int:
        """Of the unit: 2 + ⌈log2 2⌉ = 3.  ReLU is combinational behind it."""
        return self.unit.latency_cycles

    def compute(self, sums: IntArray, bias: IntArray | int, relu: bool) -> IntArray:
        """Patterns of the ofmap, int64 of the shape of sums, from patterns of the accumulator.

        bias: of a shape that broadcasts to that of sums; 0 is the pattern of +0, no bias.
        Raises InputError for what is not a pattern of the accumulator.
        """
        offsets = np.broadcast_to(np.asarray(bias, np.int64), sums.shape).reshape(-1)
        flat, answer = sums.reshape(-1), np.empty(sums.size, np.int64)
        ones = np.full((BLOCK, 2), one_of(self.accumulator), np.int64)
        none = np.zeros(BLOCK, np.int64)
        for first in range(0, sums.size, BLOCK):
            here = slice(first, min(first + BLOCK, sums.size))
            terms = np.stack([flat[here], offsets[here]], axis=-1)
            answer[here] = self.unit.compute(terms, ones[: len(terms)], none[: len(terms)])
        answer = answer.reshape(sums.shape)
        if not relu:
            return answer
        return np.where(
            answer & self.ofmap.sign_mask, 0, answer
        )  # a NaN that comes out has no sign
