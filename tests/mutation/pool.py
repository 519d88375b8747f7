"""Forked processes, at most so many at once, each killed when its time is over.

Time is the processor's, of a process and what it started: a busy machine makes nothing late.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Literal

from tests.mutation.trial import limit_memory

Lost = Literal["ended", "late"]
"""Instead of an answer: the process ended without one, or took too long."""

Ended = tuple[Any, Any, float]
"""What was tried, the answer or `Lost`, seconds."""

IDLE = 20
"""So many times as long by the clock: what waits for nothing takes no processor time."""

LOOKED_AT = 5
"""Seconds between two looks at how long processes have run."""


class Pool:
    """Calls `run` with one thing after the other, each in a process of its own."""

    def __init__(self, run: Callable[[Any], Any], processes: int, seconds: float) -> None:
        self.run, self.processes, self.seconds = run, processes, seconds
        self.running: dict[Connection, tuple[Any, Any, float]] = {}
        """By the end of a pipe: the process, what it tries, since when."""
        self.looked = time.monotonic()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        for process, _, _ in self.running.values():
            kill(process)

    def each(self, things: Iterable[Any]) -> Iterator[Ended]:
        """All of them, in the order in which they end."""
        for thing in things:
            self.start(thing)
            yield from self.ended(all_of_them=False)
        yield from self.ended(all_of_them=True)

    def start(self, thing: Any) -> None:
        """Begin with one."""
        here, there = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(
            target=_in_child, args=(self.run, thing, there)
        )
        process.start()
        there.close()
        self.running[here] = process, thing, time.monotonic()

    def ended(self, *, all_of_them: bool) -> Iterator[Ended]:
        """Those that have ended; waits until another one may start, or for all."""
        most = 0 if all_of_them else self.processes - 1
        while len(self.running) > most:
            for ready in wait(list(self.running), timeout=1):
                yield self._answer(ready)
            for late in self._late():
                process, thing, _begun = self.running.pop(late)
                kill(process)
                yield thing, "late", self.seconds

    def _late(self) -> list[Connection]:
        """Those whose time is over."""
        now = time.monotonic()
        if now - self.looked < min(LOOKED_AT, self.seconds):
            return []
        self.looked = now
        old = {one: now - begun for one, (_, _, begun) in self.running.items()}
        old = {one: seconds for one, seconds in old.items() if seconds > self.seconds}
        spent = processor_seconds() if old else {}
        busy = {one: spent.get(self.running[one][0].pid, 0.0) for one in old}
        return [
            one for one in old if busy[one] > self.seconds or old[one] > IDLE * self.seconds
        ]  # fmt: skip

    def _answer(self, ready: Any) -> Ended:
        process, thing, begun = self.running.pop(ready)
        try:
            answer = ready.recv()
        except EOFError:  # killed by the system, or a crash in compiled code
            answer = "ended"
        process.join()
        ready.close()
        return thing, answer, round(time.monotonic() - begun, 1)


def _in_child(run: Callable[[Any], Any], thing: Any, answer: Connection) -> None:
    os.setsid()
    limit_memory()
    answer.send(run(thing))


def processor_seconds() -> dict[int, float]:
    """By process group, what its processes and their children that have ended took."""
    spent: dict[int, float] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        ticks = sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime
        group = int(fields[2])
        spent[group] = spent.get(group, 0) + ticks / os.sysconf("SC_CLK_TCK")
    return spent


def kill(process: Any) -> None:
    """The process, and the compilers that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()
    process.join()


__all__ = ["Ended", "Lost", "Pool", "kill", "processor_seconds"]
