"""What a user can choose of a machine for a run, beside its sizes: declared by the kind of design.

A kind lists its options (`Design.options`).  `archsim.simulate` takes them by name; `archsim run`
and `archsim trace` by word, so that `--help` and shell completion show those of every kind that is
installed; `archsim show` prints those of a design.  A machine without an option refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, cast

from archsim.errors import InputError, require, shorten
from workloads.digits import whole

Options = Mapping[str, Any]
"""What a user chose, by the name of the option; only options that the machine declares."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """Something that can be chosen.

    name: as an argument of `archsim.simulate`.  says: what it is, in few words; more: of its
    values, behind that in the help.
    word: on the command line, "--mapping"; the name by default.
    value: what stands behind the word, "N" or "FILE.toml"; empty for a switch.
    read: makes what `simulate` takes of that text, raising `InputError`; None for a switch.
    """

    name: str
    says: str
    more: str = ""
    word: str = ""
    value: str = ""
    read: Callable[[str], Any] | None = None

    def __post_init__(self) -> None:
        require(self.name.isidentifier(), f"an option's name must be a name, not {self.name!r}")
        if not self.word:
            object.__setattr__(self, "word", f"--{self.name.replace('_', '-')}")
        letters = self.word.removeprefix("--")
        good = self.word.startswith("--") and letters.replace("-", "").isalnum()
        require(good, f"the word of option {self.name} must be like --name, not {self.word!r}")
        require(
            bool(self.value) == (self.read is not None),
            f"option {self.name} must have both a value and what reads it, or neither",
        )

    @property
    def usage(self) -> str:
        """As it is typed: "--mapping FILE.toml"."""
        return f"{self.word} {self.value}".rstrip()

    @property
    def help(self) -> str:
        """What it is, in full."""
        return " ".join(part for part in (self.says, self.more) if part)


def read_whole(word: str, least: int, most: int) -> Callable[[str], int]:
    """Reads a whole number from `least` to `most`, for `Option.read`."""

    def read(text: str) -> int:
        number = whole(text)
        if number is None or not least <= number <= most:
            asked = f"{word} must be a whole number from {least} to {most}"
            raise InputError(f"{asked}, not {shorten(text)!r}")
        return number

    return read


def option_record(options: Options) -> dict[str, Any]:
    """What was chosen, as plain data: records as dictionaries, what is no plain value as text."""
    return {name: _plain(value) for name, value in options.items()}


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        named = cast("Mapping[Any, Any]", value)
        return {str(key): _plain(one) for key, one in named.items()}
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


__all__ = ["Option", "Options", "option_record", "read_whole"]
