"""What a kind of design brings beside its component, to be proved and to be measured.

The component that the entry point `archsim.rtl` names says where it is:

    class MyCore(wiring.Component):
        @staticmethod
        def verification() -> Verification:
            from my_cases import MyVerification
            return MyVerification()

so that cases are imported only where some are drawn.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from archsim.machine.model import MatrixLayer
from rtl.benches.bench import Watch
from rtl.conformance import Case
from rtl.coverage.aims import Aim, general_aims
from rtl.coverage.bins import Bin
from rtl.coverage.port_bins import port_bins
from rtl.draw import Draw
from workloads.layers import MatMul

LEAST_GATES_PER_PE_BIT = 40
"""A PE has more for each bit of its operands (8-bit ones 600 in all with Debian's osu018)."""


class Verification(ABC):
    """Cases of one kind of design, which is that of every `design` below."""

    @abstractmethod
    def random_case(self, seed: int, number: int, design: Any, longest_words: int) -> Case:
        """Case `number` of a seed, of at most so many words at all ports, with stalls on each.

        The same numbers give the same case.  Raises `InputError` where no layer fits the design.
        """

    @abstractmethod
    def layer_case(self, design: Any, layer: MatrixLayer, operands: Any) -> Case:
        """A layer from a reset on, on ports that never wait.  operands: of the design's intake.

        Raises `InputError` for a layer that does not fit, and for variants without RTL.
        """

    def bins(self, design: Any) -> Iterable[Bin]:
        """Situations in which faults hide (`rtl.coverage.bins`).

        These are of the ports alone; a kind adds what its contract names.
        """
        return port_bins(design.machine_model().ports)

    def aims(self, design: Any) -> Mapping[str, Aim]:
        """By name, what draws cases for bins that chance seldom finds (`rtl.coverage.aims`)."""

        def plain(draw: Draw, design: Any, longest_words: int) -> Case:
            return self.random_case(draw.whole(0, 1 << 30), 0, design, longest_words)

        return general_aims(plain)

    def watches(self, design: Any) -> tuple[Watch, ...]:
        """Wires inside the RTL that bins ask for."""
        return ()

    def small_layer(self, design: Any) -> MatrixLayer:
        """A layer that keeps every PE busy, small enough to be simulated gate by gate."""
        return MatMul(name="random", m=32, n=32, k=32)

    def least_gates(self, design: Any) -> int:
        """Gates that the design has in any cell library, so that hopeless ones are refused."""
        return design.macs_per_cycle * design.intake.source_bits * LEAST_GATES_PER_PE_BIT


__all__ = ["LEAST_GATES_PER_PE_BIT", "Verification"]
