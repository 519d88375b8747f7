"""Verilog to cells of a library: the yosys passes, and what they leave as plain data.

Each module of the hierarchy is mapped on its own and once, however often it is used. Memories
(instances of `sram` and `held_sram`) stay black boxes.  The order is yosys' own (`synth`), with
multipliers as Booth trees, which are the smallest and the fastest to map.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from energy_models.errors import EnergyError
from rtl.child_process import end_children
from rtl.synthesis.liberty import CellLibrary
from rtl.toolchain import run_yosys
from workloads.threads import in_threads

__all__ = ["CLASSES", "FLOW", "Mapped", "class_module", "map_to_cells", "write_netlist"]

FLOW = "booth, alumacc, abc without constraints"
"""What the passes below do, by name."""

CLASSES: Mapping[str, tuple[str, ...]] = {
    "multipliers": ("$mul",),
    "adders": ("$add", "$sub", "$neg"),
    "multiplexers": (
        *("$mux", "$pmux", "$bmux", "$demux"),
        *("$shl", "$shr", "$sshl", "$sshr", "$shift", "$shiftx"),
    ),
    "registers": ("$dff", "$dffe", "$sdff", "$sdffe", "$sdffce"),
}
"""Yosys' cells of each class, as they are before mapping. What is in none is "control"."""

_COARSE = (
    *("proc", "opt_expr", "opt_clean", "opt -nodffe -nosdff", "opt", "wreduce", "peepopt"),
    *("opt_clean", "opt -fast -full", "memory -nomap", "opt_clean", "memory_map", "opt -full"),
    "setattr -unset init w:*",  # cells start with any value: the reset sets them
)
_FINE = {
    "whole": ("booth", "alumacc", "opt", "techmap", "opt -fast"),
    # alumacc gains where it merges a product with the sum it is added to; alone it loses
    "split": ("booth", "opt", "techmap", "opt -fast"),
}

_STARTS_MODULE = re.compile(r"Extracting gate netlist of module `(\S+)'")
_LISTS_MODULES = re.compile(r"^\s*(\d+) modules:$")


@dataclass(frozen=True, kw_only=True)
class Mapped:
    """A netlist as yosys writes it in JSON: modules by name, each with ports and cells.

    whole: each module mapped as it is. split: with the cells of each class mapped apart, in
    modules that `class_module` names; empty where it was not asked for.
    """

    whole: dict[str, Any]
    split: dict[str, Any] = field(default_factory=dict[str, Any])


def class_module(module: str, name: str) -> str:
    """The module with the cells of one class of a module, in a split netlist."""
    return f"{module}_archsim.{name}"


def map_to_cells(
    verilog: str,
    library: CellLibrary,
    folder: Path,
    *,
    top: str = "top",
    split: bool = True,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Mapped:
    """Map the modules of `verilog` to the library, in `folder`, whole and split side by side.

    split: false leaves the second run out. progress: called with how many modules are mapped, and
    of how many (both runs together).
    Raises `EnergyError` if the library lacks a cell that the design needs, `ToolchainError` if
    yosys fails.
    """
    (folder / "design.v").write_text(verilog, encoding="utf-8")
    (folder / "library.lib").write_bytes(_plain_text(library.path))
    names = ("whole", "split") if split else ("whole",)
    meter = _Meter(names, progress)

    def run(name: str) -> None:
        run_yosys(_passes(name, library, top), folder, meter.watcher(name))

    in_threads(run, names, stop=end_children)
    return Mapped(**{name: _read(folder / f"{name}.json", library) for name in names})


class _Meter:
    """Counts the modules that runs have come to, from the lines of their logs."""

    def __init__(self, names: Sequence[str], progress: Callable[[int, int], object]) -> None:
        self.done = dict.fromkeys(names, 0)
        self.total = dict.fromkeys(names, 0)
        self.progress = progress

    def watcher(self, name: str) -> Callable[[str], None]:
        """What watches the log of one run."""

        def watch(line: str) -> None:
            if listed := _LISTS_MODULES.match(line):
                self.total[name] = int(listed[1])
            elif _STARTS_MODULE.search(line):
                self.done[name] += 1
            else:
                return
            self.progress(sum(self.done.values()), sum(self.total.values()))

        return watch


def write_netlist(netlist: Mapping[str, Any], folder: Path, *, top: str = "top") -> str:
    """A netlist of `Mapped` as structural Verilog. Works in `folder`."""
    (folder / "netlist.json").write_text(json.dumps(netlist), encoding="utf-8")
    written = "write_verilog -noattr -noexpr -nohex -simple-lhs netlist.v"
    run_yosys(["read_json netlist.json", f"hierarchy -top {top}", written], folder)
    return (folder / "netlist.v").read_text(encoding="utf-8")


def _passes(name: str, library: CellLibrary, top: str) -> list[str]:
    unused = [cell.name for cell in library.cells.values() if cell.dont_use]
    dont_use = "".join(f" -dont_use {cell}" for cell in unused)
    return [
        f"libcache -scl -dir {name}.cache",
        *("read_verilog design.v", "blackbox *sram", f"hierarchy -check -top {top}"),
        *_COARSE,
        *(_split() if name == "split" else ()),
        "ls",
        *_FINE[name],
        "rename -wire -suffix _reg t:$_*FF*",
        f"dfflibmap -liberty library.lib{dont_use}",
        "opt -fast",
        f"abc -liberty library.lib{dont_use}",
        "opt_clean",
        f"write_json {name}.json",
    ]


def _split() -> Sequence[str]:
    """Put the cells of each class of a module into a sub-module of their own."""
    marks = [
        f'setattr -set submod "archsim.{name}" {" ".join(f"t:{cell}" for cell in cells)}'
        for name, cells in CLASSES.items()
    ]
    return [*marks, "submod"]


def _read(path: Path, library: CellLibrary) -> dict[str, Any]:
    """A mapped netlist. Raises `EnergyError` if a cell in it is not one of the library."""
    netlist: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for name, module in netlist["modules"].items():
        for cell in module["cells"].values():
            if cell["type"].startswith("$"):
                raise EnergyError(
                    f"{library.path} cannot be mapped to: module {name} needs a "
                    f"{cell['type']}, which its library {library.name} has no cell for"
                )
    return netlist


def _plain_text(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
