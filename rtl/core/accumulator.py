"""The sum of a PE that holds it, which may begin anew with each term."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.hierarchy import VerilogModule

SOURCE = """\
// o <= (first ? 0 : o) + i.  The place to put an adder that has the choice inside.
module accumulator #(
  parameter BITS = 32
) (
  input clk,
  input rst,
  input first,
  input signed [BITS-1:0] i,
  output reg signed [BITS-1:0] o
);
  initial o = 0;
  wire signed [BITS-1:0] start = first ? 0 : o;
  always @(posedge clk) o <= rst ? 0 : start + i;
endmodule
"""


class Accumulator(wiring.Component):
    """o[t + 1] = (0 if first[t] else o[t]) + i[t], wrapping around at its width.

    Latency: 1 cycle.  Throughput: one term a cycle.  Never stalls.
    In emitted Verilog an instance of the module `accumulator`, for which a flow may put the adder
    of a family whose carry chain takes the choice along (`fpga.own_cells`).
    """

    first: Signal
    i: Signal
    o: Signal

    @staticmethod
    def ports(*, bits: int) -> wiring.Signature:
        """The ports; those of the Verilog module beside its clock."""
        total = signed(bits)
        return wiring.Signature({"first": In(1), "i": In(total), "o": Out(total)})

    @classmethod
    def verilog(cls, *, bits: int) -> VerilogModule:
        """The Verilog module that stands for this component in emitted designs."""
        return VerilogModule(
            name="accumulator",
            source=SOURCE,
            signature=cls.ports(bits=bits),
            parameters={"BITS": bits},
            resets=True,
        )

    def __init__(self, *, bits: int) -> None:
        super().__init__(self.ports(bits=bits))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        total = Signal.like(self.o, name="total")
        m.d.sync += total.eq(Mux(self.first, 0, total) + self.i)
        m.d.comb += self.o.eq(total)
        return m
