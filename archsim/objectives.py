"""Objectives of a sweep that packages add to cycles, prices and actions: `archsim.objectives`.

An entry of the group is called as the objective, which is its column in a study, and names a frozen
dataclass whose fields are its settings, all with defaults (`[objective.NAME]` in a space's file).
`test_error` is ours (`archsim.robust.error_objective`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from importlib.metadata import EntryPoint
from typing import Any, ClassVar, Protocol

from archsim.errors import InputError, require
from archsim.machine.design import Design
from archsim.plugins import lacking, needed, package_of, plugins
from archsim.records import build, check_keys
from workloads.layers import Network

GROUP = "archsim.objectives"


class Objective(Protocol):
    """What an entry's dataclass answers.  unit: of the values; "" where they have none."""

    unit: ClassVar[str]

    @property
    def network(self) -> Network | None:
        """The network that it is of, where it is of one alone: it stands for the space's networks
        if these are left out."""
        ...

    def check(self, design: Design, network: Network) -> None:
        """Raise `InputError` where there is no such value of this machine on this network."""
        ...

    def value(self, design: Design, network: Network) -> float:
        """Of a point; less is better.  Raises `InputError` for a design that is refused."""
        ...


ANSWERS = ("unit", "network", "check", "value")


def objective_entries() -> Mapping[str, EntryPoint]:
    """The entries by name, not yet loaded."""
    return plugins(GROUP)


def objective_kind(name: str) -> type[Any]:
    """The dataclass of an entry.  Raises `InputError`, with package and entry, for a broken one."""
    return needed(objective_entries()[name], why_no_objective)


def why_no_objective(found: Any) -> str:
    """Why what an entry names is no objective; "" if it is one."""
    if not (isinstance(found, type) and is_dataclass(found)):
        return "it must be a dataclass"
    for one in fields(found):
        if one.default is MISSING and one.default_factory is MISSING:
            return f"its setting {one.name} has no default"
    return lacking(found, ANSWERS)


def objective_of(name: str, settings: Mapping[str, Any]) -> Objective:
    """An objective with these settings.  Raises `InputError` for one that it has not."""
    kind, where = objective_kind(name), f"objective.{name}"
    check_keys(where, settings, [one.name for one in fields(kind)])
    for one in fields(kind):
        value = settings.get(one.name, "")
        wrong = str(one.type) == "str" and not isinstance(value, str)
        require(not wrong, f"{where}: {one.name} must be a text, not {value!r}")
    return build(where, kind, dict(settings))


def unit_of(name: str) -> str | None:
    """The unit of an entry's values; None where no usable entry is called so."""
    if name not in objective_entries():
        return None
    try:
        return str(objective_kind(name).unit)
    except InputError:
        return None


def measured(objective: Objective, name: str, design: Design, network: Network) -> float:
    """Its value of a point.  Raises `InputError` where that is no finite number."""
    found: Any = objective.value(design, network)
    try:
        value = float(found)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        package = package_of(objective_entries()[name])
        raise InputError(f"{name} of package {package} must be a finite number, not {found!r}")
    return value


__all__ = [
    "GROUP",
    "Objective",
    "measured",
    "objective_entries",
    "objective_kind",
    "objective_of",
    "unit_of",
    "why_no_objective",
]
