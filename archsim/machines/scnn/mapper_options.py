"""What a user chooses of how layers are cut, on sparse cores."""

from __future__ import annotations

from typing import Literal

from archsim.errors import InputError, nearest, require
from archsim.machine.option import Option, Options

Objective = Literal["cycles", "bytes"]
OBJECTIVES: tuple[Objective, ...] = ("cycles", "bytes")

SEARCHES = ("fast", "exact")


def _search(text: str) -> str:
    if text not in SEARCHES:
        raise InputError(f"a sparse core has no mapper {text!r}; {nearest(text, SEARCHES)}")
    return text


def objective_named(text: str) -> Objective:
    """Raises `InputError` for an unknown one."""
    for one in OBJECTIVES:
        if one == text:
            return one
    raise InputError(f"a sparse core has no objective {text!r}; {nearest(text, OBJECTIVES)}")


MAPPER = Option(
    name="mapper",
    says="how mappings are found",
    more="(fast, the default: the fewest strips, the largest groups; exact: the best of all)",
    value="NAME",
    read=_search,
)

OBJECTIVE = Option(
    name="objective",
    says="what mappings are the best by",
    more="(cycles, the default, or bytes)",
    value="NAME",
    read=objective_named,
)


def searched_by(options: Options) -> Objective | None:
    """The objective of a search for the best mappings; None where none is searched.

    Raises `InputError` for unknown names, for an objective of what is not searched, and for layers
    whose ofmaps stay, which are not cut.
    """
    mapper = _search(str(options.get("mapper", "fast")))
    if mapper == "fast":
        require("objective" not in options, "an objective is of the exact mapper; say it too")
        return None
    require(
        not options.get("chain"),
        "the exact mapper is of layers whose ofmaps leave; take it without a chain",
    )
    return objective_named(str(options.get("objective", "cycles")))


__all__ = ["MAPPER", "OBJECTIVE", "Objective", "objective_named", "searched_by"]
