"""Accumulators of the sparse core in cells that fail, in RTL: the core is its model.

Every sum is read through its cells: to be added to, sent, added to what comes, copied, given out.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Const, Value
from faults import Patch, late_input, seen_input
from scnn_bench import caught
from scnn_failing_designs import EVERYTHING, drawn, failing_bank, small_core

from archsim.machine.registry import design_from_record, design_record
from archsim.machines.scnn.design import Scnn
from archsim.memories.faulty.bank import FaultyBank
from archsim.memories.faulty.stream import FaultyStream
from archsim.memories.protected.bank import SecdedBank
from archsim.memory import PlainBank
from rtl.cases import Draw, random_case
from rtl.conformance import check
from rtl.core.scnn_banks import AccumulatorBank
from rtl.core.scnn_control import GroupControl
from rtl.core.scnn_drain import DrainSequencer
from rtl.memories.faulty.fault_layer import FaultLayer
from rtl.simulators import runner
from rtl.suite import DesignConformance

SLOW = pytest.mark.slow
ONE = Scnn(
    grid_rows=1, grid_columns=1, weight_lanes=2, ifmap_lanes=2, banks=4, bank_entries=24,
    weight_fifo_vectors=9, filter_group=3, iaram_bytes=60, oaram_bytes=20, index_bits=2,
    operand_bits=8, bank_queue=2, accumulator_memory=FaultyBank(rate=0.05, chip=4),
)  # fmt: skip
FOUR = replace(ONE, grid_rows=2, grid_columns=2, iaram_bytes=100)


def _other_number(change: Any) -> Patch:
    return seen_input(AccumulatorBank, "pe", change)


FAULTS: dict[str, Patch] = {
    "the first PE's faults in all": _other_number(lambda self, there: Const(0, len(there))),
    "the first bank's faults in all": seen_input(
        FaultLayer, "address", lambda self, there: there & ~(3 << (len(there) - 4))
    ),
    "registers of another chip": seen_input(
        AccumulatorBank, "settings", lambda self, there: there ^ 1
    ),
    "the faults of the entry before": late_input(FaultLayer, "address"),
    "the other half's faults": seen_input(FaultLayer, "half", lambda self, there: ~there),
    "groups go on in the half that is next": seen_input(
        GroupControl, "start", lambda self, there: Value.cast(0)
    ),
    "drains go on in the half that is next": seen_input(
        DrainSequencer, "begin", lambda self, there: Value.cast(0)
    ),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW) for name in FAULTS])
def test_a_fault_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[name](monkeypatch)
    assert any(caught(drawn(number, one)) for one in (ONE, FOUR) for number in range(8))


class TestScnnFailingSums(DesignConformance):
    """In Verilog four PEs; random ones in Amaranth."""

    designs = (
        FOUR,
        replace(
            FOUR,
            accumulator_memory=FaultyBank(rate=0.3, chip=2, **EVERYTHING),
            weight_memory=FaultyBank(rate=0.05, chip=3),
            activation_memory=FaultyStream(rate=0.05, chip=4),
        ),
        replace(FOUR, accumulator_memory=SecdedBank(data_bits=24, inner=FaultyBank(rate=0.05))),
    )
    amaranth_cases = 12
    verilator_cases = 60
    cocotb_cases = 0
    pytestmark = SLOW

    def random_design(self, draw: Draw) -> Scnn:
        """Of all with failing cells, a third behind check bits."""
        found = small_core(draw)
        found = replace(found, accumulator_memory=failing_bank(draw, found.accumulator_bits))
        if draw.chance(0.3):
            found = replace(found, activation_memory=FaultyStream(rate=0.05))
        if draw.chance(0.3):
            found = replace(found, weight_memory=FaultyBank(rate=0.05))
        return found


def test_a_core_with_sums_in_failing_cells_is_its_model() -> None:
    assert design_from_record(design_record(ONE), "it") == ONE
    case = drawn(0, ONE)
    assert check(case, runner(ONE, "amaranth")).equal
    sound = replace(case, design=replace(ONE, accumulator_memory=FaultyBank(rate=0.0)))
    ofmaps = [one.answer().transfers["ofmap"].payload for one in (case, sound)]
    assert ofmaps[0].shape != ofmaps[1].shape or (ofmaps[0] != ofmaps[1]).any()


@pytest.mark.parametrize(
    "inner", [FaultyBank(rate=0.05, chip=4), pytest.param(PlainBank(), marks=SLOW)]
)
def test_a_core_with_check_bits_on_its_sums_is_its_model(inner: Any) -> None:
    design = replace(ONE, accumulator_memory=SecdedBank(data_bits=24, inner=inner))
    assert design_from_record(design_record(design), "it") == design
    assert check(drawn(0, design), runner(design, "amaranth")).equal


@SLOW
def test_a_core_with_measured_faults_of_its_sums_is_its_model(tmp_path: Path) -> None:
    """Of both halves of four banks, each with 32 places, of which 24 are used."""
    draws = np.random.default_rng(3)
    cells = (draws.random((2 * 4 * 32, 24)) < 0.05) * draws.integers(1, 4, (256, 24))
    np.savez(tmp_path / "map.npz", map=cells.astype(np.uint8))
    memory = FaultyBank(map=str(tmp_path / "map.npz"))
    design = replace(ONE, accumulator_memory=memory)
    run = runner(design, "amaranth")
    for number in (0, 3):
        assert check(drawn(number, design), run).equal


@pytest.mark.parametrize(
    "design",
    [
        replace(ONE, accumulator_memory=FaultyBank(rate=0.0)),
        replace(ONE, banks=1, bank_entries=1, filter_group=1, bank_queue=1),
        replace(FOUR, banks=2, bank_entries=33, accumulator_bits=12, bank_queue=4),
    ],
)
@pytest.mark.parametrize("number", [0, 5, 7])
@SLOW
def test_cores_are_their_model(number: int, design: Scnn) -> None:
    assert check(random_case(7, number, design), runner(design, "amaranth")).equal
