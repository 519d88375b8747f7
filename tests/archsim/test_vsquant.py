"""Per-vector scaled quantisation against loops over elements, and its bounds."""

from __future__ import annotations

from itertools import pairwise
from math import ceil

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from archsim.codecs.vsquant import Floats, Quantized, VectorFormat, quantize
from archsim.errors import InputError
from workloads.quantize import quantize_symmetric

FLOATS = st.floats(-1e3, 1e3, width=32)


@st.composite
def tensors(draw: st.DrawFn, *, signed: bool = True) -> Floats:
    """[K, C, R, S], with vectors of zeros among them."""
    shape = tuple(draw(st.integers(1, most)) for most in (3, 9, 2, 2))
    values = draw(hnp.arrays(np.float64, shape, elements=FLOATS))
    kept = draw(hnp.arrays(np.bool_, shape))
    values = np.where(kept, values, 0.0)
    return values if signed else np.abs(values)


@st.composite
def formats(draw: st.DrawFn, *, signed: bool | None = None) -> VectorFormat:
    vector = draw(st.none() | st.integers(1, 12))
    return VectorFormat(
        bits=draw(st.integers(2, 16)),
        signed=draw(st.booleans()) if signed is None else signed,
        vector=vector,
        scale_bits=None if vector is None else draw(st.none() | st.integers(1, 16)),
    )


def _nearest(ratio: float) -> int:
    """Python's round: half to even."""
    return round(ratio)


def slow(x: Floats, form: VectorFormat, coarse: bool) -> Floats:
    """What an array [K, C, R, S] is quantised to, one element at a time: equations 7a to 7j."""
    answer = np.zeros_like(x)
    filters = [[k] for k in range(len(x))] if coarse else [list(range(len(x)))]
    for group in filters:
        where = [(k, c, r, s) for k in group for c, r, s in np.ndindex(x.shape[1:])]
        scale = {}
        for k, c, r, s in where:
            i = 0 if form.vector is None else c // form.vector
            key = () if form.vector is None else (k, i, r, s)
            scale[key] = max(scale.get(key, 0.0), abs(float(x[k, c, r, s])) / form.largest)
        gamma = max(scale.values()) / (form.largest_scale)
        for k, c, r, s in where:
            i = 0 if form.vector is None else c // form.vector
            own = scale[() if form.vector is None else (k, i, r, s)]
            least = -form.largest if form.signed else 0
            q = _nearest(float(x[k, c, r, s]) / own) if own else 0
            q = min(max(q, least), form.largest)
            stored = own
            if form.scale_bits is not None:
                stored = (_nearest(own / gamma) if gamma else 0) * gamma
            answer[k, c, r, s] = q * stored
    return answer


@given(data=st.data(), form=formats(), coarse=st.booleans())
def test_agrees_with_a_loop_over_elements(
    data: st.DataObject, form: VectorFormat, coarse: bool
) -> None:
    x = data.draw(tensors(signed=form.signed))
    ours = quantize(x, form, coarse_axis=0 if coarse else None).dequantize()
    expected = slow(x, form, coarse)
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=0)


@given(data=st.data(), form=formats())
def test_integers_stay_in_their_range(data: st.DataObject, form: VectorFormat) -> None:
    stored = quantize(data.draw(tensors(signed=form.signed)), form, coarse_axis=0)
    assert stored.values.dtype == np.int32
    assert stored.values.max() <= form.largest
    assert stored.values.min() >= (-form.largest if form.signed else 0)
    if form.scale_bits is not None:
        assert stored.scales.dtype == np.int32
        assert stored.scales.min() >= 0
        assert stored.scales.max() <= form.largest_scale


def _expanded(stored: Quantized) -> Floats:
    """The scale of every element."""
    axis = stored.channel_axis
    length = stored.format.vector or stored.values.shape[axis]
    channels = stored.values.shape[axis]
    repeated = np.repeat(stored.scales, min(length, channels), axis)
    return np.take(repeated, range(channels), axis).astype(np.float64)


@given(x=tensors(), bits=st.integers(2, 12), vector=st.integers(1, 12))
def test_floating_scales_are_off_by_half_a_scale(x: Floats, bits: int, vector: int) -> None:
    stored = quantize(x, VectorFormat(bits=bits, vector=vector))
    error = np.abs(x - stored.dequantize())
    assert (error <= _expanded(stored) / 2 * (1 + 1e-9)).all()


@given(x=tensors(), bits=st.integers(2, 12), vector=st.integers(1, 12))
def test_the_bound_of_a_vector_is_never_above_that_of_its_channel(
    x: Floats, bits: int, vector: int
) -> None:
    fine = quantize(x, VectorFormat(bits=bits, vector=vector), coarse_axis=0)
    coarse = quantize(x, VectorFormat(bits=bits), coarse_axis=0)
    assert (_expanded(fine) <= coarse.coarse).all()
    assert (np.abs(x - fine.dequantize()) <= coarse.coarse / 2 * (1 + 1e-9)).all()


@given(x=tensors(), bits=st.integers(2, 10), vector=st.integers(1, 12), scale=st.integers(1, 16))
def test_integer_scales_add_half_a_gamma_a_level(
    x: Floats, bits: int, vector: int, scale: int
) -> None:
    form = VectorFormat(bits=bits, vector=vector)
    exact = quantize(x, form, coarse_axis=0)
    rounded = quantize(x, VectorFormat(bits=bits, vector=vector, scale_bits=scale), coarse_axis=0)
    np.testing.assert_array_equal(exact.values, rounded.values)
    apart = np.abs(exact.dequantize() - rounded.dequantize())
    assert (apart <= np.abs(exact.values) * rounded.coarse / 2 * (1 + 1e-9)).all()


def test_two_levels_converge_to_floating_scales() -> None:
    x = np.random.default_rng(1).normal(size=(8, 64, 3, 3))
    exact = quantize(x, VectorFormat(bits=6, vector=16), coarse_axis=0).dequantize()
    apart = [
        np.abs(
            quantize(x, VectorFormat(bits=6, vector=16, scale_bits=m), coarse_axis=0).dequantize()
            - exact
        ).max()
        for m in (2, 4, 6, 8, 10, 12, 14, 16)
    ]
    assert all(later < 0.5 * earlier for earlier, later in pairwise(apart))
    assert apart[-1] < 1e-4


def test_a_vector_of_one_keeps_every_value() -> None:
    x = np.random.default_rng(2).normal(size=(4, 5))
    stored = quantize(x, VectorFormat(bits=3, vector=1))
    np.testing.assert_array_equal(np.abs(stored.values), 3)
    np.testing.assert_allclose(stored.dequantize(), x, rtol=1e-15)


def test_a_vector_longer_than_the_channels_is_the_channels() -> None:
    x = np.random.default_rng(3).normal(size=(4, 5, 2))
    long, short = (quantize(x, VectorFormat(bits=4, vector=v)) for v in (64, 5))
    np.testing.assert_array_equal(long.values, short.values)
    assert long.scales.shape == (4, 1, 2)


@pytest.mark.parametrize(("channels", "vector"), [(5, 2), (16, 16), (17, 16), (3, 64), (64, 1)])
def test_there_is_a_scale_for_every_begun_vector(channels: int, vector: int) -> None:
    form = VectorFormat(bits=4, vector=vector, scale_bits=6)
    stored = quantize(np.ones((2, channels, 3, 3)), form, coarse_axis=0)
    assert stored.scales.shape == (2, ceil(channels / vector), 3, 3)
    assert stored.stored_bits == 2 * 9 * (4 * channels + 6 * ceil(channels / vector))


def test_a_short_last_vector_has_its_own_maximum() -> None:
    stored = quantize(np.array([[8.0, 4.0, 1.0]]), VectorFormat(bits=4, vector=2))
    np.testing.assert_array_equal(stored.values, [[7, 4, 7]])
    np.testing.assert_allclose(stored.scales, [[8 / 7, 1 / 7]])


def test_channels_may_be_any_axis() -> None:
    x = np.random.default_rng(4).normal(size=(6, 7, 5))
    form = VectorFormat(bits=5, vector=3, scale_bits=4)
    straight = quantize(x, form, channel_axis=0)
    for axis in range(3):
        moved = quantize(np.moveaxis(x, 0, axis), form, channel_axis=axis)
        np.testing.assert_array_equal(np.moveaxis(moved.values, axis, 0), straight.values)
        np.testing.assert_array_equal(np.moveaxis(moved.scales, axis, 0), straight.scales)
    last = quantize(np.moveaxis(x, 0, 2), form, channel_axis=-1)
    np.testing.assert_array_equal(last.dequantize(), np.moveaxis(straight.dequantize(), 0, 2))


def test_the_paper_s_example_of_overhead() -> None:
    form = VectorFormat(bits=4, vector=16, scale_bits=4)
    assert form.overhead == 0.0625
    assert form.bits_per_value == 4.25
    assert VectorFormat(bits=4).overhead == 0
    assert VectorFormat(bits=4, vector=16).overhead == 0.5


def test_what_the_paper_leaves_open() -> None:
    assert VectorFormat(bits=4).largest == 7
    assert VectorFormat(bits=4, signed=False).largest == 15
    halves = quantize(np.array([[0.5, 1.5, 2.5, -2.5, 7.0]]), VectorFormat(bits=4, vector=5))
    np.testing.assert_array_equal(halves.values, [[0, 2, 2, -2, 7]])
    zeros = quantize(np.zeros((2, 4)), VectorFormat(bits=4, vector=2, scale_bits=4))
    assert not zeros.values.any() and not zeros.scales.any() and not zeros.coarse.any()
    assert not zeros.dequantize().any()
    assert not quantize(np.full((1, 4), 5e-324), VectorFormat(bits=4)).dequantize().any()


def test_a_small_scale_is_rounded_to_zero_and_its_values_are_kept() -> None:
    form = VectorFormat(bits=4, vector=2, scale_bits=2)
    stored = quantize(np.array([[21.0, 7.0, 3.0, -3.4]]), form)
    np.testing.assert_array_equal(stored.coarse, [[1.0]])
    np.testing.assert_array_equal(stored.scales, [[3, 0]])
    np.testing.assert_array_equal(stored.values, [[7, 2, 6, -7]])
    np.testing.assert_array_equal(stored.dequantize(), [[21, 6, 0, 0]])


@given(x=tensors(), bits=st.integers(2, 16))
def test_one_scale_a_tensor_is_that_of_the_workloads(x: Floats, bits: int) -> None:
    levels, scale = quantize_symmetric(x, bits)
    stored = quantize(x, VectorFormat(bits=bits))
    np.testing.assert_array_equal(stored.values, levels)
    if x.any():
        assert stored.coarse.item() == scale


def test_alpha_clips_values_or_scales() -> None:
    x = np.array([[1.0, 2.0, 30.0, 4.0]])
    clipped = quantize(x, VectorFormat(bits=4), alpha=7.0)
    np.testing.assert_array_equal(clipped.dequantize(), [[1, 2, 7, 4]])
    form = VectorFormat(bits=4, vector=2, scale_bits=2)
    stored = quantize(x, form, alpha=21.0)
    np.testing.assert_array_equal(stored.coarse, [[1.0]])
    np.testing.assert_array_equal(stored.scales, [[0, 3]])
    nothing = quantize(x, VectorFormat(bits=4), alpha=0.0)
    assert not nothing.values.any() and not nothing.coarse.any()
    each = quantize(np.repeat(x, 2, 0), VectorFormat(bits=4), coarse_axis=0, alpha=[[7.0], [14.0]])
    np.testing.assert_array_equal(each.dequantize(), [[1, 2, 7, 4], [0, 2, 14, 4]])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"bits": 1}, "bits must be 2 to 16, not 1"),
        ({"bits": 17}, "bits must be 2 to 16, not 17"),
        ({"bits": 4.5}, "bits must be a whole number, not 4.5"),
        ({"bits": 4, "vector": 0}, "vector must be positive, not 0"),
        ({"bits": 4, "vector": 16, "scale_bits": 0}, "scale_bits must be 1 to 16, not 0"),
        ({"bits": 4, "vector": 16, "scale_bits": 17}, "scale_bits must be 1 to 16, not 17"),
        ({"bits": 4, "scale_bits": 4}, "scale_bits need a vector, which is None"),
    ],
)
def test_formats_out_of_range_are_refused(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(InputError) as error:
        VectorFormat(**wrong)  # pyright: ignore[reportArgumentType]
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("x", "options", "message"),
    [
        ([[1.0, np.nan]], {}, "conv1 must be finite, not nan at [0, 1]"),
        ([[1.0], [-np.inf]], {}, "conv1 must be finite, not -inf at [1, 0]"),
        (np.zeros((0, 4)), {}, "conv1 must not be empty, as shape (0, 4) is"),
        ([["a"]], {}, "conv1 must be numbers, not of type <U1"),
        ([1.0], {}, "channel_axis must be an axis of shape (1,), which 1 is not"),
        (
            [[1.0]],
            {"coarse_axis": 2},
            "coarse_axis must be an axis of shape (1, 1), which 2 is not",
        ),
        ([[1.0]], {"alpha": -1.0}, "alpha must not be negative, as -1 is"),
        ([[1.0]], {"alpha": np.nan}, "alpha must be finite, not nan at []"),
        (
            [[1.0], [2.0]],
            {"coarse_axis": 0, "alpha": np.ones(2)},
            "alpha must be one number or of shape (2, 1), not (2,)",
        ),
    ],
)
def test_bad_values_are_refused(x: npt.ArrayLike, options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError) as error:
        quantize(np.asarray(x), VectorFormat(bits=4), name="conv1", **options)
    assert str(error.value) == message


def test_signs_and_alphas_that_do_not_fit_the_format() -> None:
    with pytest.raises(InputError) as error:
        quantize(np.array([[-0.5]]), VectorFormat(bits=4, signed=False), name="ifmap")
    assert str(error.value) == "ifmap must not be negative if unsigned, as -0.5 is"
    with pytest.raises(InputError) as error:
        quantize(np.ones((1, 4)), VectorFormat(bits=4, vector=2), alpha=1.0)
    assert str(error.value) == "alpha is for a coarse scale, and floating scales have none"
