"""Model against RTL: one case, run on any simulator, compared cycle for cycle and bit for bit.

A kind of design brings a `Case`: what a core is given, and what its model answers.  `TileCase`
(`rtl/tile_conformance.py`) is that of cores which are walked by tiles, `SparseCase`
(`rtl/sparse_conformance.py`) that of a machine whose cycles depend on its values.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from archsim.errors import InputError
from archsim.numbers import IntArray
from archsim.ports import Difference, Port, PortAnswer, Transfers, differences
from rtl.benches.bench import Bench, Outcome, Stimulus, StreamPort
from rtl.toolchain import ToolchainError

COUNTER_BITS = 48
LAST = "cycles"
"""Among the counts: the model's figure of a whole run, `PortAnswer.cycles` (`ends_at_ports`)."""
PATIENCE_CYCLES = 2_000
"""How long a run may go on behind the model's last transfer before it is called hung."""


class Case(ABC):
    """What a design computes, and how the memory side serves each port; a frozen dataclass.

    label: how the case was drawn.
    """

    design: Any
    """A `Design`; its kind is that of the case."""
    label: str

    @property
    @abstractmethod
    def name(self) -> str:
        """Of the layer or layers."""

    @property
    @abstractmethod
    def macs(self) -> int:
        """Useful multiply-accumulates, those by zero operands among them."""

    @property
    def ports(self) -> tuple[Port, ...]:
        """The streams at the core's boundary, as model and RTL have them."""
        return self.design.machine_model().ports

    @property
    @abstractmethod
    def counters(self) -> tuple[str, ...]:
        """Actions that the RTL counts, in members count_<action>; the model counts them too."""

    @property
    @abstractmethod
    def tail_cycles(self) -> int:
        """How long a run goes on behind its last word, in which the counters settle."""

    @abstractmethod
    def answer(self) -> PortAnswer:
        """What the model says."""

    @abstractmethod
    def gaps(self, expected: Any) -> Mapping[str, IntArray]:
        """By port, idle cycles of the memory side before each word of the case's own answer."""

    def figures_apart(self) -> Mapping[str, tuple[int, int]]:
        """Figures that two ways of the model give, by name, where they are not the same: with
        values and without, closed forms and scans, many at once and one by one."""
        return {}

    def details(self) -> dict[str, str]:
        """What the design computes, in words."""
        return {"layer": self.name}

    @property
    def before(self) -> "tuple[Case, int] | None":
        """What the core runs first, and after how many cycles a reset ends it."""
        return None

    @property
    def timed(self) -> bool:
        """Whether the model says in which cycles words cross; else only which, and their order."""
        return True

    @property
    def ends_at_ports(self) -> bool:
        """Whether a run ends with the last word that crosses; else with the off-chip memory's last
        transfer, which is behind the hardware."""
        return True

    @property
    def layers_in_row(self) -> int:
        """Layers that follow one another without a reset."""
        return 1

    def waits(self, expected: Any) -> Mapping[str, IntArray]:
        """The idle cycles that the case was drawn with, also those that `gaps` leaves out because
        the model's `earliest` has them."""
        return self.gaps(expected)

    def waiting(self, gaps: Mapping[str, IntArray]) -> "Case":
        """The same case with other idle cycles before each word, by port.

        Raises `InputError` for kinds whose cases cannot.
        """
        raise InputError(f"cases of kind {self.design.kind!r} take no other stalls")

    def smaller(self) -> "list[Case]":
        """Cases with less in them, boldest first; one that fails takes the place of this one."""
        return []


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How an RTL run compares with the model."""

    case: Case
    transfers: int
    cycles: int
    ports: tuple[Difference, ...]
    counts: dict[str, tuple[int, int]]
    """Actions whose counts differ, and `LAST` if the last word crosses elsewhere: the model's, the
    RTL's."""
    failure: str = ""
    """Why the run came to no end: a word that was not kept, a loop that never settles."""
    starved: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Ports on which words are missing although the run waited for them: words that crossed, words
    of the model; the port first whose next word the model has earliest."""
    apart: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Figures that two ways of the model give, where they differ (`Case.figures_apart`)."""
    seen: Mapping[str, int] = field(default_factory=dict[str, int])
    """What was watched inside (`rtl.benches.bench.Watch`)."""

    @property
    def cycle_differences(self) -> int:
        return sum(port.cycle_differences for port in self.ports)

    @property
    def value_differences(self) -> int:
        return sum(port.value_differences for port in self.ports)

    @property
    def equal(self) -> bool:
        """Every transfer and every action count is equal, and the model with itself."""
        differs = self.cycle_differences or self.value_differences or self.counts or self.apart
        return not (differs or self.failure)

    def record(self) -> dict[str, Any]:
        """Where they differ, as plain data."""
        return {
            "case": self.case.label,
            **self.case.details(),
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
            **(
                {"model": {name: list(two) for name, two in self.apart.items()}}
                if self.apart
                else {}
            ),
            **({"failure": self.failure} if self.failure else {}),
            **({"hung": self.hung} if self.starved else {}),
        }

    @property
    def hung(self) -> str:
        """Where the run stood still, in words."""
        ports = [
            f"{port} after {there} of {all_} words" for port, (there, all_) in self.starved.items()
        ]
        return f"{'; '.join(ports)}; given up in cycle {self.cycles}"


def bench_of(case: Case, expected: PortAnswer) -> Bench:
    """The bench that drives a case: words, gaps and earliest cycles for every port."""
    stimuli: dict[str, Stimulus] = {}
    waits = case.gaps(expected)
    for port in case.ports:
        gaps, earliest = waits[port.name], expected.earliest[port.name]
        if port.direction == "i":
            words = port.pack(expected.transfers[port.name].payload)
            stimuli[port.name] = Stimulus.offer(words, gaps=gaps, earliest=earliest)
        else:
            stimuli[port.name] = Stimulus.accept(len(gaps), gaps=gaps, earliest=earliest)
    interrupted = None
    if case.before is not None:
        first, cycles = case.before
        interrupted = replace(bench_of(first, first.answer()), max_cycles=cycles)
    last = max(int(t.cycle[-1]) for t in expected.transfers.values() if len(t))
    return Bench(
        ports=tuple(
            StreamPort(name=port.name, direction=port.direction, bits=port.bits)
            for port in case.ports
        ),
        probes=tuple((f"count_{name}", COUNTER_BITS) for name in case.counters),
        stimuli=stimuli,
        max_cycles=last + PATIENCE_CYCLES,
        tail_cycles=case.tail_cycles,
        before=interrupted,
    )


def judge(case: Case, expected: PortAnswer, outcome: Outcome) -> Verdict:
    """Compare an outcome with the model's answer."""
    actual: dict[str, Transfers] = {}
    for port in case.ports:
        crossing = outcome.crossings[port.name]
        cycles = crossing.cycles
        if not case.timed and len(cycles) == len(expected.transfers[port.name]):
            cycles = expected.transfers[port.name].cycle
        actual[port.name] = Transfers(cycle=cycles, payload=port.unpack(crossing.words))
    counts = {
        name: (expected.actions[name], outcome.probes[f"count_{name}"])
        for name in case.counters
        if outcome.probes[f"count_{name}"] != expected.actions[name]
    }
    cycles = max((int(one.cycle[-1]) + 1 for one in actual.values() if len(one)), default=0)
    if case.timed and case.ends_at_ports and cycles != expected.cycles:
        counts[LAST] = expected.cycles, cycles
    found = differences(expected.transfers, actual)
    return Verdict(
        case=case,
        transfers=sum(port.transfers for port in found),
        cycles=outcome.cycles,
        ports=found,
        counts=counts,
        starved=_starved(expected, outcome) if outcome.timed_out else {},
        seen=outcome.seen,
    )


def _starved(expected: PortAnswer, outcome: Outcome) -> dict[str, tuple[int, int]]:
    next_word: dict[str, int] = {}
    for name, words in expected.transfers.items():
        there = len(outcome.crossings[name].cycles)
        if there < len(words):
            next_word[name] = int(words.cycle[there])
    return {
        name: (len(outcome.crossings[name].cycles), len(expected.transfers[name]))
        for name in sorted(next_word, key=lambda name: next_word[name])
    }


Runner = Callable[[Bench], Outcome]
"""Runs a bench on the RTL of one design."""


def check(case: Case, run: Runner, expected: PortAnswer | None = None) -> Verdict:
    """Run a case and compare with what the model says, or has said already (`expected`); and the
    model's other ways to the same figures with one another."""
    expected = case.answer() if expected is None else expected
    try:
        verdict = judge(case, expected, run(bench_of(case, expected)))
        return replace(verdict, apart=case.figures_apart())
    except ToolchainError:
        raise
    except RuntimeError as error:  # a stream's rule broken, a simulation that gives up
        return Verdict(
            case=case, transfers=0, cycles=0, ports=(), counts={}, failure=str(error) or repr(error)
        )
