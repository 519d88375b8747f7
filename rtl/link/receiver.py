"""Requests of a byte link: frames with their CRC, from bytes."""

from typing import Any

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import memory, stream, wiring
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.wiring import In, Out

from rtl.link.frames import PAYLOAD, REQUEST

LENGTH_BITS = 16


class Receiver(wiring.Component):
    """Takes bytes until a frame with its CRC is whole; then none before it is `released`.

    Bytes that are no such frame are passed over; a frame that stops for `patience` cycles is given
    up, so that the next one is heard.  Latency: `whole` rises 2 cycles behind the frame's last
    byte.  Throughput: a byte a cycle.

    Members
    -------
    i: bytes; whole: a frame is there; number, code, length: of it; released: it is no longer
    needed; address, data: a byte of its payload, one cycle after its address.
    """

    i: stream.Interface

    def __init__(self, *, patience: int) -> None:
        self.patience = patience
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "whole": Out(1),
                "number": Out(8),
                "code": Out(8),
                "length": Out(LENGTH_BITS),
                "released": In(1),
                "address": In(range(PAYLOAD)),
                "data": Out(8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        io: Any = self
        crc: Any = CRC32_ISO_HDLC(8).create()
        m.submodules.checksum = crc
        m.submodules.payload = payload = memory.Memory(shape=unsigned(8), depth=PAYLOAD, init=[])
        write, read = payload.write_port(), payload.read_port(domain="sync")
        at, idle = Signal(LENGTH_BITS), Signal(range(self.patience + 1))
        self.at, self.idle = at, idle
        crosses = io.i.valid & io.i.ready
        m.d.comb += [
            read.addr.eq(io.address),
            io.data.eq(read.data),
            write.addr.eq(at),
            write.data.eq(io.i.payload),
            crc.data.eq(io.i.payload),
            crc.valid.eq(crosses),
        ]
        m.d.sync += idle.eq(idle + 1)
        with m.If(crosses):
            m.d.sync += idle.eq(0)
        with m.FSM():
            with m.State("FIRST"):
                m.d.comb += [io.i.ready.eq(1), crc.valid.eq(0), crc.start.eq(1)]
                with m.If(crosses & (io.i.payload == REQUEST)):
                    m.next = "NUMBER"
            self._head(m, crosses)
            self._check(m)
            self._body(m, crosses, write.en, crc.match_detected)
        return m

    def _head(self, m: Module, crosses: Any) -> None:
        """States of what stands before the payload."""
        io: Any = self
        at, idle = self.at, self.idle
        for state, field, then in (
            ("NUMBER", io.number, "CODE"),
            ("CODE", io.code, "LOW"),
            ("LOW", io.length[:8], "HIGH"),
        ):
            with m.State(state):
                self._taken(m, crosses, field, then, idle)
        with m.State("HIGH"):
            self._taken(m, crosses, io.length[8:], "CHECK", idle)
            m.d.sync += at.eq(0)

    def _check(self, m: Module) -> None:
        """The state in which a length is looked at."""
        io: Any = self
        with m.State("CHECK"):
            with m.If(io.length > PAYLOAD):
                m.next = "FIRST"
            with m.Elif(io.length == 0):
                m.next = "CRC"
            with m.Else():
                m.next = "PAYLOAD"

    def _body(self, m: Module, crosses: Any, write: Any, matches: Any) -> None:
        """States of the payload and of what stands behind it."""
        io: Any = self
        at, idle = self.at, self.idle
        with m.State("PAYLOAD"):
            m.d.comb += write.eq(crosses)
            m.d.sync += at.eq(at + crosses)
            last = at == io.length - 1
            self._taken(m, crosses, None, "CRC", idle, last)
            with m.If(crosses & last):
                m.d.sync += at.eq(0)
        with m.State("CRC"):
            m.d.sync += at.eq(at + crosses)
            self._taken(m, crosses, None, "MATCH", idle, at == 3)
        with m.State("MATCH"):
            m.next = "FIRST"
            with m.If(matches):
                m.next = "WHOLE"
        with m.State("WHOLE"):
            m.d.comb += io.whole.eq(1)
            with m.If(io.released):
                m.next = "FIRST"

    def _taken(
        self, m: Module, crosses: Any, field: Any, then: str, idle: Signal, last: Any = True
    ) -> None:
        """Ready; at the last byte, or where none comes, the state changes."""
        io: Any = self
        m.d.comb += io.i.ready.eq(1)
        with m.If(crosses):
            if field is not None:
                m.d.sync += field.eq(io.i.payload)
            with m.If(last):
                m.next = then
        with m.Elif(idle == self.patience):
            m.next = "FIRST"
