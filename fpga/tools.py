"""What an answer of the placing tools depends on beside its input: versions, and our own code."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from archsim.version import VERSION
from fpga.nextpnr import tools_of
from rtl.benches.build_cache import cache_key
from rtl.toolchain import yosys_version

__all__ = ["code_digest", "tool_versions"]


def tool_versions(family: str) -> dict[str, str]:
    """By name.  Raises `ToolchainError` for a tool that is not installed."""
    return {
        "archsim": VERSION,
        "yosys": yosys_version(),
        **tools_of(family),
    }


_ASKING = (
    "board_cli", "cli", "estimate", "fit_cli", "floor_plan", "largest", "part_costs", "report",
    "tables",
)  # fmt: skip


@cache
def code_digest() -> str:
    """A digest of this package's sources, but of those that only ask, estimate and show."""
    every = Path(__file__).parent.glob("*.py")
    files = sorted(file for file in every if file.stem not in _ASKING)
    return cache_key(*(file.read_text(encoding="utf-8") for file in files))
