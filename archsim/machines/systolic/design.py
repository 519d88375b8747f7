"""A systolic array and the core around it: parameters, widths, ports and latencies.

Everything here is shared by the model and the RTL (`rtl/systolic.py`); the cycle contract is
`docs/contracts/systolic.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from archsim.errors import require, require_positive, require_within
from archsim.memory import OffChip, Plain
from archsim.numbers import bit_ceil
from archsim.ports import Port
from archsim.tiled.design import CoreDesign, kibibytes
from archsim.tiled.pe_array import Index, PeArray

if TYPE_CHECKING:
    from archsim.tiled.integer_numerics import IntegerNumerics
    from energy_models.component import Component

Dataflow = Literal["weight_stationary", "output_stationary", "input_stationary"]
DATAFLOWS: tuple[Dataflow, ...] = ("weight_stationary", "output_stationary", "input_stationary")


@dataclass(frozen=True, kw_only=True)
class Systolic(CoreDesign):
    """rows × columns PEs, three scratchpads, a sequencer and an output stage.

    Array axes (rows × columns, streamed): weight-stationary K × N, M; output-stationary M × N, K;
    input-stationary K × M, N.
    Numbers: operands are signed `operand_bits`, products are summed in `accumulator_bits` with
    wrap-around, the output stage computes saturate(relu((acc + bias) · multiplier / 2^shift)),
    rounding half up.
    product_registers: in a PE, 1 behind the product or 2, before and behind it, for an FPGA whose
    multipliers have them inside; sums come as many cycles later.
    lut_product_rows: rows of PEs, the last ones, whose products are made of look-up tables, for an
    FPGA that has fewer multipliers than PEs; they want product_registers, and change no cycle.
    output_registers: in the output stage, 1 behind the shift, or 2, one of them in the product, for
    an FPGA whose multipliers have registers inside; words leave as many cycles later.
    accumulator_registers: 1 between the accumulators' memory and their adders, with a way around it
    for a row that is written meanwhile; sums are written in the same cycle, words leave one later.
    """

    rows: int = 16
    columns: int = 16
    dataflow: Dataflow = "weight_stationary"
    operand_bits: int = 8
    accumulator_bits: int = 32
    product_registers: int = field(default=0, repr=False, metadata={"implied": True})
    lut_product_rows: int = field(default=0, repr=False, metadata={"implied": True})
    output_registers: int = field(default=0, repr=False, metadata={"implied": True})
    accumulator_registers: int = field(default=0, repr=False, metadata={"implied": True})

    kind: ClassVar[str] = "systolic"
    growing: ClassVar[tuple[str, ...]] = ("rows", "columns")
    multiplier_bits: ClassVar[int] = 16

    def __post_init__(self) -> None:
        require_positive(
            rows=self.rows,
            columns=self.columns,
            accumulator_bits=self.accumulator_bits,
        )
        require_within("lanes", rows=self.rows, columns=self.columns)
        require_within("multipliers", **{"rows × columns": self.rows * self.columns})
        require(
            self.dataflow in DATAFLOWS,
            f"dataflow must be one of {', '.join(DATAFLOWS)}, not {self.dataflow!r}",
        )
        require(
            self.operand_bits in (4, 8, 16),
            f"operand_bits must be 4, 8 or 16, not {self.operand_bits!r}",
        )
        require(
            2 * self.operand_bits <= self.accumulator_bits <= 40,
            f"accumulator_bits must be from {2 * self.operand_bits} (two operands) to 40, "
            f"not {self.accumulator_bits!r}",
        )
        for name in ("product_registers", "output_registers"):
            registers: Any = getattr(self, name)
            require(
                type(registers) is int and registers in (0, 1, 2),
                f"{name} must be 0, 1 or 2, not {registers!r}",
            )
        in_luts: Any = self.lut_product_rows
        require(
            type(in_luts) is int and 0 <= in_luts <= self.rows,
            f"lut_product_rows must be from 0 to rows, {self.rows}, not {in_luts!r}",
        )
        require(
            not in_luts or self.product_registers > 0,
            "lut_product_rows must be 0 without product_registers, for a product has no module of "
            f"its own then, not {in_luts}",
        )
        kept: Any = self.accumulator_registers
        require(
            type(kept) is int and kept in (0, 1),
            f"accumulator_registers must be 0 or 1, not {kept!r}",
        )
        self.check_memories()
        require(
            not kept or self.accumulator_memory.exact,
            "accumulator_registers must be 0 with an accumulator_memory that is not read as it was "
            "written, for a row may go around it, not 1",
        )

    def for_fpga(self) -> Self:
        """With all registers, too: ifmap, products, accumulators, output stage.

        Without the ifmap's where its memory has registers of its own behind its SRAM, and the
        accumulators' where a row must not go around their memory.
        """
        return replace(
            super().for_fpga(),
            ifmap_registers=int(self.ifmap_memory.read_latency_cycles == 1),
            product_registers=2,
            output_registers=2,
            accumulator_registers=int(self.accumulator_memory.exact),
        )

    @property
    def ifmap_lanes(self) -> int:
        """Banks of the ifmap scratchpad: the power of two that feeds all rows."""
        return bit_ceil(self.rows)

    @property
    def weight_lanes(self) -> int:
        """Lanes of a weight word: one a column, or one a row where the weights move."""
        return self.rows if self.dataflow == "input_stationary" else self.columns

    @property
    def bias_lanes(self) -> int:
        """Lanes of a bias word: one a column, or one where the columns are pixels."""
        return 1 if self.dataflow == "input_stationary" else self.columns

    @property
    def accumulator_word_bits(self) -> int:
        """A sum for every column."""
        return self.columns * self.accumulator_bits

    @cached_property
    def data_ports(self) -> tuple[Port, ...]:
        """The streams of data at the core's boundary."""
        return (
            Port.uniform("ifmap", "i", self.ifmap_lanes, self.operand_bits),
            Port.uniform("weight", "i", self.weight_lanes, self.operand_bits),
            Port.uniform("bias", "i", self.bias_lanes, self.accumulator_bits),
            Port.uniform("ofmap", "o", self.columns, self.operand_bits),
        )

    @cached_property
    def numerics(self) -> IntegerNumerics:
        """Integers with one scale a tensor."""
        from archsim.tiled.integer_numerics import IntegerNumerics

        return IntegerNumerics(
            operand_bits=self.operand_bits,
            accumulator_bits=self.accumulator_bits,
            multiplier_bits=self.multiplier_bits,
            ifmap_lanes=self.ifmap_lanes,
            weight_lanes=self.weight_lanes,
            bias_lanes=self.bias_lanes,
            columns=self.columns,
            columns_are_pixels=self.dataflow == "input_stationary",
        )

    @property
    def mnk(self) -> tuple[int, int, int]:
        """Pixels, filters and channels of the product that fills the array once."""
        pixels = self.rows if self.dataflow == "output_stationary" else self.columns
        return pixels, self.columns, self.rows

    @property
    def size(self) -> str:
        return f"{self.rows}x{self.columns}"

    @property
    def summary(self) -> str:
        dataflow = self.dataflow.replace("_", "-")
        return f"{self.rows} × {self.columns} PEs, {dataflow}, {self.operand_bits}-bit operands"

    @property
    def operand_latency_cycles(self) -> int:
        """From a walker's issue to the operand at row 0: one more where it is serialised first."""
        return super().operand_latency_cycles + (self.dataflow == "output_stationary")

    @property
    def array_latency_cycles(self) -> int:
        """From an operand at row 0 to its row of sums at the accumulators, columns aligned.

        Output-stationary: from the last step at row 0 to row 0's sums, one cycle more because
        the sums leave through a hold register, and with product registers one more before it.
        """
        crossing = self.rows + self.columns - 1 + self.product_registers
        if self.dataflow != "output_stationary":
            return crossing
        return crossing + 1 + (self.product_registers > 0)

    @property
    def result_latency_cycles(self) -> int:
        """From a walker's issue to the cycle in which its sums are accumulated."""
        return self.operand_latency_cycles + self.array_latency_cycles

    @property
    def output_latency_cycles(self) -> int:
        """Accumulator read, bias, multiply, pack, then the output queue; and the registers."""
        registers = self.accumulator_registers + self.output_registers
        return 4 + registers + self.pack_latency_cycles

    @property
    def accumulate_latency_cycles(self) -> int:
        return super().accumulate_latency_cycles + self.accumulator_registers

    @property
    def output_queue_depth(self) -> int:
        """Words."""
        return 8 + self.accumulator_registers

    @property
    def array_columns(self) -> dict[str, int]:
        """The array's columns of the machine vector."""
        emptying = self.rows + self.columns - 2
        filling = 0 if self.dataflow == "output_stationary" else self.rows
        return {
            "rows": self.rows,
            "columns": self.columns,
            "chunk": self.rows,
            "slots": self.rows,
            "skew": filling + emptying,
            "dataflow": DATAFLOWS.index(self.dataflow),
            "ifmap_lanes": self.ifmap_lanes,
            "output_vector": 1,
            "output_value_units": 1,
            "output_scale_units": 0,
            "output_word_units": self.columns,
        }

    @property
    def macs_per_cycle(self) -> int:
        return self.rows * self.columns

    @cached_property
    def pes(self) -> PeArray:
        """rows × columns, each for what the dataflow says."""
        axes: dict[Dataflow, tuple[Index, Index]] = {
            "weight_stationary": ("element", "filter"),
            "output_stationary": ("pixel", "filter"),
            "input_stationary": ("element", "pixel"),
        }
        row_is, column_is = axes[self.dataflow]
        return PeArray(rows=self.rows, columns=self.columns, row_is=row_is, column_is=column_is)

    @cached_property
    def components(self) -> tuple[Component, ...]:
        """The hardware as components, from which energy and area are computed."""
        from archsim.machines.systolic.components import systolic_components

        return systolic_components(self)


TPU_V1 = Systolic(
    rows=256,
    columns=256,
    ifmap_memory=Plain(capacity_bytes=24 * 2**20),
    weight_memory=Plain(capacity_bytes=4 * 64 * 1024),
    accumulator_memory=Plain(capacity_bytes=4 * 2**20),
    off_chip=OffChip(
        bytes_per_cycle=256.0,
        weight_bytes_per_cycle=34e9 / 700e6,
        burst_bytes=256,
        shared=False,
    ),
    clock_hz=700e6,
)
"""Jouppi et al., ISCA 2017: 256 × 256, 700 MHz, 24 MiB unified buffer, 4 MiB accumulators,
four weight tiles of 64 KiB, DDR3 at 34 GB/s, internal paths of 256 bytes a cycle."""

EDGE_16 = Systolic(
    bias_words=64,
    off_chip=OffChip(bytes_per_cycle=16.0, latency_cycles=100),
)
"""A small core for an FPGA or an edge device: 16 × 16 at 500 MHz with 8 GB/s.

Biases of 1,024 filters a half: with 512 words the memory was a fifth of the core's area, and no
built-in network took a cycle less."""

CLOUD_128 = Systolic(
    rows=128,
    columns=128,
    ifmap_memory=kibibytes(4096),
    weight_memory=kibibytes(2048),
    accumulator_memory=kibibytes(4096),
    off_chip=OffChip(bytes_per_cycle=256.0, latency_cycles=100, burst_bytes=128),
    clock_hz=1e9,
)
"""A data-centre core: 128 × 128 at 1 GHz with 256 GB/s."""
