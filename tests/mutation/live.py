"""A fault put into functions that are imported already: nothing is imported anew.

Only the code of one function is exchanged, where it is, so that all who know the function run the
faulty one.  Faults outside of functions (constants of a module, fields of a class, defaults) are
none of these.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterator
from functools import _lru_cache_wrapper  # pyright: ignore[reportPrivateUsage]
from types import CodeType, FunctionType
from typing import Any

from tests.mutation.operators import Mutant
from tests.mutation.sources import mutated_side, source_of, within

HOUSE = ("archsim", "rtl", "workloads", "energy_models")
KEPT = "archsim.kernels"
"""Its caches hold machine code, which would be gone."""


def put_in_live(mutant: Mutant) -> bool:
    """Whether the fault could be put in: now in this process, and in no cache's answers."""
    path = source_of(mutant.module)
    text = path.read_text(encoding="utf-8")
    sound = compile(text, str(path), "exec")
    faulty = compile(mutant.apply(text), str(path), "exec")
    found = list(_functions_that_differ(sound, faulty, ""))
    if len(found) != 1 or found[0] is None:
        return False
    name, before, after = found[0]
    function = _function(importlib.import_module(mutant.module), name)
    if function is None or function.__code__.co_firstlineno != before.co_firstlineno:
        return False
    if function.__code__.co_freevars != after.co_freevars:
        return False
    function.__code__ = after
    if not mutated_side(mutant.module, "rtl"):  # of which no kernel is made
        _run_as_python(function)
    for cache in _caches():
        cache.cache_clear()
    return True


Difference = tuple[str, CodeType, CodeType]


def _functions_that_differ(
    sound: CodeType, faulty: CodeType, within: str
) -> Iterator[Difference | None]:
    """By dotted name, functions of a module's code, or a class's, that differ; None for what else
    does."""
    inner, other = _inner(sound), _inner(faulty)
    if _own(sound) != _own(faulty) or len(inner) != len(other):
        yield None
        return
    for one, two in zip(inner, other, strict=True):
        name = f"{within}{one.co_name}"
        if one.co_flags & 0x2:  # a function: it has fast locals, which a class's body has not
            if _whole(one) != _whole(two):
                yield name, one, two
        else:
            yield from _functions_that_differ(one, two, f"{name}.")


def _inner(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _own(code: CodeType) -> tuple[Any, ...]:
    """All of a code but the codes within."""
    constants = [(type(each), each) for each in code.co_consts if not isinstance(each, CodeType)]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, repr(constants), names, code.co_name


def _whole(code: CodeType) -> tuple[Any, ...]:
    return _own(code), tuple(_whole(each) for each in _inner(code))


def _function(module: Any, name: str) -> FunctionType | None:
    """The function behind a dotted name, through what decorates it."""
    found: Any = module
    for part in name.split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    for _ in range(4):
        if isinstance(found, FunctionType) and not hasattr(found, "__wrapped__"):
            return found
        for way in ("fget", "func", "__wrapped__", "__func__", "py_func"):
            inner = getattr(found, way, None)
            if inner is not None:
                found = inner
                break
    return None


SEARCHES = ("archsim.tiled.near*",)
"""Modules whose kernels go through thousands of tilings: as Python they would take minutes."""


def compiled_anew(kernel: Any) -> list[Any]:
    """Of a kernel that is to be compiled with the fault: itself and what it is linked to."""
    from archsim.kernels.kernel import linked_to

    searches = kernel.declared is not None and within(kernel.part.function.__module__, SEARCHES)
    return [kernel, *linked_to(kernel.part)] if searches else []


def _run_as_python(function: FunctionType) -> None:
    """Kernels that the function is part of are no longer the compiled ones: they run as Python, and
    those of the mapper are compiled with the fault."""
    from archsim.kernels import Kernel
    from archsim.kernels.closure import names_of, part_of

    def has(part: Any, seen: set[int]) -> bool:
        if part.function is function:
            return True
        if id(part.function) in seen:
            return False
        seen.add(id(part.function))
        inner = (part_of(value) for _, _, value in names_of(part.function))
        return any(has(one, seen) for one in inner if one is not None)

    for kernel in [one for one in gc.get_objects() if isinstance(one, Kernel)]:
        if has(kernel.part, set()):
            if compiled_anew(kernel):
                _forget_compiled(kernel)
            else:
                kernel._run = kernel.part.function  # pyright: ignore[reportPrivateUsage]


def _forget_compiled(kernel: Any) -> None:
    """It and what it is linked to are compiled when they are called next, and not kept: a fault
    would take the place of what the user's cache folder holds."""
    from archsim.kernels import build, store

    build._dispatchers.clear()  # pyright: ignore[reportPrivateUsage]
    store.write = lambda *what: None
    for one in compiled_anew(kernel):
        one._natives.clear()
    kernel._run = kernel._compiled


_known: list[Any] = []


def _caches() -> list[Any]:
    """Of all functions of the house; looked for once."""
    if not _known:
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in HOUSE and not name.startswith(KEPT):
                for value in list(vars(module).values()):
                    _known.extend(_caches_of(value))
    return _known


def _caches_of(value: Any) -> list[Any]:
    inner = list(vars(value).values()) if isinstance(value, type) else [value]
    plain = [getattr(one, "__func__", one) for one in inner]
    return [one for one in plain if isinstance(one, _lru_cache_wrapper)]


def remember_caches(*, clear: bool = False) -> None:
    """Look for them before processes are forked, so that each need not."""
    _known.clear()
    for cache in _caches():
        if clear:
            cache.cache_clear()


__all__ = ["compiled_anew", "put_in_live", "remember_caches"]
