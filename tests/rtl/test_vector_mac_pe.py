"""The PE that is measured beside VS-Quant's: its netlist answers, and faults in it are seen."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archsim.papers.vsquant_hardware import BASELINE, measured, read_data
from archsim.papers.vsquant_pe import Pe
from archsim.papers.vsquant_points import point
from rtl.core.vector_array import VectorArray
from rtl.synthesis.flat_netlist import FlatNetlist
from rtl.synthesis.liberty import DEFAULT_LIBRARY, read_library
from rtl.toolchain import yosys_version

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

needs_library = pytest.mark.skipif(
    not DEFAULT_LIBRARY.is_file(), reason="apt-get install qflow-tech-osu018"
)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("vector_mac_pe")


def test_the_report_has_the_data(bench: Any) -> None:
    shown = (BENCHMARKS / "vector_mac_pe.md").read_text(encoding="utf-8")
    for row in read_data()["point"]:
        assert bench.table_row(row) in shown
    for name in ("library", "tools", "date"):
        assert str(read_data()[name]) in shown


def test_collectors_are_mapped_and_other_memories_are_not_there(bench: Any) -> None:
    text = bench.verilog(VectorArray(design=Pe(at=point("4/4/4/6")).lane, lanes=2))
    assert "sram" not in text
    assert "module collector_words" in text
    assert "parameter BITS = 26" in text and "parameter DEPTH = 16" in text


@pytest.mark.slow
@needs_library
@pytest.mark.parametrize("setting", [(BASELINE, 0, False), ("4/4/4/4", 4, True)])
def test_two_points_are_measured_again(bench: Any, setting: tuple[str, int, bool]) -> None:
    """Areas exactly; energies, sums of floats, to a millionth and to what the file rounds."""
    text, bits, gated = setting
    library = read_library(DEFAULT_LIBRARY)
    data = read_data()
    if library.digest != data["library_sha256"] or f"Yosys {yosys_version()} " not in data["tools"]:
        pytest.skip("the data are of another library or yosys: run benchmarks/vector_mac_pe.py")
    again = bench.measure(Pe(at=point(text), product_bits=bits or None, gated=gated), library)
    kept = measured()[setting]
    areas = {name: round(value, 1) for name, value in again.area_um2.items()}
    assert areas == kept.area_um2
    assert again.zero_steps == pytest.approx(kept.zero_steps, abs=5e-5)
    for name, energy in kept.energy_pj.items():
        assert again.energy_pj[name] == pytest.approx(energy, rel=1e-6, abs=5.1e-4)


def stuck(flat: FlatNetlist, number: int) -> FlatNetlist:
    """A gate whose output is always 0."""
    tables = flat.logic.tables.copy()
    tables[number] = 0
    return replace(flat, logic=replace(flat.logic, tables=tables))


@pytest.mark.slow
@needs_library
def test_a_faulty_netlist_is_seen(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate behind an output bit stuck at 0, in the array or in the PPU."""
    library, pe = read_library(DEFAULT_LIBRARY), Pe(at=point("3/3/-/3"))
    bench.measure(pe, library)
    right = bench.mapped
    for kind in ("VectorArray", "VectorRequantize"):

        def faulty(unit: Any, cells: Any, kind: str = kind) -> FlatNetlist:
            flat = right(unit, cells)
            if type(unit).__name__ != kind:
                return flat
            sums = "sums" if kind == "VectorArray" else "o"
            driver = int(np.flatnonzero(flat.logic.outputs == flat.ports[sums][1])[0])
            return stuck(flat, driver)

        monkeypatch.setattr(bench, "mapped", faulty)
        with pytest.raises(AssertionError):
            bench.measure(pe, library)


@pytest.mark.slow
@needs_library
@pytest.mark.parametrize("gated", [False, True])
def test_what_is_taken_to_be_held_is_in_the_netlist(bench: Any, gated: bool) -> None:
    """Registers with an enable are no more than a module has; all of those that hold weights."""
    pe = Pe(at=point("4/4/4/4"), product_bits=4, gated=gated)
    flat = bench.mapped(VectorArray(design=pe.lane, lanes=16), read_library(DEFAULT_LIBRARY))
    registers = {one.module: one.gates.registers for one in flat.instances}
    assert registers["top"] == 16 * (16 * 4 + 4)
    assert registers["collector_words"] >= 16 * pe.mac.accumulator_bits
    held = 16 * (4 + 4) + 4
    ungated = Pe(at=pe.at, product_bits=4)
    without = bench.mapped(
        VectorArray(design=ungated.lane, lanes=16), read_library(DEFAULT_LIBRARY)
    )
    plain = {one.module: one.gates.registers for one in without.instances}
    assert registers["vector_lane"] - plain["vector_lane"] == held * gated
    for one in flat.instances:
        share = bench._stopped_share(pe, one.module, one.gates.registers, 0.07)
        assert 0 <= share < 1
