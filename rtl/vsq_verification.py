"""How vector lanes with scales are proved."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from archsim.layer.intake import Drawing
from archsim.machines.vsq.vector_numerics import VectorNumerics
from archsim.numbers import AnyIntArray
from archsim.tiled.design import CoreDesign
from rtl.coverage.aims import Aim
from rtl.coverage.bins import Bin
from rtl.draw import Draw
from rtl.full_memories import whole
from rtl.layer_sequence import SequenceCase
from rtl.tile_aims import given_case, in_a_row
from rtl.tile_conformance import TileCase
from rtl.tile_verification import TileVerification
from rtl.vector_bins import limits, terms_to_the_end, vector_bins
from workloads.layers import MatMul
from workloads.quantize import MAX_SHIFT

LAYERS = 5
MOST_MULTIPLIER = (1 << 16) - 1


class VectorVerification(TileVerification):
    """Cores that are walked by tiles, whose words are vectors and their scales."""

    def value_bins(self, design: CoreDesign) -> Iterable[Bin]:
        return vector_bins(design)

    def value_aim(self, design: CoreDesign) -> Aim | None:
        return _edges


def _kinds(form: VectorNumerics) -> list[tuple[str, tuple[int, bool]]]:
    """Values and scales, with the bits and the sign of each; not of formats without scales."""
    found = [("ifmap", form.mac.activation), ("weight", form.mac.weight)]
    scales = [(f"{name}_scales", (one.scale_bits, False)) for name, one in found if one.scale_bits]
    return [*((name, (one.bits, one.signed)) for name, one in found), *scales]


def _ends(draw: Draw, like: AnyIntArray, kind: tuple[int, bool]) -> AnyIntArray:
    low, high = limits(*kind)
    return _chosen(draw, (low, high, 0, 1), like)


def _chosen(draw: Draw, values: tuple[int, ...], like: AnyIntArray) -> AnyIntArray:
    return draw.rng.choice(np.array(values), like.shape).astype(like.dtype)


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
    terms = terms_to_the_end(form)
    if terms is not None:
        layers.append(_past_the_end(draw, design, form, terms))
    return in_a_row(design, layers, longest_words)


def _past_the_end(draw: Draw, design: CoreDesign, form: VectorNumerics, terms: int) -> TileCase:
    """Collectors that reach both ends, and biases that leave few units of what they then hold."""
    layer = MatMul(name="ends", m=2, n=4, k=terms * form.length, bias=True)
    taken = form.take(layer, form.synthetic(layer, Drawing()))
    kinds = dict(_kinds(form))
    highest = {name: np.full_like(getattr(taken, name), limits(*kind)[1])
               for name, kind in kinds.items()}  # fmt: skip
    downwards = np.arange(layer.n) % 2 == 1
    highest["weight"][..., downwards] *= -1
    end = 1 << (form.mac.accumulator_bits - 1)
    few = draw.rng.integers(-3, 4, layer.n)
    operands = replace(
        taken,
        **highest,
        bias=(np.where(downwards, end, 1 - end) + few).astype(taken.bias.dtype),
        multiplier=np.ones_like(taken.multiplier),
        shift=0,
    )
    return given_case(draw, design, layer, whole(design, layer), operands)


__all__ = ["VectorVerification"]
