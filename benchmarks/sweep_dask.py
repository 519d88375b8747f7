"""What Dask costs a study: time of points on a Dask worker beside a local one, of the processor and
of the clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from speed_report import Row
from sweep_measurements import grid_space

from archsim.sweeps import Search, Space, Study
from archsim.sweeps.cluster import BATCH_SECONDS as CLUSTER_BATCH_SECONDS
from archsim.sweeps.cluster import Cluster
from archsim.sweeps.workers import Processes, Workers

BATCH_SECONDS = 0.1
SETTINGS = Path(__file__).parent.parent / "examples" / "cluster" / "dask.yaml"
"""Of scheduler and workers, as the documentation advises."""

BARE_TASKS = 40
START_SECONDS = 60
OF_THE_SCHEDULER = "scheduler"

CLOCK = "clock"

Seconds = Mapping[str, float]
"""Of processor time by process: driver, worker, and of Dask nanny and scheduler; and of the
`CLOCK`, which says something where each of these has a processor when it wants one."""


@dataclass(frozen=True, kw_only=True)
class Running:
    """A scheduler and a worker of one thread, begun as a user begins them."""

    address: str
    processes: Mapping[str, psutil.Process]

    def spent(self) -> Seconds:
        """Processor time of each process until now, of this one too."""
        found = {name: sum(one.cpu_times()[:2]) for name, one in self.processes.items()}
        return {"driver": time.process_time(), **found, CLOCK: time.perf_counter()}


@contextmanager
def running(settings: Path | None) -> Generator[Running]:
    """settings: a file of Dask's, or its own."""
    import distributed

    here = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    told = {"PYTHONPATH": here} | ({"DASK_CONFIG": str(settings)} if settings else {})
    with tempfile.TemporaryDirectory() as folder:
        begun: list[subprocess.Popen[bytes]] = []

        def begin(*arguments: str) -> subprocess.Popen[bytes]:
            begun.append(
                subprocess.Popen(
                    [sys.executable, "-m", "dask", *arguments, "--no-dashboard"],
                    env={**os.environ, **told},
                    cwd=folder,
                    stderr=subprocess.DEVNULL,
                )
            )
            return begun[-1]

        try:
            file = Path(folder) / "scheduler.json"
            scheduler = begin(
                "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)
            )
            address = _address(file)
            nanny = begin("worker", address, "--nthreads", "1", "--local-directory", folder)
            client: Any = distributed.Client(address, set_as_default=False)
            with client:
                client.wait_for_workers(1, timeout=START_SECONDS)
                (worker,) = client.run(os.getpid).values()
            pids = {"worker": worker, "nanny": nanny.pid, OF_THE_SCHEDULER: scheduler.pid}
            processes = {name: psutil.Process(pid) for name, pid in pids.items()}
            yield Running(address=address, processes=processes)
        finally:
            for one in reversed(begun):
                one.terminate()
            for one in begun:
                one.wait()


def _address(file: Path) -> str:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if file.exists() and (text := file.read_text(encoding="utf-8")):
            return json.loads(text)["address"]
        time.sleep(0.1)
    raise RuntimeError(f"no Dask scheduler has begun in {START_SECONDS} s")


def point_seconds(space: Space, workers: Workers, spent: Callable[[], Seconds]) -> Seconds:
    """Of a point, from the first transaction of a study to the last."""
    seen: list[tuple[int, Seconds]] = []
    with tempfile.TemporaryDirectory() as folder, Study.begin(folder, space) as study:
        study.run(
            Search(), workers=workers, progress=lambda told: seen.append((told.done, spent()))
        )
    (first, began), (last, ended) = seen[0], seen[-1]
    return {name: (ended[name] - began[name]) / (last - first) for name in began}


def cluster_point_seconds(space: Space, cluster: Running, batch_seconds: float) -> Seconds:
    """Of a point on the worker of a cluster."""
    workers = Cluster(space, cluster.address)
    workers.batch_seconds = batch_seconds
    return point_seconds(space, workers, cluster.spent)


def local_point_seconds(space: Space) -> Seconds:
    """Of a point on a worker process of our own."""
    workers = Processes(space, 1)
    workers.batch_seconds = BATCH_SECONDS
    (worker,) = (psutil.Process(pid) for pid in workers.pids)

    def spent() -> Seconds:
        computed = sum(worker.cpu_times()[:2])
        return {"driver": time.process_time(), "worker": computed, CLOCK: time.perf_counter()}

    return point_seconds(space, workers, spent)


def busy(seconds: float) -> None:
    """A task that takes so much processor time."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(1000))


def bare_seconds(cluster: Running) -> Seconds:
    """Of a task that is nothing but `BATCH_SECONDS` of work, two asked for at once, what Dask takes
    beside it."""
    import distributed

    with distributed.Client(cluster.address, set_as_default=False) as client:
        free, futures = threading.Semaphore(2), set[Any]()

        def done(future: Any) -> None:
            future.result()
            futures.discard(future)
            free.release()

        client.submit(busy, 0.0, pure=False).result()
        began = cluster.spent()
        for _ in range(BARE_TASKS):
            free.acquire()
            futures.add(asked := client.submit(busy, BATCH_SECONDS, pure=False))
            asked.add_done_callback(done)
        for _ in range(2):
            free.acquire()
        ended = cluster.spent()
    each = {name: (ended[name] - began[name]) / BARE_TASKS for name in began}
    beside = {name: each[name] - BATCH_SECONDS for name in ("worker", CLOCK)}
    return {**each, **beside}


def dask(designs: int, repeats: int) -> Row:
    """A Dask worker over a local one: processor time a point, in turns, the least of each."""
    space = grid_space(designs)
    found: dict[str, list[Seconds]] = {}
    with running(SETTINGS) as advised, running(None) as default:
        for _ in range(repeats):
            turn = {
                "local": local_point_seconds(space),
                "dask": cluster_point_seconds(space, advised, BATCH_SECONDS),
                "longer": cluster_point_seconds(space, advised, CLUSTER_BATCH_SECONDS),
                "default": cluster_point_seconds(space, default, BATCH_SECONDS),
                "bare": bare_seconds(advised),
            }
            for name, one in turn.items():
                found.setdefault(name, []).append(one)
    least = {name: _least(of) for name, of in found.items()}
    local = _whole(least["local"])
    more: dict[str, float] = {}
    for name in ("dask", "longer", "default"):
        more[name] = (_whole(least[name]) / local - 1) * 100
        more[f"{name} apart"] = (_apart(least[name]) / local - 1) * 100
        more[f"{name} clock"] = (least[name][CLOCK] / least["local"][CLOCK] - 1) * 100
    more["bare"] = _whole(least["bare"]) / BATCH_SECONDS * 100
    more["bare apart"] = _apart(least["bare"]) / BATCH_SECONDS * 100
    more["bare clock"] = least["bare"][CLOCK] / BATCH_SECONDS * 100
    each = {name: {part: s * 1e3 for part, s in one.items()} for name, one in least.items()}
    points = {name: [_whole(one) * 1e3 for one in of] for name, of in found.items()}
    return Row(
        name="dask",
        what=f"CPU of a point on a Dask worker over a local one, {BATCH_SECONDS:g} s batches",
        measured=more["dask"],
        unit="% more",
        target=5,
        better="lower",
        details={"percent_more": more, "least_ms": each, "repeats_ms": points},
        note="of all processes: driver, scheduler, worker and its nanny, with the settings of "
        f"examples/cluster/dask.yaml; `longer`: batches of {CLUSTER_BATCH_SECONDS:g} s, as a "
        "sweep asks a cluster for them; `default`: Dask's own settings; `bare`: what Dask takes "
        "beside tasks of nothing but work; `apart`: without the scheduler, which has its own "
        "machine on a cluster; `clock`: of the clock, not of processors",
    )


def _least(turns: list[Seconds]) -> Seconds:
    """The turn of least processor time, and the least of the clock."""
    return {**min(turns, key=_whole), CLOCK: min(one[CLOCK] for one in turns)}


def _whole(spent: Seconds) -> float:
    return sum(seconds for name, seconds in spent.items() if name != CLOCK)


def _apart(spent: Seconds) -> float:
    return _whole(spent) - spent[OF_THE_SCHEDULER]


__all__ = ["dask"]
