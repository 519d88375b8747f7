"""A study that is written is looked at from elsewhere: how far it is, and what is best so far."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import sweep_child
from command_line import Call, good, refused
from sweep_child import SPACE, MadeUp, cycles_of

from archsim import EDGE_16
from archsim.cli.scatter import scatter
from archsim.sweeps import MachineSpace, Space, Study
from archsim.sweeps.evaluation import Outcome
from archsim.sweeps.live import NEWS, is_running, news_of
from archsim.sweeps.points import Grid
from archsim.sweeps.standing import Standing
from archsim.sweeps.workers import Here


def test_a_run_is_watched_until_it_is_killed(tmp_path: Path, archsim: Call) -> None:
    """The study is its writer's alone meanwhile; then it is read itself."""
    words = [sys.executable, sweep_child.__file__, str(tmp_path / "study"), "16"]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        for _ in range(3):
            child.stdout.readline()  # of a transaction, of which news are told next
        child.send_signal(signal.SIGSTOP)
        told = json.loads(good(archsim("sweep", "-o", tmp_path / "study", "--watch", "--json")))
        assert (told["state"], told["pid"]) == ("running", child.pid)
        assert told["total"] == SPACE.size
        assert 16 <= told["done"] == told["kept"] < SPACE.size
        said = good(archsim("sweep", "-o", tmp_path / "study", "--watch"))
        assert f"runs, pid {child.pid} on " in said
    finally:
        child.kill()
        child.communicate()
    assert "its run was killed" in good(archsim("sweep", "-o", tmp_path / "study", "--watch"))
    told = json.loads(good(archsim("sweep", "-o", tmp_path / "study", "--watch", "--json")))
    with Study.open(tmp_path / "study") as study:
        assert told["kept"] == study.count > 0
        (best,) = told["networks"][0]["best"]
        assert best["value"] == study.frame()["cycles"].min()
        assert cycles_of(np.array([best["point"]])) == best["value"]
        study.run(workers=Here(MadeUp(SPACE)))
    assert news_of(tmp_path / "study")["state"] == "done"  # pyright: ignore
    assert "nobody writes it" in good(archsim("sweep", "-o", tmp_path / "study", "--watch"))


@pytest.mark.parametrize("required", [(), ("rows * columns <= 900", "footprint_bytes > 94000")])
def test_what_stands_is_what_the_study_says(tmp_path: Path, required: tuple[str, ...]) -> None:
    """The best and the front, taken while points came in, and read again from the file."""

    class Two(MadeUp):
        def outcome(self, numbers: np.ndarray, network: int) -> Outcome:
            found = super().outcome(numbers, network)
            found.layers = None
            found.values["footprint_bytes"] = 99080.0 - found.values["cycles"] + numbers % 61 * 99
            return found

    space = Space(
        machines=SPACE.machines,
        networks=SPACE.networks,
        objectives=("cycles", "footprint"),
        requirements=required,
    )
    with Study.begin(tmp_path, space) as study:
        study.run(workers=Here(Two(space)))
        (told,) = news_of(tmp_path)["networks"]  # pyright: ignore
        assert Standing.of_study(study, Grid(space)).record() == [told]
        front = study.front()
        assert told["on_front"] == len(front) > 9
        assert told["front"] == front[["cycles", "footprint_bytes"]].to_numpy().tolist()
        for one in told["best"]:
            assert one["value"] == study.best(one["objective"])[one["objective"]]
            row = study.points([one["point"]]).iloc[0]
            assert one["fields"] == {"rows": row["rows"], "columns": row["columns"]}


def test_news_that_cannot_be_written_or_read_end_nothing(tmp_path: Path, archsim: Call) -> None:
    arrays = MachineSpace(design=EDGE_16, fields={"rows": [4, 8]})
    (tmp_path / NEWS).mkdir()
    with Study.begin(tmp_path, Space(machines=(arrays,), networks=("alexnet",))) as study:
        assert study.run().new == 2
    assert "2 points kept" in good(archsim("sweep", "-o", tmp_path, "--watch"))
    (tmp_path / NEWS).rmdir()
    for text in ("", "{", "[" * 100_000, "3", '{"version": 99}', "\udcff"):
        (tmp_path / NEWS).write_bytes(text.encode(errors="surrogateescape"))
        assert news_of(tmp_path) is None
        assert "2 points kept" in good(archsim("sweep", "-o", tmp_path, "--watch"))


def test_who_runs_is_told_from_the_process_or_elsewhere_from_time() -> None:
    import socket

    here = {"state": "running", "host": socket.gethostname(), "pid": os.getpid()}
    assert is_running(here)
    assert not is_running({**here, "state": "done"})
    assert not is_running({**here, "pid": 2**22 + 1})
    other = {**here, "host": "elsewhere", "told": time.time()}
    assert is_running(other)
    assert not is_running({**other, "told": time.time() - 1000})


def test_watching_computes_nothing(tmp_path: Path, archsim: Call) -> None:
    assert "--watch only looks" in refused(archsim("sweep", "--watch"))
    assert "--watch only looks" in refused(archsim("sweep", "-o", "s", "--watch", "--seed", "0"))
    assert "keeps no study" in refused(archsim("sweep", "-o", "none", "--watch"))
    assert not (tmp_path / "none").exists()


def test_a_picture_of_points() -> None:
    picture = scatter([(1.0, 1000.0), (10.0, 10.0), (100.0, 1.0)], 20, 4)
    assert picture == [
        "1,000 ┤⠁⠁⠁⠁⠁⠁⠅⠀⠀⠀⠀⠀⠀",
        "      ┤⠀⠀⠀⠀⠀⠀⠅⠀⠀⠀⠀⠀⠀",
        "      ┤⠀⠀⠀⠀⠀⠀⠅⠄⠄⠄⠄⠄⠤",
        "    1 ┤⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⢨",
        "      └─────────────",
        "       1         100",
    ]
    assert len(scatter([(0.0, -1.0), (0.0, -1.0)], 20, 2)) == 4
