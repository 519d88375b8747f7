"""A network on a sparse machine, layer by layer, or in chains of layers whose ofmaps stay.

In a chain each layer is pooled in the PEs where the network pools behind it, and an ofmap stays for
the next layer where that can be (`archsim.machines.scnn.chain`).  Operands are those that are given
for each layer: where an ofmap stays, the next layer's ifmap stands for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from archsim.errors import InputError, require
from archsim.machine.stepped import check_steps, joined
from archsim.machines.scnn.accounting import bytes_of, pe_cycles, where_of
from archsim.machines.scnn.chain import Step, resident_timing
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.exact import best_choice
from archsim.machines.scnn.layer import Layer, layer_timing
from archsim.machines.scnn.mapper_options import Objective
from archsim.machines.scnn.timed_layer import ScnnTiming
from archsim.result import Actions, LayerResult
from workloads.layers import MatMul, Network
from workloads.operands import Operands
from workloads.steps import each_step, steps_in

OperandsOf = Callable[[Layer], Any]
"""Of a layer; None where there are none."""


class SparseNetwork:
    """The results of a network's layers, asked for in its order; a chain is run with its first.

    searched: the objective by which each layer's best mapping is searched, None where none is.
    inside: names of poolings that the PEs do.  Raises InputError as
    `archsim.machines.scnn.layer.layer_timing`, for a layer without operands, and for a chain on a
    design whose cycles are DNNsim's.
    """

    def __init__(
        self,
        design: Scnn,
        network: Network,
        operands: OperandsOf,
        *,
        chain: bool,
        searched: Objective | None = None,
    ) -> None:
        require(
            not (chain and design.group_rule == "dnnsim"),
            "ofmaps do not stay, and are not pooled, where group_rule is dnnsim",
        )
        self._design, self._operands = design, operands
        self._searched: Objective | None = searched
        self._pools = {feed.source: feed.pool for feed in network.feeds} if chain else {}
        self._chains = {one[0].name: one for one in chains(network)} if chain else {}
        self._made: dict[str, LayerResult] = {}
        self.inside = frozenset(feed.pool_layer for feed in network.feeds if chain and feed.pool)

    def result(self, layer: Layer) -> LayerResult:
        """Of a layer of the network."""
        together = self._chains.get(layer.name)
        if together:
            self._run(together)
        if layer.name in self._made:
            return self._made.pop(layer.name)
        operands = self._given(layer)
        if steps_in(layer) == 1:
            return self._one(layer, operands)
        check_steps(layer)
        return joined(layer.name, (self._one(*step) for step in each_step(layer, operands)))

    def _one(self, layer: Layer, operands: Operands) -> LayerResult:
        if self._searched:
            found = best_choice(self._design, layer, operands, self._searched)
            mapped = f", {found.choice.words}" if found.choice else ""
            return _result(layer, operands, found.timing, mapped)
        remark = ", counted as DNNsim does" if self._design.counts_as_dnnsim else ""
        return _result(layer, operands, layer_timing(self._design, layer, operands), remark)

    def _run(self, layers: tuple[Layer, ...]) -> None:
        steps: list[Step] = [
            (layer, self._given(layer), self._pools.get(layer.name)) for layer in layers
        ]
        timings = resident_timing(self._design, steps)
        for (layer, operands, pool), timing in zip(steps, timings, strict=True):
            kept = any(one.mapping.ifmap_kept for one in timing.passes)
            remarks = ["ifmap has stayed"] * kept + ["pooled in the PEs"] * bool(pool)
            found = _result(layer, operands, timing, "".join(f", {one}" for one in remarks))
            self._made[layer.name] = found

    def _given(self, layer: Layer) -> Operands:
        return needed(self._design, layer, self._operands(layer))


def needed(design: Scnn, layer: Layer, operands: Operands | None) -> Operands:
    """The operands; raises `InputError` where there are none."""
    if operands is None:
        raise InputError(
            f"{layer.name}: the cycles of {design.kind} depend on the operands; give some"
        )
    return operands


def chains(network: Network) -> list[tuple[Layer, ...]]:
    """Layers that follow one another, each feeding the next; alone where one is pooled only."""
    feeds = {feed.source: feed for feed in network.feeds}
    found: list[list[Layer]] = []
    for layer in network.matrix_layers:
        feed = feeds.get(found[-1][-1].name) if found else None
        if feed and feed.target == layer.name:
            found[-1].append(layer)
        else:
            found.append([layer])
    return [tuple(one) for one in found if len(one) > 1 or one[0].name in feeds]


def _result(layer: Layer, operands: Operands, timing: ScnnTiming, remark: str = "") -> LayerResult:
    return LayerResult(
        name=layer.name,
        kind="matmul" if isinstance(layer, MatMul) else "conv2d",
        macs=layer.macs,
        products=timing.products,
        macs_per_cycle=timing.design.macs_per_cycle,
        cycles=timing.cycles,
        serial_cycles=timing.cycles,
        where=where_of(timing),
        bytes_moved=bytes_of(timing),
        actions=Actions(timing.actions),
        tiles=len(timing.passes),
        folds=sum(len(one.starts) for one in timing.passes),
        operands=operands.scheme + remark,
        weight_origin=operands.weight_origin,
        ifmap_origin=operands.ifmap_origin,
        stored=timing.stored,
        per_pe=pe_cycles(timing),
        ofmap=timing.ofmap,
        work=layer,
    )


__all__ = ["SparseNetwork", "chains", "needed"]
