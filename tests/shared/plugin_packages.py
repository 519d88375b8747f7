"""Packages with plug-ins, as if they were installed: a folder with their metadata on the path."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from tomllib import loads
from typing import Any

from command_line import Said

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_parts"

Groups = dict[str, dict[str, str]]
"""By group, what each entry names."""


def example_project() -> dict[str, Any]:
    """The project file of the example package."""
    return loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def example_entries() -> Groups:
    """The entry points of the example package."""
    return example_project()["entry-points"]


def example_module(name: str) -> Any:
    """A module of the example package, which need not be installed."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        return import_module(f"own_parts.{name}")
    finally:
        sys.path.remove(str(EXAMPLE))


def example_site(folder: Path) -> Path:
    """The example package as pip would put it into a folder; returns the folder."""
    project = example_project()
    shutil.copytree(EXAMPLE / "own_parts", folder / "own_parts")
    return installed(folder, project["name"], example_entries(), project["dependencies"])


def installed(folder: Path, package: str, groups: Groups, requires: Sequence[str] = ()) -> Path:
    """Write the metadata of a package into a folder; returns the folder."""
    info = folder / f"{package.replace('-', '_')}-1.dist-info"
    info.mkdir(parents=True)
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {what}\n" for name, what in entries.items())
        for group, entries in groups.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n{needs}")
    return folder


def archsim_with(*folders: Path, cwd: Path) -> Callable[..., Said]:
    """The command line in a process that finds these folders' packages."""

    def run(*words: str) -> Said:
        path = os.pathsep.join(str(one) for one in folders)
        call = [sys.executable, "-c", "from archsim.cli.main import main; main()", *words]
        environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "200"}
        done = subprocess.run(call, cwd=cwd, env=environment, capture_output=True, text=True)
        return Said(done.returncode, done.stdout, done.stderr)

    return run
