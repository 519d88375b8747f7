"""`archsim run`: a network on a design."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import numpy as np
import typer

from archsim.cli.choose import WorkloadOptions, load_workload
from archsim.cli.layers import print_result
from archsim.cli.output import (
    announce_compilation,
    new_folder,
    output_console,
    progress_bar,
    require_new,
)
from archsim.core.problem import Tiling
from archsim.designs.registry import load_design, with_settings
from archsim.errors import InputError, nearest, require
from archsim.result import NetworkResult
from archsim.simulate import simulate


def load_tilings(path: Path | None) -> dict[str, Tiling]:
    """Tilings by layer name from a TOML file of tables."""
    if path is None:
        return {}
    try:
        tables: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a TOML file: {error}") from error
    return {layer: _tiling(f"{path}: [{layer}]", table) for layer, table in tables.items()}


def _tiling(where: str, table: Any) -> Tiling:
    names = [entry.name for entry in fields(Tiling)]
    if not isinstance(table, dict):
        raise InputError(f"{where} must be a table of {', '.join(names)}")
    given = cast("dict[str, Any]", table)
    for name in given:
        require(name in names, f"{where} has no {name!r}; {nearest(name, names)}")
    for name in names:
        require(name in given or name == "order", f"{where}: {name} is missing")
    try:
        return Tiling(**given)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def save(result: NetworkResult, folder: Path) -> None:
    """Write result.json, layers.csv and, where values were computed, ofmaps.npz."""
    with new_folder(folder) as work:
        (work / "result.json").write_text(result.to_json(), encoding="utf-8")
        result.to_frame().to_csv(work / "layers.csv")
        values = {layer.name: layer.ofmap for layer in result.layers if layer.ofmap is not None}
        if values:
            arrays: dict[str, Any] = {name.replace("/", "."): v for name, v in values.items()}
            np.savez_compressed(work / "ofmaps.npz", **arrays)


def run(  # noqa: PLR0913
    design: Annotated[str, typer.Argument(help="A registered design or a TOML file.")],
    workload: Annotated[
        str, typer.Argument(help="A built-in network, a packaged one, or an ONNX file.")
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change the design: rows=16, off_chip.burst_bytes=32. May be repeated.",
        ),
    ] = None,
    timing_only: Annotated[
        bool, typer.Option("--timing-only", help="Cycles only, no values.")
    ] = False,
    operands: Annotated[
        Literal["auto", "real", "synthetic"],
        typer.Option(help="auto: real where the workload has values, else synthetic."),
    ] = "auto",
    density: Annotated[float, typer.Option(help="Share of non-zero synthetic operands.")] = 1.0,
    distribution: Annotated[
        Literal["uniform", "normal"], typer.Option(help="Distribution of synthetic operands.")
    ] = "uniform",
    seed: Annotated[int, typer.Option(help="Seed of synthetic operands.")] = 0,
    input_file: Annotated[
        Path | None,
        typer.Option(
            "--input", metavar="FILE.npz", help="The ONNX model's inputs: its operands are real."
        ),
    ] = None,
    dim: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SIZE", help="A dynamic dimension of the model: batch=1. May be repeated."
        ),
    ] = None,
    skip_unsupported: Annotated[
        bool,
        typer.Option(
            "--skip-unsupported", help="Record unsupported operators instead of refusing them."
        ),
    ] = False,
    tiling: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="Tilings of some layers: [conv1] pixel_rows, pixel_columns, filters, channels.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="A new folder for result.json, layers.csv and ofmaps.npz.",
        ),
    ] = None,
) -> None:
    """Simulate a network on a design: cycles, stalls, utilisation, actions, bytes moved.

    Every figure is what the generated hardware would show, cycle for cycle (`archsim verify`).

    Examples:

    \b
      archsim run edge-16 squeezenet-imagenet
      archsim run tpu-v1 resnet50 --timing-only --json | jq .cycles
      archsim run cloud-128 model.onnx --dim batch=1 --set rows=64 -o results/
    """
    if output is not None:
        require_new(output)
    chosen = with_settings(load_design(design), settings or [])
    options = WorkloadOptions(
        dims=tuple(dim or ()),
        skip_unsupported=skip_unsupported,
        operands="none" if timing_only else operands,
        density=density,
        distribution=distribution,
        seed=seed,
        input_file=input_file,
    )
    work = load_workload(workload, options)
    tilings = load_tilings(tiling)
    announce_compilation()
    with progress_bar(f"simulating {work.network.name}", quiet=as_json) as bar:
        values = work.operands(chosen.operand_bits)
        result = simulate(
            chosen,
            work.network,
            operands=values,
            tilings=tilings,
            seed=seed,
            progress=lambda done, total, _: bar.update(
                bar.task_ids[0], completed=done, total=total
            ),
        )
    if output is not None:
        save(result, output)
    if as_json:
        print(result.to_json())
    else:
        print_result(result, output_console())


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("run", short_help="Simulate a network on a design.")(run)
