"""What the supply voltage does: to the energy of logic, and to SRAMs run below their minimum.

SRAM curves: D. Stutz, N. Chandramoorthy, M. Hein and B. Schiele, "Bit Error Robustness for
Energy-Efficient DNN Accelerators", MLSys 2021, figure 1 as on the authors' poster (repository
davidstutz/random-bit-error-robustness, `poster.jpg`), digitised: voltage to ±0.005, logarithm of
the bit error rate to ±0.05, energy to ±0.01.  Voltage is normalised to V_min, the lowest supply
without bit errors; energy is that of an access, normalised to V_min.  The arrays behind the curve
are 14 nm SRAMs (Chandramoorthy et al., HPCA 2019; cited from memory, not re-read).
"""

from __future__ import annotations

import math
from itertools import pairwise

from energy_models.errors import require

SOURCE = (
    "Stutz et al., Bit Error Robustness for Energy-Efficient DNN Accelerators, MLSys 2021, "
    "figure 1, digitised (voltage ±0.005, energy ±0.01)"
)

SRAM_CURVE = (
    (0.757, 0.56, 0.20),
    (0.804, 0.63, 0.056),
    (0.848, 0.695, 0.0115),
    (0.891, 0.765, 0.00134),
    (0.906, 0.79, 0.00045),
    (0.948, 0.87, 1.6e-5),
    (0.969, 0.91, 2e-6),
    (1.0, 1.0, 0.0),
)
"""Supply over V_min, energy of an access over that at V_min, and bit error rate.

The last point is the normalisation (digitised, 0.995)."""

LOWEST = SRAM_CURVE[0][0]


def logic_energy_factor(from_v: float, to_v: float) -> float:
    """What dynamic energy of logic is multiplied by from one supply to another: (to/from)²."""
    for voltage in (from_v, to_v):
        require(
            math.isfinite(voltage) and voltage > 0,
            f"a supply voltage must be positive, not {voltage:g} V",
        )
    return (to_v / from_v) ** 2


def sram_energy_factor(relative_voltage: float) -> float:
    """Energy of an SRAM access over that at V_min, linear between the digitised points.

    relative_voltage: supply over V_min, 0.757 to 1.  Raises `EnergyError` outside.
    """
    low, high, share = _segment(relative_voltage)
    return low[1] + share * (high[1] - low[1])


def bit_error_rate(relative_voltage: float) -> float:
    """Probability that a bit of an SRAM at that supply over V_min is wrong.

    Linear in the logarithm between the digitised points.  From 0.969 (2e-6) to 1 (none) it is
    linear: an upper bound, since the rate falls faster than that.  Raises `EnergyError` outside
    0.757 to 1.
    """
    low, high, share = _segment(relative_voltage)
    if high[2] == 0:
        return low[2] * (1 - share)
    return low[2] * (high[2] / low[2]) ** share


def _segment(
    relative_voltage: float,
) -> tuple[tuple[float, float, float], tuple[float, float, float], float]:
    """The points around, and how far it lies from the first to the second, 0 to 1."""
    require(
        LOWEST <= relative_voltage <= 1,
        f"an SRAM's supply must be {LOWEST} to 1 of its minimum voltage, not {relative_voltage:g}",
    )
    low, high = next(
        (low, high) for low, high in pairwise(SRAM_CURVE) if relative_voltage <= high[0]
    )
    return low, high, (relative_voltage - low[0]) / (high[0] - low[0])
