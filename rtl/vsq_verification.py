"""How vector lanes with scales are proved."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from archsim.layer.intake import Drawing
from archsim.machines.vsq.vector_numerics import VectorNumerics
from archsim.numbers import AnyIntArray, IntArray
from archsim.ports import Port
from archsim.tiled.design import CoreDesign
from rtl.coverage.aims import Aim
from rtl.coverage.bins import Bin, Seen
from rtl.coverage.integer_bins import EDGES
from rtl.draw import Draw
from rtl.layer_sequence import SequenceCase
from rtl.tile_aims import given_case, in_a_row
from rtl.tile_bins import parts
from rtl.tile_conformance import TileCase
from rtl.tile_verification import TileVerification
from workloads.layers import MatMul
from workloads.quantize import MAX_SHIFT

LAYERS = 5
MOST_MULTIPLIER = (1 << 16) - 1


class VectorVerification(TileVerification):
    """Cores that are walked by tiles, whose words are vectors and their scales."""

    def value_bins(self, design: CoreDesign) -> Iterable[Bin]:
        for port in design.ports:
            if port.name in ("ifmap", "weight", "bias"):
                yield from _lane_bins(port)
        for name, says in _SHIFTS.items():
            yield Bin(
                name=name,
                why="the requantisation's shift at its end",
                hit=lambda seen, says=says: any(says(_shift(case)) for case, _ in parts(seen)),
                aim=EDGES,
            )

    def value_aim(self, design: CoreDesign) -> Aim | None:
        return _edges


def _shift(case: TileCase) -> int:
    form = case.design.numerics
    return form.scaling(form.take(case.layer, case.operands))[1]


_SHIFTS: dict[str, Callable[[int], bool]] = {
    "shift of 0": lambda shift: shift == 0,
    f"shift of {MAX_SHIFT}": lambda shift: shift == MAX_SHIFT,
}


_SCALED = {("ifmap", "value"), ("weight", "value"), ("ifmap", "scale"), ("weight", "scale")}


def _lane_bins(port: Port) -> Iterator[Bin]:
    """The ends of each kind of lane: of values, of scales."""
    kinds = sorted(set(zip(port.lane_bits, port.lane_signed, strict=True)))
    for bits, signed in kinds:
        lanes = [n for n, kind in enumerate(zip(port.lane_bits, port.lane_signed, strict=True))
                 if kind == (bits, signed)]  # fmt: skip
        low, high = _limits(bits, signed)
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


def _kinds(form: VectorNumerics) -> list[tuple[str, tuple[int, bool]]]:
    """Values and scales, with the bits and the sign of each; not of formats without scales."""
    found = [("ifmap", form.mac.activation), ("weight", form.mac.weight)]
    scales = [(f"{name}_scales", (one.scale_bits, False)) for name, one in found if one.scale_bits]
    return [*((name, (one.bits, one.signed)) for name, one in found), *scales]


def _ends(draw: Draw, like: AnyIntArray, kind: tuple[int, bool]) -> AnyIntArray:
    low, high = _limits(*kind)
    return _chosen(draw, (low, high, 0, 1), like)


def _chosen(draw: Draw, values: tuple[int, ...], like: AnyIntArray) -> AnyIntArray:
    return draw.rng.choice(np.array(values), like.shape).astype(like.dtype)


def _limits(bits: int, signed: bool) -> tuple[int, int]:
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


def _edges(draw: Draw, design: CoreDesign, longest_words: int) -> SequenceCase:
    """Values, scales, biases and multipliers at their ends; no shift, and the largest."""
    form = design.numerics
    assert isinstance(form, VectorNumerics)
    layers = []
    for number in range(LAYERS):
        layer = MatMul(
            name="edges",
            m=draw.whole(3, 6),
            n=draw.whole(5, 9),
            k=draw.whole(2, 4) * form.length + draw.whole(0, 1),
            bias=True,
            relu=number % 2 == 1,
        )
        taken = form.take(layer, form.synthetic(layer, Drawing(seed=draw.whole(0, 1 << 30))))
        operands = replace(
            taken,
            **{name: _ends(draw, getattr(taken, name), kind) for name, kind in _kinds(form)},
            bias=_chosen(draw, (-(1 << 31), (1 << 31) - 1, 0, 1, -1), taken.bias),
            multiplier=_chosen(draw, (0, 1, 2, MOST_MULTIPLIER), taken.multiplier),
            shift=(taken.shift, 0, MAX_SHIFT, taken.shift, 1)[number],
        )
        layers.append(given_case(draw, design, layer, operands=operands))
    return in_a_row(design, layers, longest_words)


__all__ = ["VectorVerification"]
