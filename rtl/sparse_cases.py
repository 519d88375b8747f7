"""Random cases of the sparse core: awkward layers, densities, and stalls."""

from dataclasses import replace

import numpy as np

from archsim.errors import InputError, require
from archsim.machines.scnn.answer import SparseAnswer
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.layer import layer_values
from archsim.machines.scnn.words import LayerRun, PassWords, pass_words, word_counts
from archsim.numbers import IntArray
from rtl.draw import Draw
from rtl.scnn import core_members
from rtl.sparse_conformance import SparseCase
from workloads.errors import WorkloadError
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, synthetic
from workloads.pooling import MaxPool

CHAIN_DENSITIES = (0.1, 0.5, 0.8, 1.0)
"""So that an ofmap has values."""
ATTEMPTS = 200
MOST_CYCLES = 40_000
"""Of a case whose ports never wait."""
MOST_CROSSINGS = 2_048
"""PEs · F · I · A, places at which a product may meet a bank: the bulk of the core's Verilog.

So many, four PEs of the published grid, take Verilator and the compiler several minutes once; of
its 32,768 no simulator was built in 13 minutes, with 5.8 GB of memory.  The PEs of a grid are
alike, so that a smaller one shows what they do.
"""


def random_layer(draw: Draw, design: Scnn) -> Conv2d | MatMul:
    """A layer around the sizes of the grid, of few channels: each is a list in every PE."""
    bias, relu = draw.chance(0.5), draw.chance(0.5)
    together = design.filter_group
    filters = draw.one_of(1, 3, together, together + 1, 2 * together + 1, 7)
    if draw.chance(0.2):
        batch = draw.one_of(1, 1, 2)
        return MatMul(
            name="product",
            m=_near(draw, design.grid_columns),
            n=filters,
            k=draw.whole(1, 9),
            batch=batch,
            shared_weight=batch == 1,
            bias=bias,
            relu=relu,
        )
    kernel = draw.whole(1, 4), draw.whole(1, 4)
    pads = [draw.whole(0, kernel[axis] - 1) for axis in (0, 1, 0, 1)]
    least = [max(1, kernel[axis] - pads[axis] - pads[axis + 2]) for axis in (0, 1)]
    groups = draw.one_of(1, 1, 1, 2)
    return Conv2d(
        name="convolution",
        channels=groups * draw.whole(1, 4),
        filters=groups * filters,
        ifmap_height=max(least[0], _near(draw, design.grid_rows)),
        ifmap_width=max(least[1], _near(draw, design.grid_columns)),
        kernel_height=kernel[0],
        kernel_width=kernel[1],
        stride_height=draw.whole(1, 3),
        stride_width=draw.whole(1, 3),
        pad_top=pads[0],
        pad_left=pads[1],
        pad_bottom=pads[2],
        pad_right=pads[3],
        groups=groups,
        batch=draw.one_of(1, 1, 2),
        bias=bias,
        relu=relu,
    )


def _near(draw: Draw, pes: int) -> int:
    """A size of a plane that troubles so many PEs: fewer, as many, around their multiples."""
    return draw.one_of(1, 2, 5, pes, pes + 1, 2 * pes - 1, 2 * pes + 1, 3 * pes)


def random_pool(draw: Draw, layer: Conv2d | MatMul) -> MaxPool | None:
    """A pooling now and then, if one of its windows at least fits the layer's plane."""
    if isinstance(layer, MatMul) or draw.chance(0.6):
        return None
    window = draw.whole(1, 3), draw.whole(1, 3)
    pool = MaxPool(
        window=window,
        stride=(draw.whole(1, 3), draw.whole(1, 3)),
        pad=(draw.whole(0, window[0] - 1), draw.whole(0, window[1] - 1)),
        ceil=draw.chance(0.5),
    )
    try:
        pool.pooled((layer.ofmap_height, layer.ofmap_width))
    except WorkloadError:
        return None
    return pool


def random_operands(
    draw: Draw,
    design: Scnn,
    layer: Conv2d | MatMul,
    densities: tuple[float, ...] = (0.0, 0.1, 0.3, 0.5, 0.8, 1.0),
) -> Operands:
    """Ifmap and weight of one of the densities each, some channels of the ifmap all zero."""
    bits = design.intake.source_bits
    seed = draw.whole(0, 1 << 30)
    chosen = [float(draw.rng.choice(densities)) for _ in range(2)]
    drawn = [synthetic(layer, bits=bits, density=density, seed=seed) for density in chosen]
    ifmap = drawn[0].ifmap.copy()
    if draw.chance(0.3):
        axis = 2 if isinstance(layer, MatMul) else 1
        silent = draw.rng.random(ifmap.shape[axis]) < 0.5
        np.moveaxis(ifmap, axis, 0)[silent] = 0
    if design.activation_memory.by_value and draw.chance(0.5):  # a value here and there is wide
        narrow = draw.rng.random(ifmap.shape) < 0.9
        ifmap = np.where(narrow, ifmap >> draw.whole(1, bits - 1), ifmap)
    if not design.activation_memory.exact and draw.chance(0.3):  # with ReLU all outputs are 0
        most = (1 << (bits - 1)) - 1
        weight = -np.minimum(np.abs(drawn[1].weight), most)
        shift = max(0, drawn[1].shift - draw.whole(0, 4))
        drawn[1] = replace(
            drawn[1], weight=weight.astype(drawn[1].weight.dtype), bias=None, shift=shift
        )
        ifmap = np.minimum(np.abs(ifmap), most).astype(ifmap.dtype)
    return replace(drawn[1], ifmap=ifmap)


def random_runs(draw: Draw, design: Scnn) -> tuple[LayerRun, ...]:
    """A layer, or two; or a chain of two or three, whose ofmaps stay now and then."""
    if draw.chance(0.4):
        return random_chain(draw, design)
    layers = [random_layer(draw, design) for _ in range(draw.one_of(1, 1, 2))]
    return tuple(
        LayerRun(
            layer=one, operands=random_operands(draw, design, one), pool=random_pool(draw, one)
        )
        for one in layers
    )


def random_chain(draw: Draw, design: Scnn) -> tuple[LayerRun, ...]:
    """Each ifmap is the ofmap before; most of the ofmaps that can stay do.

    Raises `InputError` for a layer that does not fit.
    """
    layer = random_layer(draw, design)
    layer = (
        replace(layer, batch=1, shared_weight=True)
        if isinstance(layer, MatMul)
        else replace(layer, batch=1, groups=1)
    )
    operands = _chain_operands(draw, design, layer)
    runs = (LayerRun(layer=layer, operands=operands, pool=random_pool(draw, layer)),)
    for _ in range(draw.one_of(1, 2, 2)):
        before = runs[-1]
        ofmap = layer_values(design, before.layer, before.operands, before.pool)
        layer = _following(draw, design, before)
        operands = _chain_operands(draw, design, layer)
        operands = replace(operands, ifmap=ofmap.astype(np.int16))
        run = LayerRun(layer=layer, operands=operands, pool=random_pool(draw, layer))
        kept = (*runs[:-1], replace(runs[-1], keep_ofmap=True), run)
        stays = draw.chance(0.8) and _can_run(design, kept)
        runs = kept if stays else (*runs, run)
    return runs


def _chain_operands(draw: Draw, design: Scnn, layer: Conv2d | MatMul) -> Operands:
    """Scaled so that small outputs are not all rounded to 0."""
    operands = random_operands(draw, design, layer, CHAIN_DENSITIES)
    return replace(operands, shift=max(0, operands.shift - draw.whole(0, 4)))


def _can_run(design: Scnn, runs: tuple[LayerRun, ...]) -> bool:
    try:
        pass_words(design, runs)
    except InputError:
        return False
    return True


def _following(draw: Draw, design: Scnn, before: LayerRun) -> Conv2d | MatMul:
    """A layer that takes the ofmap of another one, mostly with the ofmap of its own as large."""
    layer = before.layer
    filters = draw.one_of(1, 2, design.filter_group, design.filter_group + 1)
    if isinstance(layer, MatMul):
        return replace(layer, name="next product", k=layer.n, n=filters)
    plane = layer.ofmap_height, layer.ofmap_width
    if before.pool is not None:
        plane = before.pool.pooled(plane)
    kernel = [min(draw.one_of(1, 2, 3, 3), side + 1) for side in plane]
    pads = [draw.one_of(side // 2, draw.whole(0, side - 1)) for side in kernel for _ in (0, 1)]
    strides = [1 if draw.chance(0.9) else 2 for _ in plane]
    fits = [plane[n] + sum(pads[2 * n : 2 * n + 2]) >= kernel[n] for n in (0, 1)]
    return Conv2d(
        name="next convolution",
        channels=layer.filters,
        filters=filters,
        ifmap_height=plane[0],
        ifmap_width=plane[1],
        kernel_height=kernel[0] if fits[0] else 1,
        kernel_width=kernel[1] if fits[1] else 1,
        stride_height=strides[0],
        stride_width=strides[1],
        pad_top=pads[0],
        pad_left=pads[2],
        pad_bottom=pads[1],
        pad_right=pads[3],
        bias=draw.chance(0.3),
        relu=draw.chance(0.5),
    )


def random_idle(draw: Draw, passes: list[PassWords], free: SparseAnswer) -> dict[str, IntArray]:
    """Idle cycles on every port; now and then a pass's first ofmap vector is not taken at once.

    free: the answer if no port waits.
    """
    idle = {port: draw.gaps(count) for port, count in word_counts(passes).items()}
    first = 0
    for one, timing in zip(passes, free.timings, strict=True):
        if len(one.words["ofmap"]) and draw.chance(0.3):
            idle["ofmap"][first] = draw.whole(0, 2 * timing.cycles)
        first += len(one.words["ofmap"])
    return idle


def refuse_large(design: Scnn) -> None:
    """Raise `InputError` for a core of which no simulator can be built, or not in useful time."""
    core_members(design)  # refuses variants that only the model has
    crossings = design.multipliers * design.banks
    require(
        crossings <= MOST_CROSSINGS,
        f"PEs x products of a pair x banks must be at most {MOST_CROSSINGS:,} to be simulated, not "
        f"{crossings:,}; verify a smaller core of the same kind: --set grid_rows=2 "
        "--set grid_columns=2 --set weight_lanes=2 --set ifmap_lanes=2 --set banks=8",
    )


def random_sparse_case(seed: int, number: int, design: Scnn, longest_words: int) -> SparseCase:
    """Case `number` of a seed, on a design, of at most so many words: a layer, or more
    (`random_runs`).

    Raises `InputError` where no layer around the size of the grid fits, and for a core that
    simulators take too long for.
    """
    refuse_large(design)
    for attempt in range(ATTEMPTS):
        draw = Draw(seed, number, attempt)
        try:
            runs = random_runs(draw, design)
            label = f"seed {seed} case {number}"
            case = SparseCase(design=design, runs=runs, idle={}, label=label)
            if sum(word_counts(case.passes).values()) > longest_words:
                continue
            free = case.answer()
        except InputError:
            continue
        if free.cycles <= MOST_CYCLES:
            return replace(case, idle=random_idle(draw, case.passes, free))
    raise InputError(
        f"no random layer of case {number} fits the design: its memories are too small for layers "
        f"around the size of its grid; larger ones can be verified"
    )
