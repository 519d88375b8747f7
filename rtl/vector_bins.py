"""Bins of vector MACs with scales: ends of lanes, collectors at their ends, limits of outputs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from archsim.codecs.vector_dot import WIDEST, scale_product
from archsim.machines.vsq.vector_numerics import SplitVectors, VectorNumerics
from archsim.machines.vsq.vector_values import VectorSummation, sums_of
from archsim.numbers import IntArray, ceil_div
from archsim.ports import Port
from archsim.tiled.design import CoreDesign
from rtl.coverage.bins import Bin, Seen
from rtl.coverage.integer_bins import EDGES, MOST_PRODUCTS
from rtl.tile_bins import parts
from rtl.tile_conformance import TileCase
from workloads.quantize import MAX_SHIFT


def limits(bits: int, signed: bool) -> tuple[int, int]:
    """Lowest and highest value of a lane."""
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


def terms_to_the_end(form: VectorNumerics) -> int | None:
    """How many vectors a collector adds up before it reaches an end; None if no case has as many.

    A term is a vector's products of the highest values, by the highest scales.
    """
    mac = form.mac
    largest = form.length * limits(mac.weight.bits, True)[1]
    largest *= limits(mac.activation.bits, mac.activation.signed)[1]
    scales = [
        np.array([limits(one.scale_bits or 1, False)[1]]) for one in (mac.weight, mac.activation)
    ]
    largest *= int(scale_product(mac, *scales)[0])
    terms = ceil_div(1 << (mac.accumulator_bits - 1), largest) + 1
    return terms if terms * form.length <= MOST_PRODUCTS else None


@dataclass(frozen=True, kw_only=True, eq=False)
class VectorLayer:
    """What a layer computes on its way to its ofmap, [images, groups, P, Q, K] each."""

    case: TileCase

    @property
    def form(self) -> VectorNumerics:
        """Of its numbers."""
        form = self.case.design.numerics
        assert isinstance(form, VectorNumerics)
        return form

    @cached_property
    def _split(self) -> SplitVectors:
        layer = self.case.layer
        return self.form.split(layer, self.form.take(layer, self.case.operands))

    def _sums(self, collector_bits: int) -> IntArray:
        form, problem = self.form, self.form.problem(self.case.layer)
        summation = VectorSummation(
            mac=replace(form.mac, accumulator_bits=collector_bits),
            channel_tile=min(self.case.tiling.channels, problem.channels),
            sum_bits=WIDEST,
            length=form.length,
        )
        return sums_of(self._split.tensors(problem), summation)

    @cached_property
    def collected(self) -> IntArray:
        """Sums of collectors, before the accumulators wrap."""
        return self._sums(self.form.mac.accumulator_bits)

    @cached_property
    def exact(self) -> IntArray:
        """The same of collectors without an end."""
        return self._sums(WIDEST)

    @cached_property
    def rounded(self) -> IntArray:
        """Outputs of layers whose sums do not wrap, before they are limited."""
        split = self._split
        bias, multiplier = (one[None, :, None, None] for one in (split.bias, split.multiplier))
        product, shift = (self.collected + bias) * multiplier, self.shift
        return product if shift == 0 else (product + (1 << (shift - 1))) >> shift

    @property
    def shift(self) -> int:
        """Of the requantisation."""
        form = self.form
        return form.scaling(form.take(self.case.layer, self.case.operands))[1]


_Says = Callable[[VectorLayer], bool]

_SHIFTS: dict[str, _Says] = {
    "shift of 0": lambda one: one.shift == 0,
    f"shift of {MAX_SHIFT}": lambda one: one.shift == MAX_SHIFT,
}
_LIMITED: dict[str, _Says] = {
    "output limited high": lambda one: bool((one.rounded > one.form.output.high).any()),
    "output limited low": lambda one: (
        not one.case.layer.relu and bool((one.rounded < one.form.output.low).any())
    ),
}
_SATURATED: dict[str, _Says] = {
    "a collector saturates high": lambda one: bool((one.collected < one.exact).any()),
    "a collector saturates low": lambda one: bool((one.collected > one.exact).any()),
}
_WRAPPED: dict[str, _Says] = {
    "a collector wraps": lambda one: bool((one.collected != one.exact).any())
}


def vector_bins(design: CoreDesign) -> Iterator[Bin]:
    """Of what crosses the ports, and of what is computed on the way."""
    form = design.numerics
    assert isinstance(form, VectorNumerics)
    for port in design.ports:
        if port.name in ("ifmap", "weight", "bias"):
            yield from _lane_bins(port)
    yield from _layers(_SHIFTS, "the requantisation's shift at its end")
    yield from _layers(_LIMITED, "the comparison with the largest of a vector's values")
    if terms_to_the_end(form) is not None:
        kinds = _SATURATED if form.mac.overflow == "saturate" else _WRAPPED
        yield from _layers(kinds, "a step past the end of what a collector holds")


def _layers(says: dict[str, _Says], why: str) -> Iterator[Bin]:
    for name, one in says.items():
        yield Bin(
            name=name,
            why=why,
            hit=lambda seen, one=one: any(one(VectorLayer(case=case)) for case, _ in parts(seen)),
            aim=EDGES,
        )


_SCALED = {("ifmap", "value"), ("weight", "value"), ("ifmap", "scale"), ("weight", "scale")}


def _lane_bins(port: Port) -> Iterator[Bin]:
    """The ends of each kind of lane: of values, of scales."""
    kinds = sorted(set(zip(port.lane_bits, port.lane_signed, strict=True)))
    for bits, signed in kinds:
        lanes = [n for n, kind in enumerate(zip(port.lane_bits, port.lane_signed, strict=True))
                 if kind == (bits, signed)]  # fmt: skip
        low, high = limits(bits, signed)
        what = "value" if signed else "scale"
        for end, limit in (("lowest", low), ("highest", high)):
            if end == "highest" and (port.name, what) in _SCALED:
                continue  # quantisation puts the largest of a tensor there in every case
            yield Bin(
                name=f"{port.name}: {end} {what} of {bits} bits",
                why="an end of its width: a bit less shows",
                hit=lambda seen, name=port.name, lanes=lanes, limit=limit: _has(
                    seen, name, lanes, limit
                ),
                aim=EDGES,
            )


def _has(seen: Seen, port: str, lanes: list[int], limit: int) -> bool:
    words: IntArray = seen.words(port)
    return bool((words[:, lanes] == limit).any())


__all__ = ["VectorLayer", "limits", "terms_to_the_end", "vector_bins"]
