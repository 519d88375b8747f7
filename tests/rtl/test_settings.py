"""Registers of settings: one chain through all memories that take some."""

from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from amaranth.sim import Simulator

from rtl.core.memory import Settings
from rtl.core.settings import SETTINGS_PORTS, chain_bits, settings_chains

KINDS = {"ifmap": Settings(bits=5, init=0b10110), "weight": Settings(bits=3, init=0b101)}
OTHERS = {"ifmap": Settings(bits=5, init=0b01011), "weight": Settings(bits=3, init=0b110)}


class _Memory(wiring.Component):
    settings: Signal

    def __init__(self, bits: int) -> None:
        super().__init__({"settings": In(bits)})

    def elaborate(self, platform: object) -> Module:
        return Module()


class _Core(wiring.Component):
    settings_shift: Signal
    settings_in: Signal
    settings_out: Signal

    def __init__(self) -> None:
        self.memories = {name: _Memory(one.bits) for name, one in KINDS.items()}
        super().__init__(SETTINGS_PORTS)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for name, memory in self.memories.items():
            m.submodules[name] = memory
        settings_chains(m, self, KINDS, self.memories)
        return m


@pytest.mark.parametrize("pause", [0, 2])
def test_settings_are_there_behind_the_last_bit_and_stay(pause: int) -> None:
    """And what stood there before leaves, the first bit first."""
    core, left = _Core(), list[int]()

    async def bench(ctx: Any) -> None:
        def shown() -> list[int]:
            return [int(ctx.get(one.settings)) for one in core.memories.values()]

        assert shown() == [one.init for one in KINDS.values()]
        for bit in chain_bits(OTHERS):
            ctx.set(core.settings_in, bit)
            ctx.set(core.settings_shift, 1)
            left.append(int(ctx.get(core.settings_out)))
            await ctx.tick()
            ctx.set(core.settings_shift, 0)
            ctx.set(core.settings_in, 1 - bit)
            before = shown()
            for _ in range(pause):
                await ctx.tick()
            assert shown() == before
        assert shown() == [one.init for one in OTHERS.values()]

    simulator = Simulator(core)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert left == chain_bits(KINDS)
