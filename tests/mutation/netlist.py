"""Modules of a netlist, as data: RTLIL by module, through yosys' JSON.

Every bit of a module is a number, or one of "0", "1", "x", "z".
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Bit = int | str
Bits = tuple[Bit, ...]

RUN = """
import sys
from pyosys import libyosys as ys
design = ys.Design()
for command in open(sys.argv[1]):
    ys.run_pass(command.strip(), design)
"""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """An operator, a register, a memory, or an instance of another module."""

    name: str
    type: str
    parameters: tuple[tuple[str, str], ...]
    connections: Mapping[str, Bits]

    @property
    def keeps_state(self) -> bool:
        """Whether it is a register, or something whose inside is not seen here."""
        return self.type in ("$dff", "$mem_v2") or not self.type.startswith("$")


@dataclass(frozen=True, kw_only=True)
class Port:
    """direction: "input" or "output"."""

    direction: str
    bits: Bits


@dataclass(frozen=True, kw_only=True)
class Netlist:
    """One module.  wires: bits of the wires that have names of the source, with values at power-up
    where they have such."""

    ports: Mapping[str, Port]
    cells: Sequence[Cell]
    wires: Mapping[str, tuple[Bits, str]] = field(default_factory=dict[str, tuple[Bits, str]])

    @staticmethod
    def read(module: Mapping[str, Any]) -> Netlist:
        """Of yosys' JSON."""
        return Netlist(
            ports={
                name: Port(direction=port["direction"], bits=tuple(port["bits"]))
                for name, port in module["ports"].items()
            },
            cells=[
                Cell(
                    name=name,
                    type=cell["type"],
                    parameters=tuple(sorted(cell["parameters"].items())),
                    connections={port: tuple(bits) for port, bits in cell["connections"].items()},
                )
                for name, cell in module["cells"].items()
            ],
            wires={
                name: (tuple(wire["bits"]), wire["attributes"].get("init", ""))
                for name, wire in module["netnames"].items()
                if not wire["hide_name"] or "init" in wire["attributes"]
            },
        )


def yosys(commands: Iterable[str], folder: Path) -> None:
    """Run commands in a process of its own.  Raises `RuntimeError` where one fails."""
    (folder / "commands").write_text("\n".join(commands) + "\n", encoding="utf-8")
    command = [sys.executable, "-c", RUN, "commands"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"yosys: {(done.stdout + done.stderr)[-1000:]}")


def netlists(texts: Sequence[Mapping[str, str]]) -> list[dict[str, Netlist]]:
    """Of each mapping, RTLIL by module, the netlists by module."""
    with tempfile.TemporaryDirectory() as made:
        folder, commands = Path(made), []
        for number, modules in enumerate(texts):
            text = "\n".join(modules.values())
            (folder / f"{number}.il").write_text(text, encoding="utf-8")
            commands += [
                "design -reset", f"read_rtlil {number}.il", "proc", "memory_collect", "opt_clean",
                f"write_json {number}.json",
            ]  # fmt: skip
        yosys(commands, folder)
        read = [json.loads((folder / f"{number}.json").read_text()) for number in range(len(texts))]
    return [{name: Netlist.read(module) for name, module in one["modules"].items()} for one in read]


def outputs_of(sources: str) -> dict[str, frozenset[str]]:
    """Of Verilog modules, the names of their outputs."""
    if not sources:
        return {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "all.v").write_text(sources, encoding="utf-8")
        yosys(["read_verilog all.v", "proc", "write_json all.json"], folder)
        modules = json.loads((folder / "all.json").read_text())["modules"]
    return {
        name: frozenset(
            port for port, one in module["ports"].items() if one["direction"] == "output"
        )
        for name, module in modules.items()
    }


__all__ = ["Bit", "Bits", "Cell", "Netlist", "Port", "netlists", "outputs_of", "yosys"]
