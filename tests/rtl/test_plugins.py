"""The hardware of a machine from a package of its own: every verb of `rtl` and `fpga` takes it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_line import Call, good, refused
from plugin_packages import EXAMPLE, archsim_with, example_entries, example_site, installed

SMALL = ("dot-8", "--set", "lanes=2")


@pytest.fixture
def third(tmp_path: Path) -> Call:
    """The command line with the example package installed."""
    return archsim_with(example_site(tmp_path / "site"), cwd=tmp_path)


def test_it_is_proved_and_emitted(third: Call, tmp_path: Path) -> None:
    words = ("verify", *SMALL, "--set", "operand_bits=5", "--simulator", "amaranth", "--json")
    verdict = json.loads(good(third(*words, "--cases", "15")))
    assert verdict["cases"] == 15
    assert verdict["transfers"] > 1000
    assert verdict["differences"] == []
    assert third("emit", *SMALL, "--interface", "axi", "-o", "core.v").code == 0
    assert "count_pair" in (tmp_path / "core.v").read_text()
    assert "COUNT_PAIR" in (tmp_path / "core.h").read_text()


def test_without_its_hardware_it_is_refused(tmp_path: Path) -> None:
    entries = {"archsim.designs": example_entries()["archsim.designs"]}
    site = installed(tmp_path, "own-parts", entries)
    archsim = archsim_with(site, EXAMPLE, cwd=tmp_path)
    assert refused(archsim("verify", "dot-8")) == (
        "no RTL for designs of kind 'dot-unit'; known: scnn, sparsetrain, systolic, tensorcore, vsq"
    )


REGISTERS = (
    "ifmap_memory.kind=registers", "ifmap_memory.capacity_bytes=96",
    "weight_memory.kind=registers", "weight_memory.capacity_bytes=96",
    "accumulator_memory.kind=registers", "accumulator_memory.capacity_bytes=512",
    "rows=3", "columns=2",
)  # fmt: skip


def test_its_memory_is_proved_in_a_machine_of_ours(third: Call, tmp_path: Path) -> None:
    settings = [word for one in REGISTERS for word in ("--set", one)]
    words = ("verify", "edge-16", *settings, "--simulator", "amaranth", "--cases", "3", "--json")
    verdict = json.loads(good(third(*words)))
    assert (verdict["cases"], verdict["differences"]) == (3, [])
    assert third("emit", "edge-16", *settings, "-o", "core.v").code == 0
    text = (tmp_path / "core.v").read_text()
    assert "word_1" in text
    instances = re.findall(r"^  sram #\(.*?\) (\w+) \(", text, re.MULTILINE | re.DOTALL)
    assert instances == ["bias_0", "bias_1"]  # all others are flip-flops


SMALLEST = ("dot-8", "--set", "lanes=1", "--set", "operand_bits=2", "--set", "accumulator_bits=8")


def test_it_is_mapped(third: Call) -> None:
    mapped = json.loads(good(third("synth", *SMALLEST, "--json")))
    assert mapped["design_name"] == "dot-unit-1"
    assert mapped["summary"]["area_um2"] > 0
    (placed,) = json.loads(good(third("fpga", "place", *SMALLEST, "--json")))
    assert placed["cells"]["flip_flops"] == mapped["summary"]["flip_flops"]
    assert placed["fmax_hz"] > 0


@pytest.mark.slow
def test_it_is_simulated_and_measured(third: Call) -> None:
    assert "equal" in good(third("verify", *SMALL, "--simulator", "cocotb", "--cases", "3"))
    assert third("emit", *SMALL, "-o", "core.v").code == 0
    power = json.loads(good(third("power", *SMALL, "--json")))
    assert power["macs"] == 32**3
