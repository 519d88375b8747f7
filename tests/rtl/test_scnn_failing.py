"""Lists of the sparse core in cells that fail, in RTL: the core is its model, whatever is read.

Indices fail with values, so that what stands behind is multiplied for other places; lists of the
ofmap may grow longer than the memory that they were cut for.  Flags do not fail, so nothing hangs.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Const
from faults import Patch, late_input, seen_input
from scnn_bench import caught
from scnn_faults import in_bounds, rewritten
from scnn_growing import growing

from archsim.errors import InputError
from archsim.machine.registry import design_from_record, design_record
from archsim.machines.scnn.design import Scnn
from archsim.memories.faulty.stream import FaultyStream
from archsim.memory import PlainStream
from rtl.cases import Draw, random_case
from rtl.conformance import check
from rtl.core import scnn_compress, scnn_pe
from rtl.memories import faulty
from rtl.memories.faulty import stream
from rtl.memories.faulty.fault_layer import FaultLayer
from rtl.memories.faulty.stream import FaultyActivations
from rtl.simulators import runner
from rtl.sparse_conformance import SparseCase
from rtl.suite import DesignConformance

SLOW = pytest.mark.slow
ONE = Scnn(
    grid_rows=1, grid_columns=1, weight_lanes=1, ifmap_lanes=2, banks=2, bank_entries=24,
    weight_fifo_vectors=8, filter_group=2, iaram_bytes=60, oaram_bytes=20, index_bits=2,
    operand_bits=8, bank_queue=2, activation_memory=FaultyStream(rate=0.5, chip=4),
)  # fmt: skip
PAIR = replace(ONE, grid_columns=2, iaram_bytes=10, oaram_bytes=17)
SHORT = replace(
    ONE, iaram_bytes=18, oaram_bytes=18,
    activation_memory=FaultyStream(rate=1.0, protected_bits=(8, 9)),
)  # fmt: skip
"""Memories of 7 vectors, so that the address behind the last one is the highest that there is."""
ZEROS = replace(ONE, activation_memory=FaultyStream(rate=1.0, one_to_zero=1.0))
"""Lists of several vectors are multiplied though all are zeros; those of one are skipped."""
EVERYTHING: dict[str, Any] = {
    "column_shape": 0.5, "persistent": 0.4, "draw": 3, "zero_to_one": 0.2, "one_to_zero": 0.5,
}  # fmt: skip
FOUR = replace(
    ONE, grid_rows=2, grid_columns=2, weight_lanes=2, banks=4, iaram_bytes=100,
    activation_memory=FaultyStream(rate=0.05, chip=4),
)  # fmt: skip


def measured(design: Scnn, path: Path, rate: float, seed: int = 5) -> Scnn:
    """The design with a drawn map of the lists in all its PEs."""
    use, draws = design.stream_use("iaram"), np.random.default_rng(seed)
    shape = 2 * design.pes << use.row_bits, use.vector_bits
    cells = (draws.random(shape) < rate) * draws.integers(1, 4, shape)
    np.savez(path, map=cells.astype(np.uint8))
    return replace(design, activation_memory=FaultyStream(map=str(path)))


@pytest.mark.parametrize("pes", [1, pytest.param(4, marks=SLOW)])
def test_a_core_with_measured_faults_of_its_lists_is_its_model(pes: int, tmp_path: Path) -> None:
    design = measured(ONE if pes == 1 else FOUR, tmp_path / "map.npz", 0.1)
    assert design_from_record(design_record(design), "it") == design
    case = random_case(7, 1, design)
    assert isinstance(case, SparseCase)
    sound = replace(case, design=replace(design, activation_memory=PlainStream()))
    ofmaps = [one.answer().transfers["ofmap"].payload for one in (case, sound)]
    assert ofmaps[0].shape != ofmaps[1].shape or (ofmaps[0] != ofmaps[1]).any()
    assert check(case, runner(design, "amaranth")).equal


def test_a_measured_map_of_lists_has_their_geometry(tmp_path: Path) -> None:
    """Of IARAM and OARAM, 32 vectors of 20 bits at most."""
    other = measured(FOUR, tmp_path / "other.npz", 0.1).activation_memory
    said = "where activation has 2 x 32 words of 20 bits, 1 in a row"
    with pytest.raises(InputError, match=f"^activation_memory: map: .*{said}"):
        replace(ONE, activation_memory=other)


def memories(*fault: str) -> Patch:
    return rewritten(faulty, stream, "FaultyActivations", *fault)


def compressor(*fault: str) -> Patch:
    return rewritten(scnn_pe, scnn_compress, "Compressor", *fault)


FAULTS: dict[str, Patch] = {
    "the other memory's faults": seen_input(FaultLayer, "half", lambda self, there: ~there),
    "the first PE's faults in all": seen_input(
        FaultyActivations, "number", lambda self, there: Const(0, len(there))
    ),
    "registers of another chip": seen_input(
        FaultyActivations, "settings", lambda self, there: there ^ 1
    ),
    "the faults of vector 0 in all": memories(
        "own.read_address[:row_bits]", "(own.read_address[:row_bits] & 0)"
    ),
    "the faults of the vector before": late_input(FaultLayer, "address"),
    "the number below the address": memories(
        "Cat(own.read_address[:row_bits], self.number)",
        "Cat(self.number, own.read_address[:row_bits])",
    ),
    "no end behind the last vector": in_bounds("Mux(beyond, nothing, found)", "Mux(0, 1, found)"),
    "an end one vector early": in_bounds("own.read_address >=", "own.read_address + 1 >="),
    "the last vector of the other memory": in_bounds(
        "depths[1], depths[0]", "depths[0], depths[1]"
    ),
    "a vector behind the last one that has values": in_bounds(
        "beyond, nothing,", "beyond, nothing + 1,"
    ),
    "addresses of what is read go round": compressor(
        "Mux(self.step, self._behind(reading), reading)", "reading + self.step"
    ),
    "addresses of lists go round": compressor(
        "after = self._behind(kept_at)", "after = kept_at + 1"
    ),
    "indices do not fail": memories(
        "Cat(layer.o, inner.read_data[bits:])",
        "Cat(layer.o[:8], inner.read_data[8:10], layer.o[10:18], inner.read_data[18:])",
    ),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW) for name in FAULTS])
def test_a_fault_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[name](monkeypatch)
    assert caught(growing(ONE)) or caught(growing(PAIR)) or caught(growing(SHORT, (7, 2), 7))


class TestScnnFailing(DesignConformance):
    """In Verilog four PEs; random ones in Amaranth."""

    designs = (FOUR, replace(FOUR, activation_memory=FaultyStream(rate=0.4, **EVERYTHING)))
    amaranth_cases = 12
    verilator_cases = 60
    cocotb_cases = 0
    pytestmark = SLOW

    def random_design(self, draw: Draw) -> Scnn:
        kinds: tuple[dict[str, Any], ...] = ({}, {}, EVERYTHING, {"one_to_zero": 1.0})
        faults = kinds[draw.whole(0, 3)]
        operand_bits = draw.one_of(4, 8, 16)
        protected = (operand_bits - 1, operand_bits) if draw.chance(0.2) else ()
        return Scnn(
            grid_rows=draw.whole(1, 2),
            grid_columns=draw.whole(1, 2),
            weight_lanes=draw.whole(1, 2),
            ifmap_lanes=draw.whole(1, 3),
            banks=draw.one_of(1, 4),
            bank_entries=draw.one_of(16, 33),
            weight_fifo_vectors=draw.one_of(2, 13),
            filter_group=draw.whole(1, 4),
            iaram_bytes=draw.one_of(40, 100),
            oaram_bytes=draw.one_of(20, 100),
            index_bits=draw.one_of(1, 2, 4),
            operand_bits=operand_bits,
            accumulator_bits=draw.one_of(12, 24),
            bank_queue=draw.whole(1, 4),
            activation_memory=FaultyStream(
                rate=(0.02, 0.3, 1.0)[draw.whole(0, 2)],
                chip=draw.whole(0, 9),
                protected_bits=protected,
                **faults,
            ),
        )


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(growing(PAIR), marks=SLOW, id="two PEs"),
        pytest.param(growing(SHORT, (7, 2), 7), marks=SLOW, id="all addresses"),
        pytest.param(growing(ZEROS), marks=SLOW, id="vectors of zeros"),
    ],
)
def test_lists_that_are_another_length_end(case: SparseCase) -> None:
    assert check(case, runner(case.design, "amaranth")).equal


def test_a_core_with_lists_in_failing_cells_is_its_model() -> None:
    """Also where the ofmap's lists are longer than the OARAM that holds them."""
    case = growing(ONE)
    assert design_from_record(design_record(ONE), "it") == ONE
    assert any(one.strip.operands.made.vectors > ONE.oaram_vectors for one in case.passes)
    assert check(case, runner(ONE, "amaranth")).equal
    meant = replace(case, design=replace(ONE, activation_memory=PlainStream())).answer()
    seen = case.answer().transfers["ofmap"]
    assert len(seen.payload) > len(meant.transfers["ofmap"].payload)


@pytest.mark.parametrize("number", [0, 5, 7])
@SLOW
def test_four_cores_are_their_model(number: int) -> None:
    assert check(random_case(7, number, FOUR), runner(FOUR, "amaranth")).equal
