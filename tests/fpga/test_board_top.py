"""The top of a board's design: its clock, and what the tools are told of it."""

from typing import Any

import pytest

from fpga.board_top import BoardTop
from fpga.boards import BOARDS, board_named

CORE = """\
module core(input clk, input rst, input [7:0] rx__payload, input rx__valid, output rx__ready,
  output [7:0] tx__payload, output tx__valid, input tx__ready);
endmodule
"""


def files(board: str, divisor: int) -> dict[str, Any]:
    where = board_named(board)
    top = BoardTop(CORE, clock_hz=where.clock_hz, divisor=divisor, baud=9600)
    return where.open().prepare(top, "top", emit_src=False).files


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", BOARDS)
@pytest.mark.parametrize("divisor", [1, 4])
def test_every_board_takes_a_divisor(name: str, divisor: int) -> None:
    assert "core.v" in files(name, divisor)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_divided_clock_is_said_to_the_tools() -> None:
    said = files("versa-ecp5", 4)["top.lpf"]
    assert 'FREQUENCY NET "divided" 25000000.0 HZ;' in said
    assert 'FREQUENCY PORT "clk100_0__p" 100000000.0 HZ;' in said


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_divided_clock_of_gowin_has_a_wire_of_clocks() -> None:
    """Or nextpnr takes it through the fabric: skews of 4 ns, and holds that are violated."""
    assert "cell \\BUFG" in files("tang-nano-9k", 2)["top.il"]
    assert "cell \\BUFG" not in files("tang-nano-9k", 1)["top.il"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_oscillator_on_the_chip_divides_its_clock_itself() -> None:
    for divisor, frequency in ((1, 240 // 24), (4, 240 // 6)):
        text = files("tang-nano", divisor)["top.il"]
        (line,) = (one for one in text.splitlines() if "FREQ_DIV" in one)
        assert int(line.split()[-1]) == frequency
