"""Figures from one technology node and supply voltage to another.

Method: A. Stillmaker and B. Baas, "Scaling equations for the accurate prediction of CMOS device
performance from 180 nm to 7 nm", Integration, the VLSI Journal 58 (2017), 74-81.  Energy and delay
are polynomials in the supply voltage, fitted at each node to HSpice simulations of circuits
with PTM and ITRS models; a figure is multiplied by factor(to)/factor(from).  Area is a table of
ratios between nodes.  From 45 nm down the coefficients are those of the high-performance models.

The tables were taken from a public transcription of the paper's (repository wromaszkan/nodeScale).
A second one (Accelergy's hwcomponents) has the same areas from 130 nm down and the same energies,
45, 32 and 180 nm aside; a third the same delays at 45, 14, 10 and 7 nm; the paper's own corrigendum
the energy factors at 32 nm and 0.9 V (0.4571) and at 65 nm and 1.3 V (2.604).  The paper itself was
not re-read.  It has nothing on leakage.

Ours, not the paper's: nodes between its own (28, 40 nm) are interpolated with straight lines on
logarithmic axes, and a supply is accepted from 0.6 to 1.2 (delay) or 1.5 (energy) of the node's
nominal one, where the fitted polynomials still rise and fall as they should.
"""

from __future__ import annotations

import math
from functools import lru_cache

from energy_models.errors import require
from energy_models.estimator import Quantity
from energy_models.voltage import logic_energy_factor

METHOD = "Stillmaker and Baas 2017"

NODES_NM = (180, 130, 90, 65, 45, 32, 20, 16, 14, 10, 7)

AREA: dict[int, tuple[float, ...]] = {
    180: (1, 0.34, 0.15, 0.08, 0.053, 0.025, 0.011, 0.01, 0.0093, 0.0055, 0.0032),
    130: (2.9, 1, 0.44, 0.23, 0.16, 0.072, 0.033, 0.03, 0.027, 0.016, 0.0092),
    90: (6.6, 2.3, 1, 0.53, 0.35, 0.16, 0.075, 0.067, 0.061, 0.036, 0.021),
    65: (12, 4.3, 1.9, 1, 0.66, 0.31, 0.14, 0.13, 0.12, 0.068, 0.039),
    45: (19, 6.4, 2.8, 1.5, 1, 0.46, 0.21, 0.19, 0.17, 0.1, 0.059),
    32: (40, 14, 6.1, 3.3, 2.2, 1, 0.46, 0.41, 0.38, 0.22, 0.13),
    20: (88, 30, 13, 7.1, 4.7, 2.2, 1, 0.89, 0.82, 0.48, 0.28),
    16: (99, 34, 15, 7.9, 5.3, 2.4, 1.1, 1, 0.91, 0.54, 0.31),
    14: (110, 37, 16, 8.7, 5.8, 2.7, 1.2, 1.1, 1, 0.59, 0.34),
    10: (180, 63, 28, 15, 9.8, 4.5, 2.1, 1.9, 1.7, 1, 0.58),
    7: (320, 110, 48, 25, 17, 7.8, 3.6, 3.2, 2.9, 1.7, 1),
}
"""From a node (key) to the nodes of `NODES_NM`: what an area is multiplied by, as printed."""

ENERGY: dict[int, tuple[float, ...]] = {
    180: (0, 24.64, -17.98),
    130: (7.171, -6.709, 2.904),
    90: (4.762, -4.781, 2.092),
    65: (3.755, -4.398, 1.975),
    45: (1.018, -0.3107, 0.1539),
    32: (0.8367, -0.4341, 0.1701),
    20: (0.373, -0.1582, 0.04104),
    16: (0.2958, -0.1241, 0.03024),
    14: (0.2363, -0.09675, 0.02239),
    10: (0.2068, -0.09311, 0.02375),
    7: (0.1776, -0.09097, 0.02447),
}
"""Energy factor of each node: coefficients of V², V and 1 (the paper's table 5)."""

DELAY: dict[int, tuple[float, ...]] = {
    180: (0, 97.09, -356.7, 406.5),
    130: (-76.65, 334.9, -493.4, 275.8),
    90: (-60.34, 262.5, -384.2, 210.9),
    65: (-53.3, 230.4, -333.9, 178.6),
    45: (-501.6, 1567, -1619, 566.1),
    32: (-1047, 2982, -2797, 873.5),
    20: (0, 34.63, -66.37, 41.15),
    16: (0, 24.8, -47.52, 28.87),
    14: (-40.66, 109.2, -100.6, 35.92),
    10: (-34.95, 93.65, -85.99, 30.4),
    7: (-28.58, 76.6, -70.26, 24.69),
}
"""Delay factor of each node: coefficients of V³, V², V and 1."""

NOMINAL_V: dict[int, float] = dict(
    zip(NODES_NM, (1.8, 1.3, 1.2, 1.1, 1.0, 0.9, 0.9, 0.85, 0.8, 0.75, 0.7), strict=True)
)
"""Nominal supply of the PTM models; 180 to 65 and 20 nm from memory."""

LOWEST = 0.6
HIGHEST = {"energy": 1.5, "delay": 1.2}
"""Accepted supplies, in nominal ones."""

QUANTITIES = ("energy", "area", "delay", "leakage")


def scale(
    quantity: Quantity,
    kind: str,
    *,
    nodes_nm: tuple[float, float],
    voltages_v: tuple[float, float],
) -> Quantity:
    """The figure at another node and supply; `nodes_nm` and `voltages_v` are (from, to).

    kind: "energy", "area", "delay" or "leakage".  At the same node and supply the figure is
    returned as it is; at the same node, energy goes with V² (`energy_models.voltage`).  A supply
    that the source does not state (NaN) is taken as the wanted one at the same node, and said so.
    Raises `EnergyError` for leakage, and for nodes and supplies outside the method.
    """
    require(kind in QUANTITIES, f"{kind!r} cannot be scaled; known: {', '.join(QUANTITIES)}")
    (from_nm, to_nm), (from_v, to_v) = nodes_nm, voltages_v
    if from_nm == to_nm and (kind == "area" or from_v == to_v):
        return quantity
    if from_nm == to_nm and math.isnan(from_v):
        return quantity.times(1, f"supply not stated there, taken as {to_v:g} V")
    require(
        kind != "leakage",
        f"leakage cannot be scaled from {_point(from_nm, from_v)} to {_point(to_nm, to_v)}: "
        f"the method ({METHOD}) gives none",
    )
    if from_nm == to_nm and kind == "energy":
        how = f"from {from_v:g} to {to_v:g} V with the square of the supply"
        return quantity.times(logic_energy_factor(from_v, to_v), how)
    if kind == "area":
        ratio = area_factor(from_nm, to_nm)
        route = f"from {from_nm:g} to {to_nm:g} nm"
    else:
        ratio = _factor(kind, to_nm, to_v) / _factor(kind, from_nm, from_v)
        route = f"from {_point(from_nm, from_v)} to {_point(to_nm, to_v)}"
    between = [f"{node:g}" for node in (from_nm, to_nm) if node not in NODES_NM]
    note = f" ({', '.join(between)} nm interpolated)" if between else ""
    return quantity.times(ratio, f"scaled {route} by {METHOD}{note}")


def area_factor(from_nm: float, to_nm: float) -> float:
    """What an area is multiplied by; exactly 1 at the same node."""
    if from_nm == to_nm:
        return 1.0
    total = 0.0
    for source, weight in _around(from_nm):
        for target, share in _around(to_nm):
            total += weight * share * math.log(AREA[source][NODES_NM.index(target)])
    return math.exp(total)


def energy_factor(node_nm: float, voltage_v: float) -> float:
    """The paper's energy factor of a node at a supply voltage."""
    return _factor("energy", node_nm, voltage_v)


def delay_factor(node_nm: float, voltage_v: float) -> float:
    """The paper's delay factor of a node at a supply voltage."""
    return _factor("delay", node_nm, voltage_v)


def nominal_v(node_nm: float) -> float:
    """Nominal supply voltage of a node."""
    return math.exp(sum(weight * math.log(NOMINAL_V[node]) for node, weight in _around(node_nm)))


@lru_cache(maxsize=1024)
def _factor(kind: str, node_nm: float, voltage_v: float) -> float:
    """A polynomial's value; between two nodes, of each at the same share of its nominal supply."""
    nominal = nominal_v(node_nm)
    lowest, highest = LOWEST * nominal, HIGHEST[kind] * nominal
    require(
        not math.isnan(voltage_v),
        f"{kind} cannot be scaled at {node_nm:g} nm: the source does not state its supply voltage",
    )
    require(
        lowest <= voltage_v <= highest,
        f"{kind} cannot be scaled at {node_nm:g} nm and {voltage_v:g} V: the method ({METHOD}) is "
        f"used from {lowest:.3g} to {highest:.3g} V there",
    )
    share = voltage_v / nominal
    rows = ENERGY if kind == "energy" else DELAY
    total = 0.0
    for node, weight in _around(node_nm):
        total += weight * math.log(_polynomial(rows[node], share * NOMINAL_V[node]))
    return math.exp(total)


def _polynomial(coefficients: tuple[float, ...], x: float) -> float:
    value = 0.0
    for coefficient in coefficients:
        value = value * x + coefficient
    return value


def _around(node_nm: float) -> list[tuple[int, float]]:
    """The method's nodes around a node, with weights that add up to 1."""
    require(
        NODES_NM[-1] <= node_nm <= NODES_NM[0],
        f"no scaling at {node_nm:g} nm: the method ({METHOD}) reaches from {NODES_NM[0]} to "
        f"{NODES_NM[-1]} nm",
    )
    if node_nm in NODES_NM:
        return [(int(node_nm), 1.0)]
    above = min(node for node in NODES_NM if node > node_nm)
    below = max(node for node in NODES_NM if node < node_nm)
    weight = math.log(node_nm / below) / math.log(above / below)
    return [(below, 1 - weight), (above, weight)]


def _point(node_nm: float, voltage_v: float) -> str:
    supply = "an unstated supply" if math.isnan(voltage_v) else f"{voltage_v:g} V"
    return f"{node_nm:g} nm at {supply}"
