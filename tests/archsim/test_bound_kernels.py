"""Kernels that are bound to arguments: run again and again, on arrays as they are then."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from archsim.kernels import kernel
from archsim.numbers import IntArray


@kernel("(i8.1, f8.1), int, bool")
def _mixed(given: tuple[IntArray, Any], step: int, twice: bool) -> tuple[int, float]:
    total, most = 0, -1.0
    for at in range(0, len(given[0]), step):
        total += given[0][at] * (2 if twice else 1)
        most = max(most, given[1][at])
    given[0][0] += 1
    return total, most


@kernel("i8.1")
def _doubled(values: IntArray) -> IntArray:
    if values[0] < 0:
        raise ValueError("values must not be negative")
    return values * 2


def test_a_bound_kernel_sees_arrays_as_they_are_when_it_is_called() -> None:
    whole, reals = np.arange(6), np.linspace(0, 1, 6)
    run = _mixed.bound((whole, reals), 2, True)
    assert run() == (12, 0.8)
    assert run() == (14, 0.8)
    whole[:], reals[4] = 5, 9.0
    assert run() == (30, 9.0)
    assert whole[0] == 6
    assert run() == _mixed.py_func((np.full(6, 5) + np.eye(6, dtype=int)[0], reals), 2, True)
    assert _mixed.bound((whole, reals), twice=False, step=1)() == (32, 9.0)


def test_arrays_and_answers_stay_alive() -> None:
    run = _doubled.bound(np.full(1 << 16, 21))
    gc.collect()
    others = [np.zeros(1 << 16, np.int64) for _ in range(8)]
    found = [run(), run()]
    assert all((one == 42).all() for one in found)
    found[0][0] = 7  # its own
    assert found[1][0] == run()[0] == 42
    assert not any(one.any() for one in others)


def test_what_a_bound_kernel_raises_is_raised_each_time() -> None:
    values = np.array([-1, 3])
    run = _doubled.bound(values)
    for _ in range(2):
        with pytest.raises(ValueError, match="values must not be negative"):
            run()
    values[0] = 1
    assert run().tolist() == [2, 6]


def test_other_types_and_arrays_in_another_order_are_refused() -> None:
    with pytest.raises(TypeError, match="is declared for"):
        _doubled.bound(np.zeros(3))  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="_doubled is bound to arrays in C order alone"):
        _doubled.bound(np.arange(8)[::2])


PLAIN = """
import numpy as np
from archsim.layer.integer_kernels import add_directly, runs
planes, out = np.arange(4, dtype=np.int8).reshape(1, 1, 2, 2), np.zeros((1, 4), np.int8)
from archsim.layer.problem import problem_of
from workloads.layers import Conv2d
one = problem_of(Conv2d(name="c", channels=1, filters=1, ifmap_height=2, ifmap_width=2,
                        kernel_height=1, kernel_width=1))
see = runs.bound(planes, one.vector(), np.array([0, 1, 0, 0, 2]), (1, 1), out)
see(), print(out.tolist())
planes += 1
see(), print(out.tolist())
"""


def test_where_nothing_is_compiled_it_is_python_that_runs() -> None:
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PLAIN], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[:2] == ["[[0, 1, 2, 3]]", "[[1, 2, 3, 4]]"]
