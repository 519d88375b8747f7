"""The count of set bits: every one counted once, in as many cycles as stages."""

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from archsim.memories.boveda.population_count import count_stages
from rtl.core.population_count import PopulationCount

SIZES = (1, 2, 31, 32, 33, 100, 1024, 1025)


@pytest.mark.parametrize("bits", SIZES)
def test_each_count_leaves_in_its_cycle(bits: int) -> None:
    rng = random.Random(bits)
    full = (1 << bits) - 1
    words = [full, 0, 1, 1 << bits - 1, full, *(rng.randint(0, full) for _ in range(20))]
    latency = len(count_stages(bits))
    seen: list[int] = []

    async def bench(ctx: Any) -> None:
        for word in [*words, *[0] * latency]:
            ctx.set(dut.i, word)
            seen.append(ctx.get(dut.o))
            await ctx.tick()

    dut = PopulationCount(bits=bits)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert seen == [0] * latency + [word.bit_count() for word in words]


def test_stages_and_the_registers_in_them() -> None:
    assert [len(count_stages(bits)) for bits in SIZES] == [1, 2, 2, 2, 3, 3, 3, 4]
    assert count_stages(1) == ((1,),)
    assert count_stages(70)[1:] == ((32, 32, 6), (70,))
