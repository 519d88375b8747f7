"""Cases of the sparse core, drawn for bins that chance seldom finds."""

import math
from dataclasses import replace

import numpy as np

from archsim.errors import InputError, require
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.layer import layer_values
from archsim.machines.scnn.words import LayerRun, pass_words, word_counts
from archsim.numbers import AnyIntArray
from rtl.coverage.aims import Aim, general_aims
from rtl.coverage.edge_values import RECIPES, edge_operands
from rtl.coverage.integer_bins import EDGES
from rtl.coverage.port_bins import CHANNEL
from rtl.coverage.row_bins import TEN
from rtl.draw import Draw
from rtl.slow_memory import slow_off_chip
from rtl.sparse_cases import (
    ATTEMPTS,
    random_chain,
    random_idle,
    random_layer,
    random_operands,
    random_pool,
    random_sparse_case,
)
from rtl.sparse_conformance import SparseCase
from rtl.sparse_seen import CORNERS, FULL, HALOS, LONG, MOST_FULL_VECTORS, SPARSE, SUMS
from workloads.errors import WorkloadError
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, synthetic
from workloads.pooling import MaxPool

SEEDS = 1 << 30
LAYERS = 10


def sparse_aims() -> dict[str, Aim]:
    """All of the kind's aims."""
    own = {TEN: _ten, EDGES: _edges, SPARSE: _empty_and_dense, FULL: _full, SUMS: _all_sums}
    later = {CORNERS: _corners, CHANNEL: _channel, HALOS: _deep_halos, LONG: _long_kernels}
    return {**own, **general_aims(_plain), **later}


def _plain(draw: Draw, design: Scnn, longest_words: int) -> SparseCase:
    return random_sparse_case(draw.whole(0, SEEDS), 0, design, longest_words)


def _channel(draw: Draw, design: Scnn, longest_words: int) -> SparseCase:
    """Vectors come, and leave, as the channel of a slow off-chip memory has them."""
    case = _plain(draw, design, longest_words // 2)
    return replace(case, design=replace(design, off_chip=slow_off_chip(draw)), idle=None)


def stalled(draw: Draw, design: Scnn, runs: tuple[LayerRun, ...], longest_words: int) -> SparseCase:
    """The runs one behind the other, with stalls.

    Raises `InputError` for runs that do not fit, and for too many words.
    """
    case = SparseCase(design=design, runs=runs, idle={})
    words = sum(word_counts(case.passes).values())
    require(words <= longest_words, f"words must be at most {longest_words:,}, not {words:,}")
    return replace(case, idle=random_idle(draw, case.passes, case.answer()))


def _small_run(draw: Draw, design: Scnn, longest_words: int) -> LayerRun:
    for _ in range(ATTEMPTS):
        layer = random_layer(draw, design)
        if isinstance(layer, Conv2d):
            layer = replace(layer, batch=1)
        operands = fitting(design, random_operands(draw, design, layer))
        run = LayerRun(layer=layer, operands=operands, pool=random_pool(draw, layer))
        try:
            if sum(word_counts(pass_words(design, (run,))).values()) <= longest_words:
                return run
        except InputError:
            continue
    raise InputError("no random layer is so small")


def _ten(draw: Draw, design: Scnn, longest_words: int) -> SparseCase:
    """Ten layers: a pooled one, whose windows cross PEs, behind a plain one and before one; and
    chains, whose ofmaps stay where they can."""
    runs = [_small_run(draw, design, longest_words // 32) for _ in range(2)]
    runs.append(_pooled(draw, design))
    runs.append(_small_run(draw, design, longest_words // 32))
    runs += random_chain(draw, design)
    runs += _kept(draw, design)
    while len(runs) < LAYERS:
        runs.append(_small_run(draw, design, longest_words // 32))
    return stalled(draw, design, tuple(runs), longest_words)


def _corners(draw: Draw, design: Scnn, longest_words: int) -> SparseCase:
    """So many filters, of sums of both signs, that outputs of every PE around win some window."""
    runs = tuple(_pooled(draw, design, filters) for filters in (draw.whole(4, 6), draw.whole(7, 9)))
    dense = [
        replace(
            run,
            layer=replace(run.layer, relu=False),
            operands=replace(
                run.operands, ifmap=np.where(run.operands.ifmap == 0, 1, run.operands.ifmap)
            ),
        )
        for run in runs
    ]
    return stalled(draw, design, tuple(dense), longest_words)


def _deep_halos(draw: Draw, design: Scnn, longest_words: int) -> SparseCase:
    """Three outputs a PE and axis, and two sums to the PEs before and behind; and windows of which
    those at a PE's ends have two outputs of the PE beside."""
    layer = Conv2d(
        name="deep halos",
        channels=draw.whole(1, 2),
        filters=draw.whole(1, 2),
        ifmap_height=3 * design.grid_rows,
        ifmap_width=3 * design.grid_columns,
        kernel_height=5,
        kernel_width=5,
        pad_top=2,
        pad_bottom=2,
        pad_left=2,
        pad_right=2,
        bias=draw.chance(0.5),
        relu=draw.chance(0.5),
    )
    deep = LayerRun(layer=layer, operands=_dense(draw, design, layer))
    windows = MaxPool(window=(5, 5), stride=(1, 1), pad=(2, 2))
    pooled = _pooled(draw, design, draw.whole(2, 3), windows)
    return stalled(draw, design, (deep, pooled), longest_words)


def _long_kernels(draw: Draw, design: Scnn, longest_words: int) -> SparseCase:
    """Kernels of one row and of one column, on a plane that they just fit."""
    long = draw.whole(17, 20)
    runs: list[LayerRun] = []
    for height, width in ((long, 1), (1, long)):
        layer = Conv2d(
            name="long kernel",
            channels=1,
            filters=draw.whole(1, 2),
            ifmap_height=height + draw.whole(0, 2),
            ifmap_width=width + draw.whole(0, 2),
            kernel_height=height,
            kernel_width=width,
            bias=draw.chance(0.5),
        )
        runs.append(LayerRun(layer=layer, operands=_dense(draw, design, layer)))
    return stalled(draw, design, tuple(runs), longest_words)


def _pooled(draw: Draw, design: Scnn, filters: int = 0, pool: MaxPool | None = None) -> LayerRun:
    """A plane over the whole grid, and windows of 3, 2 apart, or others; filters: 0 for a few."""
    layer = Conv2d(
        name="pooled",
        channels=draw.whole(1, 2),
        filters=filters or draw.whole(1, 3),
        ifmap_height=3 * design.grid_rows + 1,
        ifmap_width=3 * design.grid_columns + 1,
        kernel_height=1,
        kernel_width=1,
        bias=draw.chance(0.5),
        relu=draw.chance(0.5),
    )
    pool = pool or MaxPool(window=(3, 3), stride=(2, 2), pad=(1, 1), ceil=draw.chance(0.5))
    operands = fitting(design, random_operands(draw, design, layer))
    return LayerRun(layer=layer, operands=operands, pool=pool)


def _kept(draw: Draw, design: Scnn) -> list[LayerRun]:
    """Three layers whose ofmaps stay: kernels of 1, planes and channels alike."""
    layer = Conv2d(
        name="kept",
        channels=2,
        filters=2,
        ifmap_height=2 * design.grid_rows,
        ifmap_width=2 * design.grid_columns,
        kernel_height=1,
        kernel_width=1,
        relu=True,
    )
    runs: list[LayerRun] = []
    operands = random_operands(draw, design, layer, (1.0,))
    for number in range(3):
        runs.append(LayerRun(layer=layer, operands=operands, keep_ofmap=number < 2))
        ofmap = layer_values(design, layer, operands).astype(operands.ifmap.dtype)
        operands = replace(random_operands(draw, design, layer, (0.5,)), ifmap=ofmap)
    return runs


def _edges(draw: Draw, design: Scnn, longest_words: int) -> SparseCase:
    """Layers whose integers lie at ends, one of each recipe."""
    widths = design.operand_bits, design.accumulator_bits
    runs: list[LayerRun] = []
    for recipe in RECIPES:
        layer = MatMul(
            name="edges", m=draw.whole(2, 4), n=12, k=draw.whole(3, 6), bias=True,
            relu=recipe.relu,
        )  # fmt: skip
        operands = synthetic(layer, bits=design.operand_bits)
        runs.append(LayerRun(layer=layer, operands=edge_operands(draw, operands, widths, recipe)))
    return stalled(draw, design, tuple(runs), longest_words)


def _empty_and_dense(draw: Draw, design: Scnn, longest_words: int) -> SparseCase:
    """Nothing but zeros, in the ifmap and in the weights; no zero; and values that lie farther
    apart than an index says."""
    together = design.filter_group
    apart = (1 << design.index_bits) + draw.whole(2, 5)
    layer = Conv2d(
        name="densities",
        channels=draw.whole(1, 2),
        filters=together,
        ifmap_height=max(3, 2 * design.grid_rows),
        ifmap_width=apart * design.grid_columns,
        kernel_height=draw.whole(2, 3),
        kernel_width=2,
        bias=draw.chance(0.5),
        relu=draw.chance(0.5),
    )
    small = replace(layer, ifmap_width=4 * design.grid_columns, filters=2)
    full = _dense(draw, design, layer)
    few = _dense(draw, design, small)
    one_in_many = replace(
        full, ifmap=_thinned(full.ifmap, apart), weight=_thinned(full.weight, apart)
    )
    runs = (
        LayerRun(layer=layer, operands=one_in_many),
        LayerRun(layer=small, operands=replace(few, ifmap=np.zeros_like(few.ifmap))),
        LayerRun(layer=small, operands=few),
        LayerRun(layer=small, operands=replace(few, weight=np.zeros_like(few.weight))),
    )
    return stalled(draw, design, runs, longest_words)


def _dense(draw: Draw, design: Scnn, layer: Conv2d) -> Operands:
    drawn = synthetic(layer, bits=design.operand_bits, seed=draw.whole(0, SEEDS))
    return fitting(design, drawn)


def fitting(design: Scnn, operands: Operands) -> Operands:
    """With biases cut to the width of an accumulator."""
    if operands.bias is None:
        return operands
    high = (1 << (design.accumulator_bits - 1)) - 1
    return replace(operands, bias=np.clip(operands.bias, -high - 1, high))


def _thinned(values: AnyIntArray, apart: int) -> AnyIntArray:
    """All but the last value of every so many are zero."""
    kept = np.zeros_like(values)
    kept.flat[apart - 1 :: apart] = values.flat[apart - 1 :: apart]
    return kept


def _full(draw: Draw, design: Scnn, longest_words: int) -> SparseCase:
    """An IARAM filled to its last vector, or row of values, in every PE; and a plane of several
    strips."""
    runs: list[LayerRun] = []
    if design.iaram_vectors <= MOST_FULL_VECTORS:
        runs.append(_filling(draw, design))
    tall = Conv2d(
        name="strips",
        channels=1,
        filters=1,
        ifmap_height=4 * design.grid_rows + design.accumulators // 2,
        ifmap_width=4 * design.grid_columns,
        kernel_height=2,
        kernel_width=2,
    )
    sparse = synthetic(tall, bits=design.operand_bits, density=FEW, seed=draw.whole(0, SEEDS))
    runs.append(LayerRun(layer=tall, operands=sparse))
    return stalled(draw, design, tuple(runs), longest_words)


FEW = 0.02
"""Density of planes that are cut for their sums alone: their values are few."""


def _all_sums(draw: Draw, design: Scnn, longest_words: int) -> SparseCase:
    """A plane that has a sum of one filter for every accumulator of a PE, and several filters."""
    columns = math.gcd(design.accumulators, draw.one_of(2, 4, 8))
    layer = Conv2d(
        name="all sums",
        channels=draw.whole(1, 2),
        filters=draw.whole(2, 3),
        ifmap_height=design.accumulators // columns * design.grid_rows,
        ifmap_width=columns * design.grid_columns,
        kernel_height=1,
        kernel_width=1,
        relu=draw.chance(0.5),
    )
    few = synthetic(layer, bits=design.operand_bits, density=2 * FEW, seed=draw.whole(0, SEEDS))
    weight = np.where(few.weight == 0, few.weight.dtype.type(1), few.weight)
    run = LayerRun(layer=layer, operands=replace(few, weight=weight))
    return stalled(draw, design, (run,), longest_words)


def _filling(draw: Draw, design: Scnn) -> LayerRun:
    """Of every channel, a vector or a few in each PE; as many channels as fill its memory."""
    for side in (1, 2, 4):
        vectors = -(-side * side // design.ifmap_lanes)
        if design.iaram_vectors % vectors:
            continue
        try:
            layer = Conv2d(
                name="full",
                channels=design.iaram_vectors // vectors,
                filters=1,
                ifmap_height=side * design.grid_rows,
                ifmap_width=side * design.grid_columns,
                kernel_height=1,
                kernel_width=1,
            )
        except WorkloadError:
            continue
        operands = synthetic(layer, bits=design.operand_bits, seed=draw.whole(0, SEEDS))
        if design.activation_memory.by_value:
            operands = replace(operands, ifmap=_wide(operands.ifmap, design.operand_bits))
        return LayerRun(layer=layer, operands=operands)
    raise InputError("no plane fills the IARAMs of the design")


def _wide(values: AnyIntArray, bits: int) -> AnyIntArray:
    """Of the same signs, and of no fewer bits than an operand has."""
    highest = values.dtype.type(1 << (bits - 2))  # of a magnitude
    return np.where(values < 0, values & ~highest, values | highest)


__all__ = ["sparse_aims", "stalled"]
