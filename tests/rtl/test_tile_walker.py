"""The tile walker makes the commands of `archsim.tiled.walk`, every field, every ten cycles."""

import re
from dataclasses import replace
from typing import Any

import pytest

# The stubs leave rtlil out.
from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]
from amaranth.hdl import Module, Shape, Signal, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from systolic_designs import random_design

from archsim.errors import InputError
from archsim.files import scratch_folder
from archsim.layer.problem import Problem, Tiling, problem_of
from archsim.machine.registry import load_design, with_settings
from archsim.machines.systolic.design import DATAFLOWS, Systolic
from archsim.memory import Plain
from archsim.tiled import commands as cmd
from archsim.tiled.components import (
    PIPELINED_SEQUENCER_BITS,
    PIPELINED_WALKER_BITS,
    pipelining_bits,
)
from archsim.tiled.layer_command import describe
from archsim.tiled.walk import walk
from rtl.benches.verilated import Verilated
from rtl.cases import Draw, random_case
from rtl.conformance import check
from rtl.core.dispatcher import Dispatcher
from rtl.core.pipelined_sequencer import PipelinedSequencer
from rtl.core.pipelined_walker import (
    PipelinedTileWalker,
    partial_products,
    sum_of_partials,
)
from rtl.core.sequencer import Sequencer
from rtl.core.tile_walker import TileWalker
from rtl.emit import emit
from rtl.systolic import SystolicCore
from rtl.tile_cases import random_layer, random_tiling
from rtl.toolchain import run_yosys
from workloads.layers import Conv2d, MatMul
from workloads.operands import synthetic

SCALING = (40_000, 17)
PIPELINED = "pipelined_control=true"


def _expected(design: Systolic, problem: Problem, tiling: Tiling) -> list[dict[str, int]]:
    tiles = walk(problem.vector(), tiling.vector(), design.machine)[:, : len(cmd.COMMAND_FIELDS)]
    tiles[:, cmd.MULTIPLIER], tiles[:, cmd.SHIFT] = SCALING
    names = [field.name for field in cmd.COMMAND_FIELDS]
    return [dict(zip(names, map(int, row), strict=True)) for row in tiles]


def _run(
    kind: type[TileWalker],
    design: Systolic,
    problem: Problem,
    tiling: Tiling,
    waits: list[int],
) -> tuple[list[dict[str, int]], list[int]]:
    """Tile commands, and the cycles from when each could come to when it was offered."""
    moving = design.dataflow == "input_stationary"
    walker = kind(lanes=design.ifmap_lanes, blocks=moving)
    fields = describe("layer", problem, tiling, design.machine, SCALING)
    commands: list[dict[str, int]] = []
    intervals: list[int] = []

    async def bench(ctx: Any) -> None:
        for name, value in fields.items():
            ctx.set(walker.layer.payload[name], value)
        ctx.set(walker.layer.valid, 1)
        await ctx.tick()
        ctx.set(walker.layer.valid, 0)
        for wait in waits:
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
    for kind in (TileWalker, PipelinedTileWalker):
        commands, intervals = _run(kind, design, problem, tiling, waits)
        assert commands == expected
        assert set(intervals) == {design.tile_interval_cycles}


@pytest.mark.parametrize("kind", [TileWalker, PipelinedTileWalker])
def test_places_in_ifmaps_larger_than_any_case(kind: type[TileWalker]) -> None:
    """A window that begins 2^26 elements and more before its tile, in tiles of 2^25 and more."""
    layer = Conv2d(
        name="large", channels=1024, filters=1, ifmap_height=120, ifmap_width=512,
        kernel_height=201, kernel_width=1, pad_top=200, pad_bottom=200,
    )  # fmt: skip
    problem, design = problem_of(layer), Systolic(rows=4, columns=4)
    tiling = Tiling(pixel_rows=100, pixel_columns=512, filters=1, channels=1024)
    expected = _expected(design, problem, tiling)
    assert min(tile["address_start"] for tile in expected) < -(1 << 26)
    assert max(tile["image_step"] for tile in expected) >= 1 << 25
    commands, _ = _run(kind, design, problem, tiling, [0] * len(expected))
    assert commands == expected


class _Product(wiring.Component):
    """o = a · b modulo 2^bits, as the walker makes it."""

    a: Signal
    b: Signal
    o: Signal

    def __init__(self, *, a: Shape, bits: int) -> None:
        self.bits = bits
        super().__init__({"a": In(a), "b": In(26), "o": Out(bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.o.eq(sum_of_partials(partial_products(self.a, self.b, self.bits)))
        return m


@pytest.mark.parametrize(("shape", "bits"), [(signed(27), 30), (unsigned(8), 26), (signed(19), 30)])
def test_products_of_the_largest_factors(shape: Shape, bits: int) -> None:
    """Beside every power of two; layers that a test can walk have factors of a few bits."""
    product = _Product(a=shape, bits=bits)
    low = -(1 << (shape.width - 1)) if shape.signed else 0
    beside = sorted({(1 << at) + by for at in range(27) for by in (-1, 0, 1)})
    factors = [at for at in beside if at < low + (1 << shape.width)]
    factors += [-at for at in beside if -at >= low]

    async def bench(ctx: Any) -> None:
        for number, a in enumerate(factors):
            for b in beside[number % 3 :: 3]:
                if b < 1 << 26:
                    ctx.set(product.a, a)
                    ctx.set(product.b, b)
                    assert ctx.get(product.o) == (a * b) % (1 << bits), (a, b)

    simulator = Simulator(product)
    simulator.add_testbench(bench)
    simulator.run()


def _flip_flops(unit: wiring.Component) -> int:
    """In yosys' netlist."""
    counts: list[int] = []

    def watch(line: str) -> None:
        counts.extend(int(count) for count in re.findall(r"^(\d+) objects", line))

    with scratch_folder("archsim-walker") as folder:
        text = rtlil.convert(unit, name="top", emit_src=False)
        (folder / "top.il").write_text(text)
        passes = ["read_rtlil top.il", "proc", "opt -full", "simplemap", "opt -full"]
        run_yosys([*passes, "select -count t:$_*DFF*"], folder, watch)
    return counts[-1]


def test_flip_flops_that_pipelining_adds() -> None:
    """What the energy and area of such a core count."""
    walkers = (kind(lanes=8, blocks=False) for kind in (PipelinedTileWalker, TileWalker))
    pipelined, plain = map(_flip_flops, walkers)
    assert pipelined - plain == PIPELINED_WALKER_BITS
    for name, sequencers, ahead in (("edge-16", 2, 235), ("volta", 1, 228), ("vsq-16", 1, 228)):
        plain, pipelined = (
            next(one.attributes["state_bits"] for one in design.components if one.kind == "control")
            for design in (load_design(name), with_settings(load_design(name), [PIPELINED]))
        )
        added = PIPELINED_WALKER_BITS + PIPELINED_SEQUENCER_BITS * sequencers + ahead
        assert pipelined - plain == added


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_flip_flops_that_a_pipelined_core_adds(dataflow: Any) -> None:
    """Its walker, its sequencers, and what is compared ahead between them; and the first command of
    each queue, which lies in a memory without (that is not counted here).  Of two rows three bits
    of the window's bounds are those of others."""
    memory = Plain(capacity_bytes=256)
    memories: Any = {f"{name}_memory": memory for name in ("ifmap", "weight", "accumulator")}
    design = Systolic(rows=2, columns=2, bias_words=4, dataflow=dataflow, **memories)
    pipelined = replace(design, pipelined_control=True)
    plain, more = (_flip_flops(SystolicCore(one)) for one in (design, pipelined))
    queues = Dispatcher(queue_depth=4, decoupled=dataflow != "output_stationary").layouts
    heads = sum(layout.size for layout in queues.values())
    assert more - plain == pipelining_bits(pipelined) + heads - 3


@pytest.mark.parametrize("slots, block", [("run", None), ("filters", 2), (3, 3)])
def test_flip_flops_that_a_pipelined_sequencer_adds(slots: Any, block: int | None) -> None:
    shape: Any = {"rows": 3, "slots": slots, "steps": slots != "filters", "block": block}
    pipelined, plain = (_flip_flops(kind(**shape)) for kind in (PipelinedSequencer, Sequencer))
    assert pipelined - plain == PIPELINED_SEQUENCER_BITS


def test_a_core_with_a_pipelined_walker() -> None:
    """Equal to the model, which knows nothing of it."""
    memory = Plain(capacity_bytes=1024)
    memories: Any = {f"{name}_memory": memory for name in ("ifmap", "weight", "accumulator")}
    design = Systolic(rows=2, columns=3, bias_words=16, pipelined_control=True, **memories)
    emitted = emit(design).verilog
    assert "pipelined_tile_walker tile_walker" in emitted
    assert "pipelined_sequencer" in emitted
    core = Verilated(emitted)
    for number in range(12):
        verdict = check(random_case(27, number, design), core.run)
        assert verdict.equal, verdict.record()


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_a_number_too_large_for_its_field(dataflow: Any) -> None:
    layer = MatMul(name="huge", m=1, n=1, k=1 << 24)
    tiling = Tiling(pixel_rows=1, pixel_columns=1, filters=1, channels=1 << 24)
    design = Systolic(dataflow=dataflow)
    with pytest.raises(InputError, match=r"^huge: channels_full must be from 0 to 16777215 in a"):
        describe("huge", problem_of(layer), tiling, design.machine, (1, 0))
