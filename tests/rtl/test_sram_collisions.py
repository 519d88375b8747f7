"""What an SRAM reads of a word in the cycle in which it is written: the word before, the new one,
or what nobody minds."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from archsim.machine.registry import load_design, with_settings
from archsim.machines.systolic.design import Systolic
from archsim.memory import Plain
from rtl.benches.verilated import Verilated
from rtl.cases import drawn_case
from rtl.conformance import check
from rtl.core.sram import Sram
from rtl.emit import emit
from rtl.hierarchy import VerilogModule
from rtl.registry import verification_of
from rtl.suite import assert_equal
from rtl.toolchain import run_yosys

SMALL = Plain(capacity_bytes=1024)
CORE = Systolic(
    rows=3, columns=2, ifmap_memory=SMALL, weight_memory=SMALL, accumulator_memory=SMALL
)
SCNN = with_settings(
    load_design("scnn"),
    ["grid_rows=1", "grid_columns=1", "weight_lanes=2", "ifmap_lanes=2", "banks=4"],
)

_TOP = """
module top(input clk, input write, input [8:0] write_address, input [17:0] write_data,
           input [8:0] read_address, output [17:0] read_data);
  {module} #(.BITS(18), .DEPTH(512), .ADDRESS_BITS(9){more}) words (
    .clk(clk), .write(write), .write_address(write_address), .write_data(write_data),
    .read_address(read_address), .read_data(read_data));
endmodule
"""


def _logic(module: VerilogModule, family: str, folder: Path, more: str) -> int:
    """Cells of a family's netlist beside a block RAM's."""
    (folder / "top.v").write_text(module.source + _TOP.format(module=module.name, more=more))
    passes = ["read_verilog top.v", f"synth_{family} -top top", "write_json top.json"]
    run_yosys(passes, folder)
    cells = json.loads((folder / "top.json").read_text())["modules"]["top"]["cells"]
    kinds = Counter(one["type"] for one in cells.values() if not one["type"].startswith("$"))
    assert kinds.pop("DP16KD", 0) + kinds.pop("SB_RAM40_4K", 0) >= 1
    return kinds.total()


@pytest.mark.parametrize("family", ["ecp5", "ice40"])
def test_nothing_stands_around_a_block_ram_that_nobody_minds(family: str, tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"bits": 18, "depth": 512}
    sram = Sram.verilog(**sizes)
    assert _logic(sram, family, tmp_path, ", .APART(1)") == 0
    assert _logic(sram, family, tmp_path, "") > 18
    assert _logic(sram, family, tmp_path, ", .TRANSPARENT(1)") > 18


_SRAM = re.compile(r"(?<!module )\bsram #\((.*?)\) ", re.S)


def _kind(parameters: str) -> str:
    said = {name: f".{name}(32'd1)" in parameters for name in ("TRANSPARENT", "APART")}
    assert not all(said.values())
    return "transparent" if said["TRANSPARENT"] else "apart" if said["APART"] else "before"


DESIGNS: dict[str, tuple[Any, set[str]]] = {
    "systolic": (CORE, {"apart", "before", "transparent"}),
    "tensor core": (
        with_settings(load_design("volta"), ["octets=1", "rows=4"]),
        {"apart", "before", "transparent"},
    ),
    "sparsetrain": (
        with_settings(load_design("sparsetrain"), ["pes=1", "lanes=2", "rows=2", "columns=2"]),
        {"apart"},
    ),
    "scnn": (SCNN, {"transparent"}),
    "scnn for an FPGA": (SCNN.for_fpga(), {"apart", "transparent"}),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_who_minds(name: str) -> None:
    """Scratchpads of operands read the word before, for their halves are free at the last read."""
    design, kinds = DESIGNS[name]
    assert {_kind(found) for found in _SRAM.findall(emit(design).verilog)} == kinds


def _check_cases(verilog: str) -> None:
    watches = verification_of(CORE).watches(CORE)
    run = Verilated(verilog, top="top", watches=watches).run
    for number in range(8):
        assert_equal(check(drawn_case(0, number, CORE, "long stalls", longest_words=2000), run))


def test_verify_gives_a_wrong_word() -> None:
    """Whoever says that nobody minds, where somebody does, is found out."""
    verilog = emit(CORE).verilog
    _check_cases(verilog)

    def apart(found: re.Match[str]) -> str:
        if _kind(found[1]) == "transparent":
            return found[0]
        return found[0].replace(".APART(32'd0)", ".APART(32'd1)")

    with pytest.raises(AssertionError):
        _check_cases(_SRAM.sub(apart, verilog))
