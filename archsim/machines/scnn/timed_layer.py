"""What the passes of a layer come to: its cycles, its figures by PE, its bits, its actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.stream_actions import row_actions, stored_bits
from archsim.machines.scnn.timing import PassTiming
from archsim.numbers import IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class ScnnTiming:
    """A layer's passes, one after the other: for each image, each conv group, each strip."""

    design: Scnn
    passes: tuple[PassTiming, ...]
    strips: int
    """Of each image and conv group, in the one that has the most."""
    ofmap: IntArray
    """`layer_values`, which the output's memories needed."""
    behind_cycles: int = 0
    """Behind the last pass, until its ofmap has left the off-chip channel."""
    free: tuple[PassTiming, ...] | None = None
    """The passes with ports that never wait, if `passes` wait for the off-chip memory."""

    @property
    def cycles(self) -> int:
        """From the first pass's command to the last vector of the last one's ofmap, and its way to
        the off-chip memory."""
        return sum(one.cycles for one in self.passes) + self.behind_cycles

    @property
    def compute_cycles(self) -> int:
        """From the start of the first group of filters to the last sum that left, of all passes."""
        return sum(one.compute_cycles for one in self.passes)

    @property
    def products(self) -> int:
        """Products of two values that are not zero, with an output that takes them."""
        return int(self.per_pe("products").sum())

    @property
    def utilization(self) -> float:
        """products / (F · I · PEs of the grid · compute cycles)."""
        return self.products / (self.design.multipliers * self.compute_cycles)

    @property
    def lanes_idle(self) -> int:
        """Products that pairs have room for, less those that are sent: fragmentation."""
        lanes = self.design.weight_lanes * self.design.ifmap_lanes
        return int(self.per_pe("pairs").sum()) * lanes - self.products

    @property
    def weight_bits(self) -> int:
        """Compressed, as broadcast: once for each image and strip."""
        return sum(one.weight_bits for one in self.passes)

    @property
    def ifmap_bits(self) -> int:
        """Compressed, as loaded."""
        return sum(one.ifmap_bits for one in self.passes)

    @property
    def ofmap_bits(self) -> int:
        """Compressed, as it leaves."""
        return sum(one.ofmap_bits for one in self.passes)

    @property
    def stored(self) -> dict[str, int]:
        """Bits that ifmap and ofmap take of memories that compress values, and those that they
        would take plainly, of all passes; nothing if they do not."""
        return stored_bits(self.passes)

    def per_pe(self, name: str) -> IntArray:
        """A figure of `PeFigures` over all passes, [grid rows, grid columns]; 0 where unused."""
        return per_pe(self.design, self.passes, name)

    @property
    def actions(self) -> dict[str, int]:
        """Counted events of all passes: `counted`."""
        return counted(self.design, self.passes)


def per_pe(design: Scnn, passes: Sequence[PassTiming], name: str) -> IntArray:
    """A figure of `PeFigures` over passes, [grid rows, grid columns]; 0 where unused."""
    total = np.zeros((design.grid_rows, design.grid_columns), np.int64)
    for one in passes:
        shape = one.mapping.rows.pes, one.mapping.columns.pes
        total[: shape[0], : shape[1]] += getattr(one.pes, name).reshape(shape)
    return total


SUMMED = ("pairs", "products", "conflict", "skip", "ifmap_reads", "halo_sums", "copy_sums",
          "window_reads")  # fmt: skip


def counted(design: Scnn, passes: Sequence[PassTiming]) -> dict[str, int]:
    """Counted events of passes.

    pair: vectors that enter the operand stage.  product: sent to a bank, each an
    accumulator_update.  conflict_cycle: in which a pair waits for a bank.  weight_write:
    vectors broadcast.  fifo_write: into FIFOs, one for every used PE.  weight_read: from the FIFOs.
    iaram_write: vectors loaded; iaram_read: also of an ifmap that has stayed.  oaram_write: vectors
    as lists of the ofmap grow (`archsim.machines.scnn.lists.ofmap_writes`); oaram_read: of the
    finished ones, those that leave.  halo_sum: sent to a neighbour.
    output: that are given out, pooled where the pass is; zeroed: sums that are read, given out and
    set to 0, where it is not.  copy_sum: sent to a neighbour, and kept; window_read: sums that are
    read for windows; cleared: sums set to 0 behind the drains of pooled passes.
    skip: blocks without activations.  The RTL counts each of them.
    Memories that compress values have more (`archsim.machines.scnn.stream_actions.row_actions`).
    """
    totals = {name: int(per_pe(design, passes, name).sum()) for name in SUMMED}
    maps = [one.mapping for one in passes]
    return {
        "pair": totals["pairs"],
        "product": totals["products"],
        "accumulator_update": totals["products"],
        "conflict_cycle": totals["conflict"],
        "weight_write": sum(len(one.weight_cycles) for one in passes),
        "fifo_write": sum(len(one.weight_cycles) * one.mapping.used_pes for one in passes),
        "weight_read": totals["pairs"],
        "iaram_write": sum(len(one.ifmap_cycles) for one in passes),
        "iaram_read": totals["ifmap_reads"],
        "oaram_write": sum(one.oaram_writes for one in passes),
        "oaram_read": sum(len(one.ofmap_cycles) for one in passes),
        "halo_sum": totals["halo_sums"],
        "output": sum(one.outputs for one in maps),
        "zeroed": sum(one.outputs for one in maps if not one.pooled),
        "copy_sum": totals["copy_sums"],
        "window_read": totals["window_reads"],
        "cleared": sum(
            one.groups * one.used_pes * design.accumulators for one in maps if one.pooled
        ),
        "skip": totals["skip"],
        **row_actions(passes),
    }


__all__ = ["ScnnTiming", "counted", "per_pe"]
