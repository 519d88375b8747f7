"""What README shows of `archsim verify` is what the command above it prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from command_line import Call

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")

COMMAND = re.compile(r"^archsim (verify edge-16 .*?) *#", re.MULTILINE)
SHOWN = re.compile(r"^systolic-\d+x\d+ on \w+: .*$", re.MULTILINE)


def test_the_line_is_of_the_command_above_it() -> None:
    """Cheaply: its design, its number of cases, and the words of today."""
    (command,), (shown,) = COMMAND.findall(README), SHOWN.findall(README)
    words = shlex.split(command)
    sizes = dict(word.split("=") for word in words if "=" in word)
    assert shown.startswith(f"systolic-{sizes['rows']}x{sizes['columns']} on verilator: ")
    assert f": {words[words.index('--cases') + 1]} cases, " in shown
    from rtl.cli.verify import _closing  # pyright: ignore[reportPrivateUsage]

    numbers = [
        int(text.replace(",", ""))
        for text in re.findall(r"[\d,]*\d(?= )", shown.partition(": ")[2])
    ]
    cases, transfers, cycles, *differences = numbers
    names = ("cycle_differences", "value_differences", "action_differences")
    summary = {
        "design": shown.split()[0], "simulator": "verilator", "cases": cases,
        "transfers": transfers, "cycles": cycles, "differences": [],
        **dict(zip(names, differences, strict=True)),
    }  # fmt: skip
    assert _closing(summary) == shown


@pytest.mark.slow
def test_the_line_is_what_the_command_prints(archsim: Call) -> None:
    (command,), (shown,) = COMMAND.findall(README), SHOWN.findall(README)
    said = archsim(*shlex.split(command))
    assert said.out.splitlines()[-1] == shown
