"""A systolic array and the core around it: parameters, widths, ports and latencies.

Everything here is shared by the model and the RTL (`rtl/systolic.py`); the cycle contract is
`docs/contracts/systolic.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from archsim.core.layer_command import LAYER_FIELDS
from archsim.errors import require, require_positive, require_rate
from archsim.memory import OffChip, Plain, Scratchpad
from archsim.numbers import IntArray, bit_ceil
from archsim.ports import Port

if TYPE_CHECKING:
    from energy_models.component import Component

Dataflow = Literal["weight_stationary", "output_stationary", "input_stationary"]
DATAFLOWS: tuple[Dataflow, ...] = ("weight_stationary", "output_stationary", "input_stationary")


def _kibibytes(count: int) -> Plain:
    return Plain(capacity_bytes=count * 1024)


@dataclass(frozen=True, kw_only=True)
class Systolic:
    """rows × columns PEs, three scratchpads, a sequencer and an output stage.

    Array axes (rows × columns, streamed): weight-stationary K × N, M; output-stationary M × N, K;
    input-stationary K × M, N.
    Numbers: operands are signed `operand_bits`, products are summed in `accumulator_bits` with
    wrap-around, the output stage computes saturate(relu((acc + bias) · multiplier / 2^shift)),
    rounding half up.
    """

    rows: int = 16
    columns: int = 16
    dataflow: Dataflow = "weight_stationary"
    operand_bits: int = 8
    accumulator_bits: int = 32
    ifmap_memory: Scratchpad = field(default_factory=lambda: _kibibytes(64))
    weight_memory: Scratchpad = field(default_factory=lambda: _kibibytes(64))
    accumulator_memory: Scratchpad = field(default_factory=lambda: _kibibytes(64))
    bias_words: int = 512
    off_chip: OffChip = field(default_factory=OffChip)
    clock_hz: float = 500e6

    kind = "systolic"
    multiplier_bits = 16
    command_queue_depth = 4
    tile_interval_cycles = 10
    """Between tile commands, and from a layer's command to its first: eight products in turn."""
    output_queue_depth = 8
    """Above the output stage's latency, so that back-pressure never lowers its throughput."""
    address_latency_cycles = 1
    align_latency_cycles = 1

    def __post_init__(self) -> None:
        require_positive(
            rows=self.rows,
            columns=self.columns,
            bias_words=self.bias_words,
            accumulator_bits=self.accumulator_bits,
        )
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
        require_rate(clock_hz=self.clock_hz)
        for name in ("ifmap", "weight", "accumulator"):
            require(
                self.depth(name) >= 2,
                f"{name}_memory holds {self.memory(name).capacity_bytes} bytes, but two halves of "
                f"two words of {self.word_bits(name)} bits need "
                f"{4 * self.word_bits(name) // 8} bytes",
            )

    def memory(self, name: str) -> Scratchpad:
        """The scratchpad of "ifmap", "weight" or "accumulator"."""
        return {
            "ifmap": self.ifmap_memory,
            "weight": self.weight_memory,
            "accumulator": self.accumulator_memory,
        }[name]

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

    def word_bits(self, name: str) -> int:
        """Width of a word of a scratchpad."""
        return {
            "ifmap": self.ifmap_lanes * self.operand_bits,
            "weight": self.weight_lanes * self.operand_bits,
            "accumulator": self.columns * self.accumulator_bits,
            "bias": self.bias_lanes * self.accumulator_bits,
            "ofmap": self.columns * self.operand_bits,
        }[name]

    def depth(self, name: str) -> int:
        """Words in one half of a scratchpad."""
        if name == "bias":
            return self.bias_words
        return self.memory(name).depth(self.word_bits(name))

    @cached_property
    def ports(self) -> tuple[Port, ...]:
        """The streams at the core's boundary."""
        return (
            Port(
                name="command",
                direction="i",
                lane_bits=tuple(entry.bits for entry in LAYER_FIELDS),
                lane_signed=tuple(entry.signed for entry in LAYER_FIELDS),
                lane_names=tuple(entry.name for entry in LAYER_FIELDS),
            ),
            Port.uniform("ifmap", "i", self.ifmap_lanes, self.operand_bits),
            Port.uniform("weight", "i", self.weight_lanes, self.operand_bits),
            Port.uniform("bias", "i", self.bias_lanes, self.accumulator_bits),
            Port.uniform("ofmap", "o", self.columns, self.operand_bits),
        )

    @property
    def operand_latency_cycles(self) -> int:
        """From a walker's issue to the operand at row 0 of the array (address, memory, align)."""
        latency = (
            self.address_latency_cycles
            + self.ifmap_memory.read_latency_cycles
            + self.align_latency_cycles
        )
        return latency + (1 if self.dataflow == "output_stationary" else 0)

    @property
    def array_latency_cycles(self) -> int:
        """From an operand at row 0 to its row of sums at the accumulators, columns aligned.

        Output-stationary: from the last step at row 0 to row 0's sums, one cycle more because
        the sums leave through a hold register.
        """
        crossing = self.rows + self.columns - 1
        return crossing + (1 if self.dataflow == "output_stationary" else 0)

    @property
    def result_latency_cycles(self) -> int:
        """From a walker's issue to the cycle in which its sums are accumulated."""
        return self.operand_latency_cycles + self.array_latency_cycles

    @property
    def output_latency_cycles(self) -> int:
        """Accumulator read, bias, multiply, round and clip, then the output queue."""
        return 4

    @cached_property
    def machine(self) -> IntArray:
        """The design as the timing kernels read it (`archsim.core.machine`)."""
        memory = self.off_chip
        sizes = [-(-self.word_bits(name) // 8) for name in ("ifmap", "weight", "bias", "ofmap")]
        return np.array(
            [
                self.rows,
                self.columns,
                DATAFLOWS.index(self.dataflow),
                self.ifmap_lanes,
                self.depth("ifmap"),
                self.depth("weight"),
                self.depth("accumulator"),
                self.depth("bias"),
                self.result_latency_cycles,
                self.output_latency_cycles,
                self.output_queue_depth,
                self.command_queue_depth,
                self.tile_interval_cycles,
                *sizes,
                round(memory.bytes_per_cycle * 1024),
                round((memory.weight_bytes_per_cycle or 0) * 1024),
                memory.latency_cycles,
                memory.burst_bytes,
                int(memory.shared),
            ],
            np.int64,
        )

    @property
    def macs_per_cycle(self) -> int:
        return self.rows * self.columns

    @cached_property
    def components(self) -> tuple[Component, ...]:
        """The hardware as components, from which energy and area are computed."""
        from archsim.designs.systolic_components import systolic_components

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
    off_chip=OffChip(bytes_per_cycle=16.0, latency_cycles=100),
)
"""A small core for an FPGA or an edge device: 16 × 16 at 500 MHz with 8 GB/s."""

CLOUD_128 = Systolic(
    rows=128,
    columns=128,
    ifmap_memory=_kibibytes(4096),
    weight_memory=_kibibytes(2048),
    accumulator_memory=_kibibytes(4096),
    off_chip=OffChip(bytes_per_cycle=256.0, latency_cycles=100, burst_bytes=128),
    clock_hz=1e9,
)
"""A data-centre core: 128 × 128 at 1 GHz with 256 GB/s."""
