"""`archsim voltage`: errors and energy of a network in memories at low voltage."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from archsim.cli.options import AsJson, DesignName, Force, Settings
from archsim.cli.output import announce_compilation, output_console, phase, progress_bar
from archsim.errors import require
from archsim.files import require_new
from workloads.counts import counted

if TYPE_CHECKING:
    from archsim.robust.low_voltage import MachineAtLowVoltage, Point, Series
    from archsim.robust.parts_alone import PartsAlone

MODEL, IMAGES, CHIPS, LOSS = "mnist-int8-randbet-1", 100, 2, 1.0
"""Without options; what archsim has measured already of its own machines."""


def series_table(found: MachineAtLowVoltage) -> Table:
    """A line for every memory in every form: errors by voltage, and what its lowest one saves."""
    from archsim.robust.placed import VOLTAGES

    voltages = sorted(VOLTAGES, reverse=True)
    bound = found.nominal.error + found.loss
    table = Table(
        title=f"errors in % by supply over V_min; one memory at a time ({found.loss:g} points more "
        "than without errors are borne)",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("memory")
    table.add_column("form")
    for one in map(str, voltages):
        table.add_column(one, justify="right", no_wrap=True)
    table.add_column("lowest", justify="right", no_wrap=True)
    table.add_column("saves, % of memory", justify="right", no_wrap=True)
    for one in found.series:
        if one.points:
            table.add_row(*_cells(one, found, voltages, bound))
    return table


def _cells(
    one: Series, found: MachineAtLowVoltage, voltages: list[float], bound: float
) -> tuple[str, ...]:
    known = {point.at[0].voltage: point for point in one.points}
    errors = [f"{known[v].error:.1f}" if v in known else "" for v in voltages]
    lowest = one.lowest(bound)
    if lowest is None:
        return (one.memory, one.form, *errors, "–", "–")
    nominal = found.nominal.energy.by_memory_pj[one.memory]
    saved = nominal - known[lowest].energy.by_memory_pj[one.memory]
    return (one.memory, one.form, *errors, f"{lowest:g}", f"{100 * saved / nominal:.0f}")


def lines(found: MachineAtLowVoltage) -> list[str]:
    """What stands below the table."""
    nominal = found.nominal
    said = [
        f"without errors {nominal.error:.1f} % are wrong; {nominal.energy.total_pj / 1e6:.3g} µJ a "
        "picture"
    ]
    if found.weak:
        said.append(f"the weak memory: {found.weak}")
    for what, point in (("one voltage", found.one_voltage), ("each its own", found.best)):
        said.append(f"{what}: {_said(point, nominal)}")
    for one in found.series:
        if one.refused:
            said.append(f"{one.memory}, {one.form}: {one.refused}")
    return said


def _said(point: Point | None, nominal: Point) -> str:
    if point is None:
        return "nothing below V_min is borne"
    memories = sorted({one.memory for one in point.at})
    now = sum(point.energy.by_memory_pj[name] for name in memories)
    then = sum(nominal.energy.by_memory_pj[name] for name in memories)
    where = ", ".join(f"{one.memory} {one.form} at {one.voltage:g}" for one in point.at)
    total = 100 * (1 - point.energy.total_pj / nominal.energy.total_pj)
    return (
        f"{where}: {point.error:.1f} % wrong, {100 * (1 - now / then):.0f} % of these memories' "
        f"energy saved, {total:.1f} % of all"
    )


def record(found: MachineAtLowVoltage) -> dict[str, Any]:
    """As plain data."""
    return {
        "nominal": _point_record(found.nominal),
        "loss": found.loss,
        "weak": found.weak,
        "series": [
            {
                "memory": one.memory,
                "form": one.form,
                "refused": one.refused,
                "points": [_point_record(point) for point in one.points],
            }
            for one in found.series
        ],
        "one_voltage": None if found.one_voltage is None else _point_record(found.one_voltage),
        "best": None if found.best is None else _point_record(found.best),
    }


def parts_record(parts: Sequence[PartsAlone]) -> list[dict[str, Any]]:
    """Errors of each memory by layer and by bit, as plain data."""
    from energy_models.voltage import bit_error_rate

    return [
        {
            "at": vars(one.at) | {"bit_error_rate": bit_error_rate(one.at.voltage)},
            "errors_percent": list(one.whole),
            "by_layer_percent": {name: list(errors) for name, errors in one.by_layer.items()},
            "by_bit_percent": [list(errors) for errors in one.by_bit],
        }
        for one in parts
    ]


def _point_record(point: Point) -> dict[str, Any]:
    from energy_models.voltage import bit_error_rate

    return {
        "at": [vars(one) | {"bit_error_rate": bit_error_rate(one.voltage)} for one in point.at],
        "errors_percent": list(point.errors),
        "mean_percent": point.error,
        "energy_pj": point.energy.total_pj,
        "by_memory_pj": point.energy.by_memory_pj,
    }


def voltage(  # noqa: PLR0913
    design: DesignName,
    settings: Settings = None,
    model: Annotated[
        str, typer.Option(metavar="NAME", help="A model that comes with archsim.")
    ] = MODEL,
    images: Annotated[int, typer.Option(metavar="N", help="Test pictures of each error.")] = IMAGES,
    chips: Annotated[int, typer.Option(metavar="N", help="Chips of each error.")] = CHIPS,
    loss: Annotated[
        float, typer.Option(metavar="POINTS", help="By how many per cent errors may grow.")
    ] = LOSS,
    memories: Annotated[
        list[str] | None,
        typer.Option("--memory", metavar="NAME", help="Of these alone; else the operands'."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="A new page: errors by supply, layer and bit."),
    ] = None,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Print what a network bears of a machine's memories at low voltage, and what that saves.

    With --report or --json also where errors hurt: each memory failing in one layer alone, and in
    one bit of every value alone.

    Every point is kept as soon as it is measured: the same command goes on where it was ended.

    Examples:

    \b
      archsim voltage edge-16
      archsim voltage edge-16 --report edge-16.html
      archsim voltage vsq-16 --images 1000 --chips 20 --json
    """
    if report is not None:
        require(report.suffix in (".html", ".htm"), f"{report} must end in .html")
        require_new(report)
    from archsim.machine.registry import load_design, with_settings
    from archsim.robust.low_voltage import at_low_voltage
    from archsim.robust.machine_points import SHIPPED, MachinePoints, own_file
    from archsim.robust.model import shipped
    from archsim.robust.parts_alone import parts_alone
    from workloads.labelled import labelled

    chosen = with_settings(load_design(design), settings or [])
    require(0 <= loss <= 100, f"--loss must be from 0 to 100, not {loss:g}")
    announced: list[str] = []
    with progress_bar("looking", quiet=as_json) as bar:

        def told(what: str) -> None:
            if not announced:
                announce_compilation(chosen.machine_model(), {}, quiet=as_json)
            announced.append(what)
            bar.update(bar.task_ids[0], description=f"measuring {what}")

        points = MachinePoints(
            model=shipped(model),
            images=images,
            chips=chips,
            pictures=lambda: (labelled("mnist", "test"), labelled("mnist", "train")),
            files=(SHIPPED, own_file()),
            progress=told,
        )
        found = at_low_voltage(chosen, points, loss, memories or ())
        parts = list(parts_alone(found, points)) if as_json or report is not None else []
        if report is not None:
            phase(bar, "drawing the report")
            pictures = counted(images, "test picture")
            _draw(found, parts, report, f"{model}, {pictures} of MNIST, {counted(chips, 'chip')}")
    if as_json:
        head = {"design": design, "model": model, "images": images, "chips": chips}
        whole = head | record(found) | {"parts": parts_record(parts)}
        print(json.dumps(whole, indent=2, ensure_ascii=False))
        return
    console = output_console()
    console.print(series_table(found))
    for line in lines(found):
        console.print(line)


def _draw(
    found: MachineAtLowVoltage, parts: Sequence[PartsAlone], report: Path, evaluated: str
) -> None:
    """Write the page; evaluated: which model, on what."""
    from archsim.voltage_report import write_voltage_report

    command = shlex.join(["archsim", *sys.argv[1:]])
    write_voltage_report(found, parts, report, evaluated=evaluated, command_line=command)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("voltage")(voltage)
