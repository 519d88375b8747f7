"""Studies that are killed, interrupted, held, full, of another version: nothing kept is lost."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sweep_child
from command_line import Call, refused
from sweep_child import SPACE, cycles_of

from archsim import EDGE_16, InputError
from archsim.sweeps import MachineSpace, Search, Space, Study
from archsim.sweeps.evaluation import Evaluator, Outcome
from archsim.sweeps.store import FILE, VERSION
from archsim.sweeps.workers import Here, Processes

ROWS = 16


def begun(folder: Path) -> subprocess.Popen[str]:
    """A process that writes a study."""
    words = [sys.executable, sweep_child.__file__, str(folder), str(ROWS)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def killed(folder: Path, after: float) -> int:
    """Kill a process at some time after it has begun to write; points that it had acknowledged."""
    child = begun(folder)
    assert child.stdout is not None
    first = child.stdout.readline()
    time.sleep(after)
    child.send_signal(signal.SIGKILL)
    rest, _ = child.communicate()
    lines = (first + rest).split("\n")
    return max((int(line) for line in lines[:-1] if line), default=0)


def check(folder: Path, acknowledged: int) -> int:
    """The file opens, nothing acknowledged is lost, nothing is there twice, and all is right."""
    with Study.open(folder) as study:
        frame = study.frame()
        numbers = frame["number"].to_numpy()
        assert len(numbers) >= acknowledged
        assert len(set(numbers.tolist())) == len(numbers) == len(set(frame["id"]))
        assert np.array_equal(frame["cycles"].to_numpy(), cycles_of(numbers))
        assert np.array_equal(frame["rows"], numbers // 64 + 1)
        assert np.array_equal(frame["columns"], numbers % 64 + 1)
        query = "SELECT count(*), sum(cycles) FROM layers"
        assert study.store.rows(query)[0] == (8 * len(numbers), cycles_of(numbers).sum())
        return len(numbers)


def kill_and_continue(folder: Path, kills: int) -> None:
    rng = np.random.default_rng(7)
    kept, number = 0, 0
    study = 0
    while number < kills:
        path = folder / str(study)
        now = check(path, killed(path, after=rng.random() * 0.4))
        number += 1
        study += int(now == SPACE.size)
        assert now >= kept or now == SPACE.size
        kept = 0 if now == SPACE.size else now
    if kept:
        with Study.open(folder / str(study)) as last:
            last.run(workers=Here(sweep_child.MadeUp(SPACE)))
        assert check(folder / str(study), SPACE.size) == SPACE.size


def test_three_kills_at_random_moments(tmp_path: Path) -> None:
    kill_and_continue(tmp_path, 3)


@pytest.mark.slow
def test_fifty_kills_at_random_moments(tmp_path: Path) -> None:
    kill_and_continue(tmp_path, 50)


def test_a_study_is_one_writers_and_who_holds_it_is_said(tmp_path: Path, archsim: Call) -> None:
    child = begun(tmp_path / "study")
    assert child.stdout is not None
    child.stdout.readline()
    try:
        child.send_signal(signal.SIGSTOP)  # so that it is not at its end before we ask
        said = refused(archsim("sweep", "-o", tmp_path / "study"))
        assert f"pid {child.pid}" in said
        assert "is held by another process" in said
    finally:
        child.kill()
        child.communicate()


class Interrupted(Evaluator):
    """Ctrl-C comes while the third batch is computed."""

    batches = 0

    def outcome(self, numbers: np.ndarray, network: int) -> Outcome:
        self.batches += 1
        if self.batches == 3:
            raise KeyboardInterrupt
        return sweep_child.MadeUp.outcome(self, numbers, network)  # pyright: ignore


def test_what_was_computed_is_kept_when_it_is_interrupted(tmp_path: Path) -> None:
    with Study.begin(tmp_path, SPACE) as study, pytest.raises(KeyboardInterrupt):
        study.run(workers=Here(Interrupted(SPACE)))
    with Study.open(tmp_path) as study:
        kept = study.count
        assert 0 < kept < SPACE.size
    check(tmp_path, kept)


def test_processes_are_gone_once_they_are_closed() -> None:
    others = set(multiprocessing.active_children())  # of tests before, which may still be ending
    workers = Processes(SPACE, 1)
    assert len(set(multiprocessing.active_children()) - others) == 1
    workers.close()
    assert set(multiprocessing.active_children()) <= others


def test_what_ends_a_sweep_is_not_heard_by_its_workers(tmp_path: Path) -> None:
    """`kill` of a group of processes reaches them too; a dead one would be a point that failed."""
    fields = {"rows": {"from": 1, "to": 20}, "columns": {"from": 1, "to": 20}}
    small = Space(machines=(MachineSpace(design=EDGE_16, fields=fields),), networks=("alexnet",))
    with Study.begin(tmp_path, small) as study:
        pids: list[int] = []

        def told(_: object) -> None:
            if not pids:
                pids.extend(one.pid for one in multiprocessing.active_children() if one.pid)
                for pid in pids:
                    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                        os.kill(pid, number)

        ran = study.run(workers=2, progress=told)
        assert len(pids) == 2
        assert (ran.new, ran.failed) == (study.space.size, 0)
    assert not multiprocessing.active_children()


def test_a_file_of_a_newer_archsim_is_refused(tmp_path: Path) -> None:
    with Study.begin(tmp_path, SPACE) as study:
        study.store.rows("UPDATE schema SET version = ?", [VERSION + 1])
    with pytest.raises(InputError, match=r"newer archsim.*pip install --upgrade archsim"):
        Study.open(tmp_path)


@pytest.mark.parametrize("content", [b"", b"not a database" * 1000])
def test_files_that_are_no_study(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(InputError, match=r"no study|cannot be opened"):
        Study.open(tmp_path)


def test_a_folder_without_a_study(tmp_path: Path, archsim: Call) -> None:
    assert "keeps no study" in refused(archsim("sweep", "-o", tmp_path / "none"))
    assert not (tmp_path / "none").exists()


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="a disk that is full is made of a limit")
def test_a_full_disk_loses_nothing_that_was_kept(tmp_path: Path) -> None:
    """The file may not grow beyond a limit: `SIGXFSZ` is ignored, so that writing fails."""
    script = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000));"
        "sys.argv = [sys.argv[0], *sys.argv[1:]]; from pathlib import Path; import sweep_child;"
        "sweep_child.main(Path(sys.argv[1]), 256)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(sweep_child.__file__).parent)}
    words = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "InputError" in done.stderr.splitlines()[-1]
    assert "cannot be written" in done.stderr
    kept = max((int(line) for line in done.stdout.split()), default=0)
    assert check(tmp_path, kept) >= kept > 0


class Faulty(Evaluator):
    """One design is no design of ours to compute: it raises what nobody expects."""

    def _figures(self, design: Any, *given: Any) -> Any:  # pyright: ignore
        if getattr(design, "rows", 0) == 8:
            raise ZeroDivisionError("of a fault")
        return super()._figures(design, *given)


def test_a_point_that_fails_is_kept_with_its_error(tmp_path: Path) -> None:
    fields = {"rows": [4, 8], "bias_words": [64, 0]}
    arrays = MachineSpace(design=SPACE.machines[0].design, fields=fields)
    space = Space(machines=(arrays,), networks=("alexnet",), objectives=("cycles", "mac"))
    with Study.begin(tmp_path, space) as study:
        ran = study.run(workers=Here(Faulty(space)))
        assert (ran.new, ran.refused, ran.failed) == (4, 2, 1)
        rows = study.store.rows(
            'SELECT "rows", bias_words, status, error FROM points ORDER BY 1, 2'
        )
        assert rows == [
            (4, 0, "refused", "bias_words must be positive, not 0"),
            (4, 64, "done", None),
            (8, 0, "refused", "bias_words must be positive, not 0"),
            (8, 64, "failed", "ZeroDivisionError: of a fault"),
        ]
        assert len(study.frame()) == 1
        assert study.run(Search()).known == 4


def test_a_worker_that_dies_takes_its_point_alone(tmp_path: Path) -> None:
    """Each batch in which a design is that kills the process is halved until it stands alone; what
    the process was to compute next is computed by another."""
    fields = {"rows": [2, 4, 6, 8]}
    arrays = MachineSpace(design=SPACE.machines[0].design, fields=fields)
    space = Space(machines=(arrays,), networks=("alexnet",))

    with Study.begin(tmp_path, space) as study:
        ran = study.run(workers=sweep_child.Dying(space))
        assert (ran.new, ran.failed) == (4, 1)
        found = study.store.rows("SELECT number, error FROM points WHERE status = 'failed'")
        assert found == [(sweep_child.DEADLY, "the worker that computed it died")]


def test_two_processes_compute_what_one_does(tmp_path: Path) -> None:
    fields = {"rows": [4, 8, 12], "columns": [4, 8]}
    arrays = MachineSpace(design=SPACE.machines[0].design, fields=fields)
    space = Space(machines=(arrays,), networks=("alexnet", "resnet18"))
    frames = []
    for count in (1, 2):
        with Study.begin(tmp_path / str(count), space) as study:
            assert study.run(workers=count).new == 12
            frame = study.frame().drop(columns="batch")
            frames.append(frame.sort_values("number", ignore_index=True))
    assert frames[0].equals(frames[1])
