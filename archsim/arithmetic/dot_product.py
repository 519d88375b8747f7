"""The dot-product unit of tensor cores and vector MACs: o = c + Σ a_i · b_i, pipelined.

The default is the four-element dot-product unit of NVIDIA's Volta, with four pipeline stages:
one multiplies and three accumulate (Raihan, Goli, Aamodt, "Modeling Deep Learning Accelerator
Enabled GPUs", ISPASS 2019).  How it rounds is not documented by NVIDIA; docs/contracts/
dot-product.md lists what measurements have established, and what nobody has published.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from archsim.arithmetic.float_datapath import VOLTA_RULES, FloatDatapath, FloatRules
from archsim.arithmetic.float_dot import float_dot
from archsim.arithmetic.formats import FP16, FP32, INT8, INT32, FloatFormat, IntegerFormat
from archsim.errors import InputError, require, require_positive
from archsim.numbers import IntArray

__all__ = ["INT8_DOT", "VOLTA_FP16", "VOLTA_FP32", "DotProduct"]

Format = FloatFormat | IntegerFormat


@dataclass(frozen=True, kw_only=True)
class DotProduct:
    """A unit of `length` multipliers (k) and an accumulator.

    operand: format of a and b.  accumulator: format of c and the result.  Both are floats, with
    `rules` for their sum, or both integers, with `rules` None: then sums wrap around.
    """

    length: int = 4
    operand: Format = FP16
    accumulator: Format = FP32
    rules: FloatRules | None = VOLTA_RULES

    def __post_init__(self) -> None:
        require_positive(length=self.length)
        floats = isinstance(self.operand, FloatFormat)
        require(
            floats == isinstance(self.accumulator, FloatFormat),
            "operand and accumulator must both be floats or both integers, "
            f"not {self.operand} and {self.accumulator}",
        )
        if floats:
            require(self.rules is not None, "rules must be given for floats")
            _ = self.datapath
        else:
            require(self.rules is None, "rules must be None for integers")

    @property
    def tree_levels(self) -> int:
        """⌈log2 k⌉: levels of adders between the products and their sum."""
        return (self.length - 1).bit_length()

    @property
    def latency_cycles(self) -> int:
        """2 + ⌈log2 k⌉: multiply, a stage a level of the adder tree, accumulate (and round)."""
        return 2 + self.tree_levels

    @property
    def interval_cycles(self) -> int:
        """From one start to the next: the unit takes operands every cycle and never stalls."""
        return 1

    @cached_property
    def datapath(self) -> FloatDatapath:
        """Widths of a unit of floats.  Raises InputError for one of integers."""
        operand, accumulator, rules = self.operand, self.accumulator, self.rules
        if (
            not isinstance(operand, FloatFormat)
            or not isinstance(accumulator, FloatFormat)
            or rules is None
        ):
            raise InputError("a unit of integers has no datapath of floats")
        return FloatDatapath(
            length=self.length, operand=operand, accumulator=accumulator, rules=rules
        )

    def compute(self, a: IntArray, b: IntArray, c: IntArray) -> IntArray:
        """Patterns of c + Σ a · b, int64 [n], of patterns a and b [n, k] and c [n].

        Raises InputError for other shapes, and for what is not a pattern of its format.
        """
        shape = (len(c), self.length)
        for name, patterns, form, wanted in (
            ("a", a, self.operand, shape),
            ("b", b, self.operand, shape),
            ("c", c, self.accumulator, shape[:1]),
        ):
            _check(name, patterns, form.bits, wanted)
        if isinstance(self.operand, FloatFormat):
            return float_dot(self.datapath, a, b, c)
        sums = c + (self.operand.decode(a) * self.operand.decode(b)).sum(axis=1)
        return sums & ((1 << self.accumulator.bits) - 1)


def _check(name: str, patterns: IntArray, bits: int, shape: tuple[int, ...]) -> None:
    require(patterns.shape == shape, f"{name} must be of shape {shape}, not of {patterns.shape}")
    require(patterns.dtype == np.int64, f"{name} must be int64, not {patterns.dtype}")
    outside = (patterns < 0) | (patterns >> bits != 0)
    if outside.any():
        raise InputError(
            f"{name} must hold patterns of {bits} bits, 0 to {(1 << bits) - 1}, "
            f"not {patterns[outside][0]}"
        )


VOLTA_FP32 = DotProduct()
"""FP16 products, FP32 accumulator: Volta's mixed-precision mode."""

VOLTA_FP16 = DotProduct(accumulator=FP16, rules=FloatRules(rounding="nearest_even"))
"""FP16 products, FP16 accumulator."""

INT8_DOT = DotProduct(operand=INT8, accumulator=INT32, rules=None)
"""INT8 products, INT32 accumulator that wraps.  Volta's tensor core has no integer mode."""
