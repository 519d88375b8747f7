"""Batches of points computed by the workers of a Dask cluster, wherever they run.

A scheduler and workers stand already (`dask scheduler`, `dask worker`, or dask-jobqueue on a queue
of jobs); the study stays in this process, which alone writes it.  A worker that dies costs the time
of its batches; one that comes late takes part from then on.  A scheduler that goes is waited for;
where none comes in time, the sweep ends with what was kept, and the same command continues it.
"""

from __future__ import annotations

import gc
import pickle
import platform
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any

from archsim.errors import InputError
from archsim.sweeps.evaluation import Evaluator, Outcome
from archsim.sweeps.packages import Packages, packages_of, told, versions
from archsim.sweeps.points import Grid
from archsim.sweeps.provenance import digest_of
from archsim.sweeps.space import Space
from archsim.sweeps.workers import RARELY, BatchLostError, Task
from archsim.version import VERSION

CONNECT_SECONDS = 10
"""For a scheduler that answers."""

WAIT_SECONDS = 60
"""For the first worker, and for a scheduler that went: a queue of jobs takes its time."""

AGAIN_SECONDS = 0.5
"""Between two looks for a scheduler."""

BATCH_SECONDS = 1.0
"""That a batch is to take: what Dask takes for a task does not grow with it, some 10 to 20 ms of
processor time in worker, scheduler and client (`benchmarks/sweep_dask.py`)."""

COUNT_SECONDS = 1.0
"""Between two counts of the workers: each asks the scheduler."""

About = tuple[str, str, Packages]
"""Of a worker: its archsim, its Python as far as that decides what can be sent to it, and the other
packages that the space computes with."""


class Cluster:
    """The workers of a scheduler ("tcp://host:8786").

    Raises `InputError` where none answers, where none works for it, and for workers of another
    version than ours, by name.
    """

    def __init__(
        self,
        space: Space,
        scheduler: str,
        *,
        wait_seconds: float = WAIT_SECONDS,
        told: Callable[[str], None] | None = None,
    ) -> None:
        """wait_seconds: for the first worker, and for a scheduler that goes; told: called with a
        line where it is waited for."""
        import distributed

        self.batch_seconds = BATCH_SECONDS
        self._scheduler, self._wait_seconds, self._told = scheduler, wait_seconds, told
        self._space, self._key = pickle.dumps(space), digest_of(Grid(space))
        self._packages = list(packages_of(space))
        self._about = about(self._packages)
        self._killed = distributed.KilledWorker
        self._lost = False
        self._counted, self._threads = -COUNT_SECONDS, 1
        try:
            self._client: Any = self._connected(min(wait_seconds, CONNECT_SECONDS))
        except (TimeoutError, OSError, ValueError, ImportError) as error:
            raise InputError(
                f"no scheduler answers at {scheduler} ({_line(error)}); begin one with: dask "
                "scheduler"
            ) from error
        self._look()

    def _connected(self, seconds: float) -> Any:
        import distributed

        return distributed.Client(self._scheduler, timeout=seconds, set_as_default=False)

    def _look(self) -> None:
        """Whether workers come, and are of our version.  Raises `InputError`."""
        try:
            self._await_worker(self._wait_seconds)
            self._check_versions()
        except BaseException:
            self.close()
            raise

    def _find_again(self) -> None:
        """Wait for a scheduler that went.  Raises `InputError` where none comes in time."""
        if self._told is not None:
            self._told(
                f"the scheduler at {self._scheduler} is gone: waiting {self._wait_seconds:g} s "
                "for it"
            )
        self.close()
        until = time.monotonic() + self._wait_seconds
        while True:
            left = until - time.monotonic()
            try:
                self._client = self._connected(min(max(left, AGAIN_SECONDS), CONNECT_SECONDS))
                break
            except (TimeoutError, OSError) as error:
                if left <= AGAIN_SECONDS:
                    raise self._gone(error) from error
            time.sleep(AGAIN_SECONDS)
        self._lost = False
        self._look()

    def _await_worker(self, wait_seconds: float) -> None:
        try:
            self._client.wait_for_workers(1, timeout=wait_seconds)
        except (TimeoutError, OSError) as error:
            raise InputError(
                f"no worker has come to {self._scheduler} in {wait_seconds:g} s; begin some with: "
                f"dask worker {self._scheduler} --nthreads 1"
            ) from error

    def _check_versions(self) -> None:
        """Of those that are there now; those that come later check themselves."""
        try:
            found: dict[str, About] = self._client.run(about, self._packages)
        except Exception as error:
            raise InputError(
                f"a worker of {self._scheduler} cannot begin: {_line(error)}; it needs archsim "
                f"{VERSION}"
            ) from error
        ours = self._about
        for name, other in found.items():
            if other != ours:
                raise InputError(f"worker {name} has {_told(other)}, and here is {_told(ours)}")

    @property
    def room(self) -> int:
        """Two for each thread of all workers that are there, counted again after a second.  Raises
        `InputError` if the scheduler went and did not come again."""
        if self._lost or self._client.status != "running":
            self._find_again()
        elif time.monotonic() - self._counted < COUNT_SECONDS:
            return 2 * self._threads
        try:
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
        except (KeyError, ValueError, OSError):
            self._lost = True
            return 1
        self._threads = max(sum(int(one["nthreads"]) for one in workers.values()), 1)
        self._counted = time.monotonic()
        return 2 * self._threads

    def submit(self, task: Task) -> Future[Outcome]:
        """By the worker that the scheduler chooses; `BatchLostError` where the scheduler goes."""
        found: Future[Outcome] = Future()
        client = self._client
        try:
            asked = client.submit(
                compute, self._key, self._space, task, self._about, pure=False, retries=0
            )
        except Exception as error:
            self._lost = True
            found.set_exception(BatchLostError(_line(error)))
            return found

        def settle(done: Any) -> None:
            self._settle(done, found, client)

        asked.add_done_callback(settle)
        return found

    def _settle(self, done: Any, found: Future[Outcome], client: Any) -> None:
        """Hand on what became of a batch."""
        if found.cancelled():
            return
        if done.status in ("cancelled", "lost"):
            self._lost |= client is self._client
            found.set_exception(BatchLostError("its scheduler is gone"))
            return
        error = done.exception()
        if error is None:
            found.set_result(done.result())
        elif isinstance(error, self._killed):
            found.set_exception(BrokenProcessPool(str(error)))
        else:
            found.set_exception(error)

    def _gone(self, error: BaseException) -> InputError:
        return InputError(
            f"the scheduler at {self._scheduler} is gone, and none came in {self._wait_seconds:g} "
            f"s ({_line(error)}); what was kept is whole, and the same command continues it"
        )

    def close(self) -> None:
        """What is being computed is not waited for."""
        with suppress(Exception):
            self._client.close(timeout=1)


def about(packages: Sequence[str] = ()) -> About:
    """What a worker and its client must have alike."""
    return VERSION, ".".join(platform.python_version_tuple()[:2]), versions(packages)


def _told(one: About) -> str:
    packages = f" with {told(one[2])}" if one[2] else ""
    return f"archsim {one[0]} on Python {one[1]}{packages}"


def _line(error: BaseException) -> str:
    said = str(error).splitlines()
    return said[0][:200] if said else type(error).__name__


_evaluators: dict[str, Evaluator] = {}
"""In a worker: of the space that it computes, told by all it holds, its networks' contents too."""


def compute(key: str, space: bytes, task: Task, wanted: About) -> Outcome:
    """In a worker: a batch of a pickled space.  Raises `InputError` where it is of another version,
    or lacks a package: before the space is read, which may want it."""
    ours = about(list(wanted[2]))
    if ours != wanted:
        raise InputError(f"a worker has {_told(ours)}, and the sweep {_told(wanted)}")
    if key not in _evaluators:
        from workloads.threads import set_threads

        set_threads(1)
        gc.set_threshold(*RARELY)
        _evaluators.clear()
        _evaluators[key] = Evaluator(pickle.loads(space))
    return _evaluators[key].outcome(task.numbers, task.network)


__all__ = ["Cluster"]
