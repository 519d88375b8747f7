"""Verilog that has its own clock (a test bench), run by Verilator."""

from collections.abc import Sequence
from pathlib import Path

from rtl.toolchain import run_tool, verilator_environment, verilator_path


def bench_says(folder: Path, top: str, files: Sequence[str], *options: str) -> str:
    """What a bench prints that is built of these files in a folder."""
    command = [str(verilator_path()), "--binary", "--timing", "-CFLAGS", "-std=c++20", "-Wno-lint"]
    command += [*options, "--top-module", top, "--Mdir", "made", *files]
    run_tool(command, cwd=folder, env=verilator_environment())
    return run_tool([str(folder / "made" / f"V{top}")], cwd=folder)


__all__ = ["bench_says"]
