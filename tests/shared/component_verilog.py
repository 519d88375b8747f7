"""A component alone as Verilog, its modules shared as in an emitted design."""

# The stubs leave rtlil out.
from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]
from amaranth.lib import wiring

from rtl.hierarchy import sharing
from rtl.to_verilog import rtlil_to_verilog


def verilog_of(component: wiring.Component) -> str:
    """What is emitted, with `top` on top: each repeated module once."""
    with sharing() as library:
        top = rtlil.convert(component, name="top", emit_src=False)
    modules = rtlil_to_verilog("\n".join([top, *library.texts.values()]))
    return "\n".join([modules, *library.sources.values()])
