"""The suite catches what it is there to catch: faults put into the RTL, and into the model.

A mutation may override only what its component drives itself: a signal driven twice would make
Amaranth's simulator oscillate.
"""

from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import Const, Module, Value

from archsim.core import machine as mc
from archsim.designs.systolic import DATAFLOWS, Dataflow, Systolic
from rtl.benches.bench import ProtocolError
from rtl.cases import random_case
from rtl.conformance import check
from rtl.core.accumulators import Accumulators
from rtl.core.credits import Credits
from rtl.core.loader import Loader
from rtl.core.output_stage import Requantize
from rtl.core.sequencer import Sequencer
from rtl.core.window import Window
from rtl.simulators import runner
from rtl.systolic import SystolicCore

CASES = 12


def caught(design: Systolic, cases: int = CASES) -> bool:
    """Whether any of the first random cases shows a difference, or breaks the run."""
    for number in range(cases):
        case = random_case(11, number, design, longest_words=3000)
        try:
            if not check(case, runner(design, "amaranth")).equal:
                return True
        except ProtocolError:
            return True
    return False


def _design(dataflow: Dataflow = "weight_stationary") -> Systolic:
    return Systolic(rows=4, columns=3, dataflow=dataflow)


Patch = Callable[[pytest.MonkeyPatch], None]


def _delay(name: str, change: int) -> Patch:
    """The named delay line of the core takes some cycles more."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = SystolicCore._delayed

        def mutated(self: Any, m: Module, line: str, value: Value, cycles: int) -> Value:
            return plain(self, m, line, value, cycles + change * (line == name))

        monkeypatch.setattr(SystolicCore, "_delayed", mutated)

    return patch


def _after(kind: type, change: Callable[[Any, Module], None]) -> Patch:
    """`change` overrides assignments at the end of a component's elaboration."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = kind.elaborate

        def mutated(self: Any, platform: object) -> Module:
            m = plain(self, platform)
            change(self, m)
            return m

        monkeypatch.setattr(kind, "elaborate", mutated)

    return patch


def _ignored_credit(initial: int, limit: int) -> Patch:
    def change(self: Any, m: Module) -> None:
        if (self.initial, self.limit) == (initial, limit):
            m.d.comb += self.available.eq(1)

    return _after(Credits, change)


def _dropped_bit(self: Any, m: Module) -> None:
    m.d.comb += self.o[0].eq(0)


def _no_relu(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Requantize.elaborate

    def mutated(self: Any, platform: object) -> Module:
        self.relu = Const(0)
        return plain(self, platform)

    monkeypatch.setattr(Requantize, "elaborate", mutated)


def _late_loader(self: Any, m: Module) -> None:
    m.d.comb += self.word.ready.eq(0)
    with m.If(self.write_address != 1):
        m.d.comb += self.word.ready.eq(self.word.valid)


def _swapped_chunks(self: Any, m: Module) -> None:
    m.d.comb += self.run_last.eq(self.chunk_last)


def _no_mask(self: Any, m: Module) -> None:
    m.d.sync += self.high.eq(self.lanes)


def _stuck_address(self: Any, m: Module) -> None:
    m.d.sync += self.address[0].eq(0)


def _always_overwrite(self: Any, m: Module) -> None:
    for half in range(2):
        m.d.comb += m.submodules[f"half_{half}"].write_data.eq(self.sums)


def _same_half(self: Any, m: Module) -> None:
    m.d.sync += self.write_half.eq(0)


MUTATIONS: dict[str, Patch] = {
    "sums one cycle late": _delay("token_delay", 1),
    "sums one cycle early": _delay("token_delay", -1),
    "capture one cycle late": _delay("capture_delay", 1),
    "bank one cycle early": _delay("bank_delay", -1),
    "a dropped bit in the output": _after(Requantize, _dropped_bit),
    "no ReLU": _no_relu,
    "halves are always free": _ignored_credit(2, 2),
    "tiles are always loaded": _ignored_credit(0, 2),
    "back-pressure of the output ignored": _ignored_credit(8, 8),
    "a loader that stalls on an address": _after(Loader, _late_loader),
    "loads always into the same half": _after(Loader, _same_half),
    "taps change with every chunk": _after(Sequencer, _swapped_chunks),
    "padding is not masked": _after(Window, _no_mask),
    "an address bit stuck": _after(Window, _stuck_address),
    "sums of later folds overwrite": _after(Accumulators, _always_overwrite),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_in_the_rtl_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTATIONS[name](monkeypatch)
    assert caught(_design())


@pytest.mark.parametrize(
    ("dataflow", "patch"),
    [
        ("output_stationary", _delay("flag_delay", 1)),
        ("output_stationary", _delay("begin_delay", -1)),
        ("output_stationary", _delay("weight_delay", 1)),
        ("output_stationary", _delay("token_delay", 1)),
        ("input_stationary", _delay("capture_delay", 1)),
        ("input_stationary", _delay("token_delay", -1)),
    ],
)
def test_a_fault_in_the_other_dataflows_is_caught(
    dataflow: Dataflow, patch: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch(monkeypatch)
    assert caught(_design(dataflow))


@pytest.mark.parametrize("dataflow", ["output_stationary", "input_stationary"])
def test_weights_of_a_block_read_again(dataflow: Dataflow, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that does not go back to the start of its block is caught."""
    plain = SystolicCore._walk_weights

    def mutated(self: Any, m: Module) -> None:
        plain(self, m)
        m.d.comb += self.weights.restart.eq(0)

    monkeypatch.setattr(SystolicCore, "_walk_weights", mutated)
    assert caught(_design(dataflow))


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_the_untouched_design_passes(dataflow: Dataflow) -> None:
    """The same cases show no difference without a fault, so the tests above mean something."""
    assert not caught(_design(dataflow))


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize(
    "column", ["RESULT_LATENCY", "OUTPUT_QUEUE", "COMMAND_QUEUE", "TILE_INTERVAL"]
)
def test_every_latency_of_the_model_is_tight(
    column: str, change: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that believes one cycle (or place) more or less differs from the RTL."""
    plain = Systolic.machine.func

    def mutated(self: Systolic) -> Any:
        vector = plain(self)
        vector[getattr(mc, column)] += change
        return vector

    monkeypatch.setattr(Systolic, "machine", property(mutated))
    assert caught(Systolic(rows=2, columns=2), 60)


@pytest.mark.parametrize("latency", [3, 5])
def test_the_output_latency_is_tight(latency: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Systolic, "output_latency_cycles", latency)
    assert caught(Systolic(rows=2, columns=2))
