"""The tensor array's RTL: bit for bit and cycle for cycle the model, and faults are caught."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import C, Cat, Module, Signal
from amaranth.sim import Simulator
from faults import Patch, seen_input
from hypothesis import given, settings
from hypothesis import strategies as st
from tensor_array_bench import (
    DOTS,
    compiled,
    differences,
    input_bits,
    input_lanes,
    random_sets,
    simulated,
    sums_of,
    tensor_arrays,
)

from archsim.arithmetic.dot_product import INT8_DOT, VOLTA_FP16
from archsim.machines.tensorcore.tensor_array import TensorArrayDesign, TensorSets
from archsim.numbers import IntArray, pack_lanes
from rtl.benches.words import unpack_words
from rtl.core import tensor_array, tensor_buffers
from rtl.core.sram import Sram
from rtl.core.tensor_array import TensorArray, TensorUnit
from rtl.core.tensor_buffers import (
    ColumnFragments,
    FinishedSums,
    PartialSums,
    RowFragments,
    Walk,
)
from rtl.hierarchy import place

MIXED = TensorArrayDesign()
NARROW = TensorArrayDesign(dot=VOLTA_FP16)
INTEGER = TensorArrayDesign(dot=INT8_DOT)
SMALLEST = TensorArrayDesign(dot=replace(INT8_DOT, length=1), octets=1, group_columns=1, rows=2)
FEW_MIXED = replace(MIXED, octets=1, group_columns=1)
FEW_NARROW = replace(NARROW, octets=1, group_columns=1)
LONG = TensorArrayDesign(dot=replace(INT8_DOT, length=3), octets=1, group_columns=3, rows=14)
DESIGNS = [MIXED, NARROW, INTEGER, SMALLEST, LONG]


@pytest.mark.parametrize("gaps", [0, 9])
@pytest.mark.parametrize("design", DESIGNS)
def test_random_sets(design: TensorArrayDesign, gaps: int) -> None:
    sets = random_sets(design, 9, seed=gaps, gaps=gaps)
    assert differences(design, sets, simulated(design)) == 0


@settings(max_examples=20)
@given(design=tensor_arrays(), gaps=st.integers(0, 30), seed=st.integers(0, 99))
def test_any_array(design: TensorArrayDesign, gaps: int, seed: int) -> None:
    sets = random_sets(design, 8, seed, gaps=gaps)
    assert differences(design, sets, simulated(design)) == 0


@pytest.mark.parametrize("design", [INTEGER, replace(FEW_NARROW, rows=6)])
def test_many_sets(design: TensorArrayDesign) -> None:
    """3,000 sets, in the emitted Verilog."""
    run = compiled(design)
    for gaps in (0, 5):
        sets = random_sets(design, 3000, seed=gaps, gaps=gaps)
        assert differences(design, sets, run) == 0


@pytest.mark.slow
@pytest.mark.parametrize("rows", [2, 8, 12])
@pytest.mark.parametrize("dot", DOTS)
def test_whole_tensor_cores_at_full_speed(dot: Any, rows: int) -> None:
    """3,000 sets in each whole tensor core, in the emitted Verilog."""
    design = TensorArrayDesign(dot=dot, rows=rows)
    sets = random_sets(design, 3000, seed=rows, gaps=rows % 8)
    assert differences(design, sets, compiled(design)) == 0


def _placed(name: str, kind: type | None = None, **changes: Callable[[Any], Any]) -> Patch:
    """The component of that name, of another kind or with some of its parameters changed."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        def mutated(m: Module, own: str, plain: type, **parameters: Any) -> Any:
            if own == name:
                parameters |= {key: change(parameters[key]) for key, change in changes.items()}
                plain = kind or plain
            return place(m, own, plain, **parameters)

        for module in (tensor_array, tensor_buffers):
            monkeypatch.setattr(module, "place", mutated)

    return patch


def _flag(kind: type, port: str, flag: str, value: int) -> Patch:
    """The component sees a pass one of whose flags is stuck."""

    def change(self: Any, there: Any) -> Any:
        fields = {name: there[name] for name, _ in there.shape()}
        return Cat(*(fields | {flag: C(value, 1)}).values())

    return seen_input(kind, port, change)


class LateSram(Sram):
    """A memory that writes a cycle later."""

    def elaborate(self, platform: object) -> Module:
        ports = (self.write, self.write_address, self.write_data)
        late = tuple(Signal.like(port, name=f"late_{n}") for n, port in enumerate(ports))
        self.write, self.write_address, self.write_data = late
        m = super().elaborate(platform)
        m.d.sync += [mine.eq(port) for mine, port in zip(late, ports, strict=True)]
        return m


class EndlessWalk(Walk):
    """A walk that goes on when it is over."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        begun = Signal()
        with m.If(self.start):
            m.d.sync += begun.eq(1)
        m.d.comb += self.valid.eq(self.start | begun)
        return m


class HurriedDesign(TensorArrayDesign):
    """Sets as close together as its passes can bear: a sum is read as soon as it is written."""

    @property
    def set_cycles(self) -> int:
        return max(self.rows, self.result_cycles)


class TooHurriedDesign(TensorArrayDesign):
    """Sets a cycle closer than that."""

    @property
    def set_cycles(self) -> int:
        return self.result_cycles - 1


HURRIED = HurriedDesign(dot=INT8_DOT)
TWO_ROWS = replace(INTEGER, rows=2)


def _later(cycles: int) -> int:
    return cycles + 1


def _earlier(cycles: int) -> int:
    return cycles - 1


MUTATIONS: dict[str, tuple[TensorArrayDesign, Patch]] = {
    "passes one cycle late": (INTEGER, _placed("set_delay", cycles=_later)),
    "passes one cycle early": (INTEGER, _placed("set_delay", cycles=_earlier)),
    "writes one cycle late": (INTEGER, _placed("pass_delay", cycles=_later)),
    "writes one cycle early": (INTEGER, _placed("pass_delay", cycles=_earlier)),
    "rows one cycle late": (INTEGER, _placed("drain_delay", cycles=_later)),
    "rows one cycle early": (INTEGER, _placed("drain_delay", cycles=_earlier)),
    "operands one cycle late": (INTEGER, _placed("operand_delay", cycles=_later)),
    "results one cycle late": (INTEGER, _placed("result_delay", cycles=_later)),
    "results one cycle early": (INTEGER, _placed("result_delay", cycles=_earlier)),
    "partial sums written one cycle late": (HURRIED, _placed("store", LateSram)),
    "finished sums written one cycle late": (TWO_ROWS, _placed("bank_0_1", LateSram)),
    "finished sums in one half": (
        INTEGER,
        seen_input(FinishedSums, "read_half", lambda self, there: C(0, 1)),
    ),
    "rows of A in one half": (
        INTEGER,
        seen_input(RowFragments, "write_half", lambda self, there: C(0, 1)),
    ),
    "slots of A that do not end": (INTEGER, _placed("slots", EndlessWalk)),
    "elements of B not held": (
        INTEGER,
        seen_input(ColumnFragments, "start", lambda self, there: C(1, 1)),
    ),
    "column blocks swapped": (
        INTEGER,
        seen_input(ColumnFragments, "block", lambda self, there: ~there),
    ),
    "thread groups swapped": (
        INTEGER,
        seen_input(RowFragments, "write_group", lambda self, there: ~there),
    ),
    "rows of the other thread group": (
        INTEGER,
        seen_input(FinishedSums, "read_group", lambda self, there: ~there),
    ),
    "sums that never begin anew": (
        INTEGER,
        _flag(PartialSums, "reading", "first", 0),
    ),
    "sums that always begin anew": (
        INTEGER,
        _flag(PartialSums, "reading", "first", 1),
    ),
    "the block of a pass ignored": (
        INTEGER,
        _flag(PartialSums, "reading", "block", 0),
    ),
    "a bit of A dropped": (INTEGER, seen_input(TensorUnit, "a", lambda self, there: there & ~1)),
    "the top bit of the sum before dropped": (
        FEW_MIXED,
        seen_input(TensorUnit, "c", lambda self, there: there[:-1]),
    ),
}


def _caught(design: TensorArrayDesign) -> bool:
    return differences(design, random_sets(design, 12, seed=8), simulated(design)) != 0


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_in_the_rtl_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    design, patch = MUTATIONS[name]
    patch(monkeypatch)
    assert _caught(design)


@pytest.mark.parametrize("design", [INTEGER, FEW_MIXED, TWO_ROWS, HURRIED])
def test_the_untouched_array_passes(design: TensorArrayDesign) -> None:
    """The same sets show no difference without a fault, so the tests above mean something."""
    assert not _caught(design)


@pytest.mark.parametrize("design", [INTEGER, FEW_NARROW])
def test_a_pass_finds_the_sums_of_the_set_before_at_result_cycles_and_no_cycle_before(
    design: TensorArrayDesign,
) -> None:
    parameters = vars(design)
    assert not _caught(HurriedDesign(**parameters))
    assert _caught(TooHurriedDesign(**parameters))


def _recorded(design: TensorArrayDesign, sets: TensorSets, ports: list[str]) -> list[list[int]]:
    """What ports of placed components, "name.port", and last `sums` show: [port][cycle]."""
    placed: dict[str, Any] = {}

    def noting(m: Module, name: str, kind: type, **parameters: Any) -> Any:
        placed[name] = place(m, name, kind, **parameters)
        return placed[name]

    unit = TensorArray(design=design)
    with pytest.MonkeyPatch.context() as monkeypatch:
        for module in (tensor_array, tensor_buffers):
            monkeypatch.setattr(module, "place", noting)
        simulator = Simulator(unit)
    inputs = Cat(unit.begin, unit.first, unit.last, unit.ifmap, unit.weight)
    watched = [getattr(placed[name], port) for name, port in (each.split(".") for each in ports)]
    shown: list[list[int]] = []
    words = unpack_words(pack_lanes(input_lanes(design, sets, seed=0), input_bits(design)))

    async def bench(context: Any) -> None:
        for word in [*words, *[0] * 2 * (design.set_cycles + design.drain_start_cycles)]:
            context.set(inputs, word)
            shown.append([context.get(signal) for signal in [*watched, unit.sums]])
            await context.tick()

    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return [list(column) for column in zip(*shown, strict=True)]


def _warp_half(design: TensorArrayDesign) -> TensorSets:
    """One block with k = 16: four sets, begun in cycle 3, of which no two rows are equal."""
    sets = random_sets(design, 4, seed=1)
    at = np.arange(4)
    return replace(
        sets,
        begin_cycles=3 + at * design.set_cycles,
        first=(at == 0).astype(np.int64),
        last=(at == 3).astype(np.int64),
    )


@pytest.mark.parametrize(("design", "cycles"), [(MIXED, 54), (NARROW, 64), (INTEGER, 54)])
def test_half_a_warp_s_product_takes_54_or_64_cycles(
    design: TensorArrayDesign, cycles: int
) -> None:
    """From the first pass in the RTL to the cycle in which the last row is at its output."""
    sets = _warp_half(design)
    issued, sums = _recorded(design, sets, ["passes.valid"])
    last_row = pack_lanes(design.compute(sets).sums[-1:], (design.dot.accumulator.bits,) * 16)
    shown = [cycle for cycle, row in enumerate(sums) if row == unpack_words(last_row)[0]]
    assert shown == [issued.index(1) + cycles]
    assert design.wmma_cycles(16) == cycles


@pytest.mark.parametrize("design", [INTEGER, FEW_NARROW, LONG, TWO_ROWS])
def test_passes_and_steps_are_over_when_the_model_says(design: TensorArrayDesign) -> None:
    """A pass a cycle; the sums of each are written the cycle before they can be read."""
    issued, written, _ = _recorded(design, _warp_half(design), ["passes.valid", "store.write"])
    passes, over = (np.flatnonzero(each).reshape(4, -1) for each in (issued, written))
    first = int(passes[0, 0])
    np.testing.assert_array_equal(passes, _passes(design, first))
    np.testing.assert_array_equal(over + 1, passes + design.result_cycles)
    steps = over[:, design.step_passes - 1 :: design.step_passes] + 1 - first
    completions = design.step_completions(4 * design.dot.length)
    np.testing.assert_array_equal(steps, completions)
    np.testing.assert_array_equal(np.diff(steps, axis=1), design.step_passes)


def _passes(design: TensorArrayDesign, first: int) -> IntArray:
    return first + np.arange(4)[:, None] * design.set_cycles + np.arange(design.rows)


def test_sums_are_there_for_one_cycle() -> None:
    """Nothing else is at `sums` a cycle before or after a row, so that no row hides a late one."""
    design = INTEGER
    sets = _warp_half(design)
    rows = design.compute(sets)
    shown = sums_of(design, sets, simulated(design))
    for late in (-1, 1):
        assert (shown[rows.cycles + late] != rows.sums).any(axis=1).all()
