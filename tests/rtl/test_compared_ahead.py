"""What a pipelined core compares a cycle ahead decides cycles: each fault shows in a few cases."""

from pathlib import Path
from typing import Any

import pytest
from faults import caught, few_or_all_cases, some_faults
from faulty_module import faulty_module

from archsim.machines.systolic.design import DATAFLOWS, Dataflow, Systolic
from rtl.core import credits, dispatcher, gates, machine, pipelined_walker, pipelined_window

CORE: dict[Any, str] = {
    dispatcher: "Dispatcher",
    gates: "gates",
    pipelined_walker: "PipelinedTileWalker",
    pipelined_window: "PipelinedWindow",
}
"""What a core places of a module."""

FAULTS: dict[str, tuple[Any, Dataflow, str, str]] = {
    "folds that wait for no tile": (
        gates, "weight_stationary", "there | ~needs[self.ahead]", "Value.cast(1)",
    ),
    "needs of the tile before": (
        gates, "weight_stationary", "Mux(self.take, walk.command.payload[flag], behind)", "behind",
    ),
    "every fold taken for a first one": (
        gates, "weight_stationary", "now & ~(walk.issue & walk.last_slot)", "now",
    ),
    "needs a cycle late": (gates, "output_stationary", "~needs[self.ahead]", "~needs[0]"),
    "credits a cycle late": (
        gates, "weight_stationary", "credits.soon if self.ahead", "credits.available if self.ahead",
    ),
    "a fold that may start for ever": (
        gates, "input_stationary", "go.eq(self.allowed)", "go.eq(self.allowed | go)",
    ),
    "room a cycle late": (
        dispatcher, "weight_stationary", "return room.soon", "return room.available",
    ),
    "room in the last queue alone": (
        dispatcher, "weight_stationary", "ready & (self._room", "(self._room",
    ),
    "a tile's single column not known": (
        pipelined_window, "weight_stationary", "Mux(now[name], self.single[name][1], left == 2)",
        "left == 2",
    ),
    "a column too many": (pipelined_window, "weight_stationary", "left == 2", "left == 1"),
    "a first column that is not the last": (
        pipelined_window, "weight_stationary", "return self.single", "return {}",
    ),
    "tiles offered once": (
        pipelined_walker, "weight_stationary", "(step == PRODUCTS - 1) | offering",
        "step == PRODUCTS - 1",
    ),
    "tiles offered a cycle early": (
        pipelined_walker, "weight_stationary", "step == PRODUCTS - 1", "step == PRODUCTS - 2",
    ),
    "a taken credit still there": (
        credits, "weight_stationary", "Mux(less, count != 1, available)", "available",
    ),
    "a given credit not seen": (credits, "weight_stationary", "Mux(more, 1, ", "Mux(0, 1, "),
}  # fmt: skip


def core_of(dataflow: Dataflow) -> Systolic:
    return Systolic(rows=2, columns=2, dataflow=dataflow, pipelined_control=True)


@pytest.mark.parametrize("fault", some_faults(FAULTS))
def test_a_fault_is_seen(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, dataflow, said, instead = FAULTS[fault]
    faulty = faulty_module(module, tmp_path, (said, instead))
    if module is credits:
        for user in (gates, dispatcher):
            monkeypatch.setattr(user, "Credits", faulty.Credits)
    else:
        name = CORE[module]
        monkeypatch.setattr(machine, name, getattr(faulty, name))
    assert caught(core_of(dataflow))


@few_or_all_cases
@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_the_untouched_core_passes(dataflow: Dataflow, cases: int) -> None:
    assert not caught(core_of(dataflow), cases)
