"""Every option of every command that names a file: hostile files are read, full disks written to.

The options are those that the commands have; one that is not told of here fails a test.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from attacks import SPACE
from bounded_child import BoundedChild, Ended
from command_line import commands, parameters_of
from hostile_bytes import mutants

SEED = 20261124
Key = tuple[str, str]

PLAIN = (
    "aim", "aligned_axes", "as_json", "batch", "baud", "bench", "bits", "board", "by", "cache",
    "cases", "chain", "chips",
    "clock_mhz", "cycles", "data", "density", "depth", "designs", "device", "dim",
    "distribution", "divisor", "dry_run", "epochs",
    "family", "force", "group", "grow", "images", "interface", "lanes", "layer", "layers",
    "learning_rate", "loss",
    "machine_chain", "machine_mapper", "machine_objective", "memories", "metadata",
    "method", "model", "name",
    "network", "node_nm", "only", "operands", "photo", "pictures", "place", "point", "points",
    "port",
    "prune", "range_bits", "scheduler",
    "seed", "seeds",
    "settings", "simulator", "skip_unsupported", "smaller", "source", "sram_voltage", "target",
    "timing_only", "top", "voltage", "watch", "wave_format", "wide", "workers", "zero_width",
)  # fmt: skip
"""Options of every command that name no file."""

MAPPED = ("show", "mapping", "edge-16", "alexnet", "--layer", "conv1")
RUN = ("run", "edge-16", "alexnet", "--timing-only")
READS: dict[Key, tuple[str, ...]] = {
    ("run", "design"): ("run", "{toml}", "alexnet", "--timing-only"),
    ("run", "workload"): ("run", "edge-16", "{onnx}", "--timing-only"),
    ("run", "input_file"): ("run", "edge-16", "good.onnx", "--input", "{npz}"),
    ("run", "capture"): (
        "run",
        "edge-16",
        "lenet5:training",
        "--timing-only",
        "--capture",
        "{npz}",
    ),
    ("capture", "folder"): ("capture", "lenet5", "-o", "new", "--folder", "{npz}"),
    ("run", "machine_mapping"): (*RUN, "--mapping", "{toml}"),
    ("run", "machine_objective_technology"): (
        *RUN,
        "--objective",
        "energy",
        "--objective-technology",
        "{toml}",
    ),
    ("run", "technology"): (*RUN, "--technology", "{toml}"),
    ("trace", "design"): ("trace", "{toml}", "alexnet", "--layer", "conv5"),
    ("trace", "workload"): ("trace", "edge-16", "{onnx}"),
    ("trace", "input_file"): (
        "trace",
        "edge-16",
        "good.onnx",
        "--input",
        "{npz}",
        "--vcd",
        "v.vcd",
    ),
    ("trace", "machine_objective_technology"): (
        "trace",
        "edge-16",
        "alexnet",
        "--layer",
        "conv5",
        "--objective",
        "energy",
        "--objective-technology",
        "{toml}",
    ),
    ("trace", "machine_mapping"): ("trace", "edge-16", "alexnet", "--mapping", "{toml}"),
    ("voltage", "design"): ("voltage", "{toml}", "--images", "0"),
    ("compress", "what"): ("compress", "{npy}"),
    ("compress", "input_file"): ("compress", "good.onnx", "--input", "{npz}"),
    ("compare", "results"): ("compare", "{json}", "good.json"),
    ("show", "design"): ("show", "{toml}"),
    ("show", "of"): ("show", "mapping", "{toml}", "alexnet"),
    ("show", "machine_mapping"): (*MAPPED, "--mapping", "{toml}"),
    ("show", "machine_objective_technology"): (
        *MAPPED,
        "--objective",
        "energy",
        "--objective-technology",
        "{toml}",
    ),
    ("emit", "design"): ("emit", "{toml}"),
    ("verify", "design"): ("verify", "{toml}"),
    ("synth", "design"): ("synth", "{toml}"),
    ("power", "design"): ("power", "{toml}"),
    ("power", "workload"): ("power", "edge-16", "{onnx}", "--layer", "y"),
    ("fpga place", "design"): ("fpga", "place", "{toml}"),
    ("fpga build", "design"): ("fpga", "build", "{toml}", "--board", "ulx3s", "-o", "new"),
    ("fpga fit", "design"): ("fpga", "fit", "{toml}", "--board", "ulx3s", "--no-place"),
    ("fpga run", "design"): ("fpga", "run", "{toml}", "good.onnx"),
    ("fpga run", "workload"): ("fpga", "run", "edge-16", "{onnx}"),
    ("fpga run", "input_file"): ("fpga", "run", "edge-16", "good.onnx", "--input", "{npz}"),
    ("synth", "liberty"): ("synth", "edge-16", "--set", "rows=1", "--liberty", "{lib}"),
    ("power", "liberty"): ("power", "edge-16", "--set", "rows=1", "--liberty", "{lib}"),
    ("characterize", "liberty"): ("characterize", "-o", "c.toml", "--liberty", "{lib}"),
    ("sweep", "space"): ("sweep", "{toml}", "--dry-run"),
    ("export", "study"): ("export", "{duckdb}", "points.csv"),
    ("report", "study"): ("report", "{duckdb}", "-o", "page.html"),
}
"""Calls that read a file, by command and option."""

VERIFY = ("verify", "edge-16", "--simulator", "cocotb", "--case", "0")
TRACE = ("trace", "edge-16", "alexnet", "--layer", "conv5")
WRITES: dict[Key, tuple[tuple[str, ...], str]] = {
    ("run", "output"): ((*RUN, "-o"), "out"),
    ("run", "report"): ((*RUN, "--report"), "page.html"),
    ("trace", "perfetto"): ((*TRACE, "--perfetto"), "p.json"),
    ("trace", "vcd"): (("trace", "edge-16", "good.onnx", "--no-lanes", "--vcd"), "v.vcd"),
    ("compare", "csv"): (("compare", "good.json", "good.json", "--csv"), "c.csv"),
    ("compare", "plot"): (("compare", "good.json", "good.json", "--plot"), "c.svg"),
    ("show", "output"): ((*MAPPED, "-o"), "m.toml"),
    ("emit", "output"): (("emit", "edge-16", "--set", "rows=1", "--set", "columns=1", "-o"), "c.v"),
    ("characterize", "output"): (("characterize", "-o"), "k.toml"),
    ("synth", "output"): (("synth", "edge-16", "--set", "rows=1", "-o"), "s"),
    ("fpga place", "output"): (("fpga", "place", "boveda", "-o"), "f"),
    ("fpga build", "output"): (("fpga", "build", "edge-16", "--board", "ulx3s", "-o"), "f"),
    ("verify", "coverage"): (("verify", "edge-16", "--cases", "1", "--coverage"), "b.json"),
    ("verify", "waves"): (
        ("verify", "edge-16", "--simulator", "cocotb", "--case", "0", "--waves"),
        "w",
    ),
    ("capture", "output"): (
        ("capture", "lenet5", "--epochs", "0", "--pictures", "4", "--batch", "4", "-o"),
        "steps",
    ),
    ("sweep", "output"): (("sweep", "space.toml", "--workers", "1", "-o"), "study"),
    ("export", "file"): (("export", "good.duckdb"), "points.csv"),
    ("voltage", "report"): (("voltage", "edge-16", "--report"), "page.html"),
    ("report", "output"): (("report", "good.duckdb", "-o"), "page.html"),
}
"""Calls that write, to which the name of a file or folder is added."""

QUICK_VERBS = ("run", "trace", "compare", "emit", "show", "export", "report")
QUICK = [key for key in WRITES if key[0] in QUICK_VERBS]
"""Those that write within seconds."""

DRAWN = [("run", "report"), ("compare", "plot"), ("report", "output")]
"""Those that draw for seconds before they write, in one go, as the others do."""

LONG = ("verify", "synth", "power", "fpga place", "fpga build", "fpga fit", "fpga run")
"""Those that take minutes of a design that is none of the bad ones, as an empty file is."""

NOT_FILES = {("list", "what"), ("paper", "name")}


def test_every_option_that_names_a_file_is_told_of() -> None:
    there = {(verb, one.name) for verb in commands() for one in parameters_of(verb)}
    rest = {key for key in there if key[1] not in (*PLAIN, "help")} - NOT_FILES
    assert rest == READS.keys() | WRITES.keys()


@pytest.fixture(scope="module")
def child() -> Iterator[BoundedChild]:
    with BoundedChild(seconds=60, memory_mib=8192) as one:
        yield one


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory, child: BoundedChild) -> dict[str, bytes]:
    """Good files of every kind by their suffix."""
    import io

    import numpy as np
    from hostile_models import conv

    def shown(*words: str) -> bytes:
        ended = child.archsim(*words, cwd=tmp_path_factory.getbasetemp())
        assert ended.code == 0, ended
        return ended.out.encode()

    folder = tmp_path_factory.mktemp("study")
    (folder / "space.toml").write_text(SPACE)
    (folder / "small.onnx").write_bytes(conv().SerializeToString())
    study = ("sweep", "space.toml", "-o", "study", "--workers", "1", "--json")
    assert child.archsim(*study, cwd=folder).code == 0
    npy, npz = io.BytesIO(), io.BytesIO()
    np.save(npy, np.ones((4, 8, 8), np.int8))
    np.savez_compressed(npz, x=np.ones((1, 4, 8, 8), np.float32))
    return {
        "toml": shown("show", "edge-16"),
        "technology": shown("show", "45nm"),
        "tiling": b"[conv1]\npixel_rows = 1\npixel_columns = 4\nfilters = 4\nchannels = 3\n",
        "json": shown(*RUN, "--json"),
        "onnx": conv().SerializeToString(),
        "duckdb": (folder / "study" / "study.duckdb").read_bytes(),
        "npy": npy.getvalue(),
        "npz": npz.getvalue(),
        "lib": b"library (x) { cell (a) { area : 1; pin (y) { direction : output; } } }",
    }


PLACED = ("good.json", "good.onnx", "small.onnx", "good.duckdb", "space.toml")


def place(folder: Path, good: dict[str, bytes]) -> None:
    (folder / "good.json").write_bytes(good["json"])
    (folder / "good.onnx").write_bytes(good["onnx"])
    (folder / "small.onnx").write_bytes(good["onnx"])
    (folder / "good.duckdb").write_bytes(good["duckdb"])
    (folder / "space.toml").write_text(SPACE)


BAD = {
    "empty": b"",
    "bytes": bytes(range(256)) * 4,
    "deep": b"a = " + b"[" * 20_000 + b"]" * 20_000,
    "digits": b"rows = " + b"9" * 5_000,
    "words": b"\x1b[31m = '\xed\xa0\x80'\n" + b"x" * 70_000,
}


def kind_of(words: tuple[str, ...]) -> str:
    return next(word[1:-1] for word in words if word.startswith("{"))


def read(child: BoundedChild, words: tuple[str, ...], data: bytes, folder: Path) -> Ended:
    kind = kind_of(words)
    (folder / f"bad.{kind}").write_bytes(data)
    return child.archsim(*(word.format(**{kind: f"bad.{kind}"}) for word in words), cwd=folder)


@pytest.mark.parametrize("key", READS, ids="-".join)
def test_bad_files(key: Key, child: BoundedChild, good: dict[str, bytes], tmp_path: Path) -> None:
    place(tmp_path, good)
    bad = [name for name in BAD if name != "empty" or key[0] not in LONG]
    for name in random.Random(SEED + len(key[0])).sample(bad, 2):
        ended = read(child, READS[key], BAD[name], tmp_path)
        assert not ended.fault, (name, ended)
        # an empty tiling or technology may be one that says nothing
        assert ended.code == 2 or name == "empty", (name, ended)
    kind = kind_of(READS[key])
    for path in ("/dev", "/nowhere/x." + kind):
        words = [word.format(**{kind: path}) for word in READS[key]]
        ended = child.archsim(*words, cwd=tmp_path)
        assert ended.code == 2, ended
        assert not ended.fault, ended
    assert {one.name for one in tmp_path.iterdir()} <= {*PLACED, f"bad.{kind}"}


CHEAP_VERBS = ("run", "trace", "compress", "compare", "show", "export", "report")
CHEAP = [key for key in READS if key[0] in CHEAP_VERBS]


@pytest.mark.slow
@pytest.mark.parametrize("key", CHEAP, ids="-".join)
def test_mutated_files(
    key: Key, child: BoundedChild, good: dict[str, bytes], tmp_path: Path
) -> None:
    place(tmp_path, good)
    special = {"technology": "technology", "machine_mapping": "tiling"}
    data = good[special.get(key[1], kind_of(READS[key]))]
    for number, made in enumerate(mutants(data, 120, SEED)):
        ended = read(child, READS[key], made, tmp_path)
        assert not ended.fault, (number, ended)
        for one in tmp_path.glob("v"):
            one.unlink()


def content(folder: Path) -> dict[str, bytes]:
    files = (one for one in folder.rglob("*") if one.is_file())
    return {str(one.relative_to(folder)): one.read_bytes() for one in files}


@pytest.mark.parametrize("key", WRITES, ids="-".join)
def test_places_where_nothing_can_be_written(
    key: Key, child: BoundedChild, good: dict[str, bytes], tmp_path: Path
) -> None:
    """Said before any work, and nothing is left."""
    place(tmp_path, good)
    before = content(tmp_path)
    words, name = WRITES[key]
    suffix = Path(name).suffix
    dangling = tmp_path / f"dangling{suffix}"
    dangling.symlink_to("nowhere/at/all")
    for bad in ("x" * 300 + suffix, f"/proc/1/nope/x{suffix}", f"good.json/x{suffix}", dangling):
        ended = child.archsim(*words, bad, cwd=tmp_path)
        assert ended.code == 2, (bad, ended)
        assert not ended.fault, (bad, ended)
    assert dangling.is_symlink()
    assert content(tmp_path) == before
    assert {one.name for one in tmp_path.iterdir()} == {*before, dangling.name}


@pytest.mark.parametrize("key", QUICK, ids="-".join)
def test_full_disks(key: Key, child: BoundedChild, good: dict[str, bytes], tmp_path: Path) -> None:
    """Files end after so many bytes: what lay there lies there still, and nothing beside it."""
    place(tmp_path, good)
    words, name = WRITES[key]
    assert child.archsim(*words, name, cwd=tmp_path).code == 0
    before = content(tmp_path)
    largest = max(len(data) for path, data in before.items() if path not in PLACED)
    for size in (largest // 2,) if key in DRAWN else (0, largest // 2, largest - 1):
        ended = child.archsim(*words, name, "--force", cwd=tmp_path, file_bytes=size)
        assert ended.code == 2, (size, ended)
        assert not ended.fault, (size, ended)
        assert content(tmp_path) == before
    folders = [one for one in tmp_path.iterdir() if one.name.startswith(".")]
    assert folders == []
