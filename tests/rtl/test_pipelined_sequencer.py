"""The sequencer whose comparisons lie in registers walks as the plain one does, cycle for cycle."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator
from faulty_module import faulty_module

from rtl.core import pipelined_sequencer
from rtl.core.sequencer import Sequencer

CYCLES = 600
MOST = {"run_length": 7, "runs": 3, "taps": 3, "pixels": 5, "filter_steps": 3}
SHAPES: dict[str, dict[str, Any]] = {
    "weight-stationary, loads": {"rows": 3, "slots": "run", "steps": True, "block": None},
    "weight-stationary, loads of one row": {
        "rows": 1,
        "slots": "run",
        "steps": True,
        "block": None,
    },
    "weight-stationary, stream": {"rows": 2, "slots": "pixels", "steps": True, "block": None},
    "input-stationary, loads": {"rows": 3, "slots": 2, "steps": False, "block": 2},
    "input-stationary, stream": {"rows": 3, "slots": "filters", "steps": False, "block": 2},
    "output-stationary": {"rows": 3, "slots": 3, "steps": True, "block": 3},
    "one by one": {"rows": 1, "slots": 1, "steps": True, "block": 1},
    "blocks with empty slots": {"rows": 2, "slots": 4, "steps": True, "block": 2},
    "slots of a block": {"rows": 2, "slots": "block", "steps": True, "block": 2},
}
FLAGS = (
    *("first_fold", "first_slot", "last_slot", "chunk_last", "run_last", "tap_last", "block_last"),
    *("tile_last", "group_last", "elements", "slot", "slot_pixels", "slot_in_block", "slot_counts"),
)


def differs(module: Any, shape: dict[str, Any]) -> str:
    """What differs first of random tiles, where the first issue of a fold waits at random."""
    draw = Random(7)
    plain, pipelined = Sequencer(**shape), module.PipelinedSequencer(**shape)
    top = Module()
    top.submodules.plain, top.submodules.pipelined = plain, pipelined
    both: tuple[Any, Any] = plain, pipelined
    found: list[str] = []
    tiles = 0

    async def bench(ctx: Any) -> None:
        nonlocal tiles
        for cycle in range(CYCLES):
            tile = {name: draw.randint(1, most) for name, most in MOST.items()}
            valid, go = draw.random() < 0.7, draw.random() < 0.8
            for one in both:
                for name, value in tile.items():
                    ctx.set(one.command.payload[name], value)
                ctx.set(one.command.valid, valid)
                ctx.set(one.go, go)
            seen = [[ctx.get(one.command.ready), ctx.get(one.issue)] for one in both]
            walking = ctx.get(plain.issue) or ctx.get(plain.starting)
            names = ["command.ready", "issue"]
            if walking:
                names += FLAGS
                for one, values in zip(both, seen, strict=True):
                    values += [ctx.get(getattr(one, name)) for name in FLAGS]
            unlike = [n for n, a, b in zip(names, *seen, strict=True) if a != b]
            if unlike:
                found.append(f"cycle {cycle}: {', '.join(unlike)}")
                return
            tiles += valid and seen[0][0]
            await ctx.tick()

    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert found or tiles > 5
    return found[0] if found else ""


@pytest.mark.parametrize("name", SHAPES)
def test_every_flag_in_every_cycle(name: str) -> None:
    assert differs(pipelined_sequencer, SHAPES[name]) == ""


FAULTS = {
    "a chunk too many": ("weight-stationary, loads", "<= 2 * rows", "< 2 * rows"),
    "a run too many": ("weight-stationary, stream", "runs_left == 2", "runs_left == 1"),
    "a tap too few": ("output-stationary", "taps_left == 2", "taps_left == 3"),
    "a step too many": ("weight-stationary, loads", "steps_left == 2", "steps_left == 1"),
    "a block too many": ("input-stationary, stream", "2 * block", "block"),
    "inner loops not waited for": (
        "output-stationary", "inner = inner & values[name]", "inner = values[name]",
    ),
    "a slot too many": ("output-stationary", "slots - 2", "slots - 1"),
    "a slot of two too many": ("weight-stationary, stream", "slot[0] == slots[0]", "slot[0] == 0"),
    "slots of another pair": (
        "input-stationary, stream", "one_more(slots[1:], slot[1:])", "slots[1:] == slot[1:]",
    ),
    "the upper bits of a slot not looked at": (
        "weight-stationary, stream", "self.slot[: len(slots)]", "self.slot[: len(slots) // 12]",
    ),
    "one turn of the tile before": (
        "output-stationary", "one.eq(begun[name])", "one.eq(0)",
    ),
    "a chunk of one taken for more": ("weight-stationary, loads", "self.rows + 1", "self.rows"),
    "a block of one taken for more": ("slots of a block", "self.block + 1", "self.block"),
    "one slot of a tile not seen": (
        "weight-stationary, stream", "tile.pixels == 1", "tile.pixels == 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen(fault: str, tmp_path: Path) -> None:
    name, said, instead = FAULTS[fault]
    assert differs(faulty_module(pipelined_sequencer, tmp_path, (said, instead)), SHAPES[name])
