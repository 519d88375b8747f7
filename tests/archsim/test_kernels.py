"""Kernels: compiled once for one type of arguments, never stale, with or without a cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np
import pytest

from archsim import EDGE_16, simulate
from archsim.cli.output import announce_compilation
from archsim.kernels import CacheWarning, Kernel, inlined, kernel, not_compiled, store
from archsim.kernels.closure import fingerprint
from archsim.machine.registry import load_design, with_settings
from archsim.numbers import IntArray
from archsim.tiled.choice import TIMING
from archsim.tiled.near_meet import FloatArray
from workloads.layers import Conv2d, Network
from workloads.operands import synthetic

ROOT = Path(__file__).parents[2]
HOUSE = ("archsim", "workloads", "energy_models")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    monkeypatch.setenv(store.CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache" / "kernels"


SCALE = 3


@kernel
def _scaled(value: int) -> int:
    return value * SCALE


@inlined
def _half(value: int) -> int:
    return value // 2


def made() -> Kernel[[IntArray, int], int]:
    """A kernel of its own, not yet loaded."""

    @kernel("i8.1, int")
    def total(values: IntArray, step: int) -> int:
        found = 0
        for at in range(0, len(values), step):
            found += _scaled(values[at]) + _half(values[at])
        return found

    return total


def test_a_kernel_answers_as_its_function_does(cache: Path) -> None:
    total = made()
    values = np.arange(10)
    assert total(values, 2) == total.py_func(values, 2) == total(values, step=2) == 70  # pyright: ignore
    assert len(list(cache.glob("*.o"))) == 1
    assert made()(values, 3) == total.py_func(values, 3)
    assert len(list(cache.glob("*.o"))) == 1


def test_a_part_is_python_when_python_calls_it() -> None:
    assert _scaled(7) == 21
    assert not _scaled.forms


@pytest.mark.parametrize(
    ("values", "step", "types"),
    [
        (np.zeros(3), 1, "(f8.1,int)"),
        (np.zeros((3, 3), np.int64), 1, "(i8.2,int)"),
        (np.zeros(3, np.int64), 1.0, "(i8.1,float)"),
    ],
)
def test_other_types_are_refused(values: IntArray, step: int, types: str) -> None:
    with pytest.raises(TypeError, match=re.escape(f"is declared for (i8.1,int), not {types}")):
        made()(values, step)


@kernel("i8.2, (i8.1, (f8.1, bool)), u8")
def _everything(
    table: IntArray, pair: tuple[IntArray, tuple[Any, bool]], bits: Any
) -> tuple[IntArray, int, float, tuple[IntArray, IntArray]]:
    copy = np.zeros((len(table), 2), np.int64)
    for row in range(len(table)):
        copy[row, 0] = table[row, 0] + pair[0][row]
    table[0, 0] = -1
    return copy, len(table) + pair[1][1], pair[1][0][0] / 2, (copy[:1], copy[:, 0])


@kernel("i8.1")
def _raising(values: IntArray) -> bool:
    if values[0] < 0:
        raise ValueError("values must not be negative")
    return values[0] > 5


def test_tuples_arrays_and_numbers_go_in_and_out() -> None:
    table = np.arange(8).reshape(4, 2)
    arrays = (np.arange(4) * 10, (np.ones(2), True))
    copy, count, half, (first, column) = _everything(table, arrays, np.uint64(3))
    assert copy.tolist() == [[0, 0], [12, 0], [24, 0], [36, 0]]
    assert (count, half, table[0, 0]) == (5, 0.5, -1)
    assert first.tolist() == [[0, 0]]
    assert column.tolist() == [0, 12, 24, 36]
    copy[0, 0] = 99  # its own
    assert first[0, 0] == 0


def test_arrays_in_another_order_are_brought_into_order_and_back() -> None:
    table = np.asfortranarray(np.arange(8).reshape(4, 2))
    _everything(table, (np.arange(8)[::2], (np.ones(2), True)), np.uint64(3))
    assert table[0, 0] == -1
    assert len(_everything.forms) == 1
    table.flags.writeable = False
    _everything(table, (np.arange(4), (np.ones(2), True)), np.uint64(3))


def test_what_a_kernel_raises_is_raised() -> None:
    assert _raising(np.array([6])) is True
    assert _raising(np.array([5])) is False
    with pytest.raises(ValueError, match="values must not be negative"):
        _raising(np.array([-1]))


def test_memory_of_answers_is_given_back() -> None:
    status = Path("/proc/self/statm")
    if not status.exists():
        pytest.skip("no /proc")
    table, arrays = (
        np.zeros((20_000, 1), np.int64),
        (np.zeros(20_000, np.int64), (np.ones(1), True)),
    )

    def pages() -> int:
        return int(status.read_text().split()[1])

    for _ in range(5):
        _everything(table, arrays, np.uint64(0))
    before = pages()
    for _ in range(200):  # 320 kB each
        _everything(table, arrays, np.uint64(0))
    assert (pages() - before) * os.sysconf("SC_PAGE_SIZE") < 16e6


@kernel("f8.1, f8.1")
def _expressions(one: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of arrays, with a list, and with a function within."""
    fused = np.sqrt(one * 2 + other) - one
    fused[1:] += np.maximum(one, other)[1:]
    return fused, np.array([at * other[0] for at in range(3)])


def test_expressions_of_arrays_and_functions_within_are_compiled() -> None:
    one, other = np.arange(5.0), np.linspace(3, 4, 5)
    for found, expected in zip(
        _expressions(one, other), _expressions.py_func(one, other), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_where_numba_links_parts_itself_the_code_is_the_same(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a later numba, of which what is replaced is named otherwise."""
    from archsim.kernels import lowering

    scope: dict[str, Any] = {"kernel": kernel, "inlined": inlined, "np": np}
    exec(compile(TEXT, "<text>", "exec"), scope)
    monkeypatch.setattr(lowering, "codegen", SimpleNamespace(CPUCodeLibrary=object))
    with lowering.lowered_only() as apart:
        assert not apart
    assert scope["entry"](5) == 7 * 5 + 2 + 1


class _Pair(NamedTuple):
    numbers: IntArray
    many: int


def _of_all_kinds(given: IntArray, limit: float) -> tuple[float, int]:
    """What kernels are made of: arrays made and taken apart, records, loops, numpy's functions."""
    made, table = np.zeros(len(given), np.int64), np.empty((len(given), 2), np.int64)
    pair = _Pair(made, max(len(given), 3))
    for at in range(len(given)):
        pair.numbers[at] = given[at] // 2 + min(at, 5) * -given[at] % 7
        table[at, 0], table[at, 1] = given[at] >> 1, int(given[at] > limit)
    total = np.log(1.0 + pair.many) + float(table[:, 0].sum())
    for one in table[1]:
        total += limit**2 if one else abs(limit)
    return total, pair.numbers.sum()


def test_shorter_ways_come_to_the_same_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """What numba is spared is there in this numba, and changes nothing of what it makes."""
    from archsim.kernels import build, lowering
    from archsim.kernels.native import Package
    from archsim.kernels.spelling import examples

    assert all(hasattr(owner, name) for owner, name, _ in lowering.SHORTER)

    def code() -> list[bytes]:
        function = FunctionType(_of_all_kinds.__code__, globals(), "of_all_kinds")
        entry = kernel("i8.1, float")(function)
        package = Package.from_bytes(build.compile_entry(entry.part, examples("i8.1,float", {})))
        sections = llvm.ObjectFileRef.from_data(package.code).sections()
        return [one.data() for one in sections if one.is_text()]

    shorter = code()
    assert any(shorter)
    monkeypatch.setattr(lowering, "SHORTER", ())
    assert code() == shorter


# the key


def _compiled(text: str) -> str:
    """The key of `entry` of a module with this text."""
    scope: dict[str, object] = {"kernel": kernel, "inlined": inlined, "np": np}
    exec(compile(text, "<text>", "exec"), scope)
    entry = scope["entry"]
    assert isinstance(entry, Kernel)
    return fingerprint(entry.part)


TEXT = """
STEP = 2
TABLE = np.array([1, 2, 3])
@inlined
def deep(x): return x + STEP
@kernel
def part(x): return deep(x) * 5 + TABLE[1]
@kernel("int")
def entry(x): return part(x) + 1
"""


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("x + STEP", "x - STEP"),
        ("STEP = 2", "STEP = 3"),
        ("[1, 2, 3]", "[1, 4, 3]"),
        ("* 5", "* 6"),
        ("+ 1", "+ 2"),
        ("@inlined", "@kernel"),
        ("def deep(x)", "def deep(x, y=1)"),
    ],
)
def test_every_edit_of_a_part_or_a_constant_is_another_key(said: str, instead: str) -> None:
    assert _compiled(TEXT) == _compiled(f"# a remark\n{TEXT}")
    assert said in TEXT
    assert _compiled(TEXT) != _compiled(TEXT.replace(said, instead))


def test_what_cannot_be_told_is_refused() -> None:
    text = TEXT.replace("STEP = 2", "STEP = object()")
    with pytest.raises(TypeError, match="STEP is neither a constant nor a kernel"):
        _compiled(text)


TILES = """
import numpy as np
from archsim import EDGE_16
from archsim.tiled.walk import walk
from archsim.layer.problem import Tiling
from workloads.layers import MatMul
problem = EDGE_16.numerics.problem(MatMul(name="m", m=30, n=40, k=50))
tiling = Tiling(pixel_rows=1, pixel_columns=7, filters=16, channels=50)
print(walk(problem.vector(), tiling.vector(), EDGE_16.machine).sum())
"""


def test_an_edit_of_a_callee_changes_the_answer(tmp_path: Path) -> None:
    """In a copy of the package, of which two processes share a cache."""
    for name in HOUSE:
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.nb?")
        )
    settings = {**os.environ, "PYTHONPATH": str(tmp_path), "ARCHSIM_CACHE_DIR": str(tmp_path / "c")}

    def run() -> str:
        command = [sys.executable, "-c", TILES]
        return subprocess.run(
            command, env=settings, cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    before = run()
    kept = list((tmp_path / "c" / "kernels").glob("*.o"))
    assert run() == before
    file = tmp_path / "archsim" / "tiled" / "walk.py"
    text = file.read_text(encoding="utf-8")
    said = "return _ceil(run_length, machine[mc.CHUNK])"
    assert said in text
    file.write_text(text.replace("window - low\n", "window - low + 1\n"), encoding="utf-8")
    assert run() != before
    file.write_text(text, encoding="utf-8")
    assert run() == before
    assert len(list((tmp_path / "c" / "kernels").glob("*.o"))) == len(kept) + 1


# the folder


def test_a_damaged_file_is_compiled_anew(cache: Path) -> None:
    made()(np.arange(4), 1)
    (file,) = cache.glob("*.o")
    whole = file.read_bytes()
    for damaged in (whole[:100], whole[:-1] + bytes([whole[-1] ^ 1]), b"", b"nonsense" * 50):
        file.write_bytes(damaged)
        assert made()(np.arange(4), 1) == made().py_func(np.arange(4), 1)
        assert file.read_bytes()[:17] == whole[:17]
        assert store.read(*file.stem.rsplit("-", 1)) is not None


def test_without_a_folder_there_is_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(store.CACHE_VARIABLE, str(tmp_path / "file"))
    monkeypatch.setattr(store, "_warned", False)
    with pytest.warns(CacheWarning) as caught:
        for _ in range(3):
            assert made()(np.arange(4), 1) == made().py_func(np.arange(4), 1)
    assert len(caught) == 1
    assert "compiled kernels cannot be kept in" in str(caught[0].message)


def test_old_versions_go(cache: Path) -> None:
    for at in range(store.VERSIONS + 5):
        store.write("m.one-1", f"{at:032x}", b"content")
        file = cache / f"m.one-1-{at:032x}.o"
        then = time.time() - 1000 + at
        os.utime(file, (then, then))
    store.write("m.two-1", "0" * 32, b"content")
    kept = sorted(path.name for path in cache.glob("m.one*"))
    assert len(kept) <= store.VERSIONS + 1
    assert f"m.one-1-{store.VERSIONS + 4:032x}.o" in kept
    old = time.time() - store.UNUSED_SECONDS - 10
    os.utime(cache / f"m.two-1-{'0' * 32}.o", (old, old))
    store.write("m.one-1", "f" * 32, b"content")
    assert not list(cache.glob("m.two*"))
    assert not list(cache.glob(".*"))


def test_processes_that_compile_at_once_agree(cache: Path, tmp_path: Path) -> None:
    script = tmp_path / "both.py"
    script.write_text(
        "import numpy as np\nfrom archsim.kernels import kernel\n"
        '@kernel("i8.1")\ndef f(x):\n    return x[0] * 3\n'
        "print(f(np.array([14])))\n"
    )
    children = [
        subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [child.communicate()[0] for child in children] == ["42\n"] * 3
    assert len(list(cache.iterdir())) == 1


# the project's own


def test_each_timing_kernel_is_compiled_for_one_type_of_arguments() -> None:
    for design in ("edge-16", "cloud-128", "volta"):
        for network in ("alexnet", "lstm-zaremba-medium"):
            simulate(design, network)
    for dataflow in ("output_stationary", "input_stationary"):
        simulate(replace(EDGE_16, dataflow=dataflow), "squeezenet1.1")
    simulate("vsq-5nm", "bert-base-128")
    for one in TIMING:
        (parts,) = one.forms.values()
        assert len(parts) > 5
        assert {name: count for name, count in parts.items() if count != 1} == {}


def test_timing_without_compilation_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code and Python give the same figures."""
    from archsim.layer import problem as pb
    from archsim.tiled.choice import choose_alone, choose_tiling
    from archsim.tiled.summary import time_tiles
    from archsim.tiled.walk import walk

    layer = Conv2d(
        name="c", channels=20, filters=24, ifmap_height=9, ifmap_width=8, kernel_height=3,
        kernel_width=3, pad_top=1, pad_left=1, batch=2,
    )  # fmt: skip
    problem = EDGE_16.numerics.problem(layer).vector()
    found, alone = (np.zeros(pb.TILING_COLUMNS, np.int64) for _ in range(2))
    one = EDGE_16.numerics.problem(replace(layer, batch=1)).vector()
    assert choose_tiling(one, EDGE_16.machine, found)
    assert choose_alone(one, EDGE_16.machine, alone)
    assert found.tolist() == alone.tolist()

    def figures(run: Callable[[Kernel[..., Any]], Callable[..., object]]) -> list[object]:
        found = np.zeros(pb.TILING_COLUMNS, np.int64)
        assert run(choose_tiling)(problem, EDGE_16.machine, found)
        tiles = run(walk)(problem, found, EDGE_16.machine)
        summary = run(time_tiles)(tiles, EDGE_16.machine)
        return [found.tolist(), np.asarray(tiles).tolist(), np.asarray(summary).tolist()]

    compiled = figures(lambda one: one)
    for one in (*TIMING, *_entries()):
        monkeypatch.setattr(one, "_run", one.py_func)
    assert figures(lambda one: one.py_func) == compiled


def test_the_kernels_of_a_search_are_named_with_its_mapper(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """None is there; then all but one."""
    model = EDGE_16.machine_model()

    def told(options: Mapping[str, Any], *, many: bool = False) -> str:
        announce_compilation(model, options, many=many)
        return capfd.readouterr().err.removeprefix("archsim: compiling ")

    assert told({}).endswith(": near_tiling, cycles_within, walk, time_tiles\n")
    assert told({"mapper": "rough"}).endswith(" each): choose_alone, walk, time_tiles\n")
    assert told({"mapper": "exact", "objective": "edp"}).startswith("6 kernels, once (")
    assert told({"mapper": "rough"}, many=True).endswith(": time_many_roughly, cycles_within\n")
    assert told({}, many=True).endswith(": time_many, near_tiling, cycles_within\n")
    monkeypatch.setattr("archsim.kernels.native.is_kept", lambda name, *_: "choose" not in name)
    assert told({"mapper": "rough"}).startswith("1 kernel, once (")
    assert told({}) == ""


def _entries() -> list[Kernel[..., Any]]:
    """Entries that timing calls."""
    from archsim.tiled.schedule import schedule
    from archsim.tiled.traffic import port_bytes, services_of

    return [schedule, port_bytes, services_of]


FIRST_RUNS = (
    ("edge-16", ()),
    ("volta", ()),
    ("vsq-16", ()),
    ("scnn-4pe", ()),
    ("scnn-4pe", ("group_rule=dnnsim", "bank_hash=dnnsim", "barrier=channel")),
)


@pytest.mark.parametrize(("name", "settings"), FIRST_RUNS)
def test_a_machine_names_the_kernels_of_its_runs(name: str, settings: tuple[str, ...]) -> None:
    """Those that a run of it calls, in the form that they are declared for."""
    design = with_settings(load_design(name), list(settings))
    layer = Conv2d(
        name="c", channels=4, filters=4, ifmap_height=6, ifmap_width=6, kernel_height=3,
        kernel_width=3,
    )  # fmt: skip
    network = Network(name="n", source="s", layers=(layer,))
    operands = None if not design.machine_model().timed_by_values else synthetic
    simulate(design, network, operands=operands)
    named = design.machine_model().kernels({})
    assert named
    assert all(one.declared in one.forms for one in named)
    assert not_compiled(named) == []
    assert not_compiled([Kernel(named[0].py_func, "no,such,types", merged=False)])
