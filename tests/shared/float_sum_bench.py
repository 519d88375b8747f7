"""Floating accumulators in RTL and as a plain loop: every output in every cycle."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from archsim.arithmetic.cases import random_operands
from archsim.arithmetic.float_datapath import VOLTA_RULES, FloatRules
from archsim.arithmetic.float_sum import accumulate_latency_cycles, add_floats, adder
from archsim.arithmetic.formats import FP32, FloatFormat
from archsim.numbers import IntArray
from rtl.core.float_accumulators import FloatAccumulators

NEAREST = FloatRules(rounding="nearest_even", aligned_fraction_bits=12)


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What the accumulators are made with."""

    columns: int = 2
    accumulator: FloatFormat = FP32
    rules: FloatRules = VOLTA_RULES
    depth: int = 5

    @property
    def latency(self) -> int:
        return accumulate_latency_cycles(adder(self.accumulator, self.rules))


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Tokens in their order and, for each, its cycle and its row of sums [n, columns]."""

    cycle: IntArray
    half: IntArray
    address: IntArray
    overwrite: IntArray
    last: IntArray
    sums: IntArray


def random_rows(sizes: Sizes, count: int, seed: int, gaps: int = 1) -> Rows:
    """Tokens for any rows, as close together as they may be; sums that meet what cancels them."""
    rng = np.random.default_rng(seed)
    unit = adder(sizes.accumulator, sizes.rules)
    made = random_operands(unit, count, seed)
    chosen = rng.integers(0, len(made.c), (count, sizes.columns))
    partner: dict[tuple[int, int], IntArray] = {}
    free: dict[tuple[int, int], int] = {}
    cycle, tokens, sums = 2, [], []
    for row in chosen:
        place_ = (int(rng.integers(0, 2)), int(rng.integers(0, sizes.depth)))
        cycle = max(cycle + int(rng.integers(0, gaps + 1)), free.get(place_, 0))
        overwrite = place_ not in partner or rng.random() < 0.4
        sums.append(made.c[row] if overwrite else made.a[partner[place_], 0])
        partner[place_] = row
        tokens.append((cycle, *place_, int(overwrite), int(rng.random() < 0.2)))
        free[place_] = cycle + sizes.latency
        cycle += 1
    names = ("cycle", "half", "address", "overwrite", "last")
    columns = np.array(tokens, np.int64).T
    return Rows(**dict(zip(names, columns, strict=True)), sums=np.array(sums, np.int64))


SHOWN = ("read_data", "done", "count_write", "count_read")


def wanted(sizes: Sizes, rows: Rows, reads: IntArray) -> dict[str, IntArray]:
    """Every output in every cycle; read_data is -1 where a token's read goes before."""
    unit, cycles = adder(sizes.accumulator, sizes.rules), len(reads)
    memory = np.zeros((2, sizes.depth, sizes.columns), np.int64)
    shown = {name: np.zeros(cycles, np.int64) for name in SHOWN[1:]}
    data = np.zeros((cycles, sizes.columns), np.int64)
    tokens = {int(cycle): n for n, cycle in enumerate(rows.cycle)}
    for cycle in range(cycles):
        n = tokens.get(cycle - sizes.latency)
        if n is not None:
            at = rows.half[n], rows.address[n]
            over = rows.overwrite[n]
            memory[at] = rows.sums[n] if over else add_floats(unit, memory[at], rows.sums[n])
            shown["done"][cycle] = rows.last[n]
            shown["count_write"][cycle] = 1
            shown["count_read"][cycle] = not over
        if cycle + 1 < cycles:
            half, address = reads[cycle]
            taken = tokens.get(cycle)
            busy = taken is not None and rows.half[taken] == half
            data[cycle + 1] = -1 if busy else memory[half, address]
    return {"read_data": data, **shown}


def shown(sizes: Sizes, rows: Rows, reads: IntArray) -> dict[str, IntArray]:
    """What the RTL shows, while inputs that do not matter are all ones."""
    unit = FloatAccumulators(
        columns=sizes.columns, accumulator=sizes.accumulator, rules=sizes.rules, depth=sizes.depth
    )
    seen: dict[str, list[int]] = {name: [] for name in SHOWN}
    tokens = {int(cycle): n for n, cycle in enumerate(rows.cycle)}
    names = ("half", "address", "overwrite", "last")

    async def bench(context: Any) -> None:
        for cycle, (half, address) in enumerate(reads.tolist()):
            n, before = tokens.get(cycle), tokens.get(cycle - 1)
            context.set(unit.token.valid, n is not None)
            for name in names:
                field = getattr(unit.token, name)
                ones = (1 << len(field)) - 1
                context.set(field, ones if n is None else int(getattr(rows, name)[n]))
            word = -1 if before is None else packed(rows.sums[before], sizes.accumulator.bits)
            context.set(unit.sums, word)
            context.set(unit.read_half, half)
            context.set(unit.read_address, address)
            for name in SHOWN:
                seen[name].append(context.get(getattr(unit, name)))
            await context.tick()

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    mask, bits = (1 << sizes.accumulator.bits) - 1, sizes.accumulator.bits
    data = [[word >> bits * n & mask for n in range(sizes.columns)] for word in seen["read_data"]]
    return {name: np.array(data if name == "read_data" else seen[name]) for name in SHOWN}


def packed(lanes: IntArray, bits: int) -> int:
    return sum(int(lane) << bits * n for n, lane in enumerate(lanes))


def differences(sizes: Sizes, rows: Rows, seed: int = 0) -> list[str]:
    """The outputs that are not what the model says in some cycle, reading rows at random."""
    rng = np.random.default_rng(seed)
    cycles = int(rows.cycle[-1]) + sizes.latency + 4 * sizes.depth
    reads = np.stack([rng.integers(0, 2, cycles), rng.integers(0, sizes.depth, cycles)], axis=1)
    every = np.stack(np.divmod(np.arange(2 * sizes.depth), sizes.depth), axis=1)
    reads[-2 * sizes.depth :] = every
    model, ours = wanted(sizes, rows, reads), shown(sizes, rows, reads)
    ours["read_data"] = np.where(model["read_data"] < 0, -1, ours["read_data"])
    ours["read_data"][0] = 0
    return [name for name in SHOWN if not np.array_equal(model[name], ours[name])]


def held_late(m: Module, before: Any) -> Any:
    """The same a cycle later."""
    late = Signal(len(before))
    m.d.sync += late.eq(before)
    return late


def with_rules(**changes: Any) -> Callable[[Any], Any]:
    """A change of a unit: other rules."""
    return lambda design: replace(design, rules=replace(design.rules, **changes))
