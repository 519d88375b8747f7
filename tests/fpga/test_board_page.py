"""What `fpga build` says of a build: its page, its JSON and what it prints."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Call

from archsim.machine.design import Design
from archsim.machine.registry import load_design, with_settings
from archsim.simulate import simulate
from fpga import build as builder
from fpga.board_page import board_page, build_record, network_times, rate_text
from fpga.boards import Board, board_named
from fpga.build import BoardBuild
from fpga.cells import Cells
from fpga.nextpnr import SlowestPath
from fpga.places import PLACES
from workloads.errors import WorkloadError

BOARD = board_named("ulx3s-85k")
SMALL = with_settings(load_design("edge-16"), ["rows=2", "columns=2"])
COMMAND = ("fpga", "build", "edge-16", "--board", "ulx3s-85k")
SPEEDS = {"1": 40e6, "2": 65.9e6, "3": 50e6}


def made(name: str = "core.array", **changed: Any) -> BoardBuild:
    cells = Cells(lut4=8915, carry=3192, lut_rams=163, flip_flops=8147, block_rams=107, dsps=13)
    values: dict[str, Any] = {
        "board": "ulx3s-85k",
        "clock_hz": 25e6,
        "baud": 115_200,
        "bit_cycles": 217,
        "cells": cells,
        "by_module": {name: cells.record()},
        "places": 13_085,
        "places_on_chip": 83_640,
        "fmax_hz": SPEEDS,
        "seed": 2,
        "path": SlowestPath(start=name, end="b", logic_ns=7.48, routing_ns=7.69, levels=3),
        "sha256": "50fa7f",
        "tools": {"yosys": "0.70"},
    }
    return BoardBuild(**{**values, **changed})


@pytest.fixture
def places(tmp_path: Path) -> Path:
    cells = [["core.array", "LUT4", 1, 2], ["core.window", "TRELLIS_FF", 3, 4]]
    (tmp_path / PLACES).write_text(json.dumps({"columns": 10, "rows": 8, "cells": cells}))
    return tmp_path / PLACES


def test_times_are_the_models() -> None:
    (time,) = network_times(SMALL, ["alexnet"])
    cycles = simulate(SMALL, "alexnet").cycles
    assert time.cycles == cycles
    assert time.seconds(25e6) == cycles / 25e6
    assert rate_text(time, 25e6).endswith(" a second")


def test_times_that_hang_on_values_are_not_known() -> None:
    """And a network that nobody knows is the user's error, before hours of placing."""
    (time,) = network_times(load_design("scnn"), ["alexnet"])
    assert time.cycles is time.seconds(1e6) is None
    assert "depend on the operands" in rate_text(time, 1e6)
    with pytest.raises(WorkloadError, match="alexnet"):
        network_times(SMALL, ["alexnett"])


def test_the_record() -> None:
    times = network_times(SMALL, ["alexnet"])
    record = json.loads(json.dumps(build_record(made(), BOARD, times)))
    assert record["spread_hz"] == {"least": 40e6, "median": 50e6, "most": 65.9e6}
    used = record["utilisation"]
    assert used["block RAMs"] == {"takes": 107, "has": 208, "share": 107 / 208}
    assert used["look-up tables"]["takes"] == 8915 + 3192 + 6 * 163
    (network,) = record["networks"]
    assert network["seconds"] == network["cycles"] / 25e6
    assert network["seconds_at_fmax"] == network["cycles"] / 65.9e6


@pytest.mark.parametrize("name", ["core.array", "<script>alert(1)</script>", "a&b\u202e$x$"])
def test_the_page_needs_nothing_else(name: str, places: Path) -> None:
    times = network_times(SMALL, ["alexnet"]) + network_times(load_design("scnn"), ["alexnet"])
    page = board_page(made(name), SMALL, BOARD, places=places, times=times, command_line=name)
    assert "<script>alert" not in page
    assert not any(f'{word}="http' in page for word in ("src", "href"))
    for text in ("65.9 MHz", "107 of 208", "13,085", "7.48 ns in cells", "SHA-256 50fa7f"):
        assert text in page
    assert page == board_page(
        made(name), SMALL, BOARD, places=places, times=times, command_line=name
    )


def test_a_clock_that_is_missed_is_said(places: Path) -> None:
    page = board_page(made(clock_hz=100e6), SMALL, BOARD, places=places)
    assert "TOO SLOW for the board" in page
    assert "Time of one inference" not in page


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch, places: Path) -> None:
    """A build that takes no time."""

    def build(design: Design, board: Board, *, folder: Path, **_: Any) -> BoardBuild:
        for name in ("yosys.log", "nextpnr.log", "nextpnr.json", "core.bit"):
            (folder / name).write_text("")
        (folder / PLACES).write_bytes(places.read_bytes())
        return made()

    monkeypatch.setattr(builder, "build", build)


@pytest.mark.usefixtures("placed")
def test_what_is_left_and_printed(archsim: Call, tmp_path: Path) -> None:
    words = [*COMMAND, "--set", "rows=2", "--set", "columns=2"]
    said = archsim(*words, "-o", "one", "--network", "alexnet", "--network", "resnet18")
    assert said.code == 0
    assert "51.4% of 208 block RAMs" in said.out.replace("\n", " ")
    assert "alexnet at 25 MHz: " in said.out
    assert "resnet18 at 25 MHz: " in said.out
    page = (tmp_path / "one" / "report" / "index.html").read_text()
    assert "--network alexnet" in page
    told = archsim(*words, "-o", "two", "--json")
    assert [one["network"] for one in json.loads(told.out)["networks"]] == ["resnet50"]
    kept = (tmp_path / "two" / "report" / "ooc_synth_and_timing.json").read_text()
    assert json.loads(kept) == json.loads(told.out)


@pytest.mark.usefixtures("placed")
def test_an_unknown_network_ends_before_anything_is_made(archsim: Call, tmp_path: Path) -> None:
    said = archsim(*COMMAND, "-o", "new", "--network", "resnet5")
    assert said.code == 2
    assert said.err.count("\n") == 1
    assert "resnet50" in said.err
    assert not (tmp_path / "new").exists()
