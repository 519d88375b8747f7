"""Mappings of AlexNet's convolutions that move as few bytes as possible, found by trying tilings.

The automatic tiling is the one of fewest cycles; Eyeriss' own mapper looks for the least energy, of
which most is DRAM's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product

from archsim.errors import InputError
from archsim.layer.problem import Tiling
from archsim.machines.systolic.design import Systolic
from archsim.result import LayerResult
from archsim.tiled.timing import plan_tiling, time_layer
from workloads.builtin import builtin
from workloads.layers import Conv2d, MatMul


def convolutions(batch: int) -> list[Conv2d]:
    """Of AlexNet."""
    layers = builtin("alexnet", parameters={"batch": batch}).matrix_layers
    return [layer for layer in layers if isinstance(layer, Conv2d)]


@cache
def least_bytes(design: Systolic, batch: int) -> tuple[LayerResult, ...]:
    """Every convolution with the tiling, of those tried, that moves the fewest bytes."""
    return tuple(_least(design, layer) for layer in convolutions(batch))


def once_words(batch: int) -> dict[str, float]:
    """Elements of every operand of the convolutions, each counted once."""
    layers = convolutions(batch)
    return {
        "ifmap": float(sum(
            layer.batch * layer.channels * layer.ifmap_height * layer.ifmap_width
            for layer in layers
        )),
        "weight": float(sum(
            layer.filters * layer.channels // layer.groups
            * layer.kernel_height * layer.kernel_width
            for layer in layers
        )),
        "ofmap": float(sum(
            layer.batch * layer.filters * layer.ofmap_height * layer.ofmap_width
            for layer in layers
        )),
    }  # fmt: skip


def _least(design: Systolic, layer: Conv2d | MatMul) -> LayerResult:
    planned = plan_tiling(design, layer, None)
    found = [time_layer(design, layer, planned)]
    for tiling in _tilings(design, layer, planned):
        try:
            found.append(time_layer(design, layer, tiling))
        except InputError:  # does not fit
            continue
    return min(found, key=lambda result: result.total_bytes)


def _tilings(design: Systolic, layer: Conv2d | MatMul, planned: Tiling) -> Iterator[Tiling]:
    """Whole rows of pixels, and filters and channels in steps of the array's sides."""
    assert isinstance(layer, Conv2d)
    filters = layer.filters // layer.groups
    channels = layer.channels // layer.groups
    rows = sorted({*_halves(layer.ofmap_height), *range(1, 9)})
    for pixel_rows, width, depth, outer in product(
        (row for row in rows if row <= layer.ofmap_height),
        _steps(filters, design.columns),
        _steps(channels, design.rows),
        ("pixels_outer", "filters_outer"),
    ):
        yield replace(
            planned,
            pixel_rows=pixel_rows,
            pixel_columns=layer.ofmap_width,
            filters=width,
            channels=depth,
            order=outer,
        )


def _halves(size: int) -> set[int]:
    return {-(-size // parts) for parts in (1, 2, 3, 4, 6, 8)}


def _steps(size: int, step: int) -> list[int]:
    """The whole, and parts of it in multiples of a step."""
    return sorted({size, *(min(size, step * n) for n in (1, 2, 4, 6, 8, 12, 16))})


__all__ = ["convolutions", "least_bytes", "once_words"]
