"""The integer dot product: against Python's integers, the float formula, and its widths."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.codecs.vector_dot import VectorMac, dot, real, scale_product
from archsim.codecs.vsquant import Quantized, VectorFormat, quantize
from archsim.errors import InputError

Overflow = Literal["saturate", "wrap"]


def _operands(mac: VectorMac, seed: int, channels: int) -> tuple[Quantized, Quantized]:
    """Weights [3, C, 2, 1] and windows [4, C, 2, 1]."""
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(3, channels, 2, 1)) * rng.random((3, channels, 1, 1))
    windows = rng.normal(size=(4, channels, 2, 1))
    windows = windows if mac.activation.signed else np.maximum(windows, 0)
    return quantize(weight, mac.weight, coarse_axis=0), quantize(windows, mac.activation)


def _mac(
    sizes: tuple[int, int, int | None, int | None],
    vector: int,
    product: int | None = None,
    accumulator: int = 60,
    overflow: Overflow = "saturate",
) -> VectorMac:
    n, a, ws, as_ = sizes
    forms = [
        VectorFormat(bits=bits, signed=signed, vector=vector if scale else None, scale_bits=scale)
        for bits, scale, signed in ((n, ws, True), (a, as_, False))
    ]
    return VectorMac(
        weight=forms[0],
        activation=forms[1],
        scale_product_bits=product,
        accumulator_bits=accumulator,
        overflow=overflow,
    )


SIZES = st.tuples(
    st.integers(2, 8),
    st.integers(2, 8),
    st.none() | st.integers(1, 10),
    st.none() | st.integers(1, 10),
)


@given(sizes=SIZES, vector=st.integers(1, 12), channels=st.integers(1, 20), seed=st.integers(0, 99))
def test_without_rounding_it_is_the_float_formula(
    sizes: tuple[int, int, int | None, int | None], vector: int, channels: int, seed: int
) -> None:
    mac = _mac(sizes, vector)
    weight, windows = _operands(mac, seed, channels)
    ours = real(mac, dot(mac, weight, windows), weight, windows)
    w, a = (each.dequantize().reshape(len(each.values), -1) for each in (weight, windows))
    np.testing.assert_allclose(ours, a @ w.T, rtol=1e-9, atol=1e-9 * np.abs(a @ w.T).max())


def _slow(mac: VectorMac, weight: Quantized, windows: Quantized, length: int) -> list[list[int]]:
    """Python's integers, one product at a time."""
    half = 1 << (mac.accumulator_bits - 1)
    answer: list[list[int]] = []
    for m in range(len(windows.values)):
        row: list[int] = []
        for k in range(len(weight.values)):
            total = 0
            for tap in range(2):
                for start in range(0, weight.values.shape[1], length):
                    block = slice(start, start + length)
                    w = weight.values[k, block, tap, 0].tolist()
                    a = windows.values[m, block, tap, 0].tolist()
                    at = start // length
                    sw = int(weight.scales[k, at, tap, 0]) if mac.weight.vector else 1
                    sa = int(windows.scales[m, at, tap, 0]) if mac.activation.vector else 1
                    scale = sw * sa
                    if mac.dropped_bits:
                        bits = mac.full_scale_bits - mac.dropped_bits
                        scale = min(int(scale / 2**mac.dropped_bits + 0.5), 2**bits - 1)
                    total += sum(x * y for x, y in zip(w, a, strict=True)) * scale
                    if mac.overflow == "saturate":
                        total = min(max(total, -half), half - 1)
                    else:
                        total = (total + half) % (2 * half) - half
            row.append(total)
        answer.append(row)
    return answer


@given(
    sizes=SIZES,
    channels=st.integers(1, 20),
    seed=st.integers(0, 99),
    product=st.none() | st.integers(1, 12),
    accumulator=st.integers(4, 40),
    overflow=st.sampled_from(["saturate", "wrap"]),
)
def test_agrees_with_integers_of_any_width(
    sizes: tuple[int, int, int | None, int | None],
    channels: int,
    seed: int,
    product: int | None,
    accumulator: int,
    overflow: Overflow,
) -> None:
    mac = _mac(sizes, 6, product, accumulator, overflow)
    weight, windows = _operands(mac, seed, channels)
    length = 6 if sizes[2] or sizes[3] else channels
    assert dot(mac, weight, windows).tolist() == _slow(mac, weight, windows, length)


def test_saturation_is_at_every_step_and_not_at_the_end() -> None:
    form = VectorFormat(bits=4, vector=1, scale_bits=4)
    saturating, wrapping = (
        VectorMac(weight=form, activation=form, accumulator_bits=14, overflow=overflow)
        for overflow in ("saturate", "wrap")
    )
    activation = quantize(np.ones((1, 2)), form)
    weight = quantize(np.array([[1.0, -1.0]]), form)
    term = 49 * 15 * 15
    assert term > 2**13
    assert dot(saturating, weight, activation).item() == 2**13 - 1 - term
    assert dot(wrapping, weight, activation).item() == 0


@pytest.mark.parametrize(
    ("bits", "expected"), [(None, [0, 64, 225]), (4, [0, 4, 14]), (6, [0, 16, 56]), (1, [0, 1, 1])]
)
def test_a_product_of_scales_keeps_its_upper_bits(bits: int | None, expected: list[int]) -> None:
    form = VectorFormat(bits=4, vector=16, scale_bits=4)
    mac = VectorMac(weight=form, activation=form, scale_product_bits=bits)
    scales = np.array([0, 8, 15], np.int64)
    assert scale_product(mac, scales, scales).tolist() == expected
    assert mac.dropped_bits == (0 if bits is None else 8 - bits)


def test_what_rounding_dropped_is_given_back() -> None:
    form = VectorFormat(bits=4, vector=2, scale_bits=4)
    mac = VectorMac(weight=form, activation=form, scale_product_bits=6)
    x = quantize(np.array([[7.0, -7.0, 56 / 15, 0.0]]), form)
    assert x.scales.tolist() == [[15, 8]]
    sums = dot(mac, x, x)
    assert sums.item() == 2 * 49 * 56 + 49 * 16
    assert real(mac, sums, x, x).item() == pytest.approx((2 * 49 * 224 + 49 * 64) / 15**2)


def test_widths_of_the_paper() -> None:
    mac = _mac((4, 4, 4, 6), 16)
    assert mac.dot_bits(16) == 2 * 4 + 4
    assert mac.full_scale_bits == 10
    assert mac.term_bits(16) == 22
    assert mac.sum_bits(16, 9) == 26
    assert _mac((4, 4, 4, 6), 16, product=6).term_bits(16) == 18


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("length", [1, 3, 16])
def test_the_widest_operands_fit_the_stated_widths(signed: bool, length: int) -> None:
    weights = VectorFormat(bits=3, vector=length, scale_bits=2)
    activations = VectorFormat(bits=4, signed=signed, vector=length, scale_bits=3)
    vectors = 5
    needed = VectorMac(weight=weights, activation=activations).sum_bits(length, vectors)
    for sign in (1, -1):
        w = quantize(np.full((1, length * vectors), float(sign)), weights)
        a = quantize(np.ones((1, length * vectors)), activations)
        exact, narrow = (
            dot(VectorMac(weight=weights, activation=activations, accumulator_bits=bits), w, a)
            for bits in (60, needed)
        )
        np.testing.assert_array_equal(exact, narrow)


def test_bad_operands_are_refused() -> None:
    form = VectorFormat(bits=4, vector=4, scale_bits=4)
    other = VectorFormat(bits=4, vector=8, scale_bits=4)
    cases = {
        "weight and activation must have vectors of one length, not 4 and 8": {"activation": other},
        "activation: the dot product is of integers, and floating scales are none": {
            "activation": VectorFormat(bits=4, vector=4)
        },
        "accumulator_bits must be 2 to 62, not 63": {"accumulator_bits": 63},
        "accumulator_bits must be 2 to 62, not 1": {"accumulator_bits": 1},
        "scale_product_bits must be positive, not 0": {"scale_product_bits": 0},
        "overflow must be saturate or wrap, not 'round'": {"overflow": "round"},
    }
    for message, options in cases.items():
        with pytest.raises(InputError) as error:
            VectorMac(**{"weight": form, "activation": form, **options})  # pyright: ignore
        assert str(error.value) == message
    mac = VectorMac(weight=form, activation=form)
    eight, four = (quantize(np.ones((2, c)), form) for c in (8, 4))
    with pytest.raises(InputError) as error:
        dot(mac, eight, four)
    assert str(error.value) == (
        "weight (2, 8) and activation (2, 4) must agree in all axes but the first"
    )
    with pytest.raises(InputError, match="weight must be of the format of the MAC"):
        dot(mac, quantize(np.ones((2, 4)), other), four)
    with pytest.raises(InputError, match="channels must be axis 1"):
        dot(mac, quantize(np.ones((4, 4)), form, channel_axis=0), four)
    wide = VectorFormat(bits=16, vector=4, scale_bits=16)
    both = quantize(np.ones((1, 4)), wide)
    with pytest.raises(InputError, match="a term must have at most 62 bits, not 66"):
        dot(VectorMac(weight=wide, activation=wide), both, both)
