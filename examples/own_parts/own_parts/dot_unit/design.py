"""The record of a dot-product unit."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from archsim.errors import require, require_clock, require_positive, require_within
from archsim.layer.intake import IntegerSums
from archsim.machine.design import Design
from archsim.machine.option import Option, read_whole
from archsim.memory import OffChip
from archsim.ports import Port
from energy_models.component import Component

if TYPE_CHECKING:
    from own_parts.dot_unit.model import DotModel

COUNT_BITS = 40

PARTS = Option(
    name="parts",
    says="into how many sums a dot product is cut",
    more="that are added outside, where they do not wrap around",
    value="N",
    read=read_whole("--parts", 1, 1024),
)


@dataclass(frozen=True, kw_only=True)
class DotUnit(Design):
    """lanes: products that are summed in a cycle, of signed `operand_bits`; sums wrap around in
    `accumulator_bits`.  off_chip: a word crosses each port in every cycle; nothing slower is
    modelled."""

    lanes: int = 8
    operand_bits: int = 8
    accumulator_bits: int = 32
    clock_hz: float = 500e6
    off_chip: OffChip = field(default_factory=OffChip)

    kind: ClassVar[str] = "dot-unit"
    options = (PARTS,)

    def __post_init__(self) -> None:
        require_positive(lanes=self.lanes, operand_bits=self.operand_bits)
        require_within("lanes", lanes=self.lanes)
        require_clock(self.clock_hz)
        least = 2 * self.operand_bits
        require(
            least <= self.accumulator_bits <= 62,
            f"accumulator_bits must be {least} to 62, not {self.accumulator_bits}",
        )
        require(
            self.off_chip == OffChip(), "off_chip must be as it is: a word a cycle at each port"
        )

    def machine_model(self) -> DotModel:
        from own_parts.dot_unit.model import DotModel

        return DotModel(self)

    @property
    def intake(self) -> IntegerSums:
        return IntegerSums(
            operand_bits=self.operand_bits,
            accumulator_bits=self.accumulator_bits,
            multiplier_bits=16,
        )

    @cached_property
    def ports(self) -> tuple[Port, ...]:
        """The streams; the command has the sums, and the pairs of words of each."""
        return (
            Port.uniform("command", "i", 2, COUNT_BITS, signed=False),
            Port.uniform("ifmap", "i", self.lanes, self.operand_bits),
            Port.uniform("weight", "i", self.lanes, self.operand_bits),
            Port.uniform("ofmap", "o", 1, self.accumulator_bits),
        )

    def word_bits(self, name: str) -> int:
        return {port.name: port.bits for port in self.ports}.get(name, 0)

    @property
    def macs_per_cycle(self) -> int:
        return self.lanes

    @property
    def size(self) -> str:
        return f"{self.lanes}"

    @property
    def summary(self) -> str:
        return f"a dot product of {self.lanes}, {self.operand_bits}-bit operands"

    @cached_property
    def components(self) -> tuple[Component, ...]:
        bits, lanes = self.operand_bits, self.lanes
        product, total = {"a_bits": bits, "b_bits": bits}, {"bits": self.accumulator_bits}
        moved = {"ifmap_bytes": 8.0, "weight_bytes": 8.0}
        return (
            Component(name="dot.multiplier", kind="multiplier", count=lanes, attributes=product,
                      actions={"multiply": {"pair": lanes}}),
            Component(name="dot.adder", kind="adder", count=lanes, attributes=total,
                      actions={"add": {"pair": lanes}}),
            Component(name="dot.sum", kind="register", count=2, attributes=total,
                      actions={"clock": {"cycle": 2.0, "pair": -1.0, "sum": -1.0},
                               "write": {"pair": 1.0, "sum": 1.0}}),
            Component(name="off_chip.dram", kind="dram",
                      actions={"read": moved, "write": {"ofmap_bytes": 8.0}}),
        )  # fmt: skip


DOT_8 = DotUnit()
"""Eight products a cycle."""
