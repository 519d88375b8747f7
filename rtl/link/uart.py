"""Bytes on a wire: 8 bits, no parity, one stop bit."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out


class Uart(wiring.Component):
    """A byte is a start bit of 0, eight bits, the lowest first, and a stop bit of 1.

    divisor: cycles of a bit, 4 at least.  A byte that comes while the one before still waits is
    lost: the link's CRC finds out.

    Members
    -------
    rx, tx: the wires; received, sent: bytes from and to them.
    """

    received: stream.Interface
    sent: stream.Interface

    def __init__(self, *, divisor: int) -> None:
        self.divisor = divisor
        super().__init__(
            {
                "rx": In(1),
                "tx": Out(1),
                "received": Out(stream.Signature(8)),
                "sent": In(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._receive(m)
        self._send(m)
        return m

    def _receive(self, m: Module) -> None:
        io: Any = self
        wire = Signal(init=1)
        m.submodules += FFSynchronizer(io.rx, wire, init=1)
        timer, left, bits = Signal(range(2 * self.divisor)), Signal(range(10)), Signal(9)
        with m.If(io.received.ready):
            m.d.sync += io.received.valid.eq(0)
        with m.If(left == 0), m.If(~wire):  # into the middle of the first bit
            m.d.sync += [left.eq(9), timer.eq(self.divisor + self.divisor // 2 - 2)]
        with m.Elif(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Else():
            m.d.sync += [timer.eq(self.divisor - 1), left.eq(left - 1)]
            m.d.sync += bits.eq(Cat(bits[1:], wire))
            with m.If((left == 1) & wire & (~io.received.valid | io.received.ready)):
                m.d.sync += [io.received.payload.eq(bits[1:]), io.received.valid.eq(1)]

    def _send(self, m: Module) -> None:
        io: Any = self
        timer, left, bits = Signal(range(self.divisor)), Signal(range(11)), Signal(10, init=0x3FF)
        m.d.comb += [io.tx.eq(bits[0]), io.sent.ready.eq(left == 0)]
        with m.If(left == 0), m.If(io.sent.valid):
            m.d.sync += bits.eq(Cat(Const(0, 1), io.sent.payload, Const(1, 1)))
            m.d.sync += [left.eq(10), timer.eq(self.divisor - 1)]
        with m.Elif(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Else():
            m.d.sync += [
                timer.eq(self.divisor - 1),
                left.eq(left - 1),
                bits.eq((bits >> 1) | 0x200),
            ]
