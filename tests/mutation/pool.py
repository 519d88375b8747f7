"""Forked processes, at most so many at once, each killed when its time is over."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, Literal

from tests.mutation.trial import limit_memory

Lost = Literal["ended", "late"]
"""Instead of an answer: the process ended without one, or took too long."""

Ended = tuple[Any, Any, float]
"""What was tried, the answer or `Lost`, seconds."""


class Pool:
    """Calls `run` with one thing after the other, each in a process of its own."""

    def __init__(self, run: Callable[[Any], Any], processes: int, seconds: float) -> None:
        self.run, self.processes, self.seconds = run, processes, seconds
        self.running: dict[Connection, tuple[Any, Any, float]] = {}
        """By the end of a pipe: the process, what it tries, since when."""

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
            now = time.monotonic()
            for late in [one for one in self.running if now - self.running[one][2] > self.seconds]:
                process, thing, _begun = self.running.pop(late)
                kill(process)
                yield thing, "late", self.seconds

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


def kill(process: Any) -> None:
    """The process, and the compilers that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()
    process.join()


__all__ = ["Ended", "Lost", "Pool", "kill"]
