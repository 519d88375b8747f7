"""A layer, or a network, on a core that is walked by tiles: tilings, cycles, and what it computes.

Cycles depend on design, layer and tiling alone.  Where a scratchpad is compressed, the tiling may
depend on the operands too: more fits of narrow values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from archsim.causes import CAUSES
from archsim.errors import InputError, nearest
from archsim.layer.problem import Problem, Tiling
from archsim.layer_result import Own
from archsim.machine.model import OperandsOf
from archsim.machine.stepped import check_steps, joined, repeated
from archsim.result import TRAFFIC, Actions, AsFile, LayerResult
from archsim.tiled.design import CoreDesign
from archsim.tiled.gathered_rows import check_rows
from archsim.tiled.kept_reads import KeptReads
from archsim.tiled.layer_values import file_ofmap_of, layer_ofmap
from archsim.tiled.mapper import FAST, Mapper
from archsim.tiled.mapping_file import place_of, told_where
from workloads.layers import Conv2d, MatMul, Network
from workloads.steps import each_step, one_step, steps_in

if TYPE_CHECKING:
    from archsim.memory.tile_store import StoredOperand
    from archsim.tiled.numerics import IntegerArray


def check_tiling_names(network: Network, tilings: Mapping[str, Tiling]) -> None:
    """Raise `InputError` for tilings of layers that the array does not compute."""
    known = [layer.name for layer in network.matrix_layers]
    for name in tilings:
        if name not in known:
            place = place_of(tilings, name) or "mappings"
            raise InputError(
                f"{place}: {network.name} has no matrix layer {name!r}; {nearest(name, known)}"
            )


@dataclass(frozen=True)
class _Known:
    """Layers of one shape, and one tiling, are timed once, and those of one shape tiled once.

    mapper: what finds tilings.  sure: of compressed memories, the tilings for any values.  reads:
    by a layer's name, of cells that fail.
    """

    mapper: Mapper
    timed: dict[tuple[Problem, Tiling | None], LayerResult] = field(
        default_factory=dict[tuple[Problem, Tiling | None], LayerResult]
    )
    sure: dict[Problem, Tiling | None] = field(default_factory=dict[Problem, Tiling | None])
    reads: dict[tuple[str, Problem, Tiling | None], KeptReads] = field(
        default_factory=dict[tuple[str, Problem, Tiling | None], KeptReads]
    )


class TileRun:
    """A network on a core (`archsim.machine.model.NetworkRun`); no vector work is done inside."""

    inside: frozenset[str] = frozenset()

    def __init__(
        self,
        design: CoreDesign,
        operands: OperandsOf,
        tilings: Mapping[str, Tiling],
        mapper: Mapper = FAST,
    ) -> None:
        self._design, self._operands, self._tilings = design, operands, tilings
        self._known = _Known(mapper)

    def result(self, layer: Conv2d | MatMul) -> LayerResult:
        """Raises `InputError` for a layer that fits in no tiling, or not in the one given."""
        tiling, operands = self._tilings.get(layer.name), self._operands(layer)
        with told_where(self._tilings, layer.name):
            return _on_core(self._design, self._known, layer, tiling, operands)


def _on_core(
    design: CoreDesign,
    known: _Known,
    layer: Conv2d | MatMul,
    tiling: Tiling | None,
    operands: Any,
) -> LayerResult:
    """A layer's result."""
    steps = steps_in(layer)
    if steps > 1 and operands is not None and design.stores:
        check_steps(layer)
        each = each_step(layer, operands)
        return joined(
            layer.name, (_on_core(design, known, one, tiling, part) for one, part in each)
        )
    problem = design.numerics.problem(one_step(layer))
    taken = None if operands is None else design.numerics.take(layer, operands)
    stored = None
    if taken is not None and design.stores:
        stored = design.numerics.stored(layer, taken)
        timed = _on_compressed(design, (layer, problem), tiling, stored, known)
    else:
        if tiling is None and taken is not None and not design.numerics.may_share(taken):
            tiling = plan_tiling(design, layer, None, taken, known.mapper)
        key = (problem, tiling)
        if key not in known.timed:
            known.timed[key] = time_layer(design, one_step(layer), tiling, known.mapper)
        timed = repeated(known.timed[key], steps)
    own: Own = {"name": layer.name, "kind": _kind(layer), "macs": layer.macs}
    if taken is None:
        return timed.told(**own)
    kept = known.reads.setdefault((layer.name, problem, timed.tiling), KeptReads())
    return _with_values(design, layer, timed.told(**own), (taken, stored), kept)


def _kind(layer: Conv2d | MatMul) -> str:
    return "matmul" if isinstance(layer, MatMul) else "conv2d"


def _with_values(
    design: CoreDesign,
    layer: Conv2d | MatMul,
    timed: LayerResult,
    given: tuple[Any, Any],
    kept: KeptReads,
) -> LayerResult:
    """A layer's result with its ofmap, of a quantised file's operands as the file makes it.

    given: what the design's numerics made of the operands, taken and stored.
    """
    taken, stored = given
    assert timed.tiling is not None
    of_file = file_ofmap_of(design, layer, taken)
    if of_file is None:
        ofmap = layer_ofmap(design, layer, timed.tiling, taken, stored, kept)
        return timed.with_operands(taken, ofmap=ofmap)
    as_file = AsFile(
        values=of_file.ofmap.size,
        differing=of_file.differing,
        unlike_runtime=of_file.unlike,
        lacks=of_file.lacks,
    )
    return timed.with_operands(taken, ofmap=of_file.ofmap, as_file=as_file)


def _on_compressed(
    design: CoreDesign,
    seen: tuple[Conv2d | MatMul, Problem],
    tiling: Tiling | None,
    arrays: tuple[IntegerArray, IntegerArray],
    known: _Known,
) -> LayerResult:
    """Timed as ever in the tiling for its values, with what these take of compressed memories."""
    from archsim.tiled.operand_fit import value_actions

    layer, problem = seen
    if tiling is None and problem not in known.sure:
        known.sure[problem] = known.mapper.find(layer.name, problem, design)
    sure = known.sure.get(problem)
    tiling, found = _plan_stored(design, seen, tiling, arrays, (sure, known.mapper))
    key = (problem, tiling)
    if key not in known.timed:
        known.timed[key] = _time_tiles(design, layer, tiling)
    timed = known.timed[key]
    stored = {f"{name}_stored_bits": one.stored_bits for name, one in found.items()}
    stored |= {f"{name}_plain_bits": one.plain_bits for name, one in found.items()}
    actions = timed.actions.updated(value_actions(design, found))
    return replace(timed, actions=actions, stored=stored)


def _plan_stored(
    design: CoreDesign,
    seen: tuple[Conv2d | MatMul, Problem],
    tiling: Tiling | None,
    arrays: tuple[IntegerArray, IntegerArray],
    otherwise: tuple[Tiling | None, Mapper],
) -> tuple[Tiling, dict[str, StoredOperand]]:
    """The tiling for these operands, and what their tiles take of every compressed memory.

    otherwise: without a tiling, the one that any values fit, and what finds others.
    """
    from archsim.tiled.operand_fit import check_fit, fit_tiling

    layer, problem = seen
    if tiling is None:
        return fit_tiling(layer.name, design, problem, arrays, *otherwise)
    return tiling, check_fit(layer.name, design, problem, tiling, arrays)


def plan_tiling(
    design: CoreDesign,
    layer: Conv2d | MatMul,
    tiling: Tiling | None,
    operands: Any = None,
    mapper: Mapper = FAST,
) -> Tiling:
    """The tiling given by hand, checked, or the automatic one.

    With operands, what a compressed memory holds of them is counted; without, a tile must fit
    whatever its values are.
    """
    from archsim.tiled.tiling_check import check_tiling, why_nothing_fits

    check_rows(design, layer)
    problem, share = design.numerics.problem(one_step(layer)), True
    if operands is not None and problem.groups > 1:
        share = design.numerics.may_share(design.numerics.take(layer, operands))
    best = None if tiling else mapper.find(layer.name, problem, design, share=share)
    if operands is not None and design.stores:
        arrays = design.numerics.stored(layer, design.numerics.take(layer, operands))
        return _plan_stored(design, (layer, problem), tiling, arrays, (best, mapper))[0]
    if tiling is not None:
        check_tiling(layer.name, problem, design.machine, tiling)
        return tiling
    if best is None:
        raise why_nothing_fits(layer.name, problem, design.machine)
    return best


def time_layer(
    design: CoreDesign,
    layer: Conv2d | MatMul,
    tiling: Tiling | None = None,
    mapper: Mapper = FAST,
) -> LayerResult:
    """Cycles, causes, actions and bytes of one layer, of all its steps."""
    step = one_step(layer)
    timed = _time_tiles(design, step, plan_tiling(design, step, tiling, mapper=mapper))
    return repeated(timed, steps_in(layer))


def _time_tiles(design: CoreDesign, layer: Conv2d | MatMul, tiling: Tiling) -> LayerResult:
    """A layer in a tiling that is known to fit."""
    from archsim.tiled.actions import count_actions
    from archsim.tiled.layer_tiles import layer_tiles
    from archsim.tiled.summary import LayerSummary, time_tiles

    problem = design.numerics.problem(layer)
    tiles = layer_tiles(layer.name, problem, tiling, design.machine)
    figures = LayerSummary(*time_tiles(tiles, design.machine).tolist())
    return LayerResult(
        name=layer.name,
        kind=_kind(layer),
        macs=layer.macs,
        macs_per_cycle=design.macs_per_cycle,
        cycles=figures.cycles,
        serial_cycles=figures.serial,
        where={name: getattr(figures, name, 0) for name in CAUSES},
        bytes_moved={name: getattr(figures, f"{name}_bytes") for name in TRAFFIC},
        actions=Actions(count_actions(tiles, design.machine, design.stores)),
        tiles=figures.tiles,
        folds=figures.folds,
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
    return layer_ofmap(design, layer, plan_tiling(design, layer, tiling, taken), taken)


__all__ = ["TileRun", "check_tiling_names", "layer_output", "plan_tiling", "time_layer"]
