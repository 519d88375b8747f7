"""Studies: what is computed is what `simulate` says, kept once, continued, and refused by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from archsim import EDGE_16, InputError, simulate
from archsim.energy import account
from archsim.sweeps import MachineSpace, Space, Study, load_space, space_toml

FIELDS = {
    "rows": [4, 8],
    "columns": [4, 8, 12],
    "ifmap_memory.capacity_bytes": {"powers_of_two": [16384, 32768]},
}


def small_space(**changes: object) -> Space:
    """Ten designs on AlexNet."""
    arrays = MachineSpace(design=EDGE_16, fields=FIELDS, constraints=("rows <= columns",))
    given = {"machines": (arrays,), "networks": ("alexnet",), "objectives": ("cycles",)}
    return Space(**{**given, **changes})  # pyright: ignore[reportArgumentType]


def test_every_point_is_what_its_simulation_says(tmp_path: Path) -> None:
    objectives = ("cycles", "seconds", "energy", "edp", "area", "footprint", "mac")
    with Study.begin(tmp_path, small_space(objectives=objectives)) as study:
        study.run()
        frame = study.frame()
        assert len(frame) == 10
        assert (frame["rows"] <= frame["columns"]).all()
        for _, row in frame.iloc[::4].iterrows():
            design = study.design(row["number"])
            assert (design.rows, design.columns) == (row["rows"], row["columns"])  # pyright: ignore
            result = simulate(design, "alexnet")
            energy = account(result)
            assert row["cycles"] == result.cycles
            assert row["seconds"] == result.seconds
            assert row["energy_pj"] == pytest.approx(energy.total, rel=1e-12)
            assert row["edp_pj_s"] == pytest.approx(energy.edp, rel=1e-12)
            assert row["area_um2"] == pytest.approx(energy.area_um2, rel=1e-12)
            assert row["mac"] == result.macs


def test_cycles_at_once_are_those_one_by_one(tmp_path: Path) -> None:
    clocks = MachineSpace(design=EDGE_16, fields={**FIELDS, "rows": [4], "clock_hz": [4e8, 1e9]})
    space = small_space(machines=(clocks,), objectives=("cycles", "seconds"), layers=True)
    with Study.begin(tmp_path / "a", space) as study:
        study.run()
        assert study.counts == {"done": 12}
        for _, row in study.frame().iterrows():
            result = simulate(study.design(row["number"]), "alexnet")
            assert (row["cycles"], row["seconds"]) == (result.cycles, result.seconds)
        layers = study.store.rows("SELECT point, sum(cycles) FROM layers GROUP BY point")
        kept = dict(zip(study.frame()["id"].astype(str), study.frame()["cycles"], strict=True))
        assert {str(point): int(total) for point, total in layers} == kept


def test_what_is_kept_is_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Study.begin(tmp_path, small_space()) as study:
        assert study.run().new == 10
        first = study.frame()
    monkeypatch.setattr("archsim.sweeps.evaluation.simulate_many", None)
    with Study.begin(tmp_path, small_space()) as study:
        ran = study.run()
        assert (ran.new, ran.known) == (0, 10)
        assert study.frame().equals(first)


def test_a_space_is_the_same_from_its_file(tmp_path: Path) -> None:
    space = small_space(requirements=("cycles <= 2e7",))
    file = tmp_path / "space.toml"
    file.write_text(space_toml(space))
    read, _ = load_space(file)
    assert read == space
    with Study.begin(tmp_path / "study", space) as study:
        study.run()
    with Study.open(tmp_path / "study", read_only=True) as study:
        assert study.space == space
        assert study.count == 10


@pytest.mark.parametrize(
    "change",
    [
        lambda space: {"objectives": ("cycles", "area")},
        lambda space: {"networks": ("resnet18",)},
        lambda space: {"machines": (MachineSpace(design=EDGE_16, fields={"rows": [4, 8]}),)},
    ],
)
def test_a_study_of_another_space_is_refused(
    tmp_path: Path, change: Callable[[Space], dict[str, object]]
) -> None:
    space = small_space()
    with Study.begin(tmp_path, space) as study:
        study.run()
    with pytest.raises(InputError, match="keeps a study of another space"):
        Study.begin(tmp_path, small_space(**change(space)))
    with Study.open(tmp_path) as study:
        assert study.count == 10
