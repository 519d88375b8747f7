"""Max pooling in the SCNN core: RTL, model and oracle under stalls, chains, and faults."""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from faults import Patch, seen_input
from faulty_module import faulty_module
from scnn_bench import caught
from scnn_faults import field, placed, rewritten
from scnn_passes import Shape, chained, oracle_answer, random_run, with_gaps

from archsim.designs.scnn import Scnn
from archsim.errors import InputError
from archsim.ports import differences
from archsim.sparse.layer import layer_values
from archsim.sparse.words import LayerRun, pass_words
from rtl import scnn
from rtl.cases import Draw, random_case
from rtl.core import scnn_copies, scnn_drain, scnn_halo, scnn_pe, scnn_pool
from rtl.core.scnn_banks import AccumulatorBanks
from rtl.core.scnn_drain import DrainSequencer
from rtl.core.scnn_halo import HaloPort
from rtl.core.scnn_pool import WindowMaximum, WindowWalk
from rtl.scnn import COUNTS
from rtl.sparse_cases import random_runs
from rtl.sparse_conformance import SparseCase
from workloads.pooling import MaxPool

FOUR = Scnn(
    grid_rows=2, grid_columns=2, weight_lanes=2, ifmap_lanes=2, banks=4, bank_entries=24,
    weight_fifo_vectors=9, filter_group=2, iaram_bytes=400, oaram_bytes=400, index_bits=2,
    bank_queue=2,
)  # fmt: skip
SIX = replace(FOUR, grid_rows=3, bank_entries=19, bank_queue=1)
ROW = replace(FOUR, grid_rows=1)

THREE = MaxPool(window=(3, 3), stride=(2, 2))
TWO = MaxPool(window=(2, 2), stride=(2, 2))
PADDED = MaxPool(window=(3, 3), stride=(1, 2), pad=(1, 2), ceil=True)
APART = MaxPool(window=(2, 1), stride=(3, 2), pad=(1, 0), ceil=True)
ONE = MaxPool(window=(1, 1), stride=(1, 1))
WIDE = MaxPool(window=(3, 3), stride=(1, 1), pad=(1, 1))

PLANE = Shape(plane=(6, 7), channels=2, filters=3, kernel=(3, 3), pad=(1, 1), has_bias=True)
STRIDED = Shape(plane=(8, 7), filters=3, kernel=(3, 2), stride=(2, 1), pad=(1, 1), relu=True)
POINT = Shape(plane=(1, 1), filters=2)
FLAT = Shape(plane=(1, 9), channels=2, filters=3, kernel=(1, 3), has_bias=True)


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Layers, some of whose ofmaps stay; longest: of the gaps of all ports; small: operands whose
    sums are seen as they are; below: and which are all below 0."""

    shapes: tuple[Shape, ...]
    design: Scnn = FOUR
    keeps: tuple[bool, ...] = ()
    longest: int = 0
    seed: int = 6
    small: bool = False
    below: bool = False

    @property
    def made(self) -> SparseCase:
        if self.keeps:
            runs = chained(self.design, self.shapes, self.keeps, seed=self.seed)
        else:
            runs = tuple(random_run(self.design, shape, seed=self.seed) for shape in self.shapes)
        if self.small or self.below:
            runs = tuple(_small(run, below=self.below) for run in runs)
        case = SparseCase(design=self.design, runs=runs)
        if not self.longest:
            return case
        idle = with_gaps(case, seed=self.seed, longest=self.longest)
        return replace(case, idle=idle | {"bias": np.zeros_like(idle["bias"])})


def _small(run: LayerRun, *, below: bool) -> LayerRun:
    operands = run.operands
    ifmap, weight = operands.ifmap % 13, operands.weight % 13
    if below:
        ifmap, weight = abs(ifmap) + 1, -abs(weight) - 1
    else:
        ifmap, weight = ifmap - 6 * (ifmap != 0), weight - 6 * (weight != 0)
    bias = None if operands.bias is None else operands.bias % 13 - 6
    small = replace(operands, ifmap=ifmap, weight=weight, bias=bias, multiplier=1, shift=0)
    return replace(run, operands=small)


def one(shape: Shape, pool: MaxPool, design: Scnn = FOUR, **more: Any) -> Chain:
    return Chain(shapes=(replace(shape, pool=pool),), design=design, **more)


KEPT = Chain(
    shapes=(
        replace(PLANE, plane=(8, 6), pool=TWO),
        Shape(plane=(4, 3), channels=3, filters=4, kernel=(3, 3), pad=(1, 1), pool=WIDE),
        Shape(plane=(4, 3), channels=4, filters=2, pool=TWO),
    ),
    keeps=(True, True),
    longest=2,
)
STRIPS = one(
    replace(PLANE, plane=(9, 6)),
    replace(THREE, pad=(1, 1)),
    replace(FOUR, iaram_bytes=32),
    longest=2,
)
CASES = {
    "3x3, two apart": one(PLANE, THREE, longest=2),
    "2x2": one(PLANE, TWO, longest=2),
    "2x2, a stride": one(STRIDED, TWO, SIX, longest=2),
    "padded": one(PLANE, PADDED, SIX, longest=2, seed=4),
    "apart": one(PLANE, APART, SIX, longest=2),
    "a window of one": one(PLANE, ONE, ROW),
    "a plane of one": one(POINT, WIDE),
    "a row": one(FLAT, MaxPool(window=(1, 3), stride=(1, 2)), ROW, longest=1),
    "strips": STRIPS,
    "pooled and not": Chain(
        shapes=(replace(FLAT, pool=MaxPool(window=(1, 2), stride=(1, 2))), FLAT, FLAT), design=ROW
    ),
    "ofmaps that stay": KEPT,
}


@pytest.mark.parametrize("name", CASES)
def test_rtl_model_and_oracle_answer_alike(name: str) -> None:
    """Every word of every port and its cycle, and the counts."""
    case = CASES[name].made
    model, oracle = case.answer(), oracle_answer(case)
    for found in differences(oracle.transfers, model.transfers):
        assert found.first is None, str(found)
    assert {name: model.actions[name] for name in COUNTS} == oracle.actions
    assert not caught(case)


def test_cases_are_what_they_say() -> None:
    assert len(STRIPS.made.passes) > 2
    actions = {name: chain.made.answer().actions for name, chain in CASES.items()}
    assert all(found["window_read"] > 0 for found in actions.values())
    assert {name for name, found in actions.items() if not found["copy_sum"]} == {
        "2x2", "2x2, a stride", "a window of one", "a plane of one", "pooled and not",
    }  # fmt: skip
    for run in KEPT.made.runs:
        assert np.mean(run.operands.ifmap != 0) > 0.2


def test_random_cases_are_pooled() -> None:
    """With copies, conv groups, ofmaps that stay, and more than one pass of a plane."""
    seen = Counter[str]()
    for number in range(150):
        case = random_case(5, number, replace(FOUR, iaram_bytes=40, banks=8), longest_words=2000)
        assert isinstance(case, SparseCase)
        pooled = [found for found in case.passes if found.run.pool]
        seen["pooled"] += bool(pooled)
        seen["copies"] += any(found.strip.mapping.copy_cycles(0) for found in pooled)
        seen["groups"] += any(found.strip.mapping.groups > 1 for found in pooled)
        seen["conv groups"] += any(found.group for found in pooled)
        seen["kept"] += any(found.strip.mapping.keep_ofmap for found in pooled)
        seen["strips"] += any(found.strip.rows[0] + found.strip.columns[0] for found in pooled)
    print(seen)
    assert all(seen[name] > 1 for name in ("copies", "groups", "conv groups", "kept", "strips"))
    assert 20 < seen["pooled"] < 100
    assert all(run.pool is None for run in random_runs(Draw(1), ROW) if run.layer.name == "product")


def test_values_below_zero_win() -> None:
    """So that padding, or what a maximum begins with, would be seen."""
    for chain in (BELOW, NEXT):
        (run,) = chain.made.runs
        values = layer_values(chain.design, run.layer, run.operands, run.pool)
        assert (values < 0).all()


def test_a_window_that_no_command_holds() -> None:
    shape = replace(FLAT, plane=(1, 40), pool=MaxPool(window=(1, 32), stride=(1, 1)))
    with pytest.raises(InputError) as raised:
        pass_words(ROW, [random_run(ROW, shape, seed=1)])
    assert str(raised.value) == (
        "window_columns must be from 0 to 31 in a command of an scnn core, not 32"
    )


# faults

SQUARE_GRID = replace(
    FOUR, weight_lanes=1, ifmap_lanes=1, banks=2, bank_entries=32, weight_fifo_vectors=18,
    bank_queue=1,
)  # fmt: skip
PES = replace(SQUARE_GRID, grid_rows=1)
SIDES = one(
    replace(PLANE, plane=(2, 7), kernel=(1, 3), pad=(0, 1)),
    MaxPool(window=(1, 3), stride=(1, 1), pad=(0, 1)),
    PES,
    small=True,
)
SQUARE = one(replace(PLANE, plane=(4, 4), filters=2), WIDE, SQUARE_GRID, small=True)
ALONG = one(replace(PLANE, plane=(4, 4)), THREE, SQUARE_GRID, small=True)
BELOW = one(
    replace(PLANE, plane=(4, 4), channels=1, has_bias=False), PADDED, SQUARE_GRID, below=True
)
NEXT = one(replace(PLANE, plane=(4, 8), channels=1, has_bias=False), TWO, PES, below=True)
GROUPS = one(replace(PLANE, plane=(3, 4), filters=7), TWO, replace(PES, filter_group=1), small=True)
KEPT_PAIR = Chain(
    shapes=(
        replace(PLANE, plane=(4, 10), filters=2, pool=TWO),
        Shape(plane=(2, 5), channels=2),
    ),
    keeps=(True,),
    design=PES,
)
FAULT_CASES = [SIDES, SQUARE, ALONG, BELOW, NEXT, GROUPS, KEPT_PAIR]


def _in_halo(*fault: str) -> Patch:
    return rewritten(scnn_pe, scnn_halo, "HaloPort", *fault)


def _in_drain(*fault: str) -> Patch:
    return rewritten(scnn, scnn_drain, "DrainSequencer", *fault)


def _in_maximum(*fault: str) -> Patch:
    return rewritten(scnn_pe, scnn_pool, "WindowMaximum", *fault)


def _in_walk(*fault: str) -> Patch:
    return rewritten(scnn_drain, scnn_pool, "WindowWalk", *fault)


def _in_pe(*fault: str) -> Patch:
    return rewritten(scnn, scnn_pe, "ScnnPe", *fault)


def _in_copies(*fault: str) -> Patch:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        with TemporaryDirectory() as folder:
            copy = faulty_module(scnn_copies, Path(folder), (fault[0], fault[1]))
        for name in ("received_place", "sent_place"):
            monkeypatch.setattr(scnn_halo, name, getattr(copy, name))

    return patch


def _none(value: Any) -> Any:
    return value & 0


def _less(value: Any) -> Any:
    return value - 1


def _more(value: Any) -> Any:
    return value + 1


def _copy_faults() -> dict[str, tuple[Chain, Patch]]:
    """Nothing sent to a side; nothing kept room for; no cycles for it."""
    found: dict[str, tuple[Chain, Patch]] = {}
    for axis, before, behind in (("column", "left", "right"), ("row", "up", "down")):
        for name, side in (("sent_before", before), ("sent_behind", behind)):
            found[f"no copies to the {side}"] = SQUARE, field(HaloPort, axis, name, _none)
            layer = f"copy_{side}"
            found[f"copies to the {side} in no time"] = (
                SQUARE,
                field(DrainSequencer, "layer", layer, _none),
            )
    return found


MUTATIONS: dict[str, tuple[Chain, Patch]] = {
    **_copy_faults(),
    "a copy is zeroed where it comes from": (
        SIDES,
        _in_halo("(taken & ~stays)", "(taken & ~(stays & is_output))"),
    ),
    "what a window reads is zeroed": (
        SQUARE,
        _in_halo("(taken & ~stays)", "(taken & ~(stays & ~is_output))"),
    ),
    "halos are kept": (SQUARE, _in_halo("stays.eq(step.copy | (", "stays.eq(step.second | (")),
    "copies one column too far": (
        SIDES,
        _in_copies("axis.own_first - axis.copy_before)", "axis.own_first)"),
    ),
    "the first own columns are sent to the right": (
        SIDES,
        _in_copies("axis.own_count - axis.sent_behind", "axis.own_count * 0"),
    ),
    "no corners": (
        SQUARE,
        _in_copies("column.copy_before + column.own_count", "column.own_count"),
    ),
    "copies across the rows of the region": (
        SQUARE,
        field(DrainSequencer, "layer", "copy_rows", _more),
    ),
    "copies across own columns": (SQUARE, field(DrainSequencer, "layer", "copy_columns", _less)),
    "the last place of a window dropped": (
        ALONG,
        _in_pe("first, halo.valid_o)", "first, halo.valid_o & ~halo.gives)"),
    ),
    "the first place of a window dropped": (
        NEXT,
        _in_maximum("self.counts, self.value", "self.counts & ~self.first, self.value"),
    ),
    "a maximum goes on in the next window": (
        NEXT,
        seen_input(WindowMaximum, "first", lambda self, there: there & 0),
    ),
    "a maximum begins with zero": (
        NEXT,
        _in_maximum("Mux(self.first, lowest, held)", "Mux(self.first, 0, held)"),
    ),
    "padding counts as zero": (
        BELOW,
        _in_maximum("Mux(self.counts, self.value, lowest)", "Mux(self.counts, self.value, 0)"),
    ),
    "padding counts": (BELOW, seen_input(WindowMaximum, "counts", lambda self, there: there | 1)),
    "a maximum of bits": (
        ALONG,
        _in_maximum("now > before", "now.as_unsigned() > before.as_unsigned()"),
    ),
    "places behind the plane count": (BELOW, _in_halo("(place < count)", "(place <= count)")),
    "places before the plane count": (BELOW, _in_halo("(place >= 0) &", "(place >= -1) &")),
    "windows one place apart": (NEXT, field(WindowWalk, "layer", "column_step", _less)),
    "rows of windows one place apart": (NEXT, field(WindowWalk, "layer", "row_step", _less)),
    "a column of windows too few": (NEXT, field(WindowWalk, "layer", "window_columns", _less)),
    "a row of windows too few": (NEXT, field(WindowWalk, "layer", "window_rows", _less)),
    "windows begin where the row before ended": (
        NEXT,
        _in_walk("Mux(self.turn, 0, left", "Mux(self.restart, 0, left"),
    ),
    "windows of the next filter below": (
        NEXT,
        _in_walk("Mux(self.restart, 0, top", "Mux(self.restart & self.turn & 0, 0, top"),
    ),
    "a value for each place of a window": (NEXT, _in_halo("last & given", "step.output & given")),
    "the output a cycle late": (
        NEXT,
        placed(scnn_pe, "output_delay", cycles=_more),
    ),
    "no clear": (GROUPS, field(AccumulatorBanks, "drain", "erase", _none)),
    "a clear of both halves": (
        GROUPS,
        _in_pe("banks.drain.clear.eq(clear.valid)", "banks.drain.clear.eq(1)"),
    ),
    "a clear of every other entry": (
        GROUPS,
        _in_pe("clear.entry << low", "(clear.entry | 1) << low"),
    ),
    "a clear one cycle short": (
        GROUPS,
        _in_drain("self.design.bank_entries - 1", "self.design.bank_entries - 2"),
    ),
    "a clear one cycle late": (
        GROUPS,
        _in_drain("self.design.bank_entries - 1", "self.design.bank_entries"),
    ),
    "a clear where nothing is pooled": (
        Chain(shapes=(FLAT,), design=ROW),
        field(DrainSequencer, "layer", "pooled", lambda value: value | 1),
    ),
    "pooled, and not cleared": (GROUPS, field(DrainSequencer, "layer", "pooled", _none)),
    "a place of an ifmap for each place of a window": (
        KEPT_PAIR,
        _in_halo("self.blank.eq(last &", "self.blank.eq(step.output &"),
    ),
    "places that nothing is given for": (
        KEPT_PAIR,
        field(HaloPort, "layer", "keep_ofmap", _none),
    ),
    "outputs that a PE does not give": (
        KEPT_PAIR,
        field(HaloPort, "column", "give_count", _more),
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_in_the_rtl_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chain, patch = MUTATIONS[name]
    made = chain.made
    assert made.passes
    patch(monkeypatch)
    assert caught(made)


@pytest.mark.parametrize("chain", FAULT_CASES)
def test_the_untouched_core_passes(chain: Chain) -> None:
    assert not caught(chain.made)
