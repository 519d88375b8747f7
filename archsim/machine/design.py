"""What simulation, reports and commands ask of every design, whatever kind of machine it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from archsim.errors import InputError
from archsim.machine.option import Option
from archsim.memory import OffChip, Use

if TYPE_CHECKING:
    from archsim.layer.intake import Intake
    from archsim.machine.model import MachineModel
    from energy_models.component import Component


class Design(ABC):
    """A frozen value that describes a machine; subclasses are frozen keyword-only dataclasses.

    kind: its name in files; clock_hz: of the machine; off_chip: the memory that feeds it;
    options: what a user can choose for a run, beside the sizes.
    """

    kind: ClassVar[str]
    clock_hz: float
    off_chip: OffChip

    options: ClassVar[tuple[Option, ...]] = ()

    growing: ClassVar[tuple[str, ...]] = ()
    """Fields that make it larger, all by the same number; () where none is meant."""

    def for_fpga(self) -> Design:
        """The same machine with the registers that an FPGA wants; itself where there are none."""
        return self

    @abstractmethod
    def machine_model(self) -> MachineModel:
        """What the machine does: how it computes a network, what crosses its ports, and when."""

    @property
    @abstractmethod
    def intake(self) -> Intake:
        """What operands it takes."""

    @abstractmethod
    def word_bits(self, name: str) -> int:
        """Width of a word of the port "ifmap", "weight", "bias" or "ofmap"; 0 without the port."""

    def use(self, name: str) -> Use:
        """What a memory keeps, and how it is read.  Raises `InputError` where none can be given."""
        raise InputError(f"{self.kind} machines have no memories of words")

    def lane_bits(self, memory: str) -> int:
        """Bits of a lane of a memory's words, of the narrowest; faults protect them by number.

        Raises `InputError` where none can be given.
        """
        return min(self.use(memory).lane_bits)

    def memory_parts(self, memory: str) -> tuple[str, ...]:
        """The groups of components that stand behind a memory's field: one of its name."""
        return (memory,)

    @property
    @abstractmethod
    def macs_per_cycle(self) -> int:
        """Multiply-accumulates a cycle, all multipliers busy."""

    @property
    @abstractmethod
    def size(self) -> str:
        """The array's size as it stands in names: "16x16"."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """The array in a few words: "16 × 16 PEs, weight-stationary, 8-bit operands"."""

    @cached_property
    @abstractmethod
    def components(self) -> tuple[Component, ...]:
        """The hardware as components, from which energy and area are computed."""
