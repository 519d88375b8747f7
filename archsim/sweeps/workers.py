"""Where batches of points are computed: in this process, or in others beside it.

Anything with `submit` that gives futures will do (`Workers`).
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Protocol

from archsim.errors import InputError
from archsim.interrupts import ENDING
from archsim.numbers import IntArray
from archsim.sweeps.evaluation import Evaluator, Outcome
from archsim.sweeps.space import Space

BATCH_SECONDS = 0.2
"""That a batch is to take on this machine, so that handing it over costs little beside."""

RARELY = (50_000, 20, 20)
"""Thresholds of Python's collector where designs are computed: each is of some hundred small
objects, all of which stay until its batch is done, so that to look for garbage takes a sixth of the
time and finds none."""


@contextmanager
def collecting_rarely() -> Generator[None]:
    """Python's collector looks `RARELY` meanwhile."""
    before = gc.get_threshold()
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@dataclass(frozen=True, kw_only=True)
class Task:
    """A batch: designs, by their numbers, on a network, by its place in the space."""

    numbers: IntArray
    network: int


class BatchLostError(Exception):
    """Of a batch that nobody computes any more, through no fault of its own: it is to be asked for
    again."""


class Workers(Protocol):
    """Who computes batches."""

    batch_seconds: float
    """That a batch is to take."""

    @property
    def room(self) -> int:
        """Batches to ask for at one time, now: where they are computed elsewhere, one more for each
        that is being computed, so that no worker waits for this process."""
        ...

    def submit(self, task: Task) -> Future[Outcome]:
        """Compute a batch some time."""
        ...

    def close(self) -> None:
        """End all, what is being computed too."""
        ...


class Here:
    """In this process, when it is asked for."""

    batch_seconds, room = BATCH_SECONDS, 1

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    def submit(self, task: Task) -> Future[Outcome]:
        """Computed at once."""
        future: Future[Outcome] = Future()
        future.set_result(self._evaluator.outcome(task.numbers, task.network))
        return future

    def close(self) -> None:
        """Nothing is left."""


class Processes:
    """In processes of their own, a thread each; one that dies takes no other with it."""

    def __init__(
        self, space: Space, count: int, *, compute: Callable[[Task], Outcome] | None = None
    ) -> None:
        self.batch_seconds = BATCH_SECONDS
        self._space, self._compute = space, compute or _compute
        self._processes = [_Process(space) for _ in range(count)]
        self.room = 2 * count
        self._await(self._processes)

    @property
    def pids(self) -> list[int]:
        """Of the processes."""
        return [one.ready.result() for one in self._processes]

    def _await(self, processes: Iterable[_Process]) -> None:
        """Until all have begun.  Raises `InputError` where one cannot."""
        try:
            for one in processes:
                one.ready.result()
        except BrokenProcessPool as error:
            self.close()
            raise InputError(
                "no worker process can begin: what it printed says why; --workers 1 needs none"
            ) from error

    def submit(self, task: Task) -> Future[Outcome]:
        """By the process that has least to do."""
        loads = [len(one.asked) for one in self._processes]
        at = loads.index(min(loads))
        try:
            return self._processes[at].submit(self._compute, task)
        except BrokenProcessPool:
            self._processes[at] = _Process(self._space)
            self._await(self._processes[at : at + 1])
            return self._processes[at].submit(self._compute, task)

    def close(self) -> None:
        """What is being computed is not waited for."""
        for one in self._processes:
            one.kill()
        for one in self._processes:
            one.await_end()


class _Process:
    """A process, begun now, and the batches it was asked for, in the order it computes them."""

    def __init__(self, space: Space) -> None:
        self.asked: list[Future[Outcome]] = []
        self._dead = False
        self._killed: list[BaseProcess] = []
        self.pool = ProcessPoolExecutor(
            1, mp_context=get_context("spawn"), initializer=_begin, initargs=(space,)
        )
        with _no_main():
            self.ready = self.pool.submit(os.getpid)

    def submit(self, compute: Callable[[Task], Outcome], task: Task) -> Future[Outcome]:
        """Behind what it was asked for; raises `BrokenProcessPool` if it has died."""
        found: Future[Outcome] = Future()
        done = self.pool.submit(compute, task)
        self.asked.append(found)
        done.add_done_callback(lambda done: self._settle(done, found))
        return found

    def _settle(self, done: Future[Outcome], found: Future[Outcome]) -> None:
        """Hand on what became of a batch: of those that a dead process leaves, which are told in
        the order of asking, the first was being computed, and nobody began the others."""
        self.asked.remove(found)
        if done.cancelled():
            return
        error = done.exception()
        if error is None:
            found.set_result(done.result())
        elif isinstance(error, BrokenProcessPool) and self._dead:
            found.set_exception(BatchLostError("the worker that was to compute it died before"))
        else:
            self._dead |= isinstance(error, BrokenProcessPool)
            found.set_exception(error)

    def kill(self) -> None:
        """End it, whatever it computes."""
        self._killed = list((self.pool._processes or {}).values())  # pyright: ignore[reportPrivateUsage]
        self.pool.shutdown(wait=False, cancel_futures=True)
        for one in self._killed:
            one.kill()

    def await_end(self) -> None:
        """Until one that was killed is gone: a pool that was told not to wait never does."""
        for one in self._killed:
            one.join()


@contextmanager
def _no_main() -> Generator[None]:
    """Processes that begin meanwhile do not run the script that this one was started with."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


_evaluator: Evaluator | None = None


def _begin(space: Space) -> None:
    """In a worker: one thread; what ends the sweep is the other's to hear, also where a whole group
    of processes is told, for a worker that died first would be a point that failed; it ends when
    the other does."""
    global _evaluator
    for name in ENDING:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from workloads.threads import set_threads

    set_threads(1)
    gc.set_threshold(*RARELY)
    _evaluator = Evaluator(space)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _compute(task: Task) -> Outcome:
    assert _evaluator is not None
    return _evaluator.outcome(task.numbers, task.network)


__all__ = [
    "RARELY",
    "BatchLostError",
    "Here",
    "Processes",
    "Task",
    "Workers",
    "collecting_rarely",
]
