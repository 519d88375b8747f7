"""`archsim list`: list designs, workloads, technologies, and what else packages add."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from inspect import cleandoc
from typing import Annotated, Any, Literal

import typer

from archsim.cli.options import Wide
from archsim.plugins import OURS, loaded, no_call, package_of, warn_of_unknown_groups

HEADINGS = {
    "name": "name",
    "access": "for",
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
    "package": "package",
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
    from workloads.builtin import networks
    from workloads.language.shipped import language_models
    from workloads.named import network_named
    from workloads.packaged import packaged, packaged_names

    rows: list[dict[str, Any]] = []
    for name in (*networks(), *language_models()):
        network = network_named(name)
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
    from archsim.technologies import installed_technologies, technology_entries
    from energy_models.technology import shipped_technologies

    ours = [{**one.record(), "package": OURS} for one in shipped_technologies()]
    entries = technology_entries()
    return ours + [
        {**one.record(), "package": package_of(entries[name])}
        for name, one in installed_technologies().items()
    ]


def _memories() -> list[dict[str, Any]]:
    from archsim.memory.kinds import kinds, package_of_kind
    from archsim.memory.seam import PROTOCOLS

    return [
        {
            "name": name,
            "access": access,
            "title": first_line(kind),
            "package": package_of_kind(access, name),
        }
        for access in sorted(PROTOCOLS)
        for name, kind in kinds(access).items()
    ]


def _codecs() -> list[dict[str, Any]]:
    from archsim.codecs.known import codecs, package_of_codec

    return [
        {
            "name": name,
            "title": codec.title,
            "source": codec.source,
            "package": package_of_codec(name),
        }
        for name, codec in codecs().items()
    ]


def _sources() -> list[dict[str, Any]]:
    from archsim.price_sources import price_sources
    from energy_models.sources import PREFIXES

    ours = [{"name": name, "title": says, "package": OURS} for name, says in PREFIXES.items()]
    return [*ours, *_of_packages(price_sources())]


def _importers() -> list[dict[str, Any]]:
    from archsim import importers

    ours = [
        {"name": name, "title": says, "package": OURS} for name, says in importers.FORMATS.items()
    ]
    return [*ours, *_of_packages(importers.importers())]


def _objectives() -> list[dict[str, Any]]:
    from archsim.objectives import objective_entries, why_no_objective
    from archsim.sweeps.objectives import TITLES, UNITS

    rows = [
        {"name": name, "unit": unit, "title": TITLES[name], "package": OURS}
        for name, unit in UNITS.items()
    ]
    return rows + [
        {
            "name": name,
            "unit": found.unit,
            "title": first_line(found),
            "package": package_of(entry),
        }
        for name, entry in objective_entries().items()
        if (found := loaded(entry, why_no_objective)) is not None
    ]


def _of_packages(entries: Mapping[str, EntryPoint]) -> list[dict[str, Any]]:
    """What other packages add, as far as it is not broken."""
    return [
        {"name": name, "title": first_line(found), "package": package_of(entry)}
        for name, entry in entries.items()
        if (found := loaded(entry, no_call)) is not None
    ]


def first_line(thing: Any) -> str:
    """Of what it says of itself; nothing of a dataclass that Python has put its fields to."""
    said = cleandoc(thing.__doc__ or "")
    if said.startswith(f"{getattr(thing, '__name__', None)}("):
        return ""
    return said.partition("\n")[0].rstrip(".")


LISTS = {
    "designs": _designs,
    "workloads": _workloads,
    "technologies": _technologies,
    "memories": _memories,
    "codecs": _codecs,
    "sources": _sources,
    "importers": _importers,
    "objectives": _objectives,
}


def list_things(
    what: Annotated[
        Literal[
            "designs",
            "workloads",
            "technologies",
            "memories",
            "codecs",
            "sources",
            "importers",
            "objectives",
        ]
        | None,
        typer.Argument(metavar="WHAT", help="What to list; without it, all."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    wide: Wide = False,
) -> None:
    """List the registered designs, the workloads that `run` knows, or what actions may cost.

    Also kinds of memory, codecs, sources of prices, formats of network files and objectives of
    sweeps, those that installed packages add among them.
    """
    warn_of_unknown_groups()
    chosen = [what] if what else list(LISTS)
    found = {name: LISTS[name]() for name in chosen}
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
