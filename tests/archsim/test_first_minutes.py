"""What a new user meets first: names, the example of the help, folders with our packages' names."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

import archsim
from archsim import CLOUD_128, EDGE_16, InputError, simulate, simulate_many
from archsim.machine.registry import design_toml
from workloads.builtin import builtin
from workloads.errors import WorkloadError

ROOT = Path(__file__).parents[2]


def test_the_example_of_the_help_runs() -> None:
    found = doctest.testmod(archsim)
    assert found.attempted >= 5
    assert found.failed == 0


def test_names_stand_for_designs_and_networks(tmp_path: Path) -> None:
    by_name = simulate("edge-16", "alexnet")
    assert by_name.to_json() == simulate(EDGE_16, builtin("alexnet")).to_json()
    file = tmp_path / "mine.toml"
    file.write_text(design_toml(EDGE_16), encoding="utf-8")
    assert simulate(str(file), "alexnet").cycles == by_name.cycles
    cycles, names = simulate_many(["edge-16", CLOUD_128], "alexnet")
    assert cycles[0].sum() == by_name.cycles
    assert names[0] == by_name.layers[0].name


@pytest.mark.parametrize(
    ("design", "network", "kind", "message"),
    [
        ("edge-17", "alexnet", InputError, r"^no design 'edge-17'; did you mean edge-16\?"),
        ("edge-16", "alexnot", WorkloadError, r"^no network is named 'alexnot'; nearest: alexnet"),
        ("edge-16", "nothing.onnx", WorkloadError, r"nothing.onnx"),
        (16, "alexnet", InputError, r"^a design, or the name of one, is wanted, not 16$"),
        ("edge-16", None, InputError, r"^a network, or the name of one, is wanted, not None$"),
    ],
)
def test_other_names_are_refused(
    design: str, network: str, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        simulate(design, network)


def test_simulate_many_says_what_it_takes() -> None:
    with pytest.raises(
        InputError, match="takes machines whose cycles do not depend on values, not scnn"
    ):
        simulate_many(["edge-16", "scnn"], "alexnet")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with folders of our packages' names, which say so when they are imported."""
    for name in ("workloads", "energy_models", "rtl", "fpga", "archsim"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('{name} of the user')\n")
    return tmp_path


def run(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    settings = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(words, cwd=cwd, env=settings, capture_output=True, text=True)


def test_the_command_is_not_misled_by_folders_beside_the_user(hostile: Path) -> None:
    command = Path(sysconfig.get_path("scripts")) / "archsim"
    if not command.exists():
        pytest.skip("archsim is not installed")
    for words in (["list", "workloads"], ["--help"], ["show", "edge-16"], ["emit", "--help"]):
        ended = run(command, *words, cwd=hostile)
        assert (ended.returncode, ended.stderr) == (0, ""), words


def test_python_is_not_misled_with_a_safe_path(hostile: Path) -> None:
    ended = run(
        sys.executable, "-P", "-c", "import workloads.layers, rtl, archsim; print('well')",
        cwd=hostile,
    )  # fmt: skip
    assert (ended.stdout, ended.stderr) == ("well\n", "")


@pytest.mark.parametrize("file", ["__init__.py", "model.onnx"])
def test_a_folder_that_hides_a_package_is_named(tmp_path: Path, file: str) -> None:
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads" / file).touch()
    ended = run(sys.executable, "-c", "import archsim", cwd=tmp_path)
    assert ended.returncode == 1
    last = ended.stderr.splitlines()[-1]
    assert re.fullmatch(
        r"ImportError: \S*workloads\S* is not archsim's package workloads: it lies in the folder "
        r"that Python was started in, or beside the script; start Python with -P, or rename it",
        last,
    )


def test_all_data_files_are_in_the_package() -> None:
    """Whatever lies in a package beside modules is named in pyproject.toml."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    tools = settings["tool"]["setuptools"]
    known = tools["package-data"]
    for package in ("archsim", "rtl", "training", "workloads", "energy_models", "fpga"):
        top = ROOT / package
        patterns = [*known.get(package, []), *known["*"]]
        for path in top.rglob("*"):
            if path.is_file() and path.suffix not in (".py", ".pyc", ".nbi", ".nbc"):
                name = path.relative_to(top)
                assert any(name.match(one) for one in patterns), f"{package}: {name}"


def test_every_extra_and_entry_point_is_there() -> None:
    """Extras name one another only by names that exist; entry points name what can be loaded."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = settings["optional-dependencies"]
    for wanted in extras.values():
        for text in wanted:
            inner = re.match(r"archsim\[(.*)\]", text)
            assert inner is None or set(inner.group(1).split(",")) <= set(extras)
    for group in settings["entry-points"].values():
        for target in group.values():
            module, _, name = target.partition(":")
            file = ROOT.joinpath(*module.split("."))
            text = (
                file.with_suffix(".py") if not file.is_dir() else file / "__init__.py"
            ).read_text()
            assert re.search(rf"^(def|class) {name}\b|^{name}\b", text, re.MULTILINE), target


def test_the_kernels_of_a_wheel_need_no_sources_nearby(tmp_path: Path) -> None:
    """The packages from another place, read-only, as they are installed."""
    for name in ("archsim", "workloads", "energy_models"):
        shutil.copytree(
            ROOT / name, tmp_path / "site" / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    script = (
        "import archsim, pathlib; print(pathlib.Path(archsim.__file__).parts[-3]);"
        "print(archsim.simulate('edge-16', 'alexnet').cycles)"
    )
    settings = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    ended = subprocess.run(
        [sys.executable, "-P", "-c", script], env=settings, cwd=tmp_path, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert ended.stdout.split() == ["site", str(simulate("edge-16", "alexnet").cycles)]
