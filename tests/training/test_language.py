"""A language model under dropout: its text, its descent, what goes on after a kill, refusals."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Call, refused

from archsim.errors import InputError
from training.checkpoint import checkpoints, prepare, resume, save
from training.language import LanguageRecipe, LanguageTraining
from training.language_cli import summary
from training.language_gradients import TorchLanguage
from training.text import END, UNKNOWN, Text, python_reference

TORCH = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="PyTorch is not installed: pip install 'archsim[train]'",
)

SMALL: dict[str, Any] = {"units": 4, "words": 12, "steps": 5, "batch": 3, "epochs": 2}


def tiny(words: int = 12, size: int = 100) -> Text:
    numbers = np.random.default_rng(2).integers(0, words, size)
    return Text(numbers, numbers[:40], words, "drawn")


class Pull:
    """A loss without PyTorch: half the square of every weight."""

    def __call__(self, weights: Any, read: Any, next_words: Any, masks: Any) -> Any:
        shown = sum(float(one.sum()) for one in masks.values())
        drawn = {name: one + np.float32(1e-4 * shown) for name, one in weights.items()}
        return float(read.sum() + next_words.sum()), drawn

    def loss(self, weights: Any, read: Any, next_words: Any) -> float:
        return float(np.abs(weights["output"]).mean())


def begun(**more: Any) -> LanguageTraining:
    return LanguageTraining(LanguageRecipe(**(SMALL | more)), tiny(), Pull())


def run(training: LanguageTraining, until: int | None = None) -> LanguageTraining:
    while training.step < (training.steps if until is None else until):
        training.advance()
    return training


def same(one: LanguageTraining, other: LanguageTraining) -> bool:
    pairs = [(one.weights, other.weights), (one.momenta, other.momenta)]
    return all(np.array_equal(a[name], b[name], equal_nan=True) for a, b in pairs for name in a)


def same_weights(one: LanguageTraining, other: LanguageTraining) -> bool:
    return all(np.array_equal(one.weights[name], other.weights[name]) for name in one.weights)


def test_the_text_is_pythons_own_and_every_tenth_topic_is_measured() -> None:
    text = python_reference(500)
    assert text.learned.max() == 499 and text.learned.min() == UNKNOWN
    assert 0.03 < len(text.measured) / len(text.learned) < 0.3
    topics = [int((part == END).sum()) for part in (text.learned, text.measured)]
    assert topics[1] == -(-sum(topics) // 10)
    assert "pydoc_data.topics" in text.source and python_reference(500) is text


def test_case_three_drops_the_same_units_of_the_whole_batch() -> None:
    masks = {case: LanguageRecipe(case=case, recurrent=True, **SMALL).masks(7) for case in (1, 3)}
    for name, mask in masks[3].items():
        assert mask.shape == (5, 3, 4) and np.array_equal(mask, mask[:, :1].repeat(3, 1))
        assert set(np.unique(mask)) <= {0, np.float32(1 / 0.7)}
        assert not np.array_equal(masks[1][name], masks[1][name][:, :1].repeat(3, 1))
    assert {"lstm1/steps", "lstm2/input", "output"} <= set(masks[3])
    assert not LanguageRecipe(**SMALL).masks(7)
    later = LanguageRecipe(case=3, recurrent=True, **SMALL).masks(8)
    assert any(not np.array_equal(masks[3][name], later[name]) for name in later)


def test_a_training_that_goes_on_ends_with_the_same_bits(tmp_path: Path) -> None:
    whole = run(begun(case=3))
    assert whole.steps == 12 and len(whole.perplexities) == 2
    for until in (1, 6, 11):
        folder = tmp_path / str(until)
        prepare(folder)
        save(folder, run(begun(case=3), until))
        second = begun(case=3)
        assert resume(folder, second) == [
            f"going on from {checkpoints(folder)[0]}, batch {until} of 12"
        ]
        assert len(second.perplexities) == until // 6
        assert same(run(second), whole)
    with pytest.raises(InputError, match=r"is of another training \(case 3, not 1\)"):
        resume(tmp_path / "1", begun(case=1))


def test_fewer_epochs_are_the_first_of_more() -> None:
    """So that perplexities by epoch are those of shorter trainings, too."""
    short, long = run(begun(case=3, epochs=1)), run(begun(case=3, epochs=3))
    assert short.perplexities == long.perplexities[:1]
    assert same_weights(short, run(begun(case=3, epochs=3), short.steps))


def test_adam_moves_by_the_learning_rate_at_first() -> None:
    training = begun(learning_rate=0.01, clip=1e9)
    before = training.weights["output"].copy()
    training.advance()
    moved = before - training.weights["output"]
    far = np.abs(before) > 1e-3
    np.testing.assert_allclose(moved[far], 0.01 * np.sign(before[far]), rtol=1e-3)


@TORCH
def test_gradients_are_differences_of_the_loss() -> None:
    recipe = LanguageRecipe(case=3, recurrent=True, **SMALL)
    training = LanguageTraining(recipe, tiny(), TorchLanguage(recipe))
    read, following = training._batch(0, 0)  # pyright: ignore[reportPrivateUsage]
    masks, weights = recipe.masks(0), training.weights
    _, found = training.gradients(weights, read, following, masks)
    assert set(found) == set(weights)
    for name in weights:
        at = int(np.abs(found[name]).argmax())
        losses: list[float] = []
        for sign in (1, -1):
            moved = weights[name].copy()
            moved.flat[at] += sign * 1e-2
            losses.append(training.gradients(weights | {name: moved}, read, following, masks)[0])
        assert found[name].flat[at] == pytest.approx((losses[0] - losses[1]) / 2e-2, rel=0.05)
    dropped = np.flatnonzero(masks["output"].sum(axis=(0, 1)) == 0)
    assert not found["output"][dropped].any()


KILLED = """
from training import session
session.SECONDS_BETWEEN = 0
from archsim.cli.main import main
main()
"""


@TORCH
def test_a_killed_training_goes_on_and_ends_with_the_same_bits(
    archsim: Call, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    words = ["--threads", "1", "train", "language", "--dropout", "3", "--units", "4", "--words",
             "20", "--epochs", "1", "--batch", "60", "--seeds", "1"]  # fmt: skip
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, *words, "-o", "never.json", "--checkpoints", str(kept)],
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )
    folder = kept / "case-3-seed-0"
    try:
        until = time.monotonic() + 60
        while len(checkpoints(folder)) < 2 and time.monotonic() < until:
            time.sleep(0.02)
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    assert not (tmp_path / "never.json").exists()
    said = archsim(*words, "-o", "gone-on.json", "--checkpoints", kept)
    assert said.code == 0 and f"going on from {folder}" in said.err
    said = archsim(*words, "-o", "whole.json")
    assert said.code == 0 and "case 3: perplexity " in said.out
    whole = (tmp_path / "whole.json").read_bytes()
    assert (tmp_path / "gone-on.json").read_bytes() == whole
    record = json.loads(whole)
    assert record["command"] == " ".join(["archsim", *words[:4], *words[4:6], "--seeds 1",
        "--units 4", "--words 20", "--epochs 1", "--batch 60"])  # fmt: skip
    assert record["trainings"][0]["case"] == 3 and len(record["trainings"][0]["perplexities"]) == 1


def test_the_summary_is_of_the_best_epochs() -> None:
    found = [{"case": 0, "perplexities": [9.0, 7.0, 8.0]}, {"case": 0, "perplexities": [5.0]},
             {"case": 3, "perplexities": [4.0]}]  # fmt: skip
    assert summary(found) == [
        "no dropout: perplexity 6.00 ± 1.41 of 2 seeds", "case 3: perplexity 4.00 of 1 seeds",
    ]  # fmt: skip


def test_what_cannot_be_trained_is_refused_in_a_line(archsim: Call) -> None:
    train = ("train", "language", "-o", "x.json")
    assert "of percent, 0 to 99, not 100" in refused(archsim(*train, "--rate", "100"))
    assert "dropout is one of the cases" in refused(archsim(*train, "--dropout", "5"))
    assert "--seeds must be positive" in refused(archsim(*train, "--seeds", "0"))
    assert "more than 2 words, not 2" in refused(archsim(*train, "--words", "2"))
    assert "are fewer than a batch" in refused(archsim(*train, "--batch", "100000"))
