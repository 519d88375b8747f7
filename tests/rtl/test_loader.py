"""The loader between a port and a scratchpad's halves."""

from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.core.loader import Loader


@pytest.mark.parametrize("bit", [0, 3, 22, 23])
def test_of_however_many_words_the_last_one_is_waited_for(bit: int) -> None:
    """A tile of 2^bit words, of which the first 16 come."""
    unit, words = Loader(word_bits=4, depth=32), 1 << bit
    written: list[int] = []

    async def bench(ctx: Any) -> None:
        ctx.set(unit.command.payload.words, words)
        ctx.set(unit.command.valid, 1)
        await ctx.tick()
        ctx.set(unit.command.valid, 0)
        for number in range(min(words, 16)):
            assert not ctx.get(unit.command.ready)
            ctx.set(unit.word.payload, number)
            ctx.set(unit.word.valid, 1)
            assert ctx.get(unit.loaded) == (number == words - 1)
            if ctx.get(unit.write):
                written.append(int(ctx.get(unit.write_address)))
            await ctx.tick()
        assert ctx.get(unit.command.ready) == (words <= 16)
        assert ctx.get(unit.write_half) == (words <= 16)

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert written == list(range(min(words, 16)))
