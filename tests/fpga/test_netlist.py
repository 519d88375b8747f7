"""What yosys maps for an FPGA does what the model says: a whole core, simulated as its cells."""

import json
from pathlib import Path
from typing import Any

import pytest

from archsim.machines.systolic.design import DATAFLOWS, Systolic
from archsim.memory import Plain
from fpga.own_cells import CELLS_FILE, own_verilog, paired, read_passes
from rtl.benches.verilated import Verilated
from rtl.cases import random_case
from rtl.conformance import check
from rtl.emit import emit
from rtl.suite import assert_equal
from rtl.toolchain import run_yosys

SMALL = Plain(capacity_bytes=64)
SIZES: dict[str, Any] = {
    "ifmap_memory": SMALL,
    "weight_memory": SMALL,
    "accumulator_memory": SMALL,
    "bias_words": 4,
    "pipelined_control": True,
}
DESIGNS = [
    Systolic(
        rows=3, columns=1, product_registers=2, output_registers=2, dataflow=dataflow,
        lut_product_rows=1, **SIZES,
    )
    for dataflow in DATAFLOWS[:2]
]  # fmt: skip
SYNTHESIS = {
    "ecp5": "synth_ecp5 -top top -nowidelut -nobram",
    "ice40": "synth_ice40 -top top -device u -dsp -nobram",
    "gowin": "synth_gowin -top top -noiopads -nobram",
}
MODELS = {
    "ecp5": "+/lattice/cells_sim_ecp5.v",
    "ice40": "+/ice40/cells_sim.v",
    "gowin": "+/gowin/cells_sim.v",
}
USED = {
    "ecp5": ("LUT4", "CCU2C", "MULT18X18D"),
    "ice40": ("SB_LUT4", "SB_CARRY", "SB_MAC16"),
    "gowin": ("LUT4", "MUX2_LUT5", "ALU", "RAM16SDP4", "MULT9X9", "MULT18X18"),
}
"""Cells that have to be in a netlist, or it shows nothing of them."""
PORTS = ", ".join(f"A{n}, B{n}" for n in range(18)), ", ".join(f"P{n}" for n in range(36))
MULTIPLIER = f"""\
module MULT18X18D (input CLK0, CE0, RST0, SIGNEDA, SIGNEDB, {PORTS[0]}, output {PORTS[1]});
  parameter REG_INPUTA_CLK = "NONE";
  parameter REG_INPUTB_CLK = "NONE";
  parameter REG_OUTPUT_CLK = "NONE";
  wire signed [18:0] a = {{SIGNEDA & A17, {", ".join(f"A{n}" for n in reversed(range(18)))}}};
  wire signed [18:0] b = {{SIGNEDB & B17, {", ".join(f"B{n}" for n in reversed(range(18)))}}};
  reg signed [18:0] a_kept = 0, b_kept = 0;
  reg signed [37:0] p_kept = 0;
  wire signed [18:0] left = REG_INPUTA_CLK == "NONE" ? a : a_kept;
  wire signed [18:0] right = REG_INPUTB_CLK == "NONE" ? b : b_kept;
  wire signed [37:0] product = left * right;
  always @(posedge CLK0) begin
    a_kept <= RST0 ? 0 : a;
    b_kept <= RST0 ? 0 : b;
    p_kept <= RST0 ? 0 : product;
  end
  wire [37:0] p = REG_OUTPUT_CLK == "NONE" ? product : p_kept;
  assign {{{", ".join(f"P{n}" for n in reversed(range(36)))}}} = p[35:0];
endmodule
"""
GOWIN_MULTIPLIER = """\
module MULT{n}X{n} (
  input [{n}-1:0] A, B, SIA, SIB, input ASIGN, BSIGN, ASEL, BSEL, CE, CLK, RESET,
  output [2*{n}-1:0] DOUT
);
  wire signed [{n}:0] a = {{ASIGN & A[{n}-1], A}};
  wire signed [{n}:0] b = {{BSIGN & B[{n}-1], B}};
  wire signed [2*{n}+1:0] product = a * b;
  assign DOUT = product[2*{n}-1:0];
endmodule
"""
MULTIPLIERS = {
    "ecp5": MULTIPLIER,
    "ice40": "",
    "gowin": "".join(GOWIN_MULTIPLIER.format(n=bits) for bits in (9, 18, 36)),
}
"""What yosys has no model of."""


def simulated(family: str, verilog: str, folder: Path) -> str:
    """Verilog of the mapped netlist, every cell written out as yosys' models of it say."""
    (folder / "unit.v").write_text(verilog)
    (folder / CELLS_FILE).write_text(own_verilog(family))
    (folder / "multiplier.v").write_text(MULTIPLIERS[family])
    passes = read_passes(["unit.v"], "top", family, verilog)
    run_yosys([*passes, SYNTHESIS[family], "write_json mapped.json"], folder)
    netlist = json.loads((folder / "mapped.json").read_text())
    netlist["modules"] = {"top": netlist["modules"]["top"]}
    paired(netlist)
    (folder / "mapped.json").write_text(json.dumps(netlist))
    passes = [f"read_verilog -overwrite {MODELS[family]} multiplier.v", "read_json mapped.json"]
    passes += ["hierarchy -top top", "proc", "flatten", "opt_expr", "opt_clean -purge"]
    passes += ["write_verilog -noattr mapped.v"]
    run_yosys(passes, folder)
    return (folder / "mapped.v").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("family", SYNTHESIS)
@pytest.mark.parametrize("design", DESIGNS, ids=lambda one: one.dataflow)
def test_a_mapped_netlist_is_the_model(family: str, design: Systolic, tmp_path: Path) -> None:
    """Registers inside of multipliers, operands in look-up tables, sums in carry chains."""
    netlist = Verilated(simulated(family, emit(design).verilog, tmp_path))
    cells = json.loads((tmp_path / "mapped.json").read_text())["modules"]["top"]["cells"]
    assert set(USED[family]) <= {one["type"] for one in cells.values()}
    for number in range(6):
        assert_equal(check(random_case(5, number, design, longest_words=300), netlist.run))
