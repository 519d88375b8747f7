"""Arguments and options that several verbs share, so that they read alike everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from archsim.files import overwriting

DesignName = Annotated[
    str, typer.Argument(metavar="DESIGN", help="A registered design or a TOML file.")
]

WorkloadName = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD",
        help="A built-in network, a packaged one, or a file (`archsim list importers`).",
    ),
]

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change the design: rows=16, off_chip.burst_bytes=32. May be repeated.",
    ),
]

OperandScheme = Annotated[
    Literal["auto", "real", "synthetic"],
    typer.Option(
        help="auto: weights of the model's file and, with --input or of a packaged network, its "
        "activations, which are drawn else; real: both or refuse; synthetic: both drawn."
    ),
]

Density = Annotated[float, typer.Option(help="Share of non-zero drawn operands.")]

Prune = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Keep this share of each convolution's real weights, the largest; others become zero.",
    ),
]

Distribution = Annotated[
    Literal["uniform", "normal"], typer.Option(help="Distribution of drawn operands.")
]

Seed = Annotated[int, typer.Option(help="Seed of drawn operands.")]

InputFile = Annotated[
    Path | None,
    typer.Option(
        "--input", metavar="FILE.npz", help="The ONNX model's inputs: its activations are real."
    ),
]

CaptureFile = Annotated[
    Path | None,
    typer.Option(
        "--capture",
        metavar="FILE.npz",
        help="Of a training step: zeros where a real one had them (`archsim capture`).",
    ),
]

Dimensions = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=SIZE", help="A dynamic dimension of the model: batch=1. May be repeated."
    ),
]

Batch = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Images, or sequences, that a built-in network is given at once."
    ),
]

SkipUnsupported = Annotated[
    bool,
    typer.Option(
        "--skip-unsupported", help="Record unsupported operators instead of refusing them."
    ),
]

Wide = Annotated[bool, typer.Option("--wide", help="All columns, however narrow the terminal is.")]

AsJson = Annotated[bool, typer.Option("--json", help="The result as JSON.")]


def _force(context: typer.Context, force: bool) -> bool:
    """What the command writes may replace what is there, until it ends."""
    context.with_resource(overwriting(force))
    return force


Force = Annotated[
    bool, typer.Option("--force", callback=_force, help="Replace outputs that exist.")
]
