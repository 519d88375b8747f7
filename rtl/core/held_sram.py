"""A memory whose output keeps the word last read: `rtl.core.sram` with a read enable."""

from amaranth.hdl import Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In

from rtl.core.sram import Sram, size_parameters
from rtl.hierarchy import VerilogModule

SOURCE = """\
// One write port, one read port with an enable, one clock: the place to put a memory macro.
// A word written in a cycle is read by an address of the next one; where `read` is low the output
// stays.
module held_sram #(
  parameter BITS = 8,
  parameter DEPTH = 2,
  parameter ADDRESS_BITS = 1
) (
  input clk,
  input write,
  input [ADDRESS_BITS-1:0] write_address,
  input [BITS-1:0] write_data,
  input read,
  input [ADDRESS_BITS-1:0] read_address,
  output reg [BITS-1:0] read_data
);
  reg [BITS-1:0] words [0:DEPTH-1];
  always @(posedge clk) begin
    if (write) words[write_address] <= write_data;
    if (read) read_data <= words[read_address];
  end
endmodule
"""


class HeldSram(wiring.Component):
    """read_data[t + 1] = words[read_address[t]] if read[t], else read_data[t].

    A word written in cycle t is read by an address of cycle t + 1.  In emitted Verilog every such
    memory is an instance of the module `held_sram`.
    """

    write: Signal
    write_address: Signal
    write_data: Signal
    read: Signal
    read_address: Signal
    read_data: Signal

    @staticmethod
    def ports(*, bits: int, depth: int) -> wiring.Signature:
        """The ports; those of the Verilog module beside its clock."""
        return wiring.Signature({**Sram.ports(bits=bits, depth=depth).members, "read": In(1)})

    @classmethod
    def verilog(cls, *, bits: int, depth: int) -> VerilogModule:
        """The Verilog module that stands for this component in emitted designs."""
        return VerilogModule(
            name="held_sram",
            source=SOURCE,
            signature=cls.ports(bits=bits, depth=depth),
            parameters=size_parameters(bits=bits, depth=depth),
        )

    def __init__(self, *, bits: int, depth: int) -> None:
        self.bits = bits
        self.depth = depth
        super().__init__(self.ports(bits=bits, depth=depth))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        store = memory.Memory(shape=self.bits, depth=max(self.depth, 2), init=[])
        m.submodules.words = store
        write = store.write_port()
        read = store.read_port()
        m.d.comb += [
            write.en.eq(self.write),
            write.addr.eq(self.write_address),
            write.data.eq(self.write_data),
            read.en.eq(self.read),
            read.addr.eq(self.read_address),
            self.read_data.eq(read.data),
        ]
        return m
