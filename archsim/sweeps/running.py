"""Computes the points of a study: asks a sampler, has workers compute, keeps what they give."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from archsim.interrupts import held
from archsim.numbers import IntArray
from archsim.sweeps.dry_run import dry_run
from archsim.sweeps.evaluation import Evaluator, Outcome
from archsim.sweeps.front import FloatArray
from archsim.sweeps.known import Known
from archsim.sweeps.live import News
from archsim.sweeps.merit import merits
from archsim.sweeps.packages import packages_of
from archsim.sweeps.points import point_numbers
from archsim.sweeps.progress import Progress, Ran
from archsim.sweeps.rows import tables_of
from archsim.sweeps.samplers import sampler_of
from archsim.sweeps.search import Search
from archsim.sweeps.standing import Standing
from archsim.sweeps.study import Study
from archsim.sweeps.workers import BatchLostError, Here, Processes, Task, Workers, collecting_rarely
from archsim.version import VERSION
from workloads.threads import threads

FIRST_BATCH, LARGEST_BATCH = 16, 4096
"""Designs of a batch; the first is of one where points are costly."""

FEW = 200
"""Points for which no other process is begun: that takes a second or two."""

WRITE_ROWS, WRITE_SECONDS = 1000, 1.0
"""A transaction is made of so many rows, or of what came in so long."""


@dataclass(kw_only=True)
class _Run:
    study: Study
    search: Search
    workers: Workers
    evaluator: Evaluator
    progress: Callable[[Progress], None] | None
    ran: Ran = field(default_factory=Ran)

    def __post_init__(self) -> None:
        grid = self.evaluator.grid
        self.sampler = sampler_of(grid, self.search)
        self.known = Known(self.study.store)
        self.began = time.perf_counter()
        self.total = self.search.most(grid.space.design_count) * len(grid.space.networks)
        self.batch = self.known.next_batch
        self.size = 1 if self.evaluator.costly else FIRST_BATCH
        self.asked: deque[Task] = deque()
        self.waiting: dict[Future[Outcome], Task] = {}
        self.unwritten: list[Outcome] = []
        self.written = self.began
        self.kept = self.study.count
        self.standing = Standing.of_study(self.study, grid) if self.kept else Standing(grid)
        self.news = News(self.study.path, self.study.space.name or str(self.study.path))
        self.untold = np.empty(0, np.int64)
        self.shared: dict[int, set[int]] = {}
        self._remember()

    def _remember(self) -> None:
        """Tell a sampler that wants it of points that are kept, the last ones."""
        if not (self.sampler.remembers and self.known.any):
            return
        networks = len(self.study.space.networks)
        query = "SELECT DISTINCT number // ? AS design, max(batch) FROM points GROUP BY design "
        query += "ORDER BY 2 DESC, 1 LIMIT ?"
        rows = self.study.store.rows(query, [networks, self.sampler.remembers])
        designs = np.array([design for design, _ in rows], np.int64)
        self.sampler.remember(designs, self._merits(designs))

    def _merits(self, designs: IntArray) -> FloatArray:
        return merits(self.study.store, self.evaluator.grid, designs)

    def run(self) -> Ran:
        try:
            self._tell_news("running")
            while self._fill():
                self._collect()
                self._write_if_due()
            self._write()
            if not self.ran.new + self.ran.known:
                dry_run(self.study.space, self.search)  # says why there is none
            self._tell_news("done")
        except BaseException:
            try:
                self._keep_what_is_done()
            finally:
                self._tell_news("ended")
            raise
        finally:
            self.workers.close()
            self.ran.seconds = time.perf_counter() - self.began
        return self.ran

    def _fill(self) -> bool:
        """Have every worker something to do; False at the end."""
        while len(self.waiting) < self.workers.room:
            if not self.asked and not self._ask():
                break
            task = self.asked.popleft()
            self.waiting[self.workers.submit(task)] = task
        return bool(self.waiting)

    def _ask(self) -> bool:
        """Designs from the sampler, but for points that are known; False if there are no more."""
        began = time.process_time()
        try:
            while not self.asked:
                if self.sampler.learns and not self._tell():
                    return False
                designs = self.sampler.ask(self.size)
                if not len(designs):
                    return False
                self.untold = designs
                for network in range(len(self.study.space.networks)):
                    self._plan(designs, network)
        finally:
            self.ran.sampler_seconds += time.process_time() - began
        return True

    def _tell(self) -> bool:
        """Tell the sampler what became of its designs; False while some are being computed."""
        if self.waiting:
            return False
        if len(self.untold):
            self._write()
            self.sampler.tell(self.untold, self._merits(self.untold))
            self.untold = np.empty(0, np.int64)
        return True

    def _plan(self, designs: IntArray, network: int) -> None:
        grid = self.evaluator.grid
        designs = self._unasked(designs, network)
        known = self.known.are(point_numbers(grid, designs, network))
        self.ran.known += int(known.sum())
        new = designs[~known]
        for start in range(0, len(new), self.size):
            self.asked.append(Task(numbers=new[start : start + self.size], network=network))

    def _unasked(self, designs: IntArray, network: int) -> IntArray:
        """Each as the machine's that computes it, but for those that another one asked for."""
        shared = self.evaluator.grid.shared
        if not shared.any:
            return designs
        asked = self.shared.setdefault(network, set())
        numbers = list(dict.fromkeys(shared.first_of(designs).tolist()))
        new = [number for number in numbers if number not in asked]
        asked.update(new)
        return np.array(new, np.int64)

    def _collect(self) -> None:
        done, _ = wait(self.waiting, timeout=WRITE_SECONDS, return_when=FIRST_COMPLETED)
        for future in done:
            self._take(future, self.waiting.pop(future))

    def _take(self, future: Future[Outcome], task: Task) -> None:
        try:
            found = future.result()
        except BatchLostError:
            self.asked.appendleft(task)
            return
        except BrokenProcessPool:
            self._again(task)
            return
        self.unwritten.append(found)
        self.ran.simulator_seconds += found.cpu_seconds
        fitting = self.workers.batch_seconds * len(found.numbers) / max(found.cpu_seconds, 1e-6)
        self.size = int(np.clip(fitting, self.size / 4, self.size * 4))
        self.size = int(np.clip(self.size, 1, LARGEST_BATCH))

    def _again(self, task: Task) -> None:
        """A worker died: its batch again in halves; a point that does it alone has failed."""
        if len(task.numbers) == 1:
            names, why = self.study.objectives, "the worker that computed it died"
            self.unwritten.append(Outcome.of_error(task.numbers, task.network, names, why))
            return
        for half in np.array_split(task.numbers, 2):
            self.asked.appendleft(Task(numbers=half, network=task.network))

    def _write_if_due(self) -> None:
        rows = sum(len(one.numbers) for one in self.unwritten)
        if rows >= WRITE_ROWS or time.perf_counter() - self.written > WRITE_SECONDS:
            self._write()
        if self.news.due:
            self._tell_news("running")

    def _write(self) -> None:
        """One transaction of all that came."""
        began = time.process_time()
        self.written = time.perf_counter()
        if not self.unwritten:
            return
        points: list[Any] = []
        layers: list[Any] = []
        for network in sorted({one.network for one in self.unwritten}):
            same = [one for one in self.unwritten if one.network == network]
            more = tables_of(self.evaluator.grid, Outcome.joined(same), self.batch)
            points += more[0]
            layers += more[1]
        with held():
            self.study.store.write(points, layers)
            self._count()
            self.kept = self.study.count
            self.batch += 1
            self.unwritten = []
        self.ran.writer_seconds += time.process_time() - began
        self._report()

    def _count(self) -> None:
        for one in self.unwritten:
            kinds = [kind for kind, _ in one.errors.values()]
            self.ran.new += len(one.numbers)
            self.ran.refused += kinds.count("refused")
            self.ran.failed += kinds.count("failed")
            self.standing.take(one)

    def _report(self) -> None:
        if self.progress is not None:
            self.progress(self._progress())

    def _progress(self) -> Progress:
        return Progress(
            done=self.ran.new + self.ran.known,
            total=self.total,
            kept=self.kept,
            seconds=time.perf_counter() - self.began,
            best=self.standing.best,
        )

    def _tell_news(self, state: str) -> None:
        """Tell those who watch."""
        self.news.tell(state, self._progress(), self.ran, self.standing)

    def _keep_what_is_done(self) -> None:
        """On the way out: what workers have given already is kept."""
        for future, _ in list(self.waiting.items()):
            if future.done() and not future.cancelled() and future.exception() is None:
                self.unwritten.append(future.result())
        self._write()


def told_of(search: Search, evaluator: Evaluator) -> dict[str, Any]:
    """What is kept of a run, among where points are from."""
    return {
        "archsim": VERSION,
        "packages": packages_of(evaluator.space),
        "search": search.record(),
        "points": evaluator.space.size,
    }


def run(
    study: Study,
    search: Search,
    *,
    workers: int | Workers | None = 1,
    progress: Callable[[Progress], None] | None = None,
) -> Ran:
    """Compute what a search asks for and the study does not keep (`Study.run`)."""
    evaluator = Evaluator(study.space)
    if workers is None:
        few = search.most(study.space.design_count) * len(study.space.networks) <= FEW
        workers = 1 if few else threads()
    if isinstance(workers, int):
        workers = Here(evaluator) if workers == 1 else Processes(study.space, workers)
    study.store.say(f"run {datetime.now(UTC).isoformat()}", told_of(search, evaluator))
    found = _Run(
        study=study, search=search, workers=workers, evaluator=evaluator, progress=progress
    )
    with collecting_rarely():
        return found.run()


__all__ = ["Progress", "Ran", "run"]
