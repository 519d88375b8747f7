"""The sparse training machine: model against RTL, and the components by which it is priced."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]
from netlists import USED, Netlist, registers
from sparsetrain_designs import random_design

from archsim.errors import InputError
from archsim.layer.intake import Drawing
from archsim.machines.sparsetrain import timing
from archsim.machines.sparsetrain.design import SparseTrain
from rtl.cases import Draw, drawn_case, random_case
from rtl.conformance import check
from rtl.core.memory import Placed
from rtl.core.train_pe import TrainPe
from rtl.coverage.bins import Coverage, Seen
from rtl.coverage.integer_bins import EDGES
from rtl.coverage.shrink import smaller_pieces
from rtl.memories.plain import PlainBankRtl
from rtl.simulators import runner
from rtl.sparsetrain import SparseTrainCore
from rtl.sparsetrain_bins import (
    BLOCKS,
    HALF_FULL,
    KEPT,
    SHORT,
    scratchpad_bins,
    segment_bins,
    sums_bins,
)
from rtl.sparsetrain_floats import (
    CANCELS,
    LONE,
    NEAR,
    RISES,
    SUBNORMAL,
    float_sums_bins,
    split_floats_bins,
)
from rtl.suite import DesignConformance, assert_equal
from workloads.layers import MatMul

SMALL = SparseTrain(pes=2, lanes=4, rows=4, columns=4, depth=3)
DESIGNS = {
    "small": SMALL,
    "nothing skipped": SparseTrain(
        pes=2, lanes=4, rows=3, columns=4, depth=5, look_ahead=0, skip_outputs=False
    ),
    "wide": SparseTrain(
        pes=4, lanes=8, rows=5, columns=4, depth=7, look_ahead=3, look_aside=2, operand_bits=6,
        accumulator_bits=20,
    ),
    "segments": SparseTrain(
        pes=2, lanes=8, segments=4, rows=3, columns=16, depth=3, operand_bits=4
    ),
    "scratchpads": SparseTrain(
        pes=2, lanes=4, segments=2, rows=3, columns=4, depth=2, row_scratchpad=10,
        column_scratchpad=13, look_ahead=1,
    ),
    "floats": SparseTrain(
        pes=2, lanes=4, segments=2, rows=3, columns=4, depth=3, operand="bf16", operand_bits=16
    ),
    "one PE": SparseTrain(pes=1, lanes=2, rows=2, columns=2, depth=2, look_ahead=1),
    "pipelined": SparseTrain(
        pes=2, lanes=4, segments=2, rows=3, columns=4, depth=7, pipelined_pes=True
    ),
    "pipelined, in the window at once": SparseTrain(
        pes=1, lanes=2, rows=5, columns=4, depth=2, look_ahead=1, pipelined_pes=True
    ),
    "pipelined, nothing ahead": SparseTrain(
        pes=1, lanes=2, rows=2, columns=2, depth=3, look_ahead=0, pipelined_pes=True
    ),
    "pipelined floats": SparseTrain(
        pes=1, lanes=4, rows=3, columns=4, depth=5, operand="bf16", operand_bits=16,
        pipelined_pes=True,
    ),
}  # fmt: skip


class TestSparseTrain(DesignConformance):
    """Windows of every depth, with and without a mask of outputs."""

    designs = (SMALL,)
    amaranth_cases = 8
    amaranth_words = 500
    verilator_cases = 40
    cocotb_cases = 1

    @pytest.mark.slow
    def test_cocotb_on_the_emitted_file(self) -> None:
        super().test_cocotb_on_the_emitted_file()

    def random_design(self, draw: Draw) -> SparseTrain:
        return random_design(draw)


class TestPipelined(TestSparseTrain):
    """With the window in registers, in front of the banks."""

    designs = (DESIGNS["pipelined"],)
    amaranth_cases = 3
    amaranth_words = 300

    @pytest.mark.slow
    def test_verilator_on_many_cases(self) -> None:
        """Windows of every depth, and outputs that are in it at once."""
        super().test_verilator_on_many_cases()
        for name in DESIGNS:
            if name.startswith("pipelined,"):
                for number in range(40):
                    case = random_case(self.seed, number, DESIGNS[name], longest_words=1500)
                    assert_equal(check(case, runner(DESIGNS[name], "verilator")))

    def random_design(self, draw: Draw) -> SparseTrain:
        return replace(super().random_design(draw), pipelined_pes=True)


class TestFloats(TestSparseTrain):
    """BF16 operands, FP32 sums."""

    designs = (DESIGNS["floats"],)
    amaranth_cases = 2
    amaranth_words = 250

    @pytest.mark.slow
    def test_verilator_on_many_cases(self) -> None:
        """Special patterns and sums that cancel among them."""
        super().test_verilator_on_many_cases()
        for number in range(20):
            for aim in (EDGES, NEAR, CANCELS, LONE, RISES, SUBNORMAL):
                case = drawn_case(self.seed, number, self.designs[0], aim, longest_words=1500)
                assert_equal(check(case, runner(self.designs[0], "verilator")))

    def random_design(self, draw: Draw) -> SparseTrain:
        found = super().random_design(draw)
        return replace(found, operand="bf16", operand_bits=16, accumulator_bits=32)


SLOW = [
    pytest.param(name, marks=pytest.mark.slow)
    for name in ("wide", "one PE", "pipelined, nothing ahead")
]
PIPELINED = ("pipelined", "pipelined, in the window at once", "pipelined floats")


@pytest.mark.parametrize(
    "name", ["small", "nothing skipped", "segments", "scratchpads", "floats", *PIPELINED, *SLOW]
)
def test_components_are_the_netlist(name: str, tmp_path: Path) -> None:
    """Every flip-flop, and every memory's shape."""
    design = DESIGNS[name]
    netlist, components = Netlist(design, tmp_path, USED), design.components
    control = next(one for one in components if one.kind == "control")
    assert registers(components) + control.attributes["state_bits"] == netlist.flip_flops
    macros: Counter[tuple[int, int]] = Counter()
    for one in components:
        if one.kind == "sram":
            macros[one.attributes["word_bits"], one.attributes["depth"]] += one.count
    emitted: Counter[tuple[int, int]] = Counter()
    for (bits, depth), count in netlist.macros.items():
        emitted[bits, max(depth, 2)] += count
    assert macros == emitted


def test_every_memory_is_placed_as_its_kind_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a PE: a bank for each step of the window and operand, and two of sums."""
    placed: list[tuple[int, int]] = []

    class Seen(PlainBankRtl):
        def bank(self, *, bits: int, depth: int, transparent: bool) -> Placed:
            placed.append((bits, depth))
            return super().bank(bits=bits, depth=depth, transparent=transparent)

    monkeypatch.setattr("rtl.core.memory._entry", lambda *_: Seen)
    design = replace(SMALL, operand_bits=5)
    rtlil.convert(TrainPe(design=design))
    steps = design.look_ahead + 1
    operands = [(4 * 5, 4)] * steps + [(4 * 5, 8)] * steps  # of columns, of rows
    assert sorted(placed) == [*operands, (32, 8), (32, 8)]


def test_cases_for_segments_are_drawn() -> None:
    """Each bin of segments is reached by its aim, or by chance, in a few cases."""
    design = DESIGNS["segments"]
    coverage = Coverage(segment_bins(design))
    for number in range(10):
        for aim in ("", SHORT, HALF_FULL):
            case: Any = drawn_case(1, number, design, aim, longest_words=1500)
            coverage.add(Seen(case=case, expected=case.answer()))
    assert len(coverage.bins) == 6 and not coverage.missing
    assert not list(segment_bins(SMALL))
    with pytest.raises(InputError, match="no aim"):
        drawn_case(1, 0, SMALL, SHORT)


def test_cases_for_scratchpads_are_drawn() -> None:
    """Each bin of scratchpads is reached by its aim in a few cases."""
    design = replace(SMALL, row_scratchpad=24, column_scratchpad=40)
    coverage = Coverage(scratchpad_bins(design))
    for number in range(24):
        case: Any = drawn_case(0, number, design, KEPT, longest_words=1500)
        coverage.add(Seen(case=case, expected=case.answer()))
    assert len(coverage.bins) == 7 and not coverage.missing
    large = replace(design, row_scratchpad=100, column_scratchpad=0)
    assert len(list(scratchpad_bins(large))) == 2 and not list(scratchpad_bins(SMALL))


@pytest.mark.parametrize("name", ["small", "one PE", "segments"])
def test_cases_for_sums_are_drawn(name: str) -> None:
    """By aims in a few cases; a layer of one block of one step is in none."""
    design = DESIGNS[name]
    coverage = Coverage(sums_bins(design))
    for number in range(6):
        for aim in (BLOCKS, EDGES):
            case: Any = drawn_case(1, number, design, aim, longest_words=20_000)
            coverage.add(Seen(case=case, expected=case.answer()))
    assert not coverage.missing
    layer = MatMul(name="one", m=1, n=1, k=1)
    plain = SparseTrainCore.verification().layer_case(
        design, layer, design.intake.synthetic(layer, Drawing())
    )
    seen = Seen(case=plain, expected=plain.answer())
    assert not any(one.hit(seen) for one in coverage.bins)
    with pytest.raises(InputError, match="no product of at most 20 words"):
        drawn_case(1, 0, design, BLOCKS, longest_words=20)


def test_cases_for_floats_are_drawn() -> None:
    """Each bin of floats is reached by its aim in a few cases, and there are none of integers'."""
    design = replace(SMALL, segments=2, operand="bf16", operand_bits=16)
    coverage = Coverage([*float_sums_bins(), *split_floats_bins()])
    for number in range(10):
        for aim in (EDGES, NEAR, CANCELS, LONE, RISES, SUBNORMAL):
            case: Any = drawn_case(1, number, design, aim, longest_words=1500)
            coverage.add(Seen(case=case, expected=case.answer()))
    assert not coverage.missing
    assert {one.name for one in float_sums_bins()} < {one.name for one in sums_bins(design)}
    assert len(list(sums_bins(SMALL))) == 2
    with pytest.raises(InputError, match="no aim"):
        drawn_case(1, 0, SMALL, NEAR)


def test_a_model_a_cycle_off_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite's own strength: a start a cycle later."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    case: Any = random_case(3, 0, SMALL, longest_words=300)
    run = runner(SMALL, "amaranth")
    assert check(case, run).equal
    expected: Any = case.answer()
    wrong = expected.work.loads.copy()
    wrong[:, timing.WORK] += 1
    expected.work.__dict__["loads"] = wrong
    assert check(case, run, expected).cycle_differences


def test_cases_are_made_smaller_with_their_masks() -> None:
    """Every piece of a failing case is a case."""
    seen = 0
    for seed in range(6):
        case: Any = random_case(seed, 1, SMALL, longest_words=400)
        for layer, operands in smaller_pieces(case.layer, case.operands):
            SMALL.intake.take(layer, operands)
            seen += operands.needed is not None
        assert all(one.answer().counts["ofmap"] for one in case.smaller())
    assert seen
