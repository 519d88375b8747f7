"""The gather unit: model and hardware agree word for word and cycle for cycle, under stalls."""

from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from archsim.errors import InputError
from archsim.gather import GatherList, GatherUnit
from rtl.core.gather import Gather

SIZES = [(1, 4, 3), (2, 3, 4), (3, 5, 3), (4, 8, 4), (5, 2, 2), (8, 8, 3), (16, 8, 2)]
"""Lanes, bits, depth."""


def _lists(unit: GatherUnit, random: np.random.Generator, count: int) -> list[GatherList]:
    found: list[GatherList] = []
    for number in range(count):
        units = int(random.integers(1, unit.depth * unit.lanes, endpoint=True))
        flags = random.random(units) < (0.1, 0.5, 0.9, 1.1)[number % 4]
        flags[random.integers(units)] = True
        found.append(GatherList(flags=flags, rows=int(random.integers(1, 4))))
    return found


def _packed(lanes: Any, bits: int) -> int:
    return sum(int(value) << (bits * at) for at, value in enumerate(lanes))


def _padded(values: np.ndarray, unit: GatherUnit) -> np.ndarray:
    width = unit.words(values.shape[-1]) * unit.lanes - values.shape[-1]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, width)])


class Case:
    """Lists with values of their rows, and stalls of every port."""

    def __init__(self, size: tuple[int, int, int], seed: int, stalls: float) -> None:
        lanes, bits, depth = size
        self.unit = GatherUnit(lanes=lanes, lane_bits=bits, depth=depth)
        random = np.random.default_rng(seed)
        self.lists = _lists(self.unit, random, 9)
        self.rows = [random.integers(0, 1 << bits, (one.rows, len(one.flags)))
                     for one in self.lists]  # fmt: skip
        self.ready = random.random(20_000) >= stalls
        self.gap = {port: random.geometric(1 - stalls / 2, 5_000) - 1
                    for port in ("command", "flags", "values")}  # fmt: skip

    def words(self) -> dict[str, list[int]]:
        unit, bits = self.unit, self.unit.lane_bits
        found: dict[str, list[int]] = {"command": [], "flags": [], "values": [], "gathered": []}
        for one, rows in zip(self.lists, self.rows, strict=True):
            words = unit.words(len(one.flags))
            found["command"].append(words | one.rows << unit.depth.bit_length())
            flags = _padded(one.flags[None], unit).reshape(words, -1)
            found["flags"] += [_packed(word, 1) for word in flags]
            dense = _padded(rows, unit).reshape(-1, unit.lanes)
            found["values"] += [_packed(word, bits) for word in dense]
            made = unit.gathered(one, rows).reshape(-1, unit.lanes)
            found["gathered"] += [_packed(word, bits) for word in made]
        return found


def _simulated(case: Case) -> tuple[dict[str, list[int]], list[int]]:
    """Cycles in which words cross each port, and the words that leave."""
    dut: Any = Gather(case.unit)
    words = case.words()
    ports = {"command": dut.command, "flags": dut.flags, "values": dut.i}
    crossed: dict[str, list[int]] = {"command": [], "flags": [], "values": [], "gathered": []}
    left: list[int] = []

    async def bench(ctx: Any) -> None:
        cycle, free = 0, dict.fromkeys(ports, 0)
        while len(left) < len(words["gathered"]) and cycle < len(case.ready):
            for name, port in ports.items():
                number = len(crossed[name])
                offered = number < len(words[name]) and bool(
                    cycle >= free[name] + case.gap[name][number]
                )
                ctx.set(port.valid, offered)
                if offered:
                    payload = port.payload
                    ctx.set(payload.as_value() if hasattr(payload, "as_value") else payload,
                            words[name][number])  # fmt: skip
            ctx.set(dut.o.ready, bool(case.ready[cycle]))
            for name, port in ports.items():
                if ctx.get(port.valid) and ctx.get(port.ready):
                    crossed[name].append(cycle)
                    free[name] = cycle + 1
            if ctx.get(dut.o.valid) and case.ready[cycle]:
                crossed["gathered"].append(cycle)
                left.append(ctx.get(dut.o.payload))
            await ctx.tick()
            cycle += 1

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return crossed, left


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("stalls", [0.0, 0.6])
def test_model_and_hardware_agree_under_stalls(size: tuple[int, int, int], stalls: float) -> None:
    case = Case(size, 5, stalls)
    crossed, left = _simulated(case)
    assert left == case.words()["gathered"]
    times = case.unit.times(
        case.lists,
        lambda port, word: int(case.gap[port][word]),
        lambda cycle: bool(case.ready[cycle]),
    )
    assert crossed == {"command": list(times.commands), "flags": list(times.flags),
                       "values": list(times.values), "gathered": list(times.gathered)}  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
def test_cycles_without_stalls_are_the_formula(size: tuple[int, int, int]) -> None:
    case = Case(size, 9, 0.0)
    times = case.unit.times(case.lists)
    ends = [*times.commands[1:], None]
    for one, begin, end in zip(case.lists, times.commands, ends, strict=True):
        if end is not None:
            assert end - begin == case.unit.cycles(one)


def test_a_row_that_spills_takes_a_cycle_more() -> None:
    unit = GatherUnit(lanes=4, lane_bits=8, depth=4)
    even = GatherList(flags=np.array([1, 1, 1, 0, 1, 0, 0, 0], bool), rows=3)
    spilt = GatherList(flags=np.array([1, 1, 1, 0, 1, 1, 0, 0], bool), rows=3)
    assert (unit.spills(even.flags), unit.spills(spilt.flags)) == (False, True)
    assert unit.cycles(spilt) - unit.cycles(even) == 3
    values = np.arange(1, 9)[None]
    assert unit.gathered(spilt, values).tolist() == [[[1, 2, 3, 5], [6, 0, 0, 0]]]


def test_its_hardware_is_priced() -> None:
    small, large = (GatherUnit(lanes=n, lane_bits=8, depth=41).components() for n in (16, 32))
    assert {one.name for one in small} == {one.name for one in large}
    assert {"gather.list", "gather.compact", "gather.held"} <= {one.name for one in small}


@pytest.mark.parametrize(
    ("flags", "rows", "error"),
    [
        ([0, 0], 1, "a list of 2 units must keep one of them at least"),
        ([1] * 9, 1, "a list must be of 1 to 8 units, not 9"),
        ([], 1, "a list must be of 1 to 8 units, not 0"),
        ([1], 0, "rows must be from 1 to 65535, not 0"),
    ],
)
def test_lists_that_cannot_be_are_refused(flags: list[int], rows: int, error: str) -> None:
    unit = GatherUnit(lanes=4, lane_bits=8, depth=2)
    with pytest.raises(InputError, match=error):
        unit.times([GatherList(flags=np.array(flags, bool), rows=rows)])
    with pytest.raises(InputError, match="lanes must be positive, not 0"):
        GatherUnit(lanes=0, lane_bits=8, depth=2)
