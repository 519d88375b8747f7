"""The SCNN core passes the conformance suite; its model and it are equal to the stepped oracle."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import memory
from scnn_bench import event_differences, stepped
from scnn_faults import rewritten
from scnn_passes import OracleCase, Shape, chained, oracle_answer, random_run, with_gaps

from archsim.errors import InputError
from archsim.layer.problem import problem_of
from archsim.machines.scnn.choice import Choice
from archsim.machines.scnn.command import Output, command_fields, command_values
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.exact import best_choice
from archsim.machines.scnn.layer import plan_layer, planned_timing
from archsim.machines.scnn.mapping import map_plane
from archsim.machines.scnn.words import PORTS, LayerRun
from archsim.memory import OffChip
from archsim.ports import differences
from archsim.simulate import simulate
from rtl.cases import Draw, random_case
from rtl.conformance import Verdict, check
from rtl.core import scnn_memories, sram
from rtl.memories import plain
from rtl.scnn import COUNTS, ScnnCore, core_members
from rtl.simulators import runner
from rtl.sparse_conformance import SparseCase
from rtl.suite import DesignConformance, assert_equal
from workloads.layers import Network
from workloads.operands import synthetic

ONE = Scnn(
    grid_rows=1, grid_columns=1, weight_lanes=2, ifmap_lanes=2, banks=4, bank_entries=16,
    weight_fifo_vectors=8, filter_group=3, iaram_bytes=700, oaram_bytes=700, index_bits=2,
    bank_queue=1,
)  # fmt: skip
PAIR = replace(ONE, grid_columns=2, bank_entries=12, bank_queue=3)
FOUR = replace(ONE, grid_rows=2, grid_columns=2, banks=8, bank_queue=5)
FOUR_WIDE = replace(FOUR, weight_lanes=4, ifmap_lanes=4, banks=32, bank_entries=8, bank_queue=4)
SIX = replace(FOUR, grid_rows=3, banks=4, weight_lanes=3, bank_entries=17, bank_queue=2)

SMALLEST = Shape(plane=(1, 1))
SQUARE = Shape(plane=(4, 5), channels=2, filters=4, kernel=(3, 3), pad=(1, 1), has_bias=True)
STRIDED = replace(SQUARE, plane=(6, 7), stride=(2, 2), relu=True)
FLAT = Shape(plane=(1, 7), channels=3, filters=5)
FLAT_AGAIN = Shape(plane=(1, 7), channels=5, filters=4)
UNEVEN = Shape(plane=(3, 4), channels=2, filters=4, kernel=(1, 5), stride=(2, 3), pad=(2, 1))
"""Its last row of PEs has inputs and no outputs; what it reaches is not at the border."""


def case_of(design: Scnn, shapes: tuple[Shape, ...], seed: int, longest: int = 0) -> SparseCase:
    """Layers of random operands, with gaps."""
    runs = tuple(random_run(design, shape, seed) for shape in shapes)
    case = SparseCase(design=design, runs=runs)
    return replace(case, idle=with_gaps(case, seed, longest)) if longest else case


def by_the_oracle(case: SparseCase) -> OracleCase:
    """The same case, whose answer is the oracle's."""
    return OracleCase(design=case.design, runs=case.runs, idle=case.idle, label=case.label)


def simulated(case: SparseCase) -> Verdict:
    """In Amaranth's simulator."""
    return check(case, runner(case.design, "amaranth"))


class TestScnn(DesignConformance):
    """In Verilog: two PEs that share halos, also with registers between their steps; one of uneven
    lanes and without queues."""

    designs = (
        PAIR,
        replace(PAIR, pipelined_pes=True),
        replace(ONE, weight_lanes=3, bank_queue=1),
    )
    amaranth_cases = 8

    def random_design(self, draw: Draw) -> Scnn:
        return Scnn(
            grid_rows=draw.whole(1, 2),
            grid_columns=draw.whole(1, 2),
            weight_lanes=draw.whole(1, 3),
            ifmap_lanes=draw.whole(1, 3),
            banks=draw.one_of(1, 2, 4),
            bank_entries=draw.one_of(16, 17, 33),
            weight_fifo_vectors=draw.one_of(2, 5, 13),
            filter_group=draw.whole(1, 5),
            iaram_bytes=512,
            oaram_bytes=512,
            index_bits=draw.one_of(1, 2, 4),
            operand_bits=draw.one_of(4, 16),
            accumulator_bits=draw.one_of(12, 24),
            bank_queue=draw.whole(1, 5),
            pipelined_pes=draw.chance(0.5),
        )


@pytest.mark.slow
class TestScnnAtLength(TestScnn):
    """More cores, more cases."""

    designs = (
        FOUR,
        FOUR_WIDE,
        SIX,
        replace(FOUR_WIDE, pipelined_pes=True),
        replace(SIX, pipelined_pes=True, bank_queue=1),
    )
    amaranth_cases = 60
    verilator_cases = 400
    seed = 2


@pytest.mark.parametrize("number", range(40))
def test_the_model_answers_as_the_oracle(number: int) -> None:
    """Every word of every port and its cycle, and the counts: random cases of the suite."""
    design = TestScnn().random_design(Draw(5, number))
    case = random_case(5, number, design, longest_words=2000)
    assert isinstance(case, SparseCase)
    model, oracle = case.answer(), oracle_answer(case)
    for found in differences(oracle.transfers, model.transfers):
        assert found.first is None, f"{found} of {case.details()}"
    assert {name: model.actions[name] for name in COUNTS} == oracle.actions
    for port in PORTS:
        assert np.array_equal(model.earliest[port], oracle.earliest[port]), port
        assert np.array_equal(model.gaps[port], oracle.gaps[port]), port


@pytest.mark.parametrize(
    ("design", "shape"), [(ONE, SMALLEST), (ONE, SQUARE), (PAIR, STRIDED), (PAIR, FLAT)]
)
def test_operands_of_all_bits(design: Scnn, shape: Shape) -> None:
    assert_equal(simulated(by_the_oracle(case_of(design, (shape,), seed=1, longest=3))))


def test_layers_follow_one_another() -> None:
    """What belongs to the next layer is offered early; commands come late."""
    case = case_of(PAIR, (FLAT, UNEVEN, SQUARE), seed=2)
    late = replace(case, idle={"command": np.array([30, 0, 900])})
    assert late.answer().begins[0] == 30
    assert late.answer().begins[2] == late.answer().begins[1] + 901
    assert_equal(simulated(late))


MEMORIES = {
    "slow": OffChip(bytes_per_cycle=1.7, latency_cycles=23, burst_bytes=16),
    "late": OffChip(bytes_per_cycle=9.0, latency_cycles=400),
    "apart": OffChip(bytes_per_cycle=2.3, weight_bytes_per_cycle=1.1, burst_bytes=3),
    "alone": OffChip(bytes_per_cycle=2.0, shared=False),
}


@pytest.mark.parametrize(
    ("memory", "strip_rows"), [("slow", 2), ("late", 2), ("apart", 0), ("alone", 2)]
)
def test_the_off_chip_memory_replayed(memory: str, strip_rows: int) -> None:
    """The words that the off-chip channel offers, cycle for cycle, against the RTL.

    The run's total, from the command on, equals the one that `simulate` reports.
    """
    design = replace(PAIR, strip_rows=strip_rows, off_chip=MEMORIES[memory])
    layer = replace(SQUARE.layer, batch=2)
    run = LayerRun(layer=layer, operands=synthetic(layer, bits=8, density=0.6, seed=4))
    case = SparseCase(design=design, runs=(run,))
    assert_equal(simulated(case))
    network = Network(name="n", source="a test", layers=(layer,))
    (result,) = simulate(design, network, operands={layer.name: run.operands}).layers
    found = case.answer()
    assert len(found.timings) == (4 if strip_rows else 2)
    assert found.cycles - design.bank_entries == result.cycles
    free = simulate(
        replace(design, off_chip=OffChip()), network, operands={layer.name: run.operands}
    )
    assert result.cycles > free.cycles
    assert result.where["memory"] == result.cycles - free.cycles


def test_strips_and_groups_that_were_chosen() -> None:
    """Smaller than the core takes by itself, and as the exact mapper has them."""
    layer = replace(SQUARE.layer, filters=9)
    operands = synthetic(layer, bits=8, density=0.6, seed=4)
    best = best_choice(PAIR, layer, operands).choice
    choices = [Choice(strip_rows=2, filter_group=1), best]
    runs = tuple(LayerRun(layer=layer, operands=operands, choice=choice) for choice in choices)
    case = SparseCase(design=PAIR, runs=runs)
    assert_equal(simulated(case))
    timings = [planned_timing(PAIR, plan_layer(PAIR, layer, operands, choice=c)) for c in choices]
    assert timings[0].strips > timings[1].strips
    assert timings[0].cycles > timings[1].cycles


def test_the_off_chip_memory_replayed_for_layers_that_follow_one_another() -> None:
    """A layer whose ofmap stays, the one that takes it, and one more."""
    design = replace(PAIR, off_chip=MEMORIES["slow"])
    runs = (*chained(design, (FLAT, FLAT_AGAIN), (True,), seed=3), random_run(design, SQUARE, 5))
    case = SparseCase(design=design, runs=runs)
    assert_equal(simulated(case))


@pytest.mark.parametrize("gap", [5, 20, 90])
def test_late_biases_hold_the_drain_back(gap: int) -> None:
    """RTL, oracle and model wait alike."""
    plain = case_of(ONE, (replace(SQUARE, filters=8),), seed=3)
    late = replace(plain, idle={"bias": np.full(8, gap)})
    slower = late.answer().cycles > plain.answer().cycles
    assert slower or gap < 90
    assert_equal(simulated(late))
    assert_equal(simulated(by_the_oracle(late)))


def test_gaps_are_for_every_word() -> None:
    case = case_of(ONE, (SQUARE,), seed=3)
    with pytest.raises(InputError, match="gaps of bias must be 4, one for each word, not 3"):
        replace(case, idle={"bias": np.zeros(3, np.int64)}).answer()


@pytest.mark.parametrize("queue", [1, 2, 4])
def test_every_pe_does_what_the_oracle_does_in_every_cycle(queue: int) -> None:
    """The pairs that end, the cycles in which one waits for a bank, the products, the skips."""
    kinds = np.zeros(4, np.int64)
    design = replace(PAIR, banks=2, bank_entries=24, bank_queue=queue)
    for shape in (SQUARE, STRIDED):
        case = case_of(design, (shape,), seed=4, longest=2)
        kinds += np.array(list(stepped(case).events.values())).sum(axis=0)
        assert event_differences(case) == []
    assert (kinds > 0).all()


def test_banks_are_cleared_after_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memories hold anything when the clock begins, but for what the simulator cannot say."""
    _dirty(monkeypatch)
    assert_equal(simulated(case_of(ONE, (SQUARE,), seed=5)))


def test_banks_that_are_not_cleared_show(monkeypatch: pytest.MonkeyPatch) -> None:
    _dirty(monkeypatch)
    plain = ScnnCore.elaborate

    def mutated(self: Any, platform: object) -> Module:
        m = plain(self, platform)
        for pe in self.pes.values():
            m.d.comb += pe.clear.valid.eq(0)
        return m

    monkeypatch.setattr(ScnnCore, "elaborate", mutated)
    assert not simulated(case_of(ONE, (SQUARE,), seed=5)).equal


def _full(vectors: int) -> SparseCase:
    """As many filters as OARAM has vectors; behind the one value of each come eleven zeros."""
    design = replace(
        ONE,
        weight_lanes=1,
        ifmap_lanes=1,
        index_bits=1,
        iaram_bytes=9,
        oaram_bytes=vectors * 17 // 8 + 1,
    )
    assert design.oaram_vectors == vectors
    run = random_run(design, Shape(plane=(1, 12), filters=vectors), seed=0)
    ifmap = np.zeros_like(run.operands.ifmap)
    ifmap[0, 0, 0, 0] = 3
    weight = np.arange(1, vectors + 1, dtype=np.int16).reshape(vectors, 1, 1, 1)
    operands = replace(run.operands, ifmap=ifmap, weight=weight, multiplier=1, shift=0)
    return SparseCase(design=design, runs=(replace(run, operands=operands),))


@pytest.mark.parametrize("vectors", [3, 4, 5])
def test_zeros_behind_the_last_value_need_no_place(vectors: int) -> None:
    """They are written, to be taken back, and the memory may be full."""
    assert_equal(simulated(_full(vectors)))


@pytest.mark.parametrize("vectors", [3, 4])
def test_zeros_written_behind_a_full_memory_show(
    vectors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewritten(plain, scnn_memories, "ActivationMemories", "writes & (address < depth)", "writes")(
        monkeypatch
    )
    assert not simulated(_full(vectors)).equal


def _dirty(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = memory.Memory

    def filled(*, shape: int, depth: int, init: list[int]) -> memory.Memory:
        return plain(shape=shape, depth=depth, init=[0x5A5A5A % (1 << shape)] * depth)

    monkeypatch.setattr(sram, "memory", SimpleNamespace(Memory=filled))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bank_hash", "dnnsim"),
        ("barrier", "channel"),
        ("group_rule", "dnnsim"),
        ("sparsity", "weights"),
    ],
)
def test_variants_of_the_model_alone_are_refused(field: str, value: str) -> None:
    with pytest.raises(InputError, match=f"{field} must be .* in the RTL of scnn, not {value}"):
        core_members(replace(ONE, **{field: value}))


def test_a_command_holds_its_numbers() -> None:
    mapping = map_plane(FOUR, problem_of(UNEVEN.layer), 3)
    values = command_values(FOUR, mapping, Output(multiplier=5, shift=2, relu=True))
    fields = {entry.name: value for entry, value in zip(command_fields(FOUR), values, strict=True)}
    assert fields["filters"] == 3
    assert fields["filters_last"] == 1
    assert fields["groups"] == 2
    assert (fields["multiplier"], fields["shift"], fields["relu"]) == (5, 2, 1)


def test_numbers_that_a_command_cannot_hold_are_refused() -> None:
    mapping = map_plane(ONE, problem_of(replace(FLAT, plane=(1, 5000)).layer), 1)
    with pytest.raises(InputError, match="a PE's part of the ifmap width must be at most 4096"):
        command_values(ONE, mapping, Output())
    mapping = map_plane(ONE, problem_of(replace(FLAT, kernel=(1, 99), pad=(0, 99)).layer), 1)
    with pytest.raises(InputError, match="kernel width must be at most 32"):
        command_values(ONE, mapping, Output())
    mapping = map_plane(ONE, problem_of(FLAT.layer), 1)
    with pytest.raises(InputError, match="shift must be from 0 to 63 in a command of an scnn core"):
        command_values(ONE, mapping, Output(shift=64))
