"""What a kernel is made of: its code, the parts that it calls, the constants that it reads.

From these its key is made, so that an edit anywhere in them, and nowhere else, asks for another
compilation.  They are read from the functions as they are, not from files, which may have changed
since they were imported.
"""

from __future__ import annotations

import builtins
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Any, cast

import numpy as np

Function = Any
"""A function of Python's: `FunctionType`, which checkers take for a method where a class has it."""


@dataclass(frozen=True)
class Part:
    """A function that is compiled, and whether it is merged into its callers.

    short_loops: of an entry, that its loops run a few times, so that statements side by side are
    put into vectors and not the turns of loops.  linked: of an entry that other kernels call, and
    do not contain, its types of arguments and of its answer.
    """

    function: Function
    merged: bool
    short_loops: bool = False
    linked: tuple[str, str] | None = None


def part_of(value: object) -> Part | None:
    """The part behind a decorated function; None for anything else."""
    part = getattr(value, "part", None)
    return part if isinstance(part, Part) else None


def names_of(function: Function) -> Iterator[tuple[str, str | None, Any]]:
    """What a function's names stand for: (name, None, value), and (module, attribute, value) of the
    project's own modules."""
    code, scope = function.__code__, function.__globals__
    for name in code.co_names:
        if name in scope:
            value = scope[name]
            if isinstance(value, ModuleType) and not _foreign(value.__name__):
                for attribute in code.co_names:
                    if hasattr(value, attribute):
                        yield name, attribute, getattr(value, attribute)
            else:
                yield name, None, value
        elif hasattr(builtins, name):
            yield name, None, getattr(builtins, name)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield name, None, cell.cell_contents


def _foreign(module: str) -> bool:
    return module.partition(".")[0] in ("numpy", "math", "builtins")


def fingerprint(part: Part) -> str:
    """A hash of all that the compiled part depends on, but for the versions of the tools."""
    seen: dict[int, int] = {}
    digest = hashlib.sha256()
    for line in _lines(part, seen):
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()


def _lines(part: Part, seen: dict[int, int]) -> Iterator[str]:
    """The part's code and names; parts that it calls follow where they are first named."""
    if id(part.function) in seen:
        yield f"part {seen[id(part.function)]}"
        return
    seen[id(part.function)] = len(seen)
    yield f"function {part.function.__name__} {part.merged} {part.function.__defaults__!r}"
    if part.short_loops:
        yield "short loops"
    if part.linked is not None:
        yield f"linked {part.linked}"
    yield from _code(part.function.__code__)
    for name, attribute, value in names_of(part.function):
        yield f"name {name} {attribute}"
        inner = part_of(value)
        if inner is not None:
            yield from _lines(inner, seen)
        else:
            yield _constant(part.function, name, value)


def _code(code: CodeType) -> Iterator[str]:
    yield repr((code.co_argcount, code.co_varnames, code.co_names, code.co_freevars, code.co_flags))
    yield code.co_code.hex()
    yield getattr(code, "co_exceptiontable", b"").hex()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        else:
            yield repr(constant)


def _constant(function: Function, name: str, value: Any) -> str:
    """What a global name stands for.  Raises `TypeError` where that cannot be told."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, np.generic):
        return repr(cast("np.generic[Any]", value))
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        return f"{array.dtype.str} {array.shape} {array.tobytes().hex()}"
    if isinstance(value, tuple):
        return repr([_constant(function, name, entry) for entry in cast("tuple[Any, ...]", value)])
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, type) or callable(value):
        module = getattr(value, "__module__", None) or ""
        if isinstance(value, (type, np.ufunc)) or _foreign(module):
            return f"{module}.{_called(value, name)}"
    raise TypeError(f"kernel {function.__qualname__}: {name} is neither a constant nor a kernel")


def _called(value: Any, name: str) -> str:
    """The name of a class or a function, and a named tuple's fields."""
    return f"{getattr(value, '__qualname__', name)} {getattr(value, '_fields', ())}"
