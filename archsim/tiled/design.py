"""What every core shares: scratchpads, off-chip memory, the streams at its boundary, latencies.

A core is an array between three scratchpads, with a sequencer and an output stage.  Simulation,
the conformance suite, reports and commands ask a design only what stands here; what a kind of
core adds stands in a room of its own under `archsim/machines/`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

from archsim.errors import InputError, require, require_clock, require_flag, require_positive
from archsim.gather import GatherUnit
from archsim.machine.design import Design
from archsim.memory import Bank, OffChip, PlainBank, Scratchpad, Use
from archsim.memory.plain import kibibytes
from archsim.memory.tile_store import TileStore
from archsim.numbers import IntArray
from archsim.ports import Port
from archsim.tiled import machine_vector as mc
from archsim.tiled.actions import ACTIONS, GATHER_ACTIONS
from archsim.tiled.layer_command import layer_fields
from archsim.tiled.mapper_options import MAPPER_OPTIONS
from archsim.tiled.pe_array import PeArray
from energy_models.frozen import FrozenDict

if TYPE_CHECKING:
    from archsim.machine.model import MachineModel
    from archsim.tiled.numerics import Numerics


OPERANDS: tuple[str, ...] = ("ifmap", "weight", "bias")

SUMS = "its rows of sums are added to, and grow where they lie"
"""Why words of sums must be stored as they are."""


@dataclass(frozen=True, kw_only=True)
class CoreDesign(Design):
    """The memories and the clock of a core.  Subclasses are frozen dataclasses too.

    ifmap_memory, weight_memory, accumulator_memory: scratchpads of two halves each; bias_words:
    words in each half of the bias memory, bias_memory: its kind; off_chip: what fills them;
    clock_hz: of the core; pipelined_control: registers behind every sum and product of the tile
    walker, and for every comparison of the sequencers, for FPGAs (no cycle changes); gather_units:
    units of the longest row that the gather unit before the ifmap scratchpad takes, 0 without one;
    ifmap_registers: 1 between the ifmap scratchpad and the rotation of its words, for an FPGA whose
    memories are slow: operands come a cycle later, for the weights are asked for a cycle later too.
    """

    ifmap_memory: Scratchpad = field(default_factory=lambda: kibibytes(64))
    weight_memory: Scratchpad = field(default_factory=lambda: kibibytes(64))
    accumulator_memory: Scratchpad = field(default_factory=lambda: kibibytes(64))
    bias_words: int = 512
    bias_memory: Bank = field(default=PlainBank(), repr=False, metadata={"implied": True})
    off_chip: OffChip = field(default_factory=OffChip)
    clock_hz: float = 500e6
    pipelined_control: bool = field(default=False, repr=False, metadata={"implied": True})
    gather_units: int = field(default=0, repr=False, metadata={"implied": True})
    ifmap_registers: int = field(default=0, repr=False, metadata={"implied": True})

    options = MAPPER_OPTIONS

    command_queue_depth: ClassVar[int] = 4
    tile_interval_cycles: ClassVar[int] = 10
    """Between tile commands, and from a layer's command to its first: nine products in turn."""
    pack_latency_cycles: ClassVar[int] = 1
    """Of the packer of outputs into words."""
    address_latency_cycles: ClassVar[int] = 1
    align_latency_cycles: ClassVar[int] = 1

    def for_fpga(self) -> Self:
        """With `pipelined_control`, and scratchpads of operands as an FPGA wants them."""
        return replace(
            self,
            pipelined_control=True,
            ifmap_memory=self.ifmap_memory.for_fpga(),
            weight_memory=self.weight_memory.for_fpga(),
        )

    def machine_model(self) -> MachineModel:
        """The model of all cores that are walked by tiles."""
        from archsim.tiled.model import TileMachine

        return TileMachine(self)

    def check_memories(self) -> None:
        """Raise `InputError` for memories that cannot hold two words a half; called last."""
        require_positive(bias_words=self.bias_words)
        require_clock(self.clock_hz)
        require_flag(pipelined_control=self.pipelined_control)
        registers: Any = self.ifmap_registers
        require(
            type(registers) is int and registers in (0, 1),
            f"ifmap_registers must be 0 or 1, not {registers!r}",
        )
        for name in ("ifmap", "weight", "accumulator"):
            self._check_kind(name, self.memory(name))
            require(
                self.sure_depth(name) >= 2,
                f"{name}_memory holds {self.memory(name).capacity_bytes} bytes, but two halves of "
                f"two words of {self.word_bits(name)} bits need "
                f"{4 * self.word_bits(name) // 8} bytes",
            )
        self._check_kind("bias", self.bias_memory)
        sums = self.accumulator_memory
        require(
            (sums.read_latency_cycles, sums.write_latency_cycles) == (1, 0),
            f"accumulator_memory must be read in 1 cycle and written in 0, for a row is added to "
            f"the cycle behind its last sum, not in {sums.read_latency_cycles} and "
            f"{sums.write_latency_cycles}",
        )
        require(
            not sums.joined_halves,
            "joined_halves of accumulator_memory must be false, for one half is added to while the "
            "other one is read",
        )
        self._check_gather()

    def _check_gather(self) -> None:
        units, port = self.gather_units, self._port("ifmap")
        whole: Any = units
        require(
            type(whole) is int and whole >= 0,
            f"gather_units must be units of a row, or 0 for no gather unit, not {whole!r}",
        )
        if not units:
            return
        lanes = self.array_columns["ifmap_lanes"]
        require(
            len(port.lane_bits) == lanes,
            f"gather_units must be 0 for kind {self.kind!r}, not {units}: a lane of its ifmap is "
            f"not one value",
        )
        require(
            "ifmap" not in self.stores,
            f"gather_units must be 0 with an ifmap_memory whose capacity hangs on values, "
            f"not {units}",
        )
        _ = self.gather

    def _check_kind(self, name: str, memory: Bank) -> None:
        """Whether a memory can hold the words."""
        use = self.use(name)
        try:
            memory.check(use)
        except InputError as error:
            if use.must_be_as_is and str(error) == use.must_be_as_is:
                raise
            raise InputError(f"{use.field}: {error}") from error

    def use(self, name: str) -> Use:
        """What "ifmap", "weight", "accumulator" or "bias" keep, and how they are read."""
        if name == "accumulator":
            columns, bias = self.array_columns["columns"], self._port("bias")
            bits = (self.accumulator_word_bits // columns,) * columns
            signed, as_is = (bias.lane_signed[0],) * columns, SUMS
        else:
            port = self._port(name)
            bits, signed, as_is = port.lane_bits, port.lane_signed, ""
        return Use(
            name=name,
            field=f"{name}_memory",
            lane_bits=bits,
            lane_signed=signed,
            by_lane=name == "ifmap" and len(bits) == self.array_columns["ifmap_lanes"],
            as_banks=name == "accumulator",
            as_is=as_is,
        )

    def _port(self, name: str) -> Port:
        return next(one for one in self.data_ports if one.name == name)

    def memory(self, name: str) -> Scratchpad:
        """The scratchpad of "ifmap", "weight" or "accumulator"."""
        return {
            "ifmap": self.ifmap_memory,
            "weight": self.weight_memory,
            "accumulator": self.accumulator_memory,
        }[name]

    def bank(self, name: str) -> Bank:
        """The memory of "ifmap", "weight", "accumulator" or "bias"."""
        return self.bias_memory if name == "bias" else self.memory(name)

    @cached_property
    def exact(self) -> bool:
        """Whether operands and sums are read as they were written."""
        return all(self.bank(name).exact for name in (*OPERANDS, "accumulator"))

    @property
    def adds_folds(self) -> bool:
        """Whether every fold's sums are added in the accumulators, not a channel tile's at once."""
        return self.array_columns["dataflow"] != mc.OUTPUT_STATIONARY

    @cached_property
    def stores(self) -> dict[str, TileStore]:
        """The scratchpads of operands whose capacity hangs on values, by operand."""
        found = {name: self.memory(name).by_value(self.use(name)) for name in ("ifmap", "weight")}
        return FrozenDict({name: one for name, one in found.items() if one is not None})

    @cached_property
    def gather(self) -> GatherUnit | None:
        """What packs kept units between the ifmap's loader and its scratchpad; None without."""
        if not self.gather_units:
            return None
        port = self._port("ifmap")
        lanes = len(port.lane_bits)
        return GatherUnit(lanes=lanes, lane_bits=port.lane_bits[0], units=self.gather_units)

    @property
    def actions(self) -> tuple[str, ...]:
        """What its performance counters count (`archsim.tiled.actions`)."""
        stores = self.stores.items()
        of_stores = (f"{name}_{what}" for name, one in stores for what in one.counted)
        return (*ACTIONS, *(GATHER_ACTIONS if self.gather_units else ()), *of_stores)

    def depth(self, name: str) -> int:
        """Words that can be addressed in one half of a scratchpad."""
        if name == "bias":
            return self.bias_words
        return self.memory(name).depth(self.word_bits(name))

    def sure_depth(self, name: str) -> int:
        """Words that one half of a scratchpad holds, whatever their values."""
        if name == "bias":
            return self.bias_words
        return self.memory(name).sure_depth(self.word_bits(name))

    def read_latency_cycles(self, name: str) -> int:
        """From an address of "ifmap" or "weight" to its word, behind the ifmap's register."""
        registers = self.ifmap_registers if name == "ifmap" else 0
        return self.memory(name).read_latency_cycles + registers

    def read_wait_cycles(self, name: str) -> int:
        """By how much "ifmap" or "weight" is read later, so that both arrive together."""
        latencies = [self.read_latency_cycles(one) for one in ("ifmap", "weight")]
        return max(latencies) - self.read_latency_cycles(name)

    def word_bits(self, name: str) -> int:
        """Width of a word of "ifmap", "weight", "bias", "ofmap" (their ports') or "accumulator"."""
        return self.accumulator_word_bits if name == "accumulator" else self._port_bits[name]

    @cached_property
    def _port_bits(self) -> dict[str, int]:
        """Width of a word of each data port."""
        return FrozenDict({port.name: port.bits for port in self.data_ports})

    @cached_property
    def ports(self) -> tuple[Port, ...]:
        """The streams at the core's boundary: command, ifmap, weight, bias, ofmap."""
        known = layer_fields(gathers=self.gather is not None)
        command = Port(
            name="command",
            direction="i",
            lane_bits=tuple(entry.bits for entry in known),
            lane_signed=tuple(entry.signed for entry in known),
            lane_names=tuple(entry.name for entry in known),
        )
        return (command, *self.data_ports)

    @cached_property
    @abstractmethod
    def data_ports(self) -> tuple[Port, ...]:
        """The streams of data: ifmap, weight, bias, ofmap."""

    @property
    @abstractmethod
    def accumulator_word_bits(self) -> int:
        """Width of a row of sums."""

    @property
    def operand_latency_cycles(self) -> int:
        """From a walker's issue to the operand at the array (address, memory, align)."""
        return (
            self.address_latency_cycles
            + self.read_latency_cycles("ifmap")
            + self.read_wait_cycles("ifmap")
            + self.align_latency_cycles
        )

    @property
    @abstractmethod
    def result_latency_cycles(self) -> int:
        """From a walker's issue to the cycle in which its sums are accumulated."""

    @property
    def accumulate_latency_cycles(self) -> int:
        """From a row's token, a cycle ahead of its sums, to the write of what they add up to."""
        return 1

    @property
    @abstractmethod
    def output_latency_cycles(self) -> int:
        """From the read of a row of sums to its word at the ofmap port."""

    @property
    @abstractmethod
    def output_queue_depth(self) -> int:
        """Words: above the output stage's latency, so that back-pressure costs no throughput."""

    @cached_property
    def machine(self) -> IntArray:
        """The design as the timing kernels read it (`archsim.tiled.machine_vector`)."""
        memory = self.off_chip
        record = mc.MachineRecord(
            **self.array_columns,
            **{f"{name}_depth": self.sure_depth(name) for name in (*OPERANDS, "accumulator")},
            **{
                f"{name}_word_bytes": -(-self.word_bits(name) // 8) for name in (*OPERANDS, "ofmap")
            },
            ifmap_write_latency=self.ifmap_memory.write_latency_cycles
            + (self.gather.latency_cycles if self.gather else 0),
            weight_write_latency=self.weight_memory.write_latency_cycles,
            bias_write_latency=0,
            ifmap_read_wait=self.read_wait_cycles("ifmap"),
            weight_read_wait=self.read_wait_cycles("weight"),
            result_latency=self.result_latency_cycles,
            output_latency=self.output_latency_cycles,
            output_queue=self.output_queue_depth,
            command_queue=self.command_queue_depth,
            tile_interval=self.tile_interval_cycles,
            offchip_rate=round(memory.bytes_per_cycle * 1024),
            offchip_weight_rate=round((memory.weight_bytes_per_cycle or 0) * 1024),
            offchip_latency=memory.latency_cycles,
            offchip_burst_bytes=memory.burst_bytes,
            offchip_shared=int(memory.shared),
            gather_bits=self.gather.lane_bits if self.gather else 0,
        )
        return record.vector()

    @property
    @abstractmethod
    def array_columns(self) -> Mapping[str, int]:
        """The array's fields of `MachineRecord`: from `rows` to `ifmap_lanes`, and those of its
        outputs."""

    @cached_property
    @abstractmethod
    def pes(self) -> PeArray:
        """The PEs, and which of them does which product."""

    @cached_property
    @abstractmethod
    def numerics(self) -> Numerics:
        """How operands become words and values."""

    def memory_parts(self, memory: str) -> tuple[str, ...]:
        """Banks of biases belong to the output stage."""
        return ("output_stage.bias",) if memory == "bias" else super().memory_parts(memory)

    @property
    def intake(self) -> Numerics:
        """What operands it takes."""
        return self.numerics

    @property
    @abstractmethod
    def mnk(self) -> tuple[int, int, int]:
        """Pixels, filters and channels of the product that fills the array once."""


__all__ = ["OPERANDS", "CoreDesign", "kibibytes"]
