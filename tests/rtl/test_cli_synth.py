"""`archsim synth` as a user meets it."""

import csv
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from command_line import Call, good, refused

from rtl.synthesis import synthesize as flow
from rtl.synthesis.liberty import DEFAULT_LIBRARY
from rtl.synthesis.result import Synthesis
from rtl.synthesis.tables import closing

pytestmark = pytest.mark.skipif(
    not DEFAULT_LIBRARY.is_file(), reason="no cell library: apt-get install qflow-tech-osu018"
)

LITTLE = """
module part(input clk, input [3:0] i, output reg [3:0] o);
  always @(posedge clk) o <= ~i;
endmodule
module sram #(parameter BITS = 8, parameter DEPTH = 2, parameter ADDRESS_BITS = 1)
  (input clk, input write, input [ADDRESS_BITS-1:0] write_address, input [BITS-1:0] write_data,
  input [ADDRESS_BITS-1:0] read_address, output [BITS-1:0] read_data);
endmodule
module top(input clk, input rst, input [3:0] i, output [3:0] o, output [3:0] p);
  wire [3:0] word;
  part part_0(.clk(clk), .i(i), .o(o));
  part part_1(.clk(clk), .i(word), .o(p));
  sram #(.BITS(4), .DEPTH(16), .ADDRESS_BITS(4)) store(.clk(clk), .write(1'b0),
    .write_address(i), .write_data(i), .read_address(i), .read_data(word));
endmodule
"""


@pytest.fixture(autouse=True)
def emits_little(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Designs that emit two parts and a memory, and a cache of one's own."""

    @dataclass
    class Emitted:
        verilog: str = LITTLE

    monkeypatch.setattr(flow, "emit", lambda design, top: Emitted())
    monkeypatch.setenv("ARCHSIM_CACHE_DIR", str(tmp_path / "cache"))


def test_tables(archsim: Call) -> None:
    said = good(archsim("synth", "edge-16"))
    assert said.startswith("edge-16 on osu018_stdcells (180 nm, 1.8 V)\n")
    assert re.search(r"kGE without memories: 16 cells, 8 flip-flops, leakage \S+ mW\n", said)
    rows = [line.split() for line in said.splitlines()]
    assert ["top", "1", "896", "0.0", "100.0", "8"] in rows
    assert ["part_*", "2", "448", "0.0", "100.0", "8"] in rows
    assert ["registers", "768", "0.0", "85.7", "8"] in rows
    assert ["control", "and", "other", "128", "0.0", "14.3"] in rows
    assert ["top/store", "1", "16", "×", "4", "0.1"] in rows
    assert "Relative figures: cells alone, no wires" in said


def test_depth(archsim: Call) -> None:
    assert "part_*" not in archsim("synth", "edge-16", "--depth", 0).out
    said = refused(archsim("synth", "edge-16", "--depth", -1))
    assert said == "--depth must not be negative, not -1"


def test_json_and_files(archsim: Call, tmp_path: Path) -> None:
    said = archsim("synth", "edge-16", "--json", "-o", "out")
    assert (said.code, said.err) == (0, "out: synthesis.json, netlist.v, area.csv\n")
    assert said.out == (tmp_path / "out" / "synthesis.json").read_text()
    synthesis = Synthesis.from_record(json.loads(said.out))
    assert synthesis.design_name == "edge-16"
    netlist = (tmp_path / "out" / "netlist.v").read_text()
    assert len(re.findall(r"^  DFFPOSX1 ", netlist, re.MULTILINE)) == 4
    rows = list(csv.DictReader((tmp_path / "out" / "area.csv").open()))
    assert [(row["path"], row["count"], row["area_um2"]) for row in rows] == [
        ("top", "1", "896.0"),
        ("part_*", "2", "448.0"),
    ]
    said = refused(archsim("synth", "edge-16", "-o", "out"))
    assert said == "out exists; give a name that does not, or say --force"


def test_no_cache(archsim: Call, tmp_path: Path) -> None:
    archsim("synth", "edge-16", "--no-cache")
    assert not (tmp_path / "cache").exists()


def test_untimed(archsim: Call) -> None:
    """What is said where OpenSTA is missing."""
    synthesis = Synthesis.from_record(json.loads(archsim("synth", "edge-16", "--json").out))
    note = "OpenSTA is not installed (apt-get install opensta)"
    text = closing(replace(synthesis, critical_path=None, timing_note=note))
    assert text.startswith(f"critical path: not measured, {note}\n")


def test_refusals(archsim: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    said = refused(archsim("synth", "edge-16", "--liberty", "none.lib"))
    assert said == "no Liberty library at none.lib"
    Path("noise.lib").write_text("noise {")
    said = refused(archsim("synth", "edge-16", "--liberty", "noise.lib"))
    assert said.startswith("noise.lib is not a Liberty library: ")
    assert archsim("synth", "edge-16", "--target", "moon").code == 2
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = refused(archsim("synth", "edge-16"))
    assert said == "pyosys is missing; install it with: pip install pyosys"
