"""Importing the package costs little, and brings in nothing but NumPy."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
import numpy
before = set(sys.modules)
import workloads, workloads.builtin
print(len(set(sys.modules) - before))
import workloads.packaged, workloads.integer_network, workloads.reference
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""
HEAVY = {"onnx", "onnxruntime", "PIL", "google", "torch", "numba", "pandas", "archsim", "rtl"}


MOST_MODULES = 60
"""That the import of built-in networks brings in, the standard library's included."""


def test_import_is_small_and_lazy():
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", SCRIPT]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    modules, names = run.stdout.splitlines()
    assert int(modules) <= MOST_MODULES
    assert not HEAVY & set(names.split())
