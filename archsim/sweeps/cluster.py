"""Batches of points computed by the workers of a Dask cluster, wherever they run.

A scheduler and workers stand already (`dask scheduler`, `dask worker`, or dask-jobqueue on a queue
of jobs); the study stays in this process, which alone writes it.  A worker that dies costs the time
of its batches; one that comes late takes part from then on.  Where the scheduler goes, the sweep
ends with what was kept, and the same command continues it.
"""

from __future__ import annotations

import platform
from concurrent.futures import CancelledError, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any

from archsim.errors import InputError
from archsim.sweeps.evaluation import Evaluator, Outcome
from archsim.sweeps.points import Grid
from archsim.sweeps.space import Space
from archsim.sweeps.study import digest_of
from archsim.sweeps.workers import Task
from archsim.version import VERSION

CONNECT_SECONDS = 10
"""For a scheduler that answers."""

WAIT_SECONDS = 60
"""For the first worker: a queue of jobs takes its time."""

About = tuple[str, str]
"""Of a worker: its archsim, and its Python as far as that decides what can be sent to it."""


class Cluster:
    """The workers of a scheduler ("tcp://host:8786").

    Raises `InputError` where none answers, where none works for it, and for workers of another
    version than ours, by name.
    """

    def __init__(self, space: Space, scheduler: str, *, wait_seconds: float = WAIT_SECONDS) -> None:
        import distributed

        self._scheduler = scheduler
        self._space, self._key = space, digest_of(Grid(space))
        try:
            self._client: Any = distributed.Client(
                scheduler, timeout=min(wait_seconds, CONNECT_SECONDS), set_as_default=False
            )
        except (TimeoutError, OSError, ValueError, ImportError) as error:
            raise InputError(
                f"no scheduler answers at {scheduler} ({_line(error)}); begin one with: dask "
                "scheduler"
            ) from error
        try:
            self._await_worker(wait_seconds)
            self._check_versions()
        except BaseException:
            self.close()
            raise
        self._lost = distributed.KilledWorker

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
            found: dict[str, About] = self._client.run(about)
        except Exception as error:
            raise InputError(
                f"a worker of {self._scheduler} cannot begin: {_line(error)}; it needs archsim "
                f"{VERSION}"
            ) from error
        for name, other in found.items():
            if other != about():
                raise InputError(f"worker {name} has {_told(other)}, and here is {_told(about())}")

    @property
    def slots(self) -> int:
        """Threads of all workers that are there now.  Raises `InputError` if the scheduler went."""
        try:
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
        except (KeyError, ValueError, OSError) as error:
            raise self._gone(ConnectionError("it does not answer")) from error
        return max(sum(int(one["nthreads"]) for one in workers.values()), 1)

    def submit(self, task: Task) -> Future[Outcome]:
        """By the worker that the scheduler chooses."""
        found: Future[Outcome] = Future()
        try:
            asked = self._client.submit(
                compute, self._key, self._space, task, about(), pure=False, retries=0
            )
        except Exception as error:
            raise self._gone(error) from error

        def settle(done: Any) -> None:
            self._settle(done, found)

        asked.add_done_callback(settle)
        return found

    def _settle(self, done: Any, found: Future[Outcome]) -> None:
        """Hand on what became of a batch."""
        if found.cancelled():
            return
        if done.status == "cancelled":
            found.set_exception(self._gone(CancelledError("its batches are lost")))
            return
        error = done.exception()
        if error is None:
            found.set_result(done.result())
        elif isinstance(error, self._lost):
            found.set_exception(BrokenProcessPool(str(error)))
        else:
            found.set_exception(error)

    def _gone(self, error: BaseException) -> InputError:
        return InputError(
            f"the scheduler at {self._scheduler} is gone ({_line(error)}); what was kept is whole, "
            "and the same command continues it"
        )

    def close(self) -> None:
        """What is being computed is not waited for."""
        with suppress(Exception):
            self._client.close(timeout=1)


def about() -> About:
    """What a worker and its client must have alike."""
    return VERSION, ".".join(platform.python_version_tuple()[:2])


def _told(one: About) -> str:
    return f"archsim {one[0]} on Python {one[1]}"


def _line(error: BaseException) -> str:
    said = str(error).splitlines()
    return said[0][:200] if said else type(error).__name__


_evaluators: dict[str, Evaluator] = {}
"""In a worker: of the space that it computes, told by all it holds, its networks' contents too."""


def compute(key: str, space: Space, task: Task, wanted: About) -> Outcome:
    """In a worker: a batch.  Raises `InputError` where it is of another version."""
    if about() != wanted:
        raise InputError(f"a worker has {_told(about())}, and the sweep {_told(wanted)}")
    if key not in _evaluators:
        from workloads.threads import set_threads

        set_threads(1)
        _evaluators.clear()
        _evaluators[key] = Evaluator(space)
    return _evaluators[key].outcome(task.numbers, task.network)


__all__ = ["Cluster"]
