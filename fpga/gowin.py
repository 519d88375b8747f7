"""What Gowin's tools are called with: nextpnr's himbaechel and the packer of project Apicula.

Amaranth 0.5.10 calls the older nextpnr-gowin, whose wheel ended at 0.7; its commands are put into
the words of the one that goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

__all__ = ["FLIP_FLOPS_OF_A_LUT_RAM", "LUTS_OF_A_LUT_RAM", "NETLIST", "pack_words", "place_words",
           "places", "wrapper_pins"]  # fmt: skip

NETLIST = "top.syn.json"
"""As Amaranth names it."""
LUTS_OF_A_LUT_RAM, FLIP_FLOPS_OF_A_LUT_RAM = 8, 6
"""A RAM16SDP4 takes a block of logic whole: its places of look-up tables and of flip-flops."""


def place_words(command: Sequence[str], clock_hz: float) -> list[str]:
    """Of nextpnr, for a command of Amaranth's for nextpnr-gowin, without the program's name.

    The netlist is top.json; constraints of clocks are none, so the clock that is aimed at is said.
    """
    said = dict(pairwise(command))
    words = ["--device", said["--device"], "--vopt", f"family={said['--family']}"]
    words += ["--vopt", f"cst={said['--cst']}", "--json", "top.json"]
    return [*words, "--freq", f"{clock_hz / 1e6:g}"]


def pack_words(command: Sequence[str]) -> list[str]:
    """Of gowin_pack, for a command of Amaranth's, of what nextpnr wrote as placed.json."""
    return [*command[1:-1], "placed.json"]


def places(utilization: Mapping[str, Any]) -> tuple[int, int]:
    """Places of look-up tables taken, and all, of what nextpnr reports.

    Bits of carry chains and memories of look-up tables take such places too.
    """
    used = {name: one["used"] for name, one in utilization.items()}
    taken = used["LUT4"] + used.get("ALU", 0)
    return taken + LUTS_OF_A_LUT_RAM * used.get("RAM16SDP4", 0), utilization["LUT4"]["available"]


def wrapper_pins(pins: Sequence[str]) -> str:
    """Constraints of the four pins of `fpga.wrapper`: nextpnr places no pin by itself."""
    names = ("clk", "rst", "shift_in", "shift_out")
    lines = [f'IO_LOC "{name}" {pin};\n' for name, pin in zip(names, pins, strict=True)]
    return "".join(lines)
