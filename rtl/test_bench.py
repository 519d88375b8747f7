"""A self-checking test bench in plain Verilog: vectors of the model, no archsim to run it.

Verilog 2001, for Icarus, Verilator, and what vendors bring.  It offers the words of a
layer at every input port and compares those of every output port, with random stalls on all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archsim.layer.intake import Drawing
from archsim.machine.design import Design
from archsim.port_words import port_words
from archsim.ports import Port
from rtl.layer_case import random_layer

__all__ = ["test_bench"]

CYCLES_A_WORD = 200
"""Stalls and compute: a bench that takes longer than this a word has failed."""


def test_bench(design: Design, top: str, stem: str) -> dict[str, str]:
    """Files by name: STEM_tb.v, module TOP_tb, and STEM_PORT.hex, the words of each port.

    The layer is the kind's small one, its operands drawn; a word a line, the highest digit first.
    """
    layer = random_layer(design)
    words = port_words(design, layer, design.intake.synthetic(layer, Drawing()))
    ports = design.machine_model().ports
    files = {f"{stem}_{port.name}.hex": _hex(words[port.name], port.bits) for port in ports}
    return {f"{stem}_tb.v": _text(design, ports, words, top, stem), **files}


test_bench.__test__ = False  # type: ignore[attr-defined]


def _hex(words: NDArray[np.uint8], bits: int) -> str:
    digits = -(-bits // 4)
    lines = [word[::-1].tobytes().hex()[-digits:] for word in words] or ["0"]
    return "\n".join([*lines, ""])


def _text(
    design: Design, ports: tuple[Port, ...], words: Mapping[str, Any], top: str, stem: str
) -> str:
    counts = {port.name: len(words[port.name]) for port in ports}
    outputs = [port.name for port in ports if port.direction == "o"]
    wires = ", ".join(
        f".{name}__{part}({name}_{part})"
        for name in counts
        for part in ("payload", "valid", "ready")
    )
    most = CYCLES_A_WORD * sum(counts.values()) + 100_000
    done = " && ".join(f"{name}_at == {counts[name]}" for name in outputs)
    return _BENCH.format(
        summary=design.summary,
        top=top,
        ports="\n".join(_port(port, counts[port.name], stem) for port in ports),
        wires=wires,
        most=most,
        done=done,
        checked=sum(counts[name] for name in outputs),
    )


def _port(port: Port, count: int, stem: str) -> str:
    template = _INPUT if port.direction == "i" else _OUTPUT
    return template.format(
        name=port.name, high=port.bits - 1, last=max(count, 1) - 1, count=count, stem=stem
    )


_INPUT = """
  reg [{high}:0] {name}_words [0:{last}];
  initial $readmemh("{stem}_{name}.hex", {name}_words);
  integer {name}_at = 0;
  reg {name}_valid = 0;
  wire {name}_ready;
  wire [{high}:0] {name}_payload = {name}_words[{name}_at > {last} ? {last} : {name}_at];
  always @(posedge clk) if (!rst) begin
    if ({name}_valid && {name}_ready) {name}_at <= {name}_at + 1;
    if (!{name}_valid || {name}_ready)
      {name}_valid <= {name}_at + ({name}_valid ? 1 : 0) < {count} && ($random & STALL) == 0;
  end
"""

_OUTPUT = """
  reg [{high}:0] {name}_words [0:{last}];
  initial $readmemh("{stem}_{name}.hex", {name}_words);
  integer {name}_at = 0;
  wire {name}_valid;
  reg {name}_ready = 0;
  wire [{high}:0] {name}_payload;
  always @(posedge clk) if (!rst) begin
    {name}_ready <= ($random & STALL) == 0;
    if ({name}_valid && {name}_ready) begin
      if ({name}_at >= {count}) begin
        $display("FAIL: {name} gives more than {count} words");
        errors = errors + 1;
      end else if ({name}_payload !== {name}_words[{name}_at]) begin
        $display("FAIL: {name} word %0d is %h, not %h",
          {name}_at, {name}_payload, {name}_words[{name}_at]);
        errors = errors + 1;
      end
      {name}_at <= {name}_at + 1;
    end
  end
"""

_BENCH = """\
// A layer through {summary}, compared with archsim's model word for word.
//   iverilog -g2005 -s {top}_tb -o tb *.v && ./tb
//   or verilator --binary --timing -CFLAGS -std=c++20 -Wno-lint --top {top}_tb *.v
// STALL: a port stalls in each cycle in which a random number has one of these bits; 0: never.
module {top}_tb;
  parameter STALL = 1;
  reg clk = 0, rst = 1;
  integer cycle = 0, errors = 0, still = 0;
  always #5 clk = !clk;
{ports}
  {top} dut(.clk(clk), .rst(rst), {wires});
  always @(posedge clk) begin
    cycle <= cycle + 1;
    if (cycle == 3) rst <= 0;
    if ({done}) still <= still + 1;
    if (still == 100 || cycle == {most}) begin
      if (still != 100) $display("FAIL: not done after {most} cycles");
      else if (errors == 0) $display("PASS: {checked} words in %0d cycles", cycle - 104);
      else $display("FAIL: %0d errors", errors);
      $finish;
    end
  end
endmodule
"""
