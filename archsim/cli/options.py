"""Arguments and options that several verbs share, so that they read alike everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

DesignName = Annotated[str, typer.Argument(help="A registered design or a TOML file.")]

WorkloadName = Annotated[
    str, typer.Argument(help="A built-in network, a packaged one, or an ONNX file.")
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
    typer.Option(help="auto: real where the workload has values, else synthetic."),
]

Density = Annotated[float, typer.Option(help="Share of non-zero synthetic operands.")]

Prune = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Keep this share of each convolution's real weights, the largest; others become zero.",
    ),
]

Distribution = Annotated[
    Literal["uniform", "normal"], typer.Option(help="Distribution of synthetic operands.")
]

Seed = Annotated[int, typer.Option(help="Seed of synthetic operands.")]

InputFile = Annotated[
    Path | None,
    typer.Option(
        "--input", metavar="FILE.npz", help="The ONNX model's inputs: its operands are real."
    ),
]

Dimensions = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=SIZE", help="A dynamic dimension of the model: batch=1. May be repeated."
    ),
]

SkipUnsupported = Annotated[
    bool,
    typer.Option(
        "--skip-unsupported", help="Record unsupported operators instead of refusing them."
    ),
]

TilingFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.toml",
        help="Tilings of some layers: [conv1] pixel_rows, pixel_columns, filters, channels.",
    ),
]

AsJson = Annotated[bool, typer.Option("--json", help="The result as JSON.")]
