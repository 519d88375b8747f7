"""Multipliers with registers of their own, which yosys does not find by itself on every family.

The emitted module `product` is the place for one (`rtl.core.product`).  On ECP5 its registers are
those of a MULT18X18D.  yosys 0.70 leaves a module unsynthesised that instantiates a cell of the
family with parameters, if it reads it as Verilog: it wants to make the module again once the cell
is known.  So the Verilog is made RTLIL first, which it takes as it stands (`read_passes`).
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["PRODUCT_FILE", "has_products", "product_verilog", "read_passes"]

PRODUCT_FILE = "product.v"

_ECP5 = """\
module product #(
  parameter BITS = 8,
  parameter REGISTERS = 2
) (
  input clk,
  input rst,
  input signed [BITS-1:0] a,
  input signed [BITS-1:0] b,
  output signed [2*BITS-1:0] o
);
  wire signed [17:0] left = a;
  wire signed [17:0] right = b;
  wire [35:0] found;
  assign o = found[2*BITS-1:0];
  generate
    if (REGISTERS == 2) begin : both
      MULT18X18D #(
        .REG_INPUTA_CLK("CLK0"), .REG_INPUTB_CLK("CLK0"), .REG_OUTPUT_CLK("CLK0")
      ) multiplier (
{ports}
      );
    end else begin : behind
      MULT18X18D #(.REG_OUTPUT_CLK("CLK0")) multiplier (
{ports}
      );
    end
  endgenerate
endmodule
"""


def has_products(verilog: str) -> bool:
    """Whether a text has multipliers with registers."""
    return "\nmodule product " in verilog


def product_verilog(family: str) -> str:
    """The module `product` of a family; empty where yosys finds the registers by itself."""
    if family != "ecp5":
        return ""
    ports = [".CLK0(clk)", ".CE0(1'b1)", ".RST0(rst)", ".SIGNEDA(1'b1)", ".SIGNEDB(1'b1)"]
    ports += [".SOURCEA(1'b0)", ".SOURCEB(1'b0)"]
    for at in range(18):
        ports += [f".A{at}(left[{at}])", f".B{at}(right[{at}])", f".C{at}(1'b0)"]
    ports += [f".P{at}(found[{at}])" for at in range(36)]
    lines = [", ".join(ports[at : at + 6]) for at in range(0, len(ports), 6)]
    return _ECP5.replace("{ports}", ",\n".join(f"        {line}" for line in lines))


def read_passes(files: Sequence[str], top: str, family: str) -> list[str]:
    """Passes of yosys that read Verilog, the file `PRODUCT_FILE` last where the family has one."""
    passes = [f"read_verilog {file}" for file in files]
    if product_verilog(family):
        passes += [f"read_verilog -overwrite {PRODUCT_FILE}", f"hierarchy -top {top}"]
        passes += ["proc", "write_rtlil read.il", "design -reset", "read_rtlil read.il"]
    return passes
