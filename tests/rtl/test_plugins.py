"""The hardware of a machine from a package of its own: every verb of `rtl` and `fpga` takes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Call, good, refused
from plugin_packages import archsim_with, example_entries, installed

SMALL = ("dot-8", "--set", "lanes=2")


@pytest.fixture
def third(tmp_path: Path) -> Call:
    """The command line with the example package installed."""
    return archsim_with(installed(tmp_path / "site", "own-parts", example_entries()), cwd=tmp_path)


def test_it_is_proved_and_emitted(third: Call, tmp_path: Path) -> None:
    words = ("verify", *SMALL, "--set", "operand_bits=5", "--simulator", "amaranth", "--json")
    verdict = json.loads(good(third(*words, "--cases", "15")))
    assert verdict["cases"] == 15
    assert verdict["transfers"] > 1000
    assert verdict["differences"] == []
    assert third("emit", *SMALL, "-o", "core.v").code == 0
    assert "count_pair" in (tmp_path / "core.v").read_text()


def test_without_its_hardware_it_is_refused(tmp_path: Path) -> None:
    entries = {"archsim.designs": example_entries()["archsim.designs"]}
    archsim = archsim_with(installed(tmp_path, "dot-unit", entries), cwd=tmp_path)
    assert refused(archsim("verify", "dot-8")) == (
        "no RTL for designs of kind 'dot-unit'; known: scnn, systolic, tensorcore, vsq"
    )


@pytest.mark.slow
def test_it_is_mapped_and_measured(third: Call) -> None:
    assert "equal" in good(third("verify", *SMALL, "--simulator", "cocotb", "--cases", "3"))
    power = json.loads(good(third("power", *SMALL, "--json")))
    assert power["macs"] == 32**3
    assert json.loads(good(third("synth", *SMALL, "--json")))
    assert json.loads(good(third("fpga", *SMALL, "--json")))
