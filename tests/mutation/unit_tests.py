"""A fault that `verify` lets through, against the fast tests of its unit and kind of design."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from tests.mutation.operators import Mutant
from tests.mutation.sources import ROOT
from tests.mutation.subjects import SUBJECTS
from tests.mutation.trial import MUTANT_VARIABLE, Outcome

SHARED = ROOT / "tests" / "shared"
FOLDERS = tuple(ROOT / "tests" / name for name in ("rtl", "archsim", "workloads"))


OF_TILES = ("test_cycles.py", "test_families.py", "test_stepped.py", "test_paths_agree.py")
"""What all cores that are walked by tiles share is seen in these first."""


def files_of(module: str, kind: str) -> list[str]:
    """Test files that name the unit's module, then the kind's own; each shortest first, of
    a unit of the model those that are named after the kind.

    Of a unit of the hardware those of `rtl` alone, those of its first word (`test_boveda_rtl.py`
    of `boveda_shift`) where none names it, and those that read the emitted Verilog and
    compare the netlist with its table of components; of one of the model also the file that is
    named after it, those that take something from a shared file that names it, and at the end all
    that are named after the kind.
    """
    of_rtl = module.startswith("rtl.")
    files = [path for one in FOLDERS[: 1 if of_rtl else None] for path in one.glob("test_*.py")]
    files.sort(key=lambda path: path.stat().st_size)
    shared = [path.stem for path in SHARED.glob("*.py") if not of_rtl and _names(path, module)]
    family, last = _family(kind), module.rpartition(".")[2]
    after = () if of_rtl else (f"test_{last}.py", f"test_{family}_{last}.py")
    after += OF_TILES if module.startswith("archsim.tiled.") else ()
    found = [path for path in files
             if path.name in after or _names(path, module) or _takes(path, shared)]  # fmt: skip
    if not of_rtl:
        found.sort(key=lambda path: path.name not in after and f"_{family}" not in path.name)
    if of_rtl and not found:
        first = module.rpartition(".")[2].partition("_")[0]
        found = [path for path in files if path.name.startswith(f"test_{first}_")]
    own = [f"test_{family}_components.py", f"test_{family}.py"]
    if family not in ("scnn", "sparsetrain"):  # which have none of the tiled cores' table
        own[:0] = ["test_emit.py", "test_components.py"]
    if not of_rtl:
        own += [path.name for path in files if path.name.startswith(f"test_{family}_")]
    found += [path for name in own for path in files if path.name == name]
    return [str(path.relative_to(ROOT)) for path in dict.fromkeys(found)]


def _family(kind: str) -> str:
    """The kind whose designs are of the same machine."""
    design = SUBJECTS[kind][0].design
    return next(name for name, subjects in SUBJECTS.items() if subjects[0].design == design)


def _names(path: Path, module: str) -> bool:
    """Whether a file imports the module, or something from it; or the model of its memory."""
    room, _, name = module.rpartition(".")
    text = path.read_text(encoding="utf-8")
    if f"{module} import" in text or f"from {room} import {name}\n" in text:
        return True
    memory = re.match(r"rtl\.(memories\.\w+)", module)
    return memory is not None and f"archsim.{memory[1]}." in text


def _takes(path: Path, shared: list[str]) -> bool:
    """Whether a test file imports something from one of the shared files."""
    text = path.read_text(encoding="utf-8")
    return any(f"from {name} import" in text for name in shared)


def try_tests(mutant: Mutant, kind: str, seconds: float) -> tuple[Outcome, str]:
    """What becomes of a survivor: "caught by tests" with the test that fails, or what it was."""
    files = files_of(mutant.module, kind)
    command = [
        sys.executable, "-m", "pytest", "-p", "tests.mutation.plugin", "-p", "no:cacheprovider",
        "-x", "-q", "-m", "not slow", "--no-header", *files,
    ]  # fmt: skip
    environment = os.environ | {MUTANT_VARIABLE: json.dumps(asdict(mutant))}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "survived", f"tests took longer than {seconds:.0f} s"
    if process.returncode == 0:
        return "survived", f"passes {', '.join(files)}"
    failed = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return "caught by tests", failed[0].split(" - ")[0].partition(" ")[2] if failed else "pytest"
