"""Cells that the flow puts into places of emitted Verilog do what stands there otherwise."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyosys
import pytest

from fpga.cells import Cells
from fpga.devices import Target
from fpga.own_cells import CELLS_FILE, own_verilog, paired
from fpga.place import resources
from rtl.core import accumulator, product
from rtl.core.stationary_array import StationaryArray
from rtl.toolchain import ToolchainError, lint, run_yosys


def equal(one: str, other: Sequence[str], name: str, given: str, folder: Path) -> None:
    """Prove by induction that module `name` of a text is that which passes leave, of any inputs."""
    (folder / "plain.v").write_text(one)
    made: list[str] = []
    for kept, passes in (("plain", ["read_verilog -overwrite plain.v"]), ("own", other)):
        made += [*passes, f"hierarchy -top {name}", "proc", "flatten", "opt_clean"]
        made += [f"rename {name} {kept}", f"design -stash {kept}"]
    made += [f"design -copy-from {kept} -as {kept} {kept}" for kept in ("plain", "own")]
    made += ["miter -equiv -flatten -make_outputs plain own miter", "hierarchy -top miter"]
    made += ["opt -full", "async2sync", "opt -full"]
    made += [f"sat -verify -tempinduct {given} -prove trigger 0 miter"]
    run_yosys(made, folder)


def with_sizes(source: str, sizes: Mapping[str, int]) -> str:
    """A text with other defaults of its parameters."""
    for name, value in sizes.items():
        source = re.sub(rf"parameter {name} = \d+", f"parameter {name} = {value}", source)
    return source


def prove_sum(cells: str, bits: int, folder: Path) -> None:
    """Both begin with equal registers."""
    (folder / CELLS_FILE).write_text(with_sizes(cells, {"BITS": bits}))
    passes = [f"read_verilog -overwrite +/lattice/cells_sim_ecp5.v {CELLS_FILE}"]
    plain = with_sizes(accumulator.SOURCE, {"BITS": bits})
    equal(plain, passes, "accumulator", "", folder)


def prove_products(
    bits: tuple[int, int],
    registers: int,
    folder: Path,
    *,
    fault: Callable[[Any], object] = lambda cell: None,
    count: int = 2,
) -> None:
    """Products of one clock, as `paired` leaves them; no register of a SB_MAC16 is reset.

    fault: done to the multiplier's cell.
    """
    sizes = {"A_BITS": bits[0], "B_BITS": bits[1], "REGISTERS": registers}
    sides = list(zip(bits, "ab", strict=True))
    ports = [f"input [{n - 1}:0] {name}{at}" for at in range(count) for n, name in sides]
    ports += [f"output [{sum(bits) - 1}:0] o{at}" for at in range(count)]
    both = f"module both(input clk, input rst, {', '.join(ports)});\n"
    for at in range(count):
        both += f"product p{at}(.clk(clk), .rst(rst), .a(a{at}), .b(b{at}), .o(o{at}));\n"
    both += "endmodule\n"
    (folder / CELLS_FILE).write_text(with_sizes(own_verilog("ice40"), sizes) + both)
    passes = [f"read_verilog {CELLS_FILE}", "hierarchy -top both", "proc", "flatten"]
    run_yosys([*passes, "opt_clean", "write_json both.json"], folder)
    netlist = json.loads((folder / "both.json").read_text())
    paired(netlist)
    (cell,) = [
        one for one in netlist["modules"]["both"]["cells"].values() if one["type"] == "SB_MAC16"
    ]
    fault(cell)
    (folder / "both.json").write_text(json.dumps(netlist))
    (folder / "mac.v").write_text(MAC)
    passes = ["read_verilog mac.v", "read_json both.json"]
    given = "-set-init-zero -set in_rst 0"
    equal(with_sizes(product.SOURCE, sizes) + both, passes, "both", given, folder)


MODELS = (Path(pyosys.__file__).parent / "share" / "ice40" / "cells_sim.v").read_text()
MAC = MODELS[MODELS.index("module SB_MAC16") :].partition("endmodule")[0] + "endmodule\n"
"""Yosys' model of the multiplier; of all others it takes a minute to read."""


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (accumulator.SOURCE, "accumulator"),
        (product.SOURCE, "product"),
        (product.LUT_SOURCE, "lut_product"),
    ],
)
def test_the_place_is_clean_verilog(source: str, name: str) -> None:
    assert lint(source, name, ignore=("PROCASSINIT",)) == []


@pytest.mark.parametrize("bits", [1, 24, 33])
def test_a_sum_in_the_carry_chain_is_the_sum(bits: int, tmp_path: Path) -> None:
    prove_sum(own_verilog("ecp5"), bits, tmp_path)


@pytest.mark.parametrize("fault", [("16'hC6CC", "16'hC6CA"), (".C0(first)", ".C0(1'b0)")])
def test_a_faulty_one_is_not(fault: tuple[str, str], tmp_path: Path) -> None:
    cells = own_verilog("ecp5")
    assert fault[0] in cells
    with pytest.raises(ToolchainError, match="proof"):
        prove_sum(cells.replace(*fault), 8, tmp_path)


@pytest.mark.parametrize(
    ("bits", "registers", "count"),
    [
        pytest.param((8, 8), 2, 2, marks=pytest.mark.slow),
        ((4, 4), 2, 2),
        ((3, 5), 1, 2),
        ((8, 2), 2, 1),
    ],
)
def test_both_halves_of_a_multiplier_are_products(
    bits: tuple[int, int], registers: int, count: int, tmp_path: Path
) -> None:
    prove_products(bits, registers, tmp_path, count=count)


def _set(kind: str, name: str, value: Any) -> Callable[[Any], object]:
    return lambda cell: cell[kind].__setitem__(name, value)


def _exchange(port: str) -> Callable[[Any], object]:
    """Both halves of a port."""

    def change(cell: Any) -> None:
        nets = cell["connections"]
        half = len(nets[port]) // 2
        nets[port] = nets[port][half:] + nets[port][:half]

    return change


@pytest.mark.parametrize(
    "fault",
    [
        _set("parameters", "A_SIGNED", "0"),
        _set("parameters", "B_REG", "0"),
        _set("parameters", "TOPOUTPUT_SELECT", "00"),
        _set("parameters", "MODE_8x8", "0"),
        _set("parameters", "BOT_8x8_MULT_REG", "0"),
        _set("connections", "CE", ["0"]),
        _exchange("A"),
        _exchange("O"),
    ],
)
def test_a_faulty_multiplier_is_not(
    fault: Callable[[Any], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # the log then comes behind its error
    with pytest.raises(ToolchainError, match="proof"):
        prove_products((8, 8), 2, tmp_path, fault=fault)


def _half(first: int, *, clock: int = 2, registers: int = 2) -> dict[str, Any]:
    """A product of nets from a number on: a, b and the product."""
    nets = list(range(first, first + 32))
    connections = {"clk": [clock], "a": nets[:8], "b": nets[8:16], "o": nets[16:]}
    return {"type": f"half_of_a_mac_{registers}", "connections": connections}


def test_neighbours_share_a_multiplier() -> None:
    """By the numbers in their names; not of two clocks, nor with other registers."""
    cells: dict[str, Any] = {f"pe_{n}": _half(100 * n) for n in (1, 2, 10)}
    cells["early"] = _half(2000, registers=1)
    cells["elsewhere"] = _half(3000, clock=3)
    cells["other"] = {"type": "SB_LUT4", "connections": {"A": [7]}}
    paired({"modules": {"top": {"cells": cells}, "half_of_a_mac_1": {}}})
    assert sorted(cells) == ["early", "elsewhere", "other", "pe_1", "pe_10"]
    assert {cells[name]["type"] for name in cells} == {"SB_LUT4", "SB_MAC16"}
    joined = cells["pe_1"]["connections"]
    assert joined["A"] == [*range(100, 108), *range(200, 208)]
    assert joined["B"] == [*range(108, 116), *range(208, 216)]
    assert joined["O"] == [*range(116, 132), *range(216, 232)]
    assert cells["pe_10"]["connections"]["O"] == list(range(1016, 1032))
    assert [cells[name]["parameters"]["A_REG"] for name in ("pe_1", "early")] == ["1", "0"]


@pytest.mark.parametrize("family", ["ecp5", "ice40", "gowin"])
def test_rows_have_multipliers_or_none(family: str) -> None:
    """Two rows of three: the second of look-up tables; two products in one multiplier on iCE40."""
    target = Target(family=family, device="up5k" if family == "ice40" else "")
    sizes: dict[str, Any] = {"rows": 2, "columns": 3, "operand_bits": 8, "accumulator_bits": 16}
    both, one = (
        resources(
            StationaryArray(**sizes, across=False, product_registers=2, lut_rows=rows),
            target=target,
        )
        for rows in (0, 1)
    )
    assert (both.dsps, one.dsps) == ((3, 2) if family == "ice40" else (6, 3))
    assert _places(one) - _places(both) > 3 * 100


def _places(cells: Cells) -> int:
    return cells.lut4 + cells.carry
