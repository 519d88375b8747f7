"""Ofmaps that stay in the SCNN core: chains of layers in oracle, model and RTL, and faults."""

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Cat, Module
from faults import Patch, after, seen_input, some_faults
from faulty_module import faulty_module
from scnn_bench import caught, passes
from scnn_cases import differences as timing_differences
from scnn_faults import field, placed, rewritten
from scnn_passes import BiasedOracle, Shape, chained, oracle_answer, random_run, with_gaps

from archsim.errors import InputError
from archsim.machines.scnn import timing
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.mapping import Mapping
from archsim.machines.scnn.words import pass_words
from archsim.memories.protected.stream import SecdedStream
from archsim.ports import differences
from rtl import scnn
from rtl.core import scnn_control, scnn_memories, scnn_pe, scnn_pipelined_pe
from rtl.core.scnn_drain import DrainSequencer
from rtl.core.scnn_halo import HaloPort
from rtl.core.scnn_memories import ActivationMemories
from rtl.memories import plain
from rtl.memories.protected.stream import ProtectedActivations
from rtl.scnn import COUNTS, ScnnCore
from rtl.sparse_conformance import SparseCase

FOUR = Scnn(
    grid_rows=2, grid_columns=2, weight_lanes=2, ifmap_lanes=2, banks=4, bank_entries=24,
    weight_fifo_vectors=9, filter_group=2, iaram_bytes=400, oaram_bytes=400, index_bits=2,
    bank_queue=2,
)  # fmt: skip
FIRST = Shape(plane=(3, 5), channels=2, filters=3, kernel=(2, 3), stride=(1, 1), pad=(1, 1),
              has_bias=True)  # fmt: skip
SECOND = Shape(plane=(4, 5), channels=3, filters=4, kernel=(3, 3), pad=(1, 1), has_bias=True)
THIRD = Shape(plane=(4, 5), channels=4, filters=2, relu=True)
CHAIN = (FIRST, SECOND, THIRD)
FLAT = Shape(plane=(1, 7), channels=2, filters=3, has_bias=True)
NARROW = (Shape(plane=(1, 1), filters=2), Shape(plane=(1, 1), channels=2))


@dataclass(frozen=True, kw_only=True)
class Chain:
    """A chain, and layers of their own behind it."""

    design: Scnn = FOUR
    shapes: tuple[Shape, ...] = CHAIN
    keeps: tuple[bool, ...] = (True, True)
    behind: tuple[Shape, ...] = ()
    longest: int = 0

    @property
    def made(self) -> SparseCase:
        runs = chained(self.design, self.shapes, self.keeps, seed=6)
        runs += tuple(random_run(self.design, shape, seed=6) for shape in self.behind)
        case = SparseCase(design=self.design, runs=runs)
        if not self.longest:
            return case
        idle = with_gaps(case, seed=3, longest=self.longest)
        return replace(case, idle=idle | {"bias": np.zeros_like(idle["bias"])})


PAIR = replace(FOUR, grid_rows=1)
SMALL = (
    Shape(plane=(2, 5), channels=2, filters=3, kernel=(1, 3), pad=(0, 1), has_bias=True),
    Shape(plane=(2, 5), channels=3, filters=3, kernel=(1, 3), pad=(0, 1), has_bias=True),
)
KEPT = Chain(design=PAIR, shapes=SMALL, keeps=(True,), longest=2)
THRICE = Chain(
    design=PAIR,
    shapes=(*SMALL, Shape(plane=(2, 5), channels=3, has_bias=True)),
    keeps=(True, True),
)
BEHIND = Chain(design=PAIR, shapes=SMALL, keeps=(True,), behind=(FLAT,))
UNEVEN = Chain(
    design=replace(PAIR, iaram_bytes=110),
    shapes=(replace(SMALL[0], filters=2), replace(SMALL[1], channels=2, filters=1)),
    keeps=(True,),
    behind=(replace(SMALL[0], channels=1, filters=12),),
)
"""The ofmap of the layer behind fits one memory only, its own."""
TWICE = Chain(design=PAIR, shapes=NARROW, keeps=(True,))
SQUARE = Chain(longest=2)
CHECKED = replace(
    KEPT, design=replace(PAIR, activation_memory=SecdedStream(data_bits=PAIR.element_bits))
)
CHAINS = [KEPT, THRICE, BEHIND, UNEVEN, TWICE, SQUARE, CHECKED]


def test_some_of_what_stays_is_not_zero() -> None:
    for chain in CHAINS:
        for one in chain.made.runs[: len(chain.shapes)]:
            assert np.mean(one.operands.ifmap != 0) > 0.2


@pytest.mark.parametrize("keeps", [*product((False, True), repeat=2)])
@pytest.mark.parametrize("longest", [0, 3])
def test_model_and_oracle_answer_alike(keeps: tuple[bool, ...], longest: int) -> None:
    """Every word of every port and its cycle, and the counts."""
    case = Chain(keeps=keeps, longest=longest).made
    model, oracle = case.answer(), oracle_answer(case)
    for found in differences(oracle.transfers, model.transfers):
        assert found.first is None, str(found)
    assert {name: model.actions[name] for name in COUNTS} == oracle.actions


@pytest.mark.parametrize("chain", CHAINS)
def test_the_untouched_core_passes(chain: Chain) -> None:
    assert passes(chain.made)


def test_what_stays_crosses_no_port() -> None:
    case = Chain().made
    answer, passes = case.answer(), case.passes
    assert [len(one.words["ifmap"]) > 0 for one in passes] == [True, False, False]
    assert [len(one.words["ofmap"]) > 0 for one in passes] == [False, False, True]
    for now, then, own in zip(answer.begins[:-1], answer.begins[1:], answer.timings, strict=False):
        assert then - now == own.drained[-1] + 3
    assert [int(one.starts[0]) for one in answer.timings[1:]] == [2, 2]


def test_an_ofmap_that_cannot_stay_is_refused() -> None:
    strided = replace(SECOND, stride=(1, 2))
    with pytest.raises(InputError) as raised:
        pass_words(FOUR, chained(FOUR, (FIRST, strided), (True,), seed=6))
    assert str(raised.value) == (
        "the ofmap of layer cannot stay for layer: stride along columns of the next pass must be "
        "1, not 2"
    )
    with pytest.raises(InputError, match="an ofmap that stays must have a run behind it"):
        pass_words(FOUR, [replace(random_run(FOUR, FIRST, 1), keep_ofmap=True)])
    runs = chained(FOUR, (FIRST, SECOND), (True,), seed=6)
    with pytest.raises(InputError, match="ifmap of layer must be the ofmap of layer, of shape"):
        pass_words(FOUR, (runs[0], random_run(FOUR, SECOND, 1)))


# faults of the RTL


def _later(cycles: int) -> int:
    return cycles + 1


def _earlier(cycles: int) -> int:
    return cycles - 1


def _set(name: str, port: str, value: Any) -> Patch:
    """An input of a unit of the core is another."""

    def change(self: Any, m: Module) -> None:
        m.d.comb += getattr(getattr(self, name), port).eq(value(self))

    return after(ScnnCore, change)


def _own_columns(_: Any, there: Any) -> Any:
    """The layer without the pitch of what stays."""
    fields = {name: there[name] for name, _ in there.shape()}
    return Cat(*(fields | {"out_pitch": fields["out_columns"]}).values())


def _stay_exchanged(self: Any, m: Module) -> None:
    with m.If(self.start):
        m.d.sync += self.exchanged.eq(self.command.payload.ifmap_kept ^ self.exchanged)


def _exchange_once(self: Any, m: Module) -> None:
    with m.If(self.start):
        m.d.sync += self.exchanged.eq(self.command.payload.ifmap_kept)


MUTATIONS: dict[str, tuple[Chain, Patch]] = {
    "memories that do not change places": (
        KEPT,
        seen_input(ActivationMemories, "exchanged", lambda self, there: there & 0),
    ),
    "memories behind check bits that do not change places": (
        CHECKED,
        seen_input(ProtectedActivations, "exchanged", lambda self, there: there & 0),
    ),
    "memories that change places once": (
        THRICE,
        after(ScnnCore, _exchange_once),
    ),
    "memories that do not change back": (UNEVEN, after(ScnnCore, _stay_exchanged)),
    "vectors read in the old place": (
        KEPT,
        rewritten(plain, scnn_memories, "ActivationMemories", "other.read_data", "own.read_data"),
    ),
    "an ifmap that has stayed is loaded": (
        BEHIND,
        _set("load", "start", lambda self: self.start),
    ),
    "an ifmap that has stayed is waited for": (KEPT, _set("exchange", "i", lambda self: 0)),
    "an ofmap that stays leaves": (
        KEPT,
        _set("unload", "start", lambda self: self.control.finished),
    ),
    "the first group one cycle early": (KEPT, placed(scnn, "exchange_delay", cycles=_earlier)),
    "the first group one cycle late": (KEPT, placed(scnn, "exchange_delay", cycles=_later)),
    "the next command one cycle early": (
        TWICE,
        placed(scnn_control, "finished_delay", cycles=_earlier),
    ),
    "the next command one cycle late": (
        TWICE,
        placed(scnn_control, "finished_delay", cycles=_later),
    ),
    "the pitch forgotten": (KEPT, seen_input(DrainSequencer, "layer", _own_columns)),
    "places without an output not counted": (
        KEPT,
        field(HaloPort, "layer", "keep_ofmap", lambda v: v & 0),
    ),
    "places without an output hold the bias": (
        KEPT,
        rewritten(scnn_pipelined_pe, scnn_pe, "ScnnPe", "Mux(blank, 0, maximum.o)", "maximum.o"),
    ),
    "places without an output one cycle late": (
        KEPT,
        rewritten(
            scnn_pipelined_pe,
            scnn_pe,
            "ScnnPe",
            "valid = (halo.gives | halo.blank)",
            "late = Signal(); m.d.sync += late.eq(halo.blank); valid = (halo.gives | late)",
        ),
    ),
}


@pytest.mark.parametrize("name", some_faults(MUTATIONS))
def test_a_fault_in_the_rtl_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chain, patch = MUTATIONS[name]
    made = chain.made
    assert made.passes
    patch(monkeypatch)
    assert caught(made)


# faults of the model

FAULTS = {
    "the first group a cycle early": (
        "return design.exchange_cycles",
        "return design.exchange_cycles - 1",
    ),
    "an ifmap that has stayed is loaded": ("offered = 0 if mapping.ifmap_kept else", "offered ="),
    "it takes two cycles more": (
        "return design.exchange_cycles",
        "return design.exchange_cycles + 2",
    ),
    "an ofmap that stays leaves": ("leaving = 0 if mapping.keep_ofmap else", "leaving ="),
    "the next command a cycle early": (
        "written=written",
        "written=written - 1",
    ),
    "bytes of an ifmap that has stayed": ("ifmap_bits=0 if mapping.ifmap_kept else", "ifmap_bits="),
    "bytes of an ofmap that stays": ("ofmap_bits=0 if mapping.keep_ofmap else", "ofmap_bits="),
}


def _agrees(module: ModuleType, chain: Chain) -> bool:
    case = chain.made
    for one in case.passes:
        try:
            found = module.pass_timing(case.design, one.strip.mapping, one.strip.operands)
        except IndexError:
            return False
        oracle = BiasedOracle(case.design, one, {})
        if timing_differences(found, oracle.run()):
            return False
    return True


def test_the_untouched_model_agrees() -> None:
    assert _agrees(timing, Chain())


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_model_is_caught(name: str, tmp_path: Path) -> None:
    assert not _agrees(faulty_module(timing, tmp_path, FAULTS[name]), Chain())


@pytest.mark.parametrize("pitch", [lambda self: self.columns.own, lambda self: 8])
def test_another_pitch_is_caught(pitch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mapping, "output_pitch", property(pitch))
    assert not _agrees(timing, Chain())
