"""Widths of words that several components of a sparse core hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import archsim.blocks as blocks
from archsim.machines.scnn.axis import TAP_BITS

if TYPE_CHECKING:
    from archsim.machines.scnn.design import Scnn


def address_bits(design: Scnn) -> int:
    """Of an accumulator's number in one half."""
    return blocks.address_bits(design.accumulators)


def pointer_bits(design: Scnn) -> int:
    """Of a pointer into the FIFO: those of a place, and the turn."""
    return (design.weight_fifo_vectors - 1).bit_length() + 1


def decoded_weight_bits(design: Scnn) -> int:
    """Of a vector of weights, decoded, but for the flag that ends its list."""
    return design.weight_lanes * (design.operand_bits + 2 * TAP_BITS + address_bits(design))


__all__ = ["address_bits", "decoded_weight_bits", "pointer_bits"]
