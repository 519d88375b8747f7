"""Cells of a family that yosys does not find by itself: for modules that designs leave a place in.

The emitted module `product` is the place for a multiplier with registers of its own
(`rtl.core.product`), `accumulator` that for an adder that begins anew (`rtl.core.accumulator`).  On
ECP5 the registers of a product are those of a MULT18X18D, and a sum's choice lies in the look-up
tables of its carry chain, where yosys would put one more before each bit.  On iCE40 a product of 8
bits and less is half of a SB_MAC16 with its registers, a cell of no family until `paired` makes one
of each two: of a SB_MAC16 with an adder behind it yosys' `ice40_dsp` would make another.  The
multiplier's registers are not reset there: a product that was under way at a reset comes out of
them up to two cycles later, and is of no sum that anybody waits for.

The module `lut_product` is to have no multiplier: its product is made of look-up tables before
yosys looks for those that may have one.

yosys 0.70 leaves a module unsynthesised that instantiates a cell of the family with parameters, if
it reads it as Verilog: it wants to make the module again once the cell is known.  So the Verilog is
made RTLIL first, which it takes as it stands (`read_passes`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from rtl.core.product import SOURCE

__all__ = [
    "CELLS_FILE",
    "own_verilog",
    "paired",
    "read_passes",
]

CELLS_FILE = "own_cells.v"

_PRODUCT = """\
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
"""

_ECP5 = (
    _PRODUCT
    + """\
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
)

_ICE40 = (
    _PRODUCT
    + """\
  generate
    if (A_BITS <= 8 && B_BITS <= 8) begin : half
      wire signed [7:0] left = a;
      wire signed [7:0] right = b;
      wire [15:0] found;
      assign o = found[A_BITS+B_BITS-1:0];
      if (REGISTERS == 2) begin : both
        half_of_a_mac_2 multiplier (.clk(clk), .a(left), .b(right), .o(found));
      end else begin : behind
        half_of_a_mac_1 multiplier (.clk(clk), .a(left), .b(right), .o(found));
      end
    end else begin : whole
      whole_product #(.A_BITS(A_BITS), .B_BITS(B_BITS), .REGISTERS(REGISTERS)) plain (
        .clk(clk), .rst(rst), .a(a), .b(b), .o(o)
      );
    end
  endgenerate
endmodule

(* blackbox *)
module half_of_a_mac_1 (input clk, input [7:0] a, input [7:0] b, output [15:0] o);
endmodule

(* blackbox *)
module half_of_a_mac_2 (input clk, input [7:0] a, input [7:0] b, output [15:0] o);
endmodule

"""
    + SOURCE.replace("module product ", "module whole_product ")
)

_HALVES = ("half_of_a_mac_1", "half_of_a_mac_2")
"""Products with one register, and with two."""

_LUT_PRODUCT = "\nmodule lut_product "


def has_own_cells(verilog: str) -> bool:
    """Whether a text has modules that stand for such cells."""
    return any(f"\nmodule {name} " in verilog for name in ("product", "accumulator"))


def own_verilog(family: str) -> str:
    """These modules as cells of a family; empty where yosys finds all that there is by itself."""
    if family == "ice40":
        return _ICE40
    if family != "ecp5":
        return ""
    ports = [".CLK0(clk)", ".CE0(1'b1)", ".RST0(rst)", ".SIGNEDA(1'b1)", ".SIGNEDB(1'b1)"]
    ports += [".SOURCEA(1'b0)", ".SOURCEB(1'b0)"]
    for at in range(18):
        ports += [f".A{at}(left[{at}])", f".B{at}(right[{at}])", f".C{at}(1'b0)"]
    ports += [f".P{at}(found[{at}])" for at in range(36)]
    lines = [", ".join(ports[at : at + 6]) for at in range(0, len(ports), 6)]
    return _ECP5.replace("{ports}", ",\n".join(f"        {line}" for line in lines))


def read_passes(files: Sequence[str], top: str, family: str, verilog: str) -> list[str]:
    """Passes of yosys that read Verilog, the file `CELLS_FILE` last where it is wanted.

    verilog: the text of which modules are cells of the family; empty where none are to be.
    """
    passes = [f"read_verilog {file}" for file in files]
    own = has_own_cells(verilog) and own_verilog(family) != ""
    if own:
        passes.append(f"read_verilog -overwrite {CELLS_FILE}")
    if own or _LUT_PRODUCT in verilog:
        passes += [f"hierarchy -top {top}", "proc"]
    if _LUT_PRODUCT in verilog:
        passes.append("booth A:use_dsp=no/t:$mul")
    if own:
        passes += ["write_rtlil read.il", "design -reset", "read_rtlil read.il"]
    return passes


def paired(netlist: dict[str, Any]) -> None:
    """Of a netlist of modules, as JSON has it: each two halves become a multiplier of an iCE40.

    Both have one clock and as many registers; neighbours by name are paired, and of one that is
    left the upper half is unused.
    """
    for name in _HALVES:
        netlist["modules"].pop(name, None)
    for module in netlist["modules"].values():
        _pair(module["cells"])


def _pair(cells: dict[str, Any]) -> None:
    halves = defaultdict[tuple[str, str], list[str]](list)
    for name in sorted(cells, key=_natural):
        kind, nets = cells[name]["type"], cells[name]["connections"]
        if kind in _HALVES:
            halves[kind, str(nets["clk"])].append(name)
    for (kind, _), names in halves.items():
        for first in range(0, len(names), 2):
            pair = [cells.pop(name) for name in names[first : first + 2]]
            nets = [one["connections"] for one in pair]
            cells[names[first]] = _multiplier(nets, inputs=str(_HALVES.index(kind)))


def _multiplier(halves: list[dict[str, Any]], *, inputs: str) -> dict[str, Any]:
    """A SB_MAC16 of one product or two, in its JSON; inputs: 1 with registers before them."""
    above = halves[1] if len(halves) > 1 else {"a": ["0"] * 8, "b": ["0"] * 8, "o": []}
    connections = {
        "CLK": halves[0]["clk"],
        "CE": ["1"],
        "A": halves[0]["a"] + above["a"],
        "B": halves[0]["b"] + above["b"],
        "C": ["0"] * 16,
        "D": ["0"] * 16,
        "O": halves[0]["o"] + above["o"],
        **{name: ["0"] for name in _QUIET},
    }
    return {
        "hide_name": 0,
        "type": "SB_MAC16",
        "parameters": {**_OF_TWO, "A_REG": inputs, "B_REG": inputs},
        "attributes": {},
        "port_directions": {name: "output" if name == "O" else "input" for name in connections},
        "connections": connections,
    }


_QUIET = (
    *("AHOLD", "BHOLD", "CHOLD", "DHOLD", "IRSTTOP", "IRSTBOT", "ORSTTOP", "ORSTBOT"),
    *("OLOADTOP", "OLOADBOT", "ADDSUBTOP", "ADDSUBBOT", "OHOLDTOP", "OHOLDBOT"),
    *("CI", "ACCUMCI", "SIGNEXTIN"),
)
"""Inputs that two products have no use for."""

_OF_TWO = {
    "MODE_8x8": "1",
    "A_SIGNED": "1",
    "B_SIGNED": "1",
    "TOP_8x8_MULT_REG": "1",
    "BOT_8x8_MULT_REG": "1",
    "TOPOUTPUT_SELECT": "10",
    "BOTOUTPUT_SELECT": "10",
}
"""Of two signed products of 8 bits with registers behind them (Lattice FPGA-TN-02007)."""


def _natural(name: str) -> list[tuple[int, str]]:
    """As people sort names with numbers."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
