"""`archsim list` and `archsim show`: what there is."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from archsim.designs.registry import design_record, design_toml, load_design, registered
from archsim.designs.registry import with_settings as apply_settings
from workloads.builtin import builtin, networks
from workloads.packaged import packaged, packaged_names


def _designs() -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "kind": design.kind,
            "array": f"{design.rows} × {design.columns}",
            "dataflow": design.dataflow,
            "clock_mhz": design.clock_hz / 1e6,
            "record": design_record(design),
        }
        for name, design in registered().items()
    ]


def _workloads() -> list[dict[str, Any]]:
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
        rows.append({"name": name, "values": "trained", "source": packaged(name).source})
    return rows


def list_things(
    what: Annotated[Literal["designs", "workloads"], typer.Argument(help="What to list.")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List the registered designs, or the workloads that `run` knows by name."""
    rows = _designs() if what == "designs" else _workloads()
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    table = Table()
    columns = [key for key in rows[0] if key != "record"]
    for column in columns:
        table.add_column(column)
    for row in rows:
        cells = (row.get(column, "") for column in columns)
        table.add_row(*(f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in cells))
    Console(width=None if Console().is_terminal else 160).print(table)


def show(
    design: Annotated[str, typer.Argument(help="A registered design or a TOML file.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Change the design first: rows=16.")
    ] = None,
) -> None:
    """Print a design as TOML: complete, ready to edit and to give to the other verbs."""
    print(design_toml(apply_settings(load_design(design), settings or [])), end="")


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command("list")(list_things)
    app.command("show")(show)
