"""The one memory primitive of all designs: one read port, one write port, one clock."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from archsim.errors import require_within
from rtl.hierarchy import VerilogModule

COLLISIONS = "SRAM_COLLISIONS"
"""Defined for every simulation of ours: who says that nobody minds is given what is wrong."""

SOURCE = f"""\
// One write port, one read port, one clock: the place to put a memory macro.
// A word written in a cycle is read by an address of the next one; with TRANSPARENT also by an
// address of the same cycle, which else reads the word before.  With APART nobody minds what that
// reads, and a macro or a block RAM may give anything; with {COLLISIONS} defined a simulation
// gives what is wrong.
module sram #(
  parameter BITS = 8,
  parameter DEPTH = 2,
  parameter ADDRESS_BITS = 1,
  parameter TRANSPARENT = 0,
  /* verilator lint_off UNUSEDPARAM */
  parameter APART = 0
  /* verilator lint_on UNUSEDPARAM */
) (
  input clk,
  input write,
  input [ADDRESS_BITS-1:0] write_address,
  input [BITS-1:0] write_data,
  input [ADDRESS_BITS-1:0] read_address,
  output reg [BITS-1:0] read_data
);
  (* no_rw_check = APART != 0 *) // to yosys: no logic for it around a block RAM
  reg [BITS-1:0] words [0:DEPTH-1];
  always @(posedge clk) begin
    if (write) words[write_address] <= write_data;
    if (TRANSPARENT != 0 && write && write_address == read_address) read_data <= write_data;
`ifdef {COLLISIONS}
    else if (APART != 0 && write && write_address == read_address) read_data <= ~write_data;
`endif
    else read_data <= words[read_address];
  end
endmodule
"""


def address_bits(depth: int) -> int:
    """Bits of an address into `depth` words, at least 1."""
    return max((depth - 1).bit_length(), 1)


def halves_ports(*, bits: int, depth: int) -> dict[str, Any]:
    """Ports of two halves of `depth` words, one of which is written and one read."""
    address = address_bits(depth)
    return {
        "write": In(1),
        "write_half": In(1),
        "write_address": In(address),
        "write_data": In(bits),
        "read_half": In(1),
        "read_address": In(address),
        "read_data": Out(bits),
    }


def size_parameters(*, bits: int, depth: int) -> dict[str, int]:
    """Parameters of a memory's Verilog module; it has two words at least.

    Raises `InputError` for more words than simulators hold (`workloads.limits`).
    """
    require_within("rtl_words", **{"words of a memory in hardware": depth})
    return {"BITS": bits, "DEPTH": max(depth, 2), "ADDRESS_BITS": address_bits(depth)}


class Sram(wiring.Component):
    """read_data[t + 1] = words[read_address[t]].

    A word written in cycle t is read by an address of cycle t + 1, and with `transparent` also by
    one of cycle t, which else reads the word before; with `apart` nobody minds what it reads, so
    that a block RAM that gives anything then needs nothing around it.  In emitted Verilog every
    such memory is an instance of the module `sram`.
    """

    write: Signal
    write_address: Signal
    write_data: Signal
    read_address: Signal
    read_data: Signal

    @staticmethod
    def ports(*, bits: int, depth: int) -> wiring.Signature:
        """The ports; those of the Verilog module beside its clock."""
        address = address_bits(depth)
        return wiring.Signature(
            {
                "write": In(1),
                "write_address": In(address),
                "write_data": In(bits),
                "read_address": In(address),
                "read_data": Out(bits),
            }
        )

    @classmethod
    def verilog(
        cls, *, bits: int, depth: int, transparent: bool = False, apart: bool = False
    ) -> VerilogModule:
        """The Verilog module that stands for this component in emitted designs."""
        return VerilogModule(
            name="sram",
            source=SOURCE,
            signature=cls.ports(bits=bits, depth=depth),
            parameters={
                **size_parameters(bits=bits, depth=depth),
                "TRANSPARENT": int(transparent),
                "APART": int(apart),
            },
        )

    def __init__(
        self, *, bits: int, depth: int, transparent: bool = False, apart: bool = False
    ) -> None:
        self.bits = bits
        self.depth = depth
        self.transparent = transparent
        self.apart = apart
        super().__init__(self.ports(bits=bits, depth=depth))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        store = memory.Memory(shape=self.bits, depth=max(self.depth, 2), init=[])
        m.submodules.words = store
        write = store.write_port()
        read = store.read_port(transparent_for=(write,) if self.transparent else ())
        m.d.comb += [
            write.en.eq(self.write),
            write.addr.eq(self.write_address),
            write.data.eq(self.write_data),
            read.en.eq(1),
            read.addr.eq(self.read_address),
            self.read_data.eq(read.data),
        ]
        return m
