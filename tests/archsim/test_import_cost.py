"""What a command does not need it does not import: `--help`, `list` and `show` start at once."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from archsim.cli import verbs

ROOT = Path(__file__).parents[2]

HEAVY = {
    "amaranth", "jinja2", "llvmlite", "matplotlib", "numba", "onnx", "onnxruntime", "pandas",
    "pyarrow", "scipy", "torch",
}  # fmt: skip

AFTER = """
import atexit, sys
atexit.register(lambda: print(*sorted({n.partition(".")[0] for n in sys.modules}), file=sys.stderr))
from archsim.cli.main import main
sys.argv = ["archsim", *sys.argv[1:]]
main()
"""


def imported(*words: str, cache: str = os.devnull) -> set[str]:
    """Packages that are there when a command has ended; no folder can be made for a cache."""
    settings = {**os.environ, "ARCHSIM_CACHE_DIR": f"{cache}/nowhere"}
    run = subprocess.run(
        [sys.executable, "-c", AFTER, *words], env=settings, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout
    *said, modules = run.stderr.splitlines()
    assert not said  # no warning either: nothing wants a cache
    return set(modules.split())


def test_a_package_imports_what_is_asked_for() -> None:
    for module in ("archsim", "workloads", "energy_models"):
        script = f"import sys, {module}; print(*{{n.partition('.')[0] for n in sys.modules}})"
        run = subprocess.run(
            [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert not (HEAVY | {"numpy", "rich", "typer"}) & set(run.stdout.split())


@pytest.mark.parametrize("words", ["--help", "--version"])
def test_help_imports_no_command(words: str) -> None:
    assert not (HEAVY | {"numpy", "rich", "energy_models"}) & imported(words)


@pytest.mark.parametrize(
    "words",
    [
        "list designs", "list workloads", "list technologies", "list designs --json",
        "show edge-16", "show scnn", "show edge-16 --set rows=8", "show 45nm", "run --help",
        "emit --help", "verify --help", "compress --help", "trace --help",
    ],
)  # fmt: skip
def test_lists_and_helps_import_nothing_heavy(words: str) -> None:
    assert not HEAVY & imported(*words.split())


def test_records_of_designs_come_without_searches_numerics_and_prices() -> None:
    """What a machine does is imported when it is asked to: a record alone says what there is."""
    script = (
        "import sys; from archsim.machine.registry import design_record, registered;"
        "print(*map(design_record, registered().values()), file=sys.stderr); print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    of_doing = {
        "archsim.kernels.build", "archsim.machines.scnn.exact",
        "archsim.tiled.integer_numerics", "archsim.tiled.numerics",
        "archsim.machines.tensorcore.float_numerics", "archsim.machines.vsq.vector_numerics",
        "archsim.tiled.mapper", "archsim.technologies", "energy_models.technology",
    }  # fmt: skip
    assert not of_doing & set(run.stdout.split())


def test_a_warm_run_needs_no_numba(tmp_path: Path) -> None:
    words = ("run", "edge-16", "alexnet", "--timing-only")
    settings = {**os.environ}
    settings.pop("ARCHSIM_CACHE_DIR", None)
    found: set[str] = set()
    for _ in range(2):  # the first may have to compile
        run = subprocess.run(
            [sys.executable, "-c", AFTER, *words], env=settings, capture_output=True, text=True
        )
        assert run.returncode == 0, run.stderr
        found = set(run.stderr.splitlines()[-1].split())
    assert not (HEAVY - {"llvmlite"}) & found


def test_help_lines_are_found_without_importing() -> None:
    for name in verbs.verbs():
        line = verbs.help_line(name)
        assert line[0].isupper() and line.endswith(".") and len(line) < 70, name
    script = (
        "import sys; from archsim.cli import verbs; [verbs.help_line(n) for n in verbs.verbs()];"
        "print(*[n for n in sys.modules if n.startswith(('archsim.cli.', 'rtl.', 'fpga.'))])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(run.stdout.split()) <= {"archsim.cli.verbs", "rtl.cli"}


PLUG_IN = """
import typer

def mine(name: str) -> None:
    "Say a name."
    print(f"it is {name}")

def register(app: typer.Typer) -> None:
    app.command("mine", short_help="Say a name, as a package of one's own.")(mine)
"""


def test_verbs_of_other_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that says what it does only when asked, one that cannot be imported."""
    from archsim.cli.main import main

    (tmp_path / "plugged_in.py").write_text(PLUG_IN)
    (tmp_path / "lacking.py").write_text("import amaranth_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    entries = {
        name: EntryPoint(name, f"{module}:register", "archsim.commands")
        for name, module in (("mine", "plugged_in"), ("theirs", "lacking"), ("gone", "not.there"))
    }
    monkeypatch.setattr(verbs, "verbs", lambda: entries)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["archsim", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert ended.value.code is None or isinstance(ended.value.code, int)
        return ended.value.code or 0, said.out, said.err

    code, out, _ = call("--help")
    assert code == 0
    assert "mine    Say a name, as a package of one's own." in out
    assert "Not available: needs the Python module amaranth_that_is_not_there." in out
    assert call("mine", "x") == (0, "it is x\n", "")
    code, _, err = call("theirs", "--anything", "x")
    assert code == 2
    assert err == (
        "archsim: the Python module amaranth_that_is_not_there is missing; install it with: "
        "pip install amaranth_that_is_not_there\n"
    )
    assert call("other")[0] == 2
