"""The vector lane's model: against the codec's dot product and Python's integers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vector_lanes import vector_lanes

from archsim.codecs.vector_dot import VectorMac, dot
from archsim.codecs.vsquant import Quantized, VectorFormat, blocked, quantize
from archsim.errors import InputError
from archsim.machines.vsq.vector_lane import LaneSteps, VectorLaneDesign
from archsim.machines.vsq.vector_lane_cases import random_steps
from archsim.numbers import IntArray


def _vectors(operand: Quantized, length: int) -> tuple[IntArray, IntArray]:
    """Values [rows, J, length], padded with zeros to whole vectors, and scales [rows, J]."""
    blocks = blocked(operand.values.astype(np.int64), length, 1)
    values = np.zeros((*blocks.shape[:2], length), np.int64)
    values[:, :, : blocks.shape[2]] = blocks
    scales = np.broadcast_to(operand.scales.astype(np.int64), values.shape[:2])
    return values, scales


def steps_of(lane: VectorLaneDesign, weight: Quantized, activation: Quantized) -> LaneSteps:
    """Every row of activations [M, C] with every row of weights [K, C], as many as the collector
    holds at a time, one vector of each in turn."""
    (w, w_scales), (a, a_scales) = (_vectors(each, lane.length) for each in (weight, activation))
    outputs = [(m, k) for m in range(len(a)) for k in range(len(w))]
    count = w.shape[1]
    order = [
        (m, k, j, entry)
        for start in range(0, len(outputs), lane.depth)
        for j in range(count)
        for entry, (m, k) in enumerate(outputs[start : start + lane.depth])
    ]
    m, k, j, entry = np.array(order, np.int64).T
    return LaneSteps(
        start_cycles=np.arange(len(order)),
        weight=w[k, j],
        activation=a[m, j],
        weight_scale=w_scales[k, j],
        activation_scale=a_scales[m, j],
        address=entry,
        first=(j == 0).astype(np.int64),
        last=(j == count - 1).astype(np.int64),
    )


def _operands(lane: VectorLaneDesign, channels: int, seed: int) -> tuple[Quantized, Quantized]:
    """Weights [3, C] and activations [2, C], of which vectors differ in magnitude."""
    rng = np.random.default_rng(seed)

    def values(rows: int, form: VectorFormat) -> Any:
        x = rng.normal(size=(rows, channels))
        x[:, : lane.length] *= rng.choice([0, 1e-3, 1])
        return x if form.signed else np.maximum(x, 0)

    weight, activation = lane.mac.weight, lane.mac.activation
    return (
        quantize(values(3, weight), weight, coarse_axis=0),
        quantize(values(2, activation), activation),
    )


def _as_taps(operand: Quantized, length: int) -> Quantized:
    """The same operand of a format without vectors, its J vectors as taps [rows, length, J, 1].

    The codec's sum is limited once a tap, as the lane's is once a step.
    """
    values, _ = _vectors(operand, length)
    taps = np.moveaxis(values, 1, 2)[..., None].astype(np.int32)
    return replace(
        operand,
        values=taps,
        scales=np.ones((1, 1, 1, 1), np.int32),
        coarse=operand.coarse.reshape(-1, 1, 1, 1),
    )


@given(lane=vector_lanes(longest=64), vectors=st.floats(0.1, 4), seed=st.integers(0, 99))
def test_whole_dot_products_are_those_of_the_codec(
    lane: VectorLaneDesign, vectors: float, seed: int
) -> None:
    weight, activation = _operands(lane, max(int(lane.length * vectors), 1), seed)
    results = lane.compute(steps_of(lane, weight, activation))
    if not lane.scaled:
        weight, activation = (_as_taps(each, lane.length) for each in (weight, activation))
    np.testing.assert_array_equal(results.sums, dot(lane.mac, weight, activation).reshape(-1))


def _slow(lane: VectorLaneDesign, steps: LaneSteps) -> tuple[list[list[int]], list[int]]:
    """Python's integers, one product at a time: [cycle, address, sum] of results; contents."""
    mac, half = lane.mac, 1 << (lane.mac.accumulator_bits - 1)
    entries, given_out = [0] * lane.depth, list[list[int]]()
    for n in range(len(steps)):
        scale = int(steps.weight_scale[n]) * int(steps.activation_scale[n])
        if mac.dropped_bits:
            bits = mac.full_scale_bits - mac.dropped_bits
            scale = min(int(scale / 2**mac.dropped_bits + 0.5), 2**bits - 1)
        pairs = zip(steps.weight[n].tolist(), steps.activation[n].tolist(), strict=True)
        entry = int(steps.address[n])
        total = (0 if steps.first[n] else entries[entry]) + scale * sum(w * a for w, a in pairs)
        if mac.overflow == "saturate":
            entries[entry] = min(max(total, -half), half - 1)
        else:
            entries[entry] = (total + half) % (2 * half) - half
        if steps.last[n]:
            at = int(steps.start_cycles[n]) + lane.latency_cycles
            given_out.append([at, entry, entries[entry]])
    return given_out, entries


@given(lane=vector_lanes(longest=64), seed=st.integers(0, 99), gap=st.integers(1, 3))
def test_any_steps_agree_with_integers_of_any_width(
    lane: VectorLaneDesign, seed: int, gap: int
) -> None:
    steps = random_steps(lane, 40, seed)
    steps = replace(steps, start_cycles=steps.start_cycles * gap + seed)
    results = lane.compute(steps)
    ours = np.column_stack([results.cycles, results.address, results.sums]).tolist()
    assert (ours, results.contents.tolist()) == _slow(lane, steps)


FORM = VectorFormat(bits=4, vector=16, scale_bits=4)
MAC = VectorMac(weight=FORM, activation=FORM, scale_product_bits=6)
LANE = VectorLaneDesign(mac=MAC)
PLAIN = VectorFormat(bits=8)
UNSCALED = VectorLaneDesign(mac=VectorMac(weight=PLAIN, activation=PLAIN))


@pytest.mark.parametrize("seed", range(5))
def test_gating_changes_no_result_and_adds_a_cycle(seed: int) -> None:
    steps = random_steps(LANE, 200, seed)
    plain, gated = LANE.compute(steps), replace(LANE, gated=True).compute(steps)
    np.testing.assert_array_equal(gated.sums, plain.sums)
    np.testing.assert_array_equal(gated.contents, plain.contents)
    np.testing.assert_array_equal(gated.cycles, plain.cycles + 1)


@pytest.mark.parametrize(
    ("length", "unscaled"), [(1, 2), (2, 3), (3, 4), (4, 4), (5, 5), (16, 6), (32, 7), (64, 8)]
)
def test_latency(length: int, unscaled: int) -> None:
    form = replace(FORM, vector=length)
    mac = replace(MAC, weight=form, activation=form)
    lane = VectorLaneDesign(mac=mac, length=length)
    assert replace(UNSCALED, length=length).latency_cycles == unscaled
    assert lane.latency_cycles == unscaled + 1
    assert replace(lane, gated=True).latency_cycles == unscaled + 2
    assert lane.interval_cycles == 1


def test_widths_of_the_paper() -> None:
    """2N + log2 V + 2M bits are accumulated, 10 of the scales, or 6 once they are rounded."""
    weight, activation = (VectorFormat(bits=4, vector=16, scale_bits=m) for m in (4, 6))
    lane = VectorLaneDesign(mac=VectorMac(weight=weight, activation=activation))
    assert (lane.product_bits, lane.scale_bits, lane.term_bits) == (8, 10, 22)
    rounded = replace(lane, mac=replace(lane.mac, scale_product_bits=6))
    assert (rounded.scale_bits, rounded.term_bits) == (6, 18)
    assert (UNSCALED.scaled, UNSCALED.scale_bits, UNSCALED.term_bits) == (False, 0, 20)


def test_designs_that_cannot_be() -> None:
    wide = VectorFormat(bits=16, vector=16, scale_bits=16)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"length": 8}, "length must be that of the vectors, 16, not 8"),
        ({"length": 0}, "length must be positive, not 0"),
        ({"depth": 0}, "depth must be positive, not 0"),
        (
            {"mac": UNSCALED.mac, "gated": True},
            "a lane without scales has no scale product to gate it",
        ),
        (
            {"mac": VectorMac(weight=wide, activation=wide)},
            "a term must have at most 62 bits, not 68",
        ),
    ]
    for changes, message in cases:
        with pytest.raises(InputError) as error:
            VectorLaneDesign(**{"mac": MAC, **changes})
        assert str(error.value) == message


def test_steps_that_cannot_be() -> None:
    steps = replace(random_steps(LANE, 4, 0), address=np.array([3, 1, 3, 1]))
    steps = replace(steps, first=np.array([1, 1, 0, 0]))
    LANE.compute(steps)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"weight": steps.weight[:, :3]}, "weight must be of shape (4, 16), not of (4, 3)"),
        ({"weight": steps.weight * 0 - 9}, "weight must be -8 to 7, not -9"),
        ({"weight_scale": steps.weight_scale * 0 + 16}, "weight_scale must be 0 to 15, not 16"),
        ({"address": steps.address + 16}, "address must be 0 to 15, not 19"),
        ({"last": steps.last > 0}, "last must be int64, not bool"),
        ({"start_cycles": steps.start_cycles // 2}, "start_cycles must rise"),
        (
            {"first": np.array([1, 0, 0, 1])},
            "step 1 adds to entry 1, which no step before it has begun",
        ),
    ]
    for changes, message in cases:
        with pytest.raises(InputError) as error:
            LANE.compute(replace(steps, **changes))
        assert str(error.value) == message
    none = np.zeros(0, np.int64)
    with pytest.raises(InputError, match=r"^there must be at least one step$"):
        LANE.compute(replace(steps, start_cycles=none))
    scaled = replace(random_steps(UNSCALED, 4, 0), weight_scale=np.full(4, 2))
    with pytest.raises(InputError, match=r"^weight_scale must be 1 to 1, not 2$"):
        UNSCALED.compute(scaled)
