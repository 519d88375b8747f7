"""The table of operators says what the code takes."""

import subprocess
import sys
from pathlib import Path

from workloads.onnx_import import supported_operators

ROOT = Path(__file__).parents[2]


def test_the_page_names_every_operator_once() -> None:
    command = [sys.executable, "scripts/operator_table.py", "--check"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    rows = (ROOT / "docs" / "how-to" / "onnx-operators.md").read_text().splitlines()
    named = [name for row in rows if row.startswith("| ") for name in row.split("`")[1::2]]
    assert sorted(named) == sorted([*supported_operators(), "If"])
