"""The page of FPGA quality: its rows are the script's, and how the script makes and puts them."""

import importlib
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fpga.cells import Cells
from fpga.devices import Target
from fpga.nextpnr import SlowestPath
from fpga.report import FpgaReport

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
CELLS = Cells(lut4=1234, flip_flops=5, block_rams=3)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("fpga_quality")


def placed(mhz: float, start: str) -> FpgaReport:
    path = SlowestPath(start=start, end="unit.b_LUT4_D_1", logic_ns=1.0, routing_ns=2.0, levels=3)
    return FpgaReport(
        name="unit", target=Target(), cells=CELLS, wrapper=Cells(), places=9, places_on_chip=10,
        fmax_hz=mhz * 1e6, path=path, uses_dsps=True, tools={},
    )  # fmt: skip


def test_the_page_has_the_rows_of_the_script(script: Any) -> None:
    text = script.PAGE.read_text(encoding="utf-8")
    table = text[text.index(script.HEAD) + len(script.HEAD) + 1 :]
    lines = [one.strip("| ").split(" | ") for one in table[: table.index("\n\n")].splitlines()]
    known = {name: row for kind in script.KINDS.values() for name, row in kind().items()}
    assert [one[0] for one in lines] == list(known)
    for one in lines:
        row = known[one[0]]
        assert one[8] == row.wanted
        assert ("seed" in one[7] or " to " in one[7]) == (row.seeds != 0), one[0]
        if row.seeds == 0:
            assert one[7] == (row.why or "–")


@pytest.mark.parametrize(
    ("clocks", "shown", "start"),
    [
        ([90.0], "90.0 (1 seed)", "at_90"),
        ([90.0, 70.0], "80.0 (70.0 to 90.0)", "at_70"),
        ([90.0, 70.0, 81.0], "81.0 (70.0 to 90.0)", "at_81"),
    ],
)
def test_a_line(script: Any, clocks: list[float], shown: str, start: str) -> None:
    row = script.Row(make=lambda: "", wanted="75 MHz")
    found = [placed(mhz, f"unit.at_{mhz:.0f}_TRELLIS_FF_Q") for mhz in clocks]
    assert script.line("one", row, CELLS, found) == (
        f"| one | 1,234 | 0 | 0 | 5 | 3 | 0 | {shown} | 75 MHz | {start} to b: 1.00 + 2.00 ns |"
    )
    not_placed = replace(row, seeds=0, why="too large")
    assert script.line("one", not_placed, CELLS, []).endswith("| too large | 75 MHz | – |")


def test_lines_are_put_in_their_places(script: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    shutil.copy(script.PAGE, page)
    before = page.read_text(encoding="utf-8").splitlines()
    row = script.Row(make=lambda: "", wanted="75 MHz")
    new = script.line("PE of sparsetrain", row, CELLS, [placed(33.0, "unit.a")])
    script.write({"PE of sparsetrain": new}, page)
    after = page.read_text(encoding="utf-8").splitlines()
    changed = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    assert [pair[1] for pair in changed] == [new]
    assert changed[0][0].startswith("| PE of sparsetrain |")


def test_a_row_that_is_not_there(script: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        script.main(["units", "--only", "SCNN"])
    said = capsys.readouterr()
    assert ended.value.code == 2
    assert "--only must be in the name of a row (lane of vsq-16; " in said.err
    assert not said.out
