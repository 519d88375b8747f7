"""Compressed lists of the sparse core in cells that fail, in RTL: the core is its model.

Widths, indices and rows fail; a wrong width moves all that stands behind it in its PE.  Lists of
the ofmap may need more entries or rows than an OARAM has, with sound cells too, where weights fail.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults import Patch, seen_input
from scnn_bench import caught
from scnn_failing_designs import KINDS, drawn, read_differently, small_core
from scnn_faults import rewritten
from scnn_growing import growing

from archsim.errors import InputError
from archsim.machine.registry import design_from_record, design_record
from archsim.machines.scnn.design import Scnn
from archsim.memories.boveda_stream.stream import BovedaStream
from archsim.memories.faulty.bank import FaultyBank
from archsim.memories.faulty.stream import FaultyStream
from rtl.cases import Draw
from rtl.conformance import check
from rtl.core import memory, stream_packer, stream_unpacker
from rtl.memories import boveda_stream
from rtl.memories.boveda_stream import memories
from rtl.memories.boveda_stream.memories import StreamMemories
from rtl.memories.faulty.fault_layer import FaultLayer
from rtl.simulators import runner
from rtl.suite import DesignConformance

SLOW = pytest.mark.slow
BOVEDA = BovedaStream(group=2)
ONE = Scnn(
    grid_rows=1, grid_columns=1, weight_lanes=1, ifmap_lanes=2, banks=2, bank_entries=24,
    weight_fifo_vectors=8, filter_group=2, iaram_bytes=60, oaram_bytes=20, index_bits=2,
    operand_bits=8, bank_queue=2, activation_memory=FaultyStream(rate=0.03, chip=4, inner=BOVEDA),
)  # fmt: skip
"""Of which a vector in four has a wrong width or index."""
WRONG = replace(ONE, activation_memory=FaultyStream(rate=0.4, chip=4, inner=BOVEDA))
SHORT = replace(WRONG, oaram_bytes=10)
FEW = replace(
    ONE, oaram_bytes=10,
    activation_memory=FaultyStream(rate=0.1, chip=6, inner=BovedaStream(group=2, expansion=1)),
)  # fmt: skip
AGAIN = replace(
    ONE, iaram_bytes=23,
    activation_memory=FaultyStream(rate=0.03, chip=4, inner=BovedaStream(group=2, expansion=1)),
)  # fmt: skip
"""An IARAM of 9 vectors, as many as the ifmap has, which two groups of filters read."""
COLUMNS = replace(
    ONE, ifmap_lanes=4, iaram_bytes=30, oaram_bytes=45,
    activation_memory=FaultyStream(rate=0.02, inner=BovedaStream(group=2, expansion=3)),
)  # fmt: skip
"""Rows of two columns; an IARAM smaller than the OARAM, of 6 and 9 rows."""
SOUND = replace(
    ONE, oaram_bytes=10, activation_memory=BOVEDA, weight_memory=FaultyBank(rate=0.3, chip=1)
)
FULL = replace(
    SOUND, iaram_bytes=10, activation_memory=BovedaStream(group=2, expansion=3),
    weight_memory=FaultyBank(rate=0.5, chip=5),
)  # fmt: skip
"""Memories of 4 rows, and of entries that take 12."""
FOUR = replace(ONE, grid_rows=2, grid_columns=2, weight_lanes=2, banks=4, iaram_bytes=100)
ALL = replace(FOUR, weight_memory=FaultyBank(rate=0.02), accumulator_memory=FaultyBank(rate=0.01))


@pytest.mark.parametrize(
    "design",
    [
        pytest.param(ONE, id="one column"),
        pytest.param(COLUMNS, id="two columns"),
        pytest.param(replace(ONE, pipelined_pes=True), id="pipelined"),
        pytest.param(FOUR, marks=SLOW, id="four PEs"),
        pytest.param(ALL, marks=SLOW, id="all memories"),
    ],
)
def test_a_core_with_compressed_lists_in_failing_cells_is_its_model(design: Scnn) -> None:
    """Counters of rows, which are read as wrong widths say, among the rest."""
    assert design_from_record(design_record(design), "it") == design
    cases = [drawn(1, design), drawn(3, design), growing(design)]
    assert any(read_differently(case, BOVEDA) for case in cases)
    for case in cases:
        assert check(case, runner(design, "amaranth")).equal


@pytest.mark.parametrize(
    ("design", "filters"),
    [
        pytest.param(SHORT, (3, 8), id="lists fail"),
        pytest.param(SOUND, (3, 8), id="weights fail"),
        pytest.param(FEW, (3, 4), id="as many entries as rows"),
        pytest.param(FULL, (8,), id="thrice as many rows"),
    ],
)
def test_contents_that_are_larger_than_their_memory_end(
    design: Scnn, filters: tuple[int, ...]
) -> None:
    """More vectors than entries, and more rows than there are, or fewer."""
    cases = [growing(design, (5, 4), number) for number in filters]
    memory, use = design.activation_memory, design.stream_use("oaram")
    made = [one.strip.operands.made for case in cases for one in case.passes]
    contents: list[Any] = [memory.content(use, lists, 1) for lists in made]
    assert any(lists.vectors > design.oaram_entries for lists in made)
    full = any(one.rows.max() == use.rows for one in contents)
    assert full == (design is not FEW)
    for case in cases:
        assert check(case, runner(design, "amaranth")).equal


def test_a_full_ifmap_is_read_again() -> None:
    case = growing(AGAIN)
    assert case.passes[0].strip.operands.ifmap.vectors == AGAIN.iaram_entries
    assert check(case, runner(AGAIN, "amaranth")).equal


def measured(design: Scnn, folder: Path, rate: float) -> Scnn:
    """With drawn maps of rows and directories."""
    use, draws = design.stream_use("iaram"), np.random.default_rng(5)
    paths: list[str] = []
    for name, (_, bits) in BOVEDA.srams(use).items():
        shape = 2 * design.pes << use.row_bits, bits
        cells = (draws.random(shape) < rate) * draws.integers(1, 4, shape)
        paths.append(str(folder / f"{name}.npz"))
        np.savez(paths[-1], map=cells.astype(np.uint8))
    memory = FaultyStream(map=paths[0], directory_map=paths[1], inner=BOVEDA)
    return replace(design, activation_memory=memory)


def test_a_core_with_measured_faults_of_compressed_lists_is_its_model(tmp_path: Path) -> None:
    design = measured(ONE, tmp_path, 0.04)
    case = drawn(3, design)
    assert read_differently(case, BOVEDA)
    assert check(case, runner(design, "amaranth")).equal
    with pytest.raises(InputError, match="words of 16 bits, 1 in a row"):
        measured(FOUR, tmp_path, 0.04)
        replace(ONE, activation_memory=design.activation_memory)


def in_memories(*fault: str) -> Patch:
    return rewritten(boveda_stream, memories, "StreamMemories", *fault)


def in_packer(*fault: str) -> Patch:
    return rewritten(memories, stream_packer, "StreamPacker", *fault)


def in_unpacker(*fault: str) -> Patch:
    return rewritten(memories, stream_unpacker, "StreamUnpacker", *fault)


FAULTS: dict[str, Patch] = {
    "the other memory's faults": seen_input(FaultLayer, "half", lambda self, there: ~there),
    "faults of the half that was read before": in_memories(
        "Mux(self.flush, self.storing, self.leaving))\n", "self.leaving)\n"
    ),
    "the first PE's faults in all": seen_input(
        StreamMemories, "number", lambda self, there: there & 0
    ),
    "registers of another chip": seen_input(
        StreamMemories, "settings", lambda self, there: there ^ 1
    ),
    "even rows' faults in odd ones": in_memories(
        "Cat(C(1, 1), unpacker.odd", "Cat(C(0, 1), unpacker.odd"
    ),
    "the first column's faults in all": in_memories(
        "first_bit = column * self.group * self.bits", "first_bit = 0"
    ),
    "the faults of indices are those of widths": in_memories(
        '("indices", next_reading, len(widths))', '("indices", next_reading, 0)'
    ),
    "the flag fails too": in_memories(
        "marks = Cat(indices, marks[-1])", "marks = Cat(indices, indices[0])"
    ),
    "widths do not fail": in_memories(
        'widths = self._seen(m, "directory", widths, ("widths", next_reading, 0))', "pass"
    ),
    "the second SRAM has the first one's registers": rewritten(
        memories, memory, "seen_through", "begin = own.stop", "begin = 0"
    ),
    "rows that were not written are read": in_unpacker("Mux(row < self.written, data, 0)", "data"),
    "a row early": in_unpacker("row < self.written", "row + 1 < self.written"),
    "a row late": in_unpacker("row < self.written", "row <= self.written"),
    "rows of the other memory are there": in_memories(
        'Mux(oaram, counts["oaram"], counts["iaram"])',
        'Mux(oaram, counts["iaram"], counts["oaram"])',
    ),
    "the row that is begun is not there": in_memories(
        "packer.row + there, rows", "packer.row, rows"
    ),
    "rows go round": in_packer("full & (row != self.last_row)", "full"),
    "rows behind the last one are written": in_memories(
        "there = 1 if rows and not self.bounded else",
        "there = 1 if rows else",
    ),
    "rows behind the last one are counted": in_memories(
        "there = packer.write & (packer.row < self._most_rows(oaram))",
        "there = packer.write",
    ),
    "vectors without an entry take bits": in_memories(
        "append = append & (line.o[1:] < self._most_entries(oaram))", "pass"
    ),
    "the walk begins again": in_memories(
        "behind_last = Mux(self.stays, limit, 0)", "behind_last = 0"
    ),
    "an ifmap is read once": in_memories("self.leaving & (count >= limit)", "count >= limit"),
    "the first vector's rows are not counted": in_memories("step | (fresh & self.stays)", "step"),
    "lists go on behind the last entry": in_memories(
        "marks = Mux(self.beyond, 1 << self.marks - 1, marks)",
        "marks = Mux(self.beyond, 0, marks)",
    ),
    "values behind the last entry": in_memories("widths = Mux(self.beyond, 0, widths)", "pass"),
    "the last vector is not the last": in_memories(
        "reading + 1 == Mux(count > limit, limit, count)", "reading + 1 == count"
    ),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW) for name in FAULTS])
def test_a_fault_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[name](monkeypatch)
    pair = replace(ONE, grid_columns=2, iaram_bytes=20)
    cases = (
        lambda: drawn(3, ONE), lambda: drawn(3, COLUMNS), lambda: growing(SHORT),
        lambda: growing(SHORT, (5, 4), 8), lambda: drawn(1, pair), lambda: drawn(3, pair),
        lambda: growing(SOUND, (5, 4), 8), lambda: growing(FULL, (5, 4), 8),
        lambda: growing(FEW, (5, 4), 3), lambda: growing(AGAIN), lambda: growing(COLUMNS),
    )  # fmt: skip
    assert any(caught(case()) for case in cases)


class TestScnnFailingCompressed(DesignConformance):
    """In Verilog four PEs; random ones in Amaranth."""

    designs = (FOUR, ALL)
    amaranth_cases = 16
    verilator_cases = 60
    cocotb_cases = 0
    pytestmark = SLOW

    def random_design(self, draw: Draw) -> Scnn:
        design = small_core(draw)
        faults: dict[str, Any] = KINDS[draw.whole(0, 3)]
        lanes = draw.one_of(1, 2, 4)
        group = draw.one_of(*(one for one in (1, 2, 4) if lanes % one == 0))
        inner = BovedaStream(group=group, expansion=draw.whole(1, 3))
        rate, chip = (0.003, 0.03, 0.3, 1.0)[draw.whole(0, 3)], draw.whole(0, 9)
        memory: Any = FaultyStream(rate=rate, chip=chip, inner=inner, **faults)
        weights: Any = {}
        if draw.chance(0.3):
            memory, weights = inner, {"weight_memory": FaultyBank(rate=rate, chip=chip)}
        return replace(
            design,
            ifmap_lanes=lanes,
            activation_memory=memory,
            pipelined_pes=draw.chance(0.3),
            **weights,
        )
