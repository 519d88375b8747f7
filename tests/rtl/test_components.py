"""The components by which a core is priced are the hardware that is emitted."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archsim import EDGE_16, Plain, Systolic
from archsim.designs.systolic import DATAFLOWS
from rtl.emit import emit
from rtl.toolchain import run_yosys

FLIP_FLOPS = {"$dff", "$sdff", "$dffe", "$sdffe", "$sdffce"}
PASSES = (
    *("read_verilog top.v", "hierarchy -top top", "blackbox *sram*", "proc", "opt -full"),
    *("opt_clean", "memory_collect", "write_json netlist.json"),
)

DESIGNS = [
    replace(EDGE_16, rows=4, columns=5),
    replace(EDGE_16, rows=1, columns=1),
    replace(EDGE_16, rows=3, columns=7, operand_bits=4),
    replace(EDGE_16, rows=8, columns=8, accumulator_memory=Plain(capacity_bytes=8192)),
]


def number(parameter: str) -> int:
    return int(parameter, 2)


class Netlist:
    """Flip-flops and memory macros of an emitted design, all instances counted."""

    def __init__(self, design: Systolic, folder: Path) -> None:
        (folder / "top.v").write_text(emit(design).verilog)
        run_yosys(PASSES, folder)
        self.modules: dict[str, Any] = json.loads((folder / "netlist.json").read_text())["modules"]
        self.macros: Counter[tuple[int, int]] = Counter()
        self.below: dict[str, int] = {}
        top = self.modules["top"]["cells"]
        self.flip_flops = self.count("top")
        self.units = {
            name: self.below[cell["type"]]
            for name, cell in top.items()
            if cell["type"] in self.below
        }

    def count(self, module: str) -> int:
        """Flip-flops of one instance with all below it."""
        total = 0
        for cell in self.modules[module]["cells"].values():
            kind, parameters = cell["type"], cell["parameters"]
            if kind in FLIP_FLOPS:
                total += len(cell["connections"]["Q"])
            elif kind.startswith("$mem"):  # queues, which become flip-flops
                total += number(parameters["SIZE"]) * number(parameters["WIDTH"])
            elif "sram" in kind:
                source = self.modules[kind]
                sizes = source["parameter_default_values"] | parameters
                self.macros[number(sizes["BITS"]), number(sizes["DEPTH"])] += 1
            elif kind in self.modules:
                total += self.count(kind)
        self.below[module] = total
        return total


def registers(design: Systolic, unit: str = "") -> int:
    return sum(
        one.count * one.attributes["bits"]
        for one in design.components
        if one.kind == "register" and one.name.startswith(unit)
    )


@pytest.mark.parametrize("dataflow", DATAFLOWS)
@pytest.mark.parametrize("number_", range(len(DESIGNS)))
def test_components_are_the_netlist(number_: int, dataflow: str, tmp_path: Path) -> None:
    """All flip-flops of the array; all of the core but for the few that addresses need."""
    design = replace(DESIGNS[number_], dataflow=dataflow)
    netlist = Netlist(design, tmp_path)
    array = netlist.units["array"]
    begin = design.rows + 1 if dataflow == "output_stationary" else 0  # tokens of the first step
    assert array - begin <= registers(design, "array.") <= array
    control = next(one for one in design.components if one.kind == "control")
    counted = registers(design) + control.attributes["state_bits"]
    assert counted == pytest.approx(netlist.flip_flops, rel=0.003)
    macros: Counter[tuple[int, int]] = Counter()
    for one in design.components:
        if one.kind == "sram":
            macros[one.attributes["word_bits"], one.attributes["depth"]] += one.count
    assert macros == netlist.macros
