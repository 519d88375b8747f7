"""`archsim`: the verbs of every installed package, and one way to report bad input."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

import typer
from rich.console import Console

from archsim.errors import InputError
from archsim.version import VERSION
from workloads.errors import WorkloadError

BAD_INPUT = 2

HELP = """Simulate deep-learning accelerators cycle by cycle, and generate their hardware.

A first look:  archsim run edge-16 squeezenet-imagenet
The same design as Verilog, and the proof:  archsim emit edge-16 -o core.v; archsim verify edge-16
"""


def _version(asked: bool) -> None:
    if asked:
        print(f"archsim {VERSION}")
        raise typer.Exit


def application() -> typer.Typer:
    """The command line with every registered verb."""
    app = typer.Typer(
        help=HELP, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False
    )

    @app.callback()
    def _options(  # pyright: ignore[reportUnusedFunction]
        _show: bool = typer.Option(
            False, "--version", callback=_version, is_eager=True, help="Print the version."
        ),
    ) -> None: ...

    for entry in sorted(entry_points(group="archsim.commands"), key=lambda one: one.name):
        try:
            register = entry.load()
        except ModuleNotFoundError as error:
            _register_absent(app, entry.name, error.name or "?")
            continue
        register(app)
    return app


def _register_absent(app: typer.Typer, verb: str, module: str) -> None:
    """A verb whose package lacks a dependency says so when it is called."""

    def absent() -> None:
        raise InputError(f"{verb} needs the Python module {module}: pip install 'archsim[rtl]'")

    absent.__doc__ = f"Not available: needs the Python module {module}."
    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    app.command(verb, context_settings=settings)(absent)


def main() -> None:
    """Run the command line; bad input is one line on stderr and exit code 2."""
    try:
        application()()
    except (InputError, WorkloadError) as error:
        Console(stderr=True, soft_wrap=True, highlight=False).print(
            f"archsim: {error}", markup=False
        )
        sys.exit(BAD_INPUT)
    except BrokenPipeError:
        sys.exit(0)
