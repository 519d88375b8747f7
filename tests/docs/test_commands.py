"""Every command that a page, a docstring or `--help` shows works, and prints what is shown."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from command_files import typed
from documented import ROOT, Shown, commands, named_options, snippets
from plugin_packages import example_module

DECIDED: dict[str, Any] = tomllib.loads((Path(__file__).with_name("commands.toml")).read_text())
FAST: list[str] = DECIDED["fast"]
SLOW: list[str] = DECIDED["slow"]
TEMPLATES: dict[str, str] = DECIDED["templates"]
NOT_RUN: dict[str, str] = DECIDED["not-run"]


@pytest.fixture(scope="module")
def shown() -> list[Shown]:
    found = commands()
    assert len({one.page for one in found}) > 30, "pages or docstrings are not read any more"
    return found


def test_it_is_decided_what_becomes_of_every_command(shown: list[Shown]) -> None:
    found = {one.text for one in shown}
    kept = found | set(TEMPLATES.values())
    decided = [*FAST, *SLOW, *NOT_RUN, *TEMPLATES]
    assert sorted(decided) == sorted(set(decided)), "decided twice"
    assert found - set(decided) == set(), "nothing is said of these in tests/docs/commands.toml"
    assert set(decided) - kept == set(), "shown no longer"
    assert set(TEMPLATES.values()) <= {*FAST, *SLOW}


def test_pages_name_verbs_and_options_that_exist() -> None:
    from typer.main import get_command

    from archsim.cli.application import application
    from archsim.cli.verbs import command_of
    from archsim.machine.registry import registered

    group: Any = get_command(application())
    verbs = [entry.name for entry in entry_points(group="archsim.commands")]
    found: list[Any] = [group, *map(command_of, verbs)]
    for command in found:  # those of groups, too
        found += getattr(command, "commands", {}).values() if command is not group else ()
    known = {
        option
        for command in found
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    } | {"--help"}
    machines = [*registered().values(), example_module("dot_unit.design").DOT_8]
    known |= {option.word for design in machines for option in design.options}
    unknown = {(page, option) for page, option in named_options() if option not in known}
    assert unknown == set()


def check(command: str, folder: Path, shown: list[Shown]) -> None:
    if "| jq" in command and shutil.which("jq") is None:
        command = command.partition(" | jq")[0]
    done = typed(command, folder)
    slower = command.startswith(
        ("python benchmarks/speed.py", "python benchmarks/sparse_training.py")
    ) and ("NOT MET" in done.stdout or '"met": false' in done.stdout)
    assert done.returncode == int(slower), done.stderr  # a busy machine's speed is no fault
    assert "Traceback" not in done.stderr
    for one in shown:
        if one.text == command and one.output:
            assert_printed(one.output, done.stdout)
    for page in (folder / "benchmarks").glob("*.md"):
        assert page.read_text() == (ROOT / "benchmarks" / page.name).read_text(), page.name


def assert_printed(shown: str, printed: str) -> None:
    """A page shows a run of the lines that are printed; a line of … stands for any others."""
    lines = [line.rstrip() for line in printed.splitlines()]
    place = 0
    for part in re.split(r"^\s*…\s*\n", shown, flags=re.MULTILINE):
        wanted = [line.rstrip() for line in part.splitlines()]
        starts = range(place, len(lines) - len(wanted) + 1)
        found = next((at for at in starts if lines[at : at + len(wanted)] == wanted), None)
        assert found is not None, f"shown:\n{part}\nprinted:\n{printed}"
        place = found + len(wanted)


@pytest.mark.parametrize("command", FAST)
def test_command(command: str, tmp_path: Path, shown: list[Shown], compiled: None) -> None:
    check(command, tmp_path, shown)


@pytest.mark.slow
@pytest.mark.parametrize("command", SLOW)
def test_slow_command(command: str, tmp_path: Path, shown: list[Shown], compiled: None) -> None:
    check(command, tmp_path, shown)


@pytest.mark.parametrize("snippet", snippets(), ids=lambda one: one.page)
def test_snippet(snippet: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs, and what stands behind a `print` is what it prints."""
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()
    if "__main__" in snippet.text:  # a file of its own, which other processes import
        (tmp_path / "snippet.py").write_text(snippet.text, encoding="utf-8")
        done = typed("python -P snippet.py", tmp_path)
        assert done.returncode == 0, done.stderr
        out.write(done.stdout)
    else:
        with contextlib.redirect_stdout(out):
            exec(compile(snippet.text, snippet.page, "exec"), {"__name__": "__main__"})
    printed = iter(out.getvalue().splitlines())
    for remark in re.findall(r"^print\(.*\)(?:  # (.*))?$", snippet.text, re.MULTILINE):
        line = next(printed)
        assert remark in ("", line)
