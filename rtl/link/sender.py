"""Answers of a byte link: frames with their CRC, as bytes."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import memory, stream, wiring
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.wiring import In, Out

from rtl.link.frames import ANSWER, PAYLOAD
from rtl.link.receiver import LENGTH_BITS

HEAD = 5
"""Bytes before the payload."""


class Sender(wiring.Component):
    """Gives a frame, of what lies in its payload, each time that it is `asked`.

    Throughput: a byte every 2 cycles.  The payload stays, so that the answer can be given again.

    Members
    -------
    o: bytes; asked: in a cycle without `busy`, begin; number, status, length: of the frame, steady
    while busy; write, address, data: a byte of the payload, while not busy.
    """

    o: stream.Interface

    def __init__(self) -> None:
        super().__init__(
            {
                "o": Out(stream.Signature(8)),
                "asked": In(1),
                "busy": Out(1),
                "number": In(8),
                "status": In(8),
                "length": In(LENGTH_BITS),
                "write": In(1),
                "address": In(range(PAYLOAD)),
                "data": In(8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        io: Any = self
        crc: Any = CRC32_ISO_HDLC(8).create()
        m.submodules.checksum = crc
        m.submodules.payload = payload = memory.Memory(shape=unsigned(8), depth=PAYLOAD, init=[])
        write, read = payload.write_port(), payload.read_port(domain="sync")
        at = Signal(LENGTH_BITS + 1)
        behind = Signal(LENGTH_BITS + 1)
        crosses = io.o.valid & io.o.ready
        m.d.comb += [
            write.en.eq(io.write),
            write.addr.eq(io.address),
            write.data.eq(io.data),
            read.addr.eq(at - HEAD),
            behind.eq(at - HEAD - io.length),
            crc.data.eq(io.o.payload),
        ]
        with m.Switch(at):
            for place, byte in enumerate(
                (ANSWER, io.number, io.status, io.length[:8], io.length[8:])
            ):
                with m.Case(place):
                    m.d.comb += io.o.payload.eq(byte)
            with m.Default():
                value = Mux(at < HEAD + io.length, read.data, crc.crc.word_select(behind[:2], 8))
                m.d.comb += io.o.payload.eq(value)
        self._walk(m, at, crosses, crc)
        return m

    def _walk(self, m: Module, at: Signal, crosses: Any, crc: Any) -> None:
        """The states: byte after byte, the first of them `at` 0."""
        io: Any = self
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += crc.start.eq(1)
                m.d.sync += at.eq(0)
                with m.If(io.asked):
                    m.next = "GIVE"
            with m.State("FETCH"):
                m.d.comb += io.busy.eq(1)
                m.next = "GIVE"
            with m.State("GIVE"):
                covered = (at > 0) & (at < HEAD + io.length)
                m.d.comb += [io.busy.eq(1), io.o.valid.eq(1), crc.valid.eq(crosses & covered)]
                with m.If(crosses):
                    m.d.sync += at.eq(at + 1)
                    m.next = "FETCH"
                    with m.If(at == HEAD + io.length + 3):
                        m.next = "IDLE"
