"""Which names a module may have in Verilog."""

import re

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_RESERVED = """
always and assign automatic begin buf case casex casez cell config deassign default defparam
design disable edge else end endcase endconfig endfunction endgenerate endmodule endspecify
endtable endtask event for force forever fork function generate genvar if ifnone incdir include
initial inout input instance integer join large liblist library localparam macromodule medium
module nand negedge nmos nor noshowcancelled not notif0 notif1 or output parameter pmos posedge
primitive pulldown pullup rcmos real realtime reg release repeat rnmos rpmos rtran scalared
showcancelled signed small specify specparam strong0 strong1 supply0 supply1 table task time
tran tri tri0 tri1 triand trior trireg unsigned use vectored wait wand weak0 weak1 while wire
wor xnor xor bit break byte class clocking const constraint continue do enum export extends
final import int interface logic longint modport new null package packed priority program
property protected pure rand ref return sequence shortint static string struct super this type
typedef union unique var virtual void with
"""
"""Verilog's, and those of SystemVerilog, as which many tools read the file."""

_KEYWORDS = frozenset(_RESERVED.split())


def is_identifier(name: str) -> bool:
    """Whether `name` can be written as it is: plain letters, digits, underscores, no keyword."""
    return _IDENTIFIER.fullmatch(name) is not None and name not in _KEYWORDS
