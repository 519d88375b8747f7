"""Operands of a vector MAC core against whole-tensor quantisation, and against real arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faulty_module import Fault, faulty_module
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.codecs import vector_operands as module
from archsim.codecs.vector_dot import VectorMac
from archsim.codecs.vector_operands import VectorOperands, check_vector_operands, vector_operands
from archsim.codecs.vsquant import Quantized, VectorFormat, quantize
from archsim.errors import InputError
from archsim.layer import layout
from archsim.layer.problem import problem_of
from archsim.machines.vsq.vector_values import VectorSummation, vector_sums
from archsim.numbers import ceil_div
from workloads import reference
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, synthetic

Make = Callable[..., VectorOperands]


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    layer: Conv2d | MatMul
    operands: Operands
    mac: VectorMac
    ofmap: VectorFormat
    bits: int = 8
    sum_bits: int = 32

    def made(self, make: Make) -> VectorOperands:
        return make(self.layer, self.operands, self.mac, self.ofmap, self.bits, self.sum_bits)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    whole = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    vector = draw(st.sampled_from([1, 2, 3, 8, 64]))
    signed = draw(st.booleans())

    def form(signed: bool) -> VectorFormat:
        scaled = draw(st.booleans())
        return VectorFormat(
            bits=whole(2, 10), signed=signed, vector=vector if scaled else None,
            scale_bits=whole(1, 10) if scaled else None,
        )  # fmt: skip

    layer: Conv2d | MatMul
    if draw(st.booleans()):
        batch = whole(1, 3)
        layer = MatMul(
            name="m", m=whole(1, 6), n=whole(1, 6), k=whole(1, 20), batch=batch,
            shared_weight=batch == 1, bias=draw(st.booleans()),
        )  # fmt: skip
    else:
        groups, kernel = whole(1, 3), (whole(1, 3), whole(1, 2))
        layer = Conv2d(
            name="c", channels=whole(1, 9) * groups, filters=whole(1, 4) * groups,
            ifmap_height=kernel[0] + whole(0, 2), ifmap_width=kernel[1] + whole(0, 3),
            kernel_height=kernel[0], kernel_width=kernel[1], stride_height=whole(1, 2),
            pad_left=whole(0, 1), groups=groups, batch=whole(1, 2), bias=draw(st.booleans()),
        )  # fmt: skip
    bits = draw(st.sampled_from([4, 8, 16]))
    operands = synthetic(layer, bits=bits, seed=whole(0, 99), density=0.9)
    scales = {f"{name}_scale": draw(st.floats(1e-3, 3)) for name in ("ifmap", "weight")}
    whole_scale = scales["ifmap_scale"] * scales["weight_scale"]
    operands = replace(operands, ofmap_scale=operands.ofmap_scale * whole_scale, **scales)
    if not signed:
        operands = replace(operands, ifmap=np.abs(operands.ifmap))
    mac = VectorMac(
        weight=form(True), activation=form(signed),
        scale_product_bits=draw(st.none() | st.integers(1, 10)), accumulator_bits=40,
    )  # fmt: skip
    return Case(
        layer=layer, operands=operands, mac=mac, ofmap=form(True), bits=bits,
        sum_bits=draw(st.sampled_from([16, 32, 62])),
    )  # fmt: skip


def _activations(case: Case) -> tuple[Quantized, np.ndarray]:
    """The ifmap quantised at once, and its scales [N, groups · J, …]; J, like V, within a group."""
    layer, form = case.layer, case.mac.activation
    x = case.operands.ifmap.astype(np.float64) * case.operands.ifmap_scale
    if isinstance(layer, MatMul):
        found = quantize(x, form, channel_axis=2)
        return found, found.scales
    depth = layer.channels // layer.groups
    alpha = np.abs(x).max()
    parts = [
        quantize(x[:, g * depth : (g + 1) * depth], form, alpha=alpha) for g in range(layer.groups)
    ]
    values = np.concatenate([part.values for part in parts], axis=1)
    return replace(parts[0], values=values), np.concatenate([p.scales for p in parts], axis=1)


def _same(ours: np.ndarray | None, expected: np.ndarray, form: VectorFormat) -> bool:
    if form.scale_bits is None:
        return ours is None
    return ours is not None and np.array_equal(ours, expected)


def _right(case: Case, ours: VectorOperands) -> bool:
    """Every field, computed another way."""
    layer, operands, mac = case.layer, case.operands, case.mac
    a, a_scales = _activations(case)
    filters = 2 if isinstance(layer, MatMul) else 0
    w = quantize(operands.weight * operands.weight_scale, mac.weight, coarse_axis=filters)
    gammas = w.coarse.reshape(-1)
    same = (
        np.array_equal(ours.ifmap, a.values)
        and _same(ours.ifmap_scales, a_scales, mac.activation)
        and ours.ifmap_coarse == a.coarse.item()
        and np.array_equal(ours.weight, w.values)
        and _same(ours.weight_scales, w.scales, mac.weight)
        and np.array_equal(ours.weight_coarse, gammas)
    )
    largest = Fraction(operands.ofmap_scale) * (2 ** (case.bits - 1) - 1)
    gamma_out = largest / (case.ofmap.largest * case.ofmap.largest_scale)
    ratios = [
        Fraction(float(g)) * Fraction(a.coarse.item()) * 2**mac.dropped_bits / gamma_out
        for g in gammas
    ]
    return (
        same
        and abs(Fraction(ours.ofmap_coarse) / gamma_out - 1) < 1e-12
        and _multipliers_right(ours, ratios)
        and _bias_right(case, ours, [ratio * gamma_out for ratio in ratios])
    )


def _multipliers_right(ours: VectorOperands, ratios: list[Fraction]) -> bool:
    near = all(
        abs(int(multiplier) - ratio * 2**ours.shift) <= Fraction(1, 2) + Fraction(1, 10**9)
        for multiplier, ratio in zip(ours.multiplier, ratios, strict=True)
    )
    largest = int(ours.multiplier.max())
    return near and largest < 2**16 and (largest >= 2**15 or ours.shift == 47)


def _bias_right(case: Case, ours: VectorOperands, steps: list[Fraction]) -> bool:
    operands, half = case.operands, 2 ** (case.sum_bits - 1)
    if operands.bias is None:
        return not ours.bias.any()
    unit = Fraction(operands.ifmap_scale) * Fraction(operands.weight_scale)
    for given_bias, bias, step in zip(
        operands.bias.tolist(), ours.bias.tolist(), steps, strict=True
    ):
        exact = given_bias * unit / step if step else Fraction(0)
        clipped = min(max(exact, Fraction(-half)), Fraction(half - 1))
        if abs(bias - clipped) > Fraction(1, 2) + abs(exact) / 10**12:
            return False
    return True


@settings(max_examples=150)
@given(cases(), st.sampled_from([1, 5, 1 << 17]))
def test_every_field_is_right(case: Case, size: int) -> None:
    """Whatever the slices in which tensors are quantised."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SLICE", size)
        ours = case.made(vector_operands)
    assert _right(case, ours)
    length = case.mac.weight.vector or case.mac.activation.vector or 3
    check_vector_operands(case.layer, ours, case.mac, length)


def _scaled(values: np.ndarray, scales: np.ndarray | None, vector: int, axis: int) -> np.ndarray:
    """Every value times the scale of its vector along an axis."""
    whole = values.astype(np.int64)
    if scales is None:
        return whole
    spread = np.repeat(scales.astype(np.int64), vector, axis=axis)
    return whole * spread.take(np.arange(values.shape[axis]), axis=axis)


@settings(max_examples=60)
@given(cases())
def test_sums_stand_for_products_of_what_was_quantised(case: Case) -> None:
    """A core's sums are the layer's products of value · scale: both agree on every layout."""
    layer, mac = case.layer, replace(case.mac, scale_product_bits=None, accumulator_bits=62)
    ours = replace(case, mac=mac).made(vector_operands)
    length = mac.weight.vector or mac.activation.vector or 3
    problem = problem_of(layer)
    vectors = replace(problem, channels=ceil_div(problem.channels, length))
    summation = VectorSummation(mac=mac, channel_tile=64, sum_bits=62, length=length)
    sums = layout.join_ofmap(layer, problem, vector_sums(vectors, layer, ours, summation))
    weight = _scaled(ours.weight, ours.weight_scales, length, 1)
    if isinstance(layer, MatMul):
        ifmap = _scaled(ours.ifmap, ours.ifmap_scales, length, 2)
    else:
        planes = (layer.batch, layer.groups, -1, layer.ifmap_height, layer.ifmap_width)
        scales = None if ours.ifmap_scales is None else ours.ifmap_scales.reshape(planes)
        ifmap = _scaled(ours.ifmap.reshape(planes), scales, length, 2).reshape(ours.ifmap.shape)
    assert np.array_equal(sums, reference.accumulate(layer, ifmap, weight))


FORM = VectorFormat(bits=4, vector=3, scale_bits=5)
FAULTS = {
    "one gamma for all filters": ("coarse_axis=cut if alpha is None else None", "coarse_axis=None"),
    "a gamma a slice": ("            alpha=alpha,\n", "            alpha=None,\n"),
    "vectors across groups": (
        "x.reshape(layer.batch, layer.groups, -1, *x.shape[2:])",
        "x.reshape(layer.batch, 1, -1, *x.shape[2:])",
    ),
    "the real scale left out": ("x[part] * np.float64(scale)", "x[part] * np.float64(1.0)"),
    "dropped bits left out": ("* 2.0**mac.dropped_bits", "* 1.0"),
    "the ofmap's scales left out": ("(ofmap.largest * ofmap.largest_scale)", "ofmap.largest"),
    "the ofmap of a bit more": ("(2 ** (bits - 1) - 1) /", "(2**bits - 1) /"),
    "multipliers cut, not rounded": (
        "np.rint(ratios * 2.0**shift)",
        "np.floor(ratios * 2.0**shift)",
    ),
    "a multiplier of a bit less": ("(largest, MULTIPLIER_BITS)", "(largest, MULTIPLIER_BITS - 1)"),
    "a shift of the first filter": ("float(ratios.max())", "float(ratios[0])"),
    "bias cut, not rounded": ("np.rint(units)", "np.trunc(units)"),
    "bias without the weight's scale": (
        "(operands.ifmap_scale * operands.weight_scale)",
        "operands.ifmap_scale",
    ),
    "bias that wraps": (
        "saturate(np.clip(np.rint(units), -reach, reach).astype(np.int64), sum_bits)",
        "(np.rint(units).astype(np.int64) << 64 - sum_bits) >> 64 - sum_bits",
    ),
    "bias divided by the wrong filter": ("np.divide(real, np", "np.divide(real[::-1], np"),
    "storage too narrow": ("np.int8 if largest < 1 << 7", "np.int8 if largest < 1 << 8"),
}


def _few_cases() -> list[Case]:
    conv = Conv2d(
        name="c", channels=10, filters=6, ifmap_height=3, ifmap_width=4, kernel_height=2,
        kernel_width=2, groups=2, bias=True,
    )  # fmt: skip
    product = MatMul(name="m", m=4, n=5, k=7, batch=2, shared_weight=False, bias=True)
    plain, wide = VectorFormat(bits=4), VectorFormat(bits=8, signed=False)
    found: list[Case] = []
    for layer, weight, activation, rounded, sum_bits in (
        (conv, FORM, FORM, 6, 32),
        (product, FORM, FORM, None, 4),
        (conv, plain, wide, None, 32),
        (product, FORM, plain, 3, 9),
    ):
        drawn = synthetic(layer, seed=4)
        operands = replace(
            drawn,
            ifmap=drawn.ifmap if activation.signed else np.abs(drawn.ifmap),
            ifmap_scale=0.37,
            weight_scale=0.011,
            ofmap_scale=drawn.ofmap_scale * 0.37 * 0.011,
        )
        operands.weight[:1] //= 3
        mac = VectorMac(weight=weight, activation=activation, scale_product_bits=rounded)
        found.append(Case(layer=layer, operands=operands, mac=mac, ofmap=FORM, sum_bits=sum_bits))
    return found


FEW = _few_cases()


def _with_fault(folder: Path, fault: Fault | None, size: int) -> Make:
    faulty = faulty_module(module, folder, *([] if fault is None else [fault]))
    setattr(faulty, "_SLICE", size)  # noqa: B010
    return faulty.vector_operands


def _passes(folder: Path, fault: Fault | None) -> bool:
    """Whether all is right, in small slices and in whole tensors."""
    try:
        return all(
            _right(case, case.made(_with_fault(folder, fault, size)))
            for size in (20, 1 << 17)
            for case in FEW
        )
    except InputError:
        return False


def test_the_untouched_function_passes(tmp_path: Path) -> None:
    assert _passes(tmp_path, None)


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_caught(name: str, tmp_path: Path) -> None:
    assert not _passes(tmp_path, FAULTS[name])


def test_a_filter_of_zeros_has_no_output() -> None:
    layer = MatMul(name="fc", m=2, n=2, k=3, bias=True)
    operands = synthetic(layer, seed=1)
    operands.weight[:, :, 0] = 0
    mac = VectorMac(weight=FORM, activation=FORM)
    ours = vector_operands(layer, operands, mac, FORM)
    assert ours.multiplier[0] == ours.bias[0] == ours.weight_coarse[0] == 0
    assert ours.multiplier[1] > 0
    empty = replace(operands, ifmap=np.zeros_like(operands.ifmap))
    nothing = vector_operands(layer, empty, mac, FORM)
    assert not nothing.multiplier.any() and not nothing.bias.any() and nothing.ifmap_coarse == 0


def test_storage_and_scheme() -> None:
    layer = MatMul(name="m", m=2, n=3, k=4)
    operands = replace(synthetic(layer), scheme="drawn")
    operands = replace(operands, ifmap=np.abs(operands.ifmap))
    for bits, signed, kind in (
        (8, True, "i1"),
        (8, False, "i2"),
        (16, True, "i2"),
        (16, False, "i4"),
    ):
        form = VectorFormat(bits=bits, signed=signed)
        mac = VectorMac(weight=FORM, activation=form)
        ours = vector_operands(layer, operands, mac, FORM)
        assert ours.ifmap.dtype == np.dtype(kind) and int(ours.ifmap.max()) == form.largest
    assert ours.scheme == (
        "drawn; weights to 4 bits signed, a scale of 5 bits for 3; ifmap to 16 bits unsigned"
    )


def test_bad_operands_are_refused() -> None:
    layer = MatMul(name="fc", m=2, n=3, k=4, bias=True)
    operands, unsigned = synthetic(layer), replace(FORM, signed=False)
    operands.ifmap[0, 0, 0] = -3
    operands.ifmap[operands.ifmap < -3] = 1
    mac = VectorMac(weight=FORM, activation=FORM)
    for message, changed, form in (
        (
            "fc: ifmap must not be negative in the unsigned format of activations, as -3 is; "
            "a signed format takes it",
            {},
            unsigned,
        ),
        (
            "fc: ifmap must have the shape (1, 2, 4), not (1, 2, 3)",
            {"ifmap": operands.ifmap[:, :, 1:]},
            FORM,
        ),
        ("fc: bias must have the shape (3,), not (2,)", {"bias": np.zeros(2, np.int32)}, FORM),
        ("fc: ofmap_scale must be positive and finite, not 0", {"ofmap_scale": 0.0}, FORM),
    ):
        with pytest.raises(InputError) as error:
            vector_operands(
                layer, replace(operands, **changed), replace(mac, activation=form), FORM
            )
        assert str(error.value) == message
    for message, options in (
        ("fc: the ofmap must have integer scales, not floating ones",
         {"ofmap": VectorFormat(bits=4, vector=2)}),
        ("sum_bits must be 2 to 62, not 63", {"sum_bits": 63}),
        ("fc: quantisation: bits must be 2 to 16, not 17", {"bits": 17}),
    ):  # fmt: skip
        request: dict[str, Any] = {"ofmap": FORM, **options}
        with pytest.raises(InputError) as error:
            vector_operands(layer, operands, mac, **request)
        assert str(error.value) == message
    with pytest.raises(InputError, match=r"^fc: requantisation: the real multiplier must be at"):
        vector_operands(layer, replace(operands, ofmap_scale=1e30), mac, FORM)
    with pytest.raises(InputError, match=r"^fc: requantisation: the real multiplier must be below"):
        vector_operands(layer, replace(operands, ofmap_scale=1e-30), mac, FORM)


def test_what_a_core_cannot_take_is_refused() -> None:
    layer = MatMul(name="fc", m=2, n=3, k=4)
    mac = VectorMac(weight=FORM, activation=FORM)
    right = vector_operands(layer, synthetic(layer), mac, FORM)
    check_vector_operands(layer, right, mac, 3)
    unscaled = replace(mac, activation=VectorFormat(bits=4))
    wide: dict[str, Any] = {"weight": np.full_like(right.weight, 8)}
    cases: tuple[tuple[str, dict[str, Any], VectorMac, int], ...] = (
        ("fc: weight must fit 4 bits signed, but ranges from 8 to 8", wide, mac, 3),
        ("fc: ifmap_scales must be given, since its format has 5 bits of scales",
         {"ifmap_scales": None}, mac, 3),
        ("fc: ifmap_scales must be None, since its format has no scales", {}, unscaled, 3),
        ("fc: ifmap_scales must have the shape (1, 2, 1), not (1, 2, 2)", {}, mac, 4),
        ("fc: ifmap must hold integers, not float64", {"ifmap": right.ifmap * 1.0}, mac, 3),
    )  # fmt: skip
    for message, changed, by, length in cases:
        with pytest.raises(InputError) as error:
            check_vector_operands(layer, replace(right, **changed), by, length)
        assert str(error.value) == message
    for message, changed in (
        ("multiplier must have the shape (3,) of bias, not (2,)", {"multiplier": np.ones(2, int)}),
        ("multiplier must be 0 to 65535, but ranges from -1 to -1",
         {"multiplier": -np.ones(3, int)}),
        ("shift must be at most 47, not 48", {"shift": 48}),
        ("shift must not be negative, not -1", {"shift": -1}),
    ):  # fmt: skip
        with pytest.raises(InputError) as error:
            replace(right, **changed)
        assert str(error.value) == message
