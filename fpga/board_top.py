"""The top of a board's design: the core behind its byte link, on the board's clock and wires."""

from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Elaboratable, Instance, Module, Signal
from amaranth.vendor import GowinPlatform

from rtl.link.uart import Uart

CORE = "core"
"""The emitted module."""


class BoardTop(Elaboratable):
    """verilog: of a core emitted with interface link, its top named `CORE`.

    divisor: of the board's clock, a power of two; baud: bits a second on the wire.
    """

    def __init__(self, verilog: str, *, clock_hz: float, divisor: int, baud: int) -> None:
        self.verilog, self.divisor = verilog, divisor
        self.clock_hz = clock_hz / divisor
        self.bit_cycles = round(self.clock_hz / baud)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        if platform.default_clk == "OSC":  # of the chip, which divides it itself
            platform.osc_frequency = round(self.clock_hz)
        elif self.divisor > 1:
            self._divided(m, platform)
        platform.add_file(f"{CORE}.v", self.verilog)
        uart: Any = Uart(divisor=self.bit_cycles)
        m.submodules.uart = uart
        pins = platform.request("uart")
        m.d.comb += [uart.rx.eq(pins.rx.i), pins.tx.o.eq(uart.tx)]
        reset = Signal(4, init=0xF)
        m.d.sync += reset.eq(reset >> 1)
        m.submodules.core = Instance(
            CORE,
            i_clk=ClockSignal(),
            i_rst=reset[0],
            i_rx__payload=uart.received.payload,
            i_rx__valid=uart.received.valid,
            o_rx__ready=uart.received.ready,
            o_tx__payload=uart.sent.payload,
            o_tx__valid=uart.sent.valid,
            i_tx__ready=uart.sent.ready,
        )
        return m

    def _divided(self, m: Module, platform: Any) -> None:
        """The domain sync at the divided clock."""
        fast = platform.request(platform.default_clk, dir="i").i
        m.domains.board = ClockDomain(reset_less=True, local=True)
        m.domains.sync = ClockDomain(reset_less=True)
        count = Signal(range(self.divisor))
        divided = Signal()
        m.d.comb += ClockSignal("board").eq(fast)
        m.d["board"] += count.eq(count + 1)
        m.d.comb += divided.eq(count[-1])
        if isinstance(platform, GowinPlatform):  # or the clock is a wire like others, in the fabric
            m.submodules.divided = Instance("BUFG", i_I=divided, o_O=ClockSignal("sync"))
        else:
            m.d.comb += ClockSignal("sync").eq(divided)
        platform.add_clock_constraint(divided, self.clock_hz)
