"""The float datapath with arrays: unpack, multiply, align, sum, round, pack.

Integers only.  A term's value is ±significand · 2^(exponent - common_bias - fraction_bits).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from archsim.arithmetic.float_datapath import FloatDatapath
from archsim.arithmetic.formats import FloatFormat
from archsim.numbers import IntArray

__all__ = ["float_dot"]

Flags = npt.NDArray[np.bool_]

_FURTHEST = 62
"""No shift of an int64 is longer; every magnitude is shorter."""


@dataclass(frozen=True)
class _Terms:
    """Signed terms of any shape, finite or not; each significand has `fraction_bits` below 1."""

    negative: Flags
    exponent: IntArray
    significand: IntArray
    fraction_bits: int
    infinite: Flags
    nan: Flags

    def aligned(self, largest: IntArray, fraction_bits: int) -> IntArray:
        """± ⌊significand · 2^(exponent - largest)⌋ with `fraction_bits` below the unit."""
        gained = max(fraction_bits - self.fraction_bits, 0)
        lost = max(self.fraction_bits - fraction_bits, 0)
        distance = np.minimum(largest - self.exponent + lost, _FURTHEST)
        magnitude = (self.significand << gained) >> distance
        return np.where(self.negative, -magnitude, magnitude)


def float_dot(datapath: FloatDatapath, a: IntArray, b: IntArray, c: IntArray) -> IntArray:
    """Patterns of c + Σ a · b: a, b [n, k] of the operand, c and the answer [n] of the
    accumulator."""
    subnormals = datapath.rules.subnormal_inputs
    x, y = (_unpacked(datapath.operand, each, subnormals) for each in (a, b))
    products = _products(datapath, x, y)
    c_term = _unpacked(datapath.accumulator, c, subnormals)
    c_term = _offset(c_term, datapath.accumulator_offset)
    total, largest = _sum(datapath, products, c_term)
    packed = _packed(datapath, total, largest)
    return _with_specials(datapath.accumulator, packed, products, c_term)


def _unpacked(form: FloatFormat, patterns: IntArray, subnormals: bool) -> _Terms:
    """Patterns as terms with the format's own bias; a subnormal has the exponent 1, a zero 0."""
    field = (patterns >> form.fraction_bits) & form.special_exponent
    fraction = patterns & ((1 << form.fraction_bits) - 1)
    significand = np.where(field > 0, fraction + (1 << form.fraction_bits), fraction)
    if not subnormals:
        significand = np.where(field > 0, significand, 0)
    special = field == form.special_exponent
    return _Terms(
        negative=(patterns & form.sign_mask) != 0,
        exponent=np.where(significand > 0, np.maximum(field, 1), 0),
        significand=significand,
        fraction_bits=form.fraction_bits,
        infinite=special & (fraction == 0),
        nan=special & (fraction != 0),
    )


def _offset(terms: _Terms, offset: int) -> _Terms:
    """The same with the common bias; what is zero keeps the exponent 0."""
    exponent = np.where(terms.significand > 0, terms.exponent + offset, 0)
    return replace(terms, exponent=exponent)


def _products(datapath: FloatDatapath, x: _Terms, y: _Terms) -> _Terms:
    """The exact products; 0 · ∞ is NaN."""
    significand = x.significand * y.significand
    infinite = x.infinite | y.infinite
    product = _Terms(
        negative=x.negative ^ y.negative,
        exponent=x.exponent + y.exponent,
        significand=significand,
        fraction_bits=datapath.product_fraction_bits,
        infinite=infinite,
        nan=x.nan | y.nan | (infinite & (significand == 0)),
    )
    return _offset(product, datapath.product_offset)


def _sum(datapath: FloatDatapath, products: _Terms, c: _Terms) -> tuple[IntArray, IntArray]:
    """The sum of aligned terms [n], and the exponent of its unit."""
    fraction_bits = datapath.rules.aligned_fraction_bits
    of_products = products.exponent.max(axis=1)
    largest = np.maximum(of_products, c.exponent)
    if datapath.rules.accumulator_joins:
        total = products.aligned(largest[:, None], fraction_bits).sum(axis=1)
    else:
        partial = products.aligned(of_products[:, None], fraction_bits).sum(axis=1)
        magnitude = np.abs(partial) >> np.minimum(largest - of_products, _FURTHEST)
        total = np.sign(partial) * magnitude
    return total + c.aligned(largest, fraction_bits), largest


def _packed(datapath: FloatDatapath, total: IntArray, largest: IntArray) -> IntArray:
    """The sum as patterns: normalised and rounded once; a sum of 0 is +0, an overflow ±∞."""
    form, rules = datapath.accumulator, datapath.rules
    magnitude = np.abs(total)
    leading = np.frexp(magnitude.astype(np.float64))[1].astype(np.int64) - 1
    leading -= magnitude < (np.int64(1) << np.maximum(leading, 0))  # float64 may have rounded up
    unit = largest - datapath.common_bias - rules.aligned_fraction_bits
    field = np.maximum(leading + unit + form.bias, 1)
    dropped = field - form.bias - form.fraction_bits - unit
    kept = magnitude << np.clip(-dropped, 0, _FURTHEST) >> np.clip(dropped, 0, _FURTHEST)
    if rules.rounding == "nearest_even":
        kept += _rounds_up(magnitude, kept, np.clip(dropped, 0, _FURTHEST))
    pattern = np.minimum(((field - 1) << form.fraction_bits) + kept, form.infinity)
    pattern = np.where(magnitude == 0, 0, pattern)
    if not rules.subnormal_outputs:
        pattern = np.where(pattern >> form.fraction_bits, pattern, 0)
    return np.where(total < 0, pattern | form.sign_mask, pattern)


def _rounds_up(magnitude: IntArray, kept: IntArray, dropped: IntArray) -> IntArray:
    """1 where the dropped bits are more than half a unit, or half of it above an odd number."""
    rest = magnitude & ((np.int64(1) << dropped) - 1)
    half = (np.int64(1) << dropped) >> 1
    above = (rest > half) | ((rest == half) & (kept & 1 == 1))
    return ((dropped > 0) & above).astype(np.int64)


def _with_specials(form: FloatFormat, packed: IntArray, products: _Terms, c: _Terms) -> IntArray:
    """NaN for a NaN among the terms or infinities of both signs, else ±∞ for an infinity."""
    nan = products.nan.any(axis=1) | c.nan
    positive = (products.infinite & ~products.negative).any(axis=1) | (c.infinite & ~c.negative)
    negative = (products.infinite & products.negative).any(axis=1) | (c.infinite & c.negative)
    packed = np.where(positive, form.infinity, packed)
    packed = np.where(negative, form.infinity | form.sign_mask, packed)
    return np.where(nan | (positive & negative), form.nan, packed)
