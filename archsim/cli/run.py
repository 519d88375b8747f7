"""`archsim run`: simulate a network on a design."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archsim.cli.choose import WorkloadOptions, load_workload
from archsim.cli.costs import Costs
from archsim.cli.layers import print_result
from archsim.cli.machine_options import TakesMachineOptions, machine_options
from archsim.cli.options import (
    AsJson,
    Batch,
    CaptureFile,
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
    Wide,
    WorkloadName,
)
from archsim.cli.output import announce_compilation, output_console, phase, progress_bar
from archsim.energy import DEFAULT_TECHNOLOGY
from archsim.energy_account import EnergyAccount
from archsim.errors import require
from archsim.files import require_new
from archsim.machine.model import MachineModel, Options
from archsim.machine.registry import load_design, with_settings
from archsim.result import NetworkResult
from archsim.simulate import simulate
from workloads.layers import Network

if TYPE_CHECKING:
    from archsim.machine.over_time import OverTime


def save(result: NetworkResult, energy: EnergyAccount | None, folder: Path) -> None:
    """Write result.json, tables as CSV and Parquet and, where values were computed, ofmaps.npz."""
    from archsim.exports import write_exports

    if energy is None:
        write_exports(result, folder)
        return
    frames = {"energy": energy.to_frame(), "prices": energy.price_frame()}
    write_exports(result, folder, frames=frames, costs=energy.record())


def run(  # noqa: PLR0913
    context: typer.Context,
    design: DesignName,
    workload: WorkloadName,
    settings: Settings = None,
    timing_only: Annotated[
        bool,
        typer.Option(
            "--timing-only", help="No values; a sparse machine draws operands all the same."
        ),
    ] = False,
    operands: OperandScheme = "auto",
    density: Density = 1.0,
    prune: Prune = None,
    distribution: Distribution = "uniform",
    seed: Seed = 0,
    input_file: InputFile = None,
    capture: CaptureFile = None,
    dim: Dimensions = None,
    batch: Batch = None,
    skip_unsupported: SkipUnsupported = False,
    technology: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE.toml",
            help="What actions and area cost: a technology (`archsim list technologies`), or none."
            f"  [default: {DEFAULT_TECHNOLOGY}]",
        ),
    ] = None,
    voltage: Annotated[
        float | None,
        typer.Option(metavar="VOLTS", help="Supply voltage; without it the technology's own."),
    ] = None,
    sram_voltage: Annotated[
        float,
        typer.Option(
            metavar="RATIO",
            help="Supply of the SRAMs over their minimum: below 1 they save energy; the bit errors "
            "that they would then have are not injected.",
        ),
    ] = 1.0,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="A new page with figures, to open in a browser."),
    ] = None,
    as_json: AsJson = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="A new folder: result.json, tables as CSV and Parquet, ofmaps.npz.",
        ),
    ] = None,
    force: Force = False,
    wide: Wide = False,
) -> None:
    """Simulate a network on a design: cycles, stalls, utilisation, bytes moved, energy, area.

    Cycles, values and action counts are what the generated hardware would show (`archsim verify`);
    what an action costs is the technology's, whose sources the result names.

    Examples:

    \b
      archsim run edge-16 squeezenet-imagenet
      archsim run tpu-v1 resnet50 --timing-only --json | jq .cycles
      archsim run edge-16 resnet18:training,batch=2 --timing-only
      archsim run edge-16 lstm-tagging:training,dropout=4,rate=30 --timing-only
      archsim run cloud-128 model.onnx --dim batch=1 --set rows=64 -o results/
      archsim run edge-16 resnet50 --timing-only --batch 8 --report resnet50.html
    """
    _check_outputs(output, report)
    costs = Costs(technology=technology, voltage_v=voltage, sram_relative_voltage=sram_voltage)
    costs.check()
    chosen = with_settings(load_design(design), settings or [])
    model = chosen.machine_model()
    options = WorkloadOptions(
        dims=tuple(dim or ()),
        batch=batch,
        skip_unsupported=skip_unsupported,
        operands="none" if timing_only and not model.timed_by_values else operands,
        density=density,
        prune=prune,
        distribution=distribution,
        seed=seed,
        input_file=input_file,
        capture=capture,
    )
    chosen_options = machine_options(context, chosen)
    announce_compilation(model, chosen_options)
    with progress_bar(f"reading {workload}", quiet=as_json) as bar:
        work = load_workload(workload, options)
        phase(bar, f"simulating {work.network.name}")
        values = work.operands(chosen.intake)
        result = simulate(
            chosen,
            work.network,
            operands=values,
            seed=seed,
            progress=lambda done, total, _: bar.update(
                bar.task_ids[0], completed=done, total=total
            ),
            **chosen_options,
        )
        if timing_only:
            result = result.without_values()
        phase(bar, "pricing")
        energy, why_not = costs.account(result)
        if output is not None:
            phase(bar, f"writing {output.name}")
            save(result, energy, output)
        if report is not None:
            phase(bar, "drawing the report")
            over_time = _over_time(model, work.network, chosen_options, result)
            _draw(result, report, over_time, (energy, why_not))
    if as_json:
        costed = energy.record() if energy else {"energy": None, "why_no_energy": why_not}
        print(json.dumps({**result.record(), **costed}, indent=2))
    else:
        print_result(result, output_console(wide=wide), energy, why_not)


def _check_outputs(output: Path | None, report: Path | None) -> None:
    """Raise `InputError` for a page that is none, and for what is there already."""
    if report is not None:
        require(report.suffix in (".html", ".htm"), f"{report} must end in .html")
    for path in (output, report):
        if path is not None:
            require_new(path, folder=path is output)


def _draw(
    result: NetworkResult,
    report: Path,
    over_time: OverTime | None,
    costs: tuple[EnergyAccount | None, str],
) -> None:
    """Write the page; costs: what it takes, or why that is not known."""
    from archsim.report import write_report

    energy, why_not = costs
    write_report(
        result,
        report,
        account=energy,
        activity=over_time,
        why_no_energy=why_not,
        command_line=shlex.join(["archsim", *sys.argv[1:]]),
    )


def _over_time(
    model: MachineModel, network: Network, options: Options, result: NetworkResult
) -> OverTime | None:
    """Where the cycles went over time; None where nothing took any, or nothing tells.

    A run over time has no operands: none is made where the tilings were chosen for them.
    """
    chosen_for_values = any(layer.stored for layer in result.layers)
    if not result.cycles or chosen_for_values:
        return None
    return model.over_time(network, options)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("run", cls=TakesMachineOptions)(run)
