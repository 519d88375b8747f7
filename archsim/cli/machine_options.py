"""Options of machines on the command line: those that the kinds declare, of every installed one.

They are looked for where they are needed: in help, in shell completion, and where a command is
given a word that is none of its own.  A run without any imports no kind but its design's.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from archsim.machine.design import Design
from archsim.machine.option import Option, Options
from archsim.plugins import PluginWarning

ALL, TYPED = "archsim.all_machine_options", "archsim.typed_machine_options"
"""Keys of a command's context: whether they are wanted, and what was typed, by word."""


class TakesMachineOptions(TyperCommand):
    """A command that takes the options of machines beside its own."""

    def get_params(self, ctx: Any) -> list[Any]:
        own: list[Any] = super().get_params(ctx)
        wanted = ctx.resilient_parsing or ctx.meta.get(ALL)
        return [*own, *_parameters(_words(own))] if wanted else own

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = _words(super().get_params(ctx)) - {"--help"}
        given = {word.partition("=")[0] for word in args if word.startswith("--")}
        ctx.meta[ALL] = bool(given - known)
        return super().parse_args(ctx, args)


def machine_options(context: typer.Context, design: Design) -> Options:
    """What was typed, as a design's machine takes it.

    Raises `InputError` for an option that it does not have, and for a text that is no value.
    """
    from archsim.machine.options import read_options

    return read_options(design, context.meta.get(TYPED, {}))


def _words(parameters: list[Any]) -> set[str]:
    return {word for one in parameters for word in (*one.opts, *one.secondary_opts)}


def _parameters(taken: set[str]) -> list[Any]:
    """One for each word, with the kinds that have it; made by typer, of a function with them."""
    found: dict[str, list[tuple[Option, list[str]]]] = {}
    for kind, option in _declared():
        alike = found.setdefault(option.word, [(option, [])])
        first, kinds = alike[0]
        if option.word in taken:
            _warn(kind, option, "the command has an option of that name")
        elif bool(option.value) != bool(first.value):
            given = "a value" if first.read else "none"
            _warn(kind, option, f"that of {kinds[0]} machines takes {given}")
        else:
            _of_same_help(alike, option).append(kind)
    wanted = [_argument(alike) for alike in found.values() if alike[0][1]]

    def takes(**_: Any) -> None:
        """What has the options."""

    takes.__annotations__ = {one.name: one.annotation for one in wanted}
    vars(takes)["__signature__"] = Signature(wanted)
    app = typer.Typer(add_completion=False)
    app.command(rich_help_panel=None)(takes)
    command: Any = typer.main.get_command(app)
    return command.params


def _declared() -> Iterator[tuple[str, Option]]:
    from archsim.machine.options import options_of_kinds

    for kind, options in options_of_kinds().items():
        for option in options:
            yield kind, option


def _warn(kind: str, option: Option, why: str) -> None:
    text = f"option {option.word} of {kind} machines cannot be used: {why}"
    warnings.warn(text, PluginWarning, stacklevel=2)


def _of_same_help(alike: list[tuple[Option, list[str]]], option: Option) -> list[str]:
    """The kinds whose option of that word says the same; added if it is none yet."""
    for one, kinds in alike:
        if one.help == option.help:
            return kinds
    alike.append((option, []))
    return alike[-1][1]


def _argument(alike: list[tuple[Option, list[str]]]) -> Parameter:
    """Of options of one word, with the kinds that have each."""
    option = alike[0][0]
    says = " ".join(f"Of {', '.join(kinds)}: {one.help}." for one, kinds in alike)

    def keep(context: typer.Context, value: Any) -> Any:
        if value:
            context.meta.setdefault(TYPED, {})[option.word] = value
        return value

    switch = option.read is None
    made: Any = typer.Option(
        option.word,
        metavar=option.value or None,
        expose_value=False,
        callback=keep,
        show_default=False,
        help=says,
    )
    kind: Any = bool if switch else Path if option.value.startswith("FILE") else str
    annotation: Any = Annotated[kind | None, made]
    name = f"machine_{option.word.removeprefix('--').replace('-', '_')}"
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


__all__ = ["TakesMachineOptions", "machine_options"]
