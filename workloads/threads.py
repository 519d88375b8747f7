"""How many threads a process takes: one number for ours, ONNX Runtime's and linear algebra's.

`archsim --threads 1 run …` sets it for a run, the environment variable ARCHSIM_THREADS=1 for all;
Python users call `set_threads`.  Without any of these it is the processors that the process may run
on.  Nothing happens when a module is imported, and no thread outlives the call that needed it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from workloads.digits import whole
from workloads.errors import WorkloadError

ENVIRONMENT = "ARCHSIM_THREADS"

MOST = 1024
"""No process is given more."""

LINEAR_ALGEBRA = (
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "OMP_NUM_THREADS",
)
"""What libraries of linear algebra read when NumPy is imported."""

AGAIN_SECONDS = 0.2
"""A job that had not begun what is to be stopped has by then."""

Given = TypeVar("Given")
Made = TypeVar("Made")

_threads: int | None = None

_here = threading.local()
"""beside: threads that share with this one what the process may take, itself counted."""


def threads() -> int:
    """The number in force.  Raises WorkloadError where the environment's is none."""
    if _threads is not None:
        return _threads
    asked = os.environ.get(ENVIRONMENT, "").strip()
    return _checked(asked, ENVIRONMENT) if asked else processors()


def are_told() -> bool:
    """Whether somebody has said how many, so that they are as many as are there for us."""
    return _threads is not None or bool(os.environ.get(ENVIRONMENT, "").strip())


def processors() -> int:
    """Those that the process may run on, at most `MOST`."""
    try:
        found = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        found = os.cpu_count() or 1
    return min(found, MOST)


def set_threads(count: int | None = None) -> None:
    """Take `count` threads from now on, in linear algebra too; None: what the environment says.

    A library of linear algebra that is loaded is told (by threadpoolctl), one that is not yet
    finds it in the environment, as do processes that this one starts.  Where neither `count` nor
    the environment says a number, linear algebra is left as it is.
    Raises WorkloadError for a number that is not from 1 to `MOST`.
    """
    global _threads
    _threads = None if count is None else _checked(str(count), "threads")
    if not are_told():
        return
    number = str(threads())
    os.environ.update(dict.fromkeys((*LINEAR_ALGEBRA, ENVIRONMENT), number))
    from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs]

    threadpool_limits(int(number), user_api="blas")


def in_threads(
    work: Callable[[Given], Made],
    given: Iterable[Given],
    most: int = MOST,
    *,
    stop: Callable[[], object] = lambda: None,
) -> list[Made]:
    """`work` of each, in order; by as many threads as the process may take, and at most `most`.

    For work that lets other threads run: kernels, NumPy's larger operations, processes.  Work
    within work shares what its own thread is given: with four threads, two and two.  If one
    fails, or this call is interrupted, the others that run are waited for, and those that do not
    yet never do.  stop: makes those that run end, called until they have.
    """
    jobs = list(given)
    beside = getattr(_here, "beside", 1)
    workers = min(threads() // beside, most, len(jobs))
    if workers <= 1:
        return [work(one) for one in jobs]
    with ThreadPoolExecutor(workers, "", setattr, (_here, "beside", beside * workers)) as pool:
        begun = [pool.submit(work, one) for one in jobs]
        try:
            return [one.result() for one in begun]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            while left := [one for one in begun if not one.done()]:
                stop()
                wait(left, AGAIN_SECONDS)
            raise


def _checked(text: str, what: str) -> int:
    number = whole(text)
    if number is None or not 1 <= number <= MOST:
        raise WorkloadError(f"{what} must be a whole number from 1 to {MOST}, not {text[:60]!r}")
    return number
