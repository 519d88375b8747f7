"""When everything happens in one pass of a sparse core, exactly (docs/contracts/scnn.md).

For each group of filters one scan over its blocks follows broadcast, PEs and banks; one step ends
it.  A pass is one thread's, and lets others run: passes and layers may be timed side by side.
Cycles are counted from the pass's command, which crosses in cycle 0.
"""

from __future__ import annotations

from collections.abc import Mapping as ByPort
from dataclasses import dataclass, field

import numpy as np

from archsim.codecs.zero_run import Lists
from archsim.machines.scnn import kernels
from archsim.machines.scnn.addresses import activation_operand, bank_table
from archsim.machines.scnn.backlog import WORDS, banks_at, one_at, packs, rules
from archsim.machines.scnn.biases import BiasPort
from archsim.machines.scnn.channel import MEMORY_COLUMNS
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.lists import ofmap_writes
from archsim.machines.scnn.mapping import Mapping
from archsim.machines.scnn.seen_weights import Met, SeenWeightLists, SeenWeights
from archsim.machines.scnn.sent import products_sent
from archsim.machines.scnn.served import LayerChannel
from archsim.machines.scnn.weights import WeightLists
from archsim.memory.seam import StreamContent
from archsim.numbers import AnyIntArray, IntArray
from archsim.timing import Service, crossings

FREE = Service()

Offers = ByPort[str, IntArray]

NO_CHANNEL = (
    np.zeros(MEMORY_COLUMNS, np.int64),
    np.zeros(1, np.int64),
    np.zeros(1, np.int64),
)
"""For `kernels.run_group`, which changes nothing of it."""

LONG_AGO = -1
"""The cycle in which word -1 of a port crossed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Services:
    """The memory side of the ports of data; a vector, or bias, a cycle by default."""

    ifmap: Service = field(default_factory=lambda: FREE)
    weight: Service = field(default_factory=lambda: FREE)
    ofmap: Service = field(default_factory=lambda: FREE)
    bias: Service = field(default_factory=lambda: FREE)


@dataclass(frozen=True, kw_only=True, eq=False)
class PassOperands:
    """What one pass computes with: lists of the ifmap as they are loaded and of the ofmap as they
    leave, weight [K, R, S, C]; a bias for each filter, or none.

    read, written: what PEs read of the ifmap, and write of the ofmap, where cells fail.
    seen, met: weights as PEs read them, and what products were, where cells of FIFOs fail.
    """

    ifmap: Lists
    weight: AnyIntArray
    ofmap: Lists
    has_bias: bool = False
    read: Lists | None = None
    written: Lists | None = None
    seen: SeenWeights | None = None
    met: Met | None = None

    @property
    def computed(self) -> Lists:
        """The ifmap that PEs compute with."""
        return self.ifmap if self.read is None else self.read

    @property
    def made(self) -> Lists:
        """The ofmap that PEs write."""
        return self.ofmap if self.written is None else self.written


@dataclass(frozen=True, kw_only=True, eq=False)
class PeFigures:
    """Of every used PE, row by row [PEs].

    Cycles, which sum to the pass's compute cycles: busy (a pair is in the operand stage), wait
    (for a vector of weights), skip (a block without activations), barrier (for other PEs, and for
    accumulators), drain (after the last group's barrier).
    conflict: those of the busy cycles in which a pair waits for a bank.  pairs, products (sent to
    a bank), outside (non-zero products without an output), ifmap_reads (vectors), halo_sums (sent),
    copy_sums (sent), window_reads (sums read for windows).
    """

    busy: IntArray
    wait: IntArray
    skip: IntArray
    barrier: IntArray
    drain: IntArray
    conflict: IntArray
    pairs: IntArray
    products: IntArray
    outside: IntArray
    ifmap_reads: IntArray
    halo_sums: IntArray
    copy_sums: IntArray
    window_reads: IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class PassTiming:
    """One image, conv group and strip.

    By group of filters [groups]: starts S, ends B (the last PE), drain_starts DS, drained.
    pe_ends [groups, PEs]: E.  ifmap_cycles, weight_cycles, ofmap_cycles, bias_cycles: in which each
    word crosses its port; none do of an ifmap or ofmap that stays.  weight_bits, ifmap_bits,
    ofmap_bits: that cross.  oaram_writes: vectors written there
    (`ofmap_writes`).  written: the first cycle in which
    the last of them can be read.  offered: by port, when each word that it brings in has come from
    the off-chip channel; nothing if there is none.
    """

    mapping: Mapping
    starts: IntArray
    ends: IntArray
    drain_starts: IntArray
    drained: IntArray
    pe_ends: IntArray
    pes: PeFigures
    ifmap_cycles: IntArray
    weight_cycles: IntArray
    ofmap_cycles: IntArray
    bias_cycles: IntArray
    weight_bits: int
    ifmap_bits: int
    ofmap_bits: int
    oaram_writes: int
    written: int
    stored: tuple[StreamContent, StreamContent] | None = None
    offered: Offers = field(default_factory=dict[str, IntArray])

    @property
    def cycles(self) -> int:
        """From the command to the last vector of the ofmap, both included; if none leaves, to the
        cycle in which the last is written."""
        return int(self.ofmap_cycles[-1]) + 1 if len(self.ofmap_cycles) else self.written

    @property
    def compute_cycles(self) -> int:
        """From the start of the first group to the last sum that left: drained − S(0)."""
        return int(self.drained[-1] - self.starts[0])


class _Pass:
    """The state of one pass, group by group."""

    def __init__(
        self,
        design: Scnn,
        mapping: Mapping,
        operands: PassOperands,
        service: Service,
        channel: LayerChannel | None,
    ) -> None:
        self._design, self._mapping, self._operands = design, mapping, operands
        self._channel = channel
        self._intervals = _Intervals(service)
        self._activations = activation_operand(mapping, operands.computed)
        self._shape = (mapping.used_pes, mapping.lists)
        self._vectors = operands.computed.lengths.reshape(self._shape)
        self._empty = operands.computed.empty.reshape(self._shape)
        self._empty_by_block = np.ascontiguousarray(self._empty.T)
        self._bank_at = bank_table(design, mapping)
        packed = packs(design, len(self._bank_at))
        scale = WORDS if packed else 1
        addresses = len(self._bank_at)
        self._weights = (
            WeightLists(design, mapping, operands.weight, addresses, scale)
            if operands.seen is None
            else SeenWeightLists(operands.seen, addresses, scale)
        )
        self._lists = (
            self._activations.starts,
            self._activations.lanes(len(self._bank_at), scale),
        )
        self._rules = (
            (
                self._bank_at if packed else banks_at(design, self._bank_at),
                one_at(design, self._bank_at) if packed else np.zeros(0, np.uint64),
                rules(design),
            ),
            len(mapping.phases) if design.barrier == "channel" else 0,
        )
        self._ends = np.zeros(mapping.used_pes, np.int64)
        self._scalars = np.array([LONG_AGO, 0], np.int64)
        self._state = (
            self._ends,
            (
                np.zeros((mapping.used_pes, WORDS if packed else 0), np.uint64),
                np.zeros((mapping.used_pes, 1), np.int64),
            ),
            np.zeros((mapping.used_pes, design.banks + 1), np.int64),
            (
                np.full(design.weight_fifo_vectors, 1 + service.latency_cycles),
                np.zeros(design.weight_fifo_vectors, np.int64),
            ),
            self._scalars,
        )
        self._figures = np.zeros((mapping.used_pes, 4), np.int64)
        self._lengths = np.zeros(mapping.lists, np.int64)
        self.crossed: list[IntArray] = []
        self.offered: list[IntArray] = []

    def run_group(self, group: int, start: int) -> IntArray:
        """Ends of the PEs of a group which begins at `start`."""
        weights = self._weights.group(group)
        self._ends[:] = start
        vectors = int(weights[0][-1])
        cycles = np.zeros(vectors, np.int64)
        broadcast = kernels.ScanScalars(*self._scalars.tolist()).broadcast
        intervals = self._intervals.words(broadcast, vectors)
        offers = np.zeros(vectors, np.int64)
        kernels.run_group(
            (weights, (intervals, offers), cycles),
            (self._lists, self._empty_by_block),
            self._rules,
            self._state,
            self._channel.state if self._channel else NO_CHANNEL,
            self._figures,
        )
        self.crossed.append(cycles)
        self.offered.append(offers)
        self._lengths += np.diff(weights[0])
        return self._ends.copy()

    @property
    def weight_bits(self) -> int:
        """Of all vectors of weights."""
        return int(self._lengths.sum()) * self._design.word_bits("weight")

    def figures(self, barrier: IntArray, drain: int) -> PeFigures:
        """After the last group; `barrier`: cycles of every PE at the ends of groups."""
        mapping, counts = self._mapping, kernels.PeCounts(*self._figures.T)
        halo, copies, reads = (
            sums() * mapping.filters
            for sums in (mapping.halo_sums, mapping.copy_sums, mapping.window_reads)
        )
        pairs = (self._vectors * ~self._empty) @ self._lengths
        products, valued = self._products()
        return PeFigures(
            busy=counts.busy.copy(),
            wait=counts.wait.copy(),
            skip=counts.skips.copy(),
            barrier=counts.barrier + barrier,
            drain=np.full(mapping.used_pes, drain, np.int64),
            conflict=counts.busy - pairs,
            pairs=pairs,
            products=products,
            outside=valued - products,
            ifmap_reads=self._vectors.sum(axis=1) * mapping.groups,
            halo_sums=halo,
            copy_sums=copies,
            window_reads=reads,
        )

    def _products(self) -> tuple[IntArray, IntArray]:
        """[PEs] products that are sent, and those of two values that are not zero."""
        values = self._activations.values_by_list().reshape(self._shape[::-1]).T
        if isinstance(self._weights, SeenWeightLists):
            met = self._operands.met
            assert met is not None
            return met.products, (values * met.values).sum(axis=1)
        inside = self._bank_at < self._design.banks
        taps = self._weights.taps
        sent = products_sent(self._mapping, self._activations, taps, inside)
        return sent, values @ taps.sum(axis=1)


def pass_timing(
    design: Scnn,
    mapping: Mapping,
    operands: PassOperands,
    services: Services | None = None,
    channel: LayerChannel | None = None,
) -> PassTiming:
    """The cycles of one pass (module docstring); `operands` are those of `mapping`.

    services: of the ports; a word a cycle by default.  channel: what they wait for besides, at the
    beginning of the pass.
    """
    services = services or Services()
    run, groups = _Pass(design, mapping, operands, services.weight, channel), mapping.groups
    ifmap = channel.ifmap if channel else None
    offered = 0 if mapping.ifmap_kept else operands.ifmap.vectors
    loaded = _crossings(offered, 1 + services.ifmap.latency_cycles, services.ifmap, ifmap)
    starts, ends, drain_starts, drained = np.zeros((4, groups), np.int64)
    pe_ends = np.zeros((groups, mapping.used_pes), np.int64)
    words = mapping.filters if operands.has_bias else 0
    biases = BiasPort(design, mapping, services.bias, words, channel)
    free, start = 0, _first_start(design, loaded)
    for group in range(groups):
        starts[group] = start
        biases.send(group)
        pe_ends[group] = run.run_group(group, start)
        ends[group] = pe_ends[group].max()
        emptied = int(ends[group]) + design.pipeline_latency_cycles
        drain_starts[group] = max(emptied, free, biases.ready(group))
        biases.release(group, int(drain_starts[group]))
        start = max(int(ends[group]), free) + 1
        drained[group] = free = int(drain_starts[group]) + drain_cycles(mapping, group)
    waited = (np.append(starts[1:], ends[-1])[:, None] - pe_ends).sum(axis=0)
    leaving = 0 if mapping.keep_ofmap else operands.ofmap.vectors
    written = free + design.ofmap_latency_cycles
    return PassTiming(
        mapping=mapping,
        starts=starts,
        ends=ends,
        drain_starts=drain_starts,
        drained=drained,
        pe_ends=pe_ends,
        pes=run.figures(waited, int(free - ends[-1])),
        ifmap_cycles=loaded,
        weight_cycles=np.concatenate(run.crossed),
        ofmap_cycles=_crossings(leaving, written, services.ofmap),
        bias_cycles=biases.cycles,
        weight_bits=run.weight_bits,
        ifmap_bits=0 if mapping.ifmap_kept else operands.ifmap.bits(design.operand_bits),
        ofmap_bits=0 if mapping.keep_ofmap else operands.ofmap.bits(design.operand_bits),
        oaram_writes=ofmap_writes(mapping, operands.made),
        written=written,
        stored=_stored(design, mapping, operands),
        offered={
            "ifmap": channel.ifmap,
            "weight": np.concatenate(run.offered),
            "bias": biases.offered,
        }
        if channel
        else {},
    )


def _first_start(design: Scnn, loaded: IntArray) -> int:
    """S(0), from the crossings of the ifmap: none if it has stayed."""
    if not len(loaded):
        return design.exchange_cycles
    return int(loaded[-1]) + 1 + design.load_latency_cycles


def _stored(
    design: Scnn, mapping: Mapping, operands: PassOperands
) -> tuple[StreamContent, StreamContent] | None:
    memory = design.activation_memory
    if not memory.by_value:
        return None
    owning = len(operands.ofmap) // mapping.filters
    ifmap = memory.content(design.stream_use("iaram"), operands.ifmap, mapping.used_pes)
    ofmap = memory.content(design.stream_use("oaram"), operands.ofmap, owning)
    assert ifmap is not None and ofmap is not None, "a kind that stores by value counts it"
    return ifmap, ofmap


def drain_cycles(mapping: Mapping, group: int) -> int:
    """From the first sum that is read until the banks are free."""
    moved = mapping.halo_cycles(group) + mapping.copy_cycles(group)
    return moved + mapping.output_cycles(group)


def _crossings(
    vectors: int, earliest: int, service: Service, offered: IntArray | None = None
) -> IntArray:
    """Of vectors for which nothing but their port is waited, and that they are offered."""
    first = np.full(vectors, earliest, np.int64)
    if offered is not None:
        first = np.maximum(first, offered)
    return crossings(first, service.finish_times(vectors))


class _Intervals:
    """S of the words of a port, from group to group: cycles from the word before."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._finish = service.cumulative

    def words(self, first: int, words: int) -> IntArray:
        """S of so many words from the first."""
        needed = first + words
        if needed > len(self._finish):  # as long again, so that all groups take linear time
            explicit = len(self._service.gaps) > 0
            self._finish = self._service.finish_times(needed if explicit else 2 * needed)
        before = self._finish[first - 1] if first else 0
        return np.diff(self._finish[first:needed], prepend=before)


__all__ = ["PassOperands", "PassTiming", "PeFigures", "Services", "drain_cycles", "pass_timing"]
