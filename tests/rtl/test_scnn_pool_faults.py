"""Faults put into pooling in the SCNN core's RTL: each one shows at a port."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from faults import Patch, seen_input, some_faults
from faulty_module import faulty_module
from scnn_bench import caught, passes
from scnn_faults import field, placed, rewritten
from scnn_passes import Shape
from scnn_pools import FLAT, FOUR, PADDED, PLANE, ROW, THREE, TWO, WIDE, Chain, one

from archsim.machines.scnn.layer import layer_values
from rtl import scnn
from rtl.core import scnn_copies, scnn_drain, scnn_halo, scnn_pe, scnn_pipelined_pe, scnn_pool
from rtl.core.scnn_banks import AccumulatorBanks
from rtl.core.scnn_drain import DrainSequencer
from rtl.core.scnn_halo import HaloPort
from rtl.core.scnn_pool import WindowMaximum, WindowWalk
from workloads.pooling import MaxPool

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


def test_values_below_zero_win() -> None:
    """So that padding, or what a maximum begins with, would be seen."""
    for chain in (BELOW, NEXT):
        (run,) = chain.made.runs
        values = layer_values(chain.design, run.layer, run.operands, run.pool)
        assert (values < 0).all()


def _in_halo(*fault: str) -> Patch:
    return rewritten(scnn_pe, scnn_halo, "HaloPort", *fault)


def _in_drain(*fault: str) -> Patch:
    return rewritten(scnn, scnn_drain, "DrainSequencer", *fault)


def _in_maximum(*fault: str) -> Patch:
    return rewritten(scnn_pe, scnn_pool, "WindowMaximum", *fault)


def _in_walk(*fault: str) -> Patch:
    return rewritten(scnn_drain, scnn_pool, "WindowWalk", *fault)


def _in_pe(*fault: str) -> Patch:
    return rewritten(scnn_pipelined_pe, scnn_pe, "ScnnPe", *fault)


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


@pytest.mark.parametrize("name", some_faults(MUTATIONS))
def test_a_fault_in_the_rtl_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chain, patch = MUTATIONS[name]
    made = chain.made
    assert made.passes
    patch(monkeypatch)
    assert caught(made)


@pytest.mark.parametrize("chain", FAULT_CASES)
def test_the_untouched_core_passes(chain: Chain) -> None:
    assert passes(chain.made)
