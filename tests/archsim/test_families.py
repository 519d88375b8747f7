"""Designs that differ in memories alone share answers: each gets what it gets by itself."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from random_cores import random_design
from random_layers import LATENCIES

from archsim import EDGE_16, Plain, evaluate_many, simulate_many
from archsim.errors import InputError
from archsim.layer.problem import Tiling
from archsim.machines.systolic.design import DATAFLOWS, Systolic
from archsim.simulate import simulate
from archsim.tiled import families
from archsim.tiled import machine_vector as mc
from archsim.tiled.mapper import Mapper
from rtl.cases import Draw
from workloads.layers import Conv2d, MatMul, Network

DEPTHS = slice(mc.IFMAP_DEPTH, mc.IFMAP_DEPTH + mc.MEMORIES)


def layers(draw: Draw) -> list[Conv2d | MatMul]:
    """One of each kind: plain, of groups, of a batch, a product."""

    def conv(name: str, groups: int, batch: int) -> Conv2d:
        return Conv2d(
            name=name, channels=draw.whole(1, 24) * groups, filters=draw.whole(1, 40) * groups,
            groups=groups, ifmap_height=draw.whole(3, 20), ifmap_width=draw.whole(3, 20),
            kernel_height=3, kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1,
            stride_height=draw.one_of(1, 2), batch=batch, bias=draw.chance(0.5),
        )  # fmt: skip

    product = MatMul(name="d", m=draw.whole(1, 90), n=draw.whole(1, 90), k=draw.whole(1, 300))
    return [conv("a", 1, 1), conv("b", draw.one_of(2, 16), 1), conv("c", 1, 3), product]


@pytest.mark.parametrize("search", ["rough", "fast"])
def test_each_machine_of_a_family_gets_its_own_answer(search: str) -> None:
    """Families of any kind of core, their depths drawn, two of them mixed."""
    shared = 0
    for number in range(10):
        draw = Draw(41, number)
        made = [random_design(draw, LATENCIES) for _ in range(2)]
        if made[0].numerics.problem_key != made[1].numerics.problem_key:
            made[1] = made[0]
        machines = np.stack([made[draw.whole(0, 1)].machine for _ in range(24)])
        for machine in machines:
            machine[DEPTHS] = [int(2 ** (3 + 8 * draw.rng.random())) for _ in range(mc.MEMORIES)]
            machine[DEPTHS][draw.whole(0, 3)] = 64
        problems = [made[0].numerics.problem(one) for one in layers(draw)]
        distinct, same = families.in_families(machines)
        assert (distinct[same] == machines).all()
        vectors = np.stack([one.vector() for one in problems])
        timed = families.time_many_roughly if search == "rough" else families.time_many
        cycles, tilings = timed(vectors, distinct, 1 << 20)
        for at, machine in enumerate(distinct):
            for layer, problem in enumerate(problems):
                found = Mapper(search=search).find("", problem, made[0], machine=machine)
                assert (found is None) == (cycles[at, layer] < 0), (number, at, layer)
                if found is not None:
                    assert Tiling.from_vector(tilings[at, layer]) == found, (number, at, layer)
        chosen = [len(np.unique(tilings[:, at], axis=0)) for at in range(len(problems))]
        shared += len(distinct) * len(problems) - sum(chosen)
    assert shared > 100


def small_grid() -> list[Systolic]:
    """Sizes of three scratchpads, two dataflows."""
    sizes = [Plain(capacity_bytes=1024 * size) for size in (2, 8, 64)]
    return [
        replace(EDGE_16, dataflow=dataflow, ifmap_memory=one, weight_memory=two,
                accumulator_memory=sums)
        for dataflow in DATAFLOWS[:2] for one in sizes for two in sizes for sums in sizes[:2]
    ]  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"mapper": "rough"}])
def test_a_grid_takes_what_each_design_takes(options: dict[str, Any]) -> None:
    network = Network(name="four", layers=tuple(layers(Draw(42, 0))), source="a test")
    grid = small_grid()
    cycles, _ = simulate_many(grid, network, **options)
    priced = evaluate_many(grid, network, **options)
    assert (cycles == priced.cycles).all() and (cycles > 0).all()
    for at in range(0, len(grid), 5):
        alone = simulate(grid[at], network, **options)
        assert cycles[at].tolist() == [one.cycles for one in alone.layers]


@pytest.mark.parametrize(
    "options",
    [{"mapper": "exact"}, {"objective": "bytes"}, {"mappings": {"d": Tiling(
        pixel_rows=1, pixel_columns=1, filters=1, channels=1)}}],
)  # fmt: skip
def test_what_many_at_once_do_not_do_is_said(options: dict[str, Any]) -> None:
    network = Network(name="one", layers=(MatMul(name="d", m=4, n=4, k=4),), source="a test")
    for many in (simulate_many, evaluate_many):
        with pytest.raises(InputError, match="by fast or rough, and by cycles"):
            many([EDGE_16], network, **options)
    with pytest.raises(InputError, match="chain"):
        simulate_many([EDGE_16], network, chain=True)
