"""`archsim show`: print a design or technology as TOML, or a workload's layers."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import cleandoc
from pathlib import Path
from textwrap import wrap
from typing import Annotated

import typer

from archsim.cli.machine_options import TYPED, TakesMachineOptions, machine_options
from archsim.cli.options import Force, Wide
from archsim.cli.show_mapping import USAGE, Shown
from archsim.errors import InputError, nearest, require
from archsim.machine.option import Option


def show(  # noqa: PLR0913
    context: typer.Context,
    design: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A registered design, a TOML file, a kind of design, a technology, a workload, or "
            "mapping.",
        ),
    ],
    of: Annotated[
        list[str] | None,
        typer.Argument(metavar="[DESIGN WORKLOAD]", help="Of mapping: what is mapped to what."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change the design first: rows=16."),
    ] = None,
    layer: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of mapping: this layer alone.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Of mapping: as JSON.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE.toml", help="Of mapping: a new file for --mapping."
        ),
    ] = None,
    force: Force = False,
    wide: Wide = False,
) -> None:
    """Print a design or a technology as TOML, complete, ready to edit and to give back.

    Behind a design, as comments, the options of its machine for `archsim run` and `archsim trace`;
    of a kind of design, what it is and which designs are of it; of a workload, its layers with
    their shapes.  `archsim show mapping DESIGN WORKLOAD` prints how layers are mapped, as nests of
    loops.
    """
    if design == "mapping":
        shown = Shown(layer=layer, as_json=as_json, output=output)
        _show_mapping(context, of or [], settings, shown)
        return
    given = of or layer or as_json or output or context.meta.get(TYPED)
    require(not given, f"{USAGE} takes more than a name; archsim show {design} does not")
    from archsim.technologies import use_installed
    from energy_models.technology import technology_toml
    from energy_models.technology_files import technology_names

    use_installed()
    if design in technology_names():
        require(not settings, "--set changes designs; edit a technology's file")
        print(technology_toml(design), end="")
        return
    from archsim.machine.registry import design_toml, load_design, registered_names, with_settings

    if design in registered_names() or design.endswith(".toml"):
        found = with_settings(load_design(design), settings or [])
        print(design_toml(found), end="")
        _print_options(found.options)
    elif not _show_kind(design, settings):
        _show_workload(design, settings, wide=wide)


def _show_mapping(
    context: typer.Context, names: Sequence[str], settings: list[str] | None, shown: Shown
) -> None:
    from archsim.cli.show_mapping import show_mapping
    from archsim.machine.registry import load_design, with_settings

    require(
        len(names) == 2,
        f"{USAGE} takes a design and a workload, not {' '.join(names) or 'nothing'}",
    )
    design = with_settings(load_design(names[0]), settings or [])
    show_mapping(design, names[1], machine_options(context, design), shown)


def _print_options(options: Sequence[Option]) -> None:
    """As comments, so that what is printed is a design's file."""
    if options:
        print("\n# options of `archsim run` and `archsim trace`:")
    for option in options:
        head = f"#   {option.usage}  "
        for line in wrap(option.help, 100 - len(head)):
            print(f"{head}{line}")
            head = "#" + " " * (len(head) - 1)


def _show_kind(name: str, settings: list[str] | None) -> bool:
    """What the designs of a kind have in common; False where nothing is of it."""
    from archsim.machine.registry import registered

    alike = {one: design for one, design in registered().items() if design.kind == name}
    if not alike:
        return False
    require(not settings, f"--set changes designs, and {name} is a kind: {', '.join(alike)}")
    first = next(iter(alike.values()))
    said = cleandoc(type(first).__doc__ or "").replace("`", "")
    print("\n".join(f"# {line}".rstrip() for line in said.splitlines()))
    print(f"# designs of this kind: {', '.join(alike)}")
    _print_options(first.options)
    return True


def _show_workload(name: str, settings: list[str] | None, *, wide: bool) -> None:
    """Its layers.  Raises `InputError` for a name that is of nothing that could be shown."""
    from archsim.importers import any_network, is_network_file
    from archsim.machine.registry import registered_names
    from energy_models.technology_files import technology_names
    from workloads.named import is_network, network_names

    if not (is_network(name) or is_network_file(name)):
        known = [*registered_names(), *technology_names(), *network_names()]
        raise InputError(
            f"nothing is called {name!r}; {nearest(name, known)} (archsim list has all names)"
        )
    require(not settings, f"--set changes designs, and {name} is a workload")
    from archsim.cli.show_network import print_network

    print_network(any_network(name), wide=wide)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("show", cls=TakesMachineOptions)(show)
