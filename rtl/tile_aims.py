"""Cases of cores that are walked by tiles, drawn for bins that chance seldom finds."""

from dataclasses import replace
from typing import Any

import numpy as np

from archsim.errors import InputError, require
from archsim.layer.intake import Drawing
from archsim.layer.problem import Order, Tiling
from archsim.numbers import ceil_div
from archsim.tiled import machine_vector as mc
from archsim.tiled.design import CoreDesign
from archsim.tiled.timing import plan_tiling
from rtl.coverage.aims import Aim, ResetCase, blocked, general_aims
from rtl.coverage.edge_values import RECIPES, edge_operands
from rtl.coverage.integer_bins import MOST_PRODUCTS, wraps_within_reach
from rtl.coverage.port_bins import CHANNEL, LONG_STALL, STALLS
from rtl.draw import Draw
from rtl.full_memories import MEMORIES, channels_of, full_layer, whole
from rtl.gather_bins import gathered_layers
from rtl.layer_sequence import SequenceCase
from rtl.slow_memory import slow_off_chip
from rtl.tile_bins import BIASES, EARLY, FAR, FULL, LARGE, TEN
from rtl.tile_cases import port_counts, random_services, random_tile_case
from rtl.tile_conformance import TileCase
from workloads.layers import Conv2d, MatMul

Layer = Conv2d | MatMul
SEEDS = 1 << 30


def tile_aims() -> dict[str, Aim]:
    """Those of all such cores; a kind adds the one for its values."""
    own = {TEN: _ten, EARLY: _early, LARGE: _large, FAR: _far, FULL: _full}
    resets = {**general_aims(_plain), BIASES: blocked(_many_biases, _many_biases)}
    return {**own, **resets, STALLS: _stalls, CHANNEL: _channel}


def _plain(draw: Draw, design: CoreDesign, longest_words: int) -> TileCase:
    return random_tile_case(draw.whole(0, SEEDS), 0, design, longest_words)


def given_case(
    draw: Draw, design: CoreDesign, layer: Layer, tiling: Tiling | None = None, operands: Any = None
) -> TileCase:
    """A layer with stalls; in a tiling if that fits, else in the automatic one.

    Raises `InputError` for a layer that does not fit.
    """
    if operands is None:
        operands = design.numerics.synthetic(layer, Drawing(seed=draw.whole(0, SEEDS)))
    taken = design.numerics.take(layer, operands) if design.stores else None
    try:
        chosen = plan_tiling(design, layer, tiling, taken)
    except InputError:
        chosen = plan_tiling(design, layer, None, taken)
    counts = port_counts(design, design.numerics.problem(layer), chosen)
    services = random_services(draw, counts, mc.machine_record(design.machine).columns)
    return TileCase(design=design, layer=layer, tiling=chosen, operands=operands, services=services)


def in_a_row(
    design: CoreDesign, layers: list[TileCase], longest_words: int, *, early: bool = False
) -> SequenceCase:
    """The layers one behind the other.  Raises `InputError` where they have too many words."""
    words = sum(
        sum(port_counts(design, design.numerics.problem(one.layer), one.tiling).values())
        for one in layers
    )
    require(words <= longest_words, f"words must be at most {longest_words:,}, not {words:,}")
    return SequenceCase(design=design, layers=tuple(layers), early=early)


def _ten(draw: Draw, design: CoreDesign, longest_words: int) -> SequenceCase:
    """Ten layers: of them one of a single output, one of groups side by side, and one in each order
    of many tiles."""
    share = longest_words // 16
    layers = [_plain(draw, design, share) for _ in range(6)]
    layers.append(_side_by_side(draw, design))
    one = MatMul(name="one", m=1, n=1, k=1, bias=draw.chance(0.5))
    layers.append(given_case(draw, design, one))
    orders: tuple[Order, ...] = ("filters_outer", "pixels_outer")
    layers += [_many_tiles(draw, design, order) for order in orders]
    draw.rng.shuffle(layers)  # pyright: ignore[reportArgumentType]
    return in_a_row(design, layers, longest_words)


def _side_by_side(draw: Draw, design: CoreDesign) -> TileCase:
    """Three groups in blocks of two, where they may lie side by side."""
    together = mc.machine_record(design.machine).output_vector
    layer = MatMul(
        name="groups", m=draw.whole(1, 5), n=together * draw.whole(1, 2), k=draw.whole(1, 3),
        batch=3, shared_weight=False, bias=draw.chance(0.5), relu=draw.chance(0.5),
    )  # fmt: skip
    one = whole(design, layer)
    blocks = replace(one, filters=2 * one.filters, channels=2 * one.channels, groups=2)
    return given_case(draw, design, layer, blocks)


def _many_tiles(draw: Draw, design: CoreDesign, order: Order) -> TileCase:
    """A product of at least two tiles along each axis."""
    pixels, filters, channels = design.mnk
    together = mc.machine_record(design.machine).output_vector
    layer = MatMul(
        name="many tiles",
        m=min(pixels, 8) + 1,
        n=max(filters, together) + 1,
        k=2 * channels + 1,
        bias=draw.chance(0.5),
        relu=draw.chance(0.5),
    )
    problem = design.numerics.problem(layer)
    half = ceil_div(ceil_div(problem.filters, 2), together) * together
    tiling = Tiling(
        pixel_rows=1,
        pixel_columns=ceil_div(problem.out_width, 2),
        filters=half,
        channels=ceil_div(problem.channels, 2),
        order=order,
    )
    return given_case(draw, design, layer, tiling)


def _many_biases(draw: Draw, design: CoreDesign, longest_words: int) -> TileCase:
    """A tile of more filter steps, each with biases of its own, than the output queue has words."""
    record = mc.machine_record(design.machine)
    steps = design.output_queue_depth + draw.whole(2, 5)
    filters = ceil_div(steps * record.columns, record.output_vector) * record.output_vector
    layer = MatMul(
        name="biases", m=draw.whole(1, 2), n=filters, k=1, bias=True, relu=draw.chance(0.5)
    )
    return given_case(draw, design, layer, whole(design, layer))


def _early(draw: Draw, design: CoreDesign, longest_words: int) -> SequenceCase:
    """Commands ahead of their layers; and layers whose sums wait for the one before to leave, so
    that rows with and without ReLU and biases follow one another as closely as they can."""
    layers = [_plain(draw, design, longest_words // 4) for _ in range(3)]
    layers += [_waiting_to_leave(draw, design, relu=number % 2 == 0) for number in range(4)]
    return in_a_row(design, layers, longest_words, early=True)


def _waiting_to_leave(draw: Draw, design: CoreDesign, *, relu: bool) -> TileCase:
    """An output tile of more words than the queue holds, the first of which waits for long."""
    _pixels, filters, channels = design.mnk
    layer = MatMul(
        name="waiting", m=24, n=min(filters, 8), k=min(channels, 8), relu=relu,
        bias=draw.chance(0.5),
    )  # fmt: skip
    case = given_case(draw, design, layer, whole(design, layer))
    gaps = {name: np.zeros_like(own) for name, own in case.gaps(case.answer()).items()}
    gaps["ofmap"][0] = LONG_WAIT
    return case.waiting(gaps)


LONG_WAIT = 400
"""Cycles in which a small layer is loaded and summed."""


def _channel(draw: Draw, design: CoreDesign, longest_words: int) -> TileCase:
    """Words come, and leave, as the channel of a slow off-chip memory has them."""
    case = _plain(draw, design, longest_words // 2)
    return replace(case, design=replace(design, off_chip=slow_off_chip(draw)), services=None)


def _stalls(draw: Draw, design: CoreDesign, longest_words: int) -> TileCase:
    """Each port in its turn does nothing for so long that the queues before it fill: a layer of
    many output tiles, each with biases of its own."""
    _pixels, filters, channels = design.mnk
    layer = MatMul(
        name="stalled", m=24, n=min(filters, 8), k=min(channels, 8), bias=True, batch=1,
        relu=draw.chance(0.5),
    )  # fmt: skip
    tiling = replace(whole(design, layer), pixel_columns=1)
    free = given_case(draw, design, layer, tiling).waiting(
        {name: np.zeros(count, np.int64) for name, count in _counts(design, layer, tiling).items()}
    )
    gaps = {name: own.copy() for name, own in free.gaps(free.answer()).items()}
    for name, own in gaps.items():
        if len(own):
            at = len(own) * _STALLED[name] // 8  # one behind the other, so that each is felt
            own[min(at + draw.whole(0, 1), len(own) - 1)] = LONG_STALL
    return free.waiting(gaps)


_STALLED = {"command": 0, "weight": 0, "ifmap": 1, "bias": 4, "ofmap": 6}
"""Where in a port's words it stands still, in eighths."""


def _counts(design: CoreDesign, layer: Layer, tiling: Tiling) -> dict[str, int]:
    return port_counts(design, design.numerics.problem(layer), tiling)


def _large(draw: Draw, design: CoreDesign, longest_words: int) -> SequenceCase:
    """Tiles of more rows, words and steps than narrow counters hold."""
    sides = draw.whole(33, 40), draw.whole(8, 9)
    planes = [
        Conv2d(
            name="plane",
            channels=channels_of(design, design.data_ports[0].lanes),
            filters=1,
            ifmap_height=height,
            ifmap_width=width,
            kernel_height=1,
            kernel_width=1,
            relu=draw.chance(0.5),
        )
        for height, width in (sides, sides[::-1])
    ]
    columns = mc.machine_record(design.machine).columns
    deep = MatMul(
        name="deep",
        m=draw.whole(1, 2),
        n=columns,
        k=channels_of(design, draw.whole(65, 70)),
        bias=draw.chance(0.5),
    )
    wide = replace(deep, n=columns * draw.whole(17, 19), k=channels_of(design, draw.whole(16, 18)))
    every = (*planes, deep, wide)
    layers = [given_case(draw, design, one, whole(design, one)) for one in every]
    return in_a_row(design, layers, longest_words)


def _far(draw: Draw, design: CoreDesign, longest_words: int) -> SequenceCase:
    """Windows that see no ifmap, of few and of many rows; strides and dilation together."""
    channels = channels_of(design, draw.whole(1, 2))
    tall = Conv2d(
        name="tall kernel",
        channels=channels,
        filters=draw.whole(1, 3),
        ifmap_height=draw.whole(4, 9),
        ifmap_width=draw.whole(2, 4),
        kernel_height=draw.whole(8, 11),
        kernel_width=draw.whole(1, 2),
        pad_top=draw.whole(4, 7),
        pad_bottom=draw.whole(4, 7),
        bias=draw.chance(0.5),
    )
    lost = Conv2d(
        name="lost windows",
        channels=channels,
        filters=draw.whole(1, 3),
        ifmap_height=draw.whole(2, 4),
        ifmap_width=draw.whole(2, 4),
        kernel_height=2,
        kernel_width=2,
        stride_height=2,
        stride_width=draw.whole(2, 3),
        pad_top=draw.whole(3, 5),
        pad_left=draw.whole(3, 5),
        pad_bottom=draw.whole(6, 8),
        pad_right=draw.whole(6, 8),
        dilation_height=2,
        dilation_width=2,
        relu=draw.chance(0.5),
    )
    return in_a_row(design, [given_case(draw, design, one) for one in (tall, lost)], longest_words)


def _full(draw: Draw, design: CoreDesign, longest_words: int) -> SequenceCase:
    found = [full_layer(design, memory) for memory in MEMORIES]
    layers = [given_case(draw, design, one, whole(design, one)) for one in found if one is not None]
    require(bool(layers), "no memory of the design is small enough to be filled by a case")
    return in_a_row(design, [replace(one, label="full") for one in layers], longest_words)


def gathered(draw: Draw, design: CoreDesign, longest_words: int) -> SequenceCase:
    """The aim of a core with a gather unit."""
    layers = gathered_layers(draw, design)
    require(bool(layers), "the design has no gather unit")
    return in_a_row(design, [given_case(draw, design, one) for one in layers], longest_words)


def reset_in_a_load(draw: Draw, design: CoreDesign, longest_words: int) -> ResetCase:
    """A gathered layer cut short behind a word of its ifmap, and another one behind the reset."""
    layers = [one for one in gathered_layers(draw, design) if one.kept and one.kept.count > 1]
    require(bool(layers), "the design has no gather unit for rows of more than a unit")
    interrupted, case = (
        given_case(draw, design, layers[draw.whole(0, len(layers) - 1)]) for _ in range(2)
    )
    crossed = interrupted.answer().transfers["ifmap"].cycle
    at = int(crossed[draw.whole(len(crossed) // 4, len(crossed) - 2)])
    return ResetCase(case=case, interrupted=interrupted, cycles=at + 1, label="reset")


EDGE_FILTERS = 12
"""So many biases that each of the values around an output's ends is one."""


def integer_edges(widths: tuple[int, int]) -> Aim:
    """Layers whose integers lie at ends: one of each recipe.  widths: operand, accumulator bits."""

    def edges(draw: Draw, design: CoreDesign, longest_words: int) -> SequenceCase:
        layers: list[TileCase] = []
        for recipe in RECIPES:
            layer = MatMul(
                name="edges",
                m=draw.whole(2, 5),
                n=EDGE_FILTERS,
                k=draw.whole(3, 9),
                bias=True,
                relu=recipe.relu,
            )
            if recipe.scaling in ("far", "largest") and wraps_within_reach(*widths):
                layer = replace(layer, m=2, k=min(MOST_PRODUCTS, longest_words // 40))
            drawn = design.numerics.synthetic(layer, Drawing())
            operands = edge_operands(draw, drawn, widths, recipe)
            layers.append(given_case(draw, design, layer, operands=operands))
        return in_a_row(design, layers, longest_words)

    return edges


__all__ = [
    "gathered",
    "given_case",
    "in_a_row",
    "integer_edges",
    "reset_in_a_load",
    "tile_aims",
]
