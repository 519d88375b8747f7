"""The scan over the groups of one pass of a sparse core: operands, state, figures of PEs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from archsim.codecs.zero_run import Lists
from archsim.machines.scnn import kernels
from archsim.machines.scnn.addresses import activation_operand, bank_table
from archsim.machines.scnn.backlog import WORDS, banks_at, one_at, packs, rules
from archsim.machines.scnn.channel import MEMORY_COLUMNS
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.mapping import Mapping
from archsim.machines.scnn.pipeline import DECODE_CYCLES, FETCH_CYCLES, ISSUE_CYCLES
from archsim.machines.scnn.seen_weights import Met, SeenWeightLists, SeenWeights
from archsim.machines.scnn.sent import products_sent
from archsim.machines.scnn.served import LayerChannel
from archsim.machines.scnn.weights import WeightLists
from archsim.numbers import AnyIntArray, IntArray
from archsim.timing import Service

NO_CHANNEL = (
    np.zeros(MEMORY_COLUMNS, np.int64),
    np.zeros(1, np.int64),
    np.zeros(1, np.int64),
)
"""For `kernels.run_group`, which changes nothing of it."""

LONG_AGO = -1
"""The cycle in which word -1 of a port crossed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PassOperands:
    """What one pass computes with: lists of the ifmap as they are loaded and of the ofmap as they
    leave, weight [K, R, S, C]; a bias for each filter, or none.

    read, written: what PEs read of the ifmap, and write of the ofmap, where cells fail.
    walked: rows of values that walks over the ifmap and the ofmap use up, where that is not known
    by what was written.
    seen, met: weights as PEs read them, and what products were, where cells of FIFOs fail.
    """

    ifmap: Lists
    weight: AnyIntArray
    ofmap: Lists
    has_bias: bool = False
    read: Lists | None = None
    written: Lists | None = None
    walked: tuple[int | None, int | None] = (None, None)
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


def stages_of(design: Scnn) -> kernels.Stages:
    """Cycles of the registers between an issue and what it needs."""
    if not design.pipelined_pes:
        return kernels.Stages()
    return kernels.Stages(FETCH_CYCLES, DECODE_CYCLES, ISSUE_CYCLES)


class PassScan:
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
        self._stages = stages_of(design)
        self._rules = self._how(packed=packed)
        self._ends = np.zeros(mapping.used_pes, np.int64)
        self._issues = np.zeros((mapping.used_pes, len(kernels.Issues._fields)), np.int64)
        self._scalars = np.array([LONG_AGO, 0], np.int64)
        self._state = self._begun(service, WORDS if packed else 0)
        self._figures = np.zeros((mapping.used_pes, 4), np.int64)
        self._lengths = np.zeros(mapping.lists, np.int64)
        self.crossed: list[IntArray] = []
        self.offered: list[IntArray] = []

    def _how(self, *, packed: bool) -> tuple[Any, int, IntArray]:
        """Where a product of each address goes, as kernels take it, lists between barriers, and
        cycles of registers."""
        design = self._design
        banks = (
            self._bank_at if packed else banks_at(design, self._bank_at),
            one_at(design, self._bank_at) if packed else np.zeros(0, np.uint64),
            rules(design),
        )
        between = len(self._mapping.phases) if design.barrier == "channel" else 0
        return banks, between, np.array(self._stages, np.int64)

    def _begun(self, service: Service, words: int) -> tuple[Any, ...]:
        """What the scan goes on with, group after group; words: that hold a PE's backlog."""
        pes, vectors = self._mapping.used_pes, self._design.weight_fifo_vectors
        return (
            self._ends,
            (np.zeros((pes, words), np.uint64), np.zeros((pes, 1), np.int64)),
            np.zeros((pes, self._design.banks + 1), np.int64),
            (np.full(vectors, 1 + service.latency_cycles), np.zeros(vectors, np.int64)),
            self._scalars,
            self._issues,
        )

    def run_group(self, group: int, start: int) -> IntArray:
        """Ends of the PEs of a group which begins at `start`."""
        weights = self._weights.group(group)
        self._ends[:] = start
        self._issues[:] = start
        kernels.Issues(*self._issues.T).issued[:] += self._stages.fetch - 1
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


__all__ = ["PassOperands", "PassScan", "PeFigures"]
