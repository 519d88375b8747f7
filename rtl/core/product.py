"""A product of a PE or of a part, with registers where an FPGA's multiplier has them.

Or one that is made of look-up tables, where a chip has fewer multipliers than products: attributes
say so to synthesis (`use_dsp` to Vivado, `multstyle` to Quartus, `fpga.own_cells` to yosys).
"""

from typing import Any

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.hierarchy import VerilogModule, place

SOURCE = """\
// o = a * b, REGISTERS cycles later: behind the product, and with two of them before it too.  The
// place to put a multiplier with registers of its own.
module product #(
  parameter A_BITS = 8,
  parameter B_BITS = 8,
  parameter REGISTERS = 2
) (
  input clk,
  input rst,
  input signed [A_BITS-1:0] a,
  input signed [B_BITS-1:0] b,
  output reg signed [A_BITS+B_BITS-1:0] o
);
  initial o = 0;
  generate
    if (REGISTERS == 2) begin : both
      reg signed [A_BITS-1:0] left = 0;
      reg signed [B_BITS-1:0] right = 0;
      always @(posedge clk) begin
        left <= rst ? 0 : a;
        right <= rst ? 0 : b;
        o <= rst ? 0 : left * right;
      end
    end else begin : behind
      always @(posedge clk) o <= rst ? 0 : a * b;
    end
  endgenerate
endmodule
"""

LUT_SOURCE = SOURCE.replace(
    "place to put a multiplier with registers of its own.\nmodule product",
    'same of look-up tables.\n(* use_dsp = "no", multstyle = "logic" *)\nmodule lut_product',
)


class Product(wiring.Component):
    """o[t + registers] = a[t] · b[t], of 1 or 2 registers; bits: of a and of b.

    Latency: `registers`.  Throughput: one product a cycle.  Never stalls.
    In emitted Verilog an instance of the module `product`, for which a flow may put a multiplier
    that has the registers inside (`fpga.own_cells`), or, of look-up tables (`in_luts`), of the
    module `lut_product`.
    """

    a: Signal
    b: Signal
    o: Signal

    @staticmethod
    def ports(*, bits: tuple[int, int]) -> wiring.Signature:
        """The ports; those of the Verilog module beside its clock."""
        a, b = bits
        return wiring.Signature({"a": In(signed(a)), "b": In(signed(b)), "o": Out(signed(a + b))})

    @classmethod
    def verilog(
        cls, *, bits: tuple[int, int], registers: int, in_luts: bool = False
    ) -> VerilogModule:
        """The Verilog module that stands for this component in emitted designs."""
        return VerilogModule(
            name="lut_product" if in_luts else "product",
            source=LUT_SOURCE if in_luts else SOURCE,
            signature=cls.ports(bits=bits),
            parameters={"A_BITS": bits[0], "B_BITS": bits[1], "REGISTERS": registers},
            resets=True,
        )

    def __init__(self, *, bits: tuple[int, int], registers: int, in_luts: bool = False) -> None:
        self.registers = registers
        super().__init__(self.ports(bits=bits))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        left: Any = self.a
        right: Any = self.b
        if self.registers == 2:
            left = Signal.like(self.a, name="left")
            right = Signal.like(self.b, name="right")
            m.d.sync += [left.eq(self.a), right.eq(self.b)]
        product = Signal.like(self.o, name="registered")
        m.d.sync += product.eq(left * right)
        m.d.comb += self.o.eq(product)
        return m


def product_of(
    m: Module, left: Any, right: Any, *, bits: int, registers: int, in_luts: bool = False
) -> Any:
    """left · right, both of so many bits, so many cycles later; without registers of whatever
    synthesis takes."""
    if not registers:
        return left * right
    sizes: dict[str, Any] = {"bits": (bits, bits), "registers": registers, "in_luts": in_luts}
    product = place(m, "product", Product, **sizes)
    m.d.comb += [product.a.eq(left), product.b.eq(right)]
    return product.o
