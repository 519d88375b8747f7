"""The `internal_power` tables of a Liberty file, read at one input transition time."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["InternalEnergy", "Units", "internal_energy"]

_PREFIXES = {"": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12, "f": 1e-15}
_NO_LOAD = (0.0,)


@dataclass(frozen=True, kw_only=True)
class InternalEnergy:
    """Energy that a cell spends inside itself at one transition of a pin, by the pin's load.

    loads_pf: rising [n]; rise_pj, fall_pj: [n], the mean over the conditions (related pins,
    `when` clauses) which the library tells apart. A library may book the energy of charging the
    load on the rise and take it off the fall (SkyWater's does), so only their mean has a meaning
    by itself.
    """

    loads_pf: tuple[float, ...]
    rise_pj: tuple[float, ...]
    fall_pj: tuple[float, ...]

    def mean_pj(self, load_pf: float = 0.0) -> float:
        """Energy of a transition, mean of rise and fall, at a load; held constant outside."""
        loads, high = self.loads_pf, bisect_right(self.loads_pf, load_pf)
        both = [(rise + fall) / 2 for rise, fall in zip(self.rise_pj, self.fall_pj, strict=True)]
        if high == 0 or high == len(loads):
            return both[min(high, len(loads) - 1)]
        share = (load_pf - loads[high - 1]) / (loads[high] - loads[high - 1])
        return both[high - 1] + share * (both[high] - both[high - 1])


@dataclass(frozen=True, kw_only=True)
class Units:
    """A library's units in ours, its table templates, and the slew at which to read it.

    templates: for each, the variables of its axes and their indices.
    """

    capacitance_pf: float
    energy_pj: float
    leakage_mw: float
    slew: float
    templates: Mapping[str, tuple[tuple[str, ...], tuple[list[float], ...]]]

    @staticmethod
    def of(library: Any, slew_ns: float) -> Units:
        """Of a parsed library group. Raises `ValueError` for a unit that is not understood."""
        farad = 1e-12
        if stated := library.get_attributes("capacitive_load_unit"):
            amount, unit = stated[0]
            farad = float(str(amount)) * _scale(f"1{_text(unit)}", "f")
        volt = _unit(library, "voltage_unit", "V", "1V")
        templates = {
            _text(group.args[0]): (
                tuple(_text(v) for v in (_first(group, f"variable_{i}") for i in (1, 2, 3)) if v),
                tuple(_axis(group, i) for i in (1, 2, 3) if group.get_attributes(f"index_{i}")),
            )
            for group in library.groups
            if group.group_name in ("power_lut_template", "lu_table_template")
        }
        return Units(
            capacitance_pf=farad / 1e-12,
            energy_pj=volt**2 * farad / 1e-12,
            leakage_mw=_unit(library, "leakage_power_unit", "W", "1nW") / 1e-3,
            slew=slew_ns * 1e-9 / _unit(library, "time_unit", "s", "1ns"),
            templates=templates,
        )


def internal_energy(pin: Any, units: Units) -> InternalEnergy | None:
    """The mean over all `internal_power` groups of a pin; None if it has none."""
    curves: dict[str, list[tuple[list[float], list[float]]]] = {"rise": [], "fall": []}
    for group in pin.get_groups("internal_power"):
        for edge, found in curves.items():
            for table in [*group.get_groups(f"{edge}_power"), *group.get_groups("power")]:
                found.append(_curve(table, units))
    if not curves["rise"] and not curves["fall"]:
        return None
    loads = sorted({load for found in curves.values() for axis, _ in found for load in axis})
    mean = {
        edge: tuple(
            float(energy) * units.energy_pj
            for energy in np.mean([np.interp(loads, *curve) for curve in found], axis=0)
        )
        if found
        else (0.0,) * len(loads)
        for edge, found in curves.items()
    }
    return InternalEnergy(
        loads_pf=tuple(load * units.capacitance_pf for load in loads),
        rise_pj=mean["rise"],
        fall_pj=mean["fall"],
    )


def _curve(table: Any, units: Units) -> tuple[list[float], list[float]]:
    """One table at the slew: its loads and energies, in the library's units."""
    name = _text(table.args[0]) if table.args else "scalar"
    values = np.array([_floats(row) for row in _first(table, "values")])
    if values.size == 1:
        return list(_NO_LOAD), [float(values.flat[0])]
    if name not in units.templates:
        raise ValueError(f"table template {name} is not in the library")
    variables, indices = units.templates[name]
    axes = [
        _axis(table, i + 1) if table.get_attributes(f"index_{i + 1}") else indices[i]
        for i in range(len(variables))
    ]
    grid = values.reshape([len(axis) for axis in axes])
    if "capacitance" not in variables[-1]:
        axes, grid = axes[::-1], grid.T
    if len(axes) == 1:
        if "capacitance" in variables[0]:
            return axes[0], [float(value) for value in grid]
        return list(_NO_LOAD), [float(np.interp(units.slew, axes[0], grid))]
    at_slew = [float(np.interp(units.slew, axes[0], column)) for column in grid.T]
    return axes[1], at_slew


def _text(value: Any) -> str:
    return str(value).strip('"').strip()


def _first(group: Any, name: str) -> Any:
    found = group.get_attributes(name)
    return found[0] if found else None


def _floats(row: Any) -> list[float]:
    return [float(part) for part in _text(row).replace(",", " ").split()]


def _axis(group: Any, number: int) -> list[float]:
    return [x for row in _first(group, f"index_{number}") for x in _floats(row)]


def _unit(library: Any, name: str, base: str, default: str) -> float:
    stated = _first(library, name)
    try:
        return _scale(_text(stated) if stated is not None else default, base)
    except ValueError:
        raise ValueError(f"{name} {_text(stated)!r} is not understood") from None


def _scale(text: str, base: str) -> float:
    """ "10pF" in farads, for base "f"; prefixes m to f."""
    match = re.fullmatch(rf"(\d*\.?\d*)\s*([munpf]?){base}", text, re.IGNORECASE)
    if match is None:
        raise ValueError(f"unit {text!r} is not understood")
    return float(match[1] or 1) * _PREFIXES[match[2].lower()]
