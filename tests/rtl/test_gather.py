"""Cores with a gather unit: model and hardware agree, and faults of the unit are seen."""

from dataclasses import replace
from typing import Any

import pytest
from amaranth.hdl import Module
from faults import Patch, after, seen_input
from systolic_designs import random_design as random_systolic
from tensorcore_designs import random_design as random_tensor_core

from archsim.errors import InputError
from archsim.gather import GatherUnit
from archsim.machines.systolic.design import Systolic
from archsim.machines.tensorcore.design import TensorCore
from archsim.memory import Plain
from archsim.tiled.design import CoreDesign
from rtl.cases import Draw, drawn_case
from rtl.conformance import check
from rtl.core.gather import LanePacker
from rtl.core.gathering_loader import GatheringLoader
from rtl.coverage.bins import Coverage, Seen
from rtl.emit import emit
from rtl.gather_bins import GATHERED, IN_A_LOAD, gather_bins
from rtl.simulators import runner
from rtl.suite import DesignConformance, assert_equal
from rtl.tile_aims import given_case
from rtl.tile_bins import parts
from rtl.tile_conformance import TileCase
from workloads.kept_units import KeptUnits
from workloads.layers import MatMul

SMALL = Plain(capacity_bytes=1024)
SIZES: dict[str, Any] = {"rows": 3, "columns": 2, "ifmap_memory": SMALL, "weight_memory": SMALL}
CORE = Systolic(**SIZES, gather_units=40)
DESIGNS = (
    CORE,
    Systolic(**SIZES, dataflow="output_stationary", operand_bits=4, gather_units=70),
    Systolic(rows=1, columns=2, dataflow="input_stationary", gather_units=9),
    TensorCore(octets=1, group_columns=1, rows=4, gather_units=50),
)


def _case(design: CoreDesign, *, units: int = 11, count: int = 6, rows: int = 3) -> TileCase:
    """A few rows, under stalls: of the last word all are kept, so that a word is left over."""
    draw = Draw(units, count)
    kept = KeptUnits.of(units, [*range(count - 4), *range(units - 4, units)])
    layer = MatMul(name="rows", m=rows, n=2, k=kept.count, kept=kept)
    return given_case(draw, design, layer)


def _equal(case: TileCase) -> bool:
    return check(case, runner(case.design, "amaranth")).equal


@pytest.mark.parametrize("design", DESIGNS, ids=lambda one: f"{one.kind}-{one.size}")
def test_gathered_rows(design: CoreDesign) -> None:
    units = min(11, design.gather_units)
    assert_equal(check(_case(design, units=units), runner(design, "amaranth")))


def _short_rows(self: Any, m: Module) -> None:
    m.d.sync += self.row_words.eq(1)


FAULTS: dict[str, Patch] = {
    "rows of a word": after(GatheringLoader, _short_rows),
    "rows end no load": seen_input(LanePacker, "last", lambda self, _: 0),
    "the highest lane of a word forgotten": seen_input(
        LanePacker, "mask", lambda self, mask: mask[:-1]
    ),
    "words as they lie": seen_input(LanePacker, "mask", lambda self, mask: -1),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_unit_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[name](monkeypatch)
    assert not _equal(_case(CORE))


def test_cases_for_gathered_rows_are_drawn() -> None:
    """A reset in the middle of a load among them; that bin is of no core without the unit."""
    coverage = Coverage(gather_bins(CORE, parts))
    for number in range(3):
        for aim in (GATHERED, IN_A_LOAD):
            case: Any = drawn_case(1, number, CORE, aim, longest_words=2_000)
            coverage.add(Seen(case=case, expected=case.answer()))
    assert not [one.name for one in coverage.missing if one.aim]
    assert not list(gather_bins(replace(CORE, gather_units=0), parts))
    with pytest.raises(InputError, match="no aim"):
        drawn_case(1, 0, replace(CORE, gather_units=0), IN_A_LOAD)


@pytest.mark.parametrize("cycles", [1, 3])
def test_its_latency_is_tight(cycles: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GatherUnit, "latency_cycles", cycles)
    assert not _equal(_case(replace(CORE, gather_units=41)))


@pytest.mark.slow
def test_a_core_without_has_nothing_of_it() -> None:
    plain, ours = emit(replace(CORE, gather_units=0)).verilog, emit(CORE).verilog
    assert "gather" not in plain and "row_words" not in plain
    assert "gathering_loader" in ours and "lane_packer" in ours


@pytest.mark.slow
class TestGathering(DesignConformance):
    """Each dataflow and both kinds in Verilog, random ones in Amaranth."""

    designs = DESIGNS
    amaranth_cases = 16
    amaranth_words = 2000

    def random_design(self, draw: Draw) -> CoreDesign:
        kind = random_systolic if draw.chance(0.6) else random_tensor_core
        return replace(kind(draw), gather_units=draw.whole(1, 80))
