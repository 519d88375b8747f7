"""What an emitted design is made of, before it is mapped to cells: flip-flops and memory macros."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from archsim.machine.design import Design
from energy_models.component import Component
from rtl.emit import emit
from rtl.toolchain import run_yosys

Components = tuple[Component, ...]
FLIP_FLOPS = {"$dff", "$sdff", "$dffe", "$sdffe", "$sdffce"}
PASSES = (
    *("read_verilog top.v", "hierarchy -top top", "blackbox *sram*", "proc", "opt -full"),
    *("opt_clean", "memory_collect", "write_json netlist.json"),
)
USED = (*PASSES[:-1], "simplemap t:$*dff*", "opt -full", "opt_clean", PASSES[-1])
"""With every flip-flop on its own, so that those which nothing reads are gone."""


def number(parameter: str) -> int:
    return int(parameter, 2)


class Netlist:
    """Flip-flops and memory macros of an emitted design, all instances counted."""

    def __init__(self, design: Design, folder: Path, passes: tuple[str, ...] = PASSES) -> None:
        (folder / "top.v").write_text(emit(design).verilog)
        run_yosys(passes, folder)
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
            if kind in FLIP_FLOPS or kind.startswith(("$_DFF", "$_SDFF")):
                total += len(cell["connections"]["Q"])
            elif kind.startswith("$mem") and number(parameters["WR_PORTS"]) == 0:
                continue  # a ROM
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

    def placed(self, module: str, *names: str) -> int:
        """Flip-flops of what a module places under names that begin so."""
        cells = self.modules[module]["cells"].items()
        return sum(self.below[cell["type"]] for name, cell in cells if name.startswith(names))


def registers(components: Components, unit: str = "") -> int:
    return sum(
        one.count * one.attributes["bits"]
        for one in components
        if one.kind == "register" and one.name.startswith(unit)
    )
