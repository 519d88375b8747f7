"""Energy and area on the command line: technologies, voltages, reports."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import Call, good, refused

from archsim import EDGE_16, simulate
from archsim.cli.layers import si
from archsim.energy import account
from workloads.builtin import builtin

RUN = ("run", "edge-16", "alexnet", "--timing-only")


def test_the_account_is_printed_with_its_technology_and_what_is_missing(archsim: Call) -> None:
    lines = good(archsim(*RUN)).splitlines()
    cost = account(simulate(EDGE_16, builtin("alexnet")), "45nm")
    (energy,) = [line for line in lines if line.startswith("energy: ")]
    assert energy.startswith(f"energy: {si(cost.total * 1e-12, 'J')}; ")
    share = 100 * cost.by_group["DRAM"] / cost.total
    assert f"DRAM {share:.0f} %" in energy
    assert cost.area_um2 is not None
    (area,) = [line for line in lines if line.startswith("area: ")]
    assert area.startswith(f"area: {cost.area_um2 / 1e6:.3g} mm², without wires: ")
    assert f"technology 45nm: {cost.technology.title}" in lines
    assert [line for line in lines if line.startswith("left out: leakage of ")]


def test_json_has_the_account(archsim: Call) -> None:
    record = json.loads(good(archsim(*RUN, "--technology", "7nm", "--json")))
    cost = account(simulate(EDGE_16, builtin("alexnet")), "7nm")
    assert record["energy"]["total"] == pytest.approx(cost.total)
    assert record["area"]["total_um2"] == pytest.approx(cost.area_um2)
    assert record["technology"]["name"] == "7nm"
    assert set(record["energy"]["layers"]) == set(cost.layers)


def test_no_energy_if_none_is_wanted(archsim: Call) -> None:
    said = good(archsim(*RUN, "--technology", "none"))
    assert "energy" not in said
    record = json.loads(good(archsim(*RUN, "--technology", "none", "--json")))
    assert record["energy"] is None


def test_a_default_that_does_not_fit_is_said_and_does_no_harm(archsim: Call) -> None:
    narrow = (*RUN, "--set", "operand_bits=4")
    said = good(archsim(*narrow))
    assert "energy: not computed: array.mac: table horowitz-2014 has no multiplier" in said
    record = json.loads(good(archsim(*narrow, "--json")))
    assert record["energy"] is None
    assert "horowitz-2014" in record["why_no_energy"]


def test_a_chosen_one_that_does_not_fit_is_refused(archsim: Call) -> None:
    message = refused(archsim(*RUN, "--set", "operand_bits=4", "--technology", "45nm"))
    assert message.startswith(
        "array.mac: table horowitz-2014 has no multiplier(a_bits=4, b_bits=4)"
    )
    assert "nearest: multiplier(a_bits=8, b_bits=8)" in message


def test_voltages(archsim: Call) -> None:
    full, low, sram = (
        json.loads(good(archsim(*RUN, "--json", *words)))["energy"]["by_group"]
        for words in ((), ("--voltage", "0.72"), ("--sram-voltage", "0.848"))
    )
    assert low["arithmetic"] == pytest.approx(0.64 * full["arithmetic"], rel=0.05)
    assert low["DRAM"] == full["DRAM"]
    assert sram["memories"] == pytest.approx(0.695 * full["memories"])


def test_memories_below_their_lowest_voltage_have_no_bit_errors(
    archsim: Call, tmp_path: Path
) -> None:
    """Whoever reads table, JSON, saved result or report is told; and nobody at full voltage."""
    said = "no bit errors are injected"
    for voltage, told in (("0.848", True), ("1", False)):
        words = ("--sram-voltage", voltage)
        folder = tmp_path / voltage
        table = good(archsim(*RUN, *words, "-o", str(folder), "--report", f"{folder}.html"))
        record = json.loads(good(archsim(*RUN, *words, "--json")))
        saved = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        page = Path(f"{folder}.html").read_text(encoding="utf-8")
        for text in (" ".join(table.split()), page):
            assert (f"SRAMs at {voltage} of" in text and said in text) == told
        for one in (record, saved):
            assert (said in one["energy"].get("not_injected", "")) == told


def test_bad_input(archsim: Call, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text('name = "bad"\nnode_nm = 45\n')
    (tmp_path / "old.html").touch()
    cases = {
        ("--technology", "45"): "no technology '45'; did you mean 45nm?",
        ("--technology", "28nm"): (
            "no technology '28nm'; known: 130nm, 16nm, 180nm, 45nm, 7nm, eyeriss-relative"
        ),
        ("--technology", "bad.toml"): "bad.toml: title is missing",
        ("--technology", "none", "--voltage", "1"): (
            "--voltage and --sram-voltage need a technology, not --technology none"
        ),
        ("--sram-voltage", "0.5"): (
            "an SRAM's supply must be 0.757 to 1 of its minimum voltage, not 0.5"
        ),
        ("--voltage", "-1"): "45nm: voltage_v must be positive, not -1.0",
        ("--report", "old.html"): "old.html exists; give a name that does not, or say --force",
    }
    for words, message in cases.items():
        assert refused(archsim(*RUN, *words)) == message
    outside = refused(archsim(*RUN, "--voltage", "0.1"))
    assert outside.startswith("energy cannot be scaled at 45 nm and 0.1 V")


def test_a_report_is_written(archsim: Call, tmp_path: Path) -> None:
    good(archsim(*RUN, "--report", "out/page.html"))
    page = (tmp_path / "out" / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "alexnet" in page
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["page.html"]


def test_technologies_are_listed_and_shown(archsim: Call, tmp_path: Path) -> None:
    listed = json.loads(good(archsim("list", "technologies", "--json")))
    names = [one["name"] for one in listed]
    assert {"45nm", "7nm", "130nm", "eyeriss-relative"} <= set(names)
    table = good(archsim("list", "technologies"))
    assert all(name in table for name in names)
    (tmp_path / "mine.toml").write_text(good(archsim("show", "45nm")))
    mine = json.loads(good(archsim(*RUN, "--technology", "mine.toml", "--json")))
    theirs = json.loads(good(archsim(*RUN, "--json")))
    assert mine["energy"]["total"] == theirs["energy"]["total"]
    assert refused(archsim("show", "45nm", "--set", "rows=2")) == (
        "--set changes designs; edit a technology's file"
    )


def test_si_prefixes() -> None:
    assert [si(value, "J") for value in (1234.5, 1.0, 0.0123, 9.9e-7, 3e-13)] == [
        "1.23 kJ",
        "1 J",
        "12.3 mJ",
        "990 nJ",
        "3e-13 J",
    ]


def test_a_design_of_registers_can_be_priced(archsim: Call) -> None:
    """Memories below 512 bytes are built of registers; no macro is so small."""
    small = replace(EDGE_16, rows=1, columns=1)
    assert small.components
    words = ("--set", "rows=1", "--set", "columns=1", "--set", "ifmap_memory.capacity_bytes=512")
    record = json.loads(good(archsim(*RUN, *words, "--json")))
    kinds = {entry["kind"].split("(")[0] for entry in record["energy"]["prices"]}
    assert {"register", "sram"} <= kinds
    assert record["energy"]["total"] > 0
