"""`archsim trace`: show a run over time, for Perfetto and wave viewers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from archsim.cli.choose import WorkloadOptions, load_workload
from archsim.cli.machine_options import TakesMachineOptions, machine_options
from archsim.cli.options import (
    AsJson,
    Batch,
    Density,
    DesignName,
    Dimensions,
    Distribution,
    Force,
    InputFile,
    OperandScheme,
    Prune,
    Seed,
    Settings,
    SkipUnsupported,
    WorkloadName,
)
from archsim.cli.output import announce_compilation, output_console, progress_bar, shown
from archsim.cli.traced_run import TracedRun
from archsim.errors import InputError, nearest, require
from archsim.files import require_new
from archsim.machine.registry import load_design, with_settings
from workloads.layers import Network


def trace(  # noqa: PLR0913
    context: typer.Context,
    design: DesignName,
    workload: WorkloadName,
    layer: Annotated[
        str | None, typer.Option(metavar="NAME", help="This layer alone, from cycle 0.")
    ] = None,
    perfetto: Annotated[
        Path | None,
        typer.Option(metavar="FILE.json", help="What every unit did, for ui.perfetto.dev."),
    ] = None,
    vcd: Annotated[
        Path | None,
        typer.Option(metavar="FILE.vcd", help="Every word at every port, for GTKWave and Surfer."),
    ] = None,
    lanes: Annotated[
        bool, typer.Option(help="In the VCD, each lane of a word as a signal too.")
    ] = True,
    settings: Settings = None,
    operands: OperandScheme = "auto",
    density: Density = 1.0,
    prune: Prune = None,
    distribution: Distribution = "uniform",
    seed: Seed = 0,
    input_file: InputFile = None,
    dim: Dimensions = None,
    batch: Batch = None,
    skip_unsupported: SkipUnsupported = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Show a run over time: when each unit of the core loads, streams, waits and drains.

    The summary says how long each unit did what.  --perfetto writes every interval, tile by tile,
    to be opened in ui.perfetto.dev; --vcd writes every word that crosses a port, to be opened in
    GTKWave or Surfer beside a wave of the RTL (archsim verify --waves).  A whole network's VCD is
    large: name a layer.

    Examples:

    \b
      archsim trace edge-16 resnet50 --perfetto resnet50.json
      archsim trace edge-16 alexnet --layer conv1 --perfetto conv1.json --vcd conv1.vcd
      archsim trace tpu-v1 bert-base --set off_chip.bytes_per_cycle=512 --json | jq .activity
    """
    _check_outputs(perfetto, vcd)
    require(lanes or vcd is not None, "--no-lanes is of --vcd; give both")
    chosen = with_settings(load_design(design), settings or [])
    run_options = machine_options(context, chosen)
    options = WorkloadOptions(
        dims=tuple(dim or ()),
        batch=batch,
        skip_unsupported=skip_unsupported,
        operands=operands,
        density=density,
        prune=prune,
        distribution=distribution,
        seed=seed,
        input_file=input_file,
        as_words=True,
    )
    with progress_bar(f"reading {workload}", quiet=as_json):
        work = load_workload(workload, options)
    model = chosen.machine_model()
    wanted = model.timed_by_values or vcd is not None
    run = TracedRun(
        model=model,
        whole_network=work.network,
        network=(part := _part(work.network, layer)),
        options=run_options,
        operands=work.operands(chosen.intake) if wanted else None,
    )
    announce_compilation(model, run_options)
    with progress_bar(f"timing {part.name}", quiet=as_json) as bar:
        summary = run.summarize(bar, perfetto)
    if vcd is not None:
        with progress_bar(f"writing {vcd.name}", quiet=as_json) as bar:
            summary["vcd"] = run.write_vcd(bar, vcd, lanes=lanes)
    if as_json:
        print(json.dumps(summary, indent=2))
    else:
        _print(summary, model.steps_are)


def _check_outputs(*paths: Path | None) -> None:
    """Refuse output paths that are taken or the same, before any work."""
    given = [path for path in paths if path is not None]
    for path in given:
        require_new(path)
        require(given.count(path) == 1, f"{path} cannot hold two outputs; give two names")


def _part(network: Network, layer: str | None) -> Network:
    """The network, or a network of one of its layers."""
    require(bool(network.matrix_layers), f"{network.name} has no layer that the array computes")
    if layer is None:
        return network
    known = {one.name: one for one in network.matrix_layers}
    if layer not in known:
        raise InputError(f"{network.name} has no matrix layer {layer!r}; {nearest(layer, known)}")
    return replace(network, name=f"{network.name} {layer}", layers=(known[layer],))


def _print(summary: dict[str, Any], steps_are: str) -> None:
    """A row for each unit and what it did, then the files."""
    cycles: int = summary["cycles"]
    console = output_console()
    title = f"{summary['network']} on {summary['design']}"
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.add_column("unit", no_wrap=True)
    table.add_column("does", no_wrap=True)
    for name in ("cycles", "%"):
        table.add_column(name, justify="right", no_wrap=True)
    for unit, counts in summary["activity"].items():
        for what, count in counts.items():
            table.add_row(unit, what, f"{count:,}", f"{100 * count / cycles:.1f}")
    console.print(table, markup=False)
    console.print(
        f"{cycles:,} cycles = {1e3 * cycles / summary['clock_hz']:,.3f} ms at "
        f"{summary['clock_hz'] / 1e6:,.0f} MHz; layers: {summary['layers']:,}; "
        f"{'passes' if 'groups' in summary['activity'] else 'tiles'}: {summary['tiles']:,}"
    )
    for kind, count in (("perfetto", "events"), ("vcd", "transfers")):
        if kind in summary:
            file = summary[kind]
            size = file["bytes"] / 1e6
            console.print(f"{shown(file['file'])}: {file[count]:,} {count}, {size:,.1f} MB")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("trace", cls=TakesMachineOptions)(trace)
