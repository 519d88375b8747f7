"""One taxonomy: a design's energy has the same groups and components in every technology."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from archsim import EDGE_16, simulate
from archsim.cli.layers import energy_lines
from archsim.energy import account
from archsim.energy_account import GROUPS, EnergyAccount
from archsim.errors import InputError
from archsim.layer.intake import Drawing
from archsim.machine.registry import load_design, registered
from archsim.plots.palette import GROUP_COLOURS
from archsim.result import NetworkResult
from energy_models.component import KINDS
from energy_models.technology import technologies
from workloads.layers import Conv2d, Network

LAYER = Conv2d(
    name="c", channels=8, filters=8, ifmap_height=6, ifmap_width=6, kernel_height=3, kernel_width=3
)
NETWORK = Network(name="n", source="test", layers=(LAYER,))


WIDE = "edge-16, 16 bits"
"""What Eyeriss' table has a multiply-accumulate for."""


@cache
def result(name: str) -> NetworkResult:
    design = replace(EDGE_16, operand_bits=16) if name == WIDE else load_design(name)
    given = design.machine_model().timed_by_values
    drawn = {LAYER.name: design.intake.synthetic(LAYER, Drawing(density=0.5))} if given else None
    return simulate(design, NETWORK, operands=drawn)


def accounts(name: str) -> dict[str, EnergyAccount]:
    """By technology; `eyeriss-relative` refuses what is not of 16 bits."""
    found: dict[str, EnergyAccount] = {}
    for each in technologies():
        try:
            found[each] = account(result(name), each)
        except InputError:
            assert each == "eyeriss-relative" and name != WIDE
    return found


@pytest.mark.parametrize("name", [*sorted(registered()), WIDE])
def test_groups_do_not_depend_on_the_source_of_prices(name: str) -> None:
    found = accounts(name)
    assert len(found) >= 5
    for what in ("by_group", "by_component", "layer_groups"):
        names = {tuple(getattr(one, what)) for one in found.values()}
        assert len(names) == 1, what
    (groups,) = {tuple(one.by_group) for one in found.values()}
    assert {"memories", "arithmetic", "registers", "control", "DRAM"} <= set(groups)
    shown = {
        frozenset(part.split()[0] for part in energy_lines(one)[0].split(": ", 2)[2].split(", "))
        for one in found.values()
    }
    assert shown == {frozenset(groups)}


def test_areas_have_the_same_components_in_every_technology_with_areas() -> None:
    areas = [one.area_by_component for one in accounts("edge-16").values()]
    assert len({tuple(each) for each in areas if each is not None}) == 1


def test_every_kind_has_a_group_and_every_group_a_colour() -> None:
    assert set(GROUPS) == set(KINDS)
    assert set(GROUPS.values()) | {"leakage"} == set(GROUP_COLOURS)


def test_the_bias_memory_is_a_small_part_of_the_area() -> None:
    """It was 22 %, for eight times the words that any built-in network has use for."""
    cost = account(simulate(EDGE_16, NETWORK), "45nm")
    areas = cost.area_by_component
    assert areas is not None
    bias = sum(value for name, value in areas.items() if name.startswith("output_stage.bias"))
    assert 0 < bias < 0.08 * sum(areas.values())
