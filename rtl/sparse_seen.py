"""What bins of the sparse core look at in a case: its runs, its passes and their timing."""

from collections.abc import Callable
from typing import cast

from archsim.machines.scnn.answer import SparseAnswer
from archsim.machines.scnn.timing import PassTiming
from archsim.machines.scnn.words import PassWords
from rtl.coverage.aims import ResetCase
from rtl.coverage.bins import Seen
from rtl.sparse_conformance import SparseCase

FULL = "full memories"
SUMS = "full accumulators"
SPARSE = "empty and dense"
CORNERS = "windows across corners of PEs"
HALOS = "deep halos"
LONG = "long kernels"
"""Aims (`rtl.sparse_aims`)."""
MOST_FULL_VECTORS = 4_096
"""Of an IARAM that a case may fill."""


def case_of(seen: Seen) -> SparseCase:
    """The case behind a reset, or the case."""
    return cast(SparseCase, seen.case.case if isinstance(seen.case, ResetCase) else seen.case)


def passes(says: Callable[[PassWords], bool]) -> Callable[[Seen], bool]:
    """Hit where it says so of a pass."""
    return lambda seen: any(says(one) for one in case_of(seen).passes)


def timings(says: Callable[[PassTiming], bool]) -> Callable[[Seen], bool]:
    """Hit where it says so of how a pass went."""
    return lambda seen: any(says(one) for one in cast(SparseAnswer, seen.expected).timings)
