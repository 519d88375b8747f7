"""A lane of a vector MAC with per-vector scales: multipliers, scale path and collector, pipelined.

Each step multiplies two vectors, sums the products, multiplies the sum by the rounded product of
the vectors' scales and adds it to one entry of a collector of partial sums:

    S[address] <- limit((0 if first else S[address]) + (sum over i of w_i a_i) · round(s_w s_a))

That is one j of `archsim.codecs.vector_dot`, whose `VectorMac` states formats and widths.  The
structure is that of the vector MAC of VS-Quant (arXiv:2102.04503v1, section 5); a collector of 16
entries of 24 bits that saturate, and a scale product rounded to 8 bits, are those of its 5 nm chip
(Keller et al., IEEE Journal of Solid-State Circuits 58(4), 2023).  The chip's data path takes a
single cycle; how the stages are cut is chosen here.  The cycle contract is
`docs/contracts/vector-lane.md`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archsim.codecs.vector_dot import WIDEST, VectorMac, scale_product
from archsim.codecs.vsquant import VectorFormat
from archsim.errors import InputError, require, require_positive
from archsim.numbers import IntArray, saturate, wrap

__all__ = ["LaneResults", "LaneSteps", "VectorLaneDesign"]


@dataclass(frozen=True, kw_only=True, eq=False)
class LaneSteps:
    """n steps, int64 each.

    start_cycles [n]: rising, at most one step a cycle.  weight, activation [n, V]: values.
    weight_scale, activation_scale [n]: 1 where the format has no scales.  address [n]: the entry
    of the collector.  first [n]: 1 where the entry begins anew.  last [n]: 1 where it is given out.
    """

    start_cycles: IntArray
    weight: IntArray
    activation: IntArray
    weight_scale: IntArray
    activation_scale: IntArray
    address: IntArray
    first: IntArray
    last: IntArray

    def __len__(self) -> int:
        return len(self.start_cycles)


@dataclass(frozen=True, kw_only=True, eq=False)
class LaneResults:
    """The entries given out, in order, int64 [results], and what the collector holds at the end.

    cycles: in which each is at the output.  contents [depth]: 0 where nothing was ever written.
    """

    cycles: IntArray
    address: IntArray
    sums: IntArray
    contents: IntArray


@dataclass(frozen=True, kw_only=True)
class VectorLaneDesign:
    """V multipliers of `mac.weight.bits` × `mac.activation.bits` and a collector.

    length: V, that of the vectors of the formats.  depth: partial sums in the collector.
    gated: whether the data path keeps its values while the rounded product of scales is 0 (or
    there is no step), for a register more before the multipliers; results are the same.

    A format without scale_bits has no scale port; without any, there is no scale path: the lane of
    a MAC whose scales are one a channel.
    """

    mac: VectorMac
    length: int = 16
    depth: int = 16
    gated: bool = False

    def __post_init__(self) -> None:
        require_positive(length=self.length, depth=self.depth)
        vector = self.mac.weight.vector or self.mac.activation.vector
        require(
            vector in (None, self.length),
            f"length must be that of the vectors, {vector}, not {self.length}",
        )
        require(
            self.term_bits <= WIDEST,
            f"a term must have at most {WIDEST} bits, not {self.term_bits}",
        )
        require(
            self.scaled or not self.gated, "a lane without scales has no scale product to gate it"
        )

    @property
    def scaled(self) -> bool:
        """Whether there is a scale path."""
        return self.mac.full_scale_bits > 0

    @property
    def scale_bits(self) -> int:
        """Bits of the product of two scales after it is rounded."""
        return self.mac.full_scale_bits - self.mac.dropped_bits

    @property
    def product_bits(self) -> int:
        """Bits of one product, signed."""
        return self.mac.dot_bits(1)

    @property
    def term_bits(self) -> int:
        """Bits of what a step adds, signed."""
        return self.mac.term_bits(self.length)

    @property
    def tree_levels(self) -> int:
        """⌈log2 V⌉: levels of adders between the products and their sum."""
        return (self.length - 1).bit_length()

    @property
    def accumulate_cycle(self) -> int:
        """From a step to the cycle in which its entry is read, added to and written."""
        return 1 + self.tree_levels + self.scaled + self.gated

    @property
    def latency_cycles(self) -> int:
        """2 + ⌈log2 V⌉, one more with scales and one more if gated: (hold,) multiply, a stage a
        level of the adder tree, (scale,) accumulate."""
        return 1 + self.accumulate_cycle

    @property
    def interval_cycles(self) -> int:
        """From one step to the next, of the same entry too: the lane never stalls."""
        return 1

    def compute(self, steps: LaneSteps) -> LaneResults:
        """What the lane answers to steps.

        Raises InputError for arrays of other shapes, for values beyond their formats, for steps
        that do not rise, and where a step adds to an entry which none has begun.
        """
        self._check(steps)
        dots = np.einsum("nv,nv->n", steps.weight, steps.activation)
        terms = dots * scale_product(self.mac, steps.weight_scale, steps.activation_scale)
        sums = self._accumulated(steps, terms)
        given = steps.last == 1
        contents = np.zeros(self.depth, np.int64)
        contents[steps.address] = sums
        return LaneResults(
            cycles=steps.start_cycles[given] + self.latency_cycles,
            address=steps.address[given],
            sums=sums[given],
            contents=contents,
        )

    def _accumulated(self, steps: LaneSteps, terms: IntArray) -> IntArray:
        """The entry of each step after it: run by run, the same position of all runs at once.

        A run is the steps of an entry from one `first` to before the next.
        """
        limit = saturate if self.mac.overflow == "saturate" else wrap
        order = np.argsort(steps.address, kind="stable")
        begins = steps.first[order] == 1
        run = np.cumsum(begins) - 1
        position = np.arange(len(order)) - np.flatnonzero(begins)[run]
        by_position = np.argsort(position, kind="stable")
        sums = np.zeros(len(terms), np.int64)
        totals = np.zeros(int(begins.sum()), np.int64)
        for at in np.split(by_position, np.cumsum(np.bincount(position))[:-1]):
            totals[run[at]] = limit(totals[run[at]] + terms[order[at]], self.mac.accumulator_bits)
            sums[order[at]] = totals[run[at]]
        return sums

    def _check(self, steps: LaneSteps) -> None:
        n, weight, activation = len(steps), self.mac.weight, self.mac.activation
        require(n > 0, "there must be at least one step")
        for name, shape, (least, most) in (
            ("start_cycles", (n,), (0, 1 << 62)),
            ("weight", (n, self.length), _value_range(weight)),
            ("activation", (n, self.length), _value_range(activation)),
            ("weight_scale", (n,), _scale_range(weight)),
            ("activation_scale", (n,), _scale_range(activation)),
            ("address", (n,), (0, self.depth - 1)),
            ("first", (n,), (0, 1)),
            ("last", (n,), (0, 1)),
        ):
            _check_array(name, getattr(steps, name), shape, least, most)
        require(bool((np.diff(steps.start_cycles) > 0).all()), "start_cycles must rise")
        entries, at = np.unique(steps.address, return_index=True)
        missing = steps.first[at] == 0
        if missing.any():
            raise InputError(
                f"step {at[missing][0]} adds to entry {entries[missing][0]}, "
                "which no step before it has begun"
            )


def _value_range(form: VectorFormat) -> tuple[int, int]:
    """All that N bits hold: one more, at the negative end, than the codec makes."""
    return (-form.largest - 1 if form.signed else 0), form.largest


def _scale_range(form: VectorFormat) -> tuple[int, int]:
    return (1 if form.scale_bits is None else 0), form.largest_scale


def _check_array(
    name: str, values: IntArray, shape: tuple[int, ...], least: int, most: int
) -> None:
    require(values.shape == shape, f"{name} must be of shape {shape}, not of {values.shape}")
    require(values.dtype == np.int64, f"{name} must be int64, not {values.dtype}")
    outside = (values < least) | (values > most)
    if outside.any():
        raise InputError(f"{name} must be {least} to {most}, not {values[outside][0]}")
