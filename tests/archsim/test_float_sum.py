"""Floating sums of two and the output's rounding, against exact rational arithmetic and NumPy."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from archsim.arithmetic.cases import RULES, every_operand, random_operands
from archsim.arithmetic.dot_product import VOLTA_FP16, DotProduct
from archsim.arithmetic.float_datapath import VOLTA_RULES, FloatRules
from archsim.arithmetic.float_sum import (
    FloatOutput,
    accumulate_latency_cycles,
    add_floats,
    adder,
    narrowing,
    one_of,
    widest_alignment_bits,
)
from archsim.arithmetic.formats import BF16, FP16, FP32, FloatFormat
from archsim.errors import InputError
from archsim.numbers import IntArray

E2M1 = FloatFormat(exponent_bits=2, fraction_bits=1)
E3M2 = FloatFormat(exponent_bits=3, fraction_bits=2)
E5M2 = FloatFormat(exponent_bits=5, fraction_bits=2)

FORMATS = st.builds(FloatFormat, exponent_bits=st.integers(2, 8), fraction_bits=st.integers(1, 23))


def exact(form: FloatFormat, pattern: int) -> Fraction:
    """The value of a finite pattern."""
    return Fraction(float(form.decode(np.array(pattern))))


def exponent_of(form: FloatFormat, value: Fraction) -> int:
    """That of a number of the format; of a subnormal that of the smallest normal one."""
    exponent = 1 - form.bias
    while abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    return exponent


def nearest(form: FloatFormat, value: Fraction) -> float:
    """Rounded once, ties to even."""
    place = Fraction(2) ** (exponent_of(form, value) - form.fraction_bits)
    rounded = round(value / place) * place
    return float(rounded) if abs(rounded) < Fraction(2) ** (form.bias + 1) else inf * float(value)


def pairs(form: FloatFormat, seed: int, count: int = 6) -> tuple[IntArray, IntArray]:
    """Finite patterns aimed at the corners of a sum of two: close, cancelling, far apart."""
    unit = adder(form, FloatRules(aligned_fraction_bits=form.fraction_bits))
    rng = np.random.default_rng(seed)
    a, b, c = random_operands(unit, count, seed)
    x, y = a[:, 0], np.where(rng.integers(0, 2, len(c)) == 0, c, b[:, 0])
    near = x ^ np.where(rng.integers(0, 2, len(c)) == 0, form.sign_mask, rng.integers(0, 4, len(c)))
    y = np.where(rng.integers(0, 3, len(c)) == 0, near, y)
    finite = ((x & form.infinity) != form.infinity) & ((y & form.infinity) != form.infinity)
    return x[finite], y[finite]


def bits_for(form: FloatFormat) -> FloatRules:
    """Rules with which the adder rounds correctly."""
    return FloatRules(aligned_fraction_bits=2 * form.fraction_bits + 2, rounding="nearest_even")


@given(form=FORMATS, more=st.integers(0, 6), seed=st.integers(0, 10_000))
def test_the_adder_rounds_correctly_with_enough_bits(
    form: FloatFormat, more: int, seed: int
) -> None:
    rules = bits_for(form)
    rules = replace(rules, aligned_fraction_bits=rules.aligned_fraction_bits + more)
    x, y = pairs(form, seed)
    ours = form.decode(add_floats(adder(form, rules), x, y))
    wanted = [nearest(form, exact(form, a) + exact(form, b)) for a, b in zip(x, y, strict=True)]
    np.testing.assert_array_equal(ours, wanted)


def test_every_sum_of_a_small_format_is_rounded_correctly() -> None:
    x, y = (each.reshape(-1) for each in np.indices((64, 64)))
    finite = ((x & E3M2.infinity) != E3M2.infinity) & ((y & E3M2.infinity) != E3M2.infinity)
    x, y = x[finite], y[finite]
    ours = E3M2.decode(add_floats(adder(E3M2, bits_for(E3M2)), x, y))
    wanted = [nearest(E3M2, exact(E3M2, a) + exact(E3M2, b)) for a, b in zip(x, y, strict=True)]
    np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize(("form", "dtype"), [(FP32, np.float32), (FP16, np.float16)])
def test_sums_are_those_of_numpy(form: FloatFormat, dtype: type[np.floating]) -> None:
    """Specials too; NumPy gives −0 where both are, we +0, which are equal."""
    unit = adder(form, bits_for(form))
    a, _, c = random_operands(unit, 2000, seed=4)
    x, y = (form.decode(each).astype(dtype) for each in (a[:, 0], c))
    with np.errstate(all="ignore"):
        wanted = x + y
    np.testing.assert_array_equal(form.decode(add_floats(unit, c, a[:, 0])), wanted)


@given(form=FORMATS, seed=st.integers(0, 10_000), rounding=st.sampled_from(["truncate", "near"]))
def test_with_fewer_bits_the_error_is_bounded(form: FloatFormat, seed: int, rounding: str) -> None:
    """Volta's rules: as many aligned bits as the accumulator has."""
    truncates = rounding == "truncate"
    rules = FloatRules(
        aligned_fraction_bits=form.fraction_bits,
        rounding="truncate" if truncates else "nearest_even",
    )
    x, y = pairs(form, seed)
    results = form.decode(add_floats(adder(form, rules), x, y)).tolist()
    for a, b, result in zip(x.tolist(), y.tolist(), results, strict=True):
        if not np.isfinite(result):
            continue
        terms = [exact(form, a), exact(form, b)]
        top = max(exponent_of(form, term) for term in terms)
        place = Fraction(2) ** (exponent_of(form, Fraction(result)) - form.fraction_bits)
        bound = Fraction(2) ** (top - form.fraction_bits) + (place if truncates else place / 2)
        assert abs(Fraction(result) - sum(terms)) < bound


@given(
    form=FORMATS,
    rules=st.builds(
        FloatRules,
        aligned_fraction_bits=st.integers(0, 56),
        rounding=st.sampled_from(["truncate", "nearest_even"]),
        subnormal_inputs=st.booleans(),
        subnormal_outputs=st.booleans(),
    ),
    seed=st.integers(0, 1000),
)
def test_neither_order_nor_joining_matters(form: FloatFormat, rules: FloatRules, seed: int) -> None:
    unit = adder(form, rules)
    a, _, c = random_operands(unit, 6, seed)
    sums = add_floats(unit, c, a[:, 0])
    np.testing.assert_array_equal(sums, add_floats(unit, a[:, 0], c))
    apart = adder(form, replace(rules, accumulator_joins=False))
    np.testing.assert_array_equal(sums, add_floats(apart, c, a[:, 0]))


@pytest.mark.parametrize("rules", RULES)
def test_the_adder_is_a_dot_product_of_one(rules: FloatRules) -> None:
    unit = adder(E2M1, rules)
    a, b, c = every_operand(unit)
    ones = b[:, 0] == one_of(E2M1)
    assert E2M1.decode(np.array(one_of(E2M1))) == 1
    np.testing.assert_array_equal(
        add_floats(unit, c[ones], a[ones, 0]), unit.compute(a, b, c)[ones]
    )


def test_sums_keep_their_shape() -> None:
    held = FP32.encode(np.arange(12.0).reshape(3, 4))
    sums = FP32.decode(add_floats(adder(FP32, VOLTA_RULES), held, held))
    np.testing.assert_array_equal(sums, 2 * np.arange(12.0).reshape(3, 4))


def test_latencies() -> None:
    """Multiply, accumulate; one level of a tree more for two terms; and the read."""
    assert accumulate_latency_cycles(adder(FP32, VOLTA_RULES)) == 3
    assert accumulate_latency_cycles(DotProduct(length=4)) == 5
    assert FloatOutput(accumulator=FP32, ofmap=FP16).latency_cycles == 3


@pytest.mark.parametrize(
    ("form", "length", "bits"), [(FP32, 2, 55), (BF16, 2, 55), (FP16, 2, 39), (FP32, 1, 56)]
)
def test_alignment_is_as_wide_as_it_can_be(form: FloatFormat, length: int, bits: int) -> None:
    assert widest_alignment_bits(form, length) == bits
    rules = FloatRules(aligned_fraction_bits=bits)
    design = DotProduct(length=length, operand=form, accumulator=form, rules=rules)
    if bits > 50:
        with pytest.raises(InputError, match=r"^the aligned sum must have at most 60 bits, not 61"):
            replace(design, rules=FloatRules(aligned_fraction_bits=bits + 1))
    else:  # all of the format
        assert Fraction(2) ** (form.bias - bits) == exact(form, 1)


def is_dropped(output: FloatOutput, x: Fraction, y: Fraction) -> bool:
    """The case that is not rounded correctly: a tie beside what lies below the aligned bits."""
    form, ofmap = output.accumulator, output.ofmap
    larger, smaller = sorted((x, y), key=abs, reverse=True)
    unit = Fraction(2) ** (exponent_of(form, larger) - widest_alignment_bits(form, 2))
    halves = larger / Fraction(2) ** (exponent_of(ofmap, larger) - ofmap.fraction_bits - 1)
    return halves.denominator == 1 and halves.numerator % 2 == 1 and 0 < abs(smaller) < unit


def check_output(output: FloatOutput, x: IntArray, y: IntArray) -> int:
    """Rounded once, but for the case that is stated; answers how often that was."""
    ours = output.ofmap.decode(output.compute(x, y, False)).tolist()
    dropped = 0
    for a, b, result in zip(x.tolist(), y.tolist(), ours, strict=True):
        terms = [exact(output.accumulator, a), exact(output.accumulator, b)]
        case = is_dropped(output, *terms)
        dropped += case
        assert result == nearest(output.ofmap, max(terms, key=abs) if case else terms[0] + terms[1])
    return dropped


@given(accumulator=FORMATS, ofmap=FORMATS, seed=st.integers(0, 10_000))
def test_the_output_is_rounded_once(
    accumulator: FloatFormat, ofmap: FloatFormat, seed: int
) -> None:
    output = FloatOutput(accumulator=accumulator, ofmap=ofmap)
    dropped = check_output(output, *pairs(accumulator, seed))
    exact_sums = widest_alignment_bits(accumulator, 2) < 55
    as_fine = ofmap.fraction_bits >= accumulator.fraction_bits
    as_wide = ofmap.exponent_bits >= accumulator.exponent_bits
    assert dropped == 0 or not (exact_sums or (as_fine and as_wide))


@given(seed=st.integers(0, 10_000), ofmap=st.sampled_from([FP16, BF16, E5M2]))
def test_ties_beside_small_numbers(seed: int, ofmap: FloatFormat) -> None:
    """Sums half-way between numbers of the ofmap, and biases around the last aligned bit."""
    rng = np.random.default_rng(seed)
    odd = 2 * rng.integers(1 << ofmap.fraction_bits, 2 << ofmap.fraction_bits, 20) + 1
    exponent = rng.integers(-3, 4, 20)
    sums = np.ldexp(odd.astype(float), exponent - ofmap.fraction_bits - 1)
    bias = np.ldexp(1 + rng.integers(0, 4, 20) / 4, exponent - rng.integers(50, 60, 20))
    bias *= rng.choice([-1, 1], 20)
    output = FloatOutput(accumulator=FP32, ofmap=ofmap)
    assert check_output(output, FP32.encode(sums), FP32.encode(bias)) > 0


def output_of(output: FloatOutput, total: float, bias: float, relu: bool = False) -> float:
    x, y = (output.accumulator.encode(np.array([each])) for each in (total, bias))
    pattern = output.compute(x, y, relu)
    value = float(output.ofmap.decode(pattern)[0])
    assert not relu or not pattern[0] & output.ofmap.sign_mask
    return value


HALF = FloatOutput(accumulator=FP32, ofmap=FP16)


def test_the_last_bit_that_breaks_a_tie() -> None:
    tie = 1 + 2.0**-11
    assert output_of(HALF, tie, 2.0**-55) == 1 + 2.0**-10
    assert output_of(HALF, tie, 2.0**-56) == 1
    assert output_of(HALF, tie, -(2.0**-56)) == 1
    assert output_of(HALF, tie + 2.0**-10, -(2.0**-55)) == 1 + 2.0**-10
    assert output_of(HALF, tie + 2.0**-10, -(2.0**-56)) == 1 + 2.0**-9


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(
    ("total", "bias", "wanted"),
    [
        (1.5, 0.25, 1.75), (-1.5, 0.25, -1.25), (-1.5, 1.5, 0), (-0.0, -0.0, 0),
        (-(2.0**-30), 0, -0.0), (65504, 15.75, 65504), (65504, 16, inf), (-65504, -16, -inf),
        (2.0**-24, 0, 2.0**-24), (inf, -1, inf), (-inf, 1, -inf), (inf, -inf, nan), (nan, 1, nan),
        (-nan, 1, nan), (3.0e38, 3.0e38, inf),
    ],
)  # fmt: skip
def test_special_outputs(total: float, bias: float, wanted: float, relu: bool) -> None:
    result = output_of(HALF, total, bias, relu)
    if relu and (wanted < 0 or str(wanted) == "-0.0"):
        wanted = 0.0
    assert result == wanted or (result != result and wanted != wanted)
    assert str(result) == str(float(wanted))


@given(seed=st.integers(0, 1000))
def test_halves_are_always_rounded_correctly(seed: int) -> None:
    """FP16 to FP16 is the sum that NumPy's float64 holds exactly, rounded once."""
    output = FloatOutput(accumulator=FP16, ofmap=FP16)
    x, y = pairs(FP16, seed, 40)
    assume(len(x) > 0)
    with np.errstate(over="ignore"):
        wanted = (FP16.decode(x) + FP16.decode(y)).astype(np.float16)
    np.testing.assert_array_equal(FP16.decode(output.compute(x, y, False)), wanted)


def test_a_bias_is_broadcast() -> None:
    sums = FP32.encode(np.arange(-3.0, 3.0).reshape(2, 3))
    bias = FP32.encode(np.array([0.5, 0.0, -0.5]))
    values = np.array([[-2.5, -2, -1.5], [0.5, 1, 1.5]])
    np.testing.assert_array_equal(FP16.decode(HALF.compute(sums, bias, False)), values)
    np.testing.assert_array_equal(HALF.compute(sums, bias, True), FP16.encode(values.clip(0)))
    np.testing.assert_array_equal(FP16.decode(HALF.compute(sums, 0, False)), FP32.decode(sums))


def test_many_sums_are_those_of_parts() -> None:
    """More than are rounded at a time."""
    sums = np.random.default_rng(3).integers(0, 1 << 32, (3, 7, 1001))
    bias = sums[0, 0]
    whole = HALF.compute(sums, bias, True)
    for n in range(3):
        np.testing.assert_array_equal(whole[n], HALF.compute(sums[n], bias, True))


def test_what_is_no_pattern_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"^a must hold patterns of 16 bits, 0 to 65535, not 65536"
    ):
        add_floats(adder(FP16, VOLTA_FP16.rules or VOLTA_RULES), np.array([0]), np.array([65536]))
    with pytest.raises(InputError, match=r"^a must hold patterns of 32 bits"):
        HALF.compute(np.array([-1]), 0, False)
    assert narrowing(FP32, FP16).accumulator == FP16
