"""What a sweep can be asked for, by the name of its column."""

from __future__ import annotations

from collections.abc import Iterable

from archsim.errors import InputError, nearest

UNITS = {
    "cycles": "cycles",
    "seconds": "s",
    "energy_pj": "pJ",
    "edp_pj_s": "pJ·s",
    "area_um2": "µm²",
    "footprint_bytes": "bytes",
}
"""cycles: of all layers.  seconds: cycles at the design's clock (`clock_hz`).  energy_pj: dynamic
and static, of the layers that take cycles (`archsim.energy.account`).  edp_pj_s: energy × seconds.
area_um2: of all components that have a source.  footprint_bytes: of the on-chip memories, all words
of all of them.  Every other objective is an action, counted over all layers."""

SHORT = {
    "energy": "energy_pj",
    "edp": "edp_pj_s",
    "area": "area_um2",
    "footprint": "footprint_bytes",
}
"""What people type."""

PRICED = frozenset(("energy_pj", "edp_pj_s", "area_um2"))
"""Those that hang on a technology."""

OF_DESIGN = frozenset(("area_um2", "footprint_bytes"))
"""Those that a design has whatever it computes."""

SUMMED_APART = frozenset(("edp_pj_s",))
"""Those whose value over several networks is not the sum of their values."""


def column_of(name: str) -> str:
    """The column of an objective as it is typed: "energy" is `energy_pj`."""
    return SHORT.get(name, name)


def titled(name: str) -> str:
    """A field or an objective with its unit."""
    unit = UNITS.get(name, name)
    return name if unit == name else f"{name} ({unit})"


def check_actions(wanted: Iterable[str], known: Iterable[str], machine: str) -> None:
    """Raise `InputError` for an objective that a machine cannot give."""
    listed = sorted({*UNITS, *known})
    for name in wanted:
        if name not in listed:
            hint = nearest(name, [*SHORT, *listed])
            raise InputError(f"objectives: {machine} machines give no {name!r}; {hint}")


__all__ = ["OF_DESIGN", "PRICED", "SHORT", "UNITS", "check_actions", "column_of", "titled"]
