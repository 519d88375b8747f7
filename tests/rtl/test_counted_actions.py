"""Every action that energy is computed from is counted by the RTL, or follows from counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from archsim.energy import action_counts
from archsim.machine.registry import load_design, with_settings
from archsim.result import Actions, LayerResult
from energy_models.component import Component
from rtl.cases import random_case

DESIGNS = {
    "systolic": ("edge-16", "rows=4", "columns=3"),
    "output-stationary": ("edge-16", "rows=3", "columns=4", "dataflow=output_stationary"),
    "input-stationary": ("edge-16", "rows=4", "columns=2", "dataflow=input_stationary"),
    "compressed": ("edge-16", "rows=4", "columns=4", "ifmap_memory.kind=boveda",
                   "ifmap_memory.group=2", "weight_memory.kind=boveda", "weight_memory.group=4"),
    "faulty": ("edge-16", "rows=4", "columns=3", "ifmap_memory.kind=faulty",
               "ifmap_memory.rate=0.01", "weight_memory.kind=faulty", "weight_memory.rate=0.01"),
    "parity": ("edge-16", "rows=4", "columns=3", "weight_memory.kind=parity"),
    "secded": ("edge-16", "rows=4", "columns=3", "ifmap_memory.kind=secded",
               "weight_memory.kind=secded"),
    "faulty and compressed": ("edge-16", "rows=4", "columns=4", "ifmap_memory.kind=boveda",
                              "ifmap_memory.group=2", "ifmap_memory.kind=faulty",
                              "ifmap_memory.rate=0.01"),
    "sparsetrain": ("sparsetrain", "pes=2", "rows=4", "columns=4", "lanes=4"),
    "keeping sparsetrain": ("sparsetrain", "pes=2", "rows=4", "columns=4", "lanes=4",
                            "row_scratchpad=9", "column_scratchpad=12"),
    "dense sparsetrain": ("sparsetrain", "pes=2", "rows=4", "columns=4", "lanes=4", "look_ahead=0",
                          "look_aside=0", "skip_outputs=false"),
    "tensorcore": ("volta", "octets=1"),
    "faulty tensorcore": ("volta", "octets=1", "weight_memory.kind=faulty",
                          "weight_memory.rate=0.01"),
    "integer tensorcore": ("volta", "octets=1", "operand=int8", "accumulator=int32"),
    "vsq": ("vsq-16", "lanes=2", "vector=4"),
    "vsq, integers": ("vsq-baseline", "lanes=2"),
    "faulty vsq": ("vsq-16", "lanes=2", "vector=4", "weight_memory.kind=faulty",
                   "weight_memory.rate=0.01"),
    "scnn": ("scnn", "grid_rows=2", "grid_columns=2"),
    "compressed scnn": ("scnn", "grid_rows=1", "grid_columns=2", "activation_memory.kind=boveda",
                        "activation_memory.group=2"),
}  # fmt: skip
DERIVED = {"cycle", "mac", "ifmap_bytes", "weight_bytes", "bias_bytes", "ofmap_bytes"}
"""Of a layer's ports and shape: `tests/rtl/test_paths_agree.py` has bytes and cycles, the PEs of
`tests/rtl/test_occupancy.py` the useful products."""


def priced_by(components: tuple[Component, ...]) -> set[str]:
    """Actions that make a component do something."""
    return {counted for one in components for events in one.actions.values() for counted in events}


@pytest.mark.parametrize("name", DESIGNS)
def test_what_is_priced_is_counted(name: str) -> None:
    """And what the model counts is what the RTL counts: no more, no less."""
    named, *changed = DESIGNS[name]
    design: Any = with_settings(load_design(named), changed)
    case = random_case(3, 0, design, longest_words=2000)
    counted = set(case.counters)
    actions: Mapping[str, int] = case.answer().actions  # pyright: ignore[reportAttributeAccessIssue]
    assert set(actions) == counted
    assert priced_by(design.components) <= counted | DERIVED
    assert not counted & DERIVED


def test_counts_are_handed_on_as_they_are() -> None:
    """To the prices, under the names that components know."""
    layer = LayerResult(
        name="l", kind="matmul", macs=7, macs_per_cycle=4, cycles=11,
        actions=Actions({"array_step": 5}), bytes_moved={"ifmap": 3, "ofmap": 2},
    )  # fmt: skip
    assert action_counts(layer) == {
        "array_step": 5.0, "ifmap_bytes": 3.0, "ofmap_bytes": 2.0, "mac": 7.0, "cycle": 11.0,
    }  # fmt: skip
