"""Whether a fault changes a module at all: shown by the solver, wire by wire, by induction.

The solver takes both modules side by side, assumes that all wires of one name were equal in the
cycles before, from any state, and shows that they are equal in the next.  What it shows is so; what
it cannot show may still be so, where only states differ that are never reached.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

SECONDS = 120
PROCESSOR_SECONDS = 15
_INIT = re.compile(r"attribute \\init .*\n(?:\s*attribute .*\n)*\s*wire .*")
_PASSES = """
import sys
from pyosys import libyosys as ys
design = ys.Design()
for command in sys.argv[1:]:
    ys.run_pass(command, design)
"""


def shown_equal(name: str, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Whether module `name` is shown to do the same in both: RTLIL by module, with all beneath it.

    Values at power-up are no part of what is shown; where they differ the answer is False.
    """
    if sorted(_INIT.findall(before[name])) != sorted(_INIT.findall(after[name])):
        return False
    with tempfile.TemporaryDirectory() as folder:
        steps: list[str] = []
        for side, texts in (("gold", before), ("gate", after)):
            Path(folder, f"{side}.il").write_text("\n".join(texts.values()), encoding="utf-8")
            steps += [
                "design -reset", f"read_rtlil {side}.il", f"hierarchy -top {name}", "proc",
                "flatten", "memory -nomap", "opt_expr", "opt_clean", "wreduce", "opt_clean",
                f"rename {name} {side}",
                f"design -stash {side}",
            ]  # fmt: skip
        steps += ["design -reset"]
        steps += [f"design -copy-from {side} -as {side} {side}" for side in ("gold", "gate")]
        steps += [
            "equiv_make gold gate equal", "hierarchy -top equal", "equiv_struct", "opt_clean",
            "equiv_simple", "equiv_induct", "equiv_status -assert",
        ]  # fmt: skip
        limited = ["bash", "-c", f'ulimit -t {PROCESSOR_SECONDS}; exec "$@"', "bash"]
        command = [*limited, sys.executable, "-c", _PASSES, *steps]
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(SECONDS) == 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return False
