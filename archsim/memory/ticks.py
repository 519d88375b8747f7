"""The off-chip memory's time, finer than cycles."""

from archsim.kernels import inlined

TICK_BITS = 16
"""The off-chip memory's time is kept in 1/65,536 of a cycle."""

TICK = 1 << TICK_BITS


@inlined
def whole_cycles(ticks: int) -> int:
    """The first cycle that begins no earlier."""
    return (ticks + TICK - 1) >> TICK_BITS
