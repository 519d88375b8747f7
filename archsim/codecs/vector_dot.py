"""The integer dot product of per-vector scaled operands, as a vector MAC computes it.

    y = gamma_w gamma_a 2^dropped · sum over j of (sum over i of wq aq) · round(sq_w sq_a)

The vectors j are taken in turn.  The inner sum and the product of scales are exact; the product
may be rounded to its upper bits; the sum over j lives in an accumulator of a stated width, which
wraps or saturates at every step.  Widths are those of VS-Quant (arXiv:2102.04503v1, section 5);
the 24 bits that saturate are the accumulator of its 5 nm chip (Keller et al., IEEE Journal of
Solid-State Circuits 58(4), 2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from archsim.codecs.vsquant import Floats, Quantized, VectorFormat, blocked
from archsim.errors import InputError, require, require_whole
from archsim.numbers import IntArray, saturate, wrap

WIDEST = 62
"""Bits of a term and of the accumulator, so that their sum stays within 64."""


@dataclass(frozen=True, kw_only=True)
class VectorMac:
    """Formats of both operands, and the widths behind them.

    scale_product_bits: to which the product of two scales is rounded; None for all of it.
    accumulator_bits: 2 to 62, signed.  overflow: what the accumulator does beyond them.

    The vectors of both formats have one length.  A format without vectors has the scale 1
    everywhere; floating scales are refused.
    """

    weight: VectorFormat
    activation: VectorFormat
    scale_product_bits: int | None = None
    accumulator_bits: int = 24
    overflow: Literal["saturate", "wrap"] = "saturate"

    def __post_init__(self) -> None:
        for name, form in (("weight", self.weight), ("activation", self.activation)):
            require(
                form.vector is None or form.scale_bits is not None,
                f"{name}: the dot product is of integers, and floating scales are none",
            )
        lengths = {form.vector for form in (self.weight, self.activation)} - {None}
        require(
            len(lengths) < 2,
            "weight and activation must have vectors of one length, not "
            f"{self.weight.vector} and {self.activation.vector}",
        )
        if self.scale_product_bits is not None:
            require_whole(1, "be positive", scale_product_bits=self.scale_product_bits)
        require_whole(2, f"be 2 to {WIDEST}", accumulator_bits=self.accumulator_bits)
        require(
            self.accumulator_bits <= WIDEST,
            f"accumulator_bits must be 2 to {WIDEST}, not {self.accumulator_bits}",
        )
        if self.overflow not in ("saturate", "wrap"):
            raise InputError(f"overflow must be saturate or wrap, not {self.overflow!r}")

    @property
    def full_scale_bits(self) -> int:
        """2M: bits of the product of two scales before it is rounded; 0 without scales."""
        return (self.weight.scale_bits or 0) + (self.activation.scale_bits or 0)

    @property
    def dropped_bits(self) -> int:
        """Lower bits of the product of scales that rounding drops."""
        if self.scale_product_bits is None:
            return 0
        return max(self.full_scale_bits - self.scale_product_bits, 0)

    def dot_bits(self, length: int) -> int:
        """2N + ⌈log2 V⌉: bits of the sum over a vector of so many products; one more for the
        sign if neither operand has one."""
        sign = not (self.weight.signed or self.activation.signed)
        return self.weight.bits + self.activation.bits + (length - 1).bit_length() + sign

    def term_bits(self, length: int) -> int:
        """2N + ⌈log2 V⌉ + 2M, less what rounding drops: bits of what is accumulated."""
        return self.dot_bits(length) + self.full_scale_bits - self.dropped_bits

    def sum_bits(self, length: int, vectors: int) -> int:
        """Bits of an accumulator which cannot overflow in a sum over so many vectors."""
        return self.term_bits(length) + (vectors - 1).bit_length()


def scale_product(mac: VectorMac, weight: IntArray, activation: IntArray) -> IntArray:
    """sq_w sq_a in steps of 2^dropped_bits: rounded half up, at most what its bits hold."""
    product = weight * activation
    if not mac.dropped_bits:
        return product
    rounded = (product + (1 << (mac.dropped_bits - 1))) >> mac.dropped_bits
    return np.minimum(rounded, (1 << (mac.full_scale_bits - mac.dropped_bits)) - 1)


def dot(mac: VectorMac, weight: Quantized, activation: Quantized) -> IntArray:
    """Every row of activations with every row of weights: accumulators [rows, filters].

    weight is [K, C] or [K, C, R, S], activation [M, C] or its windows [M, C, R, S]: axis 0 counts
    rows, channel_axis is 1, and further axes are taps.  Vectors are accumulated tap by tap, in a
    tap by rising channel.  Exact in int64.  Raises InputError for operands of another format or
    of shapes that do not match, and where a term would need more than 62 bits.
    """
    require(weight.format == mac.weight, "weight must be of the format of the MAC")
    require(activation.format == mac.activation, "activation must be of the format of the MAC")
    require(
        weight.values.shape[1:] == activation.values.shape[1:],
        f"weight {weight.values.shape} and activation {activation.values.shape} "
        "must agree in all axes but the first",
    )
    length = mac.weight.vector or mac.activation.vector or weight.values.shape[1]
    w, w_scales = _vectors(weight, length)
    a, a_scales = _vectors(activation, length)
    bits = mac.term_bits(w.shape[2])
    require(bits <= WIDEST, f"a term must have at most {WIDEST} bits, not {bits}")
    limit = saturate if mac.overflow == "saturate" else wrap
    sums = np.zeros((len(a), len(w)), np.int64)
    for j in range(w.shape[1]):
        scale = scale_product(mac, w_scales[None, :, j], a_scales[:, j, None])
        sums = limit(sums + (a[:, j] @ w[:, j].T) * scale, mac.accumulator_bits)
    return sums


def real(mac: VectorMac, sums: IntArray, weight: Quantized, activation: Quantized) -> Floats:
    """What accumulators stand for: sums · gamma_w · gamma_a · 2^dropped_bits."""
    gammas = activation.coarse.reshape(-1, 1) * weight.coarse.reshape(1, -1)
    return sums * gammas * 2.0**mac.dropped_bits


def _vectors(operand: Quantized, length: int) -> tuple[IntArray, IntArray]:
    """Values [rows, J, V] and scales [rows, J] in the order in which they are accumulated."""
    require(
        operand.channel_axis == 1 and operand.values.ndim >= 2,
        f"channels must be axis 1 of at least two, not axis {operand.channel_axis} "
        f"of shape {operand.values.shape}",
    )
    own_gamma = operand.coarse.shape[0]
    require(
        operand.coarse.size == own_gamma,
        f"gamma must be one or one a row, not of shape {operand.coarse.shape}",
    )
    rows = len(operand.values)
    blocks = blocked(operand.values.astype(np.int64), length, 1)
    shape = blocks.shape[:2] + blocks.shape[3:]
    scales = np.broadcast_to(operand.scales.astype(np.int64), shape)
    values = np.moveaxis(np.moveaxis(blocks, 2, -1), 1, -2)
    return (
        values.reshape(rows, -1, blocks.shape[2]),
        np.moveaxis(scales, 1, -1).reshape(rows, -1),
    )
