"""Fully connected layers in 2 x 2 PEs: inputs as a small plane, filters in parts.

Each input of a row of one pixel is a channel, with a vector of its own in the one PE that owns the
pixel; each output is a vector of its own in its OARAM; a list of weights is of one input.  Where
these are too many vectors, or more than has to be (`archsim.machines.scnn.layer.plan_layer`), L =
rows · columns inputs become one channel's plane, with a kernel as large as it: a convolution of ⌈C
/ L⌉ channels with one output, whose inputs lie in the 2 × 2 PEs that can reach it.  A pair of
vectors has I activations and F weights, but a weight is of one input: a core makes F useful
products a cycle at most, the others fall beside the output.  It needs nothing new for that.
Filters are cut into equally many for each pass, as few passes as OARAMs hold their outputs: of
memories that compress values the rows that these take are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.codecs.zero_run import encode
from archsim.errors import InputError
from archsim.layer import layout
from archsim.layer.problem import problem_of
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.lists import weight_lists
from archsim.machines.scnn.strips import Strip, strips_of
from archsim.numbers import IntArray, ceil_div
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands

REACHED = 2
"""PEs along an axis that reach an output of the first: its own and the next."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """Some filters of a fully connected layer, as a convolution: one image a row of the product.

    ofmap: its outputs, [images, filters].
    """

    layer: Conv2d
    operands: Operands
    ofmap: IntArray


def folded(
    design: Scnn,
    layer: MatMul,
    operands: Operands,
    ofmap: IntArray,
    planes: Iterable[tuple[int, int]] | None = None,
) -> tuple[Part, ...]:
    """Parts of a layer with one weight, each of which fits; their ofmaps in order are the layer's,
    `ofmap` [M, N].

    planes: rows and columns, of which the first is taken whose first part's lists fit (the others
    have the same inputs); by default `planes_of` the layer.  Raises InputError, of the first plane,
    where none does.
    """
    size = _filters_of_a_pass(design, ofmap)
    refusal: InputError | None = None
    for plane in planes_of(design, layer.k) if planes is None else planes:
        parts = _parts(layer, operands, (ofmap, size), plane)
        first = next(parts)
        try:
            _require_fit(design, first)
        except InputError as error:
            refusal = refusal or error
        else:
            return (first, *parts)
    assert refusal is not None, "the first plane is always tried"
    raise refusal


def planes_of(design: Scnn, inputs: int) -> Iterator[tuple[int, int]]:
    """Rows and columns, from I inputs in each PE, doubled each time; from the second on, a channel
    is full."""
    pes = min(design.grid_rows, REACHED) * min(design.grid_columns, REACHED)
    rows, columns = min(design.grid_rows, REACHED), min(design.grid_columns, REACHED)
    while rows * columns < pes * design.ifmap_lanes:
        rows, columns = _doubled(rows, columns)
    yield rows, columns
    while 2 * rows * columns <= inputs:
        rows, columns = _doubled(rows, columns)
        yield rows, columns


def _doubled(rows: int, columns: int) -> tuple[int, int]:
    return (rows, 2 * columns) if columns <= rows else (2 * rows, columns)


def _filters_of_a_pass(design: Scnn, ofmap: IntArray) -> int:
    """The most, of the fewest passes of equally many whose outputs an OARAM holds.

    ofmap [M, N].  Whatever the values are, as many fit as a plain memory has vectors.
    """
    filters = ofmap.shape[1]
    passes = ceil_div(filters, design.oaram_entries)
    while True:
        size = ceil_div(filters, passes)
        parts = (ofmap[:, first : first + size] for first in range(0, filters, size))
        if size <= design.oaram_vectors or all(_held(design, part) for part in parts):
            return size
        passes = ceil_div(filters, size - 1)


def _held(design: Scnn, outputs: IntArray) -> bool:
    """Whether an OARAM holds the outputs of every image [images, filters], each a list of one
    position."""
    lists = encode(outputs.reshape(-1, 1), lanes=design.ifmap_lanes, index_bits=design.index_bits)
    return design.activation_memory.why_not(design.stream_use("oaram"), lists, len(outputs)) is None


def _parts(
    layer: MatMul, operands: Operands, cut: tuple[IntArray, int], plane: tuple[int, int]
) -> Iterator[Part]:
    """cut: the ofmap [M, N], and the filters of each part but the last."""
    ofmap, size = cut
    ifmap = _folded(operands.ifmap[0], plane)
    weight = operands.weight[0]
    for first in range(0, layer.n, size):
        some = slice(first, min(first + size, layer.n))
        taps = _folded(np.ascontiguousarray(weight[:, some].T), plane)
        bias = None if operands.bias is None else operands.bias[some]
        conv = Conv2d(
            name=layer.name,
            channels=ifmap.shape[1],
            filters=len(taps),
            ifmap_height=plane[0],
            ifmap_width=plane[1],
            kernel_height=plane[0],
            kernel_width=plane[1],
            batch=len(ifmap),
            bias=layer.bias,
            relu=layer.relu,
        )
        own = replace(operands, ifmap=ifmap, weight=taps, bias=bias)
        yield Part(layer=conv, operands=own, ofmap=ofmap[:, some])


def _folded(values: npt.NDArray[Any], plane: tuple[int, int]) -> npt.NDArray[Any]:
    """[rows, C] as [rows, channels, *plane]: inputs of a channel follow one another."""
    inputs = plane[0] * plane[1]
    channels = ceil_div(values.shape[1], inputs)
    padded = np.pad(values, ((0, 0), (0, channels * inputs - values.shape[1])))
    return padded.reshape(len(values), channels, *plane)


def _require_fit(design: Scnn, part: Part) -> None:
    """Raises InputError unless the lists of every image fit the PEs' memories."""
    problem = problem_of(part.layer)
    ifmap = layout.split_ifmap(part.layer, problem, part.operands.ifmap)
    weight = layout.split_weight(part.layer, problem, part.operands.weight)
    for image, outputs in zip(ifmap, part.ofmap, strict=True):
        strips_of(design, problem, (image[0], weight[0], outputs[None, None]))


def may_move_less(design: Scnn, layer: MatMul, operands: Operands, strips: Sequence[Strip]) -> bool:
    """Whether a folded layer may move fewer bits than strips of the layer as it is, by counts
    alone: it loads all weights for each row."""
    lanes = design.weight_lanes
    least = layer.m * ceil_div(int(np.count_nonzero(operands.weight)), lanes)
    most = sum(
        strip.mapping.channels * ceil_div(strip.mapping.group_filters(group), lanes)
        for strip in strips
        for group in range(strip.mapping.groups)
    )
    beside = sum(_activation_bits(design, strip) for strip in strips)
    return least * design.word_bits("weight") < most * design.word_bits("weight") + beside


def moved_bits(design: Scnn, strips: Sequence[Strip]) -> int:
    """Of vectors that cross the ports: weights, ifmaps and ofmaps."""
    return sum(
        _activation_bits(design, strip)
        + sum(
            weight_lists(design, strip.mapping, strip.operands.weight, group).vectors
            for group in range(strip.mapping.groups)
        )
        * design.word_bits("weight")
        for strip in strips
    )


def _activation_bits(design: Scnn, strip: Strip) -> int:
    vectors = strip.operands.ifmap.vectors + strip.operands.ofmap.vectors
    return vectors * design.word_bits("ifmap")


__all__ = ["Part", "folded", "may_move_less", "moved_bits", "planes_of"]
