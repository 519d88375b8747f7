"""Cores with compressed scratchpads pass the conformance suite; faults in these are caught."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from amaranth.hdl import Const, Module, Mux, Signal, Value
from compressed_bench import differences, random_store, steps_of
from compressed_designs import random_design, with_compressed
from faults import Patch, caught, delay, model_column, seen_input
from tensorcore_designs import random_design as random_tensor_core

from archsim.errors import InputError
from archsim.layer.intake import Drawing
from archsim.machines.systolic.design import DATAFLOWS, Dataflow, Systolic
from archsim.machines.tensorcore.design import TensorCore
from archsim.memories.boveda.scratchpad import Boveda
from archsim.memory import Plain
from archsim.tiled.design import CoreDesign
from archsim.tiled.timing import plan_tiling
from rtl.cases import LONGEST_WORDS, Draw, random_case
from rtl.conformance import check
from rtl.core.compressed_place import WordPlace
from rtl.core.compressed_writer import ColumnWriter
from rtl.emit import emit
from rtl.memories.boveda.column import CompressedColumn
from rtl.memories.boveda.scratchpad import CompressedScratchpad
from rtl.simulators import runner
from rtl.suite import DesignConformance, assert_equal, check_random_cases
from rtl.tile_conformance import TileCase, free_services
from rtl.toolchain import lint
from workloads.layers import MatMul


def boveda(capacity_bytes: int, group: int, unit_words: int, expansion: int = 4) -> Boveda:
    return Boveda(
        capacity_bytes=capacity_bytes, group=group, unit_words=unit_words, expansion=expansion
    )


BOTH = Systolic(rows=3, columns=5, ifmap_memory=boveda(24, 2, 4), weight_memory=boveda(30, 5, 2))
MEMORIES: dict[str, dict[str, Any]] = {
    "ifmap": {"ifmap_memory": boveda(16, 4, 4), "weight_memory": Plain(capacity_bytes=24)},
    "weight": {"ifmap_memory": Plain(capacity_bytes=40), "weight_memory": boveda(18, 1, 4)},
    "both": {"ifmap_memory": boveda(16, 2, 2), "weight_memory": boveda(18, 1, 16)},
}


class TestSystolicBoveda(DesignConformance):
    """In Verilog both memories, or one beside a plain one; random ones in Amaranth."""

    designs = (
        BOTH,
        Systolic(
            rows=4,
            columns=3,
            dataflow="input_stationary",
            operand_bits=16,
            weight_memory=boveda(80, 1, 16),
        ),
    )
    amaranth_cases = 10
    amaranth_words = 600
    verilator_cases = 40
    cocotb_cases = 0

    def random_design(self, draw: Draw) -> CoreDesign:
        return random_design(draw)


@pytest.mark.slow
class TestSystolicBovedaAtLength(TestSystolicBoveda):
    """More designs, longer cases."""

    amaranth_cases = 36
    amaranth_words = LONGEST_WORDS
    cocotb_cases = 2


class TestTensorCoreBoveda(DesignConformance):
    """Floats in Verilog, as unsigned patterns; random ones in Amaranth."""

    designs = (
        TensorCore(
            octets=1,
            group_columns=2,
            rows=4,
            ifmap_memory=boveda(48, 2, 8),
            weight_memory=boveda(128, 4, 4),
        ),
    )
    amaranth_cases = 5
    verilator_cases = 30
    cocotb_cases = 0

    def random_design(self, draw: Draw) -> CoreDesign:
        return with_compressed(draw, random_tensor_core(draw))


@pytest.mark.slow
class TestTensorCoreBovedaAtLength(TestTensorCoreBoveda):
    """More designs."""

    amaranth_cases = 16
    cocotb_cases = 1


def test_the_capacity_is_really_used() -> None:
    """Among the cases above are tilings that would not fit if all values were wide."""
    beyond = 0
    for number in range(40):
        case = random_case(1, number, random_design(Draw(1, number)))
        if not isinstance(case, TileCase):  # several layers, one behind the other
            continue
        plan_tiling(case.design, case.layer, case.tiling, case.operands)
        try:
            plan_tiling(case.design, case.layer, case.tiling)
        except InputError:
            beyond += 1
    assert beyond >= 5


@pytest.mark.parametrize(
    ("dataflow", "which"),
    [
        # quickly: both memories in every dataflow, one of them in one
        pytest.param(dataflow, which, marks=pytest.mark.slow if which != "both" and at % 4 else ())
        for at, (which, dataflow) in enumerate(product(MEMORIES, DATAFLOWS))
    ],
)
def test_tiles_follow_back_to_back(dataflow: Dataflow, which: str) -> None:
    """Every tile is another operand, so that a half is written as soon as it is read."""
    design = Systolic(rows=4, columns=3, dataflow=dataflow, **MEMORIES[which])
    layer, run = MatMul(name="m", m=6, n=7, k=31), runner(design, "amaranth")
    for seed in range(2):
        operands = design.numerics.synthetic(layer, Drawing(seed=seed, density=0.5))
        tiling = plan_tiling(design, layer, None, operands)
        case = TileCase(
            design=design, layer=layer, tiling=tiling, operands=operands, services=free_services()
        )
        assert_equal(check(case, run))


def test_emitted_verilog_is_clean() -> None:
    assert lint(emit(BOTH).verilog, ignore=()) == []


def _alone(stores: int = 12, *, place_registers: int = 0) -> int:
    """Wrong words of scratchpads alone."""
    wrong = 0
    for seed in range(stores):
        draw = Draw(29, seed)
        store = random_store(draw)
        memory = replace(store.memory, place_registers=place_registers)
        store = replace(store, memory=memory)
        wrong += differences(store, steps_of(draw, store, 6))
        if wrong:
            break
    return wrong


def test_a_scratchpad_alone_gives_every_word() -> None:
    """Any shape of word, group and unit; overwritten in the cycle of its last address."""
    assert _alone(16) == 0
    assert _alone(8, place_registers=1) == 0


WITH_REGISTER = replace(boveda(24, 1, 4), place_registers=1)
KEPT: dict[str, dict[str, Any]] = {
    "ifmap": {"ifmap_memory": WITH_REGISTER},
    "weight, and an ifmap that waits a cycle": {
        "ifmap_memory": boveda(24, 2, 4), "weight_memory": WITH_REGISTER,
    },
    "both": {"ifmap_memory": WITH_REGISTER, "weight_memory": WITH_REGISTER},
}  # fmt: skip


@pytest.mark.parametrize("which", KEPT)
def test_a_register_in_the_place_of_a_word(which: str) -> None:
    """A cycle more of reads and of writes; a compressed ifmap is told late what it reads."""
    assert (WITH_REGISTER.read_latency_cycles, WITH_REGISTER.write_latency_cycles) == (5, 3)
    design = Systolic(rows=3, columns=2, **KEPT[which])
    assert design.operand_latency_cycles == 7
    check_random_cases(design, "amaranth", seed=17, cases=3, longest_words=500)
    with pytest.raises(InputError, match="place_registers must be 0 or 1, not 2"):
        replace(WITH_REGISTER, place_registers=2)


def _wrapped(kind: type, method: str, change: Any) -> Patch:
    """`change(plain, self, m, *arguments)` in place of a method."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = getattr(kind, method)

        def mutated(self: Any, m: Module, *arguments: Any) -> Any:
            return change(plain, self, m, *arguments)

        monkeypatch.setattr(kind, method, mutated)

    return patch


def _narrow(plain: Any, self: Any, m: Module) -> Any:
    w, codes = plain(self, m)
    narrow = Signal.like(w)
    m.d.comb += narrow.eq(Mux(w > 2, w - 1, w))
    return narrow, codes


def _wide(plain: Any, self: Any, m: Module) -> Any:
    w, codes = plain(self, m)
    wide = Signal.like(w)
    m.d.comb += wide.eq(Mux(w < self.size["container_bits"], w + 1, w))
    return wide, codes


def _late(name: str, change: int) -> Patch:
    """A delay line of the scratchpad takes some cycles more."""

    def changed(plain: Any, self: Any, m: Module, line: str, value: Value, cycles: int) -> Any:
        return plain(self, m, line, value, cycles + change * (line == name))

    return _wrapped(CompressedScratchpad, "_late", changed)


FAULTS: dict[str, Patch] = {
    "width one too small": _wrapped(ColumnWriter, "_measure", _narrow),
    "the last row's spill is lost": _wrapped(
        ColumnWriter,
        "_write_rows",
        lambda plain, self, m, flags, data: plain(self, m, flags, (data[0], Const(0, 1))),
    ),
    "a spill is no row": _wrapped(
        ColumnWriter,
        "_write_rows",
        lambda plain, self, m, flags, data: plain(self, m, (flags[0], Const(0, 1)), data),
    ),
    "first row of a unit one too far": _wrapped(
        ColumnWriter,
        "_write_entry",
        lambda plain, self, m, row, w: plain(self, m, (row + 1)[: len(row)], w),
    ),
    "entry without its last width": _wrapped(
        ColumnWriter,
        "_write_entry",
        lambda plain, self, m, row, w: plain(self, m, row, Const(1, len(w))),
    ),
    "units are never aligned": seen_input(ColumnWriter, "ends", lambda self, _: self.tile_ends),
    "rows go on from tile to tile": seen_input(ColumnWriter, "tile_ends", lambda *_: Const(0, 1)),
    "always the same half": seen_input(CompressedColumn, "half_in", lambda *_: Const(0, 1)),
    "a stale unit": seen_input(CompressedColumn, "read_unit", lambda _, unit: unit & ~1),
    "lanes never take the word behind": seen_input(
        CompressedColumn, "later", lambda *_: Const(0, 1)
    ),
    "the word behind never begins a unit": seen_input(
        WordPlace, "following", lambda self, _: self.entry
    ),
    "place one cycle early": _late("located", -1),
    "half one cycle late": _late("half", 1),
    "lanes one cycle late": _late("later", 1),
    "write one cycle late": _late("written", 1),
    "write one cycle early": _late("written", -1),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_a_scratchpad_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in ("lanes never take the word behind", "the word behind never begins a unit"):
        _only_straddling(monkeypatch)
    FAULTS[name](monkeypatch)
    assert _alone(30) > 0


def _only_straddling(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ports in question are there only in these."""
    from dataclasses import replace

    import compressed_bench

    monkeypatch.setitem(
        globals(),
        "random_store",
        lambda draw: replace(compressed_bench.random_store(draw), straddles=True),
    )


IFMAP_ONLY = Systolic(rows=4, columns=3, **MEMORIES["ifmap"])
WEIGHT_ONLY = Systolic(rows=4, columns=3, **MEMORIES["weight"])

CORE_FAULTS: dict[str, tuple[CoreDesign, Patch]] = {
    "ifmap credit one cycle early": (IFMAP_ONLY, delay("ifmap_loaded_delay", -1)),
    "ifmap credit one cycle late": (IFMAP_ONLY, delay("ifmap_loaded_delay", 1)),
    "weight credit one cycle early": (WEIGHT_ONLY, delay("weight_loaded_delay", -1)),
    "weight credit one cycle late": (WEIGHT_ONLY, delay("weight_loaded_delay", 1)),
    "weights read one cycle early": (IFMAP_ONLY, delay("weight_walk_delay", -1)),
    "ifmap read one cycle late": (WEIGHT_ONLY, delay("ifmap_address_delay", 1)),
    "weights freed one cycle early": (IFMAP_ONLY, delay("weight_free_delay", -1)),
    "ifmap freed one cycle late": (WEIGHT_ONLY, delay("ifmap_free_delay", 1)),
}


@pytest.mark.parametrize("name", CORE_FAULTS)
def test_a_fault_between_core_and_scratchpad_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    design, patch = CORE_FAULTS[name]
    patch(monkeypatch)
    assert caught(design, 30)


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize(
    ("column", "design"),
    [
        ("IFMAP_WRITE_LATENCY", IFMAP_ONLY),
        ("WEIGHT_WRITE_LATENCY", WEIGHT_ONLY),
        ("IFMAP_READ_WAIT", WEIGHT_ONLY),
        ("WEIGHT_READ_WAIT", IFMAP_ONLY),
        ("RESULT_LATENCY", BOTH),
    ],
)
def test_every_latency_of_the_model_is_tight(
    column: str, design: CoreDesign, change: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_column(Systolic, column, change)(monkeypatch)
    assert caught(design, 30)


@pytest.mark.parametrize("design", [IFMAP_ONLY, WEIGHT_ONLY, BOTH])
def test_the_untouched_design_passes(design: CoreDesign) -> None:
    assert not caught(design, 5)
