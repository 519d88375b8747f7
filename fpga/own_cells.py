"""Cells of a family that yosys does not find by itself: for modules that designs leave a place in.

The emitted module `product` is the place for a multiplier with registers of its own
(`rtl.core.product`), `accumulator` that for an adder that begins anew (`rtl.core.accumulator`).  On
ECP5 the registers of a product are those of a MULT18X18D, and a sum's choice lies in the look-up
tables of its carry chain, where yosys would put one more before each bit.

yosys 0.70 leaves a module unsynthesised that instantiates a cell of the family with parameters, if
it reads it as Verilog: it wants to make the module again once the cell is known.  So the Verilog is
made RTLIL first, which it takes as it stands (`read_passes`).
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["CELLS_FILE", "has_own_cells", "own_verilog", "read_passes"]

CELLS_FILE = "own_cells.v"

_ECP5 = """\
module product #(
  parameter A_BITS = 8,
  parameter B_BITS = 8,
  parameter REGISTERS = 2
) (
  input clk,
  input rst,
  input signed [A_BITS-1:0] a,
  input signed [B_BITS-1:0] b,
  output signed [A_BITS+B_BITS-1:0] o
);
  wire signed [17:0] left = a;
  wire signed [17:0] right = b;
  wire [35:0] found;
  assign o = found[A_BITS+B_BITS-1:0];
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

module accumulator #(
  parameter BITS = 32
) (
  input clk,
  input rst,
  input first,
  input signed [BITS-1:0] i,
  output reg signed [BITS-1:0] o
);
  localparam PAIRS = (BITS + 1) / 2;
  wire [2*PAIRS-1:0] start = o;
  wire [2*PAIRS-1:0] term = i;
  wire [2*PAIRS-1:0] sum;
  wire [PAIRS:0] carry;
  assign carry[0] = 1'b0;
  genvar at;
  generate
    for (at = 0; at < PAIRS; at = at + 1) begin : pair
      // A start, B term, C first, D 1: (C ? 0 : A) ^ B; of A and B, where that is 0, the carry: B
      CCU2C #(
        .INIT0(16'hC6CC), .INIT1(16'hC6CC), .INJECT1_0("NO"), .INJECT1_1("NO")
      ) adder (
        .CIN(carry[at]), .COUT(carry[at+1]), .S0(sum[2*at]), .S1(sum[2*at+1]),
        .A0(start[2*at]), .B0(term[2*at]), .C0(first), .D0(1'b1),
        .A1(start[2*at+1]), .B1(term[2*at+1]), .C1(first), .D1(1'b1)
      );
    end
  endgenerate
  initial o = 0;
  always @(posedge clk) o <= rst ? 0 : sum[BITS-1:0];
endmodule
"""


def has_own_cells(verilog: str) -> bool:
    """Whether a text has modules that stand for such cells."""
    return any(f"\nmodule {name} " in verilog for name in ("product", "accumulator"))


def own_verilog(family: str) -> str:
    """These modules as cells of a family; empty where yosys finds all that there is by itself."""
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
    """Passes of yosys that read Verilog, the file `CELLS_FILE` last where the family has one."""
    passes = [f"read_verilog {file}" for file in files]
    if own_verilog(family):
        passes += [f"read_verilog -overwrite {CELLS_FILE}", f"hierarchy -top {top}"]
        passes += ["proc", "write_rtlil read.il", "design -reset", "read_rtlil read.il"]
    return passes
