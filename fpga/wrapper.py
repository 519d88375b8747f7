"""A unit with more ports than a chip has pins, between registers that four pins reach.

Inputs of the unit come from a shift register that is filled from a pin, a bit a cycle.  Its outputs
go to registers, and the exclusive or of all of them, four at a time with a register behind each
four, goes to a pin: nothing of the unit is without effect, and no path of the wrapper is longer
than one look-up table.  So every path of the unit is between registers, from its inputs and to its
outputs too, and the clock that is found is the unit's.

The unit is mapped before, on its own, and does not change: what it takes is counted without the
wrapper, and nothing is simplified across the border.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["UNIT", "WRAPPER", "wrapper_verilog"]

WRAPPER = "wrapper"
UNIT = "unit"

_GLOBAL = {"clk": "clk", "rst": "reset", "aclk": "clk", "aresetn": "reset_n"}
"""Ports that are not of the shift register, and what drives them."""

_SOURCE = """\
(* blackbox *)
module {top}({declarations});
endmodule

module wrapper(input clk, input rst, input shift_in, output shift_out);
  reg reset, reset_n;
  reg [{last_input}:0] inputs;
  wire [{last_output}:0] outputs;
  always @(posedge clk) begin
    reset <= rst;
    reset_n <= ~rst;
    inputs <= {{inputs, shift_in}};
  end
  {top} unit({connections});
{tree}endmodule
"""


def wrapper_verilog(top: str, module: Mapping[str, Any]) -> str:
    """The wrapper of module `top`, whose ports are those of yosys' JSON, and `top` as a black box.

    Ports `clk` and `rst` are the clock and the synchronous reset, and may be missing; behind AXI
    they are `aclk` and `aresetn`, which is low when active.
    """
    declarations: list[str] = []
    connections: list[str] = []
    count = {"input": 0, "output": 0}
    for name, port in module["ports"].items():
        bits, direction = len(port["bits"]), port["direction"]
        declarations.append(f"{direction} [{bits - 1}:0] \\{name} ")  # escaped: it may be a keyword
        if name in _GLOBAL:
            connections.append(f".\\{name} ({_GLOBAL[name]})")
            continue
        first = count[direction]
        connections.append(f".\\{name} ({direction}s[{first + bits - 1}:{first}])")
        count[direction] += bits
    outputs = max(count["output"], 1)
    return _SOURCE.format(
        top=top,
        declarations=", ".join(declarations),
        connections=", ".join(connections),
        last_input=max(count["input"], 1) - 1,
        last_output=outputs - 1,
        tree=_tree(outputs),
    )


def _tree(bits: int) -> str:
    """Registers of the outputs, then of the exclusive or of four of them, until one is left."""
    lines = [_level(0, bits, "outputs")]
    level = 0
    while bits > 1:
        fours = range(0, bits, 4)
        terms = [f"^level_{level}[{min(at + 3, bits - 1)}:{at}]" for at in reversed(fours)]
        level, bits = level + 1, len(fours)
        lines.append(_level(level, bits, f"{{{', '.join(terms)}}}"))
    return "".join([*lines, f"  assign shift_out = level_{level}[0];\n"])


def _level(number: int, bits: int, value: str) -> str:
    name = f"level_{number}"
    return f"  reg [{bits - 1}:0] {name};\n  always @(posedge clk) {name} <= {value};\n"
