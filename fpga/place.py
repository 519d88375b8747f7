"""A unit on an FPGA: mapped by yosys, wrapped, placed and routed by nextpnr."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from amaranth.lib import wiring

from archsim.errors import InputError
from archsim.files import new_folder, require_new, scratch_folder
from fpga import gowin
from fpga.cells import Cells, cells_of, without_pins
from fpga.devices import Target
from fpga.fit import check_cells
from fpga.nextpnr import nextpnr_version, place_and_route
from fpga.own_cells import (
    CELLS_FILE,
    own_verilog,
    paired,
    read_passes,
)
from fpga.report import FpgaReport
from fpga.tools import code_digest, tool_versions
from fpga.units import TOP, unit_verilog
from fpga.wrapper import WRAPPER, wrapper_verilog
from rtl.synthesis.cache import kept
from rtl.toolchain import require, run_yosys, yosys_version

__all__ = ["LOGS", "place", "resources"]

LOGS = ("unit.log", "wrapper.log", "merge.log", "nextpnr.log", "report.json")
"""What is kept where logs are asked for: of three runs of yosys; nextpnr's log and report."""

_CELLS = {
    "ecp5": ("+/lattice/cells_sim_ecp5.v", "+/lattice/cells_bb_ecp5.v"),
    "ice40": ("+/ice40/cells_sim.v",),
    "gowin": ("+/gowin/cells_sim.v", "+/gowin/cells_xtra_{series}.v"),
}


def place(
    unit: wiring.Component | str,
    *,
    target: Target | None = None,
    name: str = "unit",
    logs: Path | None = None,
    use_cache: bool = True,
    progress: Callable[[str], object] = lambda phase: None,
) -> FpgaReport:
    """Resources and clock of a unit: a component, or Verilog text whose top module is `top`.

    Memories (the modules `sram` and `held_sram`) become block RAM, but for small ones, which yosys
    puts into look-up tables; both keep what `rtl.core.sram` promises of a read in the cycle of a
    write, with registers and comparators where the chip does not.  Multipliers become the chip's,
    or if they are more than it has, all of them look-up tables.
    target: ECP5 85k at 100 MHz if none. name: for the report. logs: a new folder for `LOGS`.
    An answer is kept under all that it depends on, and found again unless `use_cache` is false.
    Raises `InputError` for a unit that does not fit, `ToolchainError` for a tool that is missing
    or fails.
    """
    target = target or Target()
    require("pyosys")
    nextpnr_version(target.family)
    if logs is not None:
        require_new(logs, folder=True, names=LOGS)
    verilog = unit if isinstance(unit, str) else unit_verilog(unit)
    work = _Work(verilog, target, progress)
    with scratch_folder("archsim-fpga") as folder:
        if use_cache:
            found = kept(work.key, work.write)
        else:
            found = folder
            work.write(found)
        if logs is not None:
            with new_folder(logs) as kept_logs:
                for log in LOGS:
                    shutil.copy(found / log, kept_logs / log)
        record = json.loads((found / "fpga.json").read_text(encoding="utf-8"))
    return replace(FpgaReport.from_record(record), name=name)


def resources(unit: wiring.Component | str, *, target: Target | None = None) -> Cells:
    """What a unit takes, without placing it: seconds to minutes where `place` takes many.

    Of a unit that does not fit too. Raises `ToolchainError` if yosys is missing or fails.
    """
    verilog = unit if isinstance(unit, str) else unit_verilog(unit)
    work = _Work(verilog, target or Target(), lambda phase: None)

    def write(folder: Path) -> None:
        with scratch_folder("archsim-fpga") as name:
            _, cells, _ = work.map_unit(name)
        (folder / "cells.json").write_text(json.dumps(cells.record()), encoding="utf-8")

    chip = work.target.chip.name
    folder = kept(("fpga-cells", verilog, chip, yosys_version(), code_digest()), write)
    return Cells(**json.loads((folder / "cells.json").read_text(encoding="utf-8")))


@dataclass(frozen=True)
class _Work:
    """All that a placement depends on."""

    verilog: str
    target: Target
    progress: Callable[[str], object]

    @property
    def tools(self) -> dict[str, str]:
        return tool_versions(self.target.family)

    @property
    def key(self) -> tuple[str, ...]:
        return ("fpga", self.verilog, repr(self.target), json.dumps(self.tools), code_digest())

    def write(self, folder: Path) -> None:
        """Place and route; write fpga.json and `LOGS` into `folder`."""
        with scratch_folder("archsim-fpga") as work:
            report = self._report(work)
            (work / "fpga.json").write_text(report.to_json(), encoding="utf-8")
            for file in (*LOGS, "fpga.json"):
                shutil.copy(work / file, folder / file)

    def _report(self, folder: Path) -> FpgaReport:
        unit, cells, uses_dsps = self.map_unit(folder)
        check_cells(cells, self.target.chip)
        self.progress("wrapping")
        wrapper = self._wrap(unit, folder)
        self.progress("packing")
        placement = place_and_route(self.target, folder, self.progress)
        return FpgaReport(
            name="unit",
            target=self.target,
            cells=cells,
            wrapper=wrapper,
            places=placement.places,
            places_on_chip=placement.places_on_chip,
            fmax_hz=placement.fmax_hz,
            path=placement.path,
            uses_dsps=uses_dsps,
            tools=self.tools,
        )

    def map_unit(self, folder: Path) -> tuple[dict[str, Any], Cells, bool]:
        """The unit on its own, with the chip's multipliers if there are enough of them."""
        (folder / "unit.v").write_text(self.verilog, encoding="utf-8")
        for dsps in (True, False) if self.target.chip.dsps else (False,):
            self.progress("mapping" if dsps == bool(self.target.chip.dsps) else "mapping again")
            unit = self._synthesize("unit", TOP, folder, dsps)
            cells = cells_of(unit)
            if cells.dsps <= self.target.chip.dsps:
                return unit, cells, dsps
        raise AssertionError("multipliers were left out")

    def _synthesize(self, name: str, top: str, folder: Path, dsps: bool) -> dict[str, Any]:
        """Map {name}.v; returns module `top` of what yosys writes in JSON."""
        family = self.target.family
        chip = self.target.chip
        words = [f"synth_{family}", "-top", top, *chip.synthesis, *chip.multiplying(dsps)]
        if family == "gowin" and name == "unit":
            words.append("-noiopads")
        verilog = self.verilog if name == "unit" and dsps else ""
        reading = read_passes([f"{name}.v"], top, family, verilog)
        (folder / CELLS_FILE).write_text(own_verilog(family), encoding="utf-8")
        passes = [*reading, *chip.told, " ".join(words), f"write_json {name}.json"]
        self._yosys(passes, folder, name)
        netlist = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        paired(netlist)
        modules = netlist["modules"]
        if not modules[top]["ports"]:
            raise InputError("the unit must have ports, for what has none has no effect")
        return modules[top]

    def _wrap(self, unit: dict[str, Any], folder: Path) -> Cells:
        """Write top.json, the unit inside its wrapper; returns what the wrapper takes."""
        (folder / "wrapper.v").write_text(wrapper_verilog(TOP, unit), encoding="utf-8")
        wrapper = self._synthesize("wrapper", WRAPPER, folder, dsps=False)
        if self.target.chip.pins:
            (folder / "top.cst").write_text(gowin.wrapper_pins(self.target.chip.pins))
        known = without_pins(wrapper)["cells"]
        around = {name: cell for name, cell in known.items() if cell["type"] != TOP}
        unit["attributes"].pop("top", None)
        both = {"creator": "archsim", "modules": {WRAPPER: wrapper, TOP: unit}}
        (folder / "both.json").write_text(json.dumps(both), encoding="utf-8")
        libraries = " ".join(_CELLS[self.target.family])
        libraries = libraries.format(series=self.target.chip.synthesis[-1])
        passes = [f"read_verilog -lib -specify {libraries}", "read_json both.json"]
        passes += [f"hierarchy -top {WRAPPER}", "flatten", "opt_clean"]
        passes += [f"select {WRAPPER}", "write_json -selected top.json"]
        self._yosys(passes, folder, "merge")
        return cells_of({"cells": around})

    def _yosys(self, passes: list[str], folder: Path, name: str) -> None:
        with (folder / f"{name}.log").open("w", encoding="utf-8") as log:
            run_yosys(passes, folder, lambda line: log.write(line + "\n"))
