"""Arrays and saved results of hostile shape: mutated, truncated, lying; bounded in memory."""

import io
import json
import random
import resource
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Call, refused
from hostile_bytes import mutants
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim import EDGE_16, simulate
from archsim.array_files import load_npy, load_npz
from archsim.errors import InputError
from archsim.saved import load_result
from workloads.layers import MatMul, Network

GIB = 1 << 30
MUTANTS = 400
SEED = 20261122


def npy(values: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def lying(shape: tuple[int, ...], kind: str = "<f8") -> bytes:
    """A header of any shape, and no values behind it."""
    file = io.BytesIO()
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)  # type: ignore[arg-type]
    return file.getvalue()


def archive(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in members.items():
            made.writestr(name, data)
    return file.getvalue()


BAD_ARRAYS = {
    "empty": b"",
    "magic alone": b"\x93NUMPY",
    "text": b"hello",
    "terabytes": lying((1 << 40,)),
    "many axes": lying((1 << 30, 1 << 30, 1 << 30)),
    "negative": lying((-1, 4)),
    "objects": lying((4,), "|O"),
    "truncated": npy(np.ones(100))[:-9],
    "version": b"\x93NUMPY\x07\x00" + npy(np.ones(3))[8:],
    "header of code": npy(np.ones(3)).replace(b"'descr'", b"__import"),
    "long header": b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + b" " * 64,
}


@pytest.mark.parametrize("data", BAD_ARRAYS.values(), ids=BAD_ARRAYS.keys())
def test_a_bad_array(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.npy"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"bad\.npy"):
        load_npy(path)
    inside = tmp_path / "bad.npz"
    inside.write_bytes(archive(**{"x.npy": data}))
    with pytest.raises(InputError, match=r"bad\.npz"):
        load_npz(inside)


@pytest.mark.parametrize(
    "data",
    [b"", b"PK\x03\x04", npy(np.ones(3)), archive(), archive(**{"x.txt": b"no array"})],
    ids=["empty", "cut", "one array", "no arrays", "text"],
)
def test_a_bad_archive(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"bad\.npz"):
        load_npz(path)


def test_an_archive_that_unpacks_to_more_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workloads.limits import Limits

    monkeypatch.setattr("workloads.limits._limits", Limits(file_mib=2))
    path = tmp_path / "bomb.npz"
    path.write_bytes(archive(**{"x.npy": npy(np.zeros(1 << 20))}))
    with pytest.raises(InputError, match=r"MiB unpacked must be at most 2, not 8"):
        load_npz(path)


@pytest.mark.parametrize("place", ["/dev/zero", "/dev", "/nowhere/x.npy", "a\0b"])
def test_places_that_hold_no_array(place: str) -> None:
    for load in (load_npy, load_npz):
        with pytest.raises(InputError):
            load(Path(place))


@settings(max_examples=50, deadline=None)
@given(
    shape=st.lists(st.integers(0, 5), max_size=3),
    kind=st.sampled_from(["i1", "u1", "<i2", ">i4", "<f4", "f8", "?"]),
    fortran=st.booleans(),
)
def test_good_arrays_are_read_as_numpy_does(
    shape: list[int], kind: str, fortran: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    values = np.arange(int(np.prod(shape))).reshape(shape).astype(kind)
    values = np.asfortranarray(values) if fortran else values
    folder = tmp_path_factory.mktemp("arrays")
    np.save(folder / "x.npy", values)
    np.savez_compressed(folder / "x.npz", one=values, two=values[..., None])
    found = load_npz(folder / "x.npz")
    assert np.array_equal(load_npy(folder / "x.npy"), values)
    assert np.array_equal(found["one"], values)
    assert np.array_equal(found["two"], values[..., None])


def check_mutants(data: bytes, suffix: str, load: Any, folder: Path) -> None:
    path = folder / f"mutant{suffix}"
    for made in mutants(data, MUTANTS, SEED):
        path.write_bytes(made)
        try:
            load(path)
        except InputError as error:
            assert "mutant" in str(error)


def test_mutated_arrays(tmp_path: Path) -> None:
    check_mutants(npy(np.ones((3, 4), np.int8)), ".npy", load_npy, tmp_path)


def test_mutated_archives(tmp_path: Path) -> None:
    data = archive(**{"x.npy": npy(np.ones((3, 4))), "y.npy": npy(np.arange(50))})
    check_mutants(data, ".npz", load_npz, tmp_path)


@pytest.fixture(scope="module")
def saved() -> str:
    network = Network(name="one", source="here", layers=(MatMul(name="a", m=4, n=4, k=4),))
    return simulate(EDGE_16, network).to_json()


def test_mutated_results(saved: str, tmp_path: Path) -> None:
    check_mutants(saved.encode(), ".json", load_result, tmp_path)


VALUES: list[Any] = [
    None, True, -1, 0, 1 << 70, 1e308, -0.5, float("nan"), float("inf"), "", "\x1b[31m", "\ud800",
    "x" * 70_000, [], {}, [[]], {"": {}},
]  # fmt: skip


def places(record: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a JSON value."""
    yield path
    inner = record.items() if isinstance(record, dict) else ()
    inner = enumerate(record) if isinstance(record, list) else inner
    for key, value in inner:
        yield from places(value, (*path, key))


def test_every_place_of_a_result_with_every_odd_value(saved: str, tmp_path: Path) -> None:
    record, path = json.loads(saved), tmp_path / "mutant.json"
    everywhere = [one for one in places(record) if one]
    draw = random.Random(SEED)
    for place in draw.sample(everywhere, min(len(everywhere), 60)):
        for value in VALUES:
            made = json.loads(saved)
            inner = made
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = value
            path.write_text(json.dumps(made))
            try:
                found = load_result(path)
            except InputError as error:
                assert str(error).isprintable()
            else:
                assert found.network.isprintable()


CHILD = """
import sys
from pathlib import Path
from archsim.array_files import load_npy, load_npz
from archsim.errors import InputError
from archsim.saved import load_result
load = {".npy": load_npy, ".npz": load_npz, ".json": load_result}
for name in sys.argv[1:]:
    try:
        load[Path(name).suffix](Path(name))
    except InputError as error:
        print(error)
"""


def test_hostile_files_take_no_memory(tmp_path: Path) -> None:
    """In a child that may take 2 GiB: what says that it is larger is refused before it is read."""
    files = {
        "lies.npy": lying((1 << 36,)),
        "lies.npz": archive(**{"x.npy": lying((1 << 36,))}),
        "bomb.npz": archive(**{"x.npy": lying((1 << 33,), "|u1")}),
        "deep.json": b"[" * 1_000_000,
        "digits.json": b'{"archsim": ' + b"9" * 1_000_000 + b"}",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with (tmp_path / "sparse.npy").open("wb") as file:
        file.write(lying((1 << 37,), "|u1"))
        file.truncate((1 << 37) + 200)  # as large as it says, and nothing on the disk
    with (tmp_path / "sparse.json").open("wb") as file:
        file.truncate(1 << 37)
    names = [str(one) for one in sorted(tmp_path.iterdir())]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *names],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (2 * GIB, 2 * GIB)),
        env={"ARCHSIM_LIMITS": "file_mib=512", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert len(done.stdout.splitlines()) == len(names), done.stdout


@pytest.mark.parametrize("place", ["folder", "readonly/x", "file/x", "full"])
def test_output_that_cannot_be_written(place: str, archsim: Call, tmp_path: Path) -> None:
    """Nothing is half written, and what lay there before lies there still."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").write_text("kept")
    (tmp_path / "file").write_text("kept")
    target = Path("/dev/full") if place == "full" else tmp_path / place
    if place.startswith("readonly"):
        target = Path("/proc/archsim")  # not even root makes files there
    for option in ("-o", "--report"):
        refused(archsim("run", "edge-16", "alexnet", "--timing-only", option, target))
    assert (tmp_path / "file").read_text() == "kept"
    assert (tmp_path / "folder" / "mine").read_text() == "kept"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "folder"]
