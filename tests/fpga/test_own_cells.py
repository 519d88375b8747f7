"""Cells that the flow puts into places of emitted Verilog do what stands there otherwise."""

from pathlib import Path

import pytest

from fpga.own_cells import CELLS_FILE, own_verilog
from rtl.core.accumulator import SOURCE
from rtl.toolchain import ToolchainError, lint, run_yosys

MODELS = "+/lattice/cells_sim_ecp5.v"


def prove_equal(cells: str, bits: int, folder: Path) -> None:
    """By induction, from equal registers: of any inputs, in every cycle."""
    (folder / "plain.v").write_text(SOURCE)
    (folder / CELLS_FILE).write_text(cells)
    made: list[str] = []
    for name, files in (("plain", "plain.v"), ("own", f"{MODELS} {CELLS_FILE}")):
        made += [f"read_verilog -overwrite {files}", f"chparam -set BITS {bits} accumulator"]
        made += ["hierarchy -top accumulator", "proc", "flatten", "opt_clean"]
        made += [f"rename accumulator {name}", f"design -stash {name}"]
    made += [f"design -copy-from {name} -as {name} {name}" for name in ("plain", "own")]
    made += ["miter -equiv -flatten -make_outputs plain own miter", "hierarchy -top miter"]
    made += ["sat -verify -tempinduct -prove trigger 0 miter"]
    run_yosys(made, folder)


def test_the_place_is_clean_verilog() -> None:
    assert lint(SOURCE, "accumulator", ignore=()) == []


@pytest.mark.parametrize("bits", [1, 24, 33])
def test_a_sum_in_the_carry_chain_is_the_sum(bits: int, tmp_path: Path) -> None:
    prove_equal(own_verilog("ecp5"), bits, tmp_path)


@pytest.mark.parametrize("fault", [("16'hC6CC", "16'hC6CA"), (".C0(first)", ".C0(1'b0)")])
def test_a_faulty_one_is_not(fault: tuple[str, str], tmp_path: Path) -> None:
    cells = own_verilog("ecp5")
    assert fault[0] in cells
    with pytest.raises(ToolchainError, match="proof"):
        prove_equal(cells.replace(*fault), 8, tmp_path)
