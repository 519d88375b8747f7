"""Units that tables may print, and what they are in pJ, µm² and mW."""

from __future__ import annotations

from collections.abc import Mapping

from energy_models.errors import EnergyError, nearest

RELATIVE = "MAC"
"""The unit of energies that a publication gives as multiples of one multiply-accumulate."""

UNITS: Mapping[str, Mapping[str, float]] = {
    "energy": {"fJ": 1e-3, "pJ": 1.0, "nJ": 1e3, RELATIVE: 1.0},
    "area": {"um2": 1.0, "mm2": 1e6},
    "leakage": {"nW": 1e-6, "uW": 1e-3, "mW": 1.0},
}
"""For each quantity, its units in pJ, µm² or mW; relative energies stay as they are."""


def factor(unit: str, quantity: str) -> float:
    """What a figure in the unit is multiplied by to be in pJ, µm² or mW.

    Raises `EnergyError` for an unknown quantity and for a unit which is not one of the quantity.
    """
    if quantity not in UNITS:
        raise EnergyError(f"no quantity {quantity!r}; {nearest(quantity, UNITS)}")
    known = UNITS[quantity]
    if unit not in known:
        raise EnergyError(f"no unit {unit!r} of {quantity}; {nearest(unit, known)}")
    return known[unit]
