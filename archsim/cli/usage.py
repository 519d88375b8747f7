"""What is typed wrongly, told in the one line that all bad input is told in."""

from __future__ import annotations

from typing import Any

import typer

UsageError: Any = typer.BadParameter.__mro__[1]
"""The base of all that typer refuses, which it has no public name for."""


def usage_line(error: Any) -> str:
    """What is wrong, and where it is told what would be right."""
    text = " ".join(error.format_message().replace("Value error, ", "").split()).rstrip(".")
    path = error.ctx.command_path if error.ctx is not None else "archsim"
    return f"{text[:1].lower()}{text[1:]}; see {path} --help"


def is_help(error: Any) -> bool:
    """Whether nothing was typed, and help is what is wanted."""
    return type(error).__name__ == "NoArgsIsHelpError"
