"""The perplexity of a small language model under cases of dropout, as a command."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from archsim.cli.options import Force
from archsim.cli.output import progress_bar, say
from archsim.errors import require
from archsim.files import require_new, write_new
from archsim.version import VERSION
from training import checkpoint, session
from training.language import LanguageRecipe, LanguageTraining
from training.language_gradients import TorchLanguage
from training.text import Text, python_reference
from workloads.threads import threads

USUAL = LanguageRecipe()
CASES, SEEDS = [0, 1, 3], 3
"""Of dropout, where none are asked for; and of each so many trainings."""

OPTIONS = {
    "percent": "rate", "recurrent": "recurrent", "units": "units", "words": "words",
    "epochs": "epochs", "batch": "batch", "learning_rate": "learning-rate",
}  # fmt: skip
"""Fields of a recipe that the command says, by their options."""

TRIED = 2
"""Batches computed to say how long it takes; the first also warms up, and is not timed."""


def language(  # noqa: PLR0913
    output: Annotated[Path, typer.Option("--output", "-o", help="The results' file (.json).")],
    dropout: Annotated[
        list[int] | None,
        typer.Option(help="Cases of dropout, 0 for none; repeat it.  [default: 0, 1, 3]"),
    ] = None,
    rate: Annotated[int, typer.Option(help="Of dropout, in percent.")] = USUAL.percent,
    recurrent: Annotated[
        bool, typer.Option("--recurrent", help="Drop units of the layers' own states too.")
    ] = False,
    seeds: Annotated[int, typer.Option(help="Trainings of each case: seeds 0, 1, …")] = SEEDS,
    units: Annotated[int, typer.Option(help="Of an embedding and of a layer.")] = USUAL.units,
    words: Annotated[int, typer.Option(help="Of the vocabulary.")] = USUAL.words,
    epochs: Annotated[int, typer.Option(help="Times all text.")] = USUAL.epochs,
    batch: Annotated[int, typer.Option(help="Sequences a step.")] = USUAL.batch,
    learning_rate: Annotated[float, typer.Option(help="Of Adam.")] = USUAL.learning_rate,
    checkpoints: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Keep where each training stands here, and go on from there."
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Train a small LSTM language model under cases of dropout, and measure its perplexity.

    The text is Python's own reference, of which every tenth topic is measured.  The same seed gives
    the same bits on one machine with one thread, also where it was ended in between and goes on
    from --checkpoints.  Needs PyTorch: pip install 'archsim[train]'.

    Examples:

    \b
      archsim train language -o dropout.json
      archsim --threads 1 train language --recurrent --checkpoints kept -o recurrent.json
    """
    require_new(output)
    require(seeds > 0, f"--seeds must be positive, not {seeds}")
    cases = dropout or CASES
    recipes = [
        LanguageRecipe(
            case=case, percent=rate, recurrent=recurrent, units=units, words=words, epochs=epochs,
            batch=batch, learning_rate=learning_rate, seed=seed,
        )
        for seed in range(seeds) for case in cases
    ]  # fmt: skip
    text = python_reference(words)
    found = [_trained(recipe, text, checkpoints) for recipe in recipes]
    record = {
        "command": command_of(recipes[0], cases, seeds),
        "text": text.source,
        "words": len(text),
        "measured_words": len(text.measured),
        "archsim": VERSION,
        "trainings": found,
    }
    write_new({output: json.dumps(record, indent=1).encode() + b"\n"})
    for line in summary(found):
        print(line)


def _trained(recipe: LanguageRecipe, text: Text, folder: Path | None) -> dict[str, Any]:
    """One training, from its beginning or its last checkpoint."""
    name = f"case {recipe.case}, seed {recipe.seed}"
    training = LanguageTraining(recipe, text, TorchLanguage(recipe, threads()))
    if folder is not None:
        folder = folder / f"case-{recipe.case}-seed-{recipe.seed}"
        checkpoint.prepare(folder)
        for line in checkpoint.resume(folder, training):
            say(line)
    if training.step < training.steps:
        say(f"{name}: {_expected(training)}")
    with progress_bar(f"training {name}") as bar:
        task, last = bar.task_ids[0], time.monotonic()
        while training.step < training.steps:
            loss = training.advance()
            bar.update(task, completed=training.step, total=training.steps,
                       description=f"training {name}: loss {loss:.3f}")  # fmt: skip
            done = training.step == training.steps
            if folder is not None and (done or time.monotonic() - last > session.SECONDS_BETWEEN):
                checkpoint.save(folder, training)
                last = time.monotonic()
    return {**recipe.record(), "perplexities": [round(p, 3) for p in training.perplexities]}


def _expected(training: LanguageTraining) -> str:
    """Products and time of what is left, from a batch or two computed now and thrown away."""
    recipe, left = training.recipe, training.steps - training.step
    trial = LanguageTraining(recipe, training.data, training.gradients)
    trial.advance()
    begun = time.perf_counter()
    for _ in range(TRIED - 1):
        trial.advance()
    seconds = (time.perf_counter() - begun) / (TRIED - 1)
    macs = recipe.macs(training.steps_an_epoch * recipe.batch * recipe.steps)
    return (
        f"{left} batches of {recipe.batch}, {macs * left / training.steps:.2g} MACs, about "
        f"{session.duration(seconds * left)} at the speed of now"
    )


def command_of(recipe: LanguageRecipe, cases: list[int], seeds: int) -> str:
    """The command line that makes the results again."""
    usual, words = USUAL.record(), list[str]()
    if cases != CASES:
        words += [f"--dropout {case}" for case in cases]
    if seeds != SEEDS:
        words.append(f"--seeds {seeds}")
    for name, option in OPTIONS.items():
        value = recipe.record()[name]
        if value != usual[name]:
            words.append(f"--{option}" if value is True else f"--{option} {value}")
    return " ".join(["archsim --threads 1 train language", *words])


def summary(found: list[dict[str, Any]]) -> list[str]:
    """Of each case the best epoch's perplexity, mean and spread over the seeds."""
    lines: list[str] = []
    for case in dict.fromkeys(one["case"] for one in found):
        best = [min(one["perplexities"]) for one in found if one["case"] == case]
        spread = f" ± {statistics.stdev(best):.2f}" if len(best) > 1 else ""
        what = f"case {case}" if case else "no dropout"
        lines.append(f"{what}: perplexity {statistics.mean(best):.2f}{spread} of {len(best)} seeds")
    return lines


__all__ = ["language", "summary"]
