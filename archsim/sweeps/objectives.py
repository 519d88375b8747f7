"""What a sweep can be asked for, by the name of its column."""

from __future__ import annotations

from collections.abc import Iterable

from archsim.errors import InputError, nearest
from archsim.objectives import objective_entries, unit_of

UNITS = {
    "cycles": "cycles",
    "seconds": "s",
    "energy_pj": "pJ",
    "edp_pj_s": "pJ·s",
    "area_um2": "µm²",
    "footprint_bytes": "bytes",
}
"""Besides these there are the entries of `archsim.objectives`, measured point by point,
`test_error` among them; every other objective is an action, counted over all layers."""

TITLES = {
    "cycles": "of all layers",
    "seconds": "cycles at the design's clock",
    "energy_pj": "dynamic and static, of the layers that take cycles",
    "edp_pj_s": "energy × seconds",
    "area_um2": "of all components that have a source",
    "footprint_bytes": "of all words of the on-chip memories",
}

SHORT = {
    "energy": "energy_pj",
    "edp": "edp_pj_s",
    "area": "area_um2",
    "footprint": "footprint_bytes",
    "error": "test_error",
}
"""What people type."""

MORE_IS_BETTER = {"accuracy": "test_error"}
"""What is asked for, and the objective that says the same with less being better."""

PRICED = frozenset(("energy_pj", "edp_pj_s", "area_um2"))
"""Those that hang on a technology."""

OF_DESIGN = frozenset(("area_um2", "footprint_bytes"))
"""Those that a design has whatever it computes."""


def column_of(name: str) -> str:
    """The column of an objective as it is typed: "energy" is `energy_pj`."""
    return SHORT.get(name, name)


def titled(name: str) -> str:
    """A field or an objective with its unit."""
    unit = unit_told(name) or name
    return name if unit == name else f"{name} ({unit})"


def unit_told(name: str) -> str:
    """The unit of an objective; "" of what has none, or is a count."""
    return UNITS.get(name) or unit_of(name) or ""


def measured_names(names: Iterable[str]) -> tuple[str, ...]:
    """Those that are entries of `archsim.objectives`, and are measured point by point."""
    entries = objective_entries()
    return tuple(name for name in names if name not in UNITS and name in entries)


def check_actions(wanted: Iterable[str], known: Iterable[str], machine: str) -> None:
    """Raise `InputError` for an objective that a machine cannot give."""
    listed = sorted({*UNITS, *objective_entries(), *known})
    for name in wanted:
        if name not in listed:
            same = MORE_IS_BETTER.get(name)
            hint = nearest(name, [*SHORT, *listed])
            if same is not None:
                hint = f"less of an objective is better: ask for {same}"
            raise InputError(f"objectives: {machine} machines give no {name!r}; {hint}")


__all__ = [
    "OF_DESIGN",
    "PRICED",
    "SHORT",
    "TITLES",
    "UNITS",
    "check_actions",
    "column_of",
    "measured_names",
    "titled",
    "unit_told",
]
