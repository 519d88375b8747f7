"""Groups of more filters than a case has: their drain, and who says how many there are."""

from typing import Any

import pytest
from amaranth.sim import Simulator

from archsim.machines.scnn.design import Scnn
from rtl.core.scnn_control import GroupControl
from rtl.core.scnn_drain import DrainSequencer

DESIGN = Scnn(grid_rows=1, grid_columns=1, weight_lanes=2, ifmap_lanes=2, banks=4)


@pytest.mark.parametrize("filters", [1, 511, 512, 1023])
def test_a_drain_gives_out_every_filter(filters: int) -> None:
    """One output each, and a cycle to end its list."""
    unit = DrainSequencer(design=DESIGN)
    seen: list[int] = []
    layer = {"out_rows": 1, "out_pitch": 1, "window_rows": 1, "window_columns": 1}

    async def bench(ctx: Any) -> None:
        for name, value in layer.items():
            ctx.set(unit.layer[name], value)
        ctx.set(unit.filters, filters)
        ctx.set(unit.start, 1)
        await ctx.tick()
        ctx.set(unit.start, 0)
        for cycle in range(2 * filters):
            assert ctx.get(unit.ended) == (cycle == 2 * filters - 1)
            if ctx.get(unit.step.output):
                seen.append(int(ctx.get(unit.step.filter)))
            await ctx.tick()

    _simulate(unit, bench)
    assert seen == list(range(filters))


@pytest.mark.parametrize("filters", [1, 512, 1023])
def test_how_many_filters_a_group_has(filters: int) -> None:
    """The last group of a layer has fewer."""
    unit = GroupControl(design=DESIGN)

    async def bench(ctx: Any) -> None:
        ctx.set(unit.layer.filters, filters)
        ctx.set(unit.layer.filters_last, filters // 2)
        for groups, expected in ((2, filters), (1, filters // 2)):
            ctx.set(unit.layer.groups, groups)
            await ctx.tick()
            assert ctx.get(unit.filters) == expected

    _simulate(unit, bench)


def _simulate(unit: Any, bench: Any) -> None:
    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
