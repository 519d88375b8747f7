"""Registers that say at run time what memories take as settings: one chain of bits.

The chain goes through the registers of all memories that take some, in the order of the data.  It
is the cheapest way in: two wires, no addresses; whoever sets one register shifts in all of them.
"""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.core.memory import Settings
from rtl.hierarchy import place

SETTINGS_PORTS = {"settings_shift": In(1), "settings_in": In(1), "settings_out": Out(1)}
"""Of a core with memories that take settings: a bit is taken in every cycle of settings_shift."""


class SettingsChain(wiring.Component):
    """o = the last bits that were shifted in, the first of them lowest; at reset, `init`.

    Latency: 1 cycle.  A layer that runs while bits are shifted sees whatever stands there.
    """

    shift: Signal
    i: Signal
    o: Signal
    last: Signal

    def __init__(self, *, bits: int, init: int) -> None:
        self.bits, self.init = bits, init
        super().__init__({"shift": In(1), "i": In(1), "o": Out(bits), "last": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        held = Signal(self.bits, init=self.init)
        with m.If(self.shift):
            m.d.sync += held.eq(Cat(held[1:], self.i))
        m.d.comb += [self.o.eq(held), self.last.eq(held[0])]
        return m


def settings_chains(
    m: Module, core: Any, settings: Mapping[str, Settings], units: Mapping[str, Any]
) -> None:
    """Place the registers of all that take settings, between the core's ports."""
    if not settings:
        return
    last = core.settings_in
    for name, one in settings.items():
        chain = place(m, f"{name}_settings", SettingsChain, bits=one.bits, init=one.init)
        m.d.comb += [
            chain.shift.eq(core.settings_shift),
            chain.i.eq(last),
            units[name].settings.eq(chain.o),
        ]
        last = chain.last
    m.d.comb += core.settings_out.eq(last)


def chain_bits(settings: Mapping[str, Settings]) -> list[int]:
    """What is shifted in, the first bit first, so that each memory's registers are its `init`."""
    return [
        one.init >> bit & 1 for one in reversed(list(settings.values())) for bit in range(one.bits)
    ]


__all__ = ["SETTINGS_PORTS", "SettingsChain", "chain_bits", "settings_chains"]
