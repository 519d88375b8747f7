"""A design mapped to a target, kept so that the same question is answered once."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from archsim.errors import InputError
from archsim.files import scratch_folder
from archsim.machine.design import Design
from archsim.machine.registry import design_name, design_record
from archsim.version import VERSION
from rtl.emit import emit
from rtl.synthesis.area import Module, modules_of
from rtl.synthesis.buffers import FANOUT, add_buffers
from rtl.synthesis.cache import code_digest, kept
from rtl.synthesis.cells import Roles, roles_of
from rtl.synthesis.liberty import DEFAULT_LIBRARY, CellLibrary, read_library
from rtl.synthesis.result import TARGETS, LibraryFacts, Synthesis, Target
from rtl.synthesis.timing import critical_path
from rtl.synthesis.yosys import FLOW, map_to_cells, write_netlist
from rtl.toolchain import ToolchainError, opensta_version, require, yosys_version

__all__ = ["TIMED_CELLS", "Outcome", "Progress", "synthesize"]

TOP = "top"

TIMED_CELLS = 2_000_000
"""Netlists of more cells are not timed: OpenSTA takes about 1.4 kB of memory for each."""

Progress = Callable[[str, int, int | None], object]
"""Called with a phase, what is done of it, and of how much (None if that is not known)."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The figures, and the netlist (structural Verilog) that they are of."""

    synthesis: Synthesis
    netlist: str


def synthesize(
    design: Design,
    library: Path = DEFAULT_LIBRARY,
    *,
    target: Target = "cells",
    use_cache: bool = True,
    progress: Progress = lambda phase, done, total: None,
) -> Outcome:
    """Emit a design, map it to the cells of a Liberty file, and measure it.

    An answer is kept under all that it depends on (Verilog, design, library, tools, options) and
    found again unless `use_cache` is false. Raises `InputError` for another target, `EnergyError`
    for a library that is not there or cannot be mapped to, `ToolchainError` without yosys.
    """
    if target not in TARGETS:
        raise InputError(f"target must be one of {', '.join(TARGETS)}, not {target!r}")
    require("pyosys")
    progress("reading the library", 0, None)
    cells = read_library(library)
    roles = roles_of(cells)
    progress("emitting", 0, None)
    verilog = emit(design, top=TOP).verilog
    work = _Work(design, verilog, cells, roles, progress)
    if use_cache:
        return _read(kept(work.key, work.write))
    with scratch_folder("archsim-synth") as folder:
        work.write(folder)
        return _read(folder)


def _read(folder: Path) -> Outcome:
    record = json.loads((folder / "synthesis.json").read_text(encoding="utf-8"))
    netlist = gzip.decompress((folder / "netlist.v.gz").read_bytes()).decode()
    return Outcome(synthesis=Synthesis.from_record(record), netlist=netlist)


@dataclass(frozen=True)
class _Work:
    """All that a synthesis depends on."""

    design: Design
    verilog: str
    library: CellLibrary
    roles: Roles
    progress: Progress

    @property
    def tools(self) -> dict[str, str]:
        return {
            "archsim": VERSION,
            "yosys": yosys_version(),
            "opensta": opensta_version() or "not installed",
        }

    @property
    def options(self) -> dict[str, object]:
        return {"flow": FLOW, "fanout": FANOUT}

    @property
    def key(self) -> tuple[str, ...]:
        return (
            self.verilog,
            json.dumps(design_record(self.design)),
            self.library.digest,
            self.library.path.name,
            json.dumps({"tools": self.tools, "options": self.options}),
            code_digest(),
        )

    def write(self, folder: Path) -> None:
        """Synthesise; write synthesis.json and netlist.v.gz into `folder`."""
        with scratch_folder("archsim-synth") as name:
            synthesis, netlist = self._synthesize(name)
        (folder / "synthesis.json").write_text(synthesis.to_json(), encoding="utf-8")
        (folder / "netlist.v.gz").write_bytes(gzip.compress(netlist.encode(), mtime=0))

    def _synthesize(self, work: Path) -> tuple[Synthesis, str]:
        mapped = map_to_cells(
            self.verilog,
            self.library,
            work,
            top=TOP,
            progress=lambda done, total: self.progress("mapping", done, total),
        )
        if self.roles.buffer is not None:
            add_buffers(mapped.whole["modules"], self.library, self.roles.buffer, TOP)
        self.progress("writing the netlist", 0, None)
        netlist = write_netlist(mapped.whole, work, top=TOP)
        modules = modules_of(mapped, self.library, TOP)
        return self._timed(modules, netlist, work), netlist

    def _timed(self, modules: dict[str, Module], netlist: str, work: Path) -> Synthesis:
        """The result, with the critical path or the reason why there is none."""
        untimed = Synthesis(
            target="cells",
            design_name=design_name(self.design),
            design=design_record(self.design),
            top=TOP,
            modules=modules,
            library=self._facts(),
            critical_path=None,
            timing_note="",
            tools=self.tools,
            options=self.options,
        )
        path = None
        if opensta_version() is None:
            note = "OpenSTA is not installed (apt-get install opensta)"
        elif untimed.total.cells > TIMED_CELLS:
            note = (
                f"{untimed.total.cells:,} cells are more than the {TIMED_CELLS:,} that are timed; "
                f"try fewer rows and columns"
            )
        else:
            self.progress("timing", 0, None)
            try:
                path = critical_path(netlist, work, top=TOP)
                note = "" if path is not None else "no path ends at a flip-flop, memory or port"
            except ToolchainError as error:
                note = str(error)
        return replace(untimed, critical_path=path, timing_note=note)

    def _facts(self) -> LibraryFacts:
        return LibraryFacts(
            name=self.library.name,
            file=self.library.path.name,
            digest=self.library.digest,
            node_nm=self.library.node_nm,
            voltage_v=self.library.voltage_v,
            gate_area_um2=self.roles.gate_area_um2,
        )
