"""The decorator of the timing kernels: compiled once a machine, by numba.

Division by zero cannot happen in a checked design, so kernels do not test for it; without those
tests numba's reference counting falls away, which halves their time.
"""

from numba import njit  # pyright: ignore[reportUnknownVariableType]

kernel = njit(cache=True, error_model="numpy")
inlined = njit(inline="always", error_model="numpy")
