"""Sums of a vector MAC core against plain loops over vectors, and against the dot product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vector_sums_plainly import (
    Case,
    agrees,
    any_operands,
    cases,
    plain_sums,
    summation_of,
    windows,
)

from archsim.codecs.vector_dot import VectorMac, dot
from archsim.codecs.vsquant import Quantized, VectorFormat
from archsim.errors import InputError
from archsim.layer.problem import problem_of
from archsim.machines.vsq import vector_values
from archsim.machines.vsq.vector_values import VectorSummation, vector_sums
from workloads.layers import Conv2d, MatMul


@settings(max_examples=250)
@given(cases())
def test_sums_equal_the_plain_loops(case: Case) -> None:
    assert agrees(vector_sums, case)


@given(cases(), st.sampled_from([1, 2, 7, 30]))
def test_blocks_of_any_size(case: Case, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_values, "_BLOCK", block)
        patch.setattr(vector_values, "_FEW_FILTERS", 1)
        assert agrees(vector_sums, case)


def _quantized(form: VectorFormat, values: np.ndarray, scales: np.ndarray | None) -> Quantized:
    return Quantized(
        format=form,
        channel_axis=1,
        values=values.astype(np.int32),
        scales=np.ones((1,) * values.ndim, np.int32) if scales is None else scales.astype(np.int32),
        coarse=np.ones((1,) * values.ndim),
    )


@given(cases())
def test_the_plain_loops_equal_the_dot_product(case: Case) -> None:
    """One group and one tile: `vector_dot.dot` of the windows."""
    layer, mac = case.layer, case.summation.mac
    if isinstance(layer, MatMul) or mac.weight.vector is mac.activation.vector is None:
        return
    one = replace(layer, groups=1)
    summation = replace(case.summation, channel_tile=64)
    operands = any_operands(one, summation, seed=layer.channels)
    plain = plain_sums(Case(layer=one, summation=summation, operands=operands))
    taps = (layer.kernel_height, layer.kernel_width)
    seen = windows(one, operands.ifmap).reshape(-1, layer.channels, *taps)
    scales = operands.ifmap_scales
    if scales is not None:
        scales = windows(one, scales).reshape(len(seen), -1, *taps)
    sums = dot(
        mac,
        _quantized(mac.weight, operands.weight, operands.weight_scales),
        _quantized(mac.activation, seen, scales),
    )
    assert (plain.reshape(sums.shape) == sums).all()


WAYS = {
    "factored": (summation_of(accumulator_bits=40), ["_factored"]),
    "factored, wrapping": (
        VectorSummation(
            mac=VectorMac(
                weight=VectorFormat(bits=4, vector=4, scale_bits=8),
                activation=VectorFormat(bits=4, vector=4, scale_bits=8),
                accumulator_bits=12,
                overflow="wrap",
            ),
            channel_tile=3,
            sum_bits=12,
        ),
        ["_factored"],
    ),
    "in blocks": (summation_of(accumulator_bits=20, scale_product_bits=8), ["_blocked"]),
    "too wide to factor": (
        VectorSummation(
            mac=VectorMac(
                weight=VectorFormat(bits=12, vector=4, scale_bits=14),
                activation=VectorFormat(bits=2),
                accumulator_bits=50,
            ),
            channel_tile=3,
            sum_bits=50,
        ),
        ["_factored", "_blocked"],
    ),
    "directly": (summation_of(bits=16, scale_bits=8, vector=64, scale_product_bits=8), ["_direct"]),
}


@pytest.mark.parametrize("name", WAYS)
def test_every_way_is_taken_where_it_should(name: str) -> None:
    summation, ways = WAYS[name]
    layer = Conv2d(
        name="c", channels=30, filters=5, ifmap_height=4, ifmap_width=3, kernel_height=3,
        kernel_width=2, pad_top=1, pad_left=1,
    )  # fmt: skip
    wide = name == "directly"
    operands = any_operands(layer, summation, seed=5)
    taken: list[str] = []

    def noted(way: str) -> Callable[..., Any]:
        plain = getattr(vector_values, way)

        def call(*arguments: Any) -> Any:
            taken.append(way)
            return plain(*arguments)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for way in ("_factored", "_blocked", "_direct"):
            patch.setattr(vector_values, way, noted(way))
        if wide:
            patch.setattr(vector_values, "_DOUBLE", 1 << 20)
        assert agrees(vector_sums, Case(layer=layer, summation=summation, operands=operands))
    assert taken == ways


@pytest.mark.parametrize(("bits", "few"), [(8, 4), (16, 4), (16, 1000)])
def test_the_largest_operands_stay_exact(bits: int, few: int) -> None:
    """Where a dot product of single precision, or of double, would lose its last bit."""
    form = VectorFormat(bits=bits, signed=False, vector=600)
    mac = VectorMac(
        weight=replace(form, vector=None), activation=replace(form, vector=None),
        accumulator_bits=60, scale_product_bits=None,
    )  # fmt: skip
    layer = MatMul(name="deep", m=2, n=5, k=1799)
    summation = VectorSummation(mac=mac, channel_tile=1, sum_bits=61, length=600)
    most = 2**bits - 1
    operands = replace(
        any_operands(layer, summation, seed=0),
        ifmap=np.full((1, 2, 1799), most, np.int32),
        weight=np.full((1, 1799, 5), most, np.int32),
    )
    case = Case(layer=layer, summation=summation, operands=operands)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_values, "_FEW_FILTERS", few)
        patch.setattr(vector_values, "_factored", lambda *_: None)
        sums = vector_sums(case.problem, layer, operands, summation)
    assert (sums == 1799 * most * most).all()


def test_narrow_storage_is_as_good() -> None:
    """int8 operands, as quantisation makes them."""
    summation = summation_of(accumulator_bits=16, scale_product_bits=6)
    layer = Conv2d(
        name="c", channels=9, filters=6, ifmap_height=5, ifmap_width=4, kernel_height=2,
        kernel_width=3, stride_height=2, pad_left=1,
    )  # fmt: skip
    wide = any_operands(layer, summation, seed=3)
    narrow = replace(wide, ifmap=wide.ifmap.astype(np.int8), weight=wide.weight.astype(np.int8))
    assert agrees(vector_sums, Case(layer=layer, summation=summation, operands=narrow))


def test_bad_requests_are_refused() -> None:
    mac = summation_of().mac
    plain = VectorFormat(bits=4)
    unscaled = VectorMac(weight=plain, activation=plain)
    wide = VectorFormat(bits=16, vector=4, scale_bits=16)
    for message, options in {
        "channel_tile must be positive, not 0": {"channel_tile": 0},
        "length must be that of the vectors, 4, not 8": {"length": 8},
        "length must be positive, not 0": {"length": 0},
        "length must be given where no format has vectors": {"mac": unscaled},
        "sum_bits must be 24, as the collector, to 62, not 23": {"sum_bits": 23},
        "sum_bits must be at most 62, not 63": {"sum_bits": 63},
        "a term must have at most 62 bits, not 66": {
            "mac": VectorMac(weight=wide, activation=wide)
        },
    }.items():
        request: dict[str, Any] = {"mac": mac, "channel_tile": 1, "sum_bits": 32, **options}
        with pytest.raises(InputError) as error:
            VectorSummation(**request)
        assert str(error.value) == message
    layer = MatMul(name="m", m=2, n=3, k=9)
    case = Case(
        layer=layer, summation=summation_of(), operands=any_operands(layer, summation_of(), seed=0)
    )
    with pytest.raises(InputError) as error:
        vector_sums(problem_of(layer), layer, case.operands, case.summation)
    assert str(error.value) == "m: the problem must count 3 vectors of 4 as its channels, not 9"
    with pytest.raises(InputError, match=r"^m: ifmap must fit 4 bits signed, but ranges from "):
        operands = replace(case.operands, ifmap=case.operands.ifmap * 4)
        vector_sums(case.problem, layer, operands, case.summation)
