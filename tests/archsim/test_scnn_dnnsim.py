"""The model as DNNsim counts, against that count written out in plain loops.

For group of filters: for input channel: the most, over PEs, of the sum over the stride's phases,
over I activations at a time, over F weights at a time, of max(1, most products for one bank).
Lists hold values that are not zero; no weight is waited for.  Lists without values take a cycle in
our core and none in DNNsim: there are none here.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from archsim.designs.scnn import SCNN_DNNSIM, Scnn
from archsim.sparse.layer import layer_passes
from archsim.sparse.strips import Strip
from archsim.sparse.timing import Services, pass_timing
from archsim.timing import Service
from workloads.layers import Conv2d
from workloads.operands import Operands, synthetic

SMALL = replace(
    SCNN_DNNSIM, grid_rows=2, grid_columns=2, weight_lanes=2, ifmap_lanes=2, banks=8,
    bank_entries=12, weight_fifo_vectors=4096, index_bits=8,
)  # fmt: skip
CONV = Conv2d(
    name="c", channels=3, filters=7, ifmap_height=8, ifmap_width=8, kernel_height=3,
    kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1,
)  # fmt: skip
STRIDED = replace(CONV, name="s", stride_height=2, stride_width=2, ifmap_height=9, ifmap_width=9)
POINT = replace(
    CONV, name="p", kernel_height=1, kernel_width=1, pad_top=0, pad_left=0, pad_bottom=0,
    pad_right=0,
)  # fmt: skip
LATE = Services(ifmap=Service(latency_cycles=100_000))
"""All weights are in the FIFOs before the first group begins."""


def _bank(k: int, y: int, x: int, banks: int) -> int:
    upper = ((k & 4) << 2) ^ ((x & 2) << 3) ^ ((y & 2) << 3)
    return (upper + ((x & 1) << 3) + ((y & 1) << 2) + (k & 3)) % banks


def _vectors(values: list[Any], lanes: int) -> list[list[Any]]:
    return [values[at : at + lanes] for at in range(0, len(values), lanes)]


def dnnsim_count(design: Scnn, strip: Strip, ifmap: Any, weight: Any, kc: int) -> list[int]:
    """Cycles of each group of filters.  ifmap [C, H, W], weight [K, C, R, S]."""
    rows, columns = strip.mapping.rows, strip.mapping.columns
    found: list[int] = []
    for first in range(0, len(weight), kc):
        group = weight[first : first + kc]
        found.append(
            sum(
                max(
                    _channel(design, strip, (ifmap[channel], group[:, channel]), (i, j))
                    for i, j in product(range(rows.pes), range(columns.pes))
                )
                for channel in range(len(ifmap))
            )
        )
    return found


def _channel(design: Scnn, strip: Strip, planes: tuple[Any, Any], pe: tuple[int, int]) -> int:
    rows, columns = strip.mapping.rows, strip.mapping.columns
    plane, taps = planes
    stride, pad = rows.stride, rows.pad
    spent = 0
    for phase in product(range(min(stride, rows.kernel)), repeat=2):
        activations = [
            (y, x)
            for y, x in product(rows.inputs(pe[0]), columns.inputs(pe[1]))
            if plane[y, x] and ((y + pad) % stride, (x + pad) % stride) == phase
        ]
        weights = [
            (r, s, k)
            for r, s, k in product(range(rows.kernel), range(columns.kernel), range(len(taps)))
            if taps[k, r, s] and (r % stride, s % stride) == phase
        ]
        for some, others in product(
            _vectors(activations, design.ifmap_lanes), _vectors(weights, design.weight_lanes)
        ):
            counts = np.zeros(design.banks, int)
            for (y, x), (r, s, k) in product(some, others):
                p, q = (y + pad - r) // stride, (x + pad - s) // stride
                if p in range(rows.outputs) and q in range(columns.outputs):
                    place = p - rows.region(pe[0]).start, q - columns.region(pe[1]).start
                    counts[_bank(k, *place, design.banks)] += 1
            spent += max(1, int(counts.max()))
    return spent


def _filled(operands: Operands, kc: int) -> Operands:
    """With no zero in the first filter of each group, so that no list of weights is empty."""
    weight = operands.weight.copy()
    first = weight[::kc]
    weight[::kc] = np.where(first == 0, 1, first)
    return replace(operands, weight=weight)


def _cases() -> list[tuple[Scnn, Conv2d, Operands, int]]:
    layers = ((CONV, 12, 6), (CONV, 8, 4), (STRIDED, 12, 3), (POINT, 12, 6))
    return [
        (
            replace(SMALL, bank_entries=entries),
            layer,
            _filled(synthetic(layer, bits=6, density=density, seed=seed), kc),
            kc,
        )
        for layer, entries, kc in layers
        for density, seed in ((1.0, 0), (0.7, 1), (0.7, 4))
    ]


@pytest.mark.parametrize("case", _cases())
def test_the_model_counts_as_dnnsim(case: tuple[Scnn, Conv2d, Operands, int]) -> None:
    design, layer, operands, kc = case
    ((strip,),) = layer_passes(design, layer, operands)
    assert strip.mapping.group_size == kc
    timing = pass_timing(design, strip.mapping, strip.operands, LATE)
    assert not timing.pes.skip.any() and not timing.pes.wait.any()
    counted = dnnsim_count(design, strip, operands.ifmap[0], operands.weight, kc)
    assert (timing.ends - timing.starts).tolist() == counted


@pytest.mark.parametrize(
    "change", [{"barrier": "group"}, {"bank_hash": "linear"}, {"bank_queue": 2},
               {"group_rule": "accumulators"}]
)  # fmt: skip
def test_each_part_of_the_variant_counts(change: dict[str, Any]) -> None:
    """Mutations: with one of its choices as ours the count is another one."""

    def ends(design: Scnn) -> list[list[int]]:
        found: list[list[int]] = []
        for _, layer, operands, _ in _cases():
            for strip in layer_passes(design, layer, operands)[0]:
                timing = pass_timing(design, strip.mapping, strip.operands, LATE)
                found.append((timing.ends - timing.starts).tolist())
        return found

    whole: Any = {"filter_group": 4, **change}
    assert ends(replace(SMALL, **whole)) != ends(SMALL)


def test_the_published_size() -> None:
    assert SCNN_DNNSIM.accumulators == 6144
    assert SCNN_DNNSIM.multipliers == 1024
