"""Cells of an FPGA's netlist, counted by what they take on the chip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rtl.toolchain import ToolchainError

__all__ = ["PIN_CELLS", "Cells", "cells_of", "without_pins"]

PIN_CELLS = frozenset(
    (
        *("TRELLIS_IO", "SB_IO", "SB_GB", "SB_GB_IO", "GSR", "SGSR", "DCCA", "IB", "OB", "BB"),
        *("IBUF", "OBUF", "TBUF", "IOBUF", "BUFG", "OSCH"),
    )
)
"""Of pins and of clocks, which are on every board."""


@dataclass(frozen=True, kw_only=True)
class Cells:
    """What a netlist takes.

    lut4: look-up tables of up to 4 inputs. carry: bits of carry chains; on ECP5 and Gowin each
    takes the place of a look-up table of its own (a CCU2C has two), on iCE40 it lies beside one
    that is counted in lut4. lut_rams: memories of 16 × 4 bits made of look-up tables, not on iCE40.
    block_rams: of 18 Kbit on ECP5 and Gowin, of 4 Kbit on iCE40. dsps: multipliers; on Gowin of
    9 × 9, one of 18 × 18 counting as two, as they share their place.
    Multiplexers that join look-up tables (PFUMX, L6MUX21, MUX2_LUT5 …) take no place of their own.
    """

    lut4: int = 0
    carry: int = 0
    lut_rams: int = 0
    flip_flops: int = 0
    block_rams: int = 0
    dsps: int = 0

    def record(self) -> dict[str, int]:
        """As plain data."""
        return asdict(self)


_KINDS: Mapping[str, tuple[str, int]] = {
    "LUT4": ("lut4", 1),
    "CCU2C": ("carry", 2),
    "TRELLIS_DPR16X4": ("lut_rams", 1),
    "TRELLIS_FF": ("flip_flops", 1),
    "DP16KD": ("block_rams", 1),
    "PDPW16KD": ("block_rams", 1),
    "MULT18X18D": ("dsps", 1),
    "SB_LUT4": ("lut4", 1),
    "SB_CARRY": ("carry", 1),
    "SB_RAM40_4K": ("block_rams", 1),
    "SB_MAC16": ("dsps", 1),
    **{f"LUT{inputs}": ("lut4", 1) for inputs in (1, 2, 3)},
    "ALU": ("carry", 1),
    "RAM16SDP4": ("lut_rams", 1),
    **dict.fromkeys(("SP", "SPX9", "SDPB", "SDPX9B", "DPB", "DPX9B", "pROM", "pROMX9"),
                    ("block_rams", 1)),
    "MULT9X9": ("dsps", 1),
    "MULT18X18": ("dsps", 2),
    "MULT36X36": ("dsps", 8),
}  # fmt: skip

_FREE = frozenset(
    {"PFUMX", "L6MUX21", "$scopeinfo", "VLO", "VHI", "GND", "VCC"}
    | {f"MUX2_LUT{inputs}" for inputs in (5, 6, 7, 8)}
)


def _kind(cell: str) -> tuple[str, int] | None:
    if cell.startswith(("SB_DFF", "DFF")):  # with enable, set or reset, of either edge
        return "flip_flops", 1
    if cell.startswith("SB_RAM40_4K"):
        return "block_rams", 1
    return _KINDS.get(cell)


def without_pins(module: Mapping[str, Any]) -> dict[str, Any]:
    """A flat module without the cells of its pins."""
    cells = {n: one for n, one in module["cells"].items() if one["type"] not in PIN_CELLS}
    return {"cells": cells}


def cells_of(module: Mapping[str, Any]) -> Cells:
    """Count the cells of a flat module as yosys writes it in JSON.

    Raises `ToolchainError` for a cell that is none of the family's: what cannot be counted must
    not be left out.
    """
    found: Counter[str] = Counter()
    for name, count in Counter(cell["type"] for cell in module["cells"].values()).items():
        if name in _FREE:
            continue
        kind = _kind(name)
        if kind is None:
            raise ToolchainError(f"the netlist has {count} cells of the unknown kind {name}")
        found[kind[0]] += kind[1] * count
    return Cells(**found)
