"""`archsim trace` as a user meets it: the summary, the files, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from command_line import Call, good, refused
from onnx import TensorProto, helper, numpy_helper

from archsim.machines.systolic.design import EDGE_16
from archsim.simulate import simulate
from archsim.tiled.activity import (
    ARRAY,
    ARRAY_WAITS,
    LAYERS,
    LOADERS,
    WRITES,
    layer_activity,
)
from archsim.tiled.timeline import timeline
from archsim.tiled.timing import time_layer
from archsim.wave_clock import WaveClock
from workloads.builtin import builtin
from workloads.layers import Conv2d
from workloads.packaged import packaged_names


def test_the_summary_is_that_of_the_run(archsim: Call) -> None:
    summary = json.loads(good(archsim("trace", "edge-16", "resnet18", "--json")))
    result = simulate(EDGE_16, builtin("resnet18"))
    assert (summary["design"], summary["network"]) == ("edge-16", "resnet18")
    assert summary["cycles"] == result.cycles
    assert summary["clock_hz"] == EDGE_16.clock_hz
    assert summary["layers"] == sum(layer.cycles > 0 for layer in result.layers)
    assert summary["tiles"] == sum(layer.tiles for layer in result.layers)
    activity = summary["activity"]
    assert activity[ARRAY]["computing"] == result.where["computing"]
    waits = sum(activity[ARRAY_WAITS].values())
    assert sum(activity[ARRAY].values()) + waits == result.cycles
    assert activity[LOADERS[0]]["load"] * EDGE_16.ifmap_lanes >= result.bytes_moved["ifmap"]
    assert "perfetto" not in summary
    assert "vcd" not in summary


def test_the_summary_as_a_table(archsim: Call) -> None:
    lines = good(archsim("trace", "edge-16", "alexnet")).splitlines()
    assert lines[0].strip() == "alexnet on edge-16"
    result = simulate(EDGE_16, builtin("alexnet"))
    computing = next(line for line in lines if line.split()[:2] == ["array", "computing"])
    count, share = result.where["computing"], result.where["computing"] / result.cycles
    assert computing.split()[2:] == [f"{count:,}", f"{100 * share:.1f}"]
    assert lines[-1] == (
        f"{result.cycles:,} cycles = {2e-6 * result.cycles:,.3f} ms at 500 MHz; layers: 8; "
        f"tiles: {sum(layer.tiles for layer in result.layers):,}"
    )


@pytest.fixture
def model(archsim: Call) -> str:
    """An ONNX file of two convolutions, "first" and "second", in the folder of the calls."""
    random = np.random.default_rng(0)
    weights = {"w": random.normal(size=(4, 3, 3, 3)), "v": random.normal(size=(2, 4, 1, 1))}
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["y"], name="first"),
            helper.make_node("Conv", ["y", "v"], ["z"], name="second"),
        ],
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 8, 8])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), "tiny.onnx")
    np.savez("inputs.npz", x=random.normal(size=(1, 3, 8, 8)).astype(np.float32))
    return "tiny.onnx"


def test_files_of_a_layer(archsim: Call, model: str) -> None:
    words = ("--dim", "batch=1", "--layer", "second", "--set", "rows=8")
    files = ("--perfetto", "new/second.json", "--vcd", "second.vcd")
    lines = good(archsim("trace", "edge-16", model, *words, *files)).splitlines()
    assert lines[0].strip() == "tiny second on systolic-8x16"
    events = json.loads(Path("new/second.json").read_text())["traceEvents"]
    assert [event["name"] for event in events if event.get("cat") == LAYERS] == ["second"]
    assert lines[-2].startswith(f"new/second.json: {len(events):,} events, ")
    assert lines[-1].startswith("second.vcd: ")
    text = Path("second.vcd").read_text()
    assert "$var wire 64 " in text
    assert "ofmap__payload $end" in text
    assert "lane_7 $end" in text
    cycles = layer_activity(replace(EDGE_16, rows=8), _second()).cycles
    ends = [line for line in text.splitlines() if line.startswith("#")]
    assert ends[-1] == f"#{WaveClock(clock_hz=EDGE_16.clock_hz).cycle(cycles)}"
    names = {path.name for path in Path().iterdir()}
    assert names == {model, "inputs.npz", "new", "second.vcd"}


def _second() -> Conv2d:
    return Conv2d(
        name="second", channels=4, filters=2, ifmap_height=6, ifmap_width=6,
        kernel_height=1, kernel_width=1,
    )  # fmt: skip


def test_operands_decide_the_payloads_and_nothing_else(archsim: Call, model: str) -> None:
    def vcd(*words: object) -> str:
        path = Path(f"{len(list(Path().iterdir()))}.vcd")
        command = ("trace", "edge-16", model, "--dim", "batch=1", "--no-lanes", "--vcd", path)
        summary = json.loads(good(archsim(*command, *words, "--json")))
        assert summary["vcd"]["file"] == str(path)
        assert summary["vcd"]["bytes"] == path.stat().st_size
        return path.read_text()

    first, same = vcd(), vcd("--operands", "auto", "--seed", 0)
    others = [vcd("--seed", 1), vcd("--input", "inputs.npz"), vcd("--operands", "synthetic")]
    assert first == same
    assert "lane_" not in first
    strobes = [line for line in first.splitlines() if line[0] in "#01"]
    for other in others:
        assert other != first
        assert [line for line in other.splitlines() if line[0] in "#01"] == strobes


def test_perfetto_of_a_network(archsim: Call) -> None:
    command = ("trace", "edge-16", "alexnet", "--perfetto", "all.json", "--json")
    summary = json.loads(good(archsim(*command)))
    text = Path("all.json").read_text()
    events = json.loads(text)["traceEvents"]
    assert summary["perfetto"] == {
        "file": "all.json",
        "bytes": len(text.encode()),
        "events": len(events),
    }
    intervals = list(timeline(EDGE_16, builtin("alexnet")))
    assert sum(event["ph"] == "X" for event in events) == len(intervals)
    ends = [one.end_cycle for one in intervals if one.unit == WRITES]
    assert ends[-1] == summary["cycles"]


def test_tilings_of_a_file(archsim: Call) -> None:
    table = "pixel_rows = 1\npixel_columns = 1\nfilters = 100\nchannels = 256\n"
    Path("mine.toml").write_text(f"[fc8]\n{table}[conv1]\n{table.replace('256', '3')}")
    command = ("trace", "edge-16", "alexnet", "--layer", "fc8", "--json")
    chosen = json.loads(good(archsim(*command, "--mapping", "mine.toml")))
    assert chosen["tiles"] == 10 * 16
    layer = next(one for one in builtin("alexnet").matrix_layers if one.name == "fc8")
    assert json.loads(good(archsim(*command)))["cycles"] == time_layer(EDGE_16, layer).cycles
    Path("other.toml").write_text(f"[fc9]\n{table}")
    assert refused(archsim(*command, "--mapping", "other.toml")).startswith(
        "other.toml: line 1: alexnet has no matrix layer 'fc9'; did you mean fc"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "edge-16 alexnet --layer conv11",
            "alexnet has no matrix layer 'conv11'; did you mean conv1 or conv5 or conv4?",
        ),
        (
            "edge-16 alexnet --perfetto taken",
            "taken exists; give a name that does not, or say --force",
        ),
        (
            "edge-16 alexnet --perfetto new.json --vcd taken",
            "taken exists; give a name that does not, or say --force",
        ),
        (
            "edge-16 alexnet --perfetto same --vcd same",
            "same cannot hold two outputs; give two names",
        ),
        (
            "edge-16 alexnet --vcd taken/new.vcd",
            "taken/new.vcd cannot be written: {here}/taken is not a folder",
        ),
        (
            "edge-16 alexnet --operands real --layer fc8 --perfetto new.json --vcd new.vcd",
            "alexnet has shapes only: real operands need an ONNX file with --input FILE.npz, "
            "or one of: {packaged}",
        ),
        (
            "edge-16 alexnet --no-lanes",
            "--no-lanes is of --vcd; give both",
        ),
        (
            "edge-16 alexnet --seed -1",
            "--seed must not be negative, not -1",
        ),
    ],
)
def test_refusals(archsim: Call, words: str, message: str) -> None:
    Path("taken").write_text("mine")
    expected = message.format(here=Path.cwd(), packaged=", ".join(packaged_names()))
    assert refused(archsim("trace", *words.split())) == expected
    assert [path.name for path in Path().iterdir()] == ["taken"]
    assert Path("taken").read_text() == "mine"


def test_help_teaches_with_examples(archsim: Call) -> None:
    text = good(archsim("trace", "--help"))
    for word in ("--perfetto", "--vcd", "--layer", "ui.perfetto.dev", "archsim trace edge-16"):
        assert word in text
