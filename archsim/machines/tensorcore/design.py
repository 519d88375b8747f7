"""A tensor core and the core around it: parameters, widths, ports and latencies.

The array is that of `archsim.machines.tensorcore.tensor_array`; scratchpads, streams, sequencer and
output stage are those of every core.  The cycle contract is `docs/contracts/tensorcore.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from archsim.arithmetic.dot_product import DotProduct
from archsim.arithmetic.float_datapath import FloatRules
from archsim.arithmetic.float_sum import FloatOutput, accumulate_latency_cycles, adder
from archsim.arithmetic.formats import (
    BF16,
    FP16,
    FP32,
    INT4,
    INT8,
    INT32,
    FloatFormat,
    IntegerFormat,
)
from archsim.errors import InputError, require, require_positive, require_within
from archsim.machines.tensorcore.tensor_array import TensorArrayDesign
from archsim.memory import OffChip
from archsim.numbers import bit_ceil
from archsim.ports import Port
from archsim.tiled import machine_vector as mc
from archsim.tiled.design import CoreDesign, kibibytes
from archsim.tiled.pe_array import PeArray

if TYPE_CHECKING:
    from archsim.tiled.numerics import Numerics
    from energy_models.component import Component

Operand = Literal["fp16", "bf16", "int8", "int4"]
Accumulator = Literal["fp32", "fp16", "int32"]
OPERANDS: dict[str, FloatFormat | IntegerFormat] = {
    "fp16": FP16,
    "bf16": BF16,
    "int8": INT8,
    "int4": INT4,
}
ACCUMULATORS: dict[str, dict[str, FloatFormat | IntegerFormat]] = {
    "fp16": {"fp32": FP32, "fp16": FP16},
    "bf16": {"fp32": FP32},
    "int8": {"int32": INT32},
    "int4": {"int32": INT32},
}
"""The accumulators of each operand format."""


@dataclass(frozen=True, kw_only=True)
class TensorCore(CoreDesign):
    """2 · octets · group_columns dot-product units of `length` elements, three scratchpads.

    A block of `rows` pixels × as many filters as there are units is summed over its products in
    *sets* of `length` elements, then leaves for the accumulators.  rows: of a warp's tile the
    pixels that this core computes (8 of 16, two cores sharing a warp), or of several warps.
    operand and accumulator: "fp16" with "fp32" or "fp16", "bf16" with "fp32", "int8" or "int4"
    with "int32".  Floats are summed as Volta does (`docs/contracts/dot-product.md`), an FP16
    accumulator rounds to nearest; integers wrap, and the output stage requantises them as a
    systolic core does, saturate(relu((acc + bias) · multiplier / 2^shift)).
    output_registers: of integers, in the output stage, 1 behind the shift, or 2, one of them in the
    product, for an FPGA whose multipliers have registers inside; words leave as many cycles later.
    """

    octets: int = 2
    group_columns: int = 4
    rows: int = 16
    length: int = 4
    operand: Operand = "fp16"
    accumulator: Accumulator = "fp32"
    output_registers: int = field(default=0, repr=False, metadata={"implied": True})

    kind: ClassVar[str] = "tensorcore"
    multiplier_bits: ClassVar[int] = 16

    def __post_init__(self) -> None:
        require_positive(
            octets=self.octets,
            group_columns=self.group_columns,
            rows=self.rows,
            length=self.length,
        )
        require_within("lanes", octets=self.octets, group_columns=self.group_columns)
        require_within("lanes", rows=self.rows, length=self.length)
        _require_one_of("operand", self.operand, OPERANDS)
        _require_one_of(
            f"accumulator of {self.operand} operands", self.accumulator, ACCUMULATORS[self.operand]
        )
        registers: Any = self.output_registers
        known = (0,) if self.floating else (0, 1, 2)
        require(
            type(registers) is int and registers in known,
            f"output_registers must be {'0 with floats' if self.floating else '0, 1 or 2'}, "
            f"not {registers!r}",
        )
        _ = self.array
        require_within("lanes", columns=self.columns)
        require_within("multipliers", multipliers=self.macs_per_cycle)
        self.check_memories()

    def for_fpga(self) -> Self:
        """With all registers of the output stage, too, where it rescales integers."""
        return replace(super().for_fpga(), output_registers=0 if self.floating else 2)

    @cached_property
    def dot(self) -> DotProduct:
        """A dot-product unit."""
        accumulator = ACCUMULATORS[self.operand][self.accumulator]
        rules = None
        if self.accumulator == "fp32":
            rules = FloatRules()
        elif self.accumulator == "fp16":
            rules = FloatRules(rounding="nearest_even")
        return DotProduct(
            length=self.length,
            operand=OPERANDS[self.operand],
            accumulator=accumulator,
            rules=rules,
        )

    @cached_property
    def array(self) -> TensorArrayDesign:
        """The array."""
        return TensorArrayDesign(
            dot=self.dot, octets=self.octets, group_columns=self.group_columns, rows=self.rows
        )

    @property
    def floating(self) -> bool:
        """Whether operands are floats."""
        return isinstance(self.dot.operand, FloatFormat)

    @property
    def columns(self) -> int:
        """Filters of a block: one a unit."""
        return self.array.columns

    @property
    def operand_bits(self) -> int:
        """Of an operand."""
        return self.dot.operand.bits

    @property
    def accumulator_bits(self) -> int:
        """Of a sum."""
        return self.dot.accumulator.bits

    @property
    def ifmap_lanes(self) -> int:
        """Banks of the ifmap scratchpad: the power of two that feeds a unit."""
        return bit_ceil(self.length)

    @property
    def accumulator_word_bits(self) -> int:
        """A sum for every column."""
        return self.columns * self.accumulator_bits

    @cached_property
    def data_ports(self) -> tuple[Port, ...]:
        """The streams of data; floats are patterns, so unsigned."""
        columns, signed = self.columns, not self.floating
        return (
            Port.uniform("ifmap", "i", self.ifmap_lanes, self.operand_bits, signed),
            Port.uniform("weight", "i", columns, self.operand_bits, signed),
            Port.uniform("bias", "i", columns, self.accumulator_bits, signed),
            Port.uniform("ofmap", "o", columns, self.operand_bits, signed),
        )

    @cached_property
    def float_output(self) -> FloatOutput:
        """The output stage's arithmetic of floats.  Raises InputError for integers."""
        accumulator, operand = self.dot.accumulator, self.dot.operand
        if not (isinstance(accumulator, FloatFormat) and isinstance(operand, FloatFormat)):
            raise InputError("a core of integers has no floating output")
        return FloatOutput(accumulator=accumulator, ofmap=operand)

    @cached_property
    def float_adder(self) -> DotProduct:
        """The accumulators' adder of floats.  Raises InputError for integers."""
        if self.dot.rules is None or not isinstance(self.dot.accumulator, FloatFormat):
            raise InputError("a core of integers has no floating adder")
        return adder(self.dot.accumulator, self.dot.rules)

    @property
    def accumulate_latency_cycles(self) -> int:
        """From a row's token to the write of what its sums add up to."""
        return accumulate_latency_cycles(self.float_adder) if self.floating else 1

    @property
    def result_latency_cycles(self) -> int:
        """From the last issue of a block to the cycle in which its first row is accumulated."""
        adding = self.accumulate_latency_cycles - 1
        return self.operand_latency_cycles + self.array.array_latency_cycles + adding

    @property
    def output_latency_cycles(self) -> int:
        """Read, the arithmetic of a column, packer, queue: 5 of integers, 6 of floats; and the
        registers."""
        column = self.float_output.latency_cycles if self.floating else 2 + self.output_registers
        return 2 + column + self.pack_latency_cycles

    @property
    def output_queue_depth(self) -> int:
        """Words."""
        return 8

    @property
    def array_columns(self) -> dict[str, int]:
        """The array's columns of the machine vector."""
        return {
            "rows": self.rows,
            "columns": self.columns,
            "chunk": self.length,
            "slots": self.array.set_cycles,
            "skew": self.result_latency_cycles,
            "dataflow": mc.OUTPUT_STATIONARY,
            "ifmap_lanes": self.ifmap_lanes,
            "output_vector": 1,
            "output_value_units": 1,
            "output_scale_units": 0,
            "output_word_units": self.columns,
        }

    @cached_property
    def numerics(self) -> Numerics:
        """Floats as patterns, or integers with one scale a tensor."""
        if self.floating:
            from archsim.machines.tensorcore.float_numerics import FloatNumerics

            path = self.dot.datapath
            return FloatNumerics(
                operand=path.operand, accumulator=path.accumulator,
                dot=self.dot, output=self.float_output, columns=self.columns,
            )  # fmt: skip
        from archsim.tiled.integer_numerics import IntegerNumerics

        return IntegerNumerics(
            operand_bits=self.operand_bits,
            accumulator_bits=self.accumulator_bits,
            multiplier_bits=self.multiplier_bits,
            ifmap_lanes=self.ifmap_lanes,
            weight_lanes=self.columns,
            bias_lanes=self.columns,
            columns=self.columns,
        )

    @property
    def macs_per_cycle(self) -> int:
        return self.columns * self.length

    @cached_property
    def pes(self) -> PeArray:
        """The multipliers: one for each element of every dot-product unit."""
        units, passes = self.array.places
        return PeArray(
            rows=self.length,
            columns=self.columns,
            row="element",
            column="unit",
            row_is="element",
            column_is="sum",
            units=units,
            passes=passes,
        )

    @property
    def mnk(self) -> tuple[int, int, int]:
        """Pixels, filters and channels of a set."""
        return self.rows, self.columns, self.length

    @property
    def size(self) -> str:
        return f"{self.rows}x{self.columns}x{self.length}"

    @property
    def summary(self) -> str:
        return (
            f"{self.columns} units of {self.length} products, blocks of {self.rows} × "
            f"{self.columns}, {self.operand} in {self.accumulator}"
        )

    @cached_property
    def components(self) -> tuple[Component, ...]:
        """The hardware as components, from which energy and area are computed."""
        from archsim.machines.tensorcore.components import tensorcore_components

        return tensorcore_components(self)


def _require_one_of(
    name: str, value: object, known: dict[str, FloatFormat | IntegerFormat]
) -> None:
    if value not in known:
        raise InputError(f"{name} must be one of {', '.join(known)}, not {value!r}")


VOLTA = TensorCore(
    ifmap_memory=kibibytes(64),
    weight_memory=kibibytes(32),
    accumulator_memory=kibibytes(64),
    off_chip=OffChip(bytes_per_cycle=16.0, latency_cycles=100),
    clock_hz=1.53e9,
)
"""One tensor core of NVIDIA's Volta (V100): 16 four-element units in two octets, FP16 products in
FP32 (Raihan et al., ISPASS 2019), at its boost clock of 1,530 MHz.  Two warps' halves are under
way at once, since the chain of a single one leaves a fifth of the passes empty.  Memories are ours:
a core's share of an SM's 128 KiB of shared memory and of its register file was not published as
such; nor is the bandwidth, a fortieth of what a core's share of 900 GB/s would be were L2 ideal."""
