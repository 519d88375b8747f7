"""SCNN's cycles as DNNsim counts them (github.com/isakedo/DNNsim, SCNN.cpp).

Another machine than ours, told from what that simulator does: nothing is waited for but products in
one bank, other PEs and halos, and nothing has to fit but sums.  Of each image:

* The plane is padded, then with zeros until the grid divides it; each PE has a tile of it.
* Kc = ⌊sums of a PE / (⌈P / rows of the grid⌉ · ⌈Q / columns⌉)⌋ filters are a group, or 1 where
  each filter has one channel of several.  Filters are counted over all conv groups, and a group of
  them sees the channels of the first conv group if its first filter is of it, else those of the
  second (of its own, where a filter has one channel).
* For each group and channel a PE multiplies every I of its activations by every F of the weights,
  both without zeros and without placeholders: those with y mod s = (r + pad) mod s, y in the padded
  plane, and the same of columns, by such phase.  The output is at (y − r) / s, rounded to zero.  A
  pair of vectors takes as many cycles as the most of its products in a bank, at least one; a list
  of nothing takes none.
* All PEs wait for the slowest after each channel.  Halos follow each group of filters: a cycle for
  each filter and sum of the largest of the eight parts (R − 1 − pad, tile, pad) ×
  (S − 1 − pad, tile, pad) around the tile.
* A fully connected layer is, for each row, ⌈inputs / 256⌉ channels of 16 × 16 with a kernel as
  large.

Contract, and what is chosen where that simulator reads beside its arrays or never ends:
`docs/contracts/scnn.md`.
"""

from __future__ import annotations

import numpy as np

from archsim.machines.scnn import dnnsim_kernel as kernel
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.dnnsim_planes import Planes, planes_of
from archsim.machines.scnn.mapping import Mapping
from archsim.machines.scnn.pass_scan import PeFigures
from archsim.machines.scnn.timing import PassTiming
from archsim.numbers import IntArray, ceil_div
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands
from workloads.threads import in_threads, threads


def dnnsim_passes(design: Scnn, layer: Conv2d | MatMul, operands: Operands) -> list[PassTiming]:
    """The count of each image, or of each row of a matrix product, as a pass: groups of filters one
    behind the other, each with its halos as a drain.

    Of the events of a pass there are pairs, products, conflicts, barriers and halos; no word
    crosses a port.  Raises InputError for a dilated kernel, and where the sums of one filter do not
    fit a PE.
    """
    return [one for planes in planes_of(design, layer, operands) for one in _passes(design, planes)]


def _passes(design: Scnn, planes: Planes) -> list[PassTiming]:
    """Of all images."""
    size = planes.group_size(design)
    groups = planes.groups(size)
    spent, figures = _count(design, planes, groups)
    mapping = Mapping(
        rows=planes.rows.axis,
        columns=planes.columns.axis,
        channels=len(planes.weight),
        filters=planes.filters,
        group_size=size,
    )
    halos = groups[:, 1] * planes.halo_cycles
    return [_pass(mapping, *one, halos) for one in zip(spent, figures, strict=True)]


def _count(design: Scnn, planes: Planes, groups: IntArray) -> tuple[IntArray, IntArray]:
    """Cycles of each image and group [images, groups], without halos; figures of PEs
    [images, PEs, 6]: channels are counted side by side in threads."""
    rules = (
        (planes.rows.rule, planes.columns.rule),
        (design.ifmap_lanes, design.weight_lanes),
        planes.filter_parts(design.banks),
        planes.tables(design),
    )
    images = len(planes.ifmap)
    blocks = len(groups) * len(planes.weight)

    def counted(first: int) -> tuple[IntArray, IntArray]:
        most = np.zeros((images, len(groups)), np.int64)
        figures = np.zeros((images, design.pes, kernel.FIGURES), np.int64)
        some = first, min(first + share, blocks)
        kernel.count_blocks((planes.ifmap, planes.weight), groups, some, rules, most, figures)
        return most, figures

    share = ceil_div(blocks, threads())
    found = in_threads(counted, range(0, blocks, share))
    most, figures = zip(*found, strict=True)
    return np.sum(most, axis=0), np.sum(figures, axis=0)


def _pass(mapping: Mapping, spent: IntArray, figures: IntArray, halos: IntArray) -> PassTiming:
    """One image, from cycles of its groups, figures of its PEs and halos behind its groups."""
    drained = np.cumsum(spent + halos)
    starts, ends = drained - halos - spent, drained - halos
    counts = kernel.PeCounts(*figures.T)
    zeros, nothing = np.zeros(mapping.used_pes, np.int64), np.zeros(0, np.int64)
    busy = counts.busy.copy()
    pes = PeFigures(
        busy=busy,
        wait=zeros,
        skip=zeros,
        barrier=int(spent.sum()) - busy,
        drain=np.full(mapping.used_pes, int(halos.sum()), np.int64),
        conflict=counts.conflict.copy(),
        pairs=counts.pairs.copy(),
        products=counts.products.copy(),
        outside=counts.multiplied - counts.products,
        ifmap_reads=counts.vectors.copy(),
        halo_sums=zeros,
        copy_sums=zeros,
        window_reads=zeros,
    )
    return PassTiming(
        mapping=mapping,
        starts=starts,
        ends=ends,
        drain_starts=ends,
        drained=drained,
        pe_ends=np.repeat(ends[:, None], mapping.used_pes, axis=1),
        pes=pes,
        ifmap_cycles=nothing,
        weight_cycles=nothing,
        ofmap_cycles=nothing,
        bias_cycles=nothing,
        weight_bits=0,
        ifmap_bits=0,
        ofmap_bits=0,
        oaram_writes=0,
        written=int(drained[-1]),
    )


__all__ = ["dnnsim_passes"]
