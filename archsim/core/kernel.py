"""The decorators of the timing kernels: compiled once a machine, by numba.

`kernel`: a compiled function.  Division by zero cannot happen in a checked design, so kernels do
not test for it.  `inlined`: a helper that is merged into its callers; without that a third of the
scan's time would go to counting the references of the arrays that it passes on.
"""

from pathlib import Path

from numba import njit  # pyright: ignore[reportUnknownVariableType]

kernel = njit(cache=True, error_model="numpy")
inlined = njit(inline="always", error_model="numpy")


def is_compiled() -> bool:
    """Whether the kernels lie compiled beside their sources (where numba keeps them)."""
    return any((Path(__file__).parent / "__pycache__").glob("schedule.schedule-*.nbi"))
