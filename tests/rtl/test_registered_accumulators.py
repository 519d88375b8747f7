"""Accumulators with a register behind their memory, beside plain lists, cycle by cycle."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator
from faulty_module import faulty_module

from rtl.core import registered_accumulators

COLUMNS, BITS, DEPTH, CYCLES = 2, 7, 3, 200
Row = tuple[int, ...]


def differences(unit: Any, seed: int = 0) -> list[str]:
    """Of rows that come as often as they like: what is written when, counted, and read."""
    draw = np.random.default_rng(seed)
    tokens = [
        {
            "valid": int(draw.random() < 0.8),
            "half": int(draw.random() < 0.5 if cycle % 40 < 20 else cycle // 40 % 2),
            "overwrite": int(draw.random() < 0.2),
            "last": int(draw.random() < 0.1),
            "address": int(draw.integers(DEPTH)),
        }
        for cycle in range(CYCLES)
    ]
    sums = [tuple(int(one) for one in draw.integers(1 << BITS, size=COLUMNS)) for _ in tokens]
    reads = [(int(draw.integers(2)), int(draw.integers(DEPTH))) for _ in tokens]
    cells: dict[tuple[int, int], Row] = {}
    wanted: dict[int, Row] = {}
    found: list[str] = []
    made: Any = unit.RegisteredAccumulators(columns=COLUMNS, bits=BITS, depth=DEPTH)

    def added(cycle: int) -> tuple[int, int, int]:
        """What the row of this cycle's sums does: done, and both counts."""
        token = tokens[cycle - 2] if cycle >= 2 else {"valid": 0}
        if not token["valid"]:
            return 0, 0, 0
        at = token["half"], token["address"]
        before = (0,) * COLUMNS if token["overwrite"] else cells.get(at, (0,) * COLUMNS)
        both = zip(before, sums[cycle], strict=True)
        cells[at] = tuple((old + new) % (1 << BITS) for old, new in both)
        return token["last"], 1, 1 - token["overwrite"]

    async def bench(ctx: Any) -> None:
        for cycle, (token, row, (half, address)) in enumerate(
            zip(tokens, sums, reads, strict=True)
        ):
            ctx.set(made.token, token)
            ctx.set(made.sums, sum(one << BITS * n for n, one in enumerate(row)))
            ctx.set(made.read_half, half)
            ctx.set(made.read_address, address)
            seen = ctx.get(made.done), ctx.get(made.count_write), ctx.get(made.count_read)
            if seen != added(cycle):
                found.append(f"{cycle}: done, written, added to {seen}")
            under_way = [one for one in tokens[max(cycle - 1, 0) : cycle + 1] if one["valid"]]
            if all(one["half"] != half for one in under_way):
                wanted[cycle + 2] = cells.get((half, address), (0,) * COLUMNS)
            data = ctx.get(made.read_data)
            words = tuple(data >> BITS * n & (1 << BITS) - 1 for n in range(COLUMNS))
            if wanted.get(cycle, words) != words:
                found.append(f"{cycle}: {words} read, not {wanted[cycle]}")
            await ctx.tick()

    simulator = Simulator(made)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert len(wanted) > CYCLES / 8
    return found


@pytest.mark.parametrize("seed", range(2))
def test_rows_are_added_up(seed: int) -> None:
    assert differences(registered_accumulators, seed) == []


FAULTS = [
    ("reading.valid & (token.address", "(token.address"),
    ("(token.address == reading.address)", "1"),
    ("follows & (reading.half == half)", "follows"),
    ("Mux(forward, total, store.read_data)", "store.read_data"),
    ("Mux(adding.overwrite, 0, before)", "Mux(reading.overwrite, 0, before)"),
    ("Mux(selected[1]", "Mux(selected[0]"),
    ("adding.valid & adding.last", "reading.valid & reading.last"),
    ("transparent=True", "transparent=False"),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault: tuple[str, str], tmp_path: Path) -> None:
    unit = faulty_module(registered_accumulators, tmp_path, fault)
    assert differences(unit)
