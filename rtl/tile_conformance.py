"""Cases of cores that are walked by tiles."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from archsim.errors import InputError
from archsim.layer.problem import Tiling
from archsim.numbers import IntArray
from archsim.tiled.design import CoreDesign
from archsim.tiled.timing import plan_tiling
from archsim.tiled.trace import PORTS, Answer, answer
from archsim.timing import NO_GAPS, Service
from rtl.conformance import Case
from rtl.coverage.shrink import cut_gaps, smaller_gaps, smaller_pieces
from rtl.tile_paths import figures_apart
from rtl.value_paths import values_apart
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands

SETTLING_CYCLES = 32


@dataclass(frozen=True, kw_only=True)
class TileCase(Case):
    """A layer in a tiling on a design, and how the memory side serves each port.

    services: in the order of `archsim.tiled.trace.PORTS`; None: of the design's own off-chip
    memory.
    """

    design: CoreDesign
    layer: Conv2d | MatMul
    tiling: Tiling
    operands: Operands
    services: tuple[Service, ...] | None = None
    label: str = ""

    @property
    def name(self) -> str:
        return self.layer.name

    @property
    def macs(self) -> int:
        return self.layer.macs

    @property
    def counters(self) -> tuple[str, ...]:
        return self.design.actions

    @property
    def ends_at_ports(self) -> bool:
        return self.services is not None or not self.design.off_chip.bytes_per_cycle

    @property
    def tail_cycles(self) -> int:
        return self.design.result_latency_cycles + SETTLING_CYCLES

    def answer(self, halves: Mapping[str, int] | None = None) -> Answer:
        """What the model says; raises `InputError` as `archsim.tiled.trace.answer`.

        halves: into which half each operand is loaded first; None: the first.
        """
        return answer(self.design, self.layer, self.tiling, self.operands, self.services, halves)

    def gaps(self, expected: Any) -> Mapping[str, IntArray]:
        if self.services is None:
            return {
                port.name: np.zeros(len(expected.transfers[port.name]), np.int64)
                for port in self.ports
            }
        return {
            port.name: np.diff(service.finish_times(len(expected.transfers[port.name])), prepend=0)
            - 1
            for port, service in zip(self.ports, self.services, strict=True)
        }

    def waiting(self, gaps: Mapping[str, IntArray]) -> "TileCase":
        """A port without idle cycles of its own never waits."""
        services = tuple(Service(gaps=gaps.get(name, NO_GAPS)) for name in PORTS)
        return replace(self, services=services)

    def smaller(self) -> "list[Case]":
        """With fewer stalls; in one tile, or as few as fit; with half of the layer."""
        gaps = dict(self.gaps(self.answer()))
        taken = None
        if self.design.stores:
            taken = self.design.numerics.take(self.layer, self.operands)
        whole = plan_tiling(self.design, self.layer, None, taken)
        return [
            *(self.waiting(fewer) for fewer in smaller_gaps(gaps)),
            *([replace(self, tiling=whole)] if whole != self.tiling else []),
            *(self._piece(gaps, *piece) for piece in smaller_pieces(self.layer, self.operands)),
        ]

    def _piece(
        self, gaps: Mapping[str, IntArray], layer: Conv2d | MatMul, operands: Operands
    ) -> "TileCase":
        """Of a smaller layer, in the same tiling where it fits."""
        problem, tiling = self.design.numerics.problem(layer), self.tiling
        tiling = replace(
            tiling,
            pixel_rows=min(tiling.pixel_rows, problem.out_height),
            pixel_columns=min(tiling.pixel_columns, problem.out_width),
            filters=min(tiling.filters, problem.filters),
            channels=min(tiling.channels, problem.channels),
            images=min(tiling.images, problem.images),
        )
        taken = self.design.numerics.take(layer, operands) if self.design.stores else None
        try:
            tiling = plan_tiling(self.design, layer, tiling if tiling.groups == 1 else None, taken)
        except InputError:
            tiling = plan_tiling(self.design, layer, None, taken)
        free = replace(
            self, layer=layer, operands=operands, tiling=tiling, services=free_services()
        )
        words = {name: len(one) for name, one in free.answer().transfers.items()}
        return free.waiting({name: cut_gaps(gaps[name], words[name]) for name in PORTS})

    def figures_apart(self) -> Mapping[str, tuple[int, int]]:
        """Of the layer in its tiling: counts and cycles; values."""
        of = self.design, self.layer, self.tiling
        return {**figures_apart(*of), **values_apart(*of, self.operands)}

    def details(self) -> dict[str, str]:
        return {"layer": repr(self.layer), "tiling": repr(self.tiling)}


def free_services() -> tuple[Service, ...]:
    """Ports that never wait."""
    return tuple(Service() for _ in PORTS)
