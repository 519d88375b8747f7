"""Arrays of many rows stand in bands, which are as the rows themselves."""

import re
from typing import Any

import numpy as np
import pytest
from amaranth.lib import wiring
from amaranth.sim import Simulator
from component_verilog import verilog_of

from rtl.core import grid
from rtl.core.accumulating_array import AccumulatingArray
from rtl.core.stationary_array import StationaryArray

SIZES: dict[str, int] = {"rows": 5, "columns": 2, "operand_bits": 4, "accumulator_bits": 9}
ARRAYS: list[tuple[type[wiring.Component], dict[str, Any]]] = [
    (StationaryArray, {"across": False}),
    (StationaryArray, {"across": True, "product_registers": 1}),
    (AccumulatingArray, {}),
    (AccumulatingArray, {"product_registers": 2}),
    (AccumulatingArray, {"product_registers": 2, "lut_rows": 2}),
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


@pytest.mark.parametrize("kind", [StationaryArray, AccumulatingArray])
@pytest.mark.parametrize("lut_rows", range(6))
def test_the_last_rows_have_their_products_in_look_up_tables(
    monkeypatch: pytest.MonkeyPatch, kind: Any, lut_rows: int
) -> None:
    """In bands, too, of which one has both."""
    shape = {"across": False} if kind is StationaryArray else {}
    for band in (16, 2):
        monkeypatch.setattr(grid, "BAND", band)
        text = verilog_of(kind(**SIZES, **shape, product_registers=2, lut_rows=lut_rows))
        counts = [_instances(text, f"{name}product") for name in ("", "lut_")]
        assert counts == [(5 - lut_rows) * 2, lut_rows * 2]


def _instances(text: str, name: str, inside: str = "top") -> int:
    """Of a module, in all of another of emitted Verilog."""
    body = re.search(rf"^module {inside}\b.*?^endmodule", text, re.MULTILINE | re.DOTALL)
    assert body is not None
    kinds = re.findall(r"^  (\w+) (?:#\(|\\?\w+ \()", body[0], re.MULTILINE)
    modules = set(re.findall(r"^module (\w+)", text, re.MULTILINE))
    return sum(1 if one == name else _instances(text, name, one) for one in kinds if one in modules)
