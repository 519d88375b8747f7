"""`archsim trace`: a run over time, for Perfetto and for wave viewers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer
from rich import box
from rich.progress import Progress
from rich.table import Table

from archsim.cli.choose import WorkloadOptions, load_workload
from archsim.cli.options import (
    AsJson,
    Density,
    DesignName,
    Dimensions,
    Distribution,
    InputFile,
    OperandScheme,
    Prune,
    Seed,
    Settings,
    SkipUnsupported,
    TilingFile,
    WorkloadName,
)
from archsim.cli.output import announce_compilation, output_console, progress_bar
from archsim.cli.run import load_tilings
from archsim.core.design import Design
from archsim.core.problem import Tiling
from archsim.designs.registry import load_design, require_core, with_settings
from archsim.designs.scnn import Scnn
from archsim.errors import InputError, nearest, require
from archsim.files import require_new
from workloads.layers import Network


def trace(  # noqa: PLR0913
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
    skip_unsupported: SkipUnsupported = False,
    tiling: TilingFile = None,
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
    options = WorkloadOptions(
        dims=tuple(dim or ()),
        skip_unsupported=skip_unsupported,
        operands=operands,
        density=density,
        prune=prune,
        distribution=distribution,
        seed=seed,
        input_file=input_file,
    )
    work = load_workload(workload, options)
    sparse = isinstance(chosen, Scnn)
    values = work.operands(chosen.intake) if sparse or vcd is not None else None
    part = _part(work.network, layer)
    run = _traced_run(chosen, (work.network, part), load_tilings(tiling), values)
    announce_compilation()
    with progress_bar(f"timing {part.name}", quiet=as_json) as bar:
        summary = run.summarize(bar, perfetto)
    if vcd is not None:
        with progress_bar(f"writing {vcd.name}", quiet=as_json) as bar:
            summary["vcd"] = run.write_vcd(bar, vcd, lanes=lanes)
    if as_json:
        print(json.dumps(summary, indent=2))
    else:
        _print(summary)


def _traced_run(
    design: Design, networks: tuple[Network, Network], tilings: dict[str, Tiling], values: Any
) -> Traced:
    """What traces the second of the networks, a part of the first."""
    from archsim.cli.sparse_traced_run import SparseTracedRun
    from archsim.cli.traced_run import TracedRun

    whole, part = networks
    if isinstance(design, Scnn):
        require(not tilings, f"tilings are for cores walked by tiles, not {design.kind}")
        return SparseTracedRun(design=design, network=part, operands=values)
    return TracedRun(
        design=require_core(design, "trace"),
        whole_network=whole,
        network=part,
        all_tilings=tilings,
        operands=values,
    )


class Traced(Protocol):
    """A run over time, whatever kind of machine it is of."""

    def summarize(self, bar: Progress, perfetto: Path | None) -> dict[str, Any]:
        """How long each unit did what; what it did when, as a file."""
        ...

    def write_vcd(self, bar: Progress, path: Path, *, lanes: bool) -> dict[str, Any]:
        """Every word at every port."""
        ...


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


def _print(summary: dict[str, Any]) -> None:
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
            console.print(f"{file['file']}: {file[count]:,} {count}, {size:,.1f} MB", markup=False)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("trace", short_help="Show a run over time, for Perfetto and wave viewers.")(trace)
