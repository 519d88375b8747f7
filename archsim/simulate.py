"""Simulate a network on a design: cycles, actions, bytes, and, with operands, every output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np

from archsim.errors import InputError, enough_memory, require, require_within
from archsim.importers import any_network
from archsim.kv_traffic import kv_traffic
from archsim.layer.operand_check import check_needed
from archsim.machine.answered import Checks
from archsim.machine.design import Design
from archsim.machine.model import MachineModel
from archsim.machine.option import option_record
from archsim.machine.registry import design_name, design_record, load_design
from archsim.numbers import BoolArray, IntArray
from archsim.result import LayerResult, NetworkResult
from archsim.training_traffic import training_traffic
from archsim.version import VERSION
from workloads.layers import Conv2d, MatMul, Network, VectorWork

Progress = Callable[[int, int, str], None]
"""Called with layers done, layers in all, and the name of the layer just done."""

Source = Callable[["Conv2d | MatMul"], Any]
"""Gives the operands of a layer: `workloads.operands.Operands`, or the design's own."""


def simulate(
    design: Design | str,
    network: Network | str,
    *,
    operands: Source | Mapping[str, Any] | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> NetworkResult:
    """Simulate every layer.

    design, network: themselves, or their names (`archsim list designs`, `archsim list workloads`),
    or the names of their files.
    operands: None for timing only; else a mapping or function from a layer to its `Operands`
    (`workloads.operands`), or to what the design's numerics makes of them, and every
    `LayerResult.ofmap` holds the layer's output, [N, K, P, Q] or [b, M, N], 0 where their `needed`
    says that nobody reads it.
    options: what the design's kind declares (`archsim.machine.option`, `archsim show` prints them).
    Of cores that are walked by tiles `mappings`, by layer name, where the automatic one is not
    wanted, and `mapper`, `objective` and `objective_technology`, by which the others are found
    (`archsim.tiled.mapper`); of a sparse machine `chain`: ofmaps stay for the next layer where
    they can, and are pooled in the PEs where the network says so
    (`archsim.machines.scnn.simulation`).
    Raises `InputError` for what the machine cannot do (`archsim.machine.model`): a layer that fits
    in no tiling, an option that it does not have; for operands that are not of the layer's shapes
    or do not fit the design's widths, and for unknown names; `WorkloadError` for an unknown
    network.
    """
    design, network = designed(design), networked(network)
    results: list[LayerResult] = []
    if operands is not None:
        require_within("macs", **{f"{network.name}: MACs with values": network.macs})
    model, checks, given = design.machine_model(), Checks(design.kind), _Given(operands)
    chosen = model.taken(options)
    run = model.run(network, given.to, chosen)
    for layer in network.layers:
        if isinstance(layer, VectorWork):
            results.append(_vector(design, layer, inside=layer.name in run.inside))
        else:
            with enough_memory(layer.name):
                found = checks.checked(run.result(layer)).told(work=layer)
                results.append(given.masked(layer, found))
        if progress is not None:
            progress(len(results), len(network.layers), layer.name)
    return NetworkResult(
        kv_cache=kv_traffic(network.kv_cache, results, design.intake),
        training=training_traffic(network.training, results, design.intake),
        design=design_record(design),
        design_name=design_name(design),
        network=network.name,
        network_source=network.source,
        clock_hz=design.clock_hz,
        layers=tuple(results),
        skipped=network.skipped,
        seed=seed,
        version=VERSION,
        timed_by_values=model.timed_by_values,
        options=option_record(chosen),
    )


class _Given:
    """The operands of a run, and which of their outputs somebody reads."""

    def __init__(self, operands: Source | Mapping[str, Any] | None) -> None:
        self._operands = operands
        self._needed: dict[str, BoolArray] = {}

    def to(self, layer: Conv2d | MatMul) -> Any:
        """Those of a layer, for the machine; None without any."""
        if self._operands is None:
            return None
        found = operands_of(self._operands, layer)
        needed = getattr(found, "needed", None)
        if needed is not None:
            check_needed(layer, needed)
            self._needed[layer.name] = needed
        return found

    def masked(self, layer: Conv2d | MatMul, result: LayerResult) -> LayerResult:
        """With 0 for the outputs that are not needed, which not every machine leaves out."""
        needed = self._needed.pop(layer.name, None)
        if needed is None or result.ofmap is None:
            return result
        nothing = result.ofmap.dtype.type(0)
        return replace(result, ofmap=np.where(needed, result.ofmap, nothing))


def designed(design: Design | str) -> Design:
    """A design, by name or as it is."""
    given: Any = design
    if not isinstance(given, (Design, str)):
        raise InputError(f"a design, or the name of one, is wanted, not {given!r}")
    return load_design(given) if isinstance(given, str) else given


def networked(network: Network | str) -> Network:
    """A network, by name or as it is."""
    given: Any = network
    if not isinstance(given, (Network, str)):
        raise InputError(f"a network, or the name of one, is wanted, not {given!r}")
    return any_network(given) if isinstance(given, str) else given


def _vector(design: Design, layer: VectorWork, *, inside: bool) -> LayerResult:
    """inside: the machine does it while it computes the layer before."""
    return LayerResult(
        name=layer.name,
        kind=layer.operator,
        macs=0,
        macs_per_cycle=design.macs_per_cycle,
        vector_operations=0 if inside else layer.operations,
        work=layer,
    )


def operands_of(operands: Source | Mapping[str, Any], layer: Conv2d | MatMul) -> Any:
    """The operands of one layer.  Raises `InputError` where a mapping has none."""
    if not isinstance(operands, Mapping):
        return operands(layer)
    named = cast("Mapping[str, Any]", operands)  # a Source may also be a Mapping
    if layer.name not in named:
        raise InputError(f"no operands for layer {layer.name}; there are: {', '.join(named)}")
    return named[layer.name]


def timed_without_values(design: Design) -> MachineModel:
    """The model of a design; raises `InputError` where its cycles depend on values."""
    model = design.machine_model()
    require(
        not model.timed_by_values,
        f"simulate_many takes machines whose cycles do not depend on values, not {design.kind}; "
        "simulate it with operands",
    )
    return model


def simulate_many(
    designs: Iterable[Design | str], network: Network | str, **options: Any
) -> tuple[IntArray, tuple[str, ...]]:
    """Timing of many designs at once: cycles [designs, layers], and the names of the layers.

    designs: of machines whose cycles do not depend on values, or their names; network: itself, or
    its name; options: as `simulate` takes them, such as `mapper="rough"`.  Layers are those of
    `network.matrix_layers`, each with its best tiling on each design; cycles are −1 where a layer
    fits in no tiling.  Over the designs of each kind of model runs one compiled pass, where it has
    one for these options.  Raises `InputError` for a machine whose cycles depend on values, such as
    scnn: `simulate` takes it, with operands; for an option that a machine does not have; and for
    more tiles of a layer than the limit.
    """
    models = [timed_without_values(designed(design)) for design in designs]
    layers = networked(network).matrix_layers
    cycles = np.zeros((len(models), len(layers)), np.int64)
    alike: dict[type[MachineModel], list[int]] = {}
    for at, model in enumerate(models):
        alike.setdefault(type(model), []).append(at)
    for kind, rows in alike.items():
        with enough_memory("simulate_many"):
            taken = models[rows[0]].taken(options)
            cycles[rows] = kind.cycles_of_many([models[at].design for at in rows], layers, taken)
    return cycles, tuple(layer.name for layer in layers)


__all__ = [
    "Progress",
    "Source",
    "designed",
    "networked",
    "operands_of",
    "simulate",
    "simulate_many",
    "timed_without_values",
]
