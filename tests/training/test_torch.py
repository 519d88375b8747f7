"""With PyTorch: gradients, a training killed and gone on with, the command."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import Call, good, refused
from tiny_training import pictures, recipe

from archsim.robust.evaluate import Evaluator, error_percent
from archsim.robust.model import read_model
from training.checkpoint import checkpoints
from training.gradients import TorchGradients
from training.training import Training

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="PyTorch is not installed: pip install 'archsim[train]'",
)


def write_pictures(folder: Path) -> Path:
    """The tiny set as IDX files; the same for training and tests."""
    folder.mkdir()
    found = pictures()
    for part in ("train", "t10k"):
        for kind, array in (("images-idx3", found.pictures[:, 0]), ("labels-idx1", found.labels)):
            head = bytes((0, 0, 8, array.ndim)) + b"".join(n.to_bytes(4) for n in array.shape)
            (folder / f"{part}-{kind}-ubyte").write_bytes(head + array.tobytes())
    return folder


def test_gradients_are_differences_of_the_loss() -> None:
    network = recipe().network
    gradients = TorchGradients(network)
    data = pictures(6)
    weights = network.draw(1)
    _, found = gradients(weights, data.floats(), data.labels)
    assert set(found) == set(network.shapes)
    step = 5e-3
    for name in ("conv3.weight", "conv5.scale", "conv2.shift", "classify.bias"):
        flat = int(np.abs(found[name]).argmax())
        losses: list[float] = []
        for sign in (1, -1):
            moved = weights[name].copy()
            moved.flat[flat] += sign * step
            losses.append(gradients(weights | {name: moved}, data.floats(), data.labels)[0])
        slope = (losses[0] - losses[1]) / (2 * step)
        assert found[name].flat[flat] == pytest.approx(slope, rel=0.08, abs=2e-3), name


def test_evaluation_needs_no_torch_and_agrees_with_it() -> None:
    training = Training(recipe(epochs=2), pictures(), TorchGradients(recipe().network))
    for _ in range(4):
        training.advance()
    model = training.model({})
    shown = pictures().floats()
    logits = training.gradients.logits(model.values(), shown)
    np.testing.assert_allclose(Evaluator(model).logits(shown), logits, rtol=1e-3, atol=1e-3)
    wrong = float(100 * (logits.argmax(axis=1) != pictures().labels).mean())
    assert error_percent(model, pictures()) == wrong


def test_a_few_rows_are_learned() -> None:
    """Thirty batches of forty pictures in which a row says the class."""
    one = recipe(channels=4, epochs=30, batch=40, rate=0.02)
    training = Training(one, pictures(), TorchGradients(one.network))
    last = training.advance()
    first = last.clean
    while training.step < training.steps:
        last = training.advance()
    assert first > 2 and last.clean < first / 2 and last.perturbed is not None
    assert error_percent(training.model({}), pictures()) <= 40


KILLED = """
import sys
from training import session
session.SECONDS_BETWEEN = 0
from archsim.cli.main import main
main()
"""


def test_a_killed_training_goes_on_and_ends_with_the_same_bits(
    archsim: Call, tmp_path: Path
) -> None:
    folder = write_pictures(tmp_path / "pictures")
    kept = tmp_path / "kept"
    words = [
        "--threads", "1", "train", "randbet", "--rate", "0.05", "--clip", "0.2", "--channels", "2",
        "--epochs", "30", "--batch", "16", "--folder", str(folder),
    ]  # fmt: skip
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, *words, "-o", "never.npz", "--checkpoints", str(kept)],
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 60
        while len(checkpoints(kept)) < 2 and time.monotonic() < until:
            time.sleep(0.02)
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    assert not (tmp_path / "never.npz").exists()
    said = archsim(*words, "-o", "gone-on.npz", "--checkpoints", kept)
    assert said.code == 0 and f"going on from {kept}" in said.err
    assert archsim(*words, "-o", "whole.npz").code == 0
    assert (tmp_path / "gone-on.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    made = read_model(tmp_path / "whole.npz").made
    assert made["recipe"]["epochs"] == 30 and "--epochs 30" in made["command"]


def test_what_cannot_be_trained_is_refused_in_a_line(archsim: Call, tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "pictures")
    train = ("train", "randbet", "-o", "x.npz", "--folder", folder)
    assert "randbet needs a rate" in refused(archsim(*train))
    assert "rate must be from 0 to 1" in refused(archsim(*train, "--rate", "3"))
    both = ("--rate", "0.1", "--full", "--epochs", "3")
    assert "--full says --channels and --epochs" in refused(archsim(*train, *both))
    (tmp_path / "x.npz").write_text("")
    assert "x.npz exists" in refused(archsim(*train, "--rate", "0.1"))
    assert "no shipped model" in refused(archsim("train", "shipped", "mnist-int9"))


def test_the_help_names_what_is_needed(archsim: Call) -> None:
    assert "archsim[train]" in good(archsim("train", "randbet", "--help"))
