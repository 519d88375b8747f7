"""The output stage that compares a row ahead is the plain one, so many cycles later.

The plain one has as many registers before its arithmetic as the other has in it.
"""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator
from faulty_module import faulty_module

from rtl.core import pipelined_output
from rtl.core.one_more import one_more
from rtl.core.output_stage import OutputStage

CYCLES = 900
DEPTH, BIASES, BITS = 32, 4, 12
SHAPES: dict[str, dict[str, Any]] = {
    "rows of channels": {"columns": 3, "scalar_bias": False, "registers": 2},
    "words of a power of two": {"columns": 4, "scalar_bias": False, "registers": 1},
    "rows of one channel": {"columns": 1, "scalar_bias": False, "registers": 2},
    "rows of pixels": {"columns": 3, "scalar_bias": True, "registers": 1},
    "rows of a pixel": {"columns": 1, "scalar_bias": True, "registers": 2},
}
CONTROL = ("released", "bias_released", "read_half", "read_address", "count_read")


def tile_of(draw: Random, columns: int, scalar: bool) -> dict[str, int]:
    """Of an output tile whose rows fit the accumulators."""
    steps = draw.randint(1, BIASES)
    pixels = draw.randint(1, 3 * columns + 1 if scalar else 6)
    rows = -(-pixels // columns) * steps if scalar else pixels * steps
    return {
        "has_bias": draw.randint(0, 1), "relu": draw.randint(0, 1), "output_rows": rows,
        "pixels": pixels, "filter_steps": steps, "step_lanes": draw.randint(1, columns),
        "ends_layer": draw.random() < 0.3, "multiplier": draw.randint(1, 999),
        "shift": draw.randint(1, 12),
    }  # fmt: skip


def differs(module: Any, shape: dict[str, Any], seed: int = 5) -> str:
    """What differs first, in the cycle in which it does; the ofmap and the bias port at random."""
    draw = Random(seed)
    columns, scalar, registers = shape["columns"], shape["scalar_bias"], shape["registers"]
    sizes: dict[str, Any] = {
        "columns": columns, "scalar_bias": scalar, "accumulator_bits": BITS, "operand_bits": 4,
        "depths": (DEPTH, BIASES), "queue_depth": 4 + registers + draw.randint(0, 3),
    }  # fmt: skip
    plain = OutputStage(**sizes, read_registers=registers)
    pipelined = module.PipelinedOutputStage(**sizes, registers=registers)
    top = Module()
    top.submodules.plain, top.submodules.pipelined = plain, pipelined
    both: tuple[Any, Any] = plain, pipelined
    sums = draw.getrandbits(columns * BITS)
    found: list[str] = []
    crossed = 0

    async def bench(ctx: Any) -> None:
        nonlocal crossed
        given = {"summed": 0, "bias_loaded": 0}
        slow = True
        for cycle in range(CYCLES):
            slow = slow if draw.random() < 0.97 else not slow
            for name in given:  # at most two of what is done are not used yet
                given[name] += (fresh := given[name] < 2 and draw.random() < 0.3)
                for one in both:
                    ctx.set(getattr(one, name), fresh)
            tile = tile_of(draw, columns, scalar)
            offered, accepted = draw.random() < 0.8, draw.random() < (0.2 if slow else 0.95)
            bias = [draw.randrange(2), draw.randrange(BIASES), draw.getrandbits(BITS * columns)]
            for one in both:
                for name, value in tile.items():
                    ctx.set(one.command.payload[name], value)
                ctx.set(one.command.valid, offered)
                ctx.set(one.ofmap.ready, accepted)
                ctx.set(one.read_data, sums)
                if cycle < 60:
                    names = ("bias_write_half", "bias_write_address", "bias_write_data")
                    for name, value in zip(names, bias, strict=True):
                        ctx.set(getattr(one, name), value)
                ctx.set(one.bias_write, cycle < 60)
            seen = [_outputs(ctx, one) for one in both]
            unlike = [name for name in seen[0] if seen[0][name] != seen[1][name]]
            if unlike:
                found.append(f"cycle {cycle}: {', '.join(unlike)}")
                return
            given["summed"] -= seen[0]["released"]
            given["bias_loaded"] -= seen[0]["bias_released"]
            crossed += bool(seen[0]["ofmap.valid"]) and accepted
            await ctx.tick()

    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert found or crossed > 40
    return found[0] if found else ""


def _outputs(ctx: Any, stage: Any) -> dict[str, int]:
    valid = ctx.get(stage.ofmap.valid)
    return {
        "command.ready": ctx.get(stage.command.ready),
        "ofmap.valid": valid,
        "ofmap.payload": ctx.get(stage.ofmap.payload) if valid else 0,
        **{name: ctx.get(getattr(stage, name)) for name in CONTROL},
    }


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", SHAPES)
def test_every_output_in_every_cycle(name: str, seed: int) -> None:
    assert differs(pipelined_output, SHAPES[name], seed) == ""


FAULTS = {
    "a first row that is short": ("rows of channels", "fresh.output_rows <= fresh.pixels", "0"),
    "short rows a row late": (
        "rows of channels", "one_more(left, current.pixels)", "left == current.pixels",
    ),
    "short rows of the tile before": (
        "rows of channels", "packing.take, current.step_lanes, fresh.step_lanes",
        "packing.take, current.step_lanes, current.step_lanes",
    ),
    "no row taken for full": ("rows of channels", "packing.full.eq(~short)", "packing.full.eq(0)"),
    "every row taken for full": ("rows of pixels", "packing.full.eq(~short)", "packing.full.eq(1)"),
    "begins in any cycle": ("rows of channels", "packing.begins.eq(take)", "packing.begins.eq(1)"),
    "the block before": (
        "rows of pixels", "Mux(block_last, pixels - self.columns, pixels)", "pixels",
    ),
    "a short block a row late": ("rows of pixels", "< 2 * self.columns", "< self.columns"),
    "a short block of the tile before": (
        "rows of pixels", "short.eq(fresh.pixels < self.columns)", "short.eq(0)",
    ),
    "a turn of one row not seen": ("rows of channels", "last.eq(fresh == 1)", "last.eq(0)"),
    "a turn of one row seen once": ("rows of channels", "last, count == 1", "last, 0"),
    "a turn a row late": ("rows of channels", "left == 2", "left == 1"),
    "turns that are not begun anew": ("rows of pixels", "Mux(last, count, left - 1)", "left - 1"),
    "the multiplier of the row before": (
        "rows of channels", "return 2 - self.registers", "return 1",
    ),
    "the shift of the row before": (
        "rows of channels", "cycles=self.registers - 1", "cycles=self.registers",
    ),
    "the ReLU of the row before": (
        "rows of pixels", "cycles=self.registers)", "cycles=self.registers + 1)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen(fault: str, tmp_path: Path) -> None:
    name, said, instead = FAULTS[fault]
    module = faulty_module(pipelined_output, tmp_path, (said, instead))
    assert any(differs(module, SHAPES[name], seed) for seed in (1, 2))


def test_a_number_is_one_more_than_another() -> None:
    """All pairs of 5 bits; the highest number has none above it."""
    more, number, said = Signal(5), Signal(5), Signal()
    m = Module()
    m.d.comb += said.eq(one_more(more, number))

    async def bench(ctx: Any) -> None:
        for a in range(32):
            for b in range(32):
                ctx.set(more, a)
                ctx.set(number, b)
                assert ctx.get(said) == (a == b + 1)

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
