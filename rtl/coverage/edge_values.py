"""Integer operands at the ends of their widths, and scalings that make ties and saturation."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from rtl.coverage.integer_bins import MULTIPLIER_BITS
from rtl.draw import Draw
from workloads.operands import Operands
from workloads.quantize import MAX_SHIFT


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One way to draw a layer's operands.

    values: of ifmap and weight, "low" and "high" standing for the ends of their width.  biases: at
    the ends of an accumulator, or around those of an output.  scaling: "none" is a multiplier of 1
    and no shift; "largest" is the highest multiplier and shift, "unshifted" that multiplier alone.
    """

    values: tuple[int | Literal["low", "high"], ...]
    biases: Literal["ends", "around"] = "around"
    scaling: Literal["none", "ties", "far", "largest", "unshifted"] = "none"
    relu: bool = False


RECIPES = (
    Recipe(values=("low", "high", 0, 1, -1)),
    Recipe(values=(0, 1, -1, 2, -3), scaling="ties"),
    Recipe(values=(0,)),
    Recipe(values=("low", "high"), biases="ends", scaling="far"),
    Recipe(values=("low", "high", 0), biases="ends", scaling="largest", relu=True),
    Recipe(values=(0,), relu=True),
    Recipe(values=("low", "high"), biases="ends", scaling="unshifted"),
)
"""A layer of each reaches every bin of values (`rtl.coverage.integer_bins`)."""


def edge_operands(
    draw: Draw, operands: Operands, widths: tuple[int, int], recipe: Recipe
) -> Operands:
    """Operands of a layer of a bias, drawn anew.  widths: operand and accumulator bits."""
    operand_bits, accumulator_bits = widths
    low, high = -(1 << (operand_bits - 1)), (1 << (operand_bits - 1)) - 1
    ends = {"low": low, "high": high}
    values = [ends[one] if isinstance(one, str) else one for one in recipe.values]
    around = [0, 1, -1, 3, -3, high, high + 1, low, low - 1, 2 * high, 2 * low]
    bits = min(accumulator_bits, 32)
    farthest = [-(1 << (bits - 1)), (1 << (bits - 1)) - 1]
    assert operands.bias is not None
    biases = farthest if recipe.biases == "ends" else around
    return replace(
        operands,
        ifmap=_of(draw, values, operands.ifmap),
        weight=_of(draw, values, operands.weight),
        bias=_of(draw, [one for one in biases if farthest[0] <= one <= farthest[1]], operands.bias),
        multiplier={"ties": draw.one_of(1, 3), "far": draw.one_of(1, 3, 255)}.get(
            recipe.scaling,
            (1 << MULTIPLIER_BITS) - 1 if recipe.scaling in ("largest", "unshifted") else 1,
        ),
        shift={"none": 0, "unshifted": 0, "ties": draw.one_of(1, 2), "far": draw.whole(20, 40)}.get(
            recipe.scaling, MAX_SHIFT
        ),
    )


def _of(draw: Draw, values: list[int], like: Any) -> Any:
    """Each of the values at least once, where there is room."""
    drawn = draw.rng.choice(np.array(values), like.size)
    drawn[: len(values)] = draw.rng.permutation(values)[: like.size]
    return draw.rng.permutation(drawn).reshape(like.shape).astype(like.dtype)


__all__ = ["RECIPES", "Recipe", "edge_operands"]
