"""The command line's threads: figures do not depend on them, and bad numbers are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from archsim import NetworkResult, simulate
from archsim.machine.design import Design
from archsim.machines.scnn.design import SCNN_4PE, SCNN_DNNSIM
from archsim.machines.tensorcore.design import VOLTA
from archsim.machines.vsq.design import VSQ_16
from workloads.layers import Conv2d, MatMul, Network
from workloads.operands import synthetic

CALL = "from archsim.cli.main import main; main()"

BAD = "must be a whole number from 1 to 1024, not"


def called(*words: str, **settings: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a process of its own: the number is the process's."""
    done = subprocess.run(
        [sys.executable, "-c", CALL, *words],
        env={**os.environ, **settings}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


LAYERS = (
    Conv2d(name="conv", batch=2, channels=5, filters=24, ifmap_height=19, ifmap_width=17,
           kernel_height=3, kernel_width=3),
    MatMul(name="dense", m=1, n=70, k=300),
)  # fmt: skip


@pytest.mark.parametrize("design", [SCNN_4PE, SCNN_DNNSIM, VOLTA, VSQ_16], ids=lambda one: one.kind)
def test_figures_are_the_same_whatever_the_number(
    design: Design, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values and cycles of every machine that shares its work among threads."""
    network = Network(name="n", source="here", layers=LAYERS)
    given = {one.name: synthetic(one, bits=8, density=0.4, seed=2) for one in LAYERS}
    found: list[NetworkResult] = []
    for count in (1, 3):
        monkeypatch.setattr("workloads.threads._threads", count)
        found.append(simulate(design, network, operands=given))
    one, three = found
    assert one.to_json() == three.to_json()
    for left, right in zip(one.layers, three.layers, strict=True):
        assert left.ofmap is not None and right.ofmap is not None
        assert left.ofmap.tobytes() == right.ofmap.tobytes()


COUNTED = """
import atexit, os, sys
atexit.register(lambda: print(len(os.listdir("/proc/self/task")), file=sys.stderr))
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="Linux lists threads there")
@pytest.mark.parametrize("asked", [("--threads", "1"), ()], ids=["option", "environment"])
def test_one_is_one_linear_algebra_too(asked: tuple[str, ...]) -> None:
    """Its threads would be there from the import of NumPy on."""
    done = subprocess.run(
        [sys.executable, "-c", COUNTED + CALL, *asked, "run", "edge-16", "alexnet",
         "--timing-only"],
        env=os.environ | ({} if asked else {"ARCHSIM_THREADS": "1"}),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr.splitlines()[-1] == "1"


def test_bad_numbers_are_one_line() -> None:
    assert called("--threads", "0", "list", "designs") == (2, "", f"archsim: threads {BAD} '0'\n")
    assert called("list", "designs", ARCHSIM_THREADS="x") == (
        2, "", f"archsim: ARCHSIM_THREADS {BAD} 'x'\n",
    )  # fmt: skip
