"""Simulate a network on a design: cycles, actions, bytes, and, with operands, every output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from archsim.core.causes import CAUSES, TILE_CAUSES
from archsim.core.core_design import CoreDesign
from archsim.core.design import Design
from archsim.core.problem import Problem, Tiling
from archsim.designs.registry import design_name, design_record
from archsim.errors import InputError, nearest, require
from archsim.numbers import IntArray
from archsim.result import TRAFFIC, Actions, LayerResult, NetworkResult
from archsim.version import VERSION
from workloads.layers import Conv2d, MatMul, Network, VectorWork

if TYPE_CHECKING:
    from archsim.core.compressed_fit import StoredTiles
    from archsim.core.numerics import IntegerArray

Progress = Callable[[int, int, str], None]
"""Called with layers done, layers in all, and the name of the layer just done."""

Source = Callable[["Conv2d | MatMul"], Any]
"""Gives the operands of a layer: `workloads.operands.Operands`, or the design's own."""


def simulate(  # noqa: PLR0913
    design: Design,
    network: Network,
    *,
    operands: Source | Mapping[str, Any] | None = None,
    tilings: Mapping[str, Tiling] | None = None,
    chain: bool = False,
    seed: int | None = None,
    progress: Progress | None = None,
) -> NetworkResult:
    """Simulate every layer.

    operands: None for timing only; else a mapping or function from a layer to its `Operands`
    (`workloads.operands`), or to what the design's numerics makes of them, and every
    `LayerResult.ofmap` holds the layer's output, [N, K, P, Q] or [b, M, N].
    tilings: by layer name, where the automatic one is not wanted.
    chain: of a sparse machine, ofmaps stay for the next layer where they can, and are pooled in
    the PEs where the network says so (`archsim.sparse_simulation`).
    Raises `InputError` for a layer that fits in no tiling, for operands that are not of the
    layer's shapes or do not fit the design's widths, and for tilings or a chain on a machine that
    has none.
    """
    results: list[LayerResult] = []
    check_tiling_names(network, tilings or {})
    matrix, pooled = _machine(design, network, operands, tilings or {}, chain=chain)
    for layer in network.layers:
        if isinstance(layer, VectorWork):
            results.append(_vector(design, layer, inside=layer.name in pooled))
        else:
            results.append(matrix(layer))
        if progress is not None:
            progress(len(results), len(network.layers), layer.name)
    return NetworkResult(
        design=design_record(design),
        design_name=design_name(design),
        network=network.name,
        network_source=network.source,
        clock_hz=design.clock_hz,
        layers=tuple(results),
        skipped=network.skipped,
        seed=seed,
        version=VERSION,
    )


def _machine(
    design: Design,
    network: Network,
    operands: Source | Mapping[str, Any] | None,
    tilings: Mapping[str, Tiling],
    *,
    chain: bool,
) -> tuple[Callable[[Conv2d | MatMul], LayerResult], frozenset[str]]:
    """What gives the result of a layer; names of poolings that are done within."""

    def values(layer: Conv2d | MatMul) -> Any:
        return None if operands is None else operands_of(operands, layer)

    if isinstance(design, CoreDesign):
        require(not chain, f"ofmaps stay in sparse machines, not in {design.kind}")
        run = partial(_on_core, design, _Known())
        return lambda layer: run(layer, tilings.get(layer.name), values(layer)), frozenset()
    from archsim.designs.scnn import Scnn
    from archsim.sparse_simulation import SparseNetwork

    assert isinstance(design, Scnn)
    require(not tilings, f"tilings are for cores walked by tiles, not {design.kind}")
    found = SparseNetwork(design, network, values, chain=chain)
    return found.result, found.pooled


def check_tiling_names(network: Network, tilings: Mapping[str, Tiling]) -> None:
    """Raise `InputError` for tilings of layers that the array does not compute."""
    known = [layer.name for layer in network.matrix_layers]
    for name in tilings:
        if name not in known:
            raise InputError(
                f"tilings: {network.name} has no matrix layer {name!r}; {nearest(name, known)}"
            )


def _vector(design: Design, layer: VectorWork, *, inside: bool) -> LayerResult:
    """inside: the machine does it while it computes the layer before."""
    return LayerResult(
        name=layer.name,
        kind=layer.operator,
        macs=0,
        macs_per_cycle=design.macs_per_cycle,
        vector_operations=0 if inside else layer.operations,
    )


def operands_of(operands: Source | Mapping[str, Any], layer: Conv2d | MatMul) -> Any:
    """The operands of one layer.  Raises `InputError` where a mapping has none."""
    if not isinstance(operands, Mapping):
        return operands(layer)
    named = cast("Mapping[str, Any]", operands)  # a Source may also be a Mapping
    if layer.name not in named:
        raise InputError(f"no operands for layer {layer.name}; there are: {', '.join(named)}")
    return named[layer.name]


@dataclass(frozen=True)
class _Known:
    """Layers of one shape, and one tiling, are timed once, and those of one shape tiled once.

    sure: of compressed memories, the tilings for any values.
    """

    timed: dict[tuple[Problem, Tiling | None], LayerResult] = field(
        default_factory=dict[tuple[Problem, Tiling | None], LayerResult]
    )
    sure: dict[Problem, Tiling | None] = field(default_factory=dict[Problem, Tiling | None])


def _on_core(
    design: CoreDesign,
    known: _Known,
    layer: Conv2d | MatMul,
    tiling: Tiling | None,
    operands: Any,
) -> LayerResult:
    """A layer's result."""
    problem = design.numerics.problem(layer)
    taken = None if operands is None else design.numerics.take(layer, operands)
    kind = "matmul" if isinstance(layer, MatMul) else "conv2d"
    stored = None
    if taken is not None and design.compressed_memories:
        stored = design.numerics.stored(layer, taken)
        timed = _on_compressed(design, (layer, problem), tiling, stored, known)
    else:
        key = (problem, tiling)
        if key not in known.timed:
            known.timed[key] = time_layer(design, layer, tiling)
        timed = known.timed[key]
    timed = replace(timed, name=layer.name, kind=kind, macs=layer.macs)
    if taken is None:
        return timed
    assert timed.tiling is not None
    ofmap = design.numerics.ofmap(layer, timed.tiling, taken, stored)
    return replace(timed, ofmap=ofmap, operands=taken.scheme)


def _on_compressed(
    design: CoreDesign,
    seen: tuple[Conv2d | MatMul, Problem],
    tiling: Tiling | None,
    arrays: tuple[IntegerArray, IntegerArray],
    known: _Known,
) -> LayerResult:
    """Timed as ever in the tiling for its values, with what these take of compressed memories."""
    from archsim.core.compressed_rows import row_actions
    from archsim.core.tiling import find_tiling

    layer, problem = seen
    if tiling is None and problem not in known.sure:
        known.sure[problem] = find_tiling(problem, design.machine)
    sure = known.sure.get(problem)
    tiling, found = _plan_stored(design, seen, tiling, arrays, sure)
    key = (problem, tiling)
    if key not in known.timed:
        known.timed[key] = _time_tiles(design, layer, tiling)
    timed = known.timed[key]
    stored = {f"{name}_stored_bits": one.stored_bits for name, one in found.items()}
    stored |= {f"{name}_plain_bits": one.plain_bits for name, one in found.items()}
    actions = timed.actions.updated(row_actions(design, found))
    return replace(timed, actions=actions, stored=stored)


def _plan_stored(
    design: CoreDesign,
    seen: tuple[Conv2d | MatMul, Problem],
    tiling: Tiling | None,
    arrays: tuple[IntegerArray, IntegerArray],
    sure: Tiling | None,
) -> tuple[Tiling, dict[str, StoredTiles]]:
    """The tiling for these operands, and what their tiles take of every compressed memory."""
    from archsim.core.compressed_fit import check_fit, fit_tiling

    layer, problem = seen
    if tiling is None:
        return fit_tiling(layer.name, design, problem, arrays, sure)
    return tiling, check_fit(layer.name, design, problem, tiling, arrays)


def plan_tiling(
    design: CoreDesign, layer: Conv2d | MatMul, tiling: Tiling | None, operands: Any = None
) -> Tiling:
    """The tiling given by hand, checked, or the automatic one.

    With operands, what a compressed memory holds of them is counted; without, a tile must fit
    whatever its values are.
    """
    from archsim.core.tiling import check_tiling, find_tiling, why_nothing_fits

    problem = design.numerics.problem(layer)
    best = None if tiling else find_tiling(problem, design.machine)
    if operands is not None and design.compressed_memories:
        arrays = design.numerics.stored(layer, design.numerics.take(layer, operands))
        return _plan_stored(design, (layer, problem), tiling, arrays, best)[0]
    if tiling is not None:
        check_tiling(layer.name, problem, design.machine, tiling)
        return tiling
    if best is None:
        raise why_nothing_fits(layer.name, problem, design.machine)
    return best


def time_layer(
    design: CoreDesign, layer: Conv2d | MatMul, tiling: Tiling | None = None
) -> LayerResult:
    """Cycles, causes, actions and bytes of one layer."""
    return _time_tiles(design, layer, plan_tiling(design, layer, tiling))


def _time_tiles(design: CoreDesign, layer: Conv2d | MatMul, tiling: Tiling) -> LayerResult:
    """A layer in a tiling that is known to fit."""
    from archsim.core import summary
    from archsim.core.actions import count_actions
    from archsim.core.commands import check_commands
    from archsim.core.walk import walk

    tiles = walk(design.numerics.problem(layer).vector(), tiling.vector(), design.machine)
    check_commands(layer.name, tiles)
    figures = summary.time_tiles(tiles, design.machine).tolist()
    return LayerResult(
        name=layer.name,
        kind="matmul" if isinstance(layer, MatMul) else "conv2d",
        macs=layer.macs,
        macs_per_cycle=design.macs_per_cycle,
        cycles=figures[summary.CYCLES],
        serial_cycles=figures[summary.SERIAL],
        where=dict.fromkeys(CAUSES, 0)
        | dict(zip(TILE_CAUSES, figures[summary.COMPUTING : summary.MEMORY + 1], strict=True)),
        bytes_moved=dict(
            zip(TRAFFIC, figures[summary.IFMAP_BYTES : summary.OFMAP_BYTES + 1], strict=True)
        ),
        actions=Actions(count_actions(tiles, design.machine, design.stores)),
        tiles=figures[summary.TILES],
        folds=figures[summary.FOLDS],
        tiling=tiling,
    )


def layer_output(
    design: CoreDesign,
    layer: Conv2d | MatMul,
    operands: Any,
    tiling: Tiling | None = None,
) -> Any:
    """What the core computes for a layer: [N, K, P, Q] or [b, M, N] (`LayerResult.ofmap`)."""
    numerics = design.numerics
    taken = numerics.take(layer, operands)
    return numerics.ofmap(layer, plan_tiling(design, layer, tiling, taken), taken)


def simulate_many(
    designs: Iterable[CoreDesign], network: Network
) -> tuple[IntArray, tuple[str, ...]]:
    """Timing of many designs at once: cycles [designs, layers], and the names of the layers.

    Layers are those of `network.matrix_layers`, each with its best tiling on each design; cycles
    are −1 where a layer fits in no tiling.  One compiled pass runs over designs, layers, tiles.
    """
    from archsim.core.summary import time_many

    listed = list(designs)
    layers = network.matrix_layers
    cycles = np.zeros((len(listed), len(layers)), np.int64)
    # cores that see a layer alike go through one pass; most numerics make the same problems
    alike: dict[tuple[Problem, ...], list[int]] = {}
    seen: dict[Any, tuple[Problem, ...]] = {}
    for at, design in enumerate(listed):
        key = design.numerics.problem_key
        if key not in seen:
            seen[key] = tuple(design.numerics.problem(layer) for layer in layers)
        alike.setdefault(seen[key], []).append(at)
    for problems, rows in alike.items():
        unique = list(dict.fromkeys(problems))
        found, _ = time_many(
            np.stack([problem.vector() for problem in unique]),
            np.stack([listed[at].machine for at in rows]),
        )
        cycles[rows] = found[:, [unique.index(problem) for problem in problems]]
    return cycles, tuple(layer.name for layer in layers)
