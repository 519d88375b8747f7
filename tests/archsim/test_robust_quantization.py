"""Codes of weights that bear bit errors: all schemes against a plain oracle, and their promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robust_plainly import plain_code, plain_range, plain_value

from archsim.codecs.robust_quantization import (
    Range,
    RobustScheme,
    normal,
    quantize_network,
    rquant,
    steps,
)
from archsim.errors import InputError

SCHEMES = st.builds(
    RobustScheme,
    bits=st.integers(2, 8),
    symmetric=st.booleans(),
    signed=st.booleans(),
    rounding=st.booleans(),
    clip=st.sampled_from([None, 0.05, 0.25, 1.0]),
)
WEIGHTS = st.lists(st.floats(-2, 2, width=32), min_size=1, max_size=40)


@settings(max_examples=150)
@given(SCHEMES, WEIGHTS)
def test_codes_and_values_are_the_oracles(scheme: RobustScheme, weights: list[float]) -> None:
    stored = scheme.quantize(weights)
    low, high = plain_range(scheme, weights)
    assert (stored.of.low, stored.of.high) == (low, high)
    assert stored.codes.tolist() == [plain_code(scheme, w, low, high) for w in weights]
    expected = [plain_value(scheme, code, low, high) for code in stored.codes.tolist()]
    assert stored.values().tolist() == np.array(expected, np.float32).tolist()


@settings(max_examples=60)
@given(SCHEMES, WEIGHTS)
def test_every_code_that_an_error_makes_stands_for_the_oracles_value(
    scheme: RobustScheme, weights: list[float]
) -> None:
    of = scheme.range_of([weights])
    codes = np.arange(2**scheme.bits, dtype=np.uint8)
    expected = [plain_value(scheme, code, of.low, of.high) for code in codes.tolist()]
    assert scheme.dequantize(codes, of).tolist() == np.array(expected, np.float32).tolist()
    above = codes | np.uint8(0xFF & ~(2**scheme.bits - 1))
    assert scheme.dequantize(above, of).tolist() == scheme.dequantize(codes, of).tolist()


@settings(max_examples=100)
@given(SCHEMES, WEIGHTS)
def test_an_error_is_at_most_a_step_and_half_of_one_where_rounded(
    scheme: RobustScheme, weights: list[float]
) -> None:
    stored = scheme.quantize(weights)
    width = stored.of.high - stored.of.low
    step = width / 2 / (2 ** (scheme.bits - 1) - 1) * (1 if scheme.symmetric else 1.001)
    cut = np.clip(scheme.clipped(np.array(weights)), stored.of.low, stored.of.high)
    off = np.abs(stored.values() - cut)
    most = step * (0.5 if scheme.rounding else 1)
    assert (off <= most + 1e-6 * (1 + width)).all()
    assert (np.abs(stored.values()) <= (scheme.clip or np.inf) * (1 + 1e-6)).all()


def test_rounding_to_rquant_uses_every_code_but_the_least() -> None:
    for bits in range(2, 9):
        codes = rquant(bits).quantize(np.linspace(-1, 1, 4001)).codes
        assert set(codes.tolist()) == set(range(1, 2**bits))


def test_a_sign_bit_wrong_is_half_the_range_and_in_signed_codes_too() -> None:
    """Why unsigned codes help: the mean of a signed code near 0 is moved by the sign as well."""
    of = Range(-1.0, 1.0)
    for scheme in (rquant(8), RobustScheme(signed=True)):
        middle = np.array([128 if not scheme.signed else 0], np.uint8)
        moved = scheme.dequantize(middle ^ np.uint8(128), of) - scheme.dequantize(middle, of)
        assert abs(abs(float(moved[0])) - 1) < 0.01


def test_one_range_is_that_of_all_tensors() -> None:
    tensors = {"a": [0.1, -0.2], "b": [0.9, 0.3]}
    scheme = RobustScheme(one_range=True)
    found = quantize_network(scheme, tensors)
    assert {one.of for one in found.values()} == {Range(-0.2, 0.9)}
    own = quantize_network(rquant(), tensors)
    assert own["a"].of == Range(-0.2, 0.1) and own["b"].of == Range(0.3, 0.9)
    assert found["b"].codes.tolist() == scheme.quantize([0.9, 0.3], Range(-0.2, 0.9)).codes.tolist()


def test_a_tensor_of_one_value_is_read_back_exactly() -> None:
    for value in (0.0, 0.25, -3.0):
        for scheme in (rquant(), RobustScheme(signed=True, rounding=False), rquant(2)):
            assert scheme.quantize([value] * 3).values().tolist() == [value] * 3


def test_the_steps_are_the_papers() -> None:
    found = list(steps(8).values())
    assert [one.one_range for one in found] == [True, False, False, False, False]
    assert [one.symmetric for one in found] == [True, True, False, False, False]
    assert [one.signed for one in found] == [True, True, True, False, False]
    assert [one.rounding for one in found] == [False, False, False, False, True]
    assert found[1] == normal() and found[-1] == rquant()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"bits": 1}, "bits must be at least 2, not 1"),
        ({"bits": 9}, "bits must be at most 8, not 9"),
        ({"clip": 0.0}, "clip must be positive, not 0.0"),
        ({"clip": float("nan")}, "clip must be positive, not nan"),
    ],
)
def test_refusals(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        RobustScheme(**given)


def test_weights_that_cannot_be_stored_are_refused() -> None:
    for weights, said in (([], "without values"), ([0.0, float("nan")], "finite")):
        with pytest.raises(InputError, match=said):
            rquant().quantize(weights)
