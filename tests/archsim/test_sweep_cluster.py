"""Sweeps on a Dask cluster: a real scheduler and workers on this machine; some die or come late."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archsim import EDGE_16, InputError, simulate
from archsim.sweeps import MachineSpace, Search, Space, Study
from archsim.sweeps import cluster as on_cluster
from archsim.sweeps.cluster import Cluster
from workloads.layers import MatMul, Network

distributed: Any = pytest.importorskip("distributed", reason="pip install 'archsim[cluster]'")

FIELDS = {"rows": {"from": 1, "to": 12}, "columns": {"from": 1, "to": 16}}
SPACE = Space(
    machines=(MachineSpace(design=EDGE_16, fields=FIELDS),),
    networks=("alexnet",),
    objectives=("cycles", "area"),
)


@contextmanager
def running(workers: int, port: int = 0) -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=workers,
        scheduler_port=port,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        silence_logs=50,
    ) as found:
        yield found


def kept(path: Path) -> dict[int, tuple[float, float]]:
    with Study.open(path, read_only=True) as study:
        frame = study.frame()
    rows = zip(frame["number"], frame["cycles"], frame["area_um2"], strict=True)
    return {int(number): (cycles, area) for number, cycles, area in rows}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[float, float]]:
    path = tmp_path_factory.mktemp("alone")
    with Study.begin(path, SPACE) as study:
        study.run()
    return kept(path)


def test_workers_of_a_cluster_compute_the_same(
    tmp_path: Path, alone: dict[int, tuple[float, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is killed on the way; another version is refused by name."""
    with running(2) as cluster:
        address = cluster.scheduler_address
        with Study.begin(tmp_path, SPACE) as study:
            seen: list[int] = []

            def told(progress: Any) -> None:
                if not seen:
                    os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
                seen.append(progress.done)

            ran = study.run(workers=Cluster(SPACE, address), progress=told)
        assert (ran.new, ran.failed) == (len(alone), 0)
        assert kept(tmp_path) == alone
        for rows in (4, 8):  # networks of one name: a worker knows them by what they are
            network = Network(
                name="n", source="a test", layers=(MatMul(name="y", m=rows, n=8, k=8),)
            )
            space = replace(SPACE, networks=(network,))
            with Study.begin(tmp_path / str(rows), space) as study:
                study.run(Search(designs=1), workers=Cluster(space, address))
                (cycles,) = study.frame()["cycles"]
                assert cycles == simulate(study.design(0), network).cycles
        monkeypatch.setattr(on_cluster, "VERSION", "9.9")
        with pytest.raises(
            InputError, match=r"worker tcp://.* has archsim .*, and here is archsim 9"
        ):
            Cluster(SPACE, address)


@pytest.mark.slow
def test_workers_that_come_late_take_part(
    tmp_path: Path, alone: dict[int, tuple[float, float]]
) -> None:
    with running(0) as cluster:
        threading.Timer(2, lambda: cluster.scale(2)).start()
        with Study.begin(tmp_path, SPACE) as study:
            study.run(workers=Cluster(SPACE, cluster.scheduler_address))
    assert kept(tmp_path) == alone


@pytest.mark.slow
def test_a_scheduler_that_goes_ends_the_sweep_and_loses_nothing(tmp_path: Path) -> None:
    fields = {"rows": {"from": 1, "to": 100}, "columns": {"from": 1, "to": 100}}
    machine = MachineSpace(design=EDGE_16, fields=fields)
    space = Space(machines=(machine,), networks=("resnet50",))
    with running(1) as cluster, Study.begin(tmp_path / "cut", space) as study:
        gone = threading.Event()

        def told(_: Any) -> None:
            if not gone.is_set():
                gone.set()
                threading.Thread(target=cluster.close).start()
                time.sleep(1)

        said: list[str] = []
        address = cluster.scheduler_address
        workers = Cluster(space, address, wait_seconds=2, told=said.append)
        with pytest.raises(InputError, match=r"is gone, and none came in 2 s .* continues it"):
            study.run(workers=workers, progress=told)
        assert said == [f"the scheduler at {address} is gone: waiting 2 s for it"]
        assert 0 < study.count < space.size
        before = study.frame().set_index("number")["cycles"]
        study.run()
        after = study.frame().set_index("number")["cycles"]
        assert len(after) == space.size
        assert (after[before.index] == before).all()


@pytest.mark.slow
def test_a_scheduler_that_is_restarted_is_waited_for(
    tmp_path: Path, alone: dict[int, tuple[float, float]]
) -> None:
    """With all its workers; no point is lost, none is failed, none is there twice."""
    said: list[str] = []
    restarted: list[Any] = []
    gone, missed = threading.Event(), threading.Event()
    first = running(1)
    cluster = first.__enter__()
    address = cluster.scheduler_address

    def restart() -> None:
        first.__exit__(None, None, None)
        gone.set()
        assert missed.wait(60)
        time.sleep(1)
        restarted.append(running(1, int(address.rpartition(":")[2])))
        restarted[0].__enter__()

    def told(_: Any) -> None:
        if not thread.ident:
            thread.start()
            assert gone.wait(60)
            while workers._client.status == "running":  # who asks before it sees it waits unseen
                time.sleep(0.01)
            missed.set()

    thread = threading.Thread(target=restart)
    with Study.begin(tmp_path, SPACE) as study:
        workers = Cluster(SPACE, address, wait_seconds=60, told=said.append)
        workers.batch_seconds = 0.005  # so that most are yet to be asked for
        ran = study.run(workers=workers, progress=told)
    thread.join()
    restarted[0].__exit__(None, None, None)
    assert said == [f"the scheduler at {address} is gone: waiting 60 s for it"]
    assert (ran.new, ran.failed) == (len(alone), 0)
    assert kept(tmp_path) == alone


def test_settings_that_are_advised_are_some_that_dask_has() -> None:
    """Each is one that Dask has, with another value; the page shows them all."""
    dask: Any = pytest.importorskip("dask")
    yaml: Any = pytest.importorskip("yaml")
    root = Path(__file__).parents[2]
    text = (root / "examples" / "cluster" / "dask.yaml").read_text(encoding="utf-8")
    assert text in (root / "docs" / "how-to" / "sweeps.md").read_text(encoding="utf-8")

    def leaves(tree: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
        for name, one in tree.items():
            if isinstance(one, dict):
                yield from leaves(one, f"{above}{name}.")
            else:
                yield above + name, one

    defaults: dict[str, Any] = {}
    for one in dask.config.defaults:
        defaults |= dict(leaves(one))
    advised = dict(leaves(yaml.safe_load(text)))
    assert advised
    for name, value in advised.items():
        assert defaults[name] != value


def test_no_scheduler_and_no_worker_are_told() -> None:
    with pytest.raises(InputError, match=r"no scheduler answers at tcp://127\.0\.0\.1:9 "):
        Cluster(SPACE, "tcp://127.0.0.1:9", wait_seconds=1)
    with pytest.raises(InputError, match="no scheduler answers at nonsense://x"):
        Cluster(SPACE, "nonsense://x", wait_seconds=1)
    with running(0) as cluster, pytest.raises(InputError, match="no worker has come"):
        Cluster(SPACE, cluster.scheduler_address, wait_seconds=1)
