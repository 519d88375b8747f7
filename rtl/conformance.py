"""Model against RTL: one case, run on any simulator, compared cycle for cycle and bit for bit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from archsim.core.actions import ACTIONS
from archsim.core.core_design import CoreDesign
from archsim.core.problem import Tiling
from archsim.ports import Difference, Transfers, differences
from archsim.timing import Service
from archsim.trace import PORTS, Answer, answer
from rtl.benches.bench import Bench, Outcome, Stimulus, StreamPort
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands

COUNTER_BITS = 48
PATIENCE_CYCLES = 2_000
"""How long a run may go on behind the model's last transfer before it is called hung."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A layer in a tiling on a design, and how the memory side serves each port."""

    design: CoreDesign
    layer: Conv2d | MatMul
    tiling: Tiling
    operands: Operands
    services: tuple[Service, ...]
    label: str = ""

    def answer(self) -> Answer:
        """What the model says."""
        return answer(self.design, self.layer, self.tiling, self.operands, self.services)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How an RTL run compares with the model."""

    case: Case
    transfers: int
    cycles: int
    ports: tuple[Difference, ...]
    counts: dict[str, tuple[int, int]]
    """Actions whose counts differ: the model's, the RTL's."""

    @property
    def cycle_differences(self) -> int:
        return sum(port.cycle_differences for port in self.ports)

    @property
    def value_differences(self) -> int:
        return sum(port.value_differences for port in self.ports)

    @property
    def equal(self) -> bool:
        """Every transfer and every action count is equal."""
        return not (self.cycle_differences or self.value_differences or self.counts)

    def record(self) -> dict[str, Any]:
        """Where they differ, as plain data."""
        return {
            "case": self.case.label,
            "layer": repr(self.case.layer),
            "tiling": repr(self.case.tiling),
            "ports": [
                {
                    "port": port.port,
                    "cycle_differences": port.cycle_differences,
                    "value_differences": port.value_differences,
                    "first": port.first,
                }
                for port in self.ports
                if port.first is not None
            ],
            "actions": {name: list(pair) for name, pair in self.counts.items()},
        }


def bench_of(case: Case, expected: Answer) -> Bench:
    """The bench that drives a case: words, gaps and earliest cycles for every port."""
    stimuli: dict[str, Stimulus] = {}
    for port, service in zip(case.design.ports, case.services, strict=True):
        count = len(expected.transfers[port.name])
        intervals = np.diff(service.finish_times(count), prepend=0)
        gaps, earliest = intervals - 1, expected.earliest[port.name]
        if port.direction == "i":
            words = port.pack(expected.transfers[port.name].payload)
            stimuli[port.name] = Stimulus.offer(words, gaps=gaps, earliest=earliest)
        else:
            stimuli[port.name] = Stimulus.accept(count, gaps=gaps, earliest=earliest)
    last = max(int(t.cycle[-1]) for t in expected.transfers.values() if len(t))
    return Bench(
        ports=tuple(
            StreamPort(name=port.name, direction=port.direction, bits=port.bits)
            for port in case.design.ports
        ),
        probes=tuple((f"count_{name}", COUNTER_BITS) for name in ACTIONS),
        stimuli=stimuli,
        max_cycles=last + PATIENCE_CYCLES,
        tail_cycles=case.design.result_latency_cycles + 32,
    )


def judge(case: Case, expected: Answer, outcome: Outcome) -> Verdict:
    """Compare an outcome with the model's answer."""
    actual: dict[str, Transfers] = {}
    for port in case.design.ports:
        crossing = outcome.crossings[port.name]
        actual[port.name] = Transfers(cycle=crossing.cycles, payload=port.unpack(crossing.words))
    counts = {
        name: (count, outcome.probes[f"count_{name}"])
        for name, count in expected.actions.items()
        if outcome.probes[f"count_{name}"] != count
    }
    found = differences(expected.transfers, actual)
    return Verdict(
        case=case,
        transfers=sum(port.transfers for port in found),
        cycles=outcome.cycles,
        ports=found,
        counts=counts,
    )


Runner = Callable[[Bench], Outcome]
"""Runs a bench on the RTL of one design."""


def check(case: Case, run: Runner) -> Verdict:
    """Run a case and compare."""
    expected = case.answer()
    return judge(case, expected, run(bench_of(case, expected)))


def free_services() -> tuple[Service, ...]:
    """Ports that never wait."""
    return tuple(Service() for _ in PORTS)
