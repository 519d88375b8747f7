"""An AXI4-Lite slave: one write and one read of a register at a time."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

DATA_BITS = 32
OKAY, SLAVE_ERROR = 0, 2


def lite_ports(address_bits: int) -> dict[str, wiring.Member]:
    """The signals of an AXI4-Lite slave, in the names of AMBA AXI (ARM IHI 0022)."""
    return {
        "awaddr": In(address_bits), "awprot": In(3), "awvalid": In(1), "awready": Out(1),
        "wdata": In(DATA_BITS), "wstrb": In(DATA_BITS // 8), "wvalid": In(1), "wready": Out(1),
        "bresp": Out(2), "bvalid": Out(1), "bready": In(1),
        "araddr": In(address_bits), "arprot": In(3), "arvalid": In(1), "arready": Out(1),
        "rdata": Out(DATA_BITS), "rresp": Out(2), "rvalid": Out(1), "rready": In(1),
    }  # fmt: skip


class LiteSlave(wiring.Component):
    """A write: address and data in any order, then `write` for a cycle, then the response.

    A read: the address, then `read` for a cycle, in which `read_data` is taken.  Latency: the
    response of a read is there 2 cycles behind its address, that of a write 3 behind the last of
    address and data, and stays until it is taken; what is written is steady in the cycle before
    `write` too, so that its address can be decoded into registers.
    Throughput: a read every 3 cycles, a write every 4.  Back-pressure: ready falls behind each
    address and each data word until they are answered.

    Members
    -------
    those of AXI4-Lite; write, write_address, write_data, write_bytes: what is written, by bytes;
    read, read_address, read_data: what is read; write_error, read_error: in the cycle of `write`
    and `read`, that it is answered with SLVERR.
    """

    def __init__(self, *, address_bits: int) -> None:
        super().__init__(
            {
                **lite_ports(address_bits),
                "write": Out(1),
                "write_address": Out(address_bits),
                "write_data": Out(DATA_BITS),
                "write_bytes": Out(DATA_BITS // 8),
                "write_error": In(1),
                "read": Out(1),
                "read_address": Out(address_bits),
                "read_data": In(DATA_BITS),
                "read_error": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._write(m)
        self._read(m)
        return m

    def _write(self, m: Module) -> None:
        io: Any = self
        addressed, given, decoded = Signal(), Signal(), Signal()
        self.addressed, self.given, self.decoded = addressed, given, decoded
        m.d.comb += [
            io.awready.eq(~addressed),
            io.wready.eq(~given),
            io.write.eq(decoded & ~io.bvalid),
        ]
        m.d.sync += decoded.eq(addressed & given)
        with m.If(io.bready):
            m.d.sync += io.bvalid.eq(0)
        with m.If(io.awvalid & io.awready):
            m.d.sync += [addressed.eq(1), io.write_address.eq(io.awaddr)]
        with m.If(io.wvalid & io.wready):
            m.d.sync += [given.eq(1), io.write_data.eq(io.wdata), io.write_bytes.eq(io.wstrb)]
        with m.If(io.write):
            m.d.sync += [
                addressed.eq(0),
                given.eq(0),
                io.bvalid.eq(1),
                io.bresp.eq(Mux(io.write_error, SLAVE_ERROR, OKAY)),
            ]

    def _read(self, m: Module) -> None:
        io: Any = self
        asked = Signal()
        self.asked = asked
        m.d.comb += [io.arready.eq(~asked), io.read.eq(asked & ~io.rvalid)]
        with m.If(io.rready):
            m.d.sync += io.rvalid.eq(0)
        with m.If(io.arvalid & io.arready):
            m.d.sync += [asked.eq(1), io.read_address.eq(io.araddr)]
        with m.If(io.read):
            m.d.sync += [
                asked.eq(0),
                io.rvalid.eq(1),
                io.rdata.eq(io.read_data),
                io.rresp.eq(Mux(io.read_error, SLAVE_ERROR, OKAY)),
            ]
