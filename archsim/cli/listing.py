"""`archsim list` and `archsim show`: what there is."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import typer
from rich import box
from rich.table import Table

from archsim.cli.output import output_console
from archsim.designs.registry import design_record, design_toml, load_design, registered
from archsim.designs.registry import with_settings as apply_settings
from archsim.errors import require
from energy_models.technology import shipped_technologies, technologies, technology_toml
from workloads.builtin import builtin, networks
from workloads.packaged import packaged, packaged_names

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
NUMBERS = ("clock_mhz", "matrix_layers", "gmacs", "node_nm", "voltage_v")


def _designs() -> list[dict[str, Any]]:
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
    return [technology.record() for technology in shipped_technologies()]


def list_things(
    what: Annotated[
        Literal["designs", "workloads", "technologies"], typer.Argument(help="What to list.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List the registered designs, the workloads that `run` knows, or what actions may cost."""
    listed = {"designs": _designs, "workloads": _workloads, "technologies": _technologies}
    rows = listed[what]()
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    _print_table(rows)


def _print_table(rows: list[dict[str, Any]]) -> None:
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    headings = {key: text for key, text in HEADINGS.items() if key in rows[0]}
    console = output_console()
    cells = [list(headings.values())]
    cells += [[_cell(key, row[key]) for key in headings] for row in rows]
    if "source" in headings:  # the only column that may be cut off
        taken = sum(max(map(len, column)) + 2 for column in list(zip(*cells, strict=True))[:-1])
        room = max(console.width - taken - 2, 20)
        for row in cells:
            row[-1] = row[-1] if len(row[-1]) <= room else f"{row[-1][: room - 1]}…"
    for key, text in headings.items():
        table.add_column(text, justify="right" if key in NUMBERS else "left", no_wrap=True)
    for row in cells[1:]:
        table.add_row(*row)
    console.print(table, markup=False)


def _cell(key: str, value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if key == "gmacs" else f"{value:g}" if key in NUMBERS else str(value)


def show(
    design: Annotated[
        str, typer.Argument(help="A registered design, a TOML file, or a technology.")
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change the design first: rows=16."),
    ] = None,
) -> None:
    """Print a design or a technology as TOML: complete, ready to edit and to give back."""
    if design in technologies():
        require(not settings, "--set changes designs; edit a technology's file")
        print(technology_toml(design), end="")
        return
    print(design_toml(apply_settings(load_design(design), settings or [])), end="")


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command("list", short_help="List designs, workloads, technologies.")(list_things)
    app.command("show", short_help="Print a design or technology as TOML.")(show)
