"""One number of threads for everything, nothing at import, nothing left behind."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from workloads import threads as policy
from workloads.errors import WorkloadError
from workloads.onnx_runtime import run_session
from workloads.threads import in_threads, processors, set_threads, threads

ROOT = Path(__file__).parents[2]

OURS = ("archsim", "rtl", "workloads", "energy_models", "fpga")

MAKERS = {"ThreadPoolExecutor", "ProcessPoolExecutor", "cpu_count", "sched_getaffinity", "Pool",
          "intra_op_num_threads", "threadpool_limits", "set_num_threads", "prange"}  # fmt: skip

ALLOWED = {
    "workloads/threads.py": {"ThreadPoolExecutor", "cpu_count", "sched_getaffinity",
                             "threadpool_limits"},
    "workloads/onnx_runtime.py": {"intra_op_num_threads"},
    "archsim/papers/vsquant_node.py": {"intra_op_num_threads"},  # always 1
    "archsim/layer/integer_products.py": {"intra_op_num_threads"},  # always 1: blocks run by ours
    "archsim/robust/evaluate.py": {"intra_op_num_threads"},  # as many as the policy says
    "archsim/sweeps/surrogate.py": {"threadpool_limits"},  # always 1
    "archsim/sweeps/workers.py": {"ProcessPoolExecutor"},  # workers of one thread, by the policy
}  # fmt: skip


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The policy and the environment are put back; no test starts with a number asked for."""
    monkeypatch.delenv(policy.ENVIRONMENT, raising=False)
    for name in policy.LINEAR_ALGEBRA:
        monkeypatch.setenv(name, os.environ.get(name, "1"))
    monkeypatch.setattr(policy, "_threads", None)
    yield


def python(code: str, **settings: str) -> str:
    """What a new process prints."""
    names = (*policy.LINEAR_ALGEBRA, policy.ENVIRONMENT)
    kept = {name: text for name, text in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**kept, **settings},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


IMPORTS = """
import importlib, os, pkgutil, threading
before, started = dict(os.environ), []
start = threading.Thread.start
threading.Thread.start = lambda self: (started.append(self), start(self))
for name in {ours!r}:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{{name}}."):
        if module.name != "rtl.benches.cocotb_entry":  # the simulator's own, imported inside it
            importlib.import_module(module.name)
assert not started, started
changed = {{key for key in before | dict(os.environ) if before.get(key) != os.environ.get(key)}}
print(*sorted(changed - {{"COCOTB_TEST_MODULES"}}))
"""


def test_imports_change_no_environment_and_start_no_thread() -> None:
    assert python(IMPORTS.format(ours=OURS)).split() == []


def test_nobody_else_makes_threads_or_counts_processors() -> None:
    found: dict[str, set[str]] = {}
    for package in OURS:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                name = getattr(node, "attr", None) or getattr(node, "id", None)
                if name in MAKERS:
                    found.setdefault(path.relative_to(ROOT).as_posix(), set()).add(name)
    assert found == ALLOWED


def test_where_the_number_is_from(monkeypatch: pytest.MonkeyPatch) -> None:
    assert threads() == processors()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(7)), raising=False)
    assert threads() == 7  # not what the machine has, but what the process may use
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert threads() == 1
    monkeypatch.setenv(policy.ENVIRONMENT, " 3 ")
    assert threads() == 3
    set_threads(5)
    assert threads() == 5
    assert {os.environ[name] for name in policy.LINEAR_ALGEBRA} == {"5"}


@pytest.mark.parametrize("number", ["0", "-1", "1025", "1e3", "two", "٣", "9" * 5000])
def test_numbers_that_are_none(monkeypatch: pytest.MonkeyPatch, number: str) -> None:
    monkeypatch.setenv(policy.ENVIRONMENT, number)
    with pytest.raises(WorkloadError) as caught:
        threads()
    wanted = f"ARCHSIM_THREADS must be a whole number from 1 to 1024, not {number[:60]!r}"
    assert str(caught.value) == wanted
    before = dict(os.environ)
    with pytest.raises(WorkloadError, match=r"^threads must be a whole number from 1 to 1024, "):
        set_threads(0)
    assert dict(os.environ) == before


@pytest.mark.parametrize(("count", "most", "wanted"), [(1, 9, 1), (3, 9, 3), (9, 2, 2), (4, 4, 4)])
def test_work_is_shared_in_order_by_no_more(count: int, most: int, wanted: int) -> None:
    set_threads(count)
    inside, highest, lock = 0, 0, threading.Lock()

    def work(at: int) -> tuple[int, int]:
        nonlocal inside, highest
        with lock:
            inside += 1
            highest = max(highest, inside)
        time.sleep(0.01)
        with lock:
            inside -= 1
        return at, threading.get_ident()

    before = threading.active_count()
    found = in_threads(work, iter(range(12)), most=most)
    assert [at for at, _ in found] == list(range(12))
    assert highest == len({who for _, who in found}) == wanted
    assert ({who for _, who in found} == {threading.get_ident()}) == (wanted == 1)
    assert threading.active_count() == before


def test_what_goes_wrong_in_a_thread_is_raised() -> None:
    set_threads(2)

    def work(at: int) -> int:
        return 1 // at

    with pytest.raises(ZeroDivisionError):
        in_threads(work, [1, 0, 2])
    assert in_threads(work, []) == []


BLAS = """
from threadpoolctl import threadpool_info
{first}
from workloads.threads import set_threads
set_threads({count})
import numpy
print(*[one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"])
"""


@pytest.mark.parametrize("first", ["", "import numpy"])
def test_linear_algebra_follows_loaded_or_not(first: str) -> None:
    assert python(BLAS.format(first=first, count=1)).split() == ["1"]
    code = BLAS.format(first=first, count="")
    assert python(code, ARCHSIM_THREADS="1").split() == ["1"]
    assert python(code).split() == [str(processors())]  # nothing asked, nothing done


def test_onnx_runtime_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    kinds: list[int] = []

    class Session(onnxruntime.InferenceSession):
        def __init__(self, model: bytes, options: Any, providers: list[str]) -> None:
            kinds.append(options.intra_op_num_threads)
            super().__init__(model, options, providers)

    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    value = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2])
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "g", [value],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    set_threads(3)
    (found,) = run_session(model, ["y"], {"x": np.array([-1, 2], np.float32)})
    assert (kinds, found.tolist()) == ([3], [0, 2])


@pytest.mark.parametrize(("outer", "inner"), [(1, 6), (2, 3), (3, 2), (4, 1), (6, 1)])
def test_work_within_work_shares_its_threads(outer: int, inner: int) -> None:
    """Six of them; who is beside whom is counted by how many meet."""

    def inside(meeting: threading.Barrier) -> None:
        meeting.wait(10)

    def outside(_: int) -> None:
        in_threads(inside, [threading.Barrier(inner)] * inner)
        if inner > 1:
            with pytest.raises(threading.BrokenBarrierError):  # no more than these meet
                in_threads(late, [threading.Barrier(inner + 1)] * (inner + 1))

    def late(meeting: threading.Barrier) -> None:
        meeting.wait(0.5)

    set_threads(6)
    in_threads(outside, range(outer))
    in_threads(inside, [threading.Barrier(6)] * 6)  # behind it all of them again


def test_work_within_work_within_work() -> None:
    """Of eight threads two, of whose four two, have two each."""

    def inside(meeting: threading.Barrier) -> None:
        meeting.wait(0.5)

    def nested(depth: int) -> None:
        if depth:
            in_threads(nested, [depth - 1] * 2)
            return
        in_threads(inside, [threading.Barrier(2)] * 2)
        with pytest.raises(threading.BrokenBarrierError):
            in_threads(inside, [threading.Barrier(3)] * 3)

    set_threads(8)
    nested(2)
