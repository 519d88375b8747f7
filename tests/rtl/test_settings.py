"""Registers of settings: one chain through all memories that take some."""

from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from amaranth.sim import Simulator

from archsim.machine.registry import load_design, with_settings
from rtl.core.memory import Settings
from rtl.core.settings import SETTINGS_PORTS, chain_bits, settings_chains
from rtl.registry import settings_in

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


KEY_BITS, DRAW_BITS = 32, 10
RATE_BITS = (1 << 24).bit_length()
"""Of the largest threshold, with which every cell fails."""


@pytest.mark.parametrize(
    ("settings", "bits"),
    [
        ("ifmap_memory.kind=faulty ifmap_memory.rate=0.01", {"ifmap": KEY_BITS + RATE_BITS}),
        ("ifmap_memory.kind=faulty ifmap_memory.rate=1 weight_memory.kind=faulty "
         "weight_memory.rate=0.01 weight_memory.persistent=0.5",
         {"ifmap": KEY_BITS + RATE_BITS, "weight": KEY_BITS + DRAW_BITS + 2 * RATE_BITS}),
    ],
)  # fmt: skip
def test_a_chain_is_as_long_as_what_memories_take(settings: str, bits: dict[str, int]) -> None:
    """Of each the key, a draw where cells fail sometimes, a threshold of each sort."""
    design: Any = with_settings(load_design("edge-16"), ["rows=2", "columns=2", *settings.split()])
    found = settings_in(design)
    assert {name: one.bits for name, one in found.items()} == bits
    assert len(chain_bits(found)) == sum(bits.values())
    rates = {name: one.init >> (bits[name] - RATE_BITS) for name, one in found.items()}
    assert rates["ifmap"] == round(design.ifmap_memory.rate * 2**24)
