"""The plan of a tiled core against the core stepped from its contract, as in `archsim verify`."""

from __future__ import annotations

from typing import Any

import pytest

from archsim.layer import problem as pb
from archsim.machine.registry import load_design, with_settings
from archsim.numbers import IntArray
from archsim.tiled import families
from archsim.tiled import plan as pn
from rtl import tile_paths
from rtl.cases import random_case
from rtl.tile_conformance import TileCase

SMALL = [f"{name}_memory.capacity_bytes=2048" for name in ("ifmap", "weight", "accumulator")]
DESIGNS = {
    "edge-16": ["rows=4", "columns=3", *SMALL],
    "volta": ["octets=1", "rows=4", *SMALL],
    "vsq-16": ["lanes=2", "vector=4", "hold_cycles=3", *SMALL],
}


def cases_of(name: str) -> list[TileCase]:
    """Single layers of the first cases that `verify` draws."""
    design = with_settings(load_design(name), DESIGNS[name])
    drawn = [random_case(3, number, design) for number in range(16)]
    return [one for one in drawn if isinstance(one, TileCase)]


@pytest.mark.parametrize("name", DESIGNS)
def test_the_plan_is_the_stepped_core(name: str) -> None:
    """On a slow off-chip memory, in every case."""
    for case in cases_of(name):
        assert not case.figures_apart()


def longer_bursts(services: IntArray, machine: IntArray) -> None:
    services[pn.IFMAP : pn.OFMAP, pn.BURST_WORDS] += 1


def other_channel(services: IntArray, machine: IntArray) -> None:
    services[pn.OFMAP, pn.CHANNEL] = pn.OFMAP


def no_latency(services: IntArray, machine: IntArray) -> None:
    services[:, pn.LATENCY] = 0


@pytest.mark.parametrize("fault", [longer_bursts, other_channel, no_latency])
def test_faults_of_the_channel_that_all_closed_forms_share_are_told(
    fault: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, loops and kinds of tiles read the same services: only the steps say otherwise."""
    sound = tile_paths.services_of

    def faulty(machine: IntArray) -> IntArray:
        services = sound(machine).copy()
        fault(services, machine)
        return services

    monkeypatch.setattr(tile_paths, "services_of", faulty)
    told = [name for case in cases_of("edge-16") for name in case.figures_apart()]
    assert any("by plan and steps" in name for name in told)


def test_tilings_of_many_designs_that_are_not_those_of_one_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cycles may be right where what is counted with them is of another tiling."""
    sound = families.time_many

    def faulty(*given: Any) -> tuple[IntArray, IntArray]:
        cycles, tilings = sound(*given)
        tilings[..., pb.T_ROWS] = tilings[..., pb.T_COLUMNS] = 1
        return cycles, tilings

    monkeypatch.setattr(families, "time_many", faulty)
    told = [name for case in cases_of("edge-16") for name in case.figures_apart()]
    assert any(name.endswith("_bytes by many designs and one") for name in told)
    assert all(name.endswith("by many designs and one") for name in told)
