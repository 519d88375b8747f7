"""Cases of cores that are walked by tiles."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from archsim.layer.problem import Tiling
from archsim.numbers import IntArray
from archsim.tiled.design import CoreDesign
from archsim.tiled.trace import PORTS, Answer, answer
from archsim.timing import Service
from rtl.conformance import Case
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
    def tail_cycles(self) -> int:
        return self.design.result_latency_cycles + SETTLING_CYCLES

    def answer(self) -> Answer:
        """What the model says; raises `InputError` as `archsim.tiled.trace.answer`."""
        return answer(self.design, self.layer, self.tiling, self.operands, self.services)

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

    def details(self) -> dict[str, str]:
        return {"layer": repr(self.layer), "tiling": repr(self.tiling)}


def free_services() -> tuple[Service, ...]:
    """Ports that never wait."""
    return tuple(Service() for _ in PORTS)
