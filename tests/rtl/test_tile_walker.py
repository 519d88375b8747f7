"""The tile walker makes the commands of `archsim.tiled.walk`, every field, every ten cycles."""

from typing import Any

import pytest
from amaranth.sim import Simulator
from systolic_designs import random_design

from archsim.errors import InputError
from archsim.layer.problem import Problem, Tiling, problem_of
from archsim.machines.systolic.design import DATAFLOWS, Systolic
from archsim.tiled import commands as cmd
from archsim.tiled.layer_command import describe
from archsim.tiled.walk import walk
from rtl.cases import Draw
from rtl.core.tile_walker import TileWalker
from rtl.tile_cases import random_layer, random_tiling
from workloads.layers import MatMul
from workloads.operands import synthetic

SCALING = (40_000, 17)


def _expected(design: Systolic, problem: Problem, tiling: Tiling) -> list[dict[str, int]]:
    tiles = walk(problem.vector(), tiling.vector(), design.machine)[:, : len(cmd.COMMAND_FIELDS)]
    tiles[:, cmd.MULTIPLIER], tiles[:, cmd.SHIFT] = SCALING
    names = [field.name for field in cmd.COMMAND_FIELDS]
    return [dict(zip(names, map(int, row), strict=True)) for row in tiles]


def _run(
    design: Systolic, problem: Problem, tiling: Tiling, count: int, waits: list[int]
) -> tuple[list[dict[str, int]], list[int]]:
    """Tile commands, and the cycles from when each could come to when it was offered."""
    moving = design.dataflow == "input_stationary"
    walker = TileWalker(lanes=design.ifmap_lanes, blocks=moving)
    fields = describe("layer", problem, tiling, design.machine, SCALING)
    commands: list[dict[str, int]] = []
    intervals: list[int] = []

    async def bench(ctx: Any) -> None:
        for name, value in fields.items():
            ctx.set(walker.layer.payload[name], value)
        ctx.set(walker.layer.valid, 1)
        await ctx.tick()
        ctx.set(walker.layer.valid, 0)
        for wait in waits[:count]:
            cycles = 1
            while not ctx.get(walker.tile.valid):
                await ctx.tick()
                cycles += 1
            intervals.append(cycles)
            if wait:
                await ctx.tick().repeat(wait)
            payload: Any = walker.tile.payload
            commands.append(
                {field.name: int(ctx.get(payload[field.name])) for field in cmd.COMMAND_FIELDS}
            )
            ctx.set(walker.tile.ready, 1)
            await ctx.tick()
            ctx.set(walker.tile.ready, 0)
        await ctx.tick().repeat(12)
        assert not ctx.get(walker.tile.valid), "one tile too many"
        assert ctx.get(walker.layer.ready)

    simulator = Simulator(walker)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return commands, intervals


@pytest.mark.parametrize("number", range(25))
def test_every_tile_of_random_layers(number: int) -> None:
    draw = Draw(23, number)
    design = random_design(draw)
    layer = random_layer(draw, design)
    problem = problem_of(layer)
    tiling = random_tiling(draw, design, layer, synthetic(layer))
    if tiling is None:
        pytest.skip("the drawn layer does not fit the drawn scratchpads")
    problem = problem.side_by_side(tiling.groups)
    expected = _expected(design, problem, tiling)[:200]
    total = len(walk(problem.vector(), tiling.vector(), design.machine))
    if total > 200:
        pytest.skip("too many tiles for a plain simulation")
    waits = [draw.one_of(0, 0, 1, 5) for _ in expected]
    commands, intervals = _run(design, problem, tiling, len(expected), waits)
    assert commands == expected
    assert set(intervals) == {design.tile_interval_cycles}


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_a_number_too_large_for_its_field(dataflow: Any) -> None:
    layer = MatMul(name="huge", m=1, n=1, k=1 << 24)
    tiling = Tiling(pixel_rows=1, pixel_columns=1, filters=1, channels=1 << 24)
    design = Systolic(dataflow=dataflow)
    with pytest.raises(InputError, match=r"^huge: channels_full must be from 0 to 16777215 in a"):
        describe("huge", problem_of(layer), tiling, design.machine, (1, 0))
