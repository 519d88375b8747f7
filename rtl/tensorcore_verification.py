"""How tensor cores are proved."""

from collections.abc import Iterable

import numpy as np

from archsim.arithmetic.formats import FloatFormat
from archsim.layer.float_intake import FloatOperands
from archsim.machines.tensorcore.float_numerics import FloatNumerics
from archsim.numbers import IntArray
from archsim.tiled.design import CoreDesign
from rtl.coverage.aims import Aim
from rtl.coverage.bins import Bin, Seen
from rtl.coverage.float_bins import drawn_patterns, float_bins
from rtl.draw import Draw
from rtl.layer_sequence import SequenceCase
from rtl.tile_aims import given_case, in_a_row
from rtl.tile_bins import parts
from rtl.tile_verification import TileVerification
from workloads.layers import MatMul

LAYERS = 4


class TensorVerification(TileVerification):
    """Cores that are walked by tiles, of floats or of integers."""

    def value_bins(self, design: CoreDesign) -> Iterable[Bin]:
        form = design.numerics
        if not isinstance(form, FloatNumerics):
            return super().value_bins(design)
        if design.gather is None:
            return float_bins(_formats(form))
        return float_bins(_formats(form), _without_dropped)

    def value_aim(self, design: CoreDesign) -> Aim | None:
        form = design.numerics
        return _edges if isinstance(form, FloatNumerics) else super().value_aim(design)


def _without_dropped(seen: Seen, port: str) -> IntArray:
    """Of rows that a gather unit takes the kept units alone, without flags."""
    if port != "ifmap":
        return seen.words(port)
    taken = (one.design.numerics.take(one.layer, one.operands) for one, _ in parts(seen))
    return np.concatenate([one.ifmap.reshape(-1) for one in taken])


def _formats(form: FloatNumerics) -> dict[str, FloatFormat]:
    path = form.dot.datapath
    return {"ifmap": path.operand, "weight": path.operand, "bias": path.accumulator,
            "ofmap": form.output.ofmap}  # fmt: skip


def _edges(draw: Draw, design: CoreDesign, longest_words: int) -> SequenceCase:
    """Special patterns: in half of the layers infinities and NaNs too, with and without ReLU."""
    form = design.numerics
    assert isinstance(form, FloatNumerics)
    formats, layers = _formats(form), []
    for number in range(LAYERS):
        layer = MatMul(
            name="specials",
            m=draw.whole(4, 9),
            n=draw.whole(9, 12),
            k=draw.whole(1, 3) if number % 2 else draw.whole(4, 9),
            bias=True,
            relu=number >= 2,
        )
        shapes = {"ifmap": (1, layer.m, layer.k), "weight": (1, layer.k, layer.n), "bias": layer.n}
        ifmap, weight, bias = (
            drawn_patterns(draw, formats[name], shape, finite=number % 2 == 0)
            for name, shape in shapes.items()
        )
        operands = FloatOperands(ifmap=ifmap, weight=weight, bias=bias, scheme="special patterns")
        layers.append(given_case(draw, design, layer, operands=operands))
    return in_a_row(design, layers, longest_words)


__all__ = ["TensorVerification"]
