"""`archsim train`: train networks: weights with bit errors, dropout in time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from archsim.cli.options import Force
from archsim.cli.output import progress_bar, say
from archsim.errors import InputError, nearest, require
from archsim.files import require_new
from training.language_cli import language
from training.recipe import FULL, SIZES, Method, Recipe
from training.session import begin, expected_cost, finish, run, write
from training.shipped import RECIPES
from training.training import Losses, Training
from workloads.labelled import SETS, Labelled, labelled
from workloads.threads import threads

Pictures = Annotated[
    Path | None,
    typer.Option(
        "--folder", metavar="FOLDER", help="Where the pictures' files lie; CIFAR-10 is yours."
    ),
]

Checkpoints = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Keep where the training stands here, and go on from what is there.",
    ),
]


def _trained(training: Training, name: str, folder: Path | None) -> None:
    """All batches, with a bar; its cost is said before."""
    if training.step < training.steps:
        say(f"{name}: {expected_cost(training)}")
    with progress_bar(f"training {name}") as bar:
        task = bar.task_ids[0]

        def report(done: int, steps: int, losses: Losses) -> None:
            errors = "" if losses.perturbed is None else f", {losses.perturbed:.3f} with errors"
            what = f"training {name}: loss {losses.clean:.3f}{errors}"
            bar.update(task, completed=done, total=steps, description=what)

        run(training, folder, report)


def _one(recipe: Recipe, name: str, path: Path, folder: Path | None, pictures: Path | None) -> None:
    require_new(path)
    data, test = _sets(recipe.data, pictures)
    training = begin(recipe, data, folder, threads=threads(), say=say)
    _trained(training, name, folder)
    model = finish(training, test)
    write(model, path)
    print(f"{path}: {model.made['clean_error_percent']:.2f} % of {len(test)} test pictures wrong")


def _sets(name: str, folder: Path | None) -> tuple[Labelled, Labelled]:
    if name not in SETS:
        raise InputError(f"no set of pictures {name!r}; {nearest(name, SETS)}")
    return labelled(name, "train", folder), labelled(name, "test", folder)


def randbet(  # noqa: PLR0913
    output: Annotated[Path, typer.Option("--output", "-o", help="The model's file (.npz).")],
    method: Annotated[
        Literal["float", "normal", "rquant", "clipping", "randbet", "pattern"],
        typer.Option(
            help="float: quantised only afterwards; normal, rquant: quantised while trained; "
            "clipping: RQuant within --clip; randbet: with random errors at --rate; pattern: with "
            "those of --chip at --rate."
        ),
    ] = "randbet",
    data: Annotated[str, typer.Option(help="mnist, fashion-mnist or cifar10.")] = "mnist",
    folder: Pictures = None,
    bits: Annotated[int, typer.Option(help="Of a stored weight, 2 to 8.")] = 8,
    clip: Annotated[
        float | None, typer.Option(help="The largest magnitude of a weight; none without it.")
    ] = None,
    rate: Annotated[float, typer.Option(help="Bit errors while training, as a share: 0.01.")] = 0,
    chip: Annotated[int, typer.Option(help="Whose errors `pattern` trains with.")] = 0,
    channels: Annotated[
        int | None, typer.Option(help="Of the first layer; the paper's is 32.  [default: 8]")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Times all pictures.  [default: 2]")] = None,
    full: Annotated[
        bool, typer.Option("--full", help="The paper's width and epochs: hours, which it says.")
    ] = False,
    batch: Annotated[int, typer.Option(help="Pictures a step.")] = 128,
    learning_rate: Annotated[float, typer.Option(help="At the start.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 0,
    checkpoints: Checkpoints = None,
    force: Force = False,
) -> None:
    """Train a SimpleNet whose quantised weights bear random bit errors.

    The recipe is that of Stutz et al., MLSys 2021.  The same seed gives the same bits on one
    machine with one thread, also where the training was ended in between and goes on from
    --checkpoints.  Needs PyTorch: pip install 'archsim[train]'.

    Examples:

    \b
      archsim train randbet --clip 0.1 --rate 0.01 -o randbet.npz
      archsim train randbet --method rquant --bits 4 --epochs 1 -o rquant.npz
      archsim train randbet --clip 0.05 --rate 0.1 --full --checkpoints kept -o full.npz
    """
    if full:
        require(data in FULL, f"no set of pictures {data!r}; {nearest(data, SIZES)}")
        require(channels is None and epochs is None, "--full says --channels and --epochs already")
        channels, epochs = FULL[data]["channels"], FULL[data]["epochs"]
    recipe = Recipe(
        method=cast("Method", method),
        data=data,
        bits=bits,
        clip=clip,
        rate=rate,
        chip=chip,
        channels=8 if channels is None else channels,
        epochs=2 if epochs is None else epochs,
        batch=batch,
        learning_rate=learning_rate,
        seed=seed,
    )
    _one(recipe, output.stem, output, checkpoints, folder)


def shipped(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Of which; all without one.")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder of the models' files.")
    ] = Path("models"),
    checkpoints: Checkpoints = None,
    force: Force = False,
) -> None:
    """Make the models again that come with archsim, one after the other.

    Those whose files are there already are left as they are, or with --force made again.

    Examples:

    \b
      archsim --threads 1 train shipped -o models --checkpoints kept
      archsim --threads 1 train shipped mnist-int8-normal -o models
    """
    for name in names or RECIPES:
        if name not in RECIPES:
            raise InputError(f"no shipped model {name!r}; {nearest(name, RECIPES)}")
    for name in names or RECIPES:
        path = output / f"{name}.npz"
        if path.exists() and not force:
            say(f"{path} is there already")
            continue
        kept = None if checkpoints is None else checkpoints / name
        _one(RECIPES[name], name, path, kept, None)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    group = typer.Typer(help="Train networks: weights with bit errors, dropout in time.")
    group.command("randbet")(randbet)
    group.command("shipped")(shipped)
    group.command("language")(language)
    app.add_typer(group, name="train")
