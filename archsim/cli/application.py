"""The command line of `archsim`: the verbs of every installed package, and options of its own."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from archsim.cli.verbs import Verbs
from archsim.version import VERSION

HELP = """Simulate deep-learning accelerators cycle by cycle, and generate their hardware.

Examples:

\b
  archsim run edge-16 squeezenet-imagenet    a network on a design
  archsim emit edge-16 -o core.v             the same design as Verilog
  archsim verify edge-16                     the proof that the two are equal
"""


def _version(asked: bool) -> None:
    if asked:
        print(f"archsim {VERSION}")
        raise typer.Exit


def _take_threads(count: int | None) -> None:
    """While options are read: before a command is imported, and with it linear algebra."""
    if count is not None or "ARCHSIM_THREADS" in os.environ:
        from workloads.threads import set_threads

        set_threads(count)


def application() -> typer.Typer:
    """The command line with every registered verb."""
    app = typer.Typer(
        cls=Verbs,
        help=HELP,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )

    @app.callback()
    def _options(  # pyright: ignore[reportUnusedFunction]
        _show: bool = typer.Option(
            False, "--version", callback=_version, is_eager=True, help="Print the version."
        ),
        limit: Annotated[
            list[str] | None,
            typer.Option(metavar="NAME=NUMBER", help="Raise a limit on sizes: tiles=20000000."),
        ] = None,
        _threads: int | None = typer.Option(
            None,
            "--threads",
            metavar="NUMBER",
            callback=_take_threads,
            help="Threads of this process; without it, one for each processor.",
        ),
    ) -> None:
        if limit:
            from workloads.limits import set_limits

            set_limits(limit)

    return app
