"""`archsim show`: print a design or technology as TOML, or a workload's layers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from archsim.cli.options import Wide
from archsim.errors import InputError, nearest, require


def show(
    design: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A registered design, a TOML file, a technology, or a workload."
        ),
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change the design first: rows=16."),
    ] = None,
    wide: Wide = False,
) -> None:
    """Print a design or a technology as TOML, complete, ready to edit and to give back.

    Of a workload, its layers with their shapes.
    """
    from energy_models.technology import technologies, technology_toml

    if design in technologies():
        require(not settings, "--set changes designs; edit a technology's file")
        print(technology_toml(design), end="")
        return
    from archsim.machine.registry import design_toml, load_design, registered_names, with_settings

    if design not in registered_names() and not design.endswith(".toml"):
        _show_workload(design, settings, wide=wide)
        return
    print(design_toml(with_settings(load_design(design), settings or [])), end="")


def _show_workload(name: str, settings: list[str] | None, *, wide: bool) -> None:
    """Its layers.  Raises `InputError` for a name that is of nothing that could be shown."""
    from archsim.machine.registry import registered_names
    from energy_models.technology import technologies
    from workloads.named import network_named, network_names

    is_file = Path(name).suffix in (".onnx", ".tflite")
    if name not in network_names() and not is_file:
        known = [*registered_names(), *technologies(), *network_names()]
        raise InputError(
            f"nothing is called {name!r}; {nearest(name, known)} (archsim list has all names)"
        )
    require(not settings, f"--set changes designs, and {name} is a workload")
    from archsim.cli.show_network import print_network

    print_network(network_named(name), wide=wide)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("show")(show)
