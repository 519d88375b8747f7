"""Build and start cocotb's Verilator simulators, through `cocotb_tools.runner`.

This is the one place that knows the runner's habits: it would publish every signal of the design
(halving the speed), look for Verilator on its own process's PATH, and always write VCD.
"""

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from rtl.benches.build_cache import build_once, cache_key
from rtl.benches.common_code import OUTPUT_SPLIT, with_common_code
from rtl.child_process import child
from rtl.core.sram import COLLISIONS
from rtl.toolchain import (
    ToolchainError,
    require,
    verilator_environment,
    verilator_path,
    verilator_version,
)

try:
    import cocotb
    import cocotb_tools.config
    import cocotb_tools.runner
except ModuleNotFoundError as error:
    raise ToolchainError(
        f"cocotb is missing ({error}); install it with: pip install cocotb"
    ) from error

__all__ = ["WAVE_OPTIONS", "build_simulator", "run_simulator"]

WAVE_OPTIONS = {
    "": [],
    ".fst": ["--trace-fst"],
    ".vcd": ["--trace-vcd"],
    ".saif": ["--trace-saif"],
}
"""What Verilator must be told for a file of this suffix."""

_OPTIONS = [
    *("-O3", "--x-assign", "fast", "--x-initial", "fast", "--timescale", "{unit}"),
    *(f"-D{COLLISIONS}", "-Wno-lint", "-Wno-style", "-Wno-fatal", *OUTPUT_SPLIT),
]
_PUBLIC = '`verilator_config\npublic_flat_rw -module "{top}" -var "*"\n'


class _Runner(cocotb_tools.runner.Verilator):
    """Cocotb's runner for Verilator, with the tool chain's environment."""

    def __init__(self, extra: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._extra = dict(extra or {})

    def _set_env_common(self) -> None:
        super()._set_env_common()
        libraries = str(cocotb_tools.config.libs_dir)
        self.env.update(verilator_environment())
        self.env["PATH"] += os.pathsep + libraries
        # The simulator runs in another folder: what is relative on our path must not be on its.
        self.env["PYTHONPATH"] = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
        self.env.update(self._extra)

    def _simulator_in_path_build_only(self) -> None:
        self.executable = str(verilator_path())

    def _execute_cmds(
        self, cmds: Sequence[Sequence[str]], cwd: Any, stdout: IO[str] | None = None
    ) -> None:
        """The runner's own lets what make started live on after Ctrl-C."""
        assert stdout is not None
        for command in cmds:
            words = [str(word) for word in command]
            if words[0] == "make":  # behind Verilator, which has written what make reads
                words += with_common_code(Path(self.build_dir), "-O1", self.env)
            with child(words, cwd=cwd, env=self.env, stdout=stdout) as one:
                code = one.wait()
            if code != 0:
                raise RuntimeError(f"command failed with return code: {code}")

    def _build_command(self) -> list[list[str]]:
        verilate, make = super()._build_command()
        kept = [word for word in verilate if word not in ("--public-flat-rw", "--trace")]
        return [kept, make]


def build_simulator(verilog: str, top: str, *, wave: str = "", unit: str = "ps") -> Path:
    """The folder of a simulator of module `top`, built or found in the cache.

    `wave` is the kind of wave it can write, a key of `WAVE_OPTIONS`; `unit` the one it counts time
    in. Raises `ToolchainError` if a
    tool is missing or fails.
    """
    require("verilator", "perl", "make", "g++")
    cocotb_version = f"{cocotb_tools.config.libs_dir} {cocotb.__version__}"
    parts = [verilog, top, wave, cocotb_version, _PUBLIC, *_options(unit)]
    key = cache_key(verilator_version(), *parts)
    return build_once("cocotb", key, lambda work: _build(work, verilog, top, (wave, unit)))


def run_simulator(
    place: Path, top: str, *, module: str, folder: Path, environment: Mapping[str, str]
) -> None:
    """Run the simulator built at `place`, with cocotb's test `module`, in `folder`.

    `environment` is added to the simulator's; a key "WAVE_FILE" names the wave to write. Raises
    `ToolchainError`, with the end of the log, if the simulator or the test fails.
    """
    log = folder / "simulation.log"
    wave = environment.get("WAVE_FILE")
    # Rewriting a test's assertions begins pytest with all its plug-ins; ours have none.
    fixed = {"COCOTB_ANSI_OUTPUT": "0", "COCOTB_REWRITE_ASSERTION_FILES": ""}
    runner = _Runner({**environment, **fixed})
    arguments: dict[str, Any] = {
        "test_module": module,
        "hdl_toplevel": top,
        "hdl_toplevel_lang": "verilog",
        "build_dir": place,
        "test_dir": folder,
        "results_xml": str(folder / "results.xml"),
        "test_args": ["--trace", "--trace-file", wave] if wave else [],
        "log_file": log,
        "seed": 1,
    }
    try:
        runner.test(**arguments)
    except (RuntimeError, SystemExit) as error:
        raise ToolchainError(f"cocotb's run has failed: {error}\n{_tail(log)}") from error
    results = folder / "results.xml"
    if not results.is_file() or re.search(r"<(failure|error)\b", results.read_text()):
        raise ToolchainError(f"cocotb's test has failed\n{_tail(log)}")


def _options(unit: str) -> list[str]:
    scale = "1ns/1ps" if unit == "ps" else f"1{unit}/1{unit}"
    return [option.format(unit=scale) for option in _OPTIONS]


def _build(work: Path, verilog: str, top: str, kind: tuple[str, str]) -> None:
    """kind: the wave it can write, and the unit of its time."""
    wave, unit = kind
    source, public, log = work / "core.v", work / "public.vlt", work / "build.log"
    source.write_text(verilog)
    public.write_text(_PUBLIC.format(top=top))
    runner = _Runner({"CCACHE_BASEDIR": str(work)})
    try:
        runner.build(
            sources=[public, source],
            hdl_toplevel=top,
            build_dir=work,
            build_args=[*_options(unit), *WAVE_OPTIONS[wave]],
            waves=bool(wave),
            log_file=log,
        )
    except RuntimeError as error:
        raise ToolchainError(f"cocotb's build has failed: {error}\n{_tail(log)}") from error
    for path in work.iterdir():
        if path.name not in (top, "build.log"):
            folder = path.is_dir() and not path.is_symlink()
            shutil.rmtree(path) if folder else path.unlink()


def _tail(log: Path) -> str:
    return "\n".join(log.read_text().splitlines()[-40:]) if log.is_file() else ""
