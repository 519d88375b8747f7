"""One training from its beginning, or its last checkpoint, to the model's file."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from archsim.files import write_new
from archsim.robust.model import RobustModel
from archsim.version import VERSION
from training import checkpoint
from training.gradients import TorchGradients
from training.recipe import Recipe
from training.training import Losses, Training
from workloads.labelled import Labelled

Say = Callable[[str], None]
Report = Callable[[int, int, Losses], None]
"""Told the batches done, of how many, and the losses of the last."""

SECONDS_BETWEEN = 60.0
"""Between two checkpoints."""

TEST_BATCH = 500

TRIED = 2
"""Batches computed to say how long a training takes; the first also warms up, and is not timed."""


def expected_cost(training: Training) -> str:
    """Products and hours of what is left, from a batch or two computed now and thrown away."""
    recipe = training.recipe
    trial = Training(recipe, training.data.spread(TRIED * recipe.batch), training.gradients)
    trial.advance()
    begun = time.perf_counter()
    trial.advance()
    seconds = (time.perf_counter() - begun) * recipe.passes
    left = training.steps - training.step
    macs = recipe.macs(len(training.data)) * left / training.steps
    return (
        f"{left} batches of {recipe.batch}, {macs:.2g} MACs, about "
        f"{duration(seconds * left)} at the speed of now"
    )


def duration(seconds: float) -> str:
    """ "40 s", "12 min", "14 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def begin(
    recipe: Recipe, data: Labelled, folder: Path | None, *, threads: int, say: Say
) -> Training:
    """A training where its latest checkpoint in `folder` left it, or at its beginning."""
    training = Training(recipe, data, TorchGradients(recipe.network, threads))
    if folder is not None:
        checkpoint.prepare(folder)
        for line in checkpoint.resume(folder, training):
            say(line)
    return training


def run(training: Training, folder: Path | None, report: Report) -> None:
    """All batches that are left; a checkpoint a minute, and one at the end."""
    last = time.monotonic()
    while training.step < training.steps:
        losses = training.advance()
        report(training.step, training.steps, losses)
        done = training.step == training.steps
        if folder is not None and (done or time.monotonic() - last > SECONDS_BETWEEN):
            checkpoint.save(folder, training)
            last = time.monotonic()


def finish(training: Training, test: Labelled) -> RobustModel:
    """The model, with how it was made and its error on `test` without bit errors."""
    recipe = training.recipe
    model = training.model({})
    wrong = 0
    for start in range(0, len(test), TEST_BATCH):
        part = slice(start, start + TEST_BATCH)
        pictures = test.pictures[part].astype(np.float32) / np.float32(255)
        logits = training.gradients.logits(model.values(), pictures)
        wrong += int((logits.argmax(axis=1) != test.labels[part]).sum())
    made = {
        "recipe": recipe.record(),
        "pictures": len(training.data),
        "clean_error_percent": 100 * wrong / len(test),
        "test_pictures": len(test),
        "command": command_of(recipe),
        "archsim": VERSION,
    }
    return RobustModel(model.network, model.scheme, model.tensors, made)


def command_of(recipe: Recipe) -> str:
    """The command line that trains it."""
    usual = Recipe(rate=0.01).record()
    words = [
        f"--{name.replace('_', '-')} {value}"
        for name, value in recipe.record().items()
        if value is not None and (value != usual[name] or name in ("rate", "channels", "epochs"))
    ]
    return f"archsim --threads 1 train randbet {' '.join(words)}"


def write(model: RobustModel, path: Path) -> None:
    """The model's file, whole or not at all."""
    write_new({path: model.packed()})


__all__ = ["begin", "command_of", "expected_cost", "finish", "run", "write"]
