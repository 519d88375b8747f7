"""From a layer's sums to the next one's ifmap, in one pass: what NumPy's passes make, each bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.robust.between_layers import (
    Ifmap,
    Levels,
    Sums,
    first_ifmap,
    halves_of,
    ifmap_behind,
    unit_of,
)
from archsim.robust.vector_unit import Floats, behind, window_sums
from workloads.errors import WorkloadError
from workloads.quantize import quantize_at
from workloads.simplenet import NormalizedConvolution

NONE = np.empty((0, 1, 1, 1), np.float32)


def _layer(outputs: int, groups: int, side: int, pool: int) -> NormalizedConvolution:
    return NormalizedConvolution("c", 1, outputs, 3, groups, side, pool)


def _weights(random: np.random.Generator, outputs: int, spread: float = 0.5) -> dict[str, Floats]:
    return {
        f"c.{name}": random.normal(0, spread, outputs).astype(np.float32)
        for name in ("scale", "shift")
    }


def _by_passes(
    layer: NormalizedConvolution, sums: Sums, weights: dict[str, Floats], levels: Levels
) -> Ifmap:
    """By NumPy."""
    floats = behind(layer, sums.floats(), weights)
    integers = quantize_at(floats, levels.scale, levels.bits)
    return Ifmap(integers, floats.sum(axis=1, keepdims=True))


def _assert_same(found: Ifmap, right: Ifmap) -> None:
    assert found.integers.dtype == right.integers.dtype
    assert np.array_equal(found.integers, right.integers)
    assert found.channel_sums.dtype == np.float32
    assert np.array_equal(found.channel_sums, right.channel_sums)


@st.composite
def _layers(draw: st.DrawFn) -> NormalizedConvolution:
    groups = draw(st.integers(1, 5))
    outputs = groups * draw(st.sampled_from([1, 2, 3, 8, 33]))
    side = draw(st.integers(1, 14))
    return _layer(outputs, groups, side, draw(st.sampled_from([1, 2, 3, side])) if side > 2 else 1)


@pytest.mark.parametrize("kind", ["bytes", "floats"])
def test_one_pass_is_all_passes(kind: str) -> None:
    @settings(deadline=None, max_examples=150)
    @given(_layers(), st.integers(2, 16), st.integers(1, 4), st.integers(0, 1 << 20))
    def check(layer: NormalizedConvolution, bits: int, pictures: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        shape = pictures, layer.outputs, layer.side, layer.side
        array: npt.NDArray[Any] = random.integers(-128, 128, shape).astype(np.int8)
        unit = float(np.float32(random.uniform(0.001, 0.1)))
        if kind == "floats":
            array, unit = random.normal(0, 3, shape).astype(np.float32), 1.0
            special = [np.nan, np.inf, -np.inf, 1e30]
            array.flat[random.integers(0, array.size, 3)] = random.choice(special, 3)
        beside = random.normal(0, 1, (pictures, 1, *shape[2:])).astype(np.float32)
        sums = Sums(
            array=array, unit=unit, largest=random.uniform(0.1, 4),
            beside=beside if seed % 3 else beside[:0],
        )  # fmt: skip
        weights, levels = _weights(random, layer.outputs), Levels(random.uniform(1e-4, 0.1), bits)
        found = ifmap_behind(layer, sums, weights, levels)
        _assert_same(found, _by_passes(layer, sums, weights, levels))

    check()


@pytest.mark.parametrize("bits", [2, 4, 8, 16])
@pytest.mark.parametrize("scale", [0.25, 0.3, 3e-41, 1e-32, 1e35])
def test_halves_between_two_integers(bits: int, scale: float) -> None:
    """Floats that lie on the middle between two, and next to it, where float32 is not sure; scales
    that float32 has no reciprocal of.  Each is its channel's shift."""
    random = np.random.default_rng(bits)
    middle = ((random.integers(0, min(1 << bits, 1000), 1600) + 0.5) * scale).astype(np.float32)
    aside = random.choice(np.array([-np.inf, np.inf], np.float32), 1600)
    shift = np.where(np.arange(1600) % 3, np.nextafter(middle, aside), middle)
    layer = _layer(1600, 1, 1, 1)
    array = random.integers(-128, 128, (1, 1600, 1, 1)).astype(np.int8)
    sums = Sums(array=array, unit=0.1, largest=9.0, beside=NONE)
    weights = {"c.scale": np.full(1600, -1, np.float32), "c.shift": shift}
    found = ifmap_behind(layer, sums, weights, Levels(scale, bits))
    _assert_same(found, _by_passes(layer, sums, weights, Levels(scale, bits)))
    assert np.array_equal(found.integers.ravel(), quantize_at(shift, scale, bits))


@pytest.mark.parametrize("pool", [1, 2, 3])
def test_one_value_that_is_no_number_is_enough(pool: int) -> None:
    """In whatever place of a window."""
    layer = _layer(1, 1, 6, pool)
    for place in range(36):
        array = np.zeros((1, 1, 6, 6), np.int8)
        array.flat[place] = 100
        sums = Sums(array=array, unit=0.1, largest=9.0, beside=NONE)
        scale, shift = np.array([np.inf], np.float32), np.array([-np.inf], np.float32)
        with pytest.raises(WorkloadError, match="every value must be finite"):
            ifmap_behind(layer, sums, {"c.scale": scale, "c.shift": shift}, Levels(0.01, 8))


@pytest.mark.parametrize("terms", [*range(1, 300), 784, 1000, 1568, 6272, 12544])
def test_sums_are_in_numpys_order(terms: int) -> None:
    values = np.random.default_rng(terms).normal(0, 1, terms).astype(np.float32)
    waiting: list[np.float32] = []
    start = 0
    for end, done in halves_of(terms).tolist():
        assert end - start <= 128
        waiting.append(values[start:end].sum())
        for _ in range(done):
            last = waiting.pop()
            waiting[-1] = waiting[-1] + last
        start = end
    assert start == terms and waiting == [values.sum()]


@pytest.mark.parametrize("scale", [np.inf, 3e38])
def test_a_channel_of_what_is_no_number_is_refused(scale: float) -> None:
    layer, random = _layer(4, 2, 6, 2), np.random.default_rng(0)
    array = random.integers(-128, 128, (2, 4, 6, 6)).astype(np.int8)
    sums = Sums(array=array, unit=0.1, largest=20.0, beside=NONE)
    weights = _weights(random, 4)
    weights["c.scale"][2], weights["c.shift"][2] = scale, -np.inf
    with pytest.raises(WorkloadError, match="every value must be finite"):
        ifmap_behind(layer, sums, weights, Levels(0.01, 8))


def test_a_layer_without_spread_has_its_shift() -> None:
    layer = _layer(2, 1, 5, 1)
    sums = Sums(array=np.full((1, 2, 5, 5), 7, np.int8), unit=0.5, largest=9.0, beside=NONE)
    weights = {"c.scale": np.zeros(2, np.float32), "c.shift": np.array([0.5, -1], np.float32)}
    found = ifmap_behind(layer, sums, weights, Levels(0.1, 8))
    assert (found.integers[0, 0] == 5).all() and (found.integers[0, 1] == 0).all()
    assert (found.channel_sums == np.float32(0.5)).all()


def test_pictures_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, random = _layer(6, 3, 8, 2), np.random.default_rng(3)
    array = random.integers(-128, 128, (7, 6, 8, 8)).astype(np.int8)
    beside = random.normal(0, 1, (7, 1, 8, 8)).astype(np.float32)
    sums, weights = Sums(array=array, unit=0.1, largest=3.0, beside=beside), _weights(random, 6)
    right = _by_passes(layer, sums, weights, Levels(0.02, 8))
    for count in (1, 2, 5, 16):
        monkeypatch.setattr("workloads.threads._threads", count)
        _assert_same(ifmap_behind(layer, sums, weights, Levels(0.02, 8)), right)


def test_the_first_ifmap_is_of_pictures() -> None:
    pictures = np.random.default_rng(0).uniform(0, 1, (2, 3, 4, 4)).astype(np.float32)
    found = first_ifmap(pictures, Levels(1 / 127, 8))
    assert np.array_equal(found.integers, quantize_at(pictures, 1 / 127, 8))
    assert np.array_equal(found.channel_sums, pictures.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("side", [1, 3, 5])
def test_windows_are_summed_with_zeros_around(side: int) -> None:
    sums = np.random.default_rng(side).integers(-9, 9, (2, 1, 6, 5)).astype(np.float32)
    found, reach = window_sums(sums, side), side // 2
    for n, y, x in np.ndindex(2, 6, 5):
        rows, columns = (slice(max(at - reach, 0), at + reach + 1) for at in (y, x))
        assert found[n, 0, y, x] == sums[n, 0, rows, columns].sum()


def test_the_unit_of_an_ofmap_of_bytes() -> None:
    """None where values are not products of it, or hang on their filter, or are of more bits."""
    ofmap = np.zeros((1, 3, 2, 2), np.int8)
    unit = np.float32(0.3)
    assert unit_of(lambda values: values * unit, ofmap) == float(unit)
    assert unit_of(lambda values: np.abs(values * unit), ofmap) is None
    assert unit_of(lambda values: values * np.float32(np.nan), ofmap) is None
    bias = np.array([0, 0, 1], np.float32).reshape(-1, 1, 1)
    assert unit_of(lambda values: values * unit + bias, ofmap) is None
    assert unit_of(lambda values: values * unit, ofmap.astype(np.int16)) is None


def test_floats_of_sums() -> None:
    beside = np.full((1, 1, 1, 2), 0.25, np.float32)
    array = np.array([-100, 3], np.int8).reshape(1, 1, 1, 2)
    sums = Sums(array=array, unit=0.5, largest=4.0, beside=beside)
    assert sums.floats().tolist() == [[[[-3.75, 1.75]]]]
    assert replace(sums, beside=NONE).floats().tolist() == [[[[-4.0, 1.5]]]]
