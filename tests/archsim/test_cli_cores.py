"""The commands take tensor cores, vector MAC cores and sparse ones as they take systolic ones."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from command_line import Call, good, refused
from onnx import TensorProto, helper, numpy_helper

from archsim.machine.registry import load_design
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.layer import layer_timing
from workloads.builtin import builtin
from workloads.operands import synthetic

TINY = {
    "volta": ("--set=octets=1", "--set=group_columns=1", "--set=rows=4", "--set=length=2"),
    "vsq-16": ("--set=lanes=2", "--set=vector=4", "--set=hold_cycles=3"),
}
every_core = pytest.mark.parametrize("design", TINY)


def model_file(path: Path, weight: float = 0.5) -> Path:
    """A convolution with a bias, of 3 × 3 on 5 channels."""
    random = np.random.default_rng(0)
    values = random.standard_normal((6, 5, 3, 3)).astype(np.float32) * weight
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], "node", pads=[1, 1, 1, 1])
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 5, 6, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 6, 6, 6])],
        [
            numpy_helper.from_array(values, "w"),
            numpy_helper.from_array(np.ones(6, np.float32), "b"),
        ],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=10), path)
    return path


@every_core
def test_run_with_real_operands_and_a_report(archsim: Call, tmp_path: Path, design: str) -> None:
    model = model_file(tmp_path / "m.onnx")
    x = np.random.default_rng(1).standard_normal((1, 5, 6, 6)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    words = ("run", design, model, "--input", "x.npz", "-o", "out", "--report", "r.html", "--json")
    record = json.loads(good(archsim(*words)))
    assert record["design"]["kind"] in ("tensorcore", "vsq")
    assert record["energy"] is not None
    with np.load(tmp_path / "out" / "ofmaps.npz") as arrays:
        ofmap = arrays["node"]
    session = onnxruntime.InferenceSession(model.read_bytes())
    real = np.asarray(session.run(None, {"x": x})[0])
    scaled = ofmap * (real * ofmap).sum() / (ofmap.astype(float) ** 2).sum()
    assert ((scaled - real) ** 2).mean() < 0.03 * (real**2).mean()
    assert "</html>" in (tmp_path / "r.html").read_text()


@every_core
def test_emit_and_verify(archsim: Call, tmp_path: Path, design: str) -> None:
    good_manifest = archsim("emit", design, *TINY[design], "-o", "core.v")
    assert good_manifest.code == 0
    manifest = json.loads((tmp_path / "core.json").read_text())
    assert {port["name"] for port in manifest["ports"]} >= {"command", "ifmap", "ofmap"}
    said = good(archsim("verify", design, *TINY[design], "--simulator=amaranth", "--cases=3"))
    assert said.strip().endswith("0 action differences: model and RTL are equal")


@every_core
def test_trace(archsim: Call, design: str) -> None:
    summary = json.loads(good(archsim("trace", design, "resnet18", "--json")))
    run = json.loads(good(archsim("run", design, "resnet18", "--timing-only", "--json")))
    assert summary["cycles"] == run["cycles"]


def test_the_design_is_shown_and_read_again(archsim: Call, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(good(archsim("show", "vsq-baseline")))
    words = ("mine.toml", "resnet18", "--timing-only", "--json")
    ours = json.loads(good(archsim("run", *words)))
    assert ours["design_name"] == "vsq-baseline"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("vsq-16", "--set=vector=6"),
            "the design: vector must be a multiple of the lanes or divide them, "
            "not 6 with 16 lanes",
        ),
        (("vsq-16", "--set=weight_bits=1"), "the design: weight_bits must be 2 to 16, not 1"),
        (
            ("vsq-16", "--set=weight_scale_bits=17"),
            "the design: weight_scale_bits must be 0 to 16, not 17",
        ),
        (
            ("vsq-16", "--set=weight_scale_bits=14", "--set=activation_scale_bits=14"),
            "the design: scale_product_bits must be at most 24, the collectors', not 28",
        ),
        (
            ("volta", "--set=operand=int8"),
            "the design: accumulator of int8 operands must be one of int32, not 'fp32'",
        ),
    ],
)
def test_designs_that_are_refused(archsim: Call, words: tuple[str, ...], message: str) -> None:
    design, *settings = words
    assert refused(archsim("run", design, "resnet18", "--timing-only", *settings)) == message


def test_weights_that_are_not_numbers(archsim: Call, tmp_path: Path) -> None:
    model = model_file(tmp_path / "m.onnx", weight=float("nan"))
    np.savez(tmp_path / "x.npz", x=np.ones((1, 5, 6, 6), np.float32))
    said = refused(archsim("run", "vsq-16", model, "--input", "x.npz"))
    assert "must be finite, not NaN or infinite" in said


SPARSE = tuple(
    f"--set={setting}"
    for setting in (
        "grid_rows=1",
        "grid_columns=2",
        "weight_lanes=2",
        "ifmap_lanes=1",
        "banks=4",
        "iaram_bytes=512",
        "oaram_bytes=512",
        "weight_fifo_vectors=9",
    )
)


def test_verify_a_sparse_core(archsim: Call) -> None:
    words = ("verify", "scnn-4pe", *SPARSE, "--simulator=amaranth")
    line = good(archsim(*words, "--cases=2")).splitlines()[-1]
    assert line.startswith("scnn-1x2x2x1 on amaranth: 2 cases, ")
    assert line.strip().endswith("0 action differences: model and RTL are equal")
    answer = json.loads(good(archsim(*words, "--case=1", "--json")))
    assert answer["differences"] == []
    assert answer["transfers"] > 0


@pytest.mark.slow
def test_waves_of_a_sparse_core(archsim: Call, tmp_path: Path) -> None:
    words = ("verify", "scnn", *SPARSE, "--simulator=cocotb", "--case=3", "--waves=waves")
    assert "model and RTL are equal" in good(archsim(*words))
    model = (tmp_path / "waves" / "model.vcd").read_text()
    for name in ("command__payload", "ofmap__transfer", "index_0", "last"):
        assert f" {name} " in model
    assert (tmp_path / "waves" / "rtl.fst").stat().st_size > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("scnn",), "PEs x products of a pair x banks must be at most 2,048 to be simulated, not"),
        (("scnn-4pe", "--simulator=amaranth"), "PEs x products of a pair x banks must be at most"),
        (("scnn", "--set=barrier=channel"), "barrier must be group in the RTL of scnn"),
    ],
)
def test_sparse_cores_that_are_not_verified(
    archsim: Call, words: tuple[str, ...], message: str
) -> None:
    assert refused(archsim("verify", *words)).startswith(message)


TRACED = ("trace", "scnn", "alexnet", "--layer=conv3", "--density=0.2")


def test_trace_of_a_sparse_core(archsim: Call, tmp_path: Path) -> None:
    summary = json.loads(good(archsim(*TRACED, "--perfetto=p.json", "--vcd=w.vcd", "--json")))
    design = load_design("scnn")
    assert isinstance(design, Scnn)
    (layer,) = (one for one in builtin("alexnet").matrix_layers if one.name == "conv3")
    bits = design.intake.source_bits
    timing = layer_timing(design, layer, synthetic(layer, bits=bits, density=0.2))
    (one,) = timing.passes
    assert summary["cycles"] == timing.cycles
    assert summary["activity"]["groups"]["group"] == int((one.ends - one.starts).sum())
    drained = sum(summary["activity"]["output stage"].values())
    assert drained == int((one.drained - one.drain_starts).sum())
    words = len(one.ifmap_cycles) + len(one.weight_cycles) + len(one.ofmap_cycles)
    assert summary["vcd"]["transfers"] == 1 + words + layer.bias * one.mapping.filters
    events = json.loads((tmp_path / "p.json").read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    spans = [e for e in events if e["ph"] == "X" and names[e["tid"]] == "PE 1 2"]
    spans = [(e["args"]["cycle"], e["args"]["cycle"] + e["args"]["cycles"]) for e in spans]
    assert all(before[1] == after[0] for before, after in pairwise(spans))
    assert (spans[0][0], spans[-1][1]) == (one.starts[0], one.ends[-1])


def test_the_trace_of_a_sparse_core_needs_values(archsim: Call) -> None:
    Path("t.toml").write_text("[conv3]\npixel_rows=1\npixel_columns=1\nfilters=1\nchannels=1\n")
    said = refused(archsim(*TRACED, "--mapping", "t.toml"))
    assert said == (
        "scnn machines have no option --mapping, which systolic, tensorcore and vsq machines have; "
        "they have: --chain (ofmaps stay for the next layer where they can), --mapper "
        "(how mappings are found), --objective (what mappings are the best by)"
    )
    lines = good(archsim(*TRACED)).splitlines()
    assert lines[-1].endswith("layers: 1; passes: 1")
