"""Kernels that a second process compiles, while this one compiles the first that it needs.

A first run needs some kernels, which do not hang on each other.  When the first of them is compiled
another process begins with the rest of those that were expected, and puts them into the cache,
where this process finds them; what it is behind with is waited for.  Nothing of that happens where
one thread is asked for, where no processor is free, or nothing can be kept; and where the other
process fails, this one compiles all by itself.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess

    from archsim.kernels.kernel import Kernel

LOOKS_SECONDS = 0.02
"""Between looks for what the other process makes."""

_CODE = "from archsim.kernels.ahead import main; main()"


@dataclass
class _Other:
    """The other process, and the names of the kernels that it was told to compile."""

    process: subprocess.Popen[str] | None = None
    names: set[str] = field(default_factory=set[str])
    expected: list[Kernel[..., Any]] = field(default_factory=list["Kernel[..., Any]"])


_other = _Other()


def expect(entries: Iterable[Kernel[..., Any]]) -> None:
    """These will be compiled by this process, the first one first, unless another one does."""
    _other.expected = list(entries)


def begin(own: Kernel[..., Any]) -> None:
    """This process compiles a kernel: another one begins with the others that are expected."""
    others = [one for one in _other.expected if one is not own]
    if len(others) == len(_other.expected):
        return
    _other.expected = []
    busy = _other.process is not None and _other.process.poll() is None
    if others and not busy and _may_start():
        with contextlib.suppress(OSError):
            _start(others)


def _may_start() -> bool:
    """Whether there is another thread and a processor for it, and a place for what it makes."""
    from archsim.kernels.store import can_write
    from workloads.threads import are_told, processors, threads

    free = are_told() or load() < processors() - 1
    return threads() > 1 and free and bool(sys.executable) and can_write()


def load() -> float:
    """Processes that wanted a processor in the last minute, on average; 0 where nobody counts."""
    counted = getattr(os, "getloadavg", None)
    return 0.0 if counted is None else counted()[0]


def _start(others: list[Kernel[..., Any]]) -> None:
    """Start the other process, which imports what this one would.  Raises `OSError`."""
    import json
    import subprocess

    from workloads.threads import ENVIRONMENT

    atexit.unregister(_end)
    atexit.register(_end)
    _other.process = subprocess.Popen(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {_CODE}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, ENVIRONMENT: "1"},
        text=True,
    )
    _other.names = {one.name for one in others}
    places = [(one.part.function.__module__, one.part.function.__qualname__) for one in others]
    assert _other.process.stdin is not None
    with _other.process.stdin as place:
        place.write(json.dumps(places))


def awaited(name: str, look: Callable[[], bytes | None]) -> bytes | None:
    """What the other process makes of a kernel; None if it does not make it.

    look: for what is there of it.
    """
    if name not in _other.names or _other.process is None:
        return None
    while True:
        ended = _other.process.poll() is not None
        found = look()
        if found is not None or ended:
            return found
        time.sleep(LOOKS_SECONDS)


def _end() -> None:
    """No process outlives this one: what it has not put away yet is lost."""
    if _other.process is not None:
        _other.process.kill()
        _other.process.wait()
        _other.process, _other.names = None, set()


def main() -> None:
    """Compile what stdin names, of modules that can be imported, and keep it."""
    import json

    for module, name in json.loads(sys.stdin.read()):
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        with contextlib.suppress(TypeError):  # for more than one type: who calls it compiles it
            found.make()


__all__ = ["awaited", "begin", "expect", "load", "main"]
