"""Designs on standard cells: areas that add up, cells that compute the same, and timed paths."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cell_libraries import ANDS, edited_library, needs_library, timed
from component_verilog import verilog_of
from hypothesis import given
from hypothesis import strategies as st

from archsim.errors import InputError
from archsim.machines.systolic.design import DATAFLOWS, Dataflow
from energy_models.errors import EnergyError
from rtl.core.accumulating_array import AccumulatingArray
from rtl.core.stationary_array import StationaryArray
from rtl.synthesis.area import BUFFERS, CONTROL, Area, Memory, modules_of
from rtl.synthesis.buffers import FANOUT, add_buffers
from rtl.synthesis.cell_models import verilog_models
from rtl.synthesis.cells import Buffer, roles_of
from rtl.synthesis.liberty import DEFAULT_LIBRARY, CellLibrary, read_library
from rtl.synthesis.result import LibraryFacts, Synthesis, label_of
from rtl.synthesis.timing import critical_path
from rtl.synthesis.yosys import Mapped, map_to_cells, write_netlist
from rtl.toolchain import run_yosys, yosys_check

pytestmark = needs_library


@dataclass
class Made:
    """A mapped design, and where its files are."""

    mapped: Mapped
    netlist: str
    synthesis: Synthesis
    folder: Path


Make = Callable[..., Made]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Map Verilog whose top module is `top`."""

    def build(verilog: str, library: Path = DEFAULT_LIBRARY) -> Made:
        cells = read_library(library)
        roles = roles_of(cells)
        mapped = map_to_cells(verilog, cells, tmp_path)
        assert roles.buffer is not None
        add_buffers(mapped.whole["modules"], cells, roles.buffer, "top")
        synthesis = Synthesis(
            target="cells",
            design_name="a test",
            design={},
            top="top",
            modules=modules_of(mapped, cells, "top"),
            library=LibraryFacts(
                name=cells.name,
                file=library.name,
                digest=cells.digest,
                node_nm=cells.node_nm,
                voltage_v=cells.voltage_v,
                gate_area_um2=roles.gate_area_um2,
            ),
            critical_path=None,
            timing_note="a test",
            tools={},
            options={"fanout": FANOUT},
        )
        return Made(mapped, write_netlist(mapped.whole, tmp_path), synthesis, tmp_path)

    return build


def array(dataflow: Dataflow, rows: int, columns: int, *, bits: int = 4) -> str:
    """An array alone, its modules shared as in an emitted design."""
    sizes = {"rows": rows, "columns": columns, "operand_bits": bits, "accumulator_bits": 3 * bits}
    component = (
        AccumulatingArray(**sizes)
        if dataflow == "output_stationary"
        else StationaryArray(**sizes, across=dataflow == "input_stationary")
    )
    return verilog_of(component)


def without_cells(names: str) -> Callable[[str], str]:
    """An edit that drops the cells whose names match."""
    return lambda text: re.sub(rf"\ncell \((?:{names})\) .*?\n}}\n", "\n", text, flags=re.DOTALL)


@cache
def read_osu() -> CellLibrary:
    """The default library, read once."""
    return read_library()


def cells_in(netlist: str) -> list[str]:
    """The library's cells in structural Verilog, one entry an instance."""
    return re.findall(r"^  ([A-Z][A-Z0-9]+) ", netlist, re.MULTILINE)


def test_cells_counted_by_hand(make: Make) -> None:
    made = make(ANDS)
    total = made.synthesis.total
    assert sorted(cells_in(made.netlist)) == ["AND2X1"] * 4 + ["DFFPOSX1"] * 12
    assert (total.cells, total.flip_flops) == (16, 12)
    assert total.area_um2 == 4 * 32 + 12 * 96
    assert made.synthesis.kge(total) == total.area_um2 / 24 / 1000
    classes = made.synthesis.classes
    assert {name: area.area_um2 for name, area in classes.items()} == {
        "registers": 12 * 96,
        CONTROL: 4 * 32,
    }
    assert made.synthesis.splitting_cost == 0


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_areas_add_up_to_what_yosys_says(make: Make, dataflow: Dataflow) -> None:
    """The tree, the total, and yosys' own statistics of the file that is written."""
    made = make(array(dataflow, 2, 3))
    synthesis = made.synthesis
    branches = list(synthesis.branches())
    assert sum(branch.count * branch.own.area_um2 for branch in branches) == pytest.approx(
        synthesis.total.area_um2
    )
    (pe,) = {branch.module for branch in branches if branch.label == "pe_*"}
    assert synthesis.counts[pe] == 6
    measure = "tee -q -o stat.json stat -json -liberty library.lib -top top"
    run_yosys(["read_verilog netlist.v", "hierarchy -top top", measure], made.folder)
    stated: dict[str, Any] = json.loads((made.folder / "stat.json").read_text())
    assert stated["design"]["area"] == pytest.approx(synthesis.total.area_um2)
    assert stated["modules"]["\\" + pe]["area"] == pytest.approx(synthesis.area_of(pe).area_um2)


def test_netlist_is_sound(make: Make) -> None:
    made = make(array("weight_stationary", 2, 2))
    models = verilog_models(read_osu().cells[name] for name in set(cells_in(made.netlist)))
    assert yosys_check(made.netlist + models) == []


def test_flip_flops_of_a_pe_by_hand(make: Make) -> None:
    """Two held operands, one moving and one passing, a bank bit, two tokens of two, the sum."""
    made = make(array("weight_stationary", 1, 1))
    pe = made.synthesis.modules["stationary_pe"]
    assert pe.own.flip_flops == 4 * 4 + 1 + 2 * 2 + 12
    assert set(pe.classes) >= {"multipliers", "adders", "multiplexers", "registers", CONTROL}
    assert pe.classes["registers"].flip_flops == pe.own.flip_flops
    assert sum(area.flip_flops for area in pe.classes.values()) == pe.own.flip_flops
    apart = sum(area.area_um2 for area in pe.classes.values())
    assert 0.9 < apart / pe.own.area_um2 < 1.3


def test_twice_the_columns(make: Make) -> None:
    narrow = make(array("weight_stationary", 2, 2)).synthesis
    wide = make(array("weight_stationary", 2, 4)).synthesis
    assert wide.counts["stationary_pe"] == 2 * narrow.counts["stationary_pe"] == 8
    assert wide.area_of("stationary_pe") == narrow.area_of("stationary_pe")


def test_area_is_the_librarys(make: Make, tmp_path: Path) -> None:
    """A flip-flop twice as large: every one of them costs that much more."""

    def doubled(text: str) -> str:
        return text.replace("cell (DFFPOSX1) {\narea : 96;", "cell (DFFPOSX1) {\narea : 192;")

    design = array("weight_stationary", 1, 2)
    plain = make(design).synthesis
    larger = make(design, edited_library(tmp_path, doubled)).synthesis
    grown = larger.total.area_um2 - plain.total.area_um2
    assert grown == plain.total.flip_flops * 96
    assert larger.library.digest != plain.library.digest


def test_cells_that_must_not_be_used(make: Make, tmp_path: Path) -> None:
    def marked(text: str) -> str:
        return text.replace("cell (AND2X1) {", "cell (AND2X1) {\ndont_use : true;")

    assert "AND2X1" not in cells_in(make(ANDS, edited_library(tmp_path, marked)).netlist)


FANS_OUT = """
module leaf(input [63:0] i, input s, output [63:0] o);
  assign o = s ? i : {i[30:0], i[63:31]};
endmodule
module top(input [127:0] i, input [3:0] a, input [3:0] b, output [127:0] o, output [7:0] p);
  wire s = a > b;
  leaf low(.i(i[63:0]), .s(s), .o(o[63:0]));
  leaf high(.i(i[127:64]), .s(s), .o(o[127:64]));
  assign p = s ? a * b : a + b;
endmodule
"""


def test_fan_out_is_limited(make: Make) -> None:
    made = make(FANS_OUT)
    modules = made.mapped.whole["modules"]
    library = read_osu()
    assert made.synthesis.buffers.cells > 0
    assert made.synthesis.modules["leaf"].classes[BUFFERS].cells > 0
    for module in modules.values():
        loads: dict[int, int] = {}
        for cell in module["cells"].values():
            known = library.cells.get(cell["type"])
            for pin, bits in cell["connections"].items():
                if known is not None and known.pins[pin].direction == "input":
                    loads[bits[0]] = loads.get(bits[0], 0) + 1
        assert max(loads.values(), default=0) <= FANOUT


def test_cells_compute_what_the_design_does(make: Make) -> None:
    """Proved by SAT, with buffers, shared modules, a product and a sum."""
    made = make(FANS_OUT)
    models = verilog_models(read_osu().cells[name] for name in set(cells_in(made.netlist)))
    (made.folder / "gate.v").write_text(made.netlist + models)
    passes = ["read_verilog design.v", "hierarchy -top top", "proc", "flatten", "rename top gold"]
    passes += ["design -stash gold", "read_verilog gate.v", "hierarchy -top top", "proc", "flatten"]
    passes += ["rename top gate", "design -stash gate"]
    passes += [f"design -copy-from {name} {name}" for name in ("gold", "gate")]
    passes += ["miter -equiv -flatten gold gate miter", "sat -verify -prove trigger 0 miter"]
    run_yosys(passes, made.folder)


@given(sinks=st.integers(0, 700), instances=st.integers(0, 60), ports=st.integers(0, FANOUT - 1))
def test_buffers_of_any_fan_out(sinks: int, instances: int, ports: int) -> None:
    """Every pin stays on its net, and no driver has more than its share."""
    inverter = {"type": "INVX1", "connections": {"A": [2]}}
    leaf = {
        "ports": {"i": {"direction": "input", "bits": [2]}},
        "netnames": {},
        "cells": {f"inverter_{number}": json.loads(json.dumps(inverter)) for number in range(5)},
    }
    cells = {f"pin_{number}": json.loads(json.dumps(inverter)) for number in range(sinks)}
    for number in range(instances):
        cells[f"leaf_{number}"] = {"type": "leaf", "connections": {"i": [2]}}
    outputs = {f"o{number}": {"direction": "output", "bits": [2]} for number in range(ports)}
    top = {"i": {"direction": "input", "bits": [2]}, **outputs}
    modules = {"leaf": leaf, "top": {"ports": top, "netnames": {}, "cells": cells}}
    add_buffers(modules, read_osu(), Buffer(cell="BUFX2", i="A", o="Y"), "top")
    driver = {
        cell["connections"]["Y"][0]: cell["connections"]["A"][0]
        for cell in cells.values()
        if cell["type"] == "BUFX2"
    }
    loads = {2: ports}
    for cell in cells.values():
        (net,) = cell["connections"]["i" if cell["type"] == "leaf" else "A"]
        loads[net] = loads.get(net, 0) + (5 if cell["type"] == "leaf" else 1)
        while net in driver:
            net = driver[net]
        assert net == 2
    assert max(loads.values()) <= FANOUT
    assert len(driver) <= (sinks + 5 * instances) / 5


@timed
def test_path_through_one_gate(make: Make) -> None:
    made = make(ANDS)
    path = critical_path(made.netlist, made.folder)
    assert path is not None
    assert re.fullmatch(r"[xy]\[\d\]_reg/CLK", path.start)
    assert re.fullmatch(r"q\[\d\]_reg/D", path.end)
    assert [(segment.instance, segment.cells) for segment in path.segments] == [("", 2)]
    assert path.period_ns == pytest.approx(path.segments[0].delay_ns + path.setup_ns)
    assert 0.2 < path.period_ns < 1
    assert path.clock_hz == pytest.approx(1e9 / path.period_ns)


MEMORY = """
module sram #(parameter BITS = 8, parameter DEPTH = 2, parameter ADDRESS_BITS = 1,
  parameter TRANSPARENT = 0) (input clk, input write, input [ADDRESS_BITS-1:0] write_address,
  input [BITS-1:0] write_data, input [ADDRESS_BITS-1:0] read_address,
  output reg [BITS-1:0] read_data);
  reg [BITS-1:0] words [0:DEPTH-1];
  always @(posedge clk) begin
    if (write) words[write_address] <= write_data;
    read_data <= words[read_address];
  end
endmodule
module top(input clk, input rst, input write, input [3:0] at, input [6:0] i, output reg [6:0] q);
  wire [6:0] word;
  sram #(.BITS(7), .DEPTH(13), .ADDRESS_BITS(4)) store(.clk(clk), .write(write),
    .write_address(at), .write_data(i), .read_address(at), .read_data(word));
  always @(posedge clk) q <= word * word;
endmodule
"""


@timed
def test_memories_are_macros_that_take_no_time(make: Make) -> None:
    made = make(MEMORY)
    assert made.synthesis.modules["top"].memories == {"store": Memory(bits=7, depth=13)}
    assert made.synthesis.total.flip_flops == 7
    path = critical_path(made.netlist, made.folder)
    assert path is not None
    assert path.start == "store/clk"
    assert path.segments[0].delay_ns > 0.5


@timed
def test_no_path(make: Make) -> None:
    made = make("module top(input clk, input rst, output o); assign o = 1'b1; endmodule")
    assert made.synthesis.total == Area()
    assert critical_path(made.netlist, made.folder) is None


@pytest.mark.parametrize(
    ("names", "what"),
    [
        ("DFF.*?", "flip-flop without set or reset"),
        ("INV.*?", "inverter"),
        ("NAND2X1", "NAND of two inputs"),
    ],
)
def test_libraries_that_do_not_suffice(tmp_path: Path, names: str, what: str) -> None:
    path = edited_library(tmp_path, without_cells(names))
    with pytest.raises(EnergyError) as error:
        roles_of(read_library(path))
    assert str(error.value) == (
        f"{path} cannot be mapped to: its library osu018_stdcells has no {what}"
    )


def test_labels() -> None:
    assert label_of(("pe_0", "pe_1", "pe_10")) == "pe_*"
    assert label_of(("ifmap_loader", "weight_loader")) == "ifmap_loader, weight_loader"
    assert label_of(("row_0",)) == "row_0"


def test_record_is_complete(make: Make) -> None:
    synthesis = make(array("output_stationary", 1, 2)).synthesis
    again = Synthesis.from_record(json.loads(synthesis.to_json()))
    assert again == synthesis
    assert again.classes == synthesis.classes
    with pytest.raises(InputError) as error:
        Synthesis.from_record({**synthesis.record(), "format": 0})
    assert str(error.value) == "a synthesis record must have format 1, not 0"
