"""How floats are summed, and the widths that follow from it.

Every product, and the accumulator, is a *term*: a sign, a significand that counts steps of a
power of two, and an exponent.  Exponents are kept as unsigned numbers with one bias for all terms,
`common_bias`; the exponent of a term of value zero is 0, which is below all others.

A term's exponent is that of its operands: of a product the sum of both, whether or not the
product of the significands (in [0, 4)) reaches 2 or, with subnormals, stays below 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from archsim.arithmetic.formats import FloatFormat
from archsim.errors import require, require_whole

__all__ = ["VOLTA_RULES", "FloatDatapath", "FloatRules"]

WIDEST_SUM = 60
"""Bits of the aligned sum, so that the model's int64 holds it with room to shift."""

ROUNDINGS = ("truncate", "nearest_even")


@dataclass(frozen=True, kw_only=True)
class FloatRules:
    """What IEEE 754 leaves to a fused sum.  The defaults are the tensor core of Volta (V100).

    aligned_fraction_bits: bits below the unit of the largest exponent to which every term is
        aligned; what is shifted out is dropped (towards zero).  23 on Volta, which is no extra
        bit in FP32; 24 on Turing and Ampere, 25 on Hopper.
    rounding: of the exact sum of aligned terms to the accumulator's format, once, at the end:
        "truncate" (towards zero; Volta with FP32) or "nearest_even" (Volta with FP16).
    accumulator_joins: whether the accumulator is aligned together with the products; if not, the
        sum of products is, once more, with the accumulator.
    subnormal_inputs, subnormal_outputs: if false, a subnormal counts as a zero of its sign.
    """

    aligned_fraction_bits: int = 23
    rounding: Literal["truncate", "nearest_even"] = "truncate"
    accumulator_joins: bool = True
    subnormal_inputs: bool = True
    subnormal_outputs: bool = True

    def __post_init__(self) -> None:
        require_whole(0, "not be negative", aligned_fraction_bits=self.aligned_fraction_bits)
        require(
            self.rounding in ROUNDINGS,
            f"rounding must be {' or '.join(ROUNDINGS)}, not {self.rounding!r}",
        )


VOLTA_RULES = FloatRules()


@dataclass(frozen=True, kw_only=True)
class FloatDatapath:
    """Widths and offsets of the sum of `length` products and an accumulator."""

    length: int
    operand: FloatFormat
    accumulator: FloatFormat
    rules: FloatRules

    def __post_init__(self) -> None:
        require(
            self.sum_bits <= WIDEST_SUM,
            f"the aligned sum must have at most {WIDEST_SUM} bits, not {self.sum_bits}: "
            "fewer products or aligned_fraction_bits",
        )

    @property
    def common_bias(self) -> int:
        """Bias of the exponents of all terms: the larger of the two that occur."""
        return max(2 * self.operand.bias, self.accumulator.bias)

    @property
    def product_offset(self) -> int:
        """What is added to the sum of two exponent fields."""
        return self.common_bias - 2 * self.operand.bias

    @property
    def accumulator_offset(self) -> int:
        """What is added to the accumulator's exponent field."""
        return self.common_bias - self.accumulator.bias

    @property
    def exponent_bits(self) -> int:
        """Of a term's exponent."""
        product = 2 * (self.operand.special_exponent - 1) + self.product_offset
        accumulator = self.accumulator.special_exponent - 1 + self.accumulator_offset
        return max(product, accumulator).bit_length()

    @property
    def product_fraction_bits(self) -> int:
        """Bits of a product's significand below its unit."""
        return 2 * self.operand.fraction_bits

    @property
    def product_bits(self) -> int:
        """Of a product's significand, in [0, 4)."""
        return 2 + self.product_fraction_bits

    @property
    def accumulator_bits(self) -> int:
        """Of the accumulator's significand, in [0, 2)."""
        return 1 + self.accumulator.fraction_bits

    @property
    def aligned_product_bits(self) -> int:
        """Signed bits of an aligned product."""
        return 3 + self.rules.aligned_fraction_bits

    @property
    def partial_bits(self) -> int:
        """Signed bits of the sum of the aligned products alone, as a tree of adders has them."""
        return self.aligned_product_bits + (self.length - 1).bit_length()

    @property
    def sum_bits(self) -> int:
        """Signed bits of the sum of all aligned terms: it never overflows."""
        fraction_bits = self.rules.aligned_fraction_bits
        product, accumulator = (4 << fraction_bits) - 1, (2 << fraction_bits) - 1
        return (self.length * product + accumulator).bit_length() + 1

    @property
    def top_exponent_offset(self) -> int:
        """Exponent field of the result, less the largest term exponent, if the magnitude of the
        sum has its leading one in its top bit, `sum_bits` - 2."""
        top = self.sum_bits - 2
        fraction_bits = self.rules.aligned_fraction_bits
        return top - fraction_bits + self.accumulator.bias - self.common_bias

    @property
    def underflow_bits(self) -> int:
        """How far the magnitude of the smallest sum lies below the frame of subnormals."""
        smallest = min(2 + self.product_offset, 1 + self.accumulator_offset)
        return max(1 - smallest - self.top_exponent_offset, 0)
