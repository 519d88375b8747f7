"""Entries that other kernels call and do not contain; kernels that a second process compiles."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from archsim.kernels import ahead, announce_to, not_compiled, store
from archsim.kernels.closure import fingerprint
from archsim.kernels.spelling import Arguments, examples
from workloads.threads import set_threads

MODULE = """
from archsim.kernels import kernel


@kernel("i8.1, int")
def first(values, step):
    return values[0] + step


@kernel("i8.1", answer="int")
def second(values):
    if values[0] < 0:
        raise ValueError("values must not be negative")
    return values[0] * 3


@kernel("i8.1")
def both(values):
    return second(values[1:]) + 1
"""


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """With a cache of its own and two threads: the names of what this process compiles."""
    monkeypatch.setenv(store.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr("workloads.threads._threads", 2)
    names: list[str] = []
    announce_to(lambda name: names.append(name.rpartition(".")[2]))
    yield names
    ahead._end()  # pyright: ignore[reportPrivateUsage]
    announce_to(lambda _: None)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Kernels of a module that another process can import."""
    (tmp_path / "own_kernels.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield import_module("own_kernels")
    del sys.modules["own_kernels"]


def test_a_linked_entry_is_called_and_not_contained(told: list[str], module: Any) -> None:
    values = np.array([5, 7])
    assert module.both(values) == module.both.py_func(values) == 22
    assert told == ["both", "second"]
    assert module.second(values) == 15  # the same code
    (parts,) = module.both.forms.values()
    assert not any("second" in name for name in parts)
    del sys.modules["own_kernels"]
    assert import_module("own_kernels").both(values) == 22  # from the cache
    assert told == ["both", "second"]


def test_a_change_of_a_linked_entry_is_a_change_of_who_calls_it(
    told: list[str], module: Any
) -> None:
    place, values = Path(module.__file__), np.array([5, 7])
    assert module.both(values) == 22
    other = place.with_name("other_kernels.py")
    other.write_text(MODULE.replace("* 3", "* 4"), encoding="utf-8")
    changed = import_module("other_kernels")
    assert fingerprint(changed.both.part) != fingerprint(module.both.part)
    assert changed.both(values) == 29
    assert told == ["both", "second"] * 2


def test_what_a_linked_entry_raises_is_raised(told: list[str], module: Any) -> None:
    with pytest.raises(ValueError, match=r"^values must not be negative$"):
        module.both(np.array([5, -1]))
    assert module.both(np.array([5, 0])) == 1


class Pair(NamedTuple):
    first: Any
    second: Any


@pytest.mark.parametrize(
    "spelled",
    [
        "i8.1,i8.2,bool,f8.1", "int,(f8.1,(int,u1.3)),float", "u8",
        "Pair(int,f8.2)", "int,(Pair(Pair(bool,u8),(int,int)),i8.1)",
    ],
)  # fmt: skip
def test_examples_are_of_the_types_asked_for(spelled: str) -> None:
    arguments = Arguments()
    for value in examples(spelled, globals()):
        arguments.add(value)
    assert arguments.spelled == spelled


@pytest.mark.parametrize("spelled", ["Other(int,int)", "i8.?", "*", "Pair(i8.?,int)"])
def test_of_what_is_no_one_type_there_are_none(spelled: str) -> None:
    with pytest.raises(TypeError, match="no argument can be made of"):
        examples(spelled, globals())


def test_another_process_compiles_what_is_expected(
    told: list[str], module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "load", lambda: 0.0)
    entries = [module.first, module.both]
    ahead.expect(not_compiled(entries))
    assert [one.name for one in not_compiled(entries)] == [
        "own_kernels.first", "own_kernels.both", "own_kernels.second",
    ]  # fmt: skip
    values = np.array([5, 7])
    assert module.first(values, 2) == 7
    assert module.both(values) == 22
    assert told == ["first"]
    assert not_compiled(entries) == []


def _one_thread(_module: Any, _monkeypatch: pytest.MonkeyPatch) -> None:
    set_threads(1)


def _no_processor(_module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workloads.threads.are_told", lambda: False)
    monkeypatch.setattr(ahead, "load", lambda: float(os.cpu_count() or 1))


def _not_found(module: Any, _monkeypatch: pytest.MonkeyPatch) -> None:
    Path(module.__file__).unlink()  # the other process cannot import it


def _no_process(_module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")


@pytest.mark.parametrize("spoil", [_one_thread, _no_processor, _not_found, _no_process])
def test_without_another_process_all_is_compiled_here(
    told: list[str],
    module: Any,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[Any, pytest.MonkeyPatch], None],
) -> None:
    ahead.expect([module.first, module.both, module.second])
    for name in ("OPENBLAS", "MKL", "BLIS", "OMP"):
        monkeypatch.setenv(f"{name}_NUM_THREADS", "1")
    monkeypatch.setenv("ARCHSIM_THREADS", "2")
    spoil(module, monkeypatch)
    values = np.array([5, 7])
    assert (module.first(values, 2), module.both(values)) == (7, 22)
    assert told == ["first", "both", "second"]


def test_a_kernel_that_was_not_expected_starts_nothing(told: list[str], module: Any) -> None:
    ahead.expect([module.both, module.second])
    assert module.first(np.array([1]), 1) == 2
    assert told == ["first"]
    assert not list(store.kernel_folder().glob("*both*"))
