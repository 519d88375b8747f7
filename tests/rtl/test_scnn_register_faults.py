"""Faults put into the units of an SCNN core with `pipelined_pes`: each one shows at a port."""

from dataclasses import replace

import pytest
from faults import Patch, some_faults
from scnn_bench import caught, passes
from scnn_fault_cases import ACROSS, HALO, ONE, PLAIN, Case
from scnn_faults import field, placed, rewritten
from scnn_passes import Shape

from rtl import scnn
from rtl.core import (
    scnn_control,
    scnn_drain,
    scnn_fetched,
    scnn_fifo,
    scnn_halo,
    scnn_pipelined_pe,
    scnn_sending,
    scnn_weights,
)
from rtl.core.scnn_drain import PipelinedDrainSequencer

REGISTERS = replace(ONE, pipelined_pes=True, weight_fifo_vectors=6)
SINGLE = Case(design=REGISTERS, shapes=(PLAIN,))
VECTORS, LISTS = (  # lists of a vector, one or more of a group; then a layer whose weights wait
    Case(
        design=replace(REGISTERS, filter_group=2),
        shapes=2 * (Shape(plane=(4, 4), channels=channels, filters=6, kernel=(1, 1)),),
    )
    for channels in (1, 3)
)
DENSE = Case(
    design=replace(REGISTERS, banks=1, bank_entries=64, bank_queue=3),
    shapes=(Shape(plane=(1, 8), channels=2, filters=5, kernel=(1, 3), pad=(0, 1)),),
    density=1.0,
)
BANKS = replace(DENSE, design=replace(DENSE.design, banks=2))
SPARSE = Case(
    design=replace(REGISTERS, filter_group=4, bank_queue=1),
    shapes=(Shape(plane=(2, 3), channels=9, filters=7, kernel=(1, 1)),),
    density=0.3,
)
SIDES = Case(
    design=replace(ACROSS, pipelined_pes=True), shapes=(replace(HALO, has_bias=True), HALO)
)
SINGLE_FILTER = Case(
    design=REGISTERS,
    shapes=(Shape(plane=(2, 3), channels=2, filters=1, kernel=(1, 1)),),
)
CASES = [SINGLE, DENSE, BANKS, SPARSE, SIDES, SINGLE_FILTER]


def _sending(*fault: str) -> Patch:
    return rewritten(scnn_pipelined_pe, scnn_sending, "SendingStage", *fault)


def _fetched(*fault: str) -> Patch:
    return rewritten(scnn_pipelined_pe, scnn_fetched, "FetchedActivations", *fault)


def _drain(*fault: str) -> Patch:
    return rewritten(scnn, scnn_drain, "PipelinedDrainSequencer", *fault)


def _control(*fault: str) -> Patch:
    return rewritten(scnn, scnn_control, "GroupControl", *fault)


def _room(*fault: str) -> Patch:
    return rewritten(scnn, scnn_fifo, "WeightRoom", *fault)


def _weights(*fault: str) -> Patch:
    return rewritten(scnn, scnn_weights, "PipelinedWeightDecoder", *fault)


def _earlier(cycles: int) -> int:
    return cycles - 1


def _later(cycles: int) -> int:
    return cycles + 1


def _one(_: int) -> int:
    return 1


MUTATIONS: dict[str, tuple[Case, Patch]] = {
    "banks that add nothing": (DENSE, _sending("now == 0, 0, now - 1", "0, now, now")),
    "a place of a queue too few": (DENSE, _sending("distance > queue", "distance >= queue")),
    "a place of a queue too many": (DENSE, _sending("begin >= queue", "begin > queue")),
    "what pairs before have left is not counted": (
        DENSE,
        _sending("rank + self._before(behind, pair.addresses[number])", "rank"),
    ),
    "products of other banks are counted": (BANKS, _sending("& (banks[n] == banks[number])", "")),
    "products of other banks are left": (BANKS, _sending("& (bank == number)", "")),
    "a pair waits in front of the stages, and no second": (
        SINGLE,
        placed(scnn_sending, "queue", depth=_one),
    ),
    "a vector of activations waits, and no second": (
        SPARSE,
        placed(scnn_fetched, "queue", depth=_one),
    ),
    "lists of one vector are empty": (
        SPARSE,
        _fetched("first & word.last & ~some", "first & word.last"),
    ),
    "a list fetched too few": (SPARSE, _fetched("(left == 1)", "(left == 2)")),
    "a place is taken as a vector is written": (
        SINGLE,
        _room("Mux(self.reserve, then, before)", "before"),
    ),
    "the barrier of the group before ends the next one": (
        SINGLE,
        _control("self.done & ~self.go", "self.done"),
    ),
    "a drain begins as late as the barrier is known": (
        SINGLE,
        _control("latency - 2 - self.ahead", "latency - 2"),
    ),
    "room is not kept for a vector under way": (
        SINGLE,
        _room("self.reserve & used, after", "C(0), after"),
    ),
    "a pair comes while one is sent": (DENSE, _sending("after | ~(taken", "after | ~(C(0)")),
    "a weight's value ahead of its tap": (SINGLE, placed(scnn_weights, "value_", cycles=_earlier)),
    "the only list not known to be the last": (
        VECTORS,
        _weights("Mux(fresh, number == 1, kept)", "kept"),
    ),
    "the last list known a list late": (
        LISTS,
        _weights("lists + 2 == number)", "lists + 1 == number)"),
    ),
    "the list behind the last one the last, too": (
        LISTS,
        _weights("Mux(last, number == 1, ", "Mux(last, 1, "),
    ),
    "weights are written a cycle late": (SINGLE, placed(scnn_weights, "flag_", cycles=_later)),
    "steps ahead of their addresses": (SINGLE, placed(scnn_halo, "step_delay", cycles=_earlier)),
    "steps behind their addresses": (SIDES, placed(scnn_halo, "step_delay", cycles=_later)),
    "ends of lists a cycle early": (
        SINGLE,
        placed(scnn_pipelined_pe, "output_delay", cycles=_earlier),
    ),
    "a bias a cycle late": (SIDES, placed(scnn, "bias_delay", cycles=_later)),
    "a load seen a cycle late": (SINGLE, placed(scnn, "loaded_delay", cycles=_later)),
    "a PE is done as its first pair ends": (
        SINGLE,
        rewritten(
            scnn, scnn_pipelined_pe, "pe_of",
            "If(sending.ended & sending.last)", "If(sending.ended)",
        ),
    ),
    "halos take no time": (
        SIDES,
        field(PipelinedDrainSequencer, "layer", "halo_left", lambda value: value & 0),
    ),
    "a row of the drain ends a sum early": (
        SIDES, _drain("depth + 2 == depth_count", "depth + 3 == depth_count")),
    "rows of one sum do not end": (
        SIDES, _drain("Mux(last_depth, depth_count == 1,", "Mux(last_depth, 0,")),
    "a filter ends a row late": (
        SIDES, _drain("along + 2 == along_count", "along + 1 == along_count")),
    "the last filter is not known after one": (
        SIDES, _drain("last_filter.eq(filter_ + 2 == count)", "last_filter.eq(0)")),
    "a filter alone is not the last": (
        SINGLE_FILTER, _drain("last_filter.eq(self.filters == 1)", "last_filter.eq(0)")),
    "phases of several filters end with the first": (
        SIDES, _drain("last_filter.eq(count == 1)", "last_filter.eq(1)")),
    "extents of the phase before": (
        SIDES, _drain("for begins, phase in ((phase_ends, after),",
                      "for begins, phase in ((phase_ends, first),")),
    "extents of one are not known": (
        SIDES, _drain("signal.eq(self.layer[name] == 1)", "signal.eq(0)")),
    "lists read on while they are counted anew": (
        SPARSE, _fetched("m.If(~fetching)", "m.If(fetching)")),
    "what is left of a PE is not counted anew": (
        SPARSE, rewritten(scnn, scnn_pipelined_pe, "pe_of", "m.If(~running)", "m.If(running)")),
}  # fmt: skip


@pytest.mark.parametrize("name", some_faults(MUTATIONS, each=4))
def test_a_fault_in_the_registers_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, patch = MUTATIONS[name]
    made = case.made
    patch(monkeypatch)
    assert caught(made)


@pytest.mark.parametrize("case", CASES)
def test_the_untouched_core_passes(case: Case) -> None:
    """The same layers show no difference without a fault, so the tests above mean something."""
    assert passes(case.made)
