"""What a call of `archsim` left behind, and the two ways in which it may end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Said:
    """Exit code, stdout and stderr of a call."""

    code: int
    out: str
    err: str


Call = Callable[..., Said]

SMALL = ("--set", "rows=2", "--set", "columns=2")
"""Settings of a systolic design that make it quick to emit."""


def good(said: Said) -> str:
    """What it printed, if all went well and nothing was said on stderr."""
    assert (said.code, said.err) == (0, "")
    return said.out


def refused(said: Said) -> str:
    """The one line of a refusal."""
    assert said.code == 2, said
    assert said.out == ""
    assert said.err.startswith("archsim: ")
    assert said.err.endswith("\n")
    assert said.err.count("\n") == 1
    assert "Traceback" not in said.err
    return said.err.removeprefix("archsim: ").removesuffix("\n")


TRAIN_FOR_HOURS = "train"
"""A group whose commands work for hours; tests/training has tests of its own."""


def commands() -> list[str]:
    """All commands, those of a group as "group command"."""
    from archsim.cli.verbs import command_of, verbs

    found: list[str] = []
    for verb in verbs():
        inner = getattr(command_of(verb), "commands", {})
        grouped = inner and verb != TRAIN_FOR_HOURS
        found += [f"{verb} {name}" for name in inner] if grouped else [verb]
    return found


def parameters_of(name: str) -> list[Any]:
    """Arguments and options of a command, those that machines bring among them."""
    from archsim.cli.verbs import command_of

    verb, _, inner = name.partition(" ")
    command: Any = command_of(verb)
    if inner:
        command = command.commands[inner]
    context = command.context_class(command, info_name=name, resilient_parsing=True)
    return command.get_params(context)
