"""SCNN: a grid of PEs that multiply compressed weights by compressed activations.

The core of Parashar et al., "SCNN: An Accelerator for Compressed-sparse Convolutional Neural
Networks", ISCA 2017 (dataflow PT-IS-CP-sparse).  Each PE keeps the non-zero activations of its
part of the plane; non-zero weights are broadcast.  F weights times I activations a cycle make F · I
products, each of which goes to the bank of accumulators that its output has.  The cycle contract,
and what of it is published, is `docs/contracts/scnn.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from archsim.errors import (
    require,
    require_clock,
    require_flag,
    require_positive,
    require_whole,
    require_within,
)
from archsim.layer.intake import IntegerIntake
from archsim.machine.design import Design
from archsim.machine.option import Option
from archsim.machines.scnn.mapper_options import MAPPER, OBJECTIVE
from archsim.machines.scnn.memory_check import check_memories
from archsim.machines.scnn.pipeline import BARRIER_CYCLES, DRAIN_CYCLES, OUTPUT_CYCLES
from archsim.memory import Bank, OffChip, PlainBank, PlainStream, StreamMemory, StreamUse, Use

if TYPE_CHECKING:
    from archsim.machine.model import MachineModel
    from energy_models.component import Component

BankHash = Literal["linear", "dnnsim"]
Barrier = Literal["group", "channel"]
GroupRule = Literal["accumulators", "dnnsim"]
Sparsity = Literal["both", "weights", "activations"]

CHOICES: dict[str, tuple[str, ...]] = {
    "bank_hash": ("linear", "dnnsim"),
    "barrier": ("group", "channel"),
    "group_rule": ("accumulators", "dnnsim"),
    "sparsity": ("both", "weights", "activations"),
}

CHAIN = Option(
    name="chain",
    says="ofmaps stay for the next layer where they can",
    more="and are pooled in the PEs where the network says so",
)

UNLIMITED = OffChip()
PLAIN = PlainStream()
PARTS = {"activation": ("iaram", "oaram"), "weight": ("weight_fifo", "weight_decoder")}
PLAIN_BANK = PlainBank()

MOST_BANKS = 1 << 15
"""Banks of a PE: their numbers, and one for products beside the plane, have 16 bits."""

WIDEST_ACCUMULATOR = 62
"""Bits, so that a sum and its bias stay within 64."""


@dataclass(frozen=True, kw_only=True)
class _FittingIntake(IntegerIntake):
    """Values narrower than the multipliers: 8 bits where products of 16 would not fit 24."""

    @property
    def source_bits(self) -> int:
        return max(min(self.operand_bits, (self.accumulator_bits - 8) // 2), 2)


@dataclass(frozen=True, kw_only=True)
class Scnn(Design):
    """grid_rows × grid_columns PEs of weight_lanes × ifmap_lanes multipliers.

    banks: A, banks of accumulators in a PE, a power of two; bank_entries: sums in each of the two
    halves of a bank.  weight_fifo_vectors: D, vectors of weights that a PE's FIFO holds.
    filter_group: the most filters whose sums are in the accumulators at a time.  iaram_bytes,
    oaram_bytes: values and indices of the compressed ifmap and ofmap in a PE.
    strip_rows: the most rows of the ofmap (pooled ones, where the layer is pooled; columns, of a
    plane of one row) in a pass; 0: as many as fit, which is the fewest passes.
    index_bits: of the run of zeros before a value.
    bank_queue: Q, places of each bank's queue of products; 1: none, a pair waits until all its
    products are at their banks.  Not published.
    bank_hash: which bank a sum is in.  "linear": the address mod A; "dnnsim": the hash of filter,
    row and column of that simulator (model only).
    barrier: PEs wait for each other after every "group" of filters, or every "channel" of each.
    group_rule: how many filters are a group.  "accumulators": the most, up to `filter_group`, whose
    sums fit; "dnnsim": as many as have their outputs, without halos, in the accumulators of the
    PEs, as that simulator has it (model only).
    bank_hash and group_rule of DNNsim and a barrier after every channel, all three, are its count
    (`counts_as_dnnsim`).
    sparsity: which operands are compressed; the other one is stored with its zeros.
    pipelined_pes: registers between the steps of a PE, of the decoder of weights and of the drain,
    for FPGAs: pairs are issued ahead of being sent (docs/contracts/scnn.md, *Registers*).
    activation_memory: how IARAM and OARAM store vectors, a stream; both, since they change places.
    weight_memory, accumulator_memory: kinds of the FIFO's memory and of the accumulators', banks.
    """

    grid_rows: int = 8
    grid_columns: int = 8
    weight_lanes: int = 4
    ifmap_lanes: int = 4
    banks: int = 32
    bank_entries: int = 32
    weight_fifo_vectors: int = 50
    filter_group: int = 8
    strip_rows: int = 0
    iaram_bytes: int = 10240
    oaram_bytes: int = 10240
    operand_bits: int = 16
    accumulator_bits: int = 24
    multiplier_bits: int = 16
    index_bits: int = 4
    bank_queue: int = 4
    bank_hash: BankHash = "linear"
    barrier: Barrier = "group"
    group_rule: GroupRule = "accumulators"
    sparsity: Sparsity = "both"
    pipelined_pes: bool = field(default=False, repr=False, metadata={"implied": True})
    activation_memory: StreamMemory = PLAIN
    weight_memory: Bank = field(default=PLAIN_BANK, repr=False, metadata={"implied": True})
    accumulator_memory: Bank = field(default=PLAIN_BANK, repr=False, metadata={"implied": True})
    clock_hz: float = 1e9
    off_chip: OffChip = UNLIMITED

    kind: ClassVar[str] = "scnn"
    growing: ClassVar[tuple[str, ...]] = ("grid_rows", "grid_columns")
    options = (CHAIN, MAPPER, OBJECTIVE)

    def __post_init__(self) -> None:
        sizes = (
            "grid_rows", "grid_columns", "weight_lanes", "ifmap_lanes", "banks", "bank_entries",
            "weight_fifo_vectors", "filter_group", "iaram_bytes", "oaram_bytes", "operand_bits",
            "accumulator_bits", "multiplier_bits", "index_bits", "bank_queue",
        )  # fmt: skip
        require_positive(**{name: getattr(self, name) for name in sizes})
        require_whole(0, "not be negative", strip_rows=self.strip_rows)
        lanes = ("grid_rows", "grid_columns", "weight_lanes", "ifmap_lanes", "banks", "bank_queue")
        require_within("lanes", **{name: getattr(self, name) for name in lanes})
        require_within("multipliers", multipliers=self.multipliers)
        require_within("multipliers", **{"grid_rows × grid_columns × banks": self.pes * self.banks})
        require_clock(self.clock_hz)
        self._check_ranges()
        check_memories(self)

    def _check_ranges(self) -> None:
        """Of single fields."""
        for name, known in CHOICES.items():
            value = getattr(self, name)
            require(value in known, f"{name} must be one of {', '.join(known)}, not {value!r}")
        require(
            self.banks & (self.banks - 1) == 0, f"banks must be a power of two, not {self.banks}"
        )
        require(self.banks <= MOST_BANKS, f"banks must be at most {MOST_BANKS}, not {self.banks}")
        for name, least, most in (
            ("operand_bits", 2, 16),
            ("accumulator_bits", 2, WIDEST_ACCUMULATOR),
            ("multiplier_bits", 1, 16),
            ("index_bits", 1, 16),
        ):
            value = getattr(self, name)
            require(least <= value <= most, f"{name} must be {least} to {most}, not {value}")
        require_flag(pipelined_pes=self.pipelined_pes)
        require(
            not self.pipelined_pes or self.barrier == "group",
            f"pipelined_pes must be false with barrier {self.barrier}, not {self.pipelined_pes}",
        )
        for name in ("iaram_bytes", "oaram_bytes"):
            require(
                8 * getattr(self, name) >= self.ifmap_vector_bits,
                f"{name} must hold a vector of {self.ifmap_vector_bits} bits, "
                f"not {getattr(self, name)} bytes",
            )

    def for_fpga(self) -> Scnn:
        """With `pipelined_pes`."""
        return replace(self, pipelined_pes=True)

    @property
    def lists_as_meant(self) -> bool:
        """Whether PEs read the lists that were written, as no cell of them fails."""
        return self.activation_memory.exact and self.weight_memory.exact

    @property
    def values_as_meant(self) -> bool:
        """Whether the ofmap is what was meant, as no cell of lists or sums fails."""
        return self.lists_as_meant and self.accumulator_memory.exact

    @cached_property
    def weights_as_crossed(self) -> bool:
        """Whether FIFOs hold vectors as they cross, values and indices, which each PE decodes:
        where their cells may fail, or keep more than the vectors."""
        kind, use = self.weight_memory, self.use("weight")
        if not kind.exact or kind.masks(use, 1) is not None:
            return True
        cells = kind.stored(use, np.zeros((1, use.lanes), np.int64))
        return [bits.shape[-1] for bits in cells.values()] != [use.word_bits]

    @property
    def weight_place_bits(self) -> int:
        """Of a place in a PE's FIFO, above which the PE's number stands in failing cells."""
        return max((self.weight_fifo_vectors - 1).bit_length(), 1)

    @property
    def weight_fifo_rows(self) -> int:
        """Places of the FIFOs of all PEs, as the cells that fail are counted."""
        return self.pes << self.weight_place_bits

    @property
    def bank_entry_bits(self) -> int:
        """Of a sum's place in its bank, above which the numbers of bank and PE stand in failing
        cells."""
        return max((self.bank_entries - 1).bit_length(), 1)

    @property
    def bank_words(self) -> int:
        """Places of a half of the banks of all PEs, as the cells that fail are counted."""
        return self.pes * self.banks << self.bank_entry_bits

    def machine_model(self) -> MachineModel:
        """The model of a machine whose cycles depend on its values."""
        from archsim.machines.scnn.model import SparseMachine

        return SparseMachine(self)

    @property
    def counts_as_dnnsim(self) -> bool:
        """Whether cycles are DNNsim's (`archsim.machines.scnn.dnnsim`), with nothing of ours beside
        its rules: of the design only grid, lanes, banks and their entries count."""
        return (self.bank_hash, self.barrier, self.group_rule) == ("dnnsim", "channel", "dnnsim")

    @property
    def intake(self) -> IntegerIntake:
        """Integers with one scale a tensor, of so few bits that sums of 256 fit an accumulator."""
        return _FittingIntake(
            operand_bits=self.operand_bits,
            accumulator_bits=self.accumulator_bits,
            multiplier_bits=self.multiplier_bits,
        )

    @property
    def macs_per_cycle(self) -> int:
        """Products a cycle, all multipliers busy."""
        return self.multipliers

    @property
    def size(self) -> str:
        return f"{self.grid_rows}x{self.grid_columns}x{self.weight_lanes}x{self.ifmap_lanes}"

    @property
    def summary(self) -> str:
        return (
            f"{self.grid_rows} × {self.grid_columns} PEs of {self.weight_lanes} × "
            f"{self.ifmap_lanes} multipliers, zeros skipped, {self.operand_bits}-bit operands"
        )

    def word_bits(self, name: str) -> int:
        """A vector with its flag; a bias."""
        return {
            "ifmap": self.ifmap_vector_bits + 1,
            "weight": self.weight_lanes * self.element_bits + 1,
            "bias": self.accumulator_bits,
            "ofmap": self.ifmap_vector_bits + 1,
        }[name]

    @cached_property
    def components(self) -> tuple[Component, ...]:
        """The hardware as components, from which energy and area are computed."""
        from archsim.machines.scnn.components import scnn_components

        return scnn_components(self)

    @property
    def pes(self) -> int:
        """PEs of the grid."""
        return self.grid_rows * self.grid_columns

    @property
    def multipliers(self) -> int:
        """F · I · PEs: products a cycle at most."""
        return self.pes * self.weight_lanes * self.ifmap_lanes

    @property
    def element_bits(self) -> int:
        """A value and its index."""
        return self.operand_bits + self.index_bits

    @property
    def ifmap_vector_bits(self) -> int:
        """A vector of activations in IARAM or OARAM, but for its flag."""
        return self.ifmap_lanes * self.element_bits

    @property
    def iaram_vectors(self) -> int:
        """Vectors that the IARAM of a PE holds, whatever their values; their flags lie beside."""
        return 8 * self.iaram_bytes // self.ifmap_vector_bits

    @property
    def oaram_vectors(self) -> int:
        """Vectors that the OARAM of a PE holds, whatever their values."""
        return 8 * self.oaram_bytes // self.ifmap_vector_bits

    def stream_use(self, name: str) -> StreamUse:
        """What "iaram" or "oaram" keeps in every PE."""
        return StreamUse(
            name=name,
            field=f"{name}_bytes",
            given_bytes=getattr(self, f"{name}_bytes"),
            lanes=self.ifmap_lanes,
            value_bits=self.operand_bits,
            index_bits=self.index_bits,
            pes=self.pes,
            most_rows=max(self.iaram_vectors, self.oaram_vectors),
            most_entries=max(self.iaram_entries, self.oaram_entries),
            half=int(name == "oaram"),
        )

    def use(self, name: str) -> Use:
        """What the "weight" FIFO and the "accumulator" banks keep."""
        require(name in ("weight", "accumulator"), f"{name} memories of {self.kind} keep no words")
        if name == "weight":
            lanes, bits = (self.weight_lanes, self.element_bits)
        else:
            lanes, bits = (1, self.accumulator_bits)
        return Use(
            name=name,
            field=f"{name}_memory",
            lane_bits=(bits,) * lanes,
            lane_signed=(True,) * lanes,
            words=self.weight_fifo_rows if name == "weight" else 0,
            depth=self.bank_words if name == "accumulator" else 0,
        )

    def lane_bits(self, memory: str) -> int:
        """Of lists a value's bits, and behind them its index's."""
        if memory == "activation":
            return self.operand_bits + self.index_bits
        return super().lane_bits(memory)

    def memory_parts(self, memory: str) -> tuple[str, ...]:
        """Lists of activations stand in two memories, those of weights in a FIFO, with decoders in
        front of it or behind."""
        return PARTS.get(memory) or super().memory_parts(memory)

    def bank(self, name: str) -> Bank:
        """The kind of the memory of "weight" or "accumulator"."""
        return {"weight": self.weight_memory, "accumulator": self.accumulator_memory}[name]

    @property
    def iaram_entries(self) -> int:
        """The most vectors in the IARAM of a PE: those of narrow values, if it compresses them."""
        return self.activation_memory.entries(self.iaram_vectors)

    @property
    def oaram_entries(self) -> int:
        """The most vectors in the OARAM of a PE."""
        return self.activation_memory.entries(self.oaram_vectors)

    @property
    def accumulators(self) -> int:
        """Sums in one half of a PE's banks."""
        return self.banks * self.bank_entries

    @property
    def ofmap_latency_cycles(self) -> int:
        """From the end of the last drain to the first vector of the ofmap: requantise, compress,
        OARAM, and what that takes to be read."""
        more = DRAIN_CYCLES + OUTPUT_CYCLES if self.pipelined_pes else 0
        return 3 + more + self.activation_memory.latency_cycles

    @property
    def load_latency_cycles(self) -> int:
        """From the cycle behind the last ifmap vector to the first group."""
        return max(self.activation_memory.latency_cycles, int(self.pipelined_pes))

    @property
    def barrier_cycles(self) -> int:
        """From the end of a group to the cycle in which that is known, and the next one begun."""
        return BARRIER_CYCLES if self.pipelined_pes else 0

    @property
    def exchange_cycles(self) -> int:
        """From a command whose ifmap has stayed to its first group: IARAM and OARAM change places,
        and the first vectors are read."""
        return 2

    @property
    def pipeline_latency_cycles(self) -> int:
        """LP = 3 + (Q − 1): from the cycle after a pair's last in the operand stage to the one in
        which the sums of all its products can be read: operands, multiply, bank, and the longest
        that a queue can take."""
        return 3 + self.bank_queue - 1


SCNN_ISCA17 = Scnn()
"""The published core: 64 PEs of 4 × 4 multipliers, 32 banks of 32 sums, FIFO of 50
vectors, 10 KB each of IARAM and OARAM.  The limit of 8 filters is the one the paper quotes for a
layer.  Its DRAM is said to give 50 GB/s, and to matter below some 4 GB/s only: at 1 GHz the ports
that bring in data carry 23 B a cycle together, so no limit is set here (`off_chip`)."""

SCNN_4PE = Scnn(
    grid_rows=2,
    grid_columns=2,
    weight_lanes=16,
    ifmap_lanes=16,
    banks=512,
    iaram_bytes=163840,
    oaram_bytes=163840,
)
"""The paper's other extreme of granularity: the same 1024 multipliers in 4 PEs of 16 × 16.  Chosen
here: A = 2 · F · I banks as in the PE that is published, so that all accumulators hold what they do
there; 16 times the IARAM and OARAM of each; 50 FIFO vectors."""

SCNN_DNNSIM = Scnn(
    bank_entries=192,
    bank_queue=1,
    bank_hash="dnnsim",
    barrier="channel",
    group_rule="dnnsim",
)
"""SCNN as DNNsim (github.com/isakedo/DNNsim) counts it, to the cycle, with its default of 6144 sums
in a PE: `archsim.machines.scnn.dnnsim`.  Model only."""
