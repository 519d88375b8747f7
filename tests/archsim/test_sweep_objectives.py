"""Objectives that packages add, errors of a network among them; voltages and technologies."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Call, good, refused
from plugin_packages import archsim_with, example_module, example_site

from archsim import EDGE_16, InputError, evaluate_many, simulate
from archsim import objectives as added
from archsim.robust.error_objective import ErrorObjective
from archsim.robust.machine_points import MachinePoints
from archsim.robust.model import shipped
from archsim.robust.placed import At, chips_of, placed
from archsim.sweeps import MachineSpace, Search, Space, Study
from archsim.sweeps.cluster import about, compute
from archsim.sweeps.dry_run import dry_run
from archsim.sweeps.evaluation import Evaluator
from archsim.sweeps.workers import Task
from archsim.technologies import load_technology
from workloads.labelled import labelled
from workloads.layers import Conv2d, MatMul, Network

IMAGES, CHIPS = 5, 2
MODEL = "mnist-int8-randbet-1"
SETTINGS = {"test_error": {"images": IMAGES, "chips": CHIPS}}
FAULTY = {"weight_memory.kind": ["plain", "faulty"], "weight_memory.voltage": [0.85, 0.76]}
TINY = Network(name="tiny", source="a test", layers=(MatMul(name="y", m=40, n=30, k=50),))


def of_errors(**changes: Any) -> Space:
    """edge-16 with plain weights, and at two voltages."""
    given: dict[str, Any] = {
        "machines": (MachineSpace(design=EDGE_16, fields=FAULTY),),
        "networks": (),
        "objectives": ("error", "energy"),
        "technology": "16nm",
        "settings": {"error": SETTINGS["test_error"]},
    }
    return Space(**{**given, **changes})


@pytest.mark.parametrize("objectives", [("cycles",), ("cycles", "energy"), ("cycles", "mac")])
def test_each_machine_is_mapped_as_its_space_says(objectives: tuple[str, ...]) -> None:
    layer = Conv2d(
        name="c", channels=64, filters=96, ifmap_height=28, ifmap_width=28, kernel_height=3,
        kernel_width=3,
    )  # fmt: skip
    network = Network(name="one", source="a test", layers=(layer,))
    names = ("", "rough", "fast", "exact")
    machines = [MachineSpace(design=EDGE_16, name=f"by {one}", mapper=one) for one in names]
    space = Space(machines=tuple(machines), networks=(network,), objectives=objectives)
    found = Evaluator(space).outcome(np.arange(len(names)), 0).values["cycles"].tolist()
    alone = [simulate(EDGE_16, network, **one.options).cycles for one in machines]
    assert found == alone
    assert found[0] == found[2] < found[1]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("errors")
    with Study.begin(path, of_errors(requirements=("error <= 0.5",))) as study:
        assert study.run().new == 3
    return path


def test_errors_are_those_of_the_machine_at_that_voltage(kept: Path) -> None:
    points = MachinePoints(
        model=shipped(MODEL), images=IMAGES, chips=CHIPS,
        pictures=lambda: (labelled("mnist", "test"), labelled("mnist", "train")),
    )  # fmt: skip
    with Study.open(kept, read_only=True) as study:  # its network and settings are kept
        assert study.space.network_names == (MODEL,)
        frame = study.frame()
        front = study.front()
    found = {one["weight_memory.voltage"]: one for _, one in frame.iterrows()}
    for voltage in (0.85, 0.76):
        at = [At("weight", "plain", voltage)]
        assert found[voltage]["test_error"] == pytest.approx(points.mean(EDGE_16, at) / 100)
    plain = frame[frame["weight_memory.kind"] == "plain"].iloc[0]
    assert plain["test_error"] == points.mean(EDGE_16) / 100
    assert found[0.76]["energy_pj"] < found[0.85]["energy_pj"] < plain["energy_pj"]
    assert found[0.76]["test_error"] > 0.5 > found[0.85]["test_error"]
    assert set(front["weight_memory.voltage"].dropna()) == {0.85}  # within the requirement


def test_the_errors_objective_is_asked_for_at_the_command_line(
    archsim: Call, tmp_path: Path
) -> None:
    (tmp_path / "space.toml").write_text(
        'objectives = ["error", "footprint"]\nrequirements = ["error <= 0.05"]\n'
        "[objective.error]\nimages = 5\nchips = 1\n"
        '[[machine]]\ndesign = "edge-16"\n[machine.fields]\n'
        'weight_memory.kind = ["faulty"]\nweight_memory.rate = [0.0, 0.5]\n'
    )
    seen = json.loads(good(archsim("sweep", "space.toml", "--dry-run", "--json")))
    assert seen["points"] == 2 and seen["point_seconds"] > 1e-3
    told = json.loads(good(archsim("sweep", "space.toml", "-o", "study", "--json")))
    (front,) = told["fronts"][MODEL]
    assert front["weight_memory.rate"] == 0 and told["statuses"] == {"done": 2}
    assert "test_error" in good(archsim("sweep", "-o", "study", "--watch"))
    assert archsim("report", "study").code == 0
    assert "test_error (share)" in (tmp_path / "study" / "report.html").read_text()


def test_chips_differ_only_where_something_may_fail() -> None:
    assert chips_of(EDGE_16, 3) == [EDGE_16]
    at = [At("weight", "secded", 0.85), At("ifmap", "plain", 0.9)]
    first, second, third = chips_of(placed(EDGE_16, at, 4), 3)
    assert first == placed(EDGE_16, at, 4)
    assert (second, third) == (placed(EDGE_16, at, 5), placed(EDGE_16, at, 6))


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "another network": ({"networks": ("alexnet",)}, f"test_error is of {MODEL}, not of alexnet"),
    "a setting of no name": ({"settings": {"error": {"image": 5}}}, "did you mean images"),
    "no pictures": ({"settings": {"error": {"images": 0}}}, "images must be positive, not 0"),
    "more pictures": (
        {"settings": {"error": {"images": 70_000}}}, "images must be at most 10000, those of mnist"
    ),
    "a text": ({"settings": {"error": {"chips": "2"}}}, "chips must be a whole number, not '2'"),
    "a model of no name": (
        {"settings": {"error": {"model": "mnist-int8"}}}, "no shipped model 'mnist-int8'"
    ),
    "settings of what has none": (
        {"settings": {"cycles": {}}}, "objective.cycles is set, and is no objective of the space"
    ),
    "operands too narrow": (
        {"machines": (MachineSpace(design=EDGE_16, fields={"operand_bits": [4]}),)}, ""
    ),
    "accuracy": (
        {"objectives": ("accuracy",), "settings": {}, "networks": (TINY,), "technology": None},
        "less of an objective is better: ask for test_error",
    ),
    "a technology that nothing is priced in": (
        {"objectives": ("error",), "technology": ["45nm", "16nm"]},
        "technology varies, and no objective hangs on it",
    ),
    "a technology of no name": ({"technology": ["45nm", "54nm"]}, "no technology '54nm'"),
    "no voltage of a technology": ({"voltage_v": [9.0, 10.0]}, "is used from 0.51 to 1.27 V"),
    "a text for a voltage": ({"voltage_v": ["1"]}, "voltage_v must be a number, not '1'"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_is_one_line(case: str) -> None:
    changes, said = BAD[case]
    if case == "operands too narrow":  # of one design of many, a point is refused
        found = Evaluator(of_errors(**changes)).outcome(np.array([0]), 0)
        assert "which do not hold codes of 8" in found.errors[0][1]
        return
    with pytest.raises(InputError) as told:
        Evaluator(of_errors(**changes)).check()
    assert said in str(told.value) and "\n" not in str(told.value)


def test_voltages_and_technologies_are_axes(tmp_path: Path) -> None:
    space = Space(
        machines=(MachineSpace(design=EDGE_16, fields={"rows": [8, 16]}),),
        networks=(TINY,),
        objectives=("cycles", "energy", "area", "footprint"),
        technology=["45nm", "16nm"],
        voltage_v=[0.8, 0.9, 1.4],
        requirements=("voltage_v > 0.8 or technology == '45nm'",),
    )
    seen = dry_run(space, Search())
    assert (seen.designs, seen.allowed) == (12, 10)  # 16 nm reaches to 1.27 V
    with Study.begin(tmp_path, space) as study:
        assert study.run().refused == 2
        frame, front = study.frame(), study.front()
    assert len(frame) == 10
    for _, one in frame.iterrows():
        technology = load_technology(one["technology"], voltage_v=one["voltage_v"])
        design = study.design(one["number"])
        assert design.rows == one["rows"]  # pyright: ignore[reportAttributeAccessIssue]
        alone = evaluate_many([design], TINY, technology=technology)
        assert one["energy_pj"] == pytest.approx(alone.energy[0])
        assert one["area_um2"] == pytest.approx(alone.area_um2[0])
    assert set(front["technology"]) == {"16nm"} and set(front["voltage_v"]) == {0.9}
    assert frame["id"].nunique() == 10
    other = Space(**{**vars_of(space), "voltage_v": 0.8})
    with pytest.raises(InputError, match=r"keeps a study of another space \(machine, voltage_v\)|"):
        Study.begin(tmp_path, other)


def vars_of(space: Space) -> dict[str, Any]:
    """What a space is made of, but for its technologies."""
    return {
        "machines": (MachineSpace(design=EDGE_16, fields={"rows": [8, 16]}),),
        "networks": space.networks,
        "objectives": space.objectives,
    }


@contextmanager
def entry(monkeypatch: pytest.MonkeyPatch, name: str, kind: type) -> Iterator[None]:
    """A package with an objective, as if it were installed."""
    module = type(sys)("given_objectives")
    module.found = kind  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "given_objectives", module)
    one = EntryPoint(name=name, value="given_objectives:found", group=added.GROUP)
    with monkeypatch.context() as patched:
        patched.setattr(added, "objective_entries", lambda: {name: one})
        patched.setattr("archsim.sweeps.objectives.objective_entries", lambda: {name: one})
        yield


def test_what_an_objective_must_be(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = example_module("traffic").BytesPerMac

    class Wrong(kind):
        def value(self, design: Any, network: Any) -> Any:
            return float("nan")

    cases = {
        "odd": (object, "odd .* of package given_objectives cannot be used: it must be a datacl"),
        "nan": (Wrong, "nan of package given_objectives must be a finite number, not nan"),
    }
    for name, (found, said) in cases.items():
        with entry(monkeypatch, name, found), pytest.raises(InputError, match=said):
            added.measured(added.objective_of(name, {}), name, EDGE_16, TINY)


def test_parts_of_a_package_are_swept_and_missed_where_they_are_not(tmp_path: Path) -> None:
    site = example_site(tmp_path / "site")
    (tmp_path / "space.toml").write_text(
        'networks = ["tiny.csv"]\nobjectives = ["bytes_per_mac", "area", "pair"]\n'
        'technology = "mine"\n[objective.bytes_per_mac]\nwritten = 2\n'
        '[[machine]]\ndesign = "dot-8"\nfields = { lanes = [4, 8] }\n'
    )
    head = "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, "
    (tmp_path / "tiny.csv").write_text(f"{head}Num Filter, Strides,\na, 8, 8, 3, 3, 4, 5, 1,\n")
    run = archsim_with(site, cwd=tmp_path)
    words = ("sweep", "space.toml", "-o", "study", "--workers", "2", "--json")
    told = json.loads(good(run(*words)))
    assert told["statuses"] == {"done": 2}, told
    (front,) = told["fronts"].values()
    macs = 6 * 6 * 3 * 3 * 4 * 5
    pairs = {one["lanes"]: one["pair"] for one in front}
    assert pairs == {4: macs / 4, 8: -(-36 // 8) * 6 * 6 * 5}
    assert all(one["bytes_per_mac"] > 2 for one in front)
    (tmp_path / "memory.toml").write_text(
        'networks = ["tiny.csv"]\nobjectives = ["cycles", "footprint"]\n[[machine]]\n'
        'design = "edge-16"\nfields = { "ifmap_memory.kind" = ["registers"], '
        '"ifmap_memory.capacity_bytes" = [4096, 8192] }\n'
    )
    assert '"done": 2' in good(run("sweep", "memory.toml", "-o", "memories", "--json"))
    without = archsim_with(cwd=tmp_path)
    for words in (("report", "study"), ("sweep", "-o", "memories")):
        assert "computes with own-parts 1, which is not installed here" in refused(without(*words))
    wanted = (*about()[:2], {"own-parts": "1"})
    task = Task(numbers=np.array([0]), network=0)
    with pytest.raises(InputError, match=r"a worker has .* with no own-parts, and the sweep .* 1"):
        compute("key", b"", task, wanted)


def test_the_error_objective_travels() -> None:
    one = ErrorObjective(images=5)
    assert pickle.loads(pickle.dumps(one)) == one
