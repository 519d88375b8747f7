"""When everything happens in one pass of a sparse core, exactly (docs/contracts/scnn.md).

For each group of filters one scan over its blocks follows broadcast, PEs and banks; one step ends
it.  A pass is one thread's, and lets others run: passes and layers may be timed side by side.
Cycles are counted from the pass's command, which crosses in cycle 0.
"""

from __future__ import annotations

from collections.abc import Mapping as ByPort
from dataclasses import dataclass, field

import numpy as np

from archsim.machines.scnn.biases import BiasPort
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.lists import ofmap_writes
from archsim.machines.scnn.mapping import Mapping
from archsim.machines.scnn.pass_scan import PassOperands, PassScan, PeFigures
from archsim.machines.scnn.served import LayerChannel
from archsim.memory.seam import StreamContent
from archsim.numbers import IntArray
from archsim.timing import Service, crossings

FREE = Service()

Offers = ByPort[str, IntArray]


@dataclass(frozen=True, kw_only=True, eq=False)
class Services:
    """The memory side of the ports of data; a vector, or bias, a cycle by default."""

    ifmap: Service = field(default_factory=lambda: FREE)
    weight: Service = field(default_factory=lambda: FREE)
    ofmap: Service = field(default_factory=lambda: FREE)
    bias: Service = field(default_factory=lambda: FREE)


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
    run, groups = PassScan(design, mapping, operands, services.weight, channel), mapping.groups
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
        start = max(int(ends[group]) + design.barrier_cycles, free) + 1
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
        offered=_offered(channel, run, biases),
    )


def _offered(channel: LayerChannel | None, run: PassScan, biases: BiasPort) -> Offers:
    """By port, when words have come from the channel."""
    if channel is None:
        return {}
    weights = np.concatenate(run.offered)
    return {"ifmap": channel.ifmap, "weight": weights, "bias": biases.offered}


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
    ofmap = memory.content(design.stream_use("oaram"), operands.made, owning)
    assert ifmap is not None and ofmap is not None, "a kind that stores by value counts it"
    both = zip((ifmap, ofmap), operands.walked, strict=True)
    found = [one if rows is None else one.walked_in(rows) for one, rows in both]
    return found[0], found[1]


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


__all__ = ["PassTiming", "Services", "drain_cycles", "pass_timing"]
