"""The vector MAC core: what it refuses, its named instances, and values near the real ones."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from archsim import simulate
from archsim.errors import InputError
from archsim.layer.intake import Drawing
from archsim.machine.registry import design_from_record, design_record
from archsim.machines.vsq.design import VSQ_5NM, VSQ_16, VSQ_BASELINE, Vsq
from archsim.tiled import commands as cmd
from archsim.tiled.timing import layer_output, plan_tiling
from archsim.tiled.trace import PORTS, answer
from archsim.timing import Service
from workloads.layers import Conv2d, MatMul, Network
from workloads.operands import Operands

CONV = Conv2d(
    name="conv", channels=37, filters=29, ifmap_height=6, ifmap_width=5, kernel_height=3,
    kernel_width=3, pad_top=1, pad_left=1, stride_width=2, bias=True,
)  # fmt: skip
PRODUCT = MatMul(name="product", m=7, n=21, k=50, bias=True)


EIGHT_BITS = Vsq(
    weight_bits=8, activation_bits=8, weight_scale_bits=8, collector_bits=36, accumulator_bits=40
)


def refusal(**values: Any) -> str:
    with pytest.raises(InputError) as error:
        Vsq(**values)
    return str(error.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"lanes": 0}, "lanes must be positive, not 0"),
        ({"hold_cycles": 0}, "hold_cycles must be positive, not 0"),
        (
            {"vector": 6, "lanes": 4},
            "vector must be a multiple of the lanes or divide them, not 6 with 4 lanes",
        ),
        ({"weight_bits": 1}, "weight_bits must be 2 to 16, not 1"),
        ({"weight_bits": 17}, "weight_bits must be 2 to 16, not 17"),
        ({"activation_scale_bits": 17}, "activation_scale_bits must be 0 to 16, not 17"),
        (
            {"weight_scale_bits": 10, "activation_scale_bits": 10, "collector_bits": 18},
            "scale_product_bits must be at most 18, the collectors', not 20",
        ),
        (
            {"collector_bits": 33},
            "accumulator_bits must be from 33, the collectors', to 40, not 32",
        ),
        (
            {"weight_bits": 8, "activation_bits": 8},
            "collector_bits must be at least 30, those of one scaled sum, not 24",
        ),
        ({"scale_product_bits": -1}, "scale_product_bits must be 0 to 32, not -1"),
        (
            {"weight_scale_bits": 0, "activation_scale_bits": 0, "gated": True},
            "a lane without scales has no scale product to gate it",
        ),
        (
            {"weight_memory": VSQ_16.weight_memory, "lanes": 1024, "vector": 64},
            "weight_memory holds 65536 bytes, but two halves of two words of 266240 bits need "
            "133120 bytes",
        ),
    ],
)
def test_what_a_design_refuses(values: dict[str, Any], message: str) -> None:
    assert refusal(**values) == message


@pytest.mark.parametrize("design", [VSQ_5NM, VSQ_16, VSQ_BASELINE])
def test_records_are_complete(design: Vsq) -> None:
    assert design_from_record(design_record(design), "here") == design


def test_the_5_nm_chip() -> None:
    """What Keller et al. (JSSC 58(4), 2023) print: 264-bit entries, 2,048 operations a cycle."""
    ports = {port.name: port for port in VSQ_5NM.ports}
    assert ports["ifmap"].bits == 264
    assert ports["weight"].bits == 16 * 264
    assert 2 * VSQ_5NM.macs_per_cycle == 2048
    assert VSQ_5NM.lane.depth == VSQ_5NM.hold_cycles == 16
    assert VSQ_5NM.mac.accumulator_bits == 24
    assert VSQ_5NM.mac.full_scale_bits == 16
    assert VSQ_5NM.mac.full_scale_bits - VSQ_5NM.mac.dropped_bits == 8
    assert VSQ_5NM.output.rows_per_vector == 4


def test_the_baseline_has_no_scale_path() -> None:
    assert not VSQ_BASELINE.lane.scaled
    assert VSQ_BASELINE.word_bits("ifmap") == 16 * 8
    assert VSQ_BASELINE.lane.latency_cycles == VSQ_16.lane.latency_cycles - 1


def _real(layer: Conv2d | MatMul, operands: Operands) -> np.ndarray:
    """The layer in floats."""
    x = operands.ifmap.astype(np.float64) * operands.ifmap_scale
    w = operands.weight.astype(np.float64) * operands.weight_scale
    assert operands.bias is not None
    bias = operands.bias * (operands.ifmap_scale * operands.weight_scale)
    if isinstance(layer, MatMul):
        return x @ w + bias
    padded = np.pad(x, ((0, 0), (0, 0), (1, 0), (1, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    windows = windows[:, :, :, :: layer.stride_width]
    return np.einsum("ncpqrs,kcrs->nkpq", windows, w) + bias[:, None, None]


@pytest.mark.parametrize("layer", [CONV, PRODUCT], ids=["conv", "product"])
@pytest.mark.parametrize(
    ("design", "decibels"),
    [
        (EIGHT_BITS, 38),
        (VSQ_16, 14),
        (VSQ_BASELINE, 35),
        (replace(VSQ_5NM, accumulator_memory=VSQ_16.accumulator_memory), 14),
    ],
    ids=["8-bit vectors", "4-bit vectors", "baseline", "5 nm"],
)
def test_values_are_near_the_real_ones(
    design: Vsq, decibels: float, layer: Conv2d | MatMul
) -> None:
    """Signal over quantisation noise: the integers stand for what the floats say."""
    operands = design.numerics.synthetic(layer, Drawing(distribution="normal", seed=3))
    taken = design.numerics.take(layer, operands)
    (result,) = simulate(design, Network(name="n", source="here", layers=(layer,)), operands={
        layer.name: taken
    }).layers  # fmt: skip
    real = _real(layer, operands)
    assert result.ofmap is not None
    noise = result.ofmap * taken.ofmap_coarse - real
    assert 10 * np.log10((real**2).mean() / (noise**2).mean()) > decibels


@pytest.mark.parametrize("layer", [CONV, PRODUCT], ids=["conv", "product"])
def test_the_words_of_the_ofmap_are_the_ofmap(layer: Conv2d | MatMul) -> None:
    """Values times scales of the words that leave, in any tiling, are the layer's output."""
    design = Vsq(lanes=4, vector=8, hold_cycles=5, activation_scale_bits=5)
    operands = design.numerics.synthetic(layer, Drawing(seed=1))
    tiling = replace(plan_tiling(design, layer, None), filters=8, channels=2)
    free = tuple(Service() for _ in PORTS)
    found = answer(design, layer, tiling, operands, free)
    units: Iterator[int] = iter(found.transfers["ofmap"].payload.ravel().tolist())
    output = design.output
    left: list[int] = []
    for row in found.tiles[found.tiles[:, cmd.LAST_K] == 1]:
        for first in range(0, row[cmd.TILE_FILTERS], design.vector):
            values = min(design.vector, row[cmd.TILE_FILTERS] - first)
            for _ in range(row[cmd.PIXELS]):
                scale = _number(units, output.scale_units, output.unit_bits, signed=False)
                left += [
                    scale * _number(units, output.value_units, output.unit_bits, signed=True)
                    for _ in range(values)
                ]
    assert not any(units)  # what fills the last word
    ofmap = layer_output(design, layer, operands, tiling).ravel()
    assert np.array_equal(np.sort(left), np.sort(ofmap))


def _number(units: Iterator[int], count: int, unit_bits: int, *, signed: bool) -> int:
    """A number in so many units, the lowest first."""
    number = sum(int(next(units)) << unit_bits * at for at in range(count))
    bits = unit_bits * count
    return number - (1 << bits) if signed and number >> bits - 1 else number
