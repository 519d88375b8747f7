"""Banks of compressed scratchpads are read only when they must; faults in that are caught.

That the counters of whole cores are the model's is among what `test_compressed_scratchpad` checks.
"""

from typing import Any

import pytest
from amaranth.hdl import Cat, Const, Module, Value
from amaranth.sim import Simulator
from compressed_bench import differences, random_store, steps_of
from faults import Patch, caught, late_input, seen_input

from archsim.machines.systolic.design import DATAFLOWS, Systolic
from archsim.memories.boveda.scratchpad import Boveda
from archsim.memory import Plain
from archsim.tiled.timing import plan_tiling
from rtl.cases import Draw
from rtl.conformance import check
from rtl.core import population_count
from rtl.core.align import AlignedBanks
from rtl.core.held_bank import HeldBank
from rtl.core.held_sram import HeldSram
from rtl.memories.boveda.column import CompressedColumn
from rtl.memories.boveda.scratchpad import CompressedScratchpad
from rtl.simulators import runner
from rtl.tile_conformance import TileCase, free_services
from workloads.layers import MatMul
from workloads.operands import synthetic


def _alone(stores: int) -> bool:
    """Whether scratchpads alone show a wrong word or a wrong count."""
    for seed in range(stores):
        draw = Draw(31, seed)
        store = random_store(draw)
        if differences(store, steps_of(draw, store, 5)):
            return True
    return False


def _replaced(kind: type, method: str, change: Any) -> Patch:
    """`change(plain, self, *arguments)` in place of a method."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = getattr(kind, method)
        monkeypatch.setattr(kind, method, lambda self, *arguments: change(plain, self, *arguments))

    return patch


def _late(name: str, change: int) -> Patch:
    """A delay line of the scratchpad takes some cycles more."""

    def changed(plain: Any, self: Any, m: Module, line: str, value: Value, cycles: int) -> Any:
        return plain(self, m, line, value, cycles + change * (line == name))

    return _replaced(CompressedScratchpad, "_late", changed)


def _held(change: Any) -> Patch:
    """`change(self, holds, half, address)` says whether the word is held."""
    return _replaced(HeldBank, "_is_held", lambda plain, self, *tag: change(self, *tag))


def _miscounted(change: Any) -> Patch:
    """`change(count, events)` counts what happens in the columns."""

    def changed(plain: Any, self: Any, m: Module, name: str, events: list[Value]) -> Any:
        return change(lambda found: plain(self, m, name, found), events)

    return _replaced(CompressedScratchpad, "_count", changed)


def _entry_written(change: Any) -> Patch:
    """`change(column, written)` says whether an entry is written."""
    return _replaced(
        CompressedColumn, "_entry_written", lambda plain, self: change(self, plain(self))
    )


def _added(change: Any) -> Patch:
    """`change(found)` are added where `PopulationCount` adds what it found."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = population_count.sum_of
        monkeypatch.setattr(population_count, "sum_of", lambda found: plain(change(found)))

    return patch


FAULTS: dict[str, Patch] = {
    "the spill's bank is never read": _replaced(
        CompressedColumn,
        "_piece",
        lambda plain, self, m, writer, words, spills, number: plain(
            self, m, writer, words, [Const(0, 1)] * len(spills), number
        ),
    ),
    "the spill's bank is always read": _replaced(
        CompressedColumn,
        "_piece",
        lambda plain, self, m, writer, words, spills, number: plain(
            self, m, writer, words, [Const(1, 1)] * len(spills), number
        ),
    ),
    "a stale row is kept": seen_input(HeldBank, "forget", lambda *_: Const(0, 1)),
    "forgotten one cycle late": late_input(HeldBank, "forget"),
    "forgotten when the other half is written": _replaced(
        HeldBank, "_is_forgotten", lambda plain, self, half: self.forget
    ),
    "forgotten but for what is read just now": _replaced(
        HeldBank, "_is_forgotten", lambda plain, self, half: plain(self, half) & ~self.reads
    ),
    "a row is kept across halves": _held(
        lambda self, holds, half, address: holds & (address == self.read_address)
    ),
    "a row is taken for its neighbour": _held(
        lambda self, holds, half, address: (
            holds & (half == self.read_half) & (address[1:] == self.read_address[1:])
        )
    ),
    "held before anything was read": _held(
        lambda self, holds, half, address: (half == self.read_half) & (address == self.read_address)
    ),
    "read although held": _held(lambda *_: Const(0, 1)),
    "read although nobody asks": seen_input(HeldBank, "wanted", lambda *_: Const(1, 1)),
    "the unit behind has no entry": _replaced(
        CompressedScratchpad,
        "_entries",
        lambda plain, self: plain(self)[0] if not self.straddles else Cat(plain(self)[0], 0),
    ),
    "the entry is always read": _replaced(
        CompressedScratchpad, "_entries", lambda plain, self: Cat(1, plain(self)[1:])
    ),
    "asked one cycle early": _late("wanted", -1),
    "asked one cycle late": _late("wanted", 1),
    "one count too many": _miscounted(lambda count, events: count(events) + 1),
    "a column is not counted": _miscounted(
        lambda count, events: count(events[1:] if len(events) > 1 else events)
    ),
    "a bit is not counted": _added(lambda found: found[1:] if len(found) > 1 else found),
    "an entry is written with every word": _entry_written(lambda self, _: self.valid),
    "an entry is written again behind its unit": _entry_written(
        lambda self, written: written | (self.valid & (self.index_in == 0))
    ),
    "a full unit's entry is not written": _entry_written(
        lambda self, written: written & self.tile_ends
    ),
    "a tile's last entry is not written": _entry_written(
        lambda self, written: written & ~self.tile_ends
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_banks_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[name](monkeypatch)
    assert _alone(24)


def test_untouched_scratchpads_count_as_they_must() -> None:
    assert not _alone(12)


MEMORY = Boveda(capacity_bytes=24, group=2, unit_words=2, expansion=4)
CORE_FAULTS: dict[str, Patch] = {
    "lanes that do not count are read": _replaced(
        AlignedBanks, "_read_lanes", lambda plain, self: self.read.replicate(self.lanes)
    ),
    "lanes are asked for before they are turned": _replaced(
        AlignedBanks,
        "_read_lanes",
        lambda plain, self: Cat(
            self.read & (lane >= self.low) & (lane < self.high) for lane in range(self.lanes)
        ),
    ),
    "read between issues": seen_input(AlignedBanks, "read", lambda *_: Const(1, 1)),
    "never read": seen_input(AlignedBanks, "read", lambda *_: Const(0, 1)),
}


@pytest.mark.parametrize("name", CORE_FAULTS)
def test_a_fault_in_what_is_asked_for_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    CORE_FAULTS[name](monkeypatch)
    plain = Plain(capacity_bytes=48)
    assert any(
        caught(
            Systolic(rows=3, columns=2, dataflow=one, ifmap_memory=MEMORY, weight_memory=plain),
            4,
        )
        for one in DATAFLOWS
    )


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_the_untouched_core_passes(dataflow: Any) -> None:
    weights = Boveda(capacity_bytes=24, group=1, unit_words=4, expansion=4)
    design = Systolic(
        rows=3, columns=2, dataflow=dataflow, ifmap_memory=MEMORY, weight_memory=weights
    )
    assert not caught(design, 2)


SMALLEST = Boveda(capacity_bytes=8, group=1, unit_words=2, expansion=4)
SLACK_CYCLES = 7
"""By how much counts of the smallest core may come later still."""


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_counters_are_exact_once_the_last_word_has_left(
    dataflow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the smallest array and layer, in which it leaves soonest behind the last read."""
    monkeypatch.setattr(TileCase, "tail_cycles", 0)
    design = Systolic(
        rows=1, columns=1, dataflow=dataflow, ifmap_memory=SMALLEST, weight_memory=SMALLEST
    )
    layer = MatMul(name="m", m=1, n=1, k=1)
    case = TileCase(
        design=design,
        layer=layer,
        tiling=plan_tiling(design, layer, None),
        operands=synthetic(layer, seed=1),
        services=free_services(),
    )
    assert check(case, runner(design, "amaranth")).equal
    _counted_late(SLACK_CYCLES)(monkeypatch)
    assert check(case, runner(design, "amaranth")).equal
    if dataflow == "weight_stationary":
        _counted_late(2)(monkeypatch)  # the packer gives counts another cycle
        assert check(case, runner(design, "amaranth")).counts


def _counted_late(cycles: int) -> Patch:
    """All counts of a scratchpad come some cycles later."""

    def later(plain: Any, self: Any, m: Module, name: str, events: list[Value]) -> Value:
        counted = plain(self, m, name, events)
        return self._late(m, f"{name}_{cycles}_late", counted, cycles)

    return _replaced(CompressedScratchpad, "_count", later)


def _run(dut: Any, inputs: tuple[str, ...], steps: list[tuple[tuple[int, ...], int]]) -> None:
    """Inputs of every cycle, and read_data in it."""

    async def bench(ctx: Any) -> None:
        for values, expected in steps:
            for name, value in zip(inputs, values, strict=True):
                ctx.set(getattr(dut, name), value)
            _, _, seen = await ctx.tick().sample(dut.read_data)
            assert seen == expected

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_a_memory_holds_what_it_read_last() -> None:
    """A write to the word that the output holds does not change it; a read enable does."""
    steps = [
        ((1, 1, 7, 0, 0), 0),
        ((0, 0, 0, 1, 1), 0),
        ((1, 1, 9, 0, 2), 7),
        ((0, 0, 0, 0, 1), 7),
        ((1, 1, 5, 1, 1), 7),
        ((0, 0, 0, 1, 1), 9),
        ((0, 0, 0, 0, 0), 5),
    ]
    inputs = ("write", "write_address", "write_data", "read", "read_address")
    _run(HeldSram(bits=8, depth=4), inputs, steps)


def test_a_bank_that_is_not_asked_reads_nothing() -> None:
    """Its output stays whatever the address and the half are, and a held word is not read anew."""
    steps = [
        ((1, 0, 1, 7, 0, 0, 0), 0),
        ((1, 1, 2, 9, 1, 0, 1), 0),
        ((0, 0, 0, 0, 0, 1, 2), 7),
        ((1, 0, 1, 8, 1, 0, 1), 7),
        ((0, 0, 0, 0, 1, 1, 2), 7),
        ((0, 0, 0, 0, 0, 0, 1), 9),
        ((0, 0, 0, 0, 1, 0, 1), 9),
        ((0, 0, 0, 0, 0, 0, 0), 8),
    ]
    inputs = ("write", "write_half", "write_address", "write_data")
    asked = ("wanted", "read_half", "read_address")
    _run(HeldBank(bits=8, depth=4), (*inputs, *asked), steps)
