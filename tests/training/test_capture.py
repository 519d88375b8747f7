"""Zeros of real training steps: captured, kept in a file, and met by what machines are given."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Call, good, refused
from tiny_training import pictures
from written_networks import written

from archsim.capture_file import packed_capture, read_capture
from archsim.errors import InputError
from archsim.robust.model import packed_arrays
from archsim.simulate import simulate
from training.capture import CapturedEpoch, CaptureRecipe, captured_epochs
from training.flow_step import FlowStep
from workloads.builtin import builtin
from workloads.errors import WorkloadError
from workloads.layers import MatMul
from workloads.training.captured import CapturedStep, known_step, network_digest
from workloads.training.execution import Execution, Values
from workloads.training.step import training_step

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="PyTorch is not installed: pip install 'archsim[train]'",
)

TEXT = """
a = conv 4 3x3 +1 bias relu
p = maxpool 2x2 /2
b = conv 4 3x3 +1 bias relu
c = conv 4 1x1 from p
s = add from b c
r = Relu
d = conv 6 3x3 /2 +1 groups=2 relu
f = fc 5 relu
g = fc 3
e = Softmax
"""
RECIPE = CaptureRecipe(epochs=(0, 2), pictures=8, batch=4, rate=0.05)


def network(normalised: bool = False) -> Any:
    return written(TEXT, (2, 1, 12, 12), normalised=normalised)


def cut() -> Any:
    """The tiny set, in the network's size and classes."""
    found = pictures(8)
    return replace(found, pictures=found.pictures[:, :, 4:16, 4:16], labels=found.labels % 3)


def trained(normalised: bool = False) -> list[CapturedEpoch]:
    found = captured_epochs(network(normalised), RECIPE, cut(), lambda *_: None)
    return list(found)


def kept(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "epoch.npz"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("normalised", [False, True])
def test_masks_are_those_of_the_step_computed_in_numpy(normalised: bool) -> None:
    forward = network(normalised)
    whole = replace(written(TEXT, (4, 1, 12, 12), normalised=normalised))
    step = training_step(whole)
    ours = FlowStep(forward, seed=3, rate=0.01)
    leaves = {k: v.detach().numpy().astype(np.float64) for k, v in ours._leaves.items()}
    weights, biases = dict[str, Any](), dict[str, Any]()
    for layer in whole.matrix_layers:
        w = leaves[f"{layer.name}.weight"]
        weights[layer.name] = w.T[None] if isinstance(layer, MatMul) else w
        biases[layer.name] = leaves[f"{layer.name}.bias"]
    shown = cut()
    x = shown.pictures[:4].astype(np.float32) / np.float32(255)
    ours.step(x, shown.labels[:4])
    run = Execution(step, Values({"input": x.astype(np.float64)}, weights, biases))
    run_to_logits(run, shown.labels[:4])
    masks = ours.masks(2)
    for name, mask in masks.tensors.items():
        ref = run.values.tensors[name].reshape(4, -1)[:2] != 0
        assert np.mean(mask.reshape(2, -1) == ref) > 0.999, name
    for name, mask in masks.gradients.items():
        ref = run.values.product_gradients[name].reshape(4, -1)[:2] != 0
        assert np.mean(mask.reshape(2, -1) == ref) > 0.99, name
    assert {"p", "b", "f"} - {"b"} <= set(masks.tensors)
    assert normalised == ("a" not in masks.gradients)


def run_to_logits(run: Execution, labels: Any) -> None:
    """Forward but for the Softmax, and back from the gradient of the mean cross-entropy."""
    flow = run.step.backward.network.flow
    for node in flow[:-1]:
        run.values.tensors[node.name] = run._made(node)
    logits = run.values.tensors[flow[-2].name]
    share = np.exp(logits - logits.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    share[np.arange(len(labels)), labels] -= 1
    run.values.gradients[flow[-2].name] = share / len(labels)
    for node in run.step.backward.backwards[1:]:
        run._through(node, run.values.gradients[node.name])


def test_machines_are_given_the_captured_zeros(tmp_path: Path) -> None:
    first, last = trained()
    assert (first.epoch, last.epoch) == (0, 2)
    assert [one.content for one in trained()] == [first.content, last.content]
    capture = read_capture(kept(tmp_path, first.content))
    step = known_step(training_step(network()), capture)
    assert step.activity is not None
    source = CapturedStep(step=step, activity=step.activity, capture=capture)
    found: Any = {one.layer.name: source(one.layer) for one in step.passes}
    for name, tensor in (("b", "p"), ("d", "r"), ("a", "input")):
        assert np.array_equal(found[name].ifmap != 0, capture.tensors[tensor]), name
    assert found["b"].ifmap.min() >= 0
    assert np.array_equal(found["b/BP"].needed, capture.tensors["p"])
    assert np.array_equal(found["b/BP"].ifmap != 0, capture.gradients["b"])
    assert found["g/BP"].ifmap.all() and "g" not in capture.gradients
    density = step.network.densities["b/BP"]
    assert density.output == pytest.approx(np.mean(capture.tensors["p"]))
    result = simulate("sparsetrain", step.network, operands=source)
    assert "captured from 2 of 4 pictures" in result.layers[0].operands
    assert result.cycles < simulate("sparsetrain", step.network, operands=_dense(step)).cycles


def _dense(step: Any) -> Any:
    from workloads.training.activity import Activity
    from workloads.training.drawn import DrawnStep

    return DrawnStep(step=step, activity=Activity(density={}, source="dense"))


def test_files_that_are_no_capture_of_the_network_are_refused(tmp_path: Path) -> None:
    content = trained()[0].content
    capture = read_capture(kept(tmp_path, content))
    for size in (0, 20, len(content) // 2, len(content) - 1):
        with pytest.raises(InputError, match=r"epoch\.npz is not a file of `archsim capture`"):
            read_capture(kept(tmp_path, content[:size]))
    for other in (written(TEXT, (3, 1, 12, 12)), builtin("lenet5")):
        with pytest.raises(WorkloadError, match="another network, or of another batch"):
            known_step(training_step(other), capture)
    for change, said in (
        ({"tensors": {"nobody": np.ones(3, np.bool_)}}, "no tensor 'nobody'"),
        ({"tensors": {"p": np.ones((2, 4, 6, 5), np.bool_)}}, r"must be flags of \(2, 4, 6, 6\)"),
        ({"gradients": {"a": np.ones((2, 4, 12, 12), np.int8)}}, "not int8"),
    ):
        with pytest.raises(WorkloadError, match=said):
            replace(capture, **change).check(network())
    arrays = packed_capture(capture, {})
    for change, said in (
        ({"x/p": arrays["x/p"][:-1]}, "bytes of flags"),
        ({"x/p": arrays["x/p"].astype(np.float64)}, "bytes of flags, not [0-9]+ of float64"),
        ({"x/q": arrays["x/p"]}, "not those that its head names"),
        ({"head": np.frombuffer(b'{"format": 9}', np.uint8)}, "format 9, where 1 is read"),
        ({"head": np.frombuffer(b"[1]", np.uint8)}, "no record"),
        ({"head": np.frombuffer(b"{", np.uint8)}, "not a file of"),
    ):
        with pytest.raises(InputError, match=said):
            read_capture(kept(tmp_path, packed_arrays({**arrays, **change})))
    assert network_digest(network()) != network_digest(network(True))


def test_the_command_and_what_it_refuses(archsim: Call, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("training.capture_cli.labelled", lambda *_: pictures(4))
    said = good(archsim("capture", "lenet5:batch=2", "-o", "new", "--epochs", "0",
                        "--pictures", "4", "--batch", "4"))  # fmt: skip
    assert said.startswith("new/epoch-0.npz: ") and "% right" in said
    run = ("run", "edge-16", "lenet5:training,batch=2", "--capture", "new/epoch-0.npz")
    assert "captured from 2 of 4 pictures" in good(archsim(*run))
    for call, what in (
        ((*run[:2], "lenet5:training", *run[3:]), "is another network, or of another batch, than"),
        ((*run[:2], "lenet5:batch=2", *run[3:]), "--capture is of training steps"),
        ((*run[:2], "lenet5:training,batch=2,density=5", *run[3:]), "say density or --capture"),
        ((*run, "--operands", "real"), "not real"),
        (("capture", "alexnet", "-o", "x"), "node norm1 (LRN) is not among what is trained"),
        (("capture", "bert-base", "-o", "x"), "does not begin with a convolution"),
        (("capture", "lenet", "-o", "x"), "no built-in network 'lenet'"),
        (("capture", "lenet5", "-o", "x"), "has 4 pictures, not 2000"),
        (("capture", "lenet5:batch=9", "-o", "x", "--batch", "4"), "a step has 4 pictures"),
        (("capture", "lenet5", "-o", "x", "--batch", "0"), "--batch must be 1 to"),
        (("capture", "lenet5", "-o", "x", "--epochs", "1,,2"), "--epochs takes whole numbers"),
        (("capture", "lenet5", "-o", "x", "--learning-rate", "nan"), "--learning-rate must be"),
        (("capture", "lenet5", "-o", "new"), "new exists"),
    ):
        assert what in refused(archsim(*call)), call
    assert not Path("x").exists()
