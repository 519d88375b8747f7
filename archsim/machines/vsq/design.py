"""A vector MAC core with per-vector scales (VS-Quant): parameters, widths, ports and latencies.

The structure is that of VS-Quant (Dai et al., arXiv:2102.04503v1, section 5) and of its 5 nm chip
(Keller et al., IEEE Journal of Solid-State Circuits 58(4), 2023): lanes that share an activation
vector and hold a weight vector each, collectors behind them, buffers whose rows are a vector and
its scale, and a post-processing unit that finds the next layer's scales while its values leave.
The cycle contract is `docs/contracts/vsq.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

from archsim.codecs.vector_dot import VectorMac
from archsim.codecs.vector_output import VectorOutput
from archsim.codecs.vsquant import VectorFormat
from archsim.errors import require, require_positive, require_whole, require_within
from archsim.machines.vsq.vector_lane import VectorLaneDesign
from archsim.memory import OffChip, Use
from archsim.ports import Port
from archsim.tiled import machine_vector as mc
from archsim.tiled.design import CoreDesign, kibibytes
from archsim.tiled.pe_array import PeArray

if TYPE_CHECKING:
    from archsim.machines.vsq.vector_numerics import VectorNumerics
    from energy_models.component import Component

VECTORS = "its words are vectors with scales, not values of one width"
"""Why words of operands must be stored as they are."""


@dataclass(frozen=True, kw_only=True)
class Vsq(CoreDesign):
    """`lanes` vector MACs of `vector` products each, a scale for each vector of either operand.

    vector: V, the elements that share a scale, along the channels; the multipliers of a lane.
    hold_cycles: for how many pixels a weight vector is held, which is the depth of the collectors.
    weight_bits, activation_bits: N.  weight_scale_bits, activation_scale_bits: M; 0 for an
    operand without per-vector scales: without any, the scale path is off, and what is left is a
    core with one scale a channel.  scale_product_bits: to which the product of two scales is
    rounded; 0 for all of it.  collector_bits, overflow: of the collectors, every step
    ("saturate" or "wrap").  accumulator_bits: of the scratchpad that adds up the collectors of the
    channel tiles, which wraps.  activation_signed: False for what comes out of a ReLU.
    gated: the data path keeps still where the rounded scale product is 0.
    """

    lanes: int = 16
    vector: int = 16
    hold_cycles: int = 16
    weight_bits: int = 4
    activation_bits: int = 4
    weight_scale_bits: int = 4
    activation_scale_bits: int = 6
    scale_product_bits: int = 0
    collector_bits: int = 24
    overflow: Literal["saturate", "wrap"] = "saturate"
    accumulator_bits: int = 32
    activation_signed: bool = True
    gated: bool = False

    kind: ClassVar[str] = "vsq"
    growing: ClassVar[tuple[str, ...]] = ("lanes",)

    def __post_init__(self) -> None:
        require_positive(lanes=self.lanes, vector=self.vector, hold_cycles=self.hold_cycles)
        require_within("lanes", lanes=self.lanes, vector=self.vector, hold_cycles=self.hold_cycles)
        require_within("lanes", **{"lanes × vector": self.lanes * self.vector})
        for name, least, most in (
            ("weight_bits", 2, 16),
            ("activation_bits", 2, 16),
            ("weight_scale_bits", 0, 16),
            ("activation_scale_bits", 0, 16),
            ("scale_product_bits", 0, 32),
        ):
            bits = getattr(self, name)
            require_whole(least, f"be {least} to {most}", **{name: bits})
            require(bits <= most, f"{name} must be {least} to {most}, not {bits}")
        require(
            self.collector_bits <= self.accumulator_bits <= 40,
            f"accumulator_bits must be from {self.collector_bits}, the collectors', to 40, "
            f"not {self.accumulator_bits!r}",
        )
        scale_bits = self.mac.full_scale_bits - self.mac.dropped_bits
        require(
            scale_bits <= self.collector_bits,
            f"scale_product_bits must be at most {self.collector_bits}, the collectors', "
            f"not {scale_bits}",
        )
        term_bits = self.mac.term_bits(self.vector)
        require(
            term_bits <= self.collector_bits,
            f"collector_bits must be at least {term_bits}, those of one scaled sum, "
            f"not {self.collector_bits}",
        )
        _ = self.lane, self.output
        self.check_memories()

    @cached_property
    def mac(self) -> VectorMac:
        """Formats of the operands, and the widths behind them."""
        return VectorMac(
            weight=_format(self.weight_bits, self.vector, self.weight_scale_bits),
            activation=_format(
                self.activation_bits,
                self.vector,
                self.activation_scale_bits,
                signed=self.activation_signed,
            ),
            scale_product_bits=self.scale_product_bits or None,
            accumulator_bits=self.collector_bits,
            overflow=self.overflow,
        )

    @cached_property
    def lane(self) -> VectorLaneDesign:
        """A vector MAC and its collector."""
        return VectorLaneDesign(
            mac=self.mac, length=self.vector, depth=self.hold_cycles, gated=self.gated
        )

    @cached_property
    def output(self) -> VectorOutput:
        """The post-processing unit."""
        return VectorOutput(
            form=self.mac.activation, lanes=self.lanes, sum_bits=self.accumulator_bits
        )

    def use(self, name: str) -> Use:
        """As of every core; words of operands lie as they are."""
        found = super().use(name)
        if name == "accumulator":
            return found
        return replace(found, as_is=VECTORS, machine=f" of a {self.kind} core")

    @property
    def columns(self) -> int:
        """Filters of a row of sums: a lane each."""
        return self.lanes

    @property
    def ifmap_lanes(self) -> int:
        """One bank: its rows are a vector and its scale."""
        return 1

    @property
    def accumulator_word_bits(self) -> int:
        """A sum for every lane."""
        return self.lanes * self.accumulator_bits

    @cached_property
    def data_ports(self) -> tuple[Port, ...]:
        """The streams of data: vectors with their scales above them."""
        mac, output = self.mac, self.output
        return (
            _vectors("ifmap", "i", mac.activation, self.vector, 1),
            _vectors("weight", "i", mac.weight, self.vector, self.lanes),
            Port(
                name="bias",
                direction="i",
                lane_bits=(output.sum_bits,) * self.lanes + (output.multiplier_bits,) * self.lanes,
                lane_signed=(True,) * self.lanes + (False,) * self.lanes,
            ),
            Port.uniform(
                "ofmap",
                "o",
                output.word_units,
                output.unit_bits,
                signed=mac.activation.signed and not output.scaled,
            ),
        )

    @property
    def result_latency_cycles(self) -> int:
        """From the last issue of a pixel to the cycle in which its row of sums is accumulated."""
        return self.operand_latency_cycles + self.lane.latency_cycles

    @property
    def output_latency_cycles(self) -> int:
        """From the read of a row of sums to its word at the ofmap port."""
        return self.output.latency_cycles + self.pack_latency_cycles

    @property
    def output_queue_depth(self) -> int:
        """Words."""
        return max(8, self.output.queue_words + self.pack_latency_cycles)

    @property
    def array_columns(self) -> dict[str, int]:
        """The array's columns of the machine vector; an element is a vector."""
        return {
            "rows": self.hold_cycles,
            "columns": self.lanes,
            "chunk": 1,
            "slots": 0,
            "skew": self.result_latency_cycles,
            "dataflow": mc.OUTPUT_STATIONARY,
            "ifmap_lanes": self.ifmap_lanes,
            "output_vector": self.vector if self.output.scaled else 1,
            "output_value_units": self.output.value_units,
            "output_scale_units": self.output.scale_units,
            "output_word_units": self.output.word_units,
        }

    @cached_property
    def numerics(self) -> VectorNumerics:
        """Integers with a scale a vector."""
        from archsim.machines.vsq.vector_numerics import VectorNumerics

        return VectorNumerics(
            mac=self.mac, output=self.output, length=self.vector, sum_bits=self.accumulator_bits
        )

    @property
    def macs_per_cycle(self) -> int:
        return self.lanes * self.vector

    @cached_property
    def pes(self) -> PeArray:
        """The multipliers: one for each product of every lane's vector."""
        return PeArray(
            rows=self.vector,
            columns=self.lanes,
            row="product",
            column="lane",
            row_is="element",
            column_is="filter",
            vector=self.vector,
        )

    @property
    def mnk(self) -> tuple[int, int, int]:
        """Pixels for which weights are held, lanes, channels of a vector."""
        return self.hold_cycles, self.lanes, self.vector

    @property
    def size(self) -> str:
        return f"{self.lanes}x{self.vector}"

    @property
    def summary(self) -> str:
        scales = [str(bits or "-") for bits in (self.weight_scale_bits, self.activation_scale_bits)]
        return (
            f"{self.lanes} lanes of {self.vector} products, weights held {self.hold_cycles} "
            f"cycles, W/A/ws/as {self.weight_bits}/{self.activation_bits}/{'/'.join(scales)}"
        )

    @cached_property
    def components(self) -> tuple[Component, ...]:
        """The hardware as components, from which energy and area are computed."""
        from archsim.machines.vsq.components import vsq_components

        return vsq_components(self)


def _format(bits: int, vector: int, scale_bits: int, *, signed: bool = True) -> VectorFormat:
    return VectorFormat(
        bits=bits,
        signed=signed,
        vector=vector if scale_bits else None,
        scale_bits=scale_bits or None,
    )


def _vectors(
    name: str, direction: Literal["i", "o"], form: VectorFormat, length: int, lanes: int
) -> Port:
    """A port whose words are `lanes` vectors, each with its scale above its values."""
    scale = () if form.scale_bits is None else (form.scale_bits,)
    return Port(
        name=name,
        direction=direction,
        lane_bits=((form.bits,) * length + scale) * lanes,
        lane_signed=((form.signed,) * length + (False,) * len(scale)) * lanes,
    )


VSQ_5NM = Vsq(
    lanes=16,
    vector=64,
    hold_cycles=16,
    weight_scale_bits=8,
    activation_scale_bits=8,
    scale_product_bits=8,
    collector_bits=24,
    ifmap_memory=kibibytes(64),
    weight_memory=kibibytes(264),
    accumulator_memory=kibibytes(32),
    off_chip=OffChip(bytes_per_cycle=32.0, latency_cycles=100),
    clock_hz=1.76e9,
)
"""Keller et al., JSSC 58(4), 2023, in its INT4-VSQ mode: 16 lanes of 64 products, buffer entries of
264 bits (64 × 4 bits and a scale of 8), weights held 16 cycles, collectors of 16 × 24 bits that
saturate, the scale product rounded from 16 bits to 8; at its fastest clock, 1.76 GHz (1.05 V).
Buffer capacities stand in the paper's figures only, and are ours here, as is the off-chip memory;
the chip's data path takes one cycle, ours a stage a level of adders; its collectors are latches."""

VSQ_16 = Vsq()
"""VS-Quant's 4/4/4/6, vectors of 16, full products of scales: ResNet-50's point of −37 % area."""

VSQ_BASELINE = Vsq(weight_bits=8, activation_bits=8, weight_scale_bits=0, activation_scale_bits=0)
"""The same generator with the scale path off: 8 bits, a scale a channel, VS-Quant's 8/8/-/-."""
