"""What the best mapping is the best by: cycles, bytes, energy, or energy times cycles.

Of two mappings that are equal by it, the second key decides: of cycles the bytes, of the others the
cycles.  Every key grows with every count (prices are not negative), so what bounds all counts from
below (`archsim.tiled.bound`) bounds the key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from archsim.errors import InputError, nearest
from archsim.kernels import kernel
from archsim.numbers import IntArray
from archsim.technologies import load_technology
from archsim.tiled import machine_vector as mc
from archsim.tiled.bound import (
    BIAS_WRITES,
    BYTES,
    CYCLES,
    IFMAP_READS,
    IFMAP_WRITES,
    MOVING,
    OFMAP_WRITES,
    ROWS,
    STATIC,
    SUMS,
    WEIGHT_READS,
    WEIGHT_WRITES,
)
from energy_models.errors import EnergyError
from energy_models.pricing import price
from energy_models.technology import Technology

if TYPE_CHECKING:
    from archsim.tiled.design import CoreDesign

FloatArray = npt.NDArray[np.float64]
ObjectiveName = Literal["cycles", "energy", "edp", "bytes"]
OBJECTIVES: tuple[ObjectiveName, ...] = ("cycles", "energy", "edp", "bytes")

BY_CYCLES, BY_ENERGY, BY_EDP, BY_BYTES = range(4)

PRICED = OFMAP_WRITES + 1
"""Columns of a bound that have a price; that of CYCLES is leakage, that of BYTES 0."""

_COUNTED: tuple[tuple[int, tuple[str, ...]], ...] = (
    (CYCLES, ("cycle",)),
    (IFMAP_WRITES, ("ifmap_write",)),
    (WEIGHT_WRITES, ("weight_write",)),
    (BIAS_WRITES, ("bias_write",)),
    (IFMAP_READS, ("ifmap_read",)),
    (WEIGHT_READS, ("weight_read",)),
    (SUMS, ("accumulator_read", "accumulator_write")),
    (MOVING, ("array_step",)),
    (STATIC, ("stationary_step",)),
    (ROWS, ("output_read",)),
    (OFMAP_WRITES, ("ofmap_write",)),
)

_MOVED = (
    ("ifmap_bytes", IFMAP_WRITES, mc.IFMAP_WORD_BYTES),
    ("weight_bytes", WEIGHT_WRITES, mc.WEIGHT_WORD_BYTES),
    ("bias_bytes", BIAS_WRITES, mc.BIAS_WORD_BYTES),
    ("ofmap_bytes", OFMAP_WRITES, mc.OFMAP_WORD_BYTES),
)


@kernel
def energy_of(found: IntArray, prices: FloatArray) -> float:
    """Energy of counts, but for what every tiling of a layer has alike (its MACs)."""
    total = 0.0
    for column in range(PRICED):
        total += prices[column] * found[column]
    return total


@kernel
def keys_of(found: IntArray, prices: FloatArray, objective: int) -> tuple[float, float]:
    """What a mapping of such counts is measured by: the first key, and the second of equals."""
    if objective == BY_CYCLES:
        return float(found[CYCLES]), float(found[BYTES])
    if objective == BY_BYTES:
        return float(found[BYTES]), float(found[CYCLES])
    energy = energy_of(found, prices)
    if objective == BY_EDP:
        energy *= found[CYCLES]
    return energy, float(found[CYCLES])


def objective_number(name: str) -> int:
    """Of an objective's name, for the kernels.  Raises `InputError` for others."""
    known: tuple[str, ...] = OBJECTIVES
    if name not in known:
        raise InputError(f"there is no objective {name!r}; {nearest(name, known)}")
    return known.index(name)


def prices_of(design: CoreDesign, technology: Technology | str) -> FloatArray:
    """What a count of each column costs on a design: [PRICED].

    Raises `InputError` where a technology has no figure for a component, or counts of a memory hang
    on values, which no mapping knows.
    """
    try:
        if isinstance(technology, str):
            technology = load_technology(technology)
        found = price(technology, design.components)
    except EnergyError as error:
        raise InputError(str(error)) from error
    each = dict(zip(found.counted, found.dynamic.sum(axis=1).tolist(), strict=True))
    prices = np.zeros(PRICED)
    for column, names in _COUNTED:
        prices[column] = sum(each.pop(name, 0.0) for name in names)
    for name, column, word in _MOVED:
        prices[column] += each.pop(name, 0.0) * float(design.machine[word])
    each.pop("mac", None)
    if each:
        raise InputError(
            f"objective: energy is not known before the values are: {min(each)} of this design "
            "hangs on them; take cycles or bytes"
        )
    if found.technology.unit == "pJ":
        prices[CYCLES] += float(found.static_pj([1 / design.clock_hz]).sum())
    return prices


NO_PRICES: FloatArray = np.zeros(PRICED)
"""Of objectives that need none."""

NO_PRICES.flags.writeable = False

__all__ = ["NO_PRICES", "OBJECTIVES", "ObjectiveName", "objective_number", "prices_of"]
