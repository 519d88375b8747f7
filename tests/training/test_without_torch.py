"""Without PyTorch the command says what installs it; evaluation does not ask for it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command_line import Call, refused
from tiny_training import Pull, pictures, recipe

from archsim.robust.evaluate import error_percent
from training.training import Training


def test_the_command_says_what_installs_it(
    archsim: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("training.cli._sets", lambda *_: (pictures(), pictures()))
    said = refused(archsim("train", "randbet", "--rate", "0.1", "-o", "x.npz"))
    assert said == (
        "the Python module torch is missing; install it with: pip install 'archsim[train]'"
    )


def test_evaluation_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    training = Training(recipe(), pictures(), Pull())
    assert 0 <= error_percent(training.model({}), pictures()) <= 100
