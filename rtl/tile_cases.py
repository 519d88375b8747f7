"""Random cases of cores that are walked by tiles: awkward layers, tilings, and stalls."""

from dataclasses import replace
from typing import Any

import numpy as np

from archsim.errors import InputError
from archsim.layer.intake import Drawing
from archsim.layer.problem import Problem, Tiling
from archsim.numbers import AnyIntArray, ceil_div
from archsim.tiled.commands import columns_of
from archsim.tiled.design import OPERANDS, CoreDesign
from archsim.tiled.machine_vector import machine_record
from archsim.tiled.timing import plan_tiling
from archsim.tiled.trace import PORTS
from archsim.tiled.walk import walk_layer
from archsim.timing import Service
from rtl.draw import Draw
from rtl.gather_bins import with_kept_units
from rtl.layer_sequence import SequenceCase
from rtl.tile_conformance import TileCase
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands

ATTEMPTS = 200
MOST_TILES = 400
SEQUENCES = 0.2
"""The share of random cases that are several layers."""


def _near(draw: Draw, size: int, limit: int) -> int:
    """A size that troubles an array axis of `size`: 1, primes, around its multiples."""
    awkward = (1, 2, 3, size, size + 1, size - 1, 2 * size, 2 * size + 1, 7)
    return max(1, min(draw.one_of(*awkward), limit))


def random_layer(draw: Draw, design: CoreDesign) -> Conv2d | MatMul:
    """A layer around the sizes of the design's array."""
    pixels, filters, channels = design.mnk
    bias, relu = draw.chance(0.5), draw.chance(0.5)
    if draw.chance(0.4):
        batch, outputs = draw.one_of(1, 1, 2, 3), draw.chance(0.3)
        return MatMul(
            name="product",
            m=draw.whole(20, 60) if outputs else _near(draw, pixels, 40),
            n=_near(draw, filters, 40),
            k=draw.whole(1, 2) if outputs else _near(draw, channels, 40),
            batch=batch,
            shared_weight=batch == 1,
            bias=bias,
            relu=relu,
        )
    return _random_convolution(draw, design, bias=bias, relu=relu)


def _random_convolution(draw: Draw, design: CoreDesign, *, bias: bool, relu: bool) -> Conv2d:
    _, filters, channels = design.mnk
    kernel = (draw.whole(1, 3), draw.whole(1, 3))
    dilation = (draw.one_of(1, 1, 2), draw.one_of(1, 1, 2))
    pads = [draw.whole(0, kernel[axis] - 1) for axis in (0, 1, 0, 1)]
    least = [max(1, (kernel[a] - 1) * dilation[a] + 1 - pads[a] - pads[a + 2]) for a in (0, 1)]
    narrow = draw.chance(0.3)
    groups = draw.whole(2, 13) if narrow else draw.one_of(1, 1, 1, 2)
    channels = draw.one_of(1, 1, 2, 3) if narrow else _near(draw, channels, 20)
    filters = draw.one_of(1, 1, 2, 3) if narrow else _near(draw, filters, 20)
    return Conv2d(
        name="convolution",
        channels=channels * groups,
        filters=filters * groups,
        ifmap_height=draw.whole(least[0], least[0] + 5),
        ifmap_width=draw.whole(least[1], least[1] + 5),
        kernel_height=kernel[0],
        kernel_width=kernel[1],
        stride_height=draw.whole(1, 2),
        stride_width=draw.whole(1, 3),
        pad_top=pads[0],
        pad_left=pads[1],
        pad_bottom=pads[2],
        pad_right=pads[3],
        dilation_height=dilation[0],
        dilation_width=dilation[1],
        groups=groups,
        batch=draw.one_of(1, 1, 2, 3, 5),
        bias=bias,
        relu=relu,
    )


def random_operands(draw: Draw, design: CoreDesign, layer: Conv2d | MatMul, seed: int) -> Operands:
    """Values of all magnitudes; for compressed memories mostly narrow ones."""
    drawn = design.numerics.synthetic(layer, Drawing(seed=seed))
    if not design.stores:
        return drawn
    return replace(drawn, ifmap=_narrowed(draw, drawn.ifmap), weight=_narrowed(draw, drawn.weight))


def _narrowed(draw: Draw, values: AnyIntArray) -> AnyIntArray:
    """Most values near zero, by as many bits as is drawn; −2^(B−1) may stay among them."""
    most = int(np.abs(values.astype(np.int64)).max()).bit_length()
    bits = draw.whole(0, most) if draw.chance(0.3) else most
    wide = draw.rng.random(values.shape) < draw.rng.random() ** 8
    return np.where(wide, values, values >> bits).astype(values.dtype)


def random_tiling(
    draw: Draw, design: CoreDesign, layer: Conv2d | MatMul, operands: Operands
) -> Tiling | None:
    """A tiling that fits, mostly of several tiles; None if none was found.

    With compressed memories often the automatic one, whose tiles are as large as the values allow.
    """
    problem = design.numerics.problem(layer)
    taken = design.numerics.take(layer, operands) if design.stores else None
    if taken is not None and draw.chance(0.6):
        try:
            return plan_tiling(design, layer, None, taken)
        except InputError:
            return None
    together = machine_record(design.machine).output_vector
    for attempt in range(ATTEMPTS):
        if problem.groups > 1 and draw.chance(0.6):
            tiling = _blocks(draw, problem)
            if _fits(design, layer, tiling, taken):
                return tiling
        filters = draw.whole(1, problem.filters)
        tiling = Tiling(
            pixel_rows=draw.whole(1, problem.out_height),
            pixel_columns=draw.whole(1, problem.out_width),
            filters=min(ceil_div(filters, together) * together, problem.filters),
            channels=draw.whole(1, problem.channels),
            order="filters_outer" if draw.chance(0.5) else "pixels_outer",
            images=draw.whole(1, problem.images),
        )
        if attempt > ATTEMPTS // 2:
            tiling = replace(tiling, pixel_rows=1, channels=1)
        if _fits(design, layer, tiling, taken):
            return tiling
    return None


def _blocks(draw: Draw, problem: Problem) -> Tiling:
    """Groups side by side: any number, so that the last block often has empty ones."""
    groups = draw.whole(2, problem.groups)
    return Tiling(
        pixel_rows=draw.whole(1, problem.out_height),
        pixel_columns=draw.whole(1, problem.out_width),
        filters=groups * problem.filters,
        channels=groups * problem.channels,
        images=draw.whole(1, problem.images),
        groups=groups,
    )


def _fits(design: CoreDesign, layer: Conv2d | MatMul, tiling: Tiling, taken: Any) -> bool:
    try:
        plan_tiling(design, layer, tiling, taken)
    except InputError:
        return False
    return True


def random_services(draw: Draw, counts: dict[str, int], columns: int) -> tuple[Service, ...]:
    """Gaps on every port: none, rare and long, or everywhere, each port its own way.

    Those of the ofmap are often longer: up to so many rows as `columns` may make a word.
    """
    gaps = {name: draw.gaps(max(1, counts[name])) for name in PORTS}
    if draw.chance(0.6):
        gaps["ofmap"] *= draw.whole(1, 2 * columns)
    return tuple(Service(gaps=gaps[name]) for name in PORTS)


def port_counts(design: CoreDesign, problem: Problem, tiling: Tiling) -> dict[str, int]:
    """Words that cross each port."""
    tiles = columns_of(walk_layer(problem, tiling, design.machine))
    loaded = zip(OPERANDS, tiles.words, tiles.loads, strict=True)
    return {
        "command": 1,
        **{name: int((words * loads).sum()) for name, words, loads in loaded},
        "ofmap": int(tiles.output_words.sum()),
    }


def random_core_case(
    seed: int, number: int, design: CoreDesign, longest_words: int
) -> TileCase | SequenceCase:
    """Case `number` of a seed, of at most so many words: a layer, or often two or three of them.

    Raises `InputError` as `random_tile_case`.
    """
    case = random_tile_case(seed, number, design, longest_words)
    draw = Draw(seed, number, ATTEMPTS)
    if not draw.chance(SEQUENCES):
        return case
    layers = [case]
    for _ in range(draw.whole(1, 2)):
        share = longest_words // 3
        layers.append(random_tile_case(draw.whole(0, 1 << 30), number, design, share))
    return SequenceCase(design=design, layers=tuple(layers), label=case.label)


def random_tile_case(seed: int, number: int, design: CoreDesign, longest_words: int) -> TileCase:
    """Case `number` of a seed, on a design, of at most so many words.

    Raises `InputError` where no layer around the size of the array fits.
    """
    for attempt in range(ATTEMPTS):
        draw = Draw(seed, number, attempt)
        layer = with_kept_units(draw, design, random_layer(draw, design))
        problem = design.numerics.problem(layer)
        operands = random_operands(draw, design, layer, seed + number)
        tiling = random_tiling(draw, design, layer, operands)
        if tiling is None:
            continue
        counts = port_counts(design, problem, tiling)
        tiles = len(walk_layer(problem, tiling, design.machine))
        if sum(counts.values()) > longest_words or tiles > MOST_TILES:
            continue
        return TileCase(
            design=design,
            layer=layer,
            tiling=tiling,
            operands=operands,
            services=random_services(draw, counts, machine_record(design.machine).columns),
            label=f"seed {seed} case {number}",
        )
    raise InputError(
        f"no random layer of case {number} fits the design: its scratchpads are too small "
        f"for layers around the size of its array; larger ones can be verified"
    )
