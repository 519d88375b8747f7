"""The output of a layer as vectors of the next: its scales are found while the values leave.

For the sum of channel c, with a bias and a multiplier a channel,

    z = ⌊((sum + bias[c]) · multiplier[c] + 2^(shift−1)) / 2^shift⌋     (shift 0 rounds nothing)

then ReLU if asked, then limited to ±(Qmax · Smax), or from 0 if the format is unsigned.  Over the
V channels of a vector

    top = max |z|      s = ⌈top / Qmax⌉      q = sign(z) · ⌊(2|z| + s) / (2s)⌋

so that z ~ q · s: the nearest multiple of s, half away from zero.  Qmax is the largest value of the
format and Smax its largest scale, so s has M bits.  A vector of zeros has the scale 0 and values 0.
As s ≥ top / Qmax, no |q| is beyond Qmax: nothing clips behind the limit of z.

This is not eq. 7c and 7g of VS-Quant (arXiv:2102.04503v1), which `archsim.codecs.vsquant` has:
there x is divided by the scale before that is rounded, and the scale is rounded to nearest, so that
the largest value of a vector may stand for less than it was.  Here the value is divided by what
will multiply it, so that the error is at most s / 2, and hardware needs only the reciprocals of
2^M − 1 whole numbers.  The paper's gamma is in the multipliers and in the next layer's.

Without scales there is only z, saturated to the N bits (from 0 if unsigned): a multiplier a channel
is the whole of it.

Hardware divides with a multiplier and a shift, ⌊x / d⌋ = ⌊x · ⌈2^k / d⌉ / 2^k⌋ for all x that can
come (Granlund and Montgomery, "Division by Invariant Integers using Multiplication", PLDI 1994):
`Division` has the constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np

from archsim.codecs.vsquant import VectorFormat
from archsim.errors import InputError, require, require_positive, require_whole
from archsim.kernels import kernel
from archsim.numbers import IntArray, ceil_div

__all__ = ["Division", "VectorOutput", "division"]

WIDEST_PRODUCT = 62
"""Bits of (sum + bias) · multiplier, so that the half that rounds it stays within 64."""

LARGEST_SHIFT = 63
"""That of a command's field."""


@dataclass(frozen=True, kw_only=True)
class Division:
    """⌊x / d⌋ = (x · multipliers[n]) >> shift for the n-th divisor d; a divisor 0 has the 0."""

    multipliers: tuple[int, ...]
    shift: int

    @property
    def bits(self) -> int:
        """Bits of the largest multiplier."""
        return max(self.multipliers).bit_length()


def division(divisors: IntArray, largest: IntArray) -> Division:
    """The constants with the smallest shift that divide every 0 ≤ x ≤ largest[n] exactly.

    Both int64 [n], divisors positive or 0 (which gets the multiplier 0).  With
    e = d · ⌈2^k / d⌉ − 2^k, so 0 ≤ e < d, the answer for x is right if and only if
    x · e < (d − x mod d) · 2^k.  Of all x below the last multiple of d this is hardest for the
    largest with x mod d = d − 1, and of those above it for the last.  2^k > x · (d − 1) suffices,
    which is the bound of Granlund and Montgomery.  d · largest must be below 2^62.
    """
    d = np.maximum(divisors, 1)
    full = (largest + 1) // d * d - 1
    for shift in range(63):
        multipliers = -(-(1 << shift) // d)
        excess = multipliers * d - (1 << shift)
        below = np.maximum(full, 0) * excess >> shift == 0
        last = largest * excess >> shift < d - largest % d
        if bool((below & last).all()):
            known = np.where(divisors == 0, 0, multipliers)
            return Division(multipliers=tuple(known.tolist()), shift=shift)
    raise InputError(f"d · largest must be below 2^62, not {max((d * largest).tolist())}")


@dataclass(frozen=True, kw_only=True)
class VectorOutput:
    """What becomes of sums: values of `form`, and a scale for every vector of them.

    form: of the next layer's activations.  lanes: channels a row, which leave side by side.
    multiplier_bits: of the unsigned multiplier of a channel.  sum_bits: of sum and bias, signed.

    Raises InputError for floating scales, for V that is no multiple of the lanes and does not
    divide them, and where (sum + bias) · multiplier would need more than 62 bits.
    """

    form: VectorFormat
    lanes: int
    sum_bits: int
    multiplier_bits: int = 16

    def __post_init__(self) -> None:
        require_positive(lanes=self.lanes, multiplier_bits=self.multiplier_bits)
        require_whole(2, "be at least 2", sum_bits=self.sum_bits)
        bits = self.product_bits
        require(
            bits <= WIDEST_PRODUCT,
            f"(sum + bias) · multiplier must have at most {WIDEST_PRODUCT} bits, not {bits}",
        )
        vector = self.form.vector
        if vector is None:
            return
        require(self.scaled, "scales must be integers of scale_bits, and floating ones are not")
        require(
            vector % self.lanes == 0 or self.lanes % vector == 0,
            f"vector must be a multiple of the lanes or divide them, "
            f"not {vector} with {self.lanes} lanes",
        )

    @property
    def scaled(self) -> bool:
        """Whether vectors have scales."""
        return self.form.scale_bits is not None

    @property
    def rows_per_vector(self) -> int:
        """G = max(V / lanes, 1)."""
        return max((self.form.vector or 1) // self.lanes, 1)

    @property
    def vectors_per_row(self) -> int:
        """max(lanes / V, 1); 1 without scales."""
        return max(self.lanes // (self.form.vector or self.lanes), 1)

    @property
    def product_bits(self) -> int:
        """Bits of (sum + bias) · multiplier, signed."""
        return self.sum_bits + 1 + self.multiplier_bits

    @property
    def high(self) -> int:
        """What z is limited to: Qmax · Smax (Qmax without scales)."""
        return self.form.largest * self.form.largest_scale

    @property
    def low(self) -> int:
        """The other limit: −high, one less without scales, or 0 if unsigned."""
        return -self.high - (not self.scaled) if self.form.signed else 0

    @property
    def scale_division(self) -> Division:
        """By Qmax, of top + Qmax − 1: the scale of a vector."""
        return _scale_division(self.form)

    @property
    def value_division(self) -> Division:
        """By s = 0 … Smax, of |z| + ⌊s / 2⌋, which is ⌊(2|z| + s) / 2⌋: the values."""
        return _value_division(self.form)

    @property
    def bias_bits(self) -> int:
        """Bits of a bias word: `lanes` biases, and above them `lanes` multipliers."""
        return self.lanes * (self.sum_bits + self.multiplier_bits)

    @property
    def word_bits(self) -> int:
        """Bits of a whole row: its values, and the scales of its vectors; as many of a word."""
        return self.lanes * self.form.bits + self.vectors_per_row * (self.form.scale_bits or 0)

    @property
    def unit_bits(self) -> int:
        """Bits of a unit, of which values and scales are multiples; a value without scales."""
        return gcd(self.form.bits, self.form.scale_bits or 0)

    @property
    def value_units(self) -> int:
        """Units of a value."""
        return self.form.bits // self.unit_bits

    @property
    def scale_units(self) -> int:
        """Units of a scale; 0 without scales."""
        return (self.form.scale_bits or 0) // self.unit_bits

    @property
    def word_units(self) -> int:
        """Units of an ofmap word."""
        return self.word_bits // self.unit_bits

    @property
    def wait_cycles(self) -> int:
        """From a row's limited z to the scale of its vector: 2 (the row's maximum, the scale).

        G more for G > 1 rows: the maximum over the rows, and G − 1 rows that may follow.
        """
        rows = self.rows_per_vector
        return 2 + (rows if rows > 1 else 0)

    @property
    def latency_cycles(self) -> int:
        """From the read of a row to its word at the port, the same for all rows.

        4 without scales: read, add, multiply, and round and limit into the queue.  With scales
        7 + wait_cycles, so 9, or 9 + G: round and limit, what it waits for, reciprocal, multiply.
        """
        return 7 + self.wait_cycles if self.scaled else 4

    @property
    def queue_words(self) -> int:
        """latency_cycles + G: with a packer's latency more, ports that never wait hold up no row.

        A vector's first row is read when the queue has room for all words that its rows complete.
        """
        return self.latency_cycles + self.rows_per_vector

    def vector_rows(self, pixels: int, steps: int) -> IntArray:
        """Rows of the vectors of a tile, in the order in which they leave; int64 [vectors].

        steps: rows of `lanes` channels a pixel.  Each is G, but for the last vectors of pixels.
        """
        firsts = np.arange(0, steps, self.rows_per_vector)
        return np.repeat(np.minimum(self.rows_per_vector, steps - firsts), pixels)

    def row_order(self, pixels: int, steps: int) -> IntArray:
        """step · pixels + pixel of the rows in the order in which they leave; int64 [rows].

        For vectors of a pixel, for pixels, for steps of the vector.
        """
        group = np.arange(steps)[:, None] // self.rows_per_vector + np.zeros(pixels, np.int64)
        pixel = np.zeros(steps, np.int64)[:, None] + np.arange(pixels)
        return np.lexsort((pixel.ravel(), group.ravel())).astype(np.int64)

    def compute(
        self, sums: IntArray, bias: IntArray, multiplier: IntArray, shift: int, relu: bool
    ) -> tuple[IntArray, IntArray]:
        """q [pixels, channels] and s [pixels, ⌈channels / V⌉], int64; s [pixels, 0] without scales.

        sums [pixels, channels]; bias, multiplier [channels]; all int64.  A last vector may be
        short.  Exact.  Raises InputError for other shapes, and for what its bits do not hold.
        """
        self._check(sums, bias, multiplier, shift)
        low = 0 if relu else self.low
        q = np.empty(sums.shape, np.int64)
        limits = np.array([shift, low, self.high], np.int64)
        least, most = _limited(sums, bias, multiplier, limits, q)
        half = 1 << (self.sum_bits - 1)
        for sum_ in (least, most):
            require(-half <= sum_ < half, f"sums must be {-half} to {half - 1}, not {sum_}")
        length = self.form.vector or 1
        vectors = ceil_div(sums.shape[1], length) if self.scaled else 0
        scales = np.empty((len(sums), vectors), np.int64)
        if self.scaled:
            _divided(q, scales, length, self.form.largest)
        return q, scales

    def _check(self, sums: IntArray, bias: IntArray, multiplier: IntArray, shift: int) -> None:
        require(sums.ndim == 2, f"sums must be [pixels, channels], not of shape {sums.shape}")
        require(sums.dtype == np.int64, f"sums must be int64, not {sums.dtype}")
        half = 1 << (self.sum_bits - 1)
        top = (1 << self.multiplier_bits) - 1
        channels = (sums.shape[1],)
        for name, values, shape, least, most in (
            ("bias", bias, channels, -half, half - 1),
            ("multiplier", multiplier, channels, 0, top),
        ):
            require(
                values.shape == shape, f"{name} must be of shape {shape}, not of {values.shape}"
            )
            require(values.dtype == np.int64, f"{name} must be int64, not {values.dtype}")
            if values.size and not (least <= values.min() and values.max() <= most):
                wrong = values[(values < least) | (values > most)][0]
                raise InputError(f"{name} must be {least} to {most}, not {wrong}")
        require(0 <= shift <= LARGEST_SHIFT, f"shift must be 0 to {LARGEST_SHIFT}, not {shift}")


@lru_cache
def _scale_division(form: VectorFormat) -> Division:
    top = form.largest * form.largest_scale
    return division(np.array([form.largest]), np.array([top + form.largest - 1]))


@lru_cache
def _value_division(form: VectorFormat) -> Division:
    scale = np.arange(form.largest_scale + 1)
    return division(scale, form.largest * scale + scale // 2)


@kernel("i8.2, i8.1, i8.1, i8.1, i8.2")
def _limited(
    sums: IntArray, bias: IntArray, multiplier: IntArray, limits: IntArray, z: IntArray
) -> tuple[int, int]:
    """z of every sum; limits are shift, low and high.  The least and the largest sum, or 0."""
    shift, low, high = limits
    half = np.int64(1) << (shift - 1) if shift > 0 else np.int64(0)  # 1 << 63 would be negative
    least, most = np.int64(0), np.int64(0)
    for pixel in range(sums.shape[0]):
        own, made = sums[pixel], z[pixel]
        for c in range(len(own)):
            least, most = min(least, own[c]), max(most, own[c])
            product = (own[c] + bias[c]) * multiplier[c]
            made[c] = min(max((product + half) >> shift, low), high)
    return int(least), int(most)


@kernel("i8.2, i8.2, int, int")
def _divided(z: IntArray, scales: IntArray, length: int, largest: int) -> None:
    """The scale of every vector, and z replaced by q.

    ⌊(|z| + ⌊s / 2⌋) / s⌋ as a quotient of floats, which vectorises: with the half added it is at
    least 1 / (2s) > 2^−17 from a whole number, and its error is below 2^−35.
    """
    for pixel in range(z.shape[0]):
        for vector in range(scales.shape[1]):
            values = z[pixel, vector * length : (vector + 1) * length]
            top = np.int64(0)
            for c in range(len(values)):
                top = max(top, abs(values[c]))
            scale = (top + largest - 1) // largest
            scales[pixel, vector] = scale
            if scale == 0:
                continue
            half = scale // 2 + 0.5
            for c in range(len(values)):
                q = np.int64((abs(values[c]) + half) / scale)
                values[c] = q if values[c] >= 0 else -q
