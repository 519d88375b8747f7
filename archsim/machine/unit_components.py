"""Dot-product units, of integers and of floating-point numbers, as components.

A floating-point unit has no kind of its own: see `archsim.machines.tensorcore.components`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import archsim.blocks as blocks
from archsim.blocks import (
    Components,
    Events,
    adders,
    incrementers,
    moved_registers,
    multipliers,
    selectors,
    shifters,
    times,
)

if TYPE_CHECKING:
    from archsim.arithmetic.dot_product import DotProduct
    from archsim.arithmetic.float_datapath import FloatDatapath


@dataclass(frozen=True, kw_only=True)
class IntegerUnits:
    """`count` units of `rtl.core.dot_product.IntegerDotProduct`.

    busy: how many of them compute with an action.
    """

    name: str
    dot: DotProduct
    count: int
    busy: Events

    def components(self) -> Components:
        """Multipliers, adder tree, and the accumulator's sum that waits for them."""
        name, dot, busy, count = self.name, self.dot, self.busy, self.count
        bits, length, total = dot.operand.bits, dot.length, dot.accumulator.bits
        each = times(busy, 1 / count)
        return (
            *multipliers(name, (bits, bits), length * count, times(busy, length)),
            *moved_registers(name, 2 * bits, length * count, each),
            *blocks.adder_tree(name, (length, 2 * bits), count, each),
            *moved_registers(name, total, count * (1 + dot.tree_levels), each),
            *adders(name, total, count, busy),
            *moved_registers(name, total, count, each),
        )


class _Maker(Protocol):
    """What makes `count` blocks of a width: `adders` and its like."""

    def __call__(self, name: str, bits: int, count: int, events: Events, /) -> Components: ...


@dataclass(frozen=True, kw_only=True)
class FloatUnits:
    """`count` units of `rtl.core.dot_product.FloatDotProduct`, whose accumulator joins the sum.

    Of one whose accumulator does not, parts without registers: `products`, `partial`, `joined`,
    `rounded`.

    busy: how many of them compute with an action.  by_one: the second factors are all 1.0, so that
    a term is the operand.
    """

    name: str
    dot: DotProduct
    count: int
    busy: Events
    by_one: bool = False

    @property
    def path(self) -> FloatDatapath:
        return self.dot.datapath

    def components(self) -> Components:
        """Stage by stage: multiply; align and add up; normalise and round."""
        return (*self._terms(), *self._aligned_sum(), *self.rounded(), *self._registers())

    def products(self, busy: Events) -> Components:
        """Of a unit without an accumulator its lanes' products, with their exponents.  busy: how
        many lanes multiply with an action."""
        path, length = self.path, self.dot.length
        significand = path.operand.fraction_bits + 1
        count, twice = self.count * length, times(busy, 2)
        return (
            *selectors(self.name, path.operand.exponent_bits, 2 * count, twice),
            *multipliers(self.name, (significand, significand), count, busy),
            *adders(self.name, path.exponent_bits, count * (1 + (path.product_offset > 0)), busy),
            *selectors(self.name, path.exponent_bits, count, busy),
        )

    def partial(self) -> Components:
        """The largest exponent of the products, and the sum of what is aligned to it."""
        path, length = self.path, self.dot.length
        bits, count = path.aligned_product_bits, length
        found = (
            *self._each(adders, path.exponent_bits, 2 * length - 1),  # comparisons, distances
            *self._each(selectors, path.exponent_bits, length - 1),
            *self._shifted(bits, length),
        )
        while count > 1:
            bits, pairs = bits + 1, count // 2
            found += self._each(adders, bits, pairs)
            count -= pairs
        return found

    def joined(self) -> Components:
        """The sum of products and the accumulator, brought to the larger exponent."""
        path = self.path
        return (
            *self._each(selectors, path.accumulator.exponent_bits),
            *self._each(adders, path.exponent_bits, 3 + (path.accumulator_offset > 0)),
            *self._each(selectors, path.exponent_bits, 2),
            *self._each(incrementers, path.partial_bits),
            *self._each(selectors, path.partial_bits),
            *self._shifted(path.partial_bits, 1),
            *self._shifted(self._widths[1], 1),
            *self._each(adders, path.sum_bits),
        )

    def _shifted(self, bits: int, number: int) -> Components:
        """Terms at their distance from the largest, with their signs."""
        return (
            *self._each(shifters, bits - 1, number),
            *self._each(incrementers, bits, number),
            *self._each(selectors, bits, number),
        )

    def _each(self, maker: _Maker, bits: int, number: int = 1) -> Components:
        """`number` blocks in every unit."""
        return maker(self.name, bits, self.count * number, times(self.busy, number))

    def _terms(self) -> Components:
        """Products and accumulator taken apart, and the largest of their exponents."""
        path, length = self.path, self.dot.length
        exponent, offset = path.exponent_bits, path.accumulator_offset > 0
        if self.by_one:
            products = self._each(selectors, path.operand.exponent_bits, length)
            offsets = length + offset
        else:
            products = self._products()
            offsets = length * (1 + (path.product_offset > 0)) + offset
        return (
            *products,
            *self._each(selectors, path.accumulator.exponent_bits),
            *self._each(adders, exponent, offsets),
            *self._each(selectors, exponent, length + 1),
            *self._each(adders, exponent, length),  # comparisons
            *self._each(selectors, exponent, length),
        )

    def _products(self) -> Components:
        """Both factors taken apart, and their significands multiplied."""
        length, operand = self.dot.length, self.path.operand
        significand = operand.fraction_bits + 1
        factors = (significand, significand)
        busy = times(self.busy, length)
        return (
            *self._each(selectors, operand.exponent_bits, 2 * length),
            *multipliers(self.name, factors, self.count * length, busy),
        )

    @property
    def _widths(self) -> tuple[int, int]:
        """Bits of an aligned product (below 4 units, by one below 2) and of the aligned
        accumulator, signed."""
        path = self.path
        gained = path.rules.aligned_fraction_bits - path.accumulator.fraction_bits
        return path.aligned_product_bits - self.by_one, path.accumulator_bits + gained + 1

    def _aligned_sum(self) -> Components:
        """Every term at its distance from the largest, with its sign; then their sum."""
        path, length = self.path, self.dot.length
        product, addend = self._widths
        found = self._each(adders, path.exponent_bits, length + 1)
        for bits, number in ((product, length), (addend, 1)):
            found += self._shifted(bits, number)
        each = times(self.busy, 1 / self.count)
        tree = blocks.adder_tree(self.name, (length, product), self.count, each)
        return (*found, *tree, *self._each(adders, path.sum_bits - self.by_one))

    def rounded(self) -> Components:
        """Magnitude, leading zeros, shift (as far as the exponent allows), rounding, specials."""
        path, form = self.path, self.path.accumulator
        magnitude = path.sum_bits - 1
        word = magnitude + path.underflow_bits
        rounds = path.rules.rounding == "nearest_even"
        kept = word if rounds else min(path.accumulator_bits, word)
        zeros = (1 << (magnitude - 1).bit_length()) - 1
        exponents = 4 if path.underflow_bits else 3
        return (
            *self._each(incrementers, magnitude),
            *self._each(selectors, magnitude),
            *self._each(selectors, 1, zeros + shift_selectors(magnitude, word, kept)),
            *self._each(adders, path.exponent_bits + 1, exponents),
            *self._each(selectors, path.exponent_bits + 1),
            *self._each(incrementers, form.bits),
            *self._each(selectors, form.bits),
        )

    def _registers(self) -> Components:
        """Terms, largest exponent, specials; what waits for the tree; the result."""
        path, length, levels = self.path, self.dot.length, self.dot.tree_levels
        exponent, (_, addend) = path.exponent_bits, self._widths
        term = path.operand.fraction_bits + 1 if self.by_one else path.product_bits
        each = times(self.busy, 1 / self.count)

        def kept(bits: int, number: int = 1) -> Components:
            return moved_registers(self.name, bits, self.count * number, each)

        return (
            *kept(1 + exponent + term, length),
            *kept(1 + exponent + path.accumulator_bits),
            *kept(exponent, 1 + levels),
            *kept(3, 1 + levels),
            *kept(addend, levels),
            *kept(path.accumulator.bits),
        )


def shift_selectors(inputs: int, outputs: int, kept: int) -> int:
    """Two-way multiplexers of a left shift of `inputs` bits within `outputs`, upper `kept` used.

    Stages shift by 1, 2, 4, …  A bit of a stage is a multiplexer if what is used comes of it, and
    if bits of the input come to both of its ways; with one way it is a gate, and left out.
    """
    stages = (outputs - 1).bit_length()
    needed = set(range(outputs - kept, outputs))
    count = 0
    for stage in reversed(range(stages)):
        step = 1 << stage
        reached = min(inputs + step - 1, outputs)
        count += sum(step <= bit < reached for bit in needed)
        needed |= {bit - step for bit in needed if bit >= step}
    return count


__all__ = ["FloatUnits", "IntegerUnits", "shift_selectors"]
