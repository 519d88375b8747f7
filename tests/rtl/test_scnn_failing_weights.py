"""FIFOs of weights of the sparse core in cells that fail, in RTL: the core is its model.

A FIFO then holds vectors as they cross, and every PE decodes its own; a wrong index moves what
stands behind it in its list.  Flags do not fail, so nothing hangs.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Const
from faults import Patch, late_input, seen_input
from scnn_bench import caught
from scnn_failing_designs import EVERYTHING, drawn, failing_bank, small_core
from scnn_faults import in_bounds, rewritten
from scnn_growing import growing

from archsim.machine.registry import design_from_record, design_record
from archsim.machines.scnn.design import Scnn
from archsim.memories.faulty.bank import FaultyBank
from archsim.memories.faulty.stream import FaultyStream
from archsim.memories.protected.bank import ParityBank, SecdedBank
from archsim.memory import PlainBank
from rtl.cases import Draw, random_case
from rtl.conformance import check
from rtl.core import scnn_pe, scnn_weights
from rtl.core.scnn_fifo import WeightFifo
from rtl.core.scnn_weights import PeWeightDecoder
from rtl.memories.faulty.fault_layer import FaultLayer
from rtl.simulators import runner
from rtl.suite import DesignConformance

SLOW = pytest.mark.slow
ONE = Scnn(
    grid_rows=1, grid_columns=1, weight_lanes=2, ifmap_lanes=2, banks=4, bank_entries=24,
    weight_fifo_vectors=5, filter_group=3, iaram_bytes=60, oaram_bytes=20, index_bits=2,
    operand_bits=8, bank_queue=2, weight_memory=FaultyBank(rate=0.1, chip=4),
)  # fmt: skip
LONG = replace(ONE, weight_memory=FaultyBank(rate=0.5, chip=3))
"""Ofmaps of `growing` have more vectors than its OARAM."""
FOUR = replace(ONE, grid_rows=2, grid_columns=2, weight_fifo_vectors=7, iaram_bytes=100)

FAULTS: dict[str, Patch] = {
    "the first PE's faults in all": seen_input(
        WeightFifo, "number", lambda self, there: Const(0, len(there))
    ),
    "registers of another chip": seen_input(WeightFifo, "settings", lambda self, there: there ^ 1),
    "the faults of the place before": late_input(FaultLayer, "address"),
    "places go on from layer to layer": seen_input(WeightFifo, "start", lambda self, there: 0),
    "lists counted as often as they are read": seen_input(
        PeWeightDecoder, "ends", lambda self, there: self.cross & self.i.last
    ),
    "filters that the group has not": rewritten(
        scnn_pe, scnn_weights, "PeWeightDecoder",
        "filter_ < self.filters", "filter_ < 1 + self.layer.filters",
    ),
    "the last group's filters in all": rewritten(
        scnn_pe, scnn_weights, "PeWeightDecoder",
        "filter_ < self.filters", "filter_ < self.layer.filters_last",
    ),
    "no end behind the last vector": in_bounds("Mux(beyond, nothing, found)", "found"),
}  # fmt: skip


@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW) for name in FAULTS])
def test_a_fault_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[name](monkeypatch)
    assert caught(growing(LONG)) or any(
        caught(drawn(number, one)) for one in (ONE, FOUR) for number in range(6)
    )


class TestScnnFailingWeights(DesignConformance):
    """In Verilog four PEs; random ones in Amaranth."""

    designs = (
        FOUR,
        replace(
            FOUR,
            weight_memory=FaultyBank(rate=0.4, **EVERYTHING),
            activation_memory=FaultyStream(rate=0.05, chip=4),
        ),
    )
    amaranth_cases = 12
    verilator_cases = 60
    cocotb_cases = 0
    pytestmark = SLOW

    def random_design(self, draw: Draw) -> Scnn:
        """Of all with failing cells, a third behind check bits."""
        found = small_core(draw)
        found = replace(found, weight_memory=failing_bank(draw, found.element_bits))
        if draw.chance(0.3):
            found = replace(found, activation_memory=FaultyStream(rate=0.05))
        return found


@SLOW
def test_lists_that_are_longer_than_their_memory_end() -> None:
    case = growing(LONG)
    assert any(one.strip.operands.made.vectors > ONE.oaram_vectors for one in case.passes)
    assert check(case, runner(case.design, "amaranth")).equal


def test_a_core_with_weights_in_failing_cells_is_its_model() -> None:
    assert design_from_record(design_record(ONE), "it") == ONE
    case = drawn(0, ONE)
    assert check(case, runner(ONE, "amaranth")).equal
    sound = replace(case, design=replace(ONE, weight_memory=FaultyBank(rate=0.0)))
    ofmaps = [one.answer().transfers["ofmap"].payload for one in (case, sound)]
    assert ofmaps[0].shape != ofmaps[1].shape or (ofmaps[0] != ofmaps[1]).any()


@pytest.mark.parametrize(
    "inner", [FaultyBank(rate=0.1, chip=4), pytest.param(PlainBank(), marks=SLOW)]
)
def test_a_core_with_check_bits_on_its_weights_is_its_model(inner: Any) -> None:
    design = replace(ONE, weight_memory=SecdedBank(data_bits=20, inner=inner))
    assert design_from_record(design_record(design), "it") == design
    assert check(drawn(0, design), runner(design, "amaranth")).equal


@pytest.mark.parametrize("pes", [1, pytest.param(4, marks=SLOW)])
@pytest.mark.parametrize("coded", [True, pytest.param(False, marks=SLOW)])
def test_a_core_with_measured_faults_of_its_weights_is_its_model(
    pes: int, coded: bool, tmp_path: Path
) -> None:
    """Of PEs with 8 places each, of which 5 are used."""
    draws, shape = np.random.default_rng(3), (8 * pes, 26 if coded else 20)
    cells = (draws.random(shape) < 0.1) * draws.integers(1, 4, shape)
    np.savez(tmp_path / "map.npz", map=cells.astype(np.uint8))
    memory: Any = FaultyBank(map=str(tmp_path / "map.npz"))
    if coded:
        memory = SecdedBank(data_bits=20, inner=memory)
    side, iaram = (1, 60) if pes == 1 else (2, 100)
    design = replace(
        ONE, grid_rows=side, grid_columns=side, weight_memory=memory, iaram_bytes=iaram
    )
    assert not design.weight_memory.exact
    assert check(drawn(3, design), runner(design, "amaranth")).equal


@pytest.mark.parametrize(
    "design",
    [
        FOUR,
        replace(ONE, weight_memory=FaultyBank(rate=0.0)),
        replace(
            FOUR,
            weight_memory=SecdedBank(data_bits=10, inner=FaultyBank(rate=0.05, chip=4)),
            activation_memory=FaultyStream(rate=0.05, chip=4),
        ),
        replace(FOUR, weight_memory=ParityBank(data_bits=10, inner=FaultyBank(rate=0.1, chip=4))),
    ],
)
@pytest.mark.parametrize("number", [0, 5, 7])
@SLOW
def test_cores_are_their_model(number: int, design: Scnn) -> None:
    assert check(random_case(7, number, design), runner(design, "amaranth")).equal
