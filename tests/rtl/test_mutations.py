"""The suite catches what it is there to catch: faults put into the RTL, and into the model."""

from typing import Any

import pytest
from amaranth.hdl import Cat, Const, Module
from faults import (
    Patch,
    after,
    caught,
    delay,
    drive,
    few_or_all_cases,
    ignored_credit,
    model_column,
    placed,
    seen_input,
)

from archsim.machines.systolic.design import DATAFLOWS, Dataflow, Systolic
from rtl.core import output_stage
from rtl.core.accumulators import Accumulators
from rtl.core.loader import Loader
from rtl.core.machine import Core
from rtl.core.output_packer import OutputPacker, PackingPlace
from rtl.core.requantize import Requantize
from rtl.core.sequencer import Sequencer
from rtl.core.tile_walker import TileWalker
from rtl.core.window import Window


def _design(dataflow: Dataflow = "weight_stationary") -> Systolic:
    return Systolic(rows=4, columns=3, dataflow=dataflow)


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
    "sums one cycle late": delay("token_delay", 1),
    "sums one cycle early": delay("token_delay", -1),
    "capture one cycle late": delay("capture_delay", 1),
    "bank one cycle early": delay("bank_delay", -1),
    "a dropped bit in the output": after(Requantize, _dropped_bit),
    "no ReLU": _no_relu,
    "halves are always free": ignored_credit(2, 2),
    "tiles are always loaded": ignored_credit(0, 2),
    "back-pressure of the output ignored": ignored_credit(8, 8),
    "a loader that stalls on an address": after(Loader, _late_loader),
    "loads always into the same half": after(Loader, _same_half),
    "taps change with every chunk": after(Sequencer, _swapped_chunks),
    "padding is not masked": after(Window, _no_mask),
    "an address bit stuck": after(Window, _stuck_address),
    "sums of later folds overwrite": after(Accumulators, _always_overwrite),
}


def _longer(cycles: int) -> int:
    return cycles + 1


PACKING: dict[str, tuple[Dataflow, Patch]] = {
    "short steps taken for whole ones": (
        "weight_stationary",
        seen_input(PackingPlace, "units", lambda self, _: self.word),
    ),
    "short blocks of pixels taken for whole ones": (
        "input_stationary",
        seen_input(PackingPlace, "units", lambda self, _: self.word),
    ),
    "every row a lane less": (
        "output_stationary",
        seen_input(PackingPlace, "units", lambda self, units: units - 1),
    ),
    "the end of a layer within a word not told": (
        "weight_stationary",
        seen_input(PackingPlace, "flush", lambda self, _: 0),
    ),
    "every tile ends its layer": (
        "weight_stationary",
        after(TileWalker, lambda self, m: drive(m, self.tile.payload.ends_layer, 1)),
    ),
    "the lanes of a full tile in the last one": (
        "weight_stationary",
        after(
            TileWalker,
            lambda self, m: drive(m, self.tile.payload.step_lanes, self.current.step_lanes_full),
        ),
    ),
    "places one cycle late": (
        "weight_stationary",
        placed(output_stage, name="place_delay", cycles=_longer),
    ),
    "what is begun of a word forgotten": (
        "weight_stationary",
        seen_input(OutputPacker, "place", lambda self, there: _forgotten(there)),
    ),
}


def _forgotten(place: Any) -> Any:
    """Only rows that complete a word are kept."""
    return Cat(place.valid & place.complete, place.complete, place.flush, place.position)


@pytest.mark.parametrize("name", PACKING)
def test_a_fault_in_the_packing_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataflow, patch = PACKING[name]
    patch(monkeypatch)
    assert caught(_design(dataflow))


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_in_the_rtl_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTATIONS[name](monkeypatch)
    assert caught(_design())


@pytest.mark.parametrize(
    ("dataflow", "patch"),
    [
        ("output_stationary", delay("flag_delay", 1)),
        ("output_stationary", delay("begin_delay", -1)),
        ("output_stationary", delay("weight_delay", 1)),
        ("output_stationary", delay("token_delay", 1)),
        ("input_stationary", delay("capture_delay", 1)),
        ("input_stationary", delay("token_delay", -1)),
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
    plain = Core._walk_weights

    def mutated(self: Any, m: Module) -> None:
        plain(self, m)
        m.d.comb += self.weights.restart.eq(0)

    monkeypatch.setattr(Core, "_walk_weights", mutated)
    assert caught(_design(dataflow))


@few_or_all_cases
@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_the_untouched_design_passes(dataflow: Dataflow, cases: int) -> None:
    """The same cases show no difference without a fault, so the tests above mean something."""
    assert not caught(_design(dataflow), cases)


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize(
    "column", ["RESULT_LATENCY", "OUTPUT_QUEUE", "COMMAND_QUEUE", "TILE_INTERVAL"]
)
def test_every_latency_of_the_model_is_tight(
    column: str, change: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that believes one cycle (or place) more or less differs from the RTL."""
    model_column(Systolic, column, change)(monkeypatch)
    assert caught(Systolic(rows=2, columns=2), 60)


@pytest.mark.parametrize(
    ("latency", "registers"),
    [(4, (0, 0)), (6, (0, 0)), (6, (2, 0)), (8, (2, 0)), (5, (0, 1)), (7, (0, 1))],
)
def test_the_output_latency_is_tight(
    latency: int, registers: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    output, held = registers
    monkeypatch.setattr(Systolic, "output_latency_cycles", latency)
    assert caught(Systolic(rows=2, columns=2, output_registers=output, accumulator_registers=held))
