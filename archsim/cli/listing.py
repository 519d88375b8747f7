"""`archsim list`: list designs, workloads, technologies."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import typer

from archsim.cli.options import Wide

HEADINGS = {
    "name": "name",
    "kind": "kind",
    "array": "array",
    "clock_mhz": "MHz",
    "values": "values",
    "matrix_layers": "layers",
    "gmacs": "GMACs",
    "node_nm": "nm",
    "voltage_v": "V",
    "unit": "unit",
    "title": "title",
    "source": "source",
}
SENTENCES = ("array", "title", "source")
"""They go on in the next line; all others stand in one."""
NUMBERS = ("clock_mhz", "matrix_layers", "gmacs", "node_nm", "voltage_v")


def _designs() -> list[dict[str, Any]]:
    from archsim.machine.registry import design_record, registered

    return [
        {
            "name": name,
            "kind": design.kind,
            "array": design.summary,
            "clock_mhz": design.clock_hz / 1e6,
            "record": design_record(design),
        }
        for name, design in registered().items()
    ]


def _workloads() -> list[dict[str, Any]]:
    from workloads.builtin import builtin, networks
    from workloads.packaged import packaged, packaged_names

    rows: list[dict[str, Any]] = []
    for name in networks():
        network = builtin(name)
        rows.append(
            {
                "name": name,
                "values": "synthetic",
                "matrix_layers": len(network.matrix_layers),
                "gmacs": network.macs / 1e9,
                "source": network.source,
            }
        )
    for name in packaged_names():
        rows.append(
            {
                "name": name,
                "values": "trained",
                "matrix_layers": None,
                "gmacs": None,
                "source": packaged(name).source,
            }
        )
    return rows


def _technologies() -> list[dict[str, Any]]:
    from energy_models.technology import shipped_technologies

    return [technology.record() for technology in shipped_technologies()]


def list_things(
    what: Annotated[
        Literal["designs", "workloads", "technologies"] | None,
        typer.Argument(
            metavar="[designs|workloads|technologies]", help="What to list; without it, all."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    wide: Wide = False,
) -> None:
    """List the registered designs, the workloads that `run` knows, or what actions may cost."""
    listed = {"designs": _designs, "workloads": _workloads, "technologies": _technologies}
    chosen = [what] if what else list(listed)
    found = {name: listed[name]() for name in chosen}
    if as_json:
        print(json.dumps(found[what] if what else found, indent=2))
        return
    for name, rows in found.items():
        if what is None:
            print(f"{name}:")
        _print_table(rows, wide=wide)


def _print_table(rows: list[dict[str, Any]], *, wide: bool) -> None:
    from rich import box
    from rich.table import Table

    from archsim.cli.fitting import text_column
    from archsim.cli.output import output_console

    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    headings = {key: text for key, text in HEADINGS.items() if key in rows[0]}
    for key, text in headings.items():
        if key in SENTENCES:
            text_column(table, text)
        else:
            table.add_column(text, justify="right" if key in NUMBERS else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(_cell(key, row[key]) for key in headings))
    output_console(wide=wide).print(table, markup=False)


def _cell(key: str, value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if key == "gmacs" else f"{value:g}" if key in NUMBERS else str(value)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("list")(list_things)
