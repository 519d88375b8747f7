"""The exact mapper of sparse cores against every cut, and the bounds that it leaves out by."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mapping_pairs import random_channel

from archsim import simulate
from archsim.errors import InputError
from archsim.layer.problem import problem_of
from archsim.machines.scnn.accounting import bytes_of
from archsim.machines.scnn.bound import least_of_shape, least_of_strips
from archsim.machines.scnn.choice import Choice, strip_sizes
from archsim.machines.scnn.design import SCNN_4PE, SCNN_ISCA17, Scnn
from archsim.machines.scnn.exact import best_choice
from archsim.machines.scnn.fold import planes_of
from archsim.machines.scnn.layer import Layer, LayerPlan, plan_layer, planned_timing
from archsim.machines.scnn.lists import stored_before
from archsim.machines.scnn.timed_layer import ScnnTiming
from rtl.cases import Draw
from rtl.sparse_cases import random_layer, random_operands
from workloads.layers import Conv2d, MatMul, Network
from workloads.operands import Operands, synthetic


def random_design(draw: Draw) -> Scnn:
    return Scnn(
        grid_rows=draw.whole(1, 3), grid_columns=draw.whole(1, 3), weight_lanes=draw.whole(1, 4),
        ifmap_lanes=draw.whole(1, 4), banks=draw.one_of(1, 2, 4, 8),
        bank_entries=draw.whole(4, 40), weight_fifo_vectors=draw.whole(2, 12),
        filter_group=draw.whole(1, 5), iaram_bytes=draw.one_of(60, 200, 2000),
        oaram_bytes=draw.one_of(60, 200, 2000), operand_bits=draw.whole(6, 16),
        accumulator_bits=draw.whole(12, 24), index_bits=draw.whole(1, 4),
        bank_queue=draw.one_of(1, 4), barrier="channel" if draw.chance(0.2) else "group",
        strip_rows=draw.one_of(0, 0, 0, 2), off_chip=random_channel(draw),
    )  # fmt: skip


def every_plan(
    design: Scnn, layer: Layer, operands: Operands
) -> Iterator[tuple[Choice, LayerPlan]]:
    """Each number of rows a strip can have, each size of groups, each plane: those that fit."""
    problem = problem_of(layer)
    outputs = problem.out_width if problem.out_height == 1 else problem.out_height
    sizes = range(1, min(design.strip_rows or outputs, outputs) + 1)
    planes: list[tuple[int, int] | None] = [None]
    if isinstance(layer, MatMul) and layer.shared_weight:
        planes += planes_of(design, layer.k)
    for plane in planes:
        for size in sizes if plane is None else (1,):
            for filters in range(1, design.filter_group + 1):
                choice = Choice(strip_rows=size, filter_group=filters, plane=plane)
                try:
                    yield choice, plan_layer(design, layer, operands, choice=choice)
                except InputError:
                    continue


def keys(timing: ScnnTiming) -> tuple[int, int]:
    return timing.cycles, sum(bytes_of(timing).values())


def compare(seed: int, pairs: int) -> int:
    """Gap 0 in pairs that fit, by cycles and by bytes; no bound above what it bounds.  Gives how
    many were better than what the core does by itself."""
    number = done = better = 0
    while done < pairs:
        draw = Draw(seed, number)
        number += 1
        design = random_design(draw)
        layer = random_layer(draw, design)
        operands = random_operands(draw, design, layer)
        try:
            found = best_choice(design, layer, operands)
        except InputError:
            assert not list(every_plan(design, layer, operands)), (seed, number)
            continue
        done += 1
        default = keys(planned_timing(design, plan_layer(design, layer, operands)))
        costs = [default]
        for choice, plan in every_plan(design, layer, operands):
            costs.append(keys(planned_timing(design, plan)))
            strips = [strip for some in plan.passes for strip in some]
            before = [stored_before(design, one.mapping, one.operands.weight) for one in strips]
            for least in (
                least_of_strips(design, strips, before),
                least_of_shape(design, layer, operands, choice),
            ):
                assert (least.cycles, least.bytes_moved) <= costs[-1], (seed, number, choice)
                assert least.cycles <= costs[-1][0], (seed, number, choice)
                assert least.bytes_moved <= costs[-1][1], (seed, number, choice)
        assert keys(found.timing) == min(costs), (seed, number)
        by_bytes = best_choice(design, layer, operands, "bytes")
        assert keys(by_bytes.timing)[::-1] == min(one[::-1] for one in costs), (seed, number)
        for chosen in (found, by_bytes):  # what is answered is what was chosen
            again = plan_layer(design, layer, operands, choice=chosen.choice)
            assert keys(planned_timing(design, again)) == keys(chosen.timing)
        better += found.choice is not None
    return better


def test_nothing_is_better_than_the_exact_cut() -> None:
    assert compare(seed=1, pairs=12) > 0


@pytest.mark.slow
def test_nothing_is_better_in_five_hundred_pairs() -> None:
    assert compare(seed=2, pairs=500) > 50


def test_bounds_are_close_on_a_layer_without_conflicts() -> None:
    """Pairs of a vector each on one PE with a bank for every product: latencies alone lack."""
    layer = Conv2d(
        name="c", channels=3, filters=4, ifmap_height=8, ifmap_width=8,
        kernel_height=3, kernel_width=3,
    )  # fmt: skip
    design = Scnn(
        grid_rows=1, grid_columns=1, weight_lanes=1, ifmap_lanes=1, banks=32, bank_entries=32
    )
    operands = synthetic(layer, bits=8)
    plan = plan_layer(design, layer, operands)
    timing = planned_timing(design, plan)
    strips = [strip for some in plan.passes for strip in some]
    before = [stored_before(design, one.mapping, one.operands.weight) for one in strips]
    assert 0.98 * timing.cycles < least_of_strips(design, strips, before).cycles <= timing.cycles


LAYER = Conv2d(
    name="conv", channels=6, filters=9, ifmap_height=12, ifmap_width=11, kernel_height=3,
    kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, bias=True, relu=True,
)  # fmt: skip
NETWORK = Network(name="n", source="here", layers=(LAYER,))
SPARSE = synthetic(LAYER, bits=8, density=0.3)
SMALL = replace(SCNN_4PE, iaram_bytes=2000, oaram_bytes=2000)


def test_runs_and_answers_are_of_the_same_cut() -> None:
    (plain,) = simulate(SMALL, NETWORK, operands={"conv": SPARSE}).layers
    (best,) = simulate(SMALL, NETWORK, operands={"conv": SPARSE}, mapper="exact").layers
    assert best.cycles < plain.cycles
    assert "groups of at most" in best.operands
    assert np.array_equal(best.ofmap, plain.ofmap)  # pyright: ignore[reportArgumentType]
    model = SMALL.machine_model()
    answer = model.answer(LAYER, SPARSE, {"mapper": "exact"})
    assert answer.cycles == best.cycles
    assert model.answer(LAYER, SPARSE, {}).cycles == plain.cycles
    (least,) = simulate(
        SMALL, NETWORK, operands={"conv": SPARSE}, mapper="exact", objective="bytes"
    ).layers
    assert least.total_bytes <= min(best.total_bytes, plain.total_bytes)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"mapper": "rough"}, "no mapper 'rough'"),
        ({"objective": "bytes"}, "of the exact mapper"),
        ({"mapper": "exact", "objective": "energy"}, "no objective 'energy'"),
        ({"mapper": "exact", "chain": True}, "whose ofmaps leave"),
    ],
)
def test_what_cannot_be_searched(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        simulate(SMALL, NETWORK, operands={"conv": SPARSE}, **options)


def test_dnnsims_count_chooses_nothing() -> None:
    design = replace(SCNN_ISCA17, group_rule="dnnsim", bank_hash="dnnsim", barrier="channel")
    with pytest.raises(InputError, match="nothing is chosen"):
        simulate(design, NETWORK, operands={"conv": SPARSE}, mapper="exact")


@pytest.mark.parametrize(("outputs", "sizes"), [(1, [1]), (5, [5, 3, 2, 1]), (4, [4, 2, 1])])
def test_sizes_of_strips(outputs: int, sizes: list[int]) -> None:
    assert strip_sizes(outputs) == sizes
