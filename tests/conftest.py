"""Settings of all tests, and the command line for those that call it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Call, Said
from heads import unnamed
from hypothesis import settings

# A check says the same of the same commit: what is drawn follows from the test's own text.
# `--hypothesis-profile explore` draws anew at each run, for those who look for faults.
settings.register_profile("project", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("project")

# Python's collector looks through the millions of objects of elaborated cores again and again: an
# eighth of the time of tests of the hardware, and half of that so.
gc.set_threshold(100_000, 20, 20)


@pytest.fixture(autouse=True, scope="module")
def _old_objects_stay() -> Iterator[None]:
    """What is left behind a module's tests is looked through once more, and then never again."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def compiled() -> None:
    """The kernels of every run are compiled, so that no command says that it does."""
    from archsim import simulate

    simulate("edge-16", "alexnet")


@pytest.fixture
def archsim(
    compiled: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> Call:
    """Call the command line in this process, in a folder of its own.

    Every head of a table that is printed must be in the glossary.
    """
    from rich.table import Table

    from archsim.cli import main as command_line

    add_column = Table.add_column

    def add_named(table: Table, header: Any = "", *given: Any, **settings: Any) -> None:
        assert not unnamed(str(header)), f"docs/glossary.md does not tell of the head {header!r}"
        add_column(table, header, *given, **settings)

    monkeypatch.setattr(Table, "add_column", add_named)

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["archsim", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        said = capsys.readouterr()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return Said(code or 0, said.out, said.err)

    return call
