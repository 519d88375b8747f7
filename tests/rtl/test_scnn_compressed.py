"""Compressed IARAM and OARAM in RTL: the suite, chains, and faults."""

from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np
import pytest
from faults import Patch, placed_all, some_faults
from scnn_bench import caught, passes
from scnn_faults import in_packer, in_unpacker, placed, rewritten
from scnn_passes import OracleCase, Shape, chained, oracle_answer, random_run, with_gaps

from archsim.errors import InputError
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.words import LayerRun
from archsim.memories.boveda_stream.stream import BovedaStream
from archsim.memory import PlainStream
from archsim.ports import differences
from rtl import scnn
from rtl.cases import Draw, random_case
from rtl.core import (
    boveda_width,
    scnn_compress,
    scnn_control,
    scnn_pe,
)
from rtl.emit import emit
from rtl.memories import boveda_stream
from rtl.memories.boveda_stream import memories as scnn_stream_memories
from rtl.scnn import COUNTS
from rtl.sparse_conformance import SparseCase
from rtl.suite import DesignConformance
from rtl.toolchain import lint
from workloads.layers import MatMul
from workloads.operands import synthetic

ONE = Scnn(
    grid_rows=1, grid_columns=1, weight_lanes=2, ifmap_lanes=2, banks=4, bank_entries=16,
    weight_fifo_vectors=8, filter_group=2, iaram_bytes=300, oaram_bytes=200, index_bits=2,
    operand_bits=8, bank_queue=2, activation_memory=BovedaStream(group=2),
)  # fmt: skip
PAIR = replace(ONE, grid_columns=2, bank_entries=24, activation_memory=BovedaStream(group=1))


class TestScnnCompressed(DesignConformance):
    """In Verilog two PEs; random ones in Amaranth."""

    designs = (PAIR,)
    amaranth_cases = 5
    verilator_cases = 40
    cocotb_cases = 0

    def random_design(self, draw: Draw) -> Scnn:
        group = draw.whole(1, 2)
        return Scnn(
            grid_rows=draw.whole(1, 2),
            grid_columns=draw.whole(1, 2),
            weight_lanes=draw.whole(1, 2),
            ifmap_lanes=group * draw.whole(1, 2),
            banks=draw.one_of(1, 4),
            bank_entries=draw.one_of(16, 33),
            weight_fifo_vectors=draw.one_of(2, 13),
            filter_group=draw.whole(1, 4),
            iaram_bytes=draw.one_of(40, 512),
            oaram_bytes=draw.one_of(40, 512),
            index_bits=draw.one_of(1, 2, 4),
            operand_bits=draw.one_of(4, 8, 16),
            accumulator_bits=draw.one_of(12, 24),
            bank_queue=draw.whole(1, 4),
            activation_memory=BovedaStream(group=group, expansion=draw.whole(1, 3)),
        )


@pytest.mark.slow
class TestScnnCompressedAtLength(TestScnnCompressed):
    """More cores, more cases."""

    designs = (
        replace(PAIR, grid_rows=2, ifmap_lanes=4, operand_bits=16, banks=8),
        replace(ONE, ifmap_lanes=3, operand_bits=4, activation_memory=BovedaStream(group=3)),
    )
    amaranth_cases = 60
    verilator_cases = 400
    cocotb_cases = 2
    seed = 2


@pytest.mark.parametrize("number", range(40))
def test_the_model_answers_as_the_oracle(number: int) -> None:
    """Every word of every port and its cycle, and the counts: random cases of the suite."""
    design = TestScnnCompressed().random_design(Draw(7, number))
    case = random_case(7, number, design, longest_words=1500)
    assert isinstance(case, SparseCase)
    model, oracle = case.answer(), oracle_answer(case)
    for found in differences(oracle.transfers, model.transfers):
        assert found.first is None, f"{found} of {case.details()}"
    assert {name: model.actions[name] for name in COUNTS} == oracle.actions


def test_some_cases_do_not_fit_plainly() -> None:
    beyond = 0
    for number in range(40):
        design = TestScnnCompressed().random_design(Draw(7, number))
        case = random_case(7, number, design, longest_words=1500)
        assert isinstance(case, SparseCase)
        plain = SparseCase(design=replace(design, activation_memory=PlainStream()), runs=case.runs)
        try:
            beyond += len(plain.passes) > len(case.passes)
        except InputError:
            beyond += 1
    assert beyond >= 2


# fully connected layers

TIGHT = replace(PAIR, iaram_bytes=50, oaram_bytes=20, activation_memory=BovedaStream(group=1))


def test_a_folded_pass_of_more_filters_than_rows() -> None:
    """Model, oracle and RTL: 9 outputs in 8 rows of 8 bits, which plainly take two passes."""
    layer = MatMul(name="fc", m=2, n=9, k=53, bias=True, relu=True)
    operands = synthetic(layer, bits=6, density=0.5, seed=4)
    case = SparseCase(design=TIGHT, runs=(LayerRun(layer=layer, operands=operands),))
    plain = replace(case, design=replace(TIGHT, activation_memory=PlainStream()))
    assert [one.strip.mapping.filters for one in plain.passes] == [5, 5, 4, 4]
    assert [one.strip.mapping.filters for one in case.passes] == [9, 9]
    assert TIGHT.oaram_vectors == 8
    assert passes(case)
    for found in differences(oracle_answer(case).transfers, case.answer().transfers):
        assert found.first is None, str(found)


# chains

SHAPES = (
    Shape(plane=(2, 5), channels=2, filters=3, kernel=(1, 3), pad=(0, 1), has_bias=True),
    Shape(plane=(2, 5), channels=3, filters=3, kernel=(1, 3), pad=(0, 1), has_bias=True),
    Shape(plane=(2, 5), channels=3, has_bias=True),
)
BEHIND = Shape(plane=(1, 7), channels=2, filters=3)
WIDE = Shape(plane=(3, 4), channels=2, filters=5, kernel=(3, 3), pad=(1, 1), has_bias=True)
ZEROS = Shape(plane=(1, 14), channels=2, filters=4, relu=True)
POINTS = (Shape(plane=(1, 1), filters=2), Shape(plane=(1, 1), channels=2))


@dataclass(frozen=True, kw_only=True)
class Layers:
    """A chain, those of `keeps` staying, and a layer of its own behind it."""

    design: Scnn = PAIR
    shapes: tuple[Shape, ...]
    keeps: tuple[bool, ...] = ()
    behind: tuple[Shape, ...] = ()
    longest: int = 0
    seed: int = 6

    @property
    def made(self) -> SparseCase:
        runs = chained(self.design, self.shapes, self.keeps, seed=self.seed)
        runs += tuple(random_run(self.design, shape, seed=self.seed) for shape in self.behind)
        case = SparseCase(design=self.design, runs=runs)
        if not self.longest:
            return case
        idle = with_gaps(case, seed=3, longest=self.longest)
        return replace(case, idle=idle | {"bias": np.zeros_like(idle["bias"])})


CHAIN = Layers(shapes=SHAPES, keeps=(True, True), behind=(BEHIND,))
GROUPS = Layers(design=ONE, shapes=(WIDE,), seed=2)
RELU = Layers(design=ONE, shapes=(ZEROS,), behind=(BEHIND,), seed=2)
POINT = Layers(shapes=POINTS, keeps=(True,), behind=(POINTS[0],), seed=10)
STALLED = Layers(shapes=SHAPES, keeps=(True, False), longest=3)
CASES = {"chain": CHAIN, "groups": GROUPS, "relu": RELU, "points": POINT, "stalled": STALLED}


@pytest.mark.parametrize("name", CASES)
def test_the_untouched_core_passes(name: str) -> None:
    """Also beside the oracle."""
    case = CASES[name].made
    assert passes(case)
    oracle = OracleCase(design=case.design, runs=case.runs, idle=case.idle).answer()
    for found in differences(oracle.transfers, case.answer().transfers):
        assert found.first is None, str(found)


def test_latencies_of_a_chain() -> None:
    answer = CHAIN.made.answer()
    first, second = answer.timings[0], answer.timings[1]
    assert first.starts[0] == first.ifmap_cycles[-1] + 5
    assert second.starts[0] == 2
    assert answer.begins[1] - answer.begins[0] == first.drained[-1] + 7


# faults of the RTL


def _earlier(cycles: int) -> int:
    return cycles - 1


def _later(cycles: int) -> int:
    return cycles + 1


def _never(_: bool) -> bool:
    return False


def in_memories(*fault: str) -> Patch:
    return rewritten(boveda_stream, scnn_stream_memories, "StreamMemories", *fault)


def in_compressor(*fault: str) -> Patch:
    return rewritten(scnn_pe, scnn_compress, "Compressor", *fault)


def flush_at(module: ModuleType, later: str, change: int) -> Patch:
    """The strobe moves, what waits for it does not."""
    return placed_all(
        [module],
        {
            "flush_delay*": {"cycles": lambda cycles: cycles + change},
            f"{later}*": {"cycles": lambda cycles: cycles - change},
        },
    )


MUTATIONS: dict[str, tuple[Layers, Patch]] = {
    "the first group one cycle early": (GROUPS, placed(scnn, "loaded_delay", cycles=_earlier)),
    "the first group one cycle late": (GROUPS, placed(scnn, "loaded_delay", cycles=_later)),
    "the ofmap one cycle early": (GROUPS, placed(scnn_control, "finished_delay", cycles=_earlier)),
    "the ofmap one cycle late": (GROUPS, placed(scnn_control, "finished_delay", cycles=_later)),
    "the ifmap's last rows a cycle late": (GROUPS, flush_at(scnn, "loaded_delay", 1)),
    "the ifmap's last rows a cycle early": (GROUPS, flush_at(scnn, "loaded_delay", -1)),
    "the ofmap's last rows a cycle late": (GROUPS, flush_at(scnn_control, "finished_delay", 1)),
    "the ofmap's last rows a cycle early": (
        RELU,
        flush_at(scnn_control, "finished_delay", -1),
    ),
    "values and widths apart": (
        GROUPS,
        placed(scnn_stream_memories, "written_delay", cycles=_earlier),
    ),
    "values and widths a cycle late": (
        GROUPS,
        placed(scnn_stream_memories, "written_delay", cycles=_later),
    ),
    "rows that are not forwarded": (
        POINT,
        placed_all(
            [scnn_stream_memories],
            {f"{name}_rows*": {"transparent": _never} for name in ("iaram", "oaram")},
        ),
    ),
    "a group one bit short": (
        GROUPS,
        in_packer("self.code.eq(Mux(w == 0, 0, w - 1))", "self.code.eq(Mux(w == 0, 0, w - 2))"),
    ),
    "the pointer one bit short": (GROUPS, in_packer("total.eq(p + w)", "total.eq(p + w - 1)")),
    "zeros take bits": (RELU, placed(boveda_width, "narrow", zero_width=_never)),
    "bits of the next row dropped": (
        GROUPS,
        in_packer("begun.eq(Mux(full, high, low))", "begun.eq(Mux(full, 0, low))"),
    ),
    "a bit of the next row not read": (
        GROUPS,
        in_unpacker(
            "self._there(row + 1, Mux(row[0], self.even, self.odd))",
            "self._there(row + 1, Mux(row[0], self.even, self.odd)) & ~257",
        ),
    ),
    "the last row not written": (
        GROUPS,
        in_packer("Mux(self.flush, p != 0, self.append & full)", "self.append & full"),
    ),
    "a last row that is empty written": (
        Layers(design=ONE, shapes=(replace(BEHIND, channels=1),), behind=(POINTS[0],), seed=1),
        in_packer("Mux(self.flush, p != 0,", "Mux(self.flush, 1,"),
    ),
    "the packer's pointer not reset": (CHAIN, in_packer("[p.eq(0), row.eq(0)", "[row.eq(0)")),
    "the packer's row not reset": (CHAIN, in_packer("[p.eq(0), row.eq(0)", "[p.eq(0)")),
    "the packer's bits not reset": (CHAIN, in_packer("row.eq(0), begun.eq(0)", "row.eq(0)")),
    "the pointer not reset at the restart": (
        GROUPS,
        in_unpacker("next_p.eq(Mux(restarts, 0,", "next_p.eq(Mux(self.rewind, 0,"),
    ),
    "the row not reset at the restart": (
        GROUPS,
        in_unpacker("next_row.eq(Mux(restarts, 0,", "next_row.eq(Mux(self.rewind, 0,"),
    ),
    "the pointer not reset at the first vector": (
        CHAIN,
        in_unpacker("restarts.eq(self.rewind | (", "restarts.eq(0 | ("),
    ),
    "the walk a vector too long": (
        GROUPS,
        in_memories("last.eq(reading + 1 == count)", "last.eq(reading == count)"),
    ),
    "the walk of the other content": (
        CHAIN,
        in_memories("Mux(self.storing, self.ofmap.count, self.ifmap.count)", "self.ifmap.count"),
    ),
    "the first vector not read ahead": (GROUPS, in_memories("fresh | step", "step")),
    "a step not waited for": (GROUPS, in_memories("fresh | step", "1")),
    "read in the old place": (
        CHAIN,
        in_memories("self.leaving ^ self.exchanged", "self.leaving"),
    ),
    "written in the old place": (
        CHAIN,
        in_memories("self.storing ^ self.exchanged", "self.storing"),
    ),
    "the ofmap's steps not taken": (
        GROUPS,
        in_memories("Mux(self.leaving, self.ofmap.step,", "Mux(0, self.ofmap.step,"),
    ),
    "placeholders are not taken back": (
        RELU,
        in_compressor("If(self.valid & counts)", "If(element)"),
    ),
    "a vector taken back is packed again": (
        GROUPS,
        in_compressor("full | (kept_at == at)", "1"),
    ),
    "a last vector not packed": (RELU, in_compressor("full | (kept_at == at)", "full")),
    "rows that are read ahead are counted": (
        GROUPS,
        in_memories("if self.bounded else step", "if self.bounded else advance"),
    ),
    "a content's second last row not counted": (
        GROUPS,
        in_unpacker("end[-1] + (self.last & end[:-1].any())", "end[-1] | (self.last & end.any())"),
    ),
    "rows counted for the other memory": (
        GROUPS,
        in_memories('("read", self.leaving, used)', '("read", self.storing, used)'),
    ),
}


@pytest.mark.parametrize("name", some_faults(MUTATIONS))
def test_a_fault_in_the_rtl_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layers, patch = MUTATIONS[name]
    made = layers.made
    assert made.passes
    patch(monkeypatch)
    assert caught(made)


def test_emitted_verilog_is_clean() -> None:
    assert lint(emit(PAIR).verilog, ignore=()) == []
