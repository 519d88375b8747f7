"""The command line as a whole: help, names, files of designs, and how a call may end."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import SMALL, Call, good, refused

from archsim.cli import main as command_line
from archsim.machine.registry import load_design
from archsim.machines.systolic.design import EDGE_16
from archsim.version import VERSION


def test_lists(archsim: Call) -> None:
    designs = json.loads(good(archsim("list", "designs", "--json")))
    assert {"tpu-v1", "edge-16", "cloud-128"} <= {entry["name"] for entry in designs}
    workloads = json.loads(good(archsim("list", "workloads", "--json")))
    assert {"alexnet", "resnet50", "squeezenet-imagenet"} <= {one["name"] for one in workloads}
    assert all(one["source"] for one in workloads)
    for what, entries in (("designs", designs), ("workloads", workloads)):
        out = good(archsim("list", what))
        assert "…" not in out
        assert all(entry["name"] in out for entry in entries)


def test_show_is_ready_to_run(archsim: Call, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(good(archsim("show", "edge-16", "--set", "rows=8")))
    assert load_design(str(tmp_path / "mine.toml")) == replace(EDGE_16, rows=8)
    answer = json.loads(good(archsim("run", "mine.toml", "alexnet", "--timing-only", "--json")))
    assert answer["design"]["rows"] == 8


def test_version_and_help(archsim: Call) -> None:
    assert good(archsim("--version")) == f"archsim {VERSION}\n"
    general = good(archsim("--help"))
    for verb in ("run", "list", "show", "paper", "emit", "verify"):
        assert f"\n  {verb} " in general
        assert "Usage: archsim" in good(archsim(verb, "--help"))
    assert "..." not in general.partition("Commands:")[2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rows = = 3", " is not a TOML file: Invalid value (at line 1, column 8)"),
        ("rwos = 3", " has no 'rwos'; did you mean rows?"),
        ("columns = 0", ": columns must be positive, not 0"),
    ],
)
def test_design_files(archsim: Call, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(text)
    for words in (
        ("run", "mine.toml", "alexnet"),
        ("show", "mine.toml"),
        ("emit", "mine.toml", "-o", "core.v"),
        ("verify", "mine.toml"),
    ):
        assert refused(archsim(*words)) == f"mine.toml{message}"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


@pytest.mark.parametrize(
    "words", [("run", "edge-16", "alexnet", "--timing-only"), ("emit", "edge-16", *SMALL)]
)
def test_outputs_that_cannot_be_written(archsim: Call, words: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "dangling").symlink_to("nowhere")
    for path in ("file/out.v", "file/deep/out.v"):
        message = f"{path} cannot be written: {tmp_path / 'file'} is not a folder"
        assert refused(archsim(*words, "-o", path)) == message
    for path in ("file", ".", "dangling"):
        assert (
            refused(archsim(*words, "-o", path))
            == f"{path} exists; give a name that does not, or say --force"
        )
    long = f"{'x' * 300}.v"
    assert "a name has at most 255 bytes, not 302" in refused(archsim(*words, "-o", long))
    assert {path.name for path in tmp_path.iterdir()} == {"file", "dangling"}
    assert (tmp_path / "file").read_text() == "mine"


def test_unknown_names(archsim: Call) -> None:
    assert refused(archsim("show", "edge16")).startswith(
        "nothing is called 'edge16'; did you mean edge-16?"
    )
    assert refused(archsim("run", "tpu_v1", "alexnet")).startswith(
        "no design 'tpu_v1'; did you mean tpu-v1?"
    )
    assert refused(archsim("run", "edge-16", "alexnt")).startswith(
        "no workload 'alexnt'; did you mean alexnet or lenet5?"
    )
    assert refused(archsim("paper", "tpv")) == "no paper 'tpv'; did you mean tpu?"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("runn edge-16", "no command 'runn'; did you mean run?"),
        ("frob", "no command 'frob'; known: capture, characterize, "),
        ("run", "missing argument 'DESIGN'; see archsim run --help"),
        ("run edge-16 alexnet --timing", "no such option: --timing (Possible options: "),
        ("run edge-16 alexnet --seed one", "invalid value for '--seed': "),
        (
            "list cats",
            "'cats' is not one of 'designs', 'workloads', 'technologies', 'memories', ",
        ),
        ("run alexnet edge-16", "alexnet is a workload; the design is named before it"),
        ("run edge-16 alexnet --set offchip.latency_cycles=1", "did you mean off_chip?"),
        ("run edge-16 alexnet --report page.pdf", "page.pdf must end in .html"),
        ("show 45nn", "nothing is called '45nn'; did you mean 45nm"),
        ("show alexnit", "nothing is called 'alexnit'; did you mean alexnet or lenet5? "),
    ],
)
def test_what_is_mistyped(archsim: Call, words: str, line: str) -> None:
    assert line in refused(archsim(*words.split()))


def test_show_takes_what_list_lists(archsim: Call) -> None:
    listed = json.loads(good(archsim("list", "--json")))
    shown = {"designs", "workloads", "technologies"}
    assert set(listed) == shown | {"memories", "codecs", "sources", "importers", "objectives"}
    for rows in (listed[what] for what in shown):
        for name in [row["name"] for row in rows]:
            said = archsim("show", name)
            if said.code:
                assert "which is not installed: `pip install " in refused(said)
            else:
                assert good(said)


def test_an_interrupt(archsim: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from archsim.cli import run

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "save", interrupted)
    said = archsim("run", "edge-16", "alexnet", "--timing-only", "-o", "out")
    interrupted_line = "archsim: interrupted; nothing was left half written\n"
    assert (said.code, said.out, said.err) == (130, "", interrupted_line)
    assert not list(tmp_path.iterdir())


def test_faults_of_ours_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ModuleNotFoundError("no", name="archsim.lost")

    monkeypatch.setattr(command_line, "_run", broken)
    with pytest.raises(ModuleNotFoundError):
        command_line.main()


def test_a_process_of_its_own(tmp_path: Path) -> None:
    start = [sys.executable, "-c", "from archsim.cli.main import main; main()"]
    done = subprocess.run(
        [*start, "run", "edge-16", "none.onnx"], capture_output=True, text=True, check=False,
        cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "archsim: none.onnx: no such file; an ONNX model (.onnx) is needed\n"
    listed = subprocess.Popen([*start, "list", "workloads", "--json"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    assert listed.stdout is not None
    assert listed.stderr is not None
    listed.stdout.close()  # as `head` does
    assert "Traceback" not in listed.stderr.read()
    listed.wait()
    listed.stderr.close()


@pytest.mark.parametrize(
    "words",
    [
        ("paper",),
        ("show", "mapping", "volta", "lenet5"),
        ("sweep", "space.toml", "--dry-run"),
    ],
    ids=lambda words: " ".join(words),
)
def test_sentences_go_on_in_the_next_line_of_a_terminal(
    archsim: Call, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], tmp_path: Path
) -> None:
    """At 80 columns, at a space; nothing is left out."""
    (tmp_path / "space.toml").write_text(SPACE)
    plain = archsim(*words)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    shown = archsim(*words)
    assert plain.code == shown.code == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown.out).splitlines()
    assert max(map(len, lines)) <= 80
    if words[0] != "sweep":  # which says how long it takes
        assert sorted(" ".join(lines).split()) == sorted(plain.out.split())


SPACE = """
networks = ["alexnet"]
objectives = ["cycles"]
[[machine]]
design = "edge-16"
fields = { rows = [4, 8], columns = [8, 16] }
"""
