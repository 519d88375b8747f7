"""The exact mapper against every legal mapping, and the lower bounds that it leaves out by."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from all_mappings import all_mappings, cost
from mapping_pairs import KINDS, random_pair

from archsim.energy import action_counts, price_design
from archsim.errors import InputError
from archsim.layer.problem import Problem, Tiling
from archsim.machine.registry import load_design
from archsim.machines.systolic.design import EDGE_16, Systolic
from archsim.memory import OffChip, Plain
from archsim.tiled import bound as bd
from archsim.tiled.actions import count_actions
from archsim.tiled.bound_paths import bound_of
from archsim.tiled.design import CoreDesign
from archsim.tiled.machine_vector import machine_record
from archsim.tiled.mapper import Mapper
from archsim.tiled.timing import time_layer
from archsim.tiled.walk import walk
from rtl.cases import Draw
from workloads.layers import Conv2d, MatMul

MOST_MAPPINGS = 3000
"""Of a layer that is enumerated."""


def gaps(kind: str, seed: int, pairs: int) -> None:
    """Exact and plain enumeration agree, by cycles and by bytes, in both keys."""
    number = done = 0
    while done < pairs:
        design, layer, problem = random_pair(Draw(seed, number), kind)
        number += 1
        mappings = list(all_mappings(problem, design.machine))
        if not 0 < len(mappings) <= MOST_MAPPINGS:
            continue
        done += 1
        costs = [cost(problem, design.machine, one) for one in mappings]
        for objective, turned in (("cycles", 1), ("bytes", -1)):
            mapper = Mapper(search="exact", objective=objective)
            found = mapper.find("c", problem, design)
            assert found is not None
            least = min(one[::turned] for one in costs)
            assert cost(problem, design.machine, found)[::turned] == least, (number, layer)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_better_than_the_exact_mapping(kind: str) -> None:
    gaps(kind, seed=1, pairs=5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_better_in_five_hundred_pairs(kind: str) -> None:
    gaps(kind, seed=2, pairs=500)


def random_mapping(draw: Draw, problem: Problem, together: int) -> Tiling:
    """Any, whether it fits or not; sometimes whole along some axes.

    together: filters that no tile cuts.
    """

    def size(most: int) -> int:
        return most if draw.chance(0.3) else draw.whole(1, most)

    return Tiling(
        pixel_rows=size(problem.out_height), pixel_columns=size(problem.out_width),
        filters=min(-(-size(problem.filters) // together) * together, problem.filters),
        channels=size(problem.channels),
        images=size(problem.images),
        order="pixels_outer" if draw.chance(0.5) else "filters_outer",
    )  # fmt: skip


EXACTLY = {
    "weight_write": bd.WEIGHT_WRITES, "bias_write": bd.BIAS_WRITES, "ifmap_read": bd.IFMAP_READS,
    "weight_read": bd.WEIGHT_READS, "accumulator_read": bd.SUMS, "accumulator_write": bd.SUMS,
    "array_step": bd.MOVING, "stationary_step": bd.STATIC, "output_read": bd.ROWS,
    "ofmap_write": bd.OFMAP_WRITES,
}  # fmt: skip


def bounds(kind: str, seed: int, cases: int) -> list[float]:
    """No bound is above what the walk and the schedule say; how close those of cycles are."""
    close: list[float] = []
    for number in range(cases):
        draw = Draw(seed, number)
        design, layer, problem = random_pair(draw, kind)
        mapping = random_mapping(draw, problem, machine_record(design.machine).output_vector)
        vectors = problem.vector(), mapping.vector()
        bound = bound_of(vectors[0], design.machine, vectors[1])
        cycles, moved = cost(problem, design.machine, mapping)
        assert bound[bd.CYCLES] <= cycles and bound[bd.BYTES] <= moved, (number, layer, mapping)
        actions = count_actions(walk(*vectors, design.machine), design.machine, {})
        assert bound[bd.IFMAP_WRITES] <= actions["ifmap_write"]
        assert {name: bound[column] for name, column in EXACTLY.items()} == {
            name: actions[name] for name in EXACTLY
        }
        close.append(bound[bd.CYCLES] / cycles)
    return close


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_are_below_the_schedule_and_near_it(kind: str) -> None:
    """Measured over 400 mappings of each kind: medians from 0.997 to 1 of the cycles."""
    close = bounds(kind, seed=3, cases=150)
    assert np.median(close) > 0.98


def test_loads_behind_outputs_on_one_channel_are_in_the_bound() -> None:
    """Small tiles on large arrays, whose sums come late: the next loads wait for the outputs."""
    channel = OffChip(bytes_per_cycle=256, latency_cycles=100)
    for rows, columns, sizes in (
        (180, 237, (7, 3, 64, 128)), (180, 237, (3, 7, 64, 64)), (120, 200, (2, 9, 64, 256))
    ):  # fmt: skip
        design = replace(EDGE_16, rows=rows, columns=columns, off_chip=channel)
        layer = Conv2d(
            name="c", channels=256, filters=64, ifmap_height=28, ifmap_width=28, kernel_height=1,
            kernel_width=1,
        )  # fmt: skip
        problem = design.numerics.problem(layer)
        names = ("pixel_rows", "pixel_columns", "filters", "channels")
        mapping = Tiling(**dict(zip(names, sizes, strict=True)))
        cycles, _ = cost(problem, design.machine, mapping)
        found = bound_of(problem.vector(), design.machine, mapping.vector())
        assert 0.9 * cycles <= found[bd.CYCLES] <= cycles


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_are_below_the_schedule_of_thousands(kind: str) -> None:
    bounds(kind, seed=4, cases=3000)


@pytest.mark.parametrize("objective", ["energy", "edp"])
def test_the_least_energy_of_all_mappings(objective: str) -> None:
    """As `archsim.energy` accounts for it, on every legal mapping."""
    design = Systolic(
        rows=3, columns=2, ifmap_memory=Plain(capacity_bytes=160),
        weight_memory=Plain(capacity_bytes=160), accumulator_memory=Plain(capacity_bytes=320),
        off_chip=OffChip(bytes_per_cycle=2, latency_cycles=20),
    )  # fmt: skip
    layer = Conv2d(
        name="c", channels=4, filters=5, ifmap_height=4, ifmap_width=5, kernel_height=2,
        kernel_width=3, bias=True,
    )  # fmt: skip
    problem, prices = design.numerics.problem(layer), price_design(design, "45nm")

    def spent(mapping: Tiling | None) -> float:
        result = time_layer(design, layer, mapping)
        energy = prices.energy([action_counts(result)]).sum()
        energy += prices.static_pj([result.cycles / design.clock_hz]).sum()
        return float(energy) * (result.cycles if objective == "edp" else 1)

    every = [spent(one) for one in all_mappings(problem, design.machine)]
    found = Mapper(search="exact", objective=objective).find("c", problem, design)
    assert len(every) > 100 and max(every) > 1.2 * min(every)
    assert spent(found) == pytest.approx(min(every), rel=1e-12)
    fast = Mapper(objective=objective).find("c", problem, design)
    assert min(every) * (1 - 1e-12) <= spent(fast) <= 1.1 * min(every)


def test_more_memory_and_more_bandwidth_never_slow_the_exact_mapping() -> None:
    mapper = Mapper(search="exact")
    faster = 0
    for number in range(12):
        draw = Draw(8, number)
        design, layer, problem = random_pair(draw, list(KINDS)[number % len(KINDS)])
        found = mapper.find("c", problem, design)
        if found is None:
            continue
        cycles = time_layer(design, layer, found).cycles
        memory = ("ifmap_memory", "weight_memory", "accumulator_memory")[draw.whole(0, 2)]
        plain: Any = getattr(design, memory) or design.ifmap_memory
        memory = memory if getattr(design, memory) else "ifmap_memory"
        doubled = {memory: replace(plain, capacity_bytes=2 * plain.capacity_bytes)}
        rate = replace(design.off_chip, bytes_per_cycle=2 * design.off_chip.bytes_per_cycle)
        changes: tuple[dict[str, Any], ...] = (doubled, {"off_chip": rate})
        for change in changes:
            larger = replace(design, **change)
            again = mapper.find("c", larger.numerics.problem(layer), larger)
            now = time_layer(larger, layer, again).cycles
            assert now <= cycles, (number, layer, change)
            faster += now < cycles
    assert faster > 2


def test_a_layer_that_cannot_be_enumerated() -> None:
    """No mapping by hand that comes to mind is better."""
    layer = Conv2d(
        name="c", channels=64, filters=64, ifmap_height=14, ifmap_width=14, kernel_height=3,
        kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1,
    )  # fmt: skip
    design = load_design("edge-16")
    assert isinstance(design, CoreDesign)
    exact = time_layer(design, layer, mapper=Mapper(search="exact"))
    fast = time_layer(design, layer)
    assert exact.cycles <= fast.cycles
    for filters, channels, rows in ((64, 64, 14), (16, 64, 14), (32, 32, 7), (64, 16, 5)):
        by_hand = Tiling(pixel_rows=rows, pixel_columns=14, filters=filters, channels=channels)
        try:
            assert exact.cycles <= time_layer(design, layer, by_hand).cycles
        except InputError:
            continue


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"search": "exat"}, "there is no mapper 'exat'; did you mean exact?"),
        ({"objective": "energie"}, "there is no objective 'energie'; did you mean energy?"),
    ],
)
def test_names_that_are_refused(changes: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as error:
        Mapper(**changes)
    assert str(error.value) == message


def test_a_search_without_end_is_given_up() -> None:
    layer = MatMul(name="long", m=(1 << 31) - 1, n=1, k=1)
    problem = EDGE_16.numerics.problem(layer)
    with pytest.raises(InputError, match=r"^long: the exact mapper gives up after .* take the fa"):
        Mapper(search="exact").find("long", problem, EDGE_16)
