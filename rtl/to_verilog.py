"""RTLIL as Verilog, by the yosys that Amaranth brings."""

from amaranth._toolchain.yosys import YosysError
from amaranth.back.verilog import (
    _convert_rtlil_text as convert,  # pyright: ignore[reportAttributeAccessIssue]
)

from archsim.errors import InputError
from rtl.empty_nets import without_empty_nets

__all__ = ["rtlil_to_verilog"]

CANNOT_RUN = ("WasmtimeError:", "MemoryError", "Could not find an acceptable Yosys binary")
"""What it says where the fault is not the design's: a full disk, too little memory, no yosys."""


def rtlil_to_verilog(text: str) -> str:
    """Verilog of RTLIL.  Raises `InputError` where yosys cannot even run."""
    try:
        return convert(without_empty_nets(text))
    except YosysError as error:
        said = str(error)
        for mark in CANNOT_RUN:
            if mark in said:
                why = " ".join(said[said.rindex(mark) :].split())
                raise InputError(f"yosys, which writes the Verilog, cannot run: {why}") from error
        raise
