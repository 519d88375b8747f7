"""`archsim capture`: train a network, and keep the zeros of some steps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from archsim.cli.options import Force
from archsim.cli.output import progress_bar
from archsim.errors import InputError, nearest, require
from archsim.files import new_folder, require_new
from training.capture import CapturedEpoch, CaptureRecipe, captured_epochs
from workloads.builtin import networks
from workloads.digits import whole
from workloads.labelled import SETS, labelled
from workloads.named import shapes_named
from workloads.requests import requested
from workloads.threads import threads


def _epochs(text: str) -> tuple[int, ...]:
    numbers = [number for word in text.split(",") if (number := whole(word)) is not None]
    good = len(numbers) == text.count(",") + 1
    require(good, f"--epochs takes whole numbers with commas between, 0,1,5, not {text[:60]!r}")
    return tuple(sorted(set(numbers)))


def capture(  # noqa: PLR0913
    network: Annotated[
        str, typer.Argument(metavar="NETWORK", help="A built-in one: resnet20:batch=4.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="A new folder: epoch-N.npz.")
    ],
    data: Annotated[str, typer.Option(help="fashion-mnist, mnist or cifar10.")] = "fashion-mnist",
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder", metavar="FOLDER", help="Where the pictures' files lie; CIFAR-10 is yours."
        ),
    ] = None,
    epochs: Annotated[
        str, typer.Option(metavar="N,N", help="After these a step is captured; 0: the first step.")
    ] = "0,1",
    pictures: Annotated[int, typer.Option(help="Of the set, for an epoch.")] = 2000,
    batch: Annotated[
        int, typer.Option(help="Pictures a step; as many as the network's batch are captured.")
    ] = 50,
    learning_rate: Annotated[float, typer.Option(help="Of the descent with momentum 0.9.")] = 0.02,
    seed: Annotated[int, typer.Option(help="Of first weights and of the pictures' order.")] = 0,
    force: Force = False,
) -> None:
    """Train a built-in network on installed pictures, and keep where values of a step are 0.

    `archsim run sparsetrain resnet20:training,batch=4 --capture DIR/epoch-1.npz` simulates the step
    with these zeros.  Pictures are enlarged to what the network takes.  Needs PyTorch: pip install
    'archsim[train]'.

    Examples:

    \b
      archsim capture lenet5:batch=4 -o captured --epochs 0,1,3
      archsim capture resnet18:batch=4 -o captured --pictures 32 --batch 4 --learning-rate 0.002
    """
    name, settings = requested(network)
    if name not in networks():
        raise InputError(f"no built-in network {name[:60]!r}; {nearest(name, networks())}")
    require("training" not in settings, f"say {name}: the step is of its training anyway")
    require_new(output, folder=True)
    recipe = CaptureRecipe(
        epochs=_epochs(epochs),
        data=data,
        pictures=pictures,
        batch=batch,
        rate=learning_rate,
        seed=seed,
    )
    if data not in SETS:
        raise InputError(f"no set of pictures {data!r}; {nearest(data, SETS)}")
    forward = shapes_named(network)
    found: list[CapturedEpoch] = []
    with progress_bar(f"training {name}") as bar:

        def report(done: int, steps: int, what: str) -> None:
            bar.update(
                bar.task_ids[0], completed=done, total=steps, description=f"training {name}: {what}"
            )

        set_ = labelled(data, "train", folder)
        found += captured_epochs(forward, recipe, set_, report, threads=threads())
    with new_folder(output) as work:
        for one in found:
            (work / f"epoch-{one.epoch}.npz").write_bytes(one.content)
    for one in found:
        path = output / f"epoch-{one.epoch}.npz"
        print(
            f"{path}: {len(one.content):,} bytes; loss {one.loss:.3f}, "
            f"{100 * one.right:.0f} % right, density of ifmaps with zeros {one.density:.3f}"
        )


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("capture")(capture)
