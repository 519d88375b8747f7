"""The default cell library: tests that need it, a changed copy, and a design mapped to it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rtl.synthesis.liberty import DEFAULT_LIBRARY

needs_library = pytest.mark.skipif(
    not DEFAULT_LIBRARY.is_file(), reason="no cell library: apt-get install qflow-tech-osu018"
)
timed = pytest.mark.skipif(
    shutil.which("sta") is None, reason="no OpenSTA: apt-get install opensta"
)

ANDS = """
module top(input clk, input rst, input [3:0] a, input [3:0] b, output reg [3:0] q);
  reg [3:0] x, y;
  always @(posedge clk) begin x <= a; y <= b; q <= x & y; end
endmodule
"""
"""Twelve flip-flops and four ANDs, by hand."""


def edited_library(folder: Path, edit: Callable[[str], str]) -> Path:
    """A copy of the default library, changed."""
    path = folder / "edited.lib"
    before = DEFAULT_LIBRARY.read_text()
    path.write_text(edit(before))
    assert path.read_text() != before
    return path
