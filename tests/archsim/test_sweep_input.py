"""Bad spaces, studies and options: each is one line that says what would be right."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from command_line import Call, good, refused

from archsim import EDGE_16, InputError
from archsim.machines.scnn.design import SCNN_4PE
from archsim.simulate import simulate
from archsim.sweeps import MachineSpace, Space, Study
from archsim.sweeps.dry_run import dry_run
from archsim.sweeps.search import Search
from workloads.layers import Conv2d, Network, VectorWork

GOOD: dict[str, Any] = {
    "networks": '["alexnet"]',
    "objectives": '["cycles"]',
    "design": '"edge-16"',
    "fields": "{ rows = [4, 8] }",
    "constraints": "[]",
    "more": "",
    "machine": "",
}


def toml(**changes: str) -> str:
    """A good space, but for what is changed."""
    parts = {**GOOD, **changes}
    return (
        f"networks = {parts['networks']}\nobjectives = {parts['objectives']}\n{parts['more']}\n"
        f"[[machine]]\ndesign = {parts['design']}\nfields = {parts['fields']}\n"
        f"constraints = {parts['constraints']}\n{parts['machine']}\n"
    )


BAD = {
    "no machine": ("networks = ['alexnet']", "the space is empty: it has no machine"),
    "no network": (toml(networks="[]"), "the space is empty: it has no network"),
    "networks are left out": ("[[machine]]\ndesign = 'edge-16'", "it has no network"),
    "a network of no name": (toml(networks='["resnet51"]'), "resnet50"),
    "a network twice": (toml(networks='["alexnet", "alexnet"]'), "'alexnet' is there twice"),
    "no values": (toml(fields="{ rows = [] }"), "rows: a field must have a value at least"),
    "a value twice": (toml(fields="{ rows = [4, 4] }"), "rows: 4 is there twice"),
    "a field of no name": (toml(fields="{ row = [4] }"), "no field 'row'; did you mean rows"),
    "a part of no name": (
        toml(fields="{ ifmap_memory.capacity = [4] }"), "did you mean ifmap_memory.capacity_bytes"
    ),
    "a text for a number": (toml(fields='{ rows = ["a"] }'), "rows must be a whole number"),
    "half a row": (toml(fields="{ rows = [2.5] }"), "rows must be a whole number, not 2.5"),
    "a number for a text": (toml(fields="{ dataflow = [1] }"), "dataflow must be a text, not 1"),
    "a range backwards": (
        toml(fields="{ rows = { from = 9, to = 2 } }"), "from must be at most to, not 9 to 2"
    ),
    "a range without end": (
        toml(fields="{ rows = { from = 1, to = 2, step = 1e-9 } }"), "at most 100,000 values"
    ),
    "a range that stands": (
        toml(fields="{ rows = { from = 1, to = 2, times = 1 } }"), "times must be above 1"
    ),
    "a range with a key of no name": (
        toml(fields="{ rows = { from = 1, to = 5, setp = 2 } }"), "no 'setp'; did you mean step"
    ),
    "a range of nothing": (toml(fields="{ rows = {} }"), "rows: a range has from and to"),
    "operands of no name": (
        toml(design='"scnn-4pe"', fields="{ banks = [32] }", machine="operands = { sed = 1 }"),
        "no 'sed'; did you mean seed",
    ),
    "a mapper of no name": (
        toml(machine="mapper = 'tough'"), "there is no mapper 'tough'; did you mean rough"
    ),
    "a mapper where there is none": (
        toml(design='"sparsetrain"', fields="{ pes = [4] }", machine="mapper = 'fast'"),
        "sparsetrain machines have no option mapper",
    ),
    "no powers": (
        toml(fields="{ rows = { powers_of_two = [3, 8] } }"), "takes two powers of two, not 3"
    ),
    "a memory of no kind": (toml(fields='{ ifmap_memory.kind = ["bovda"] }'), "boveda"),
    "a kind of machine": (toml(fields='{ kind = ["scnn"] }'), "kind is a machine's own"),
    "a constraint of no field": (toml(constraints='["row > 4"]'), "did you mean rows"),
    "a constraint of code": (toml(constraints='["exit()"]'), "it takes no 'exit()'"),
    "a design of no name": (toml(design='"edge-61"'), "did you mean edge-16"),
    "a key of no name": (toml(more="objectivs = 1"), "no 'objectivs'; did you mean objectives"),
    "objectives where settings stand": (
        toml(more='objective = ["cycles"]'), "objective.NAME is what one is set to; the list is obj"
    ),
    "an objective of no name": (toml(objectives='["cyles"]'), "give no 'cyles'; did you mean cyc"),
    "an objective twice": (toml(objectives='["area", "area_um2"]'), "'area_um2' is there twice"),
    "an objective of another": (
        toml(objectives='["scale_multiply"]'), "systolic machines give no 'scale_multiply'"
    ),
    "accuracy": (toml(objectives='["accuracy"]'), "systolic machines give no 'accuracy'"),
    "relative energies": (
        toml(objectives='["energy"]', more='technology = "eyeriss-relative"'),
        "has relative energies, so that there is no energy_pj",
    ),
    "a technology of no name": (
        toml(objectives='["energy"]', more='technology = "54nm"'), "no technology '54nm'"
    ),
    "a requirement of a number": (
        toml(more='requirements = ["cycles"]'), "it must be true or false, not a number"
    ),
    "a requirement of a text": (
        toml(more="requirements = [\"cycles == 'a'\"]"), "it takes a text for a number"
    ),
    "too many machines": (
        toml(machine="".join(f'[[machine]]\ndesign = "edge-16"\nname = "m{at}"\n'
                             for at in range(1000))),
        "a space has at most 1,000 machines and kinds of them, not 1,001",
    ),
    "settings twice": (
        toml(machine="[objective.error]\nimages = 1\n[objective.test_error]\nimages = 2"),
        "objective: 'test_error' is there twice",
    ),
    "a requirement of no objective": (
        toml(more='requirements = ["area_um2 < 2"]'), "there is no field 'area_um2'"
    ),
    "a search of no name": (toml(machine='[search]\nmethod = "sobel"'), "did you mean sobol"),
    "no TOML": ("networks = [", "space.toml is not a TOML file"),
    "too many points": (
        toml(fields="{ " + ", ".join(
            f"{name} = {{ from = 1, to = 90000 }}"
            for name in ("rows", "columns", "bias_words", "ifmap_memory.capacity_bytes")
        ) + " }"), "a space has at most",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_space_is_one_line(case: str, archsim: Call, tmp_path: Path) -> None:
    text, said = BAD[case]
    (tmp_path / "space.toml").write_text(text)
    assert said in refused(archsim("sweep", "space.toml", "-o", "study"))
    assert not (tmp_path / "study").exists()


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="memory is not told here")
def test_more_workers_than_there_is_memory_for(archsim: Call, tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(toml())
    said = refused(archsim("sweep", "space.toml", "-o", "study", "--workers", "1024"))
    assert "--workers 1024 take some" in said and not (tmp_path / "study").exists()


def test_contradicting_constraints_are_told_with_what_each_excludes(
    archsim: Call, tmp_path: Path
) -> None:
    text = toml(constraints='["rows > 4", "rows < 8"]')
    (tmp_path / "space.toml").write_text(text)
    said = refused(archsim("sweep", "space.toml", "--dry-run"))
    assert "the space is empty: of 2 designs none is left" in said
    assert "'rows > 4' excludes 1" in said
    assert "'rows < 8' excludes 1" in said
    assert said == refused(archsim("sweep", "space.toml", "-o", "study"))
    (tmp_path / "space.toml").write_text(toml(constraints='["rows < 8"]'))  # mended: same folder
    assert "1 points in study; 1 of them new" in archsim("sweep", "space.toml", "-o", "study").err
    (tmp_path / "space.toml").write_text(text)
    said = refused(archsim("sweep", "space.toml", "-o", "study"))
    assert "study keeps a study of another space" in said


def test_designs_that_are_none_are_told_by_a_dry_run(archsim: Call, tmp_path: Path) -> None:
    fields = "{ rows = [4, 8], ifmap_memory.capacity_bytes = [8, 65536] }"
    (tmp_path / "space.toml").write_text(toml(fields=fields, constraints='["rows < 8"]'))
    said = good(archsim("sweep", "space.toml", "--dry-run"))
    assert "4 designs on alexnet" in said
    assert "2 break rows < 8" in said
    assert "1 are refused, such as: ifmap_memory holds 8 bytes" in said
    assert "1 points to compute" in said


OPTIONS = [
    ((), "give the folder of the study"),
    (("--dry-run",), "--dry-run is of a space"),
    (("space.toml",), "-o DIR"),
    (("space.toml", "-o", "s", "--workers", "0"), "--workers must be from 1 to 1024, not 0"),
    (("space.toml", "-o", "s", "--designs", "0"), "designs must be positive, not 0"),
    (("space.toml", "-o", "s", "--seed", "-1"), "seed must not be negative"),
    (("space.toml", "-o", "s", "--method", "grid"), "no search 'grid'"),
    (("none.toml", "-o", "s"), "none.toml cannot be read"),
    (("space.toml", "-o", "space.toml"), "space.toml cannot be made: File exists"),
]


@pytest.mark.parametrize(("words", "said"), OPTIONS)
def test_bad_options_are_one_line(
    words: tuple[str, ...], said: str, archsim: Call, tmp_path: Path
) -> None:
    (tmp_path / "space.toml").write_text(toml())
    assert said in refused(archsim("sweep", *words))
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("name", ["~", "~/s", "~nobody", "s3:/x", "it's", "a*b", ":memory:"])
def test_a_study_lies_where_it_is_asked_for(name: str, archsim: Call, tmp_path: Path) -> None:
    """DuckDB reads such paths otherwise, where it is told them as they are."""
    (tmp_path / "space.toml").write_text(toml())
    for _ in range(2):
        assert archsim("sweep", "space.toml", "-o", name, "--workers", "1").code == 0
    assert archsim("export", name, f"{name[:1]}.csv").code == 0
    files = {str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*") if one.is_file()}
    study = {f"{name}/{own}" for own in ("study.duckdb", "live.json")}
    assert files == {"space.toml", f"{name[:1]}.csv"} | study


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a\\b", "must have no backslash"),
        ("a?b", "must have no question mark"),
        ("\udcff", "must be a name in UTF-8"),
    ],
)
def test_names_that_a_study_cannot_have(
    name: str, said: str, archsim: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of its folder, and of one that it lies in; a table may have them."""
    (tmp_path / "space.toml").write_text(toml())
    assert said in refused(archsim("sweep", "space.toml", "-o", name))
    assert archsim("sweep", "space.toml", "-o", "study", "--workers", "1").code == 0
    assert archsim("export", "study", f"{name}.csv").code == 0
    there = {one.name for one in tmp_path.iterdir()}
    assert there == {"space.toml", "study", f"{name}.csv"}
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    assert said in refused(archsim("sweep", "../space.toml", "-o", "s"))
    assert not list((tmp_path / name).iterdir())


def test_exports_that_cannot_be(archsim: Call, tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(toml(networks='["alexnet", "resnet18"]'))
    good_run = archsim("sweep", "space.toml", "-o", "study")
    assert good_run.code == 0
    assert "must end in" in refused(archsim("export", "study", "points.xls"))
    assert "keeps no study" in refused(archsim("export", "none", "points.csv"))
    assert "of one network" in refused(archsim("export", "study", "points.log"))
    assert "of which network?" in refused(archsim("export", "study", "best.toml"))
    for number in ("99", "-1", "9" * 30):
        assert "no point" in refused(archsim("export", "study", "x.toml", "--point", number))
    said = refused(archsim("export", "study", "best.toml", "--by", "cycle"))
    assert "did you mean cycles" in said
    (tmp_path / "points.csv").touch()
    assert "exists" in refused(archsim("export", "study", "points.csv"))
    assert {one.name for one in tmp_path.iterdir()} == {"space.toml", "study", "points.csv"}


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    arrays = MachineSpace(design=EDGE_16, fields={"rows": [4]})
    space = Space(machines=(arrays,), networks=("alexnet",))
    (tmp_path / "study").touch()
    with pytest.raises(InputError, match="cannot be made: File exists"):
        Study.begin(tmp_path / "study", space)
    if os.geteuid():  # root writes everywhere
        tmp_path.chmod(0o500)
        with pytest.raises(InputError, match="cannot be made: Permission denied"):
            Study.begin(tmp_path / "other", space)


def test_what_leaves_no_front_is_told(archsim: Call, tmp_path: Path) -> None:
    none = {"all refused": toml(fields="{ rows = [0, -1] }")}
    none["none is of use"] = toml(more='requirements = ["cycles < 0"]', fields="{ rows = [0, 8] }")
    for name, text in none.items():
        (tmp_path / "space.toml").write_text(text)
        said = archsim("sweep", "space.toml", "-o", name)
        assert said.code == 0
        assert "refused, 0 failed of the new ones, such as: rows must be positive, not" in said.err
        there = "could be computed" if name == "all refused" else "fulfils cycles < 0"
        assert f"alexnet: no point {there}" in said.out


def test_a_file_of_another_database_asks_the_network_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "study.duckdb").write_bytes(b"SQLite format 3\0" + bytes(5000))
    with pytest.raises(InputError, match=r"study\.duckdb") as caught:
        Study.open(tmp_path)
    assert "http" not in str(caught.value)


def test_a_network_without_matrix_layers(tmp_path: Path) -> None:
    pool = VectorWork(
        name="pool", operator="MaxPool", input_elements=4, output_elements=1, operations=3
    )
    arrays = MachineSpace(design=EDGE_16, fields={"rows": [4]})
    network = Network(name="pools", layers=(pool,), source="a test")
    space = Space(machines=(arrays,), networks=(network,))
    with pytest.raises(InputError, match="pools has no matrix layer"):
        Study.begin(tmp_path, space)


CONV = Conv2d(
    name="conv", channels=4, filters=8, ifmap_height=6, ifmap_width=6, kernel_height=3,
    kernel_width=3,
)  # fmt: skip
TINY = Network(name="tiny", layers=(CONV,), source="a test")


def test_machines_whose_cycles_depend_on_values_stand_beside_others(tmp_path: Path) -> None:
    """Operands are drawn as the space says, and equal designs of two machines are one point."""
    from archsim.layer.intake import Drawing

    sparse = MachineSpace(
        design=SCNN_4PE, fields={"banks": [32, 64]}, drawing=Drawing(density=0.5, seed=3)
    )
    arrays = MachineSpace(design=EDGE_16, fields={"rows": [4, 8]})
    again = MachineSpace(design=EDGE_16, fields={"rows": [8, 16]}, name="again")
    space = Space(
        machines=(sparse, arrays, again), networks=(TINY,), objectives=("cycles",), layers=True
    )
    assert dry_run(space, Search()).points == 6
    with Study.begin(tmp_path, space) as study:
        study.run()
        frame = study.frame()
        assert len(frame) == 5
        assert study.store.rows("SELECT count(*) FROM layers") == [(5,)]
        assert sorted(frame["machine"]) == ["again", "edge-16", "edge-16", "scnn-4pe", "scnn-4pe"]
        assert frame["rows"].isna().sum() == 2
        for _, row in frame[frame["machine"] == "scnn-4pe"].iterrows():
            design = study.design(row["number"])
            drawing = Drawing(density=0.5, seed=3)
            values = {"conv": design.intake.synthetic(CONV, drawing)}
            assert row["cycles"] == simulate(design, TINY, operands=values).cycles


def test_kinds_of_memory_have_fields_of_their_own(tmp_path: Path) -> None:
    fields = {"ifmap_memory.kind": ["plain", "boveda"], "ifmap_memory.group": [8, 16]}
    arrays = MachineSpace(design=EDGE_16, fields=fields, constraints=("ifmap_memory.group < 16",))
    space = Space(machines=(arrays,), networks=("alexnet",))
    assert arrays.size == 3
    with Study.begin(tmp_path, space) as study:
        assert study.run().new == 2
        found = study.frame()[["ifmap_memory.kind", "ifmap_memory.group"]]
        assert found["ifmap_memory.kind"].tolist() == ["plain", "boveda"]
        assert found["ifmap_memory.group"].isna().tolist() == [True, False]
