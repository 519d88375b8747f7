"""Verilog into a simulator in a second: for one that runs a few cases, once.

`rtl.benches.verilated_build` makes fast simulators and keeps them.  Here the C++ of a core and of
its bench is one text, compiled without optimisation against headers that are compiled before.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rtl.benches.build_cache import build_once, cache_key
from rtl.benches.verilated_build import (
    _COMPILE,
    _LINK,
    _OPTIONS,
    Library,
    _read_header,
    streams_and_probes,
)
from rtl.benches.wrapper import wrapper_text
from rtl.core.settings import SETTINGS_PORTS
from rtl.toolchain import run_tool, verilator_environment, verilator_path, verilator_version

LEVELS = ("-O0", "-O1")
"""Of optimisation: of a simulator for few cases, and of a fast one."""

_HEADERS = ("algorithm", "cstdint", "cstring", "memory", "stdexcept", "string", "vector")
_SHARED = ("verilated", "verilated_threads")
_SWITCHES = "COVERAGE SC TIMING TRACE TRACE_FST TRACE_VCD"
_DEFINES = ["-DVERILATOR=1", *(f"-DVM_{name}=0" for name in _SWITCHES.split())]

_CHOOSE = """
namespace { int chosen = 0; }
extern "C" void bench_choose(int number) { chosen = number; }
"""
_BEGUN = "    void attach() {"
"""In the bench's text, what runs once the core is there."""


def choose(core: Any, number: int) -> None:
    """Of a simulator with a choice: what its next runs are of."""
    [(_, code)] = core._libraries.values()
    code.bench_choose(number)


class QuickBuilder:
    """Builds simulators; what all of them share is compiled once and kept (`build_cache`)."""

    def __init__(self) -> None:
        include = verilator_path().parents[1] / "include"
        if not include.is_dir():
            include = Path(run_tool([str(verilator_path()), "--getenv", "VERILATOR_ROOT"]).strip())
            include /= "include"
        self.include = include
        self.compile = [
            "g++", "-w", *_COMPILE.split(), *_DEFINES, f"-I{include}", f"-I{include / 'vltstd'}",
        ]  # fmt: skip
        versions = run_tool(["g++", "--version"]), verilator_version()
        self.made_of = (*versions, *self.compile, *_HEADERS, *LEVELS, *_OPTIONS, _LINK)
        self.folder = build_once("quick_shared", cache_key(*self.made_of), self._share)
        self.compile.append(f"-I{self.folder}")
        self.objects = [str(self.folder / f"{name}.o") for name in _SHARED]

    def _share(self, folder: Path) -> None:
        text = [*(f"#include <{name}>" for name in _HEADERS), '#include "verilated.h"']
        (folder / "all.h").write_text("\n".join(text) + "\n")
        (folder / "all.h.gch").mkdir()
        for level in LEVELS:
            made = f"all.h.gch/{level}"
            self._run([*self.compile, level, "-x", "c++-header", "all.h", "-o", made], folder)
        for name in _SHARED:
            source = str(self.include / f"{name}.cpp")
            self._run([*self.compile, "-O1", "-c", source, "-o", f"{name}.o"], folder)

    def _run(self, command: list[str], folder: Path) -> None:
        subprocess.run(command, cwd=folder, check=True, capture_output=True)

    def build(  # noqa: PLR0913
        self, work: Path, verilog: str, top: str, *, trace: str = "", wires: Sequence[str] = (),
        optimised: bool = False, choice: str = "", fast: bool = False, kept: bool = False,
    ) -> Library:  # fmt: skip
        """As `rtl.benches.verilated_build.build_library`, in an empty folder, nothing watched, for
        no runs of minutes.

        choice: an input that is no stream; runs that begin behind `choose` have its number there.
        fast: compiled for twice as long, three times as fast.  kept: for who builds it again.
        """
        assert not (trace or wires or optimised)
        if kept:
            template = wrapper_text((), (), {})
            key = cache_key(*self.made_of, verilog, top, template, choice, str(fast))
            work = build_once(
                "quick", key, lambda empty: self._build(empty, verilog, top, choice, fast=fast)
            )
        else:
            self._build(work, verilog, top, choice, fast=fast)
        streams, probes, _, _ = _boundary(work / "Vtop.h", choice)
        return Library(path=work / "core.so", ports=streams, probes=probes)

    def _build(self, work: Path, verilog: str, top: str, choice: str, *, fast: bool) -> None:
        """core.so and the header that says its ports."""
        (work / "core.v").write_text(verilog)
        command = [str(verilator_path()), *_OPTIONS, "--top-module", top, "core.v"]
        run_tool(command, cwd=work, env=verilator_environment())
        (work / "Vtop.h").write_text((work / "obj" / "Vtop.h").read_text())
        streams, probes, members, chosen = _boundary(work / "Vtop.h", choice)
        parts = ['#include "all.h"\n']
        parts += [f'#include "{file}"\n' for file in sorted((work / "obj").glob("*.cpp"))]
        bench = wrapper_text(streams, probes, members)
        if chosen:
            parts.append(_CHOOSE)
            bench = bench.replace(_BEGUN, f"{_BEGUN}\n        top.{chosen} = chosen;", 1)
        parts.append(bench)
        (work / "one.cpp").write_text("".join(parts))
        command = [*self.compile, LEVELS[fast], "-Iobj", "-c", "one.cpp", "-o", "one.o"]
        self._run(command, work)
        linked = ["g++", *_LINK.split(), "-o", "core.so", "one.o", *self.objects, "-pthread"]
        self._run(linked, work)
        for name in ("core.v", "one.cpp", "one.o"):
            (work / name).unlink()
        shutil.rmtree(work / "obj")


def _boundary(header: Path, choice: str) -> tuple[Any, Any, dict[str, str], str]:
    """Streams and probes; of all ports, and of the choice, Verilator's names."""
    ports = _read_header(header.read_text())
    chosen = ports.pop(choice).member if choice else ""
    for name in SETTINGS_PORTS:  # stay low
        if name in ports and ports[name].is_input:
            del ports[name]
    streams, probes = streams_and_probes(ports)
    return streams, probes, {name: port.member for name, port in ports.items()}, chosen
