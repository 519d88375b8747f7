"""Random layers and operands for a vector MAC core, and their sums by plain loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from archsim.codecs.vector_dot import VectorMac, scale_product
from archsim.codecs.vector_operands import VectorOperands
from archsim.codecs.vsquant import VectorFormat
from archsim.layer.problem import Problem, problem_of
from archsim.machines.vsq.vector_values import VectorSummation
from archsim.numbers import IntArray, ceil_div, saturate, wrap
from workloads.layers import Conv2d, MatMul

Sums = Callable[[Problem, Conv2d | MatMul, VectorOperands, VectorSummation], IntArray]


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    layer: Conv2d | MatMul
    summation: VectorSummation
    operands: VectorOperands

    @property
    def problem(self) -> Problem:
        return vector_problem(self.layer, self.summation.vector)


def vector_problem(layer: Conv2d | MatMul, vector: int) -> Problem:
    problem = problem_of(layer)
    return replace(problem, channels=ceil_div(problem.channels, vector))


def any_operands(
    layer: Conv2d | MatMul, summation: VectorSummation, seed: int, corner: float = 0.3
) -> VectorOperands:
    """Any values and scales of the formats; `corner` of them the largest, where sums saturate."""
    rng = np.random.default_rng(seed)

    def draw(shape: tuple[int, ...], bits: int, signed: bool) -> np.ndarray:
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
        values = rng.integers(low, high, shape, np.int32)
        ends = rng.choice(np.array([low, high - 1, high - 1], np.int32), shape)
        return np.where(rng.random(shape) < corner, ends, values)

    def both(
        form: VectorFormat, shape: tuple[int, ...], scale_shape: tuple[int, ...]
    ) -> tuple[np.ndarray, np.ndarray | None]:
        scales = None if form.scale_bits is None else draw(scale_shape, form.scale_bits, False)
        return draw(shape, form.bits, form.signed), scales

    mac, vector = summation.mac, summation.vector
    if isinstance(layer, MatMul):
        filters, j = layer.n, ceil_div(layer.k, vector)
        ifmap = both(mac.activation, (layer.batch, layer.m, layer.k), (layer.batch, layer.m, j))
        weight = both(mac.weight, (layer.batch, layer.k, layer.n), (layer.batch, j, layer.n))
    else:
        filters, depth = layer.filters, layer.channels // layer.groups
        j = ceil_div(depth, vector)
        plane = (layer.ifmap_height, layer.ifmap_width)
        taps = (layer.kernel_height, layer.kernel_width)
        ifmap = both(
            mac.activation,
            (layer.batch, layer.channels, *plane),
            (layer.batch, layer.groups * j, *plane),
        )
        weight = both(mac.weight, (filters, depth, *taps), (filters, j, *taps))
    return VectorOperands(
        ifmap=ifmap[0], ifmap_scales=ifmap[1], weight=weight[0], weight_scales=weight[1],
        bias=np.zeros(filters, np.int64), multiplier=np.ones(filters, np.int64), shift=0,
        ifmap_coarse=1.0, weight_coarse=np.ones(filters), ofmap_coarse=1.0, scheme="any",
    )  # fmt: skip


@st.composite
def layers(draw: st.DrawFn) -> Conv2d | MatMul:
    whole = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    if draw(st.booleans()):
        batch = whole(1, 3)
        return MatMul(
            name="m", m=whole(1, 7), n=whole(1, 9), k=whole(1, 23), batch=batch,
            shared_weight=batch == 1,
        )  # fmt: skip
    kernel, dilation = (whole(1, 3), whole(1, 3)), (whole(1, 2), whole(1, 2))
    groups = whole(1, 3)
    channels, filters = (1, 1) if draw(st.booleans()) else (whole(1, 11), whole(1, 7))
    reach = [(kernel[axis] - 1) * dilation[axis] + 1 for axis in (0, 1)]
    return Conv2d(
        name="c", channels=channels * groups, filters=filters * groups,
        ifmap_height=reach[0] + whole(0, 3), ifmap_width=reach[1] + whole(0, 3),
        kernel_height=kernel[0], kernel_width=kernel[1],
        stride_height=whole(1, 3), stride_width=whole(1, 3),
        pad_top=whole(0, 2), pad_left=whole(0, 2), pad_bottom=whole(0, 2), pad_right=whole(0, 2),
        dilation_height=dilation[0], dilation_width=dilation[1], groups=groups,
        batch=whole(1, 2),
    )  # fmt: skip


@st.composite
def summations(draw: st.DrawFn) -> VectorSummation:
    whole = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    vector = draw(st.sampled_from([1, 2, 3, 5, 8, 64]))
    widths = draw(st.sampled_from([2, 4, 8, 16]))

    def form() -> VectorFormat:
        scaled = draw(st.booleans())
        return VectorFormat(
            bits=widths,
            signed=draw(st.booleans()),
            vector=vector if scaled else None,
            scale_bits=draw(st.sampled_from([1, 4, 8, 11])) if scaled else None,
        )

    mac = VectorMac(
        weight=form(),
        activation=form(),
        scale_product_bits=draw(st.none() | st.integers(1, 9)),
        accumulator_bits=whole(2, 30) if draw(st.booleans()) else whole(31, 62),
        overflow=draw(st.sampled_from(["saturate", "wrap"])),
    )
    wider = draw(st.sampled_from([0, 0, 1, 6]))
    return VectorSummation(
        mac=mac,
        channel_tile=whole(1, 4),
        sum_bits=min(mac.accumulator_bits + wider, 62),
        length=vector,
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    layer, summation = draw(layers()), draw(summations())
    operands = any_operands(layer, summation, draw(st.integers(0, 10**6)))
    return Case(layer=layer, summation=summation, operands=operands)


def windows(layer: Conv2d, ifmap: np.ndarray) -> np.ndarray:
    """[N, C, H, W] as windows [N, P, Q, C, R, S], by indexing."""
    pads = ((0, 0), (0, 0), (layer.pad_top, layer.pad_bottom), (layer.pad_left, layer.pad_right))
    padded = np.pad(ifmap.astype(np.int64), pads)
    rows = np.arange(layer.ofmap_height)[:, None] * layer.stride_height
    rows = rows + np.arange(layer.kernel_height) * layer.dilation_height
    columns = np.arange(layer.ofmap_width)[:, None] * layer.stride_width
    columns = columns + np.arange(layer.kernel_width) * layer.dilation_width
    seen = padded[:, :, rows[:, None, :, None], columns[None, :, None, :]]
    return seen.transpose(0, 2, 3, 1, 4, 5)


def plain_sums(case: Case) -> IntArray:
    """Vector by vector, for every pixel and filter of a group at once."""
    layer, o, vector = case.layer, case.operands, case.summation.vector
    if isinstance(layer, MatMul):
        parts = [
            (
                o.ifmap[b][:, :, None, None].astype(np.int64),
                None if o.ifmap_scales is None else o.ifmap_scales[b][:, :, None, None],
                o.weight[b].T[:, :, None, None].astype(np.int64),
                None if o.weight_scales is None else o.weight_scales[b].T[:, :, None, None],
            )
            for b in range(layer.batch)
        ]
        return np.stack([_collected(case, *part) for part in parts]).reshape(
            1, layer.batch, 1, layer.m, layer.n
        )
    depth, filters = layer.channels // layer.groups, layer.filters // layer.groups
    taps = (layer.kernel_height, layer.kernel_width)
    j = ceil_div(depth, vector)
    seen = windows(layer, o.ifmap)
    seen_scales = None if o.ifmap_scales is None else windows(layer, o.ifmap_scales)
    shape = (layer.batch, layer.ofmap_height, layer.ofmap_width, filters)
    groups: list[IntArray] = []
    for g in range(layer.groups):
        own = slice(g * filters, (g + 1) * filters)
        a = seen[:, :, :, g * depth : (g + 1) * depth].reshape(-1, depth, *taps)
        s = None if seen_scales is None else seen_scales[:, :, :, g * j : (g + 1) * j]
        s = None if s is None else s.reshape(-1, j, *taps)
        w = None if o.weight_scales is None else o.weight_scales[own]
        groups.append(_collected(case, a, s, o.weight[own].astype(np.int64), w).reshape(shape))
    return np.stack(groups, axis=1)


def _collected(
    case: Case,
    a: np.ndarray,
    a_scales: np.ndarray | None,
    w: np.ndarray,
    w_scales: np.ndarray | None,
) -> IntArray:
    """a [M, C, R, S] and w [K, C, R, S] with their scales [., J, R, S] to sums [M, K]."""
    summation, mac = case.summation, case.summation.mac
    limit = saturate if mac.overflow == "saturate" else wrap
    vectors = ceil_div(a.shape[1], summation.vector)
    total = np.zeros((len(a), len(w)), np.int64)
    for first in range(0, vectors, summation.channel_tile):
        collector = np.zeros_like(total)
        for r in range(a.shape[2]):
            for s in range(a.shape[3]):
                for j in range(first, min(first + summation.channel_tile, vectors)):
                    at = slice(j * summation.vector, (j + 1) * summation.vector)
                    sa = np.ones(len(a), np.int64) if a_scales is None else a_scales[:, j, r, s]
                    sw = np.ones(len(w), np.int64) if w_scales is None else w_scales[:, j, r, s]
                    product = scale_product(
                        mac, sw.astype(np.int64)[None, :], sa.astype(np.int64)[:, None]
                    )
                    term = (a[:, at, r, s] @ w[:, at, r, s].T) * product
                    collector = limit(collector + term, mac.accumulator_bits)
        total = wrap(total + collector, summation.sum_bits)
    return total


def agrees(sums: Sums, case: Case) -> bool:
    ours = sums(case.problem, case.layer, case.operands, case.summation)
    expected = plain_sums(case)
    return ours.shape == expected.shape and bool((ours == expected).all())


def summation_of(
    bits: int = 4, scale_bits: int = 8, vector: int = 4, **mac: Any
) -> VectorSummation:
    form = VectorFormat(bits=bits, vector=vector, scale_bits=scale_bits)
    built = VectorMac(weight=form, activation=form, **mac)
    return VectorSummation(mac=built, channel_tile=3, sum_bits=max(32, built.accumulator_bits))
