"""`archsim run` as a user meets it: what it prints and writes, and what it refuses."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from command_line import Call, good, refused
from onnx import TensorProto, helper, numpy_helper
from rich.console import Console

from archsim.cli.layers import layer_table
from archsim.machines.systolic.design import EDGE_16
from archsim.simulate import simulate
from archsim.version import VERSION
from workloads.builtin import builtin


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


@pytest.mark.parametrize("width", [20, 40, 80, 130])
def test_no_name_and_no_figure_is_cut(width: int) -> None:
    """Long names go on in the next line; columns without room are named below the table."""
    result = simulate(EDGE_16, builtin("alexnet"))
    name = "/backbone/stage.1/stage.1.0/branch/conv2/Conv_that_no_terminal_has_room_for"
    long = replace(result.layers[0], name=name)
    console = Console(width=width, force_terminal=True, color_system=None)
    table, legend = layer_table(replace(result, layers=(long, *result.layers[1:])), console)
    with console.capture() as capture:
        console.print(table)
    lines = capture.get().splitlines()
    assert "…" not in capture.get()
    assert max(map(len, lines)) <= width
    head = next(line for line in lines if "layer" in line)
    first = [line[: head.index("cycles")] if "cycles" in head else line for line in lines]
    assert name in "".join(part.split(" ")[1] for part in first if part[1:2].strip())
    if width >= 40:
        assert f"{long.cycles:,}" in capture.get()
    missing = [one for one in ("serial", "tiles", "drain") if one not in head]
    assert all(any(one in line for line in legend) for one in missing)


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
    (layer,) = record["layers"]
    assert layer["operands"].startswith(
        "weights of the file, activations drawn (synthetic, uniform, density 0.5, seed 3, 8 bits)"
    )
    assert (layer["weight_origin"], layer["ifmap_origin"]) == ("file", "drawn")
    assert record["seed"] == 3
    header, row = (folder / "layers.csv").read_text().splitlines()
    assert header.startswith("name,kind,macs,cycles")
    assert row.startswith("node,conv2d,")
    with np.load(folder / "ofmaps.npz") as arrays:
        assert arrays["node"].shape == (2, 4, 6, 6)
    assert refused(archsim(*words)) == "out/first exists; give a name that does not, or say --force"
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
    answer = json.loads(good(archsim(*words, "--mapping", "tiles.toml")))
    layer = next(layer for layer in answer["layers"] if layer["name"] == "conv3")
    assert layer["tiling"] == {
        "pixel_rows": 5,
        "pixel_columns": 5,
        "filters": 16,
        "channels": 96,
        "order": "filters_outer",
        "images": 1,
        "groups": 1,
    }


def test_groups_side_by_side_by_hand(archsim: Call, tmp_path: Path) -> None:
    sizes = "pixel_rows = 4\npixel_columns = 56\nfilters = 8\nchannels = 8\ngroups = 8\n"
    (tmp_path / "tiles.toml").write_text(f'["block2.2/depthwise"]\n{sizes}')
    words = ("run", "edge-16", "mobilenetv2", "--timing-only", "--mapping", "tiles.toml")
    layers = json.loads(good(archsim(*words, "--json")))["layers"]
    tilings = {layer["name"]: layer["tiling"] for layer in layers if layer["tiling"]}
    assert tilings["block2.2/depthwise"]["groups"] == 8
    assert tilings["block2.1/depthwise"]["groups"] == 16
    table = good(archsim(*words))
    head = next(line for line in table.splitlines() if "cycles" in line)
    row = next(line for line in table.splitlines() if "block2.2/depthwise " in line)
    assert head.split()[-1] == "groups"
    assert row.split()[-1] == "8"
    assert "groups: of the layer that lie side by side on the array" in table
    assert "groups" not in good(archsim("run", "edge-16", "squeezenet1.1", "--timing-only"))


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
        ("--batch 0", "--batch must be from 1 to 65535, not 0"),
        ("--batch -8", "--batch must be from 1 to 65535, not -8"),
        ("--batch 65536", "--batch must be from 1 to 65535, not 65536"),
        ("--dim batch=1", "--dim is for ONNX files; say alexnet:NAME=SIZE"),
        ("--input in.npz", "--input is for ONNX files; alexnet has none"),
        ("--operands real", "alexnet has shapes only: real operands need an ONNX file with "
         "--input FILE.npz, or one of: face-detection-pruned, squeezenet-imagenet, vgg16-tumor"),
        ("--mapping none.toml", "none.toml cannot be read: No such file or directory"),
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
        ("[conv1\n", " is not a TOML file: Expected ']' at the end of a table declaration "
         "(at line 1, column 7)"),
        ("\nconv1 = 3", ": line 2: [conv1] must be a table of pixel_rows, pixel_columns, filters, "
         "channels, order, images, groups"),
        ("[conv1]\nfilter = 3", ": line 2: [conv1] has no 'filter'; did you mean filters?"),
        ("[conv1]\npixel_rows = 3", ": line 1: [conv1]: pixel_columns is missing"),
        ("conv1={pixel_rows=0,pixel_columns=1,filters=1,channels=1}",
         ": line 1: [conv1]: pixel_rows must be positive, not 0"),
        ("[conv1]\npixel_rows = 1\npixel_columns = 1\nfilters = -1\nchannels = 1",
         ": line 4: [conv1]: filters must be positive, not -1"),
        ("conv1={pixel_rows=1,pixel_columns=1,filters=1,channels=1,images=0}",
         ": line 1: [conv1]: images must be positive, not 0"),
        ("conv1={pixel_rows=1,pixel_columns=1,filters=1,channels=1,order='up'}",
         ": line 1: [conv1]: order must be pixels_outer or filters_outer, not 'up'"),
    ],
)  # fmt: skip
def test_tiling_files(archsim: Call, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "tiles.toml").write_text(text)
    said = archsim("run", "edge-16", "alexnet", "--timing-only", "--mapping", "tiles.toml")
    assert refused(said) == f"tiles.toml{message}"


def test_tilings_of_layers_that_are_not_there(archsim: Call, tmp_path: Path) -> None:
    words = ("run", "edge-16", "alexnet", "--timing-only", "--mapping", "tiles.toml")
    sizes = "{pixel_rows=1,pixel_columns=1,filters=1,channels=1}"
    (tmp_path / "tiles.toml").write_text(f"con1 = {sizes}")
    message = "tiles.toml: line 1: alexnet has no matrix layer 'con1'; did you mean conv1"
    assert refused(archsim(*words)).startswith(message)
    (tmp_path / "tiles.toml").write_text(f"pool1 = {sizes}")  # no work of the array
    assert "no matrix layer 'pool1'" in refused(archsim(*words))
    (tmp_path / "tiles.toml").write_text(f"# x\n\nconv1 = {sizes.replace('rows=1', 'rows=9999')}")
    said = refused(archsim(*words))
    assert said.startswith(
        "tiles.toml: line 3: conv1: 9999 × 1 pixels do not fit half of the accumulators: they need"
    )
    traced = ("trace", "edge-16", "alexnet", "--layer", "conv1", "--mapping", "tiles.toml")
    assert refused(archsim(*traced)) == said


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
