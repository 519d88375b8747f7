"""Ctrl-C at any moment: one line, the exit code of an interrupt, no half file, no program left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import interrupted_calls
import pytest

from rtl.child_process import child, end_children
from workloads.threads import in_threads

LINE = "archsim: interrupted; nothing was left half written\n"
START = [sys.executable, "-P", "-c", "from archsim.cli.main import main; main()"]

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


def start(words: list[str], folder: Path, **environment: str) -> subprocess.Popen[str]:
    """The command line, running by itself; Ctrl-C is heard there even if it is not heard here."""
    return subprocess.Popen(
        [*START, *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def interrupt(running: subprocess.Popen[str], number: int = signal.SIGINT) -> str:
    """What it says on stderr when it is asked to end."""
    running.send_signal(number)
    out, err = running.communicate(timeout=120)
    assert running.returncode == 128 + number
    assert out == ""
    return err


def below(process: int) -> dict[int, str]:
    """Processes that descend from one, with their names."""
    parents: dict[int, tuple[int, str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        parents[int(path.parent.name)] = (int(rest.split()[1]), name)
    found: dict[int, str] = {}
    new = {process}
    while new:
        new = {one for one, (parent, _) in parents.items() if parent in new}
        found |= {one: parents[one][1] for one in new}
    return found


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_while_it_simulates(number: int, tmp_path: Path) -> None:
    running = start(["run", "scnn", "vgg16", "--density", "0.4", "-o", "out"], tmp_path)
    while "multiarray" not in Path(f"/proc/{running.pid}/maps").read_text():
        time.sleep(0.05)
    time.sleep(1)
    assert interrupt(running, number) == LINE
    assert list(tmp_path.iterdir()) == []


@linux
def test_while_it_compiles(tmp_path: Path) -> None:
    """Of a first run, whose kernels are not there yet: a second process compiles some of them."""
    words = ["run", "edge-16", "alexnet", "-o", "out"]
    running = start(words, tmp_path, ARCHSIM_CACHE_DIR=str(tmp_path / "cache"), ARCHSIM_THREADS="2")
    assert running.stderr is not None
    assert "compiling" in running.stderr.readline()
    found: dict[int, str] = {}
    while not found.keys() - {running.pid}:
        assert running.poll() is None
        time.sleep(0.02)
        found = below(running.pid)
    assert interrupt(running) == LINE
    assert_gone(found)
    assert not (tmp_path / "out").exists()


WATCHES = """
import os, pathlib, sys
from rtl.child_process import python_command
from rtl.toolchain import watch_tool
command = python_command("import os, time; print(os.getpid(), flush=True); time.sleep(600)")
watch_tool(command, pathlib.Path(), lambda line: print(line, flush=True))
"""


@linux
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_tool_ends_with_a_script_that_hears_nothing(number: int, tmp_path: Path) -> None:
    """A placement by a script of somebody's, ended by `timeout`: its nextpnr went on for hours."""
    running = subprocess.Popen(
        [sys.executable, "-c", WATCHES], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    tool = int(running.stdout.readline())
    assert tool in below(running.pid)
    running.send_signal(number)
    assert running.wait(timeout=60) == -number
    running.stdout.close()
    assert_gone([tool])


slow = pytest.mark.slow

COMMANDS = {
    "run": "run edge-16 alexnet --timing-only -o out",
    "run over an old result": "run edge-16 alexnet --timing-only -o out --force",
    "report": "run edge-16 alexnet --timing-only --report page.html --force",
    "trace": "trace edge-16 alexnet --layer conv3 --perfetto t.json --vcd t.vcd --force",
    "emit": "emit edge-16 --set rows=2 --set columns=2 -o core.v --force",
    "synth": "synth edge-16 --set rows=2 --set columns=2 -o cells --force",
}
FAST = ("run", "run over an old result")
OLD = {
    "out": "result.json",
    "cells": "synthesis.json",
    "t.json": "",
    "t.vcd": "",
    "core.v": "",
    "core.json": "",
    "page.html": "",
}
"""What a command's output may stand in the place of: a file, or a folder with a file."""


@linux
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one in FAST else slow) for one in COMMANDS]
)
def test_at_any_moment_of_writing(name: str, tmp_path: Path) -> None:
    """What is there is whole: new, or what was there before."""
    words = COMMANDS[name]
    outputs = {Path(word).stem for word in words.split()}
    old = {
        place: file
        for place, file in OLD.items()
        if "--force" in words and Path(place).stem in outputs
    }
    for moment in range(60 if old else 0):
        for place, file in old.items():
            path = tmp_path / str(moment) / place / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("old")
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            interrupted_calls.__file__,
            tmp_path,
            *words.split(),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    whole, *calls = map(json.loads, done.stdout.splitlines())
    assert whole["code"] == 0
    assert len(calls) > 2
    wanted = contents(tmp_path / "whole")
    for one in calls:
        assert (one["code"], one["err"]) == (130, LINE)
        for place, content in contents(tmp_path / str(one["moment"])).items():
            assert content in ("old", wanted[place], {OLD.get(place): "old"}), (one, place)


def contents(folder: Path) -> dict[str, object]:
    """Files by name; folders as the names of their files, or an old one with its content."""
    return {
        path.name: path.read_text(encoding="utf-8")
        if path.is_file()
        else sorted(one.name for one in path.iterdir())
        if len(list(path.iterdir())) > 1
        else {one.name: one.read_text() for one in path.iterdir()}
        for path in folder.iterdir()
    }


@linux
def test_what_a_tool_started_ends_with_it(tmp_path: Path) -> None:
    """A make that ends leaves its compilers to nobody."""
    script = "trap '' TERM; sleep 600 & (sleep 600; true) & echo begun; wait"
    started: set[int] = set()
    with pytest.raises(KeyboardInterrupt), child(["bash", "-c", script], cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        started = {process.pid, *below(process.pid)}
        raise KeyboardInterrupt
    assert len(started) >= 3
    assert_gone(started)


@linux
def test_what_threads_wait_for_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal is heard by the main thread alone; what has not begun by then never does."""
    monkeypatch.setattr("workloads.threads._threads", 2)
    begun: list[int] = []

    def work(_: int) -> None:
        with child(["sleep", "600"], cwd=tmp_path) as process:
            begun.append(process.pid)
            if len(begun) == 2:
                signal.setitimer(signal.ITIMER_REAL, 0.2)
            process.wait()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            in_threads(work, range(5), stop=end_children)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(begun) == 2
    assert_gone(begun)


def assert_gone(processes: Iterable[int]) -> None:
    """All have ended, or end within seconds: whoever adopts them may be slow to notice."""
    left = set(processes)
    deadline = time.monotonic() + 10
    while left and time.monotonic() < deadline:
        left = {one for one in left if alive(one)}
        time.sleep(0.02)
    assert not left


def alive(process: int) -> bool:
    """Neither gone, nor ended and waited for by nobody yet."""
    try:
        said = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return said.rpartition(")")[2].split()[0] != "Z"


SMALL = "--set rows=3 --set columns=2"

TOOLS = (
    ("verilator", f"verify edge-16 {SMALL} --cases 2"),
    ("cc1plus", f"verify edge-16 {SMALL} --cases 2"),
    ("cc1plus", f"verify edge-16 {SMALL} --simulator cocotb --case 1 --waves waves"),
    ("python", f"synth edge-16 {SMALL} -o out --no-cache"),
    ("python", "fpga place boveda --family ice40 --set group=8 -o logs --no-cache"),
)
"""Programs, and commands that start them or have them started."""


@linux
@slow
@pytest.mark.parametrize(("program", "words"), TOOLS)
def test_while_a_tool_runs(program: str, words: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    place = tmp_path / "place"
    place.mkdir()
    running = start(words.split(), place, ARCHSIM_CACHE_DIR=str(cache), CCACHE_DISABLE="1")
    found: dict[int, str] = {}
    while not any(name.startswith(program) for name in found.values()):
        assert running.poll() is None
        time.sleep(0.02)
        found = below(running.pid)
    err = interrupt(running)
    assert err.endswith(LINE)
    assert_gone(found)
    assert list(place.iterdir()) == []
    left = [path for path in cache.rglob("*") if path.is_file() and "kernels" not in path.parts]
    assert left == []


HALF_ENTERED = """
import contextlib, os, signal, sys
from pathlib import Path
from archsim.cli import main as command_line
from archsim.files import new_folder

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
enter = contextlib._GeneratorContextManager.__enter__

def entered(self):
    found = enter(self)
    if self.gen.__name__ == "new_folder":
        os.kill(os.getpid(), signal.SIGINT)
    return found

contextlib._GeneratorContextManager.__enter__ = entered

def work():
    with new_folder(Path("out")):
        pass

command_line._run = work
try:
    command_line.main()
except SystemExit as ended:
    assert ended.code == 130
    print(*os.listdir(), flush=True)
    os._exit(0)  # before Python could clear up by itself
"""


@linux
def test_between_a_folder_made_and_its_block_begun(tmp_path: Path) -> None:
    """No `finally` of the block is in force yet: what was entered by half cleans up when let go."""
    command = [sys.executable, "-P", "-c", HALF_ENTERED]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("\n", LINE)
