"""Compile Verilog and its bench into a shared library, once."""

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rtl.benches.bench import IDLE, StreamPort
from rtl.benches.build_cache import build_once, cache_key
from rtl.benches.common_code import OUTPUT_SPLIT, with_common_code
from rtl.benches.wrapper import wrapper_text
from rtl.core.sram import COLLISIONS
from rtl.toolchain import (
    require,
    run_tool,
    verilator_environment,
    verilator_path,
    verilator_version,
)
from workloads.threads import threads

__all__ = [
    "Library",
    "VerilogPort",
    "build_key",
    "build_library",
    "compiled",
    "idle_inputs",
    "streams_and_probes",
]

_TRACES = {
    "": ([], ""),
    ".fst": (["--trace-fst"], " -DBENCH_FST"),
    ".vcd": (["--trace-vcd"], " -DBENCH_VCD"),
}
_COMPILE = "-fPIC -fvisibility-inlines-hidden -fno-gnu-unique -DVL_USER_FATAL"
_LINK = "-shared -Wl,-Bsymbolic"
_OPTIONS = [
    *("--cc", "-O3", "--no-assert", "--x-assign", "fast", "--x-initial", "fast"),
    *("-Wno-lint", "-Wno-style", "-Wno-fatal", "--prefix", "Vtop", "--Mdir", "obj"),
    *(f"-D{COLLISIONS}", *OUTPUT_SPLIT),
]


@dataclass(frozen=True, kw_only=True)
class VerilogPort:
    """A port of the top module: whether it is an input, its bits, its member in Verilator's C++."""

    is_input: bool
    bits: int
    member: str


@dataclass(frozen=True, kw_only=True)
class Library:
    """A compiled core: the library's path, and what is at the core's boundary."""

    path: Path
    ports: tuple[StreamPort, ...]
    probes: tuple[tuple[str, int], ...]


def build_library(
    verilog: str,
    top: str,
    *,
    trace: str = "",
    wires: Sequence[str] = (),
    optimised: bool = False,
) -> Library:
    """Compile module `top` of `verilog` with its bench, or find it compiled.

    `trace` is the kind of wave it can write: "", ".fst" or ".vcd".  `wires`: names that can be
    watched in every module that has them.  `optimised`: as `compiled` has it.
    Raises `ToolchainError` if a tool is missing or fails, `ValueError` for a boundary that is not
    streams and outputs.
    """
    require("verilator", "perl", "make", "g++")
    template = wrapper_text((), (), {})
    shown = _shown(wires)
    key = build_key(verilog, top, trace, shown, template, str(optimised))

    def build(work: Path) -> None:
        options, defines = _TRACES[trace]
        compiled(
            *(work, verilog, top, _wrapper),
            options=options,
            defines=defines,
            shown=shown,
            optimised=optimised,
        )

    place = build_once("verilated", key, build)
    found = json.loads((place / "ports.json").read_text())
    ports = {name: VerilogPort(**port) for name, port in found.items()}
    streams, probes = streams_and_probes(ports)
    return Library(path=place / "core.so", ports=streams, probes=probes)


def build_key(*parts: str) -> str:
    """The name of what is built of these texts, by this Verilator and these options."""
    return cache_key(verilator_version(), *parts, _COMPILE, _LINK, *_OPTIONS)


def streams_and_probes(
    ports: Mapping[str, VerilogPort],
) -> tuple[tuple[StreamPort, ...], tuple[tuple[str, int], ...]]:
    """Sort a module's ports into streams and probes (plain outputs of at most 64 bits), by name.

    Raises `ValueError` for any input, but for `clk`, `rst` and those that are left at 0, that is
    not part of a stream.
    """
    streams, taken = [], {"clk", "rst", *idle_inputs(ports)}
    for name in sorted(name.removesuffix("__valid") for name in ports if name.endswith("__valid")):
        parts = [f"{name}__{part}" for part in ("payload", "valid", "ready")]
        if not all(part in ports for part in parts):
            raise ValueError(f"{name} must have payload, valid and ready")
        payload, valid, ready = (ports[part] for part in parts)
        if valid.is_input != payload.is_input or valid.is_input == ready.is_input:
            raise ValueError(f"{name} must have valid and payload one way and ready the other")
        direction = "i" if payload.is_input else "o"
        streams.append(StreamPort(name=name, direction=direction, bits=payload.bits))
        taken.update(parts)
    rest = {name: port for name, port in sorted(ports.items()) if name not in taken}
    for name, port in rest.items():
        if port.is_input:
            raise ValueError(f"{name} must be a stream or an output, not a plain input")
    return tuple(streams), tuple((name, p.bits) for name, p in rest.items() if p.bits <= 64)


def idle_inputs(ports: Mapping[str, VerilogPort]) -> list[str]:
    """Inputs that a bench leaves at 0."""
    return sorted(name for name, port in ports.items() if port.is_input and name.startswith(IDLE))


def _shown(wires: Sequence[str]) -> str:
    """A control file that keeps wires of these names readable; the Verilog is left as it is."""
    lines = [f'public_flat_rd -module "*" -var "{wire}"' for wire in sorted(set(wires))]
    return "\n".join(["`verilator_config", *lines, ""])


def _wrapper(ports: Mapping[str, VerilogPort]) -> str:
    streams, probes = streams_and_probes(ports)
    members = {name: port.member for name, port in ports.items()}
    return wrapper_text(streams, probes, members, idle_inputs(ports))


def compiled(  # noqa: PLR0913
    work: Path,
    verilog: str,
    top: str,
    wrapper: Callable[[Mapping[str, VerilogPort]], str],
    *,
    options: Sequence[str] = (),
    defines: str = "",
    shown: str = "",
    optimised: bool = False,
) -> None:
    """Leave core.so and ports.json in `work`: module `top`, and around it the C++ of `wrapper`.

    optimised: for runs of minutes. It is compiled for a third longer, and an eighth faster.
    """
    environment = verilator_environment()
    environment["CCACHE_BASEDIR"] = str(work)
    (work / "core.v").write_text(verilog)
    (work / "shown.vlt").write_text(shown)
    command = [str(verilator_path()), *_OPTIONS, *options, "--top-module", top]
    command += ["-CFLAGS", _COMPILE + defines, "-LDFLAGS", _LINK]
    command += ["--exe", "-o", "../core.so", "core.v", "shown.vlt", "wrapper.cpp"]
    run_tool(command, cwd=work, env=environment)
    ports = _read_header((work / "obj" / "Vtop.h").read_text())
    (work / "wrapper.cpp").write_text(wrapper(ports))
    make = ["make", "-C", "obj", "-f", "Vtop.mk", f"-j{min(threads(), 8)}"]
    level = "-O3" if optimised else "-O1"
    common = with_common_code(work / "obj", level, environment)
    run_tool([*make, *common], cwd=work, env=environment)
    written = {name: vars(port) for name, port in ports.items()}
    (work / "ports.json").write_text(json.dumps(written))
    shutil.rmtree(work / "obj")


def _read_header(text: str) -> dict[str, VerilogPort]:
    """The ports which Verilator declares in its class, by their names in Verilog."""
    found = re.findall(r"VL_(IN|OUT)(?:8|16|64|W)?\(&?(\w+),(\d+),(\d+)(?:,\d+)?\);", text)
    return {
        re.sub(r"__0([0-9A-F]{2})", lambda code: chr(int(code[1], 16)), member): VerilogPort(
            is_input=kind == "IN", bits=int(high) - int(low) + 1, member=member
        )
        for kind, member, high, low in found
    }
