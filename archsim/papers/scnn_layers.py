"""The layers of SCNN's evaluation as workloads, and what the model counts when they run.

Densities are those of figure 1, zeros are drawn from a seed (`workloads.sparse`).  Of GoogLeNet
the figure has the inception modules 3a and 5b; a convolution of one between has densities on the
line from 3a's to 5b's, by the place of its module among the nine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from archsim.layer import layout
from archsim.layer.problem import Problem, problem_of
from archsim.machines.scnn.dense import DCNN
from archsim.machines.scnn.dense_actions import Zeros
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.dnnsim import dnnsim_passes
from archsim.machines.scnn.strips import strips_of
from archsim.machines.scnn.timing import pass_timing
from archsim.numbers import AnyIntArray, ceil_div
from archsim.papers.figures import read_paper
from archsim.papers.scnn_energy import Run, spent
from archsim.papers.scnn_tally import Tally, total
from workloads.builtin import builtin
from workloads.layers import Conv2d
from workloads.operands import Operands
from workloads.sparse import sparse_activations, sparse_operands

NETWORKS = {"AlexNet": "alexnet", "GoogLeNet": "googlenet", "VGG-16": "vgg16"}
"""As the paper calls them, and our networks."""

MODULES = ("3a", "3b", "4a", "4b", "4c", "4d", "4e", "5a", "5b")

FEWEST_FILTERS = 32
SAMPLE = 16
"""Of a layer of which only a sample of filters is timed, one of 16, but at least 32, stay."""

IMAGE_CHANNELS = 3

Tensors = tuple[AnyIntArray, AnyIntArray, AnyIntArray]
"""ifmap [H, W, C], weight [K, R, S, C], ofmap [P, Q, K] of one image and conv group."""

SEED = 0


@dataclass(frozen=True, kw_only=True)
class SparseLayer:
    """A convolution with the densities of its tensors.

    bar: in figures 9 and 10.  first: its ifmap is the network's input.
    """

    bar: str
    layer: Conv2d
    ifmap: float
    weight: float
    ofmap: float
    first: bool = False


@cache
def sparse_layers(network: str) -> tuple[SparseLayer, ...]:
    """The layers of a network that the figures have, in order: GoogLeNet's are 54 in 9 modules.

    The ofmap, which decides only what fits the OARAM, has the density of the next layer's ifmap
    in the network's list, the last one that of its own.
    """
    found: list[tuple[str, Conv2d, tuple[float, float]]] = []
    for layer in builtin(NETWORKS[network]).matrix_layers:
        if not isinstance(layer, Conv2d):
            continue
        if network != "GoogLeNet":
            ifmap, weight = read_paper("scnn")["densities"][network][layer.name]
            found.append((f"{network} {layer.name}", layer, (ifmap, weight)))
        elif layer.name.startswith("inception_"):
            module, name = layer.name.removeprefix("inception_").split("/")
            found.append((f"{network} {module}", layer, _between(module, name)))
    following = [*(density[0] for _, _, density in found[1:]), found[-1][2][0]]
    return tuple(
        SparseLayer(
            bar=bar,
            layer=layer,
            ifmap=ifmap,
            weight=weight,
            ofmap=ofmap,
            first=layer.channels == IMAGE_CHANNELS,
        )
        for (bar, layer, (ifmap, weight)), ofmap in zip(found, following, strict=True)
    )


def _between(module: str, name: str) -> tuple[float, float]:
    """Densities of a convolution of GoogLeNet: module docstring."""
    share = MODULES.index(module) / (len(MODULES) - 1)
    first, last = (
        read_paper("scnn")["densities"][f"GoogLeNet {end}"][name] for end in MODULES[::8]
    )
    ifmap, weight = (a + share * (b - a) for a, b in zip(first, last, strict=True))
    return ifmap, weight


def at_density(sparse: SparseLayer, density: float) -> SparseLayer:
    """The same layer with all its tensors at one density."""
    return replace(sparse, ifmap=density, weight=density, ofmap=density)


def sampled(sparse: SparseLayer) -> SparseLayer:
    """The same layer with one of 16 of its filters, but at least 32 in each conv group."""
    layer = sparse.layer
    groups = layer.groups
    kept = min(layer.filters, max(layer.filters // SAMPLE // groups, FEWEST_FILTERS) * groups)
    return replace(sparse, layer=replace(layer, filters=kept))


def measure(design: Scnn, sparse: SparseLayer, clustering: float = 0.0) -> Tally:
    """One layer, run on operands that are drawn."""
    if design.counts_as_dnnsim:
        return _counted_as_dnnsim(design, sparse, clustering)
    drawn = _tensors(sparse, problem_of(sparse.layer), clustering)
    return measure_tensors(design, sparse.layer, drawn, first=sparse.first)


def _counted_as_dnnsim(design: Scnn, sparse: SparseLayer, clustering: float) -> Tally:
    """Cycles alone: that count has no strips, and no energy is asked of it."""
    passes = dnnsim_passes(design, sparse.layer, _operands(sparse, clustering))
    return Tally(dense=DCNN.cycles(sparse.layer), cycles=sum(one.cycles for one in passes))


def measure_tensors(
    design: Scnn, layer: Conv2d, every: Sequence[Tensors], *, first: bool = False
) -> Tally:
    """A layer of one image, run.

    every: ifmap [H, W, C], weight [K, R, S, C] and ofmap [P, Q, K] of every conv group.
    first: its ifmap is the network's input.
    """
    problem = problem_of(layer)
    lanes = design.weight_lanes * design.ifmap_lanes
    parts: list[Tally] = []
    for tensors in every:
        needed = multiplications(problem, tensors[0], tensors[1])
        timings = [
            pass_timing(design, strip.mapping, strip.operands)
            for strip in strips_of(design, problem, tensors)
        ]
        run = Run(
            problem=problem,
            zeros=Zeros.of(problem, tensors),
            passes=timings,
            arrives=first,
        )
        parts.append(Tally(ideal=needed / design.multipliers, energy=spent(design, run)))
        for timing in timings:
            pes, cycles = timing.pes, timing.compute_cycles
            made = float((pes.products + pes.outside).sum())
            counts: dict[str, Any] = {
                name: float(getattr(pes, name).sum()) for name in (*_COUNTED, "pairs")
            }
            parts.append(
                Tally(
                    cycles=cycles,
                    bare=float(pes.pairs.max()),
                    products=made / lanes,
                    unused=float((design.pes - timing.mapping.used_pes) * cycles),
                    passes=1,
                    **counts,
                )
            )
    return replace(total(parts), dense=DCNN.cycles(layer))


def multiplications(problem: Problem, ifmap: AnyIntArray, weight: AnyIntArray) -> int:
    """Products of non-zero values of a plane [H, W, C] and weights [K, R, S, C] that meet.

    In each channel all weights meet all activations, of a strided layer those with equal
    remainders; products beyond the plane's edge count, since nothing tells them beforehand.
    """
    strides = problem.stride_height, problem.stride_width
    made = 0
    for row in range(strides[0]):
        for column in range(strides[1]):
            first = (row - problem.pad_top) % strides[0], (column - problem.pad_left) % strides[1]
            values = ifmap[first[0] :: strides[0], first[1] :: strides[1]] != 0
            taps = weight[:, row :: strides[0], column :: strides[1]] != 0
            made += int(values.sum(axis=(0, 1)) @ taps.sum(axis=(0, 1, 2)))
    return made


_COUNTED = ("conflict", "wait", "skip", "barrier", "drain")


def _tensors(sparse: SparseLayer, problem: Problem, clustering: float) -> Sequence[Tensors]:
    """As `measure_tensors` takes them.

    The ofmap is drawn, not computed: the core's cycles depend on where zeros are, no value.
    """
    layer = sparse.layer
    ofmap = sparse_activations(
        (1, layer.filters, layer.ofmap_height, layer.ofmap_width),
        sparse.ofmap,
        clustering=clustering,
        bits=8,
        random=np.random.default_rng(SEED),
    )
    return tensors_of(layer, _operands(sparse, clustering), ofmap)


def _operands(sparse: SparseLayer, clustering: float) -> Operands:
    return sparse_operands(
        sparse.layer,
        weight_density=sparse.weight,
        ifmap_density=sparse.ifmap,
        clustering=clustering,
        bits=8,
        seed=SEED,
    )


def tensors_of(layer: Conv2d, operands: Operands, ofmap: AnyIntArray) -> Sequence[Tensors]:
    """Operands of one image and its ofmap [1, K, P, Q], as `measure_tensors` takes them."""
    problem = problem_of(layer)
    ofmap = ofmap[0].reshape(problem.groups, problem.filters, *ofmap.shape[2:])
    ifmap = layout.split_ifmap(layer, problem, operands.ifmap)
    weight = layout.split_weight(layer, problem, operands.weight)
    return [
        (ifmap[0, group], weight[group], ofmap[group].transpose(1, 2, 0))
        for group in range(problem.groups)
    ]


def folded_dense_cycles(layer: Conv2d) -> int:
    """DCNN's cycles if it folds a stride into channels, and cuts the folded ifmap into its tiles.

    ⌈⌈H / sh⌉ / rows⌉ · ⌈⌈W / sw⌉ / columns⌉ · K · ⌈R / sh⌉ · ⌈S / sw⌉ · ⌈C · sh · sw / vector⌉.
    """
    rows = ceil_div(ceil_div(layer.ifmap_height, layer.stride_height), DCNN.grid_rows)
    columns = ceil_div(ceil_div(layer.ifmap_width, layer.stride_width), DCNN.grid_columns)
    taps = ceil_div(layer.kernel_height, layer.stride_height)
    taps *= ceil_div(layer.kernel_width, layer.stride_width)
    depth = layer.channels // layer.groups * layer.stride_height * layer.stride_width
    return rows * columns * layer.filters * taps * ceil_div(depth, DCNN.vector)


__all__ = [
    "MODULES",
    "NETWORKS",
    "SparseLayer",
    "Tensors",
    "at_density",
    "folded_dense_cycles",
    "measure",
    "measure_tensors",
    "multiplications",
    "sampled",
    "sparse_layers",
    "tensors_of",
]
