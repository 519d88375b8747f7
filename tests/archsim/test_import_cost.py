"""`import archsim` and `archsim --help` bring in nothing that only a simulation needs."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"numba", "matplotlib", "pandas", "onnx", "onnxruntime", "torch", "amaranth", "rtl"}


@pytest.mark.parametrize("module", ["archsim", "archsim.cli.main"])
def test_import_is_lazy(module: str) -> None:
    script = f"import sys, {module}; print(*sorted({{n.partition('.')[0] for n in sys.modules}}))"
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not HEAVY & set(run.stdout.split())
