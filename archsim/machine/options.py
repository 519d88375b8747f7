"""The options of all kinds of machines: which kind has which, and how one is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from archsim.errors import require
from archsim.machine.design import Design
from archsim.machine.option import Option, Options
from archsim.machine.registry import is_ours, registered

By = Callable[[Option], str]


def _by_name(option: Option) -> str:
    return option.name


def _by_word(option: Option) -> str:
    return option.word


def options_of_kinds() -> dict[str, tuple[Option, ...]]:
    """Of every kind of the registered designs that has some, by its name, ours first."""
    designs = {design.kind: design for design in registered().values()}
    order = sorted(designs, key=lambda kind: (not is_ours(designs[kind]), kind))
    return {kind: designs[kind].options for kind in order if designs[kind].options}


def taken(design: Design, given: Mapping[str, Any]) -> Options:
    """The options that were chosen of a design's machine, by name.

    given: by name; those that are None, False or empty were not chosen.
    Raises `InputError` for one that the machine does not have, naming those that have it, and for
    a name that no machine has, chosen or not.
    """
    own = {option.name for option in design.options}
    for name, value in given.items():
        if name not in own and (value or not _kinds_with(name, _by_name)):
            _refuse(design, name, _by_name)
    return {name: value for name, value in given.items() if value}


def read_options(design: Design, typed: Mapping[str, Any]) -> Options:
    """The options of a design's machine from what was typed, by word: a text, True of a switch.

    Raises `InputError` for one that the machine does not have, and for texts that are no value.
    """
    own = {option.word: option for option in design.options}
    found: dict[str, Any] = {}
    for word, text in typed.items():
        if word not in own:
            _refuse(design, word, _by_word)
        option = own[word]
        same = (option.read is None) == (text is True)
        require(same, f"{word} of {design.kind} machines is shadowed by another of that name")
        found[option.name] = True if option.read is None else option.read(text)
    return found


def _kinds_with(name: str, by: By) -> list[str]:
    return [
        kind
        for kind, options in options_of_kinds().items()
        if any(by(option) == name for option in options)
    ]


def _refuse(design: Design, name: str, by: By) -> None:
    """Say which kinds have it, and what this one has."""
    others = _kinds_with(name, by)
    elsewhere = f", which {_listed(others)} machines have" if others else ""
    own = ", ".join(f"{by(option)} ({option.says})" for option in design.options)
    has = f"they have: {own}" if own else "they have none"
    require(False, f"{design.kind} machines have no option {name}{elsewhere}; {has}")


def _listed(names: list[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


__all__ = ["options_of_kinds", "read_options", "taken"]
