"""Scales found while values leave: against exact fractions, and hardware's division against ⌊ ⌋."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.codecs.vector_output import Division, VectorOutput, division
from archsim.codecs.vsquant import VectorFormat
from archsim.errors import InputError
from archsim.numbers import IntArray, rescale, saturate


@st.composite
def outputs(draw: st.DrawFn, *, scaled: bool) -> VectorOutput:
    lanes = draw(st.integers(1, 6))
    divisors = [v for v in range(1, lanes + 1) if lanes % v == 0]
    multiples = st.integers(1, 4).map(lambda rows: rows * lanes)
    vector = draw(st.sampled_from(divisors) | multiples) if scaled else None
    form = VectorFormat(
        bits=draw(st.integers(2, 16)),
        signed=draw(st.booleans()),
        vector=vector,
        scale_bits=draw(st.integers(1, 16)) if scaled else None,
    )
    multiplier_bits = draw(st.integers(1, 16))
    sum_bits = draw(st.integers(2, 61 - multiplier_bits))
    return VectorOutput(form=form, lanes=lanes, sum_bits=sum_bits, multiplier_bits=multiplier_bits)


Case = tuple[IntArray, IntArray, IntArray, int, bool]


def _case(output: VectorOutput, pixels: int, channels: int, seed: int) -> Case:
    """Sums of all magnitudes, whole vectors of zeros among them, and a shift that fits some."""
    rng = np.random.default_rng(seed)
    half = 1 << (output.sum_bits - 1)
    tops = half >> rng.integers(0, output.sum_bits, (pixels, 1))
    sums = np.clip(rng.integers(-half, half, (pixels, channels)), -tops, tops - 1)
    bias = np.where(rng.random(channels) < 0.5, 0, rng.integers(-half, half, channels))
    sums[rng.random(sums.shape) < 0.3] = 0
    multiplier = rng.integers(0, 1 << output.multiplier_bits, channels)
    shift = int(rng.integers(0, min(output.product_bits, 63) + 1))
    return sums, bias, multiplier, shift, bool(rng.integers(0, 2))


def test_the_largest_shift_rounds_to_zero() -> None:
    """Half of 2^63 is 2^62, not below zero."""
    form = VectorFormat(bits=4, vector=4, scale_bits=4)
    output = VectorOutput(form=form, lanes=4, sum_bits=24)
    sums, one = np.array([[-5, 5, -(1 << 23), (1 << 23) - 1]]), np.ones(4, np.int64)
    for shift in (61, 62, 63):
        q, scales = output.compute(sums, 0 * one, one, shift, relu=False)
        assert not q.any() and not scales.any()


def _half_up(value: Fraction) -> int:
    return floor(value + Fraction(1, 2))


@settings(max_examples=80)
@given(
    output=outputs(scaled=True),
    pixels=st.integers(1, 4),
    channels=st.integers(1, 11),
    seed=st.integers(0, 999),
)
def test_it_is_the_formula_in_exact_fractions(
    output: VectorOutput, pixels: int, channels: int, seed: int
) -> None:
    sums, bias, multiplier, shift, relu = _case(output, pixels, channels, seed)
    q, scales = output.compute(sums, bias, multiplier, shift, relu)
    form = output.form
    assert form.vector is not None
    limit = form.largest * form.largest_scale
    for pixel in range(pixels):
        z: list[int] = []
        for c in range(channels):
            total = (int(sums[pixel, c]) + int(bias[c])) * int(multiplier[c])
            # half up where the shift is not 0; total is whole, so there it changes nothing
            value = _half_up(Fraction(total, 1 << shift))
            value = max(value, 0) if relu or not form.signed else value
            z.append(max(-limit, min(limit, value)))
        for vector in range(scales.shape[1]):
            own = range(vector * form.vector, min((vector + 1) * form.vector, channels))
            top = max(abs(z[c]) for c in own)
            scale = -(-top // form.largest)
            assert scales[pixel, vector] == scale <= form.largest_scale
            for c in own:
                magnitude = _half_up(Fraction(abs(z[c]), scale)) if scale else 0
                assert q[pixel, c] == (magnitude if z[c] > 0 else -magnitude)


@given(
    output=outputs(scaled=True),
    pixels=st.integers(1, 4),
    channels=st.integers(1, 11),
    seed=st.integers(0, 999),
)
def test_no_value_clips_and_the_error_is_at_most_half_a_scale(
    output: VectorOutput, pixels: int, channels: int, seed: int
) -> None:
    """z itself is what leaves with the scale 1 of enough bits."""
    form = output.form
    assert form.vector is not None
    case = _case(output, pixels, channels, seed)
    q, scales = output.compute(*case)
    assert scales.shape == (pixels, -(-channels // form.vector))
    assert np.abs(q).max() <= form.largest
    sums, bias, multiplier, shift, relu = case
    z = np.stack(
        [rescale(sums[:, c] + bias[c], int(multiplier[c]), shift) for c in range(channels)]
    )
    z = np.clip(z.T, 0 if relu or not form.signed else -output.high, output.high)
    spread = np.repeat(scales, form.vector, axis=1)[:, :channels]
    assert (np.abs(2 * (z - q * spread)) <= spread).all()
    assert (np.abs(z) <= spread * form.largest).all()
    tops = np.maximum.reduceat(np.abs(z), np.arange(0, channels, form.vector), axis=1)
    assert (tops > (scales - 1) * form.largest).all(), "a smaller scale would do"


@given(
    output=outputs(scaled=False),
    pixels=st.integers(1, 4),
    channels=st.integers(1, 11),
    seed=st.integers(0, 999),
)
def test_without_scales_it_is_the_saturated_rescaled_sum(
    output: VectorOutput, pixels: int, channels: int, seed: int
) -> None:
    sums, bias, multiplier, shift, relu = _case(output, pixels, channels, seed)
    q, scales = output.compute(sums, bias, multiplier, shift, relu)
    assert scales.shape == (pixels, 0)
    z = rescale(sums + bias, multiplier, shift)  # pyright: ignore[reportArgumentType]
    z = np.maximum(z, 0) if relu else z
    bits = output.form.bits
    wanted = saturate(z, bits) if output.form.signed else np.clip(z, 0, 2**bits - 1)
    np.testing.assert_array_equal(q, wanted)


def test_a_vector_by_hand() -> None:
    """Qmax 7: top 50 has the scale 8; ±4 is half of it, and goes away from zero."""
    form = VectorFormat(bits=4, vector=3, scale_bits=8)
    output = VectorOutput(form=form, lanes=3, sum_bits=10)
    sums = np.array([[50, -4, 3, 49, -49, 7, 0, 0]])
    bias, ones = np.zeros(8, np.int64), np.ones(8, np.int64)
    q, scales = output.compute(sums, bias, ones, 0, False)
    assert q.tolist() == [[6, -1, 0, 7, -7, 1, 0, 0]]
    assert scales.tolist() == [[8, 7, 0]]
    assert output.compute(sums, bias, ones, 0, True)[0].tolist() == [[6, 0, 0, 7, 0, 1, 0, 0]]


def _divides(by: Division, number: int, divisor: int, x: int) -> bool:
    return (x * by.multipliers[number]) >> by.shift == x // divisor


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("bits", [2, 3, 4, 5])
@pytest.mark.parametrize("scale_bits", [1, 2, 3, 4, 5, 6])
def test_a_multiplier_and_a_shift_divide_all_that_can_come(
    bits: int, scale_bits: int, signed: bool
) -> None:
    """Every top and every |z| of every scale; a shift less, and one of them would be wrong."""
    form = VectorFormat(bits=bits, signed=signed, vector=1, scale_bits=scale_bits)
    output = VectorOutput(form=form, lanes=1, sum_bits=8)
    by, largest = output.value_division, form.largest
    assert by.multipliers[0] == 0
    cases = [
        (s, s, x) for s in range(1, form.largest_scale + 1) for x in range(largest * s + s // 2 + 1)
    ]
    assert all(_divides(by, *case) for case in cases)
    tops = [(0, largest, x + largest - 1) for x in range(output.high + 1)]
    assert all(_divides(output.scale_division, *case) for case in tops)
    _assert_tight(by, [0, *range(1, form.largest_scale + 1)], cases)
    _assert_tight(output.scale_division, [largest], tops)


def _assert_tight(by: Division, divisors: list[int], cases: list[tuple[int, int, int]]) -> None:
    if by.shift == 0:
        return
    shift = by.shift - 1
    shorter = tuple(-(-(1 << shift) // d) if d else 0 for d in divisors)
    less = Division(multipliers=shorter, shift=shift)
    assert not all(_divides(less, *case) for case in cases)


@pytest.mark.parametrize(("bits", "scale_bits"), [(4, 8), (8, 10), (16, 16), (16, 1), (2, 16)])
@pytest.mark.parametrize("signed", [True, False])
def test_division_at_the_corners_of_wide_formats(bits: int, scale_bits: int, signed: bool) -> None:
    """Around multiples of the divisor, where the quotient changes, and at the end."""
    form = VectorFormat(bits=bits, signed=signed, vector=1, scale_bits=scale_bits)
    output = VectorOutput(form=form, lanes=1, sum_bits=24)
    top, by = form.largest, output.value_division
    rng = np.random.default_rng(bits)
    scales = {1, 2, 3, form.largest_scale, form.largest_scale - 1, form.largest_scale // 2 + 1}
    scales |= set(rng.integers(1, form.largest_scale + 1, 300).tolist())
    scales &= set(range(1, form.largest_scale + 1))
    for s in scales:
        quotients = [1, 2, top // 2, top - 1, top, *rng.integers(0, top + 1, 5).tolist()]
        corners = [q * s + edge for q in quotients for edge in (-1, 0, s // 2)]
        assert all(_divides(by, s, s, x) for x in corners if 0 <= x <= top * s + s // 2)
    for scale in scales:
        corners = [scale * top + edge for edge in (-1, 0)] + [(scale + 1) * top - 1]
        assert all(_divides(output.scale_division, 0, top, x) for x in corners)
    assert by.bits == by.shift + 1, "the reciprocal of 1"


@given(pairs=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 300)), min_size=1, max_size=4))
def test_division_by_anything(pairs: list[tuple[int, int]]) -> None:
    by = division(np.array([d for d, _ in pairs]), np.array([top for _, top in pairs]))
    for number, (d, top) in enumerate(pairs):
        if d == 0:
            assert by.multipliers[number] == 0
            continue
        assert all(_divides(by, number, d, x) for x in range(top + 1))


def test_rows_latencies_and_words() -> None:
    def output(vector: int | None, lanes: int) -> VectorOutput:
        form = VectorFormat(bits=4, vector=vector, scale_bits=8 if vector else None)
        return VectorOutput(form=form, lanes=lanes, sum_bits=24)

    assert [output(v, 16).rows_per_vector for v in (4, 16, 64, None)] == [1, 1, 4, 1]
    assert [output(v, 16).vectors_per_row for v in (4, 16, 64, None)] == [4, 1, 1, 1]
    assert [output(v, 16).latency_cycles for v in (4, 16, 32, 64, None)] == [9, 9, 11, 13, 4]
    assert [output(v, 16).queue_words for v in (16, 64, None)] == [10, 17, 5]
    assert [output(v, 16).word_bits for v in (4, 16, 64, None)] == [96, 72, 72, 64]
    assert output(64, 16).bias_bits == 16 * 40


def test_the_order_of_rows() -> None:
    """2 pixels, 5 rows a pixel, vectors of 2 rows: pairs, pixel after pixel, then the last rows."""
    form = VectorFormat(bits=4, vector=6, scale_bits=4)
    output = VectorOutput(form=form, lanes=3, sum_bits=12)
    assert output.row_order(2, 5).tolist() == [0, 2, 1, 3, 4, 6, 5, 7, 8, 9]
    assert output.vector_rows(2, 5).tolist() == [2, 2, 2, 2, 1, 1]


@given(output=outputs(scaled=True), pixels=st.integers(1, 5), steps=st.integers(1, 9))
def test_every_row_leaves_once_vector_by_vector(
    output: VectorOutput, pixels: int, steps: int
) -> None:
    order, rows = output.row_order(pixels, steps), output.vector_rows(pixels, steps)
    assert sorted(order.tolist()) == list(range(pixels * steps))
    assert rows.sum() == len(order)
    for vector in np.split(order, np.cumsum(rows)[:-1]):
        assert len(set((vector % pixels).tolist())) == 1
        assert np.diff(vector // pixels).tolist() == [1] * (len(vector) - 1)
        assert vector[0] // pixels % output.rows_per_vector == 0


SCALED = VectorFormat(bits=4, vector=6, scale_bits=4)


@pytest.mark.parametrize(
    ("form", "changes", "message"),
    [
        (SCALED, {"lanes": 4}, "vector must be a multiple of the lanes or divide them, not 6 with"),
        (VectorFormat(bits=4, vector=4), {}, "floating ones are not"),
        (SCALED, {"lanes": 0}, "lanes must be positive, not 0"),
        (SCALED, {"sum_bits": 1}, "sum_bits must be at least 2, not 1"),
        (SCALED, {"sum_bits": 46}, "must have at most 62 bits, not 63"),
        (SCALED, {"multiplier_bits": 0}, "multiplier_bits must be positive, not 0"),
    ],
)
def test_what_is_no_output_is_refused(
    form: VectorFormat, changes: dict[str, int], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        VectorOutput(form=form, **{"lanes": 3, "sum_bits": 20, **changes})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("sums", np.zeros(3, np.int64), r"sums must be \[pixels, channels\]"),
        ("sums", np.full((2, 3), 512), "sums must be -512 to 511, not 512"),
        ("sums", np.zeros((2, 3), np.int32), "sums must be int64, not int32"),
        ("bias", np.full(3, -513), "bias must be -512 to 511, not -513"),
        ("bias", np.zeros(4, np.int64), r"bias must be of shape \(3,\), not of \(4,\)"),
        ("multiplier", np.full(3, -1), "multiplier must be 0 to 65535, not -1"),
        ("shift", 64, "shift must be 0 to 63, not 64"),
    ],
)
def test_operands_beyond_their_bits_are_refused(name: str, value: object, message: str) -> None:
    output = VectorOutput(form=SCALED, lanes=3, sum_bits=10)
    operands: dict[str, object] = {
        "sums": np.zeros((2, 3), np.int64),
        "bias": np.zeros(3, np.int64),
        "multiplier": np.ones(3, np.int64),
        "shift": 0,
        "relu": False,
    }
    with pytest.raises(InputError, match=message):
        output.compute(**{**operands, name: value})  # pyright: ignore[reportArgumentType]


def test_a_divisor_too_large_for_64_bits_is_refused() -> None:
    with pytest.raises(InputError, match="must be below 2\\^62"):
        division(np.array([(1 << 40) - 1]), np.array([(1 << 61) - 2]))
