"""Components that every machine may have, sparse or walked by tiles.

What they are made of: `archsim.blocks`.
"""

from __future__ import annotations

from archsim.arithmetic.factors import factor_bits, parts_of
from archsim.blocks import (
    Components,
    Events,
    adders,
    address_bits,
    multipliers,
    registers,
    shifters,
    times,
)
from energy_models.component import Component

REQUANTIZE = "output_stage.requantize"


def off_chip() -> Component:
    """The off-chip memory: every bit that crosses a port."""
    bits = {f"{port}_bytes": 8.0 for port in ("ifmap", "weight", "bias")}
    return Component(
        name="off_chip.dram",
        kind="dram",
        actions={"read": bits, "write": {"ofmap_bytes": 8.0}},
    )


def scaled_sums(bits: tuple[int, int], columns: int, words: Events | None = None) -> Components:
    """For each column (sum + bias) · multiplier, of (sum, multiplier) bits: two registers.

    words: how many are made; by default a row with each `output_read`.
    """
    name, words = REQUANTIZE, words or {"output_read": float(columns)}
    return (
        *adders(name, bits[0] + 1, columns, words),
        *registers(name, bits[0] + 1, columns, words),
        *multipliers(name, (bits[0] + 1, bits[1]), columns, words),
        *registers(name, sum(bits) + 1, columns, words),
    )


def requantizers(bits: tuple[int, int], columns: int, words: Events | None = None) -> Components:
    """For each column a scaled sum, rounded by an addition and shifted; words as `scaled_sums`."""
    rounded, words = sum(bits) + 2, words or {"output_read": float(columns)}
    return (
        *scaled_sums(bits, columns, words),
        *adders(REQUANTIZE, rounded, columns, words),
        *shifters(REQUANTIZE, rounded, columns, words),
    )


def registered_requantizers(
    bits: tuple[int, int],
    operand_bits: int,
    columns: int,
    number: int,
    words: Events | None = None,
) -> Components:
    """`requantizers` with so many registers more, 0 to 2: behind the shift, and in the product.

    With registers the lowest bits alone are rounded, into an operand.
    """
    if not number:
        return requantizers(bits, columns, words)
    doubled, words = sum(bits) + 2, words or {"output_read": float(columns)}
    scale = scaled_sums if number == 1 else _wide_products
    scaled = scale(bits, columns, words)
    late = number + 6 * (number - 1)  # ReLU and shift of rows on their way
    return (
        *scaled,
        *shifters(REQUANTIZE, doubled, columns, words),
        *registers(REQUANTIZE, doubled + late, columns, words),
        *adders(REQUANTIZE, operand_bits, columns, words),
    )


def _wide_products(bits: tuple[int, int], columns: int, words: Events) -> Components:
    """`scaled_sums` by products of parts, between registers that multipliers of an FPGA have."""
    name, parts = REQUANTIZE, parts_of(bits[0] + 1)
    factors = factor_bits(parts), bits[1] + 1
    every = columns * len(parts), times(words, len(parts))
    return (
        *adders(name, bits[0] + 1, columns, words),
        *registers(name, sum(factors), *every),
        *(one for part in parts for one in multipliers(name, (part, bits[1]), columns, words)),
        *registers(name, sum(factors), *every),
        *(
            one
            for number in range(1, len(parts))
            for one in adders(name, sum(parts[number:]) + bits[1], columns, words)
        ),
        *registers(name, sum(bits) + 1, columns, words),
    )


def queue_state_bits(depth: int) -> int:
    """Flip-flops of the pointers and the level of a queue of so many words."""
    return 2 * address_bits(depth) + depth.bit_length()


def control(state_bits: int) -> Component:
    """State machines of so many flip-flops, clocked in every cycle."""
    return Component(
        name="control",
        kind="control",
        attributes={"state_bits": state_bits},
        actions={"clock": {"cycle": 1.0}},
    )
