"""Open a design in pyverilator, to poke at its wires from a notebook.

Not a bench: nothing is driven but what you write. `sim.io["i__valid"] = 1`, `sim.clock.tick()`,
`sim.io["o__payload"]`; `sim.start_vcd_trace("wave.vcd")` writes a wave.
"""

import importlib
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from archsim.files import scratch_folder
from rtl.benches.build_cache import build_once, cache_key
from rtl.toolchain import require, verilator_environment, verilator_version

__all__ = ["open_with_pyverilator"]

_STANDARD = "--std=c++17 -fno-gnu-unique"
"""In place of the C++11 which pyverilator asks for, and which Verilator no longer compiles as."""

_LOCK = threading.Lock()


def open_with_pyverilator(verilog: str, top: str = "top") -> Any:
    """Compile module `top` of `verilog` (once) and return its `pyverilator.PyVerilator`.

    Its inputs are 0 at first. Raises `ToolchainError` if pyverilator or a tool it needs is
    missing, `subprocess.CalledProcessError` if the design does not compile.
    """
    require("pyverilator", "verilator", "perl", "make", "g++")
    library: Any = importlib.import_module("pyverilator.pyverilator")

    def build(work: Path) -> None:
        source = work / f"{top}.v"
        source.write_text(verilog)
        with _mended(library):
            library.PyVerilator.build(
                str(source),
                build_dir=str(work),
                quiet=True,
                args=["--top-module", top, "-Wno-lint", "-Wno-style"],
            )

    key = cache_key(verilator_version(), verilog, top, _STANDARD)
    place = build_once("pyverilator", key, build)
    # A library's state is its process's: opened twice, the second model would abort. So each call
    # opens a copy, which may be unlinked as soon as it is loaded.
    with scratch_folder("archsim-poke") as folder:
        copy = shutil.copy(place / f"V{top}", folder)
        return library.PyVerilator(str(copy))


@contextmanager
def _mended(library: Any) -> Iterator[None]:
    """Pyverilator while it builds: with the tool chain's PATH, C++17, and a version to read."""
    template: Any = importlib.import_module("pyverilator.verilatorcpp")
    call_process = library.call_process
    flush_known = template.verilator_flushcall_ok
    before = dict(os.environ)

    def call(command: list[str], quiet: bool = True) -> None:
        words = [word.replace("--std=c++11", _STANDARD) for word in command]
        call_process([word for word in words if word], quiet=True)

    with _LOCK:
        library.call_process = call
        template.verilator_flushcall_ok = lambda: False
        os.environ.update(verilator_environment())
        try:
            yield
        finally:
            library.call_process = call_process
            template.verilator_flushcall_ok = flush_known
            os.environ.clear()
            os.environ.update(before)
