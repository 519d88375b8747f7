"""The model of the sparse machine, whose cycles depend on its values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from archsim.kernels import Kernel
from archsim.machine.interval import Interval, Track
from archsim.machine.model import (
    Answer,
    MachineModel,
    MatrixLayer,
    OperandsOf,
    Options,
)
from archsim.machine.pe_occupancy import Lines, Occupancy
from archsim.machines.scnn.activity import SparseActivity, sparse_activity, sparse_tracks
from archsim.machines.scnn.command import scnn_ports
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.dnnsim_kernel import count_blocks
from archsim.machines.scnn.exact import best_choice
from archsim.machines.scnn.kernels import run_group
from archsim.machines.scnn.mapper_options import searched_by
from archsim.machines.scnn.simulation import SparseNetwork, needed
from archsim.machines.scnn.weights import write_lists
from archsim.machines.scnn.words import LayerRun
from archsim.numbers import IntArray
from archsim.ports import Port, Transfers
from archsim.result import LayerResult
from workloads.layers import Network


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseLayer(Answer):
    """A layer with its operands, pass by pass."""

    activity: SparseActivity

    @property
    def cycles(self) -> int:
        return self.activity.cycles

    @property
    def steps(self) -> int:
        return len(self.activity.passes)

    @property
    def transfers(self) -> Mapping[str, Transfers]:
        return self.activity.answer.transfers

    @property
    def earliest(self) -> Mapping[str, IntArray]:
        return self.activity.answer.earliest

    @property
    def actions(self) -> Mapping[str, int]:
        return self.activity.answer.actions

    def intervals(self, start_cycle: int = 0) -> Iterator[Interval]:
        yield from replace(self.activity, start_cycle=start_cycle)


class SparseMachine(MachineModel):
    """SCNN, and what counts as another simulator does."""

    design: Scnn
    timed_by_values = True
    steps_are = "passes"

    @property
    def ports(self) -> tuple[Port, ...]:
        return scnn_ports(self.design)

    @property
    def tracks(self) -> tuple[Track, ...]:
        return sparse_tracks(self.design)

    def kernels(self, options: Options, *, many: bool = False) -> tuple[Kernel[..., Any], ...]:
        del options, many
        return (count_blocks,) if self.design.counts_as_dnnsim else (write_lists, run_group)

    def run(self, network: Network, operands: OperandsOf, options: Options) -> SparseNetwork:
        """Raises `InputError` for a chain, and for a search of mappings, where cycles are another
        simulator's."""
        chain, searched = bool(options.get("chain")), searched_by(options)
        return SparseNetwork(self.design, network, operands, chain=chain, searched=searched)

    def answer(self, layer: MatrixLayer, operands: Any, options: Options) -> SparseLayer:
        """Of a layer by itself, whose ofmap leaves."""
        given, searched = needed(self.design, layer, operands), searched_by(options)
        found = best_choice(self.design, layer, given, searched) if searched else None
        run = LayerRun(layer=layer, operands=given, choice=found.choice if found else None)
        return SparseLayer(activity=sparse_activity(self.design, run))

    def occupancy(self, name: str, layers: Sequence[LayerResult], bins: int) -> Occupancy:
        """Each layer is a span of time."""
        return sparse_occupancy(name, layers)


def sparse_occupancy(name: str, layers: Sequence[LayerResult]) -> Occupancy:
    """Cycles in which pairs of vectors enter a PE's banks; each layer is a span of time."""
    loads = [np.asarray(one.per_pe["load"]) for one in layers]
    edges = np.cumsum([0, *(one.cycles for one in layers)])
    return Occupancy(
        what="pairs of vectors that enter the banks",
        name=name,
        cycles=int(edges[-1]),
        counts=np.sum(loads, axis=0),
        row="row",
        column="column",
        edges_cycles=edges,
        lines=(Lines(name="PE", each=1, counts=np.stack([load.ravel() for load in loads])),),
    )


__all__ = ["SparseLayer", "SparseMachine"]
