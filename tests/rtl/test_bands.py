"""Arrays of many rows stand in bands, which are as the rows themselves."""

from typing import Any

import numpy as np
import pytest
from amaranth.lib import wiring
from amaranth.sim import Simulator

from rtl.core import grid
from rtl.core.accumulating_array import AccumulatingArray
from rtl.core.stationary_array import StationaryArray

SIZES: dict[str, int] = {"rows": 5, "columns": 2, "operand_bits": 4, "accumulator_bits": 9}
ARRAYS: list[tuple[type[wiring.Component], dict[str, Any]]] = [
    (StationaryArray, {"across": False}),
    (StationaryArray, {"across": True, "product_registers": 1}),
    (AccumulatingArray, {}),
    (AccumulatingArray, {"product_registers": 2}),
]


def sums_of(kind: type[wiring.Component], shape: dict[str, Any]) -> list[int]:
    """What leaves an array in 60 cycles of drawn bits at all of its inputs."""
    array: Any = kind(**SIZES, **shape)
    draw = np.random.default_rng(1)
    seen: list[int] = []

    async def bench(ctx: Any) -> None:
        for _ in range(60):
            for name, member in array.signature.members.items():
                if member.flow == wiring.In:
                    port = getattr(array, name)
                    ctx.set(port, int(draw.integers(1 << len(port))))
            seen.append(ctx.get(array.sums))
            await ctx.tick()

    simulator = Simulator(array)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return seen


@pytest.mark.parametrize(("kind", "shape"), ARRAYS)
def test_bands_are_as_their_rows(
    monkeypatch: pytest.MonkeyPatch, kind: type[wiring.Component], shape: dict[str, Any]
) -> None:
    """Two bands of two rows and one of one."""
    rows = sums_of(kind, shape)
    assert len(set(rows)) > 20
    monkeypatch.setattr(grid, "BAND", 2)
    assert sums_of(kind, shape) == rows
