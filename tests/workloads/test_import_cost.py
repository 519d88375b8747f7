"""Importing the package costs little, and brings in nothing but NumPy."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys, time
import numpy
before = set(sys.modules)
start = time.perf_counter()
import workloads, workloads.builtin
print(time.perf_counter() - start)
import workloads.packaged, workloads.integer_network, workloads.reference
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""
HEAVY = {"onnx", "onnxruntime", "PIL", "google", "torch", "numba", "pandas", "archsim", "rtl"}


def test_import_is_fast_and_lazy():
    root = Path(__file__).parents[2]
    seconds = []
    for _ in range(5):
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT], cwd=root, capture_output=True, text=True, check=True
        )
        elapsed, names = run.stdout.splitlines()
        seconds.append(float(elapsed))
        assert not HEAVY & set(names.split())
    assert min(seconds) < 0.050
