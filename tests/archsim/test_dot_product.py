"""The dot product's model: against exact rational arithmetic, published measurements, NumPy."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import inf
from typing import Any

import numpy as np
import pytest
from float_strategies import any_format, any_rules
from hypothesis import given
from hypothesis import strategies as st

from archsim.arithmetic.cases import RULES, Operands, every_operand, random_operands
from archsim.arithmetic.dot_product import INT8_DOT, VOLTA_FP16, VOLTA_FP32, DotProduct
from archsim.arithmetic.float_datapath import FloatRules
from archsim.arithmetic.formats import (
    BF16,
    FP16,
    FP32,
    INT4,
    INT8,
    INT32,
    FloatFormat,
    IntegerFormat,
)
from archsim.errors import InputError
from archsim.numbers import IntArray

E2M1 = FloatFormat(exponent_bits=2, fraction_bits=1)
E3M2 = FloatFormat(exponent_bits=3, fraction_bits=2)

Term = tuple[Fraction | float, int]
"""A value, and its exponent if it is finite and not 0."""

NAN = float("nan")


@cache
def term_of(form: FloatFormat, pattern: int, subnormals: bool) -> Term:
    """IEEE 754, spelled out."""
    fraction = pattern % (1 << form.fraction_bits)
    field = (pattern >> form.fraction_bits) % (1 << form.exponent_bits)
    sign = -1 if pattern >> (form.bits - 1) else 1
    if field == form.special_exponent:
        return (NAN if fraction else sign * inf), 0
    exponent = max(field, 1) - form.bias
    significand = Fraction(fraction, 1 << form.fraction_bits) + (1 if field else 0)
    if field == 0 and not subnormals:
        significand = Fraction(0)
    return sign * significand * Fraction(2) ** exponent, exponent


def product_of(x: Term, y: Term) -> Term:
    if isinstance(x[0], float) or isinstance(y[0], float):
        return float(x[0]) * float(y[0]), 0
    return x[0] * y[0], x[1] + y[1]


def largest(terms: list[Term]) -> int:
    """The largest exponent of what is not zero."""
    return max((exponent for value, exponent in terms if value != 0), default=0)


def truncated_sum(terms: list[Term], exponent: int, fraction_bits: int) -> Fraction:
    unit = Fraction(2) ** (exponent - fraction_bits)
    return sum(int(Fraction(value) / unit) for value, _ in terms) * unit


def total_of(products: list[Term], c: Term, rules: FloatRules) -> Fraction:
    bits, terms = rules.aligned_fraction_bits, [*products, c]
    if rules.accumulator_joins:
        return truncated_sum(terms, largest(terms), bits)
    partial = truncated_sum(products, largest(products), bits)
    return truncated_sum([(partial, 0), c], largest(terms), bits)


def rounded(form: FloatFormat, value: Fraction, rules: FloatRules) -> int:
    """The pattern of a value: the exponent is found by trying."""
    sign = form.sign_mask if value < 0 else 0
    magnitude = abs(value)
    if magnitude == 0:
        return 0
    exponent = 1 - form.bias
    while magnitude >= Fraction(2) ** (exponent + 1):
        exponent += 1
    units = magnitude / Fraction(2) ** (exponent - form.fraction_bits)
    whole = round(units) if rules.rounding == "nearest_even" else int(units)
    if whole == 1 << (form.fraction_bits + 1):
        whole, exponent = whole >> 1, exponent + 1
    if exponent > form.bias:
        return sign | form.infinity
    if whole < 1 << form.fraction_bits:
        return sign | (whole if rules.subnormal_outputs else 0)
    field = exponent + form.bias
    return sign | (field << form.fraction_bits) | (whole - (1 << form.fraction_bits))


@cache
def sum_of(form: FloatFormat, rules: FloatRules, products: tuple[Term, ...], c: Term) -> int:
    special = sum(value for value, _ in (*products, c) if isinstance(value, float))
    if special != special:
        return form.nan
    if special != 0:
        return form.infinity | (form.sign_mask if special < 0 else 0)
    return rounded(form, total_of(list(products), c, rules), rules)


def reference(design: DotProduct, operands: Operands) -> IntArray:
    form, rules = design.datapath.accumulator, design.datapath.rules
    keep = rules.subnormal_inputs
    answer: list[int] = []
    for a, b, c in zip(*(each.tolist() for each in operands), strict=True):
        terms = [[term_of(design.datapath.operand, p, keep) for p in each] for each in (a, b)]
        products = tuple(product_of(x, y) for x, y in zip(*terms, strict=True))
        answer.append(sum_of(form, rules, products, term_of(form, c, keep)))
    return np.array(answer, np.int64)


@pytest.mark.parametrize("rules", RULES)
def test_every_pattern_of_a_small_format(rules: FloatRules) -> None:
    design = DotProduct(length=1, operand=E2M1, accumulator=E3M2, rules=rules)
    operands = every_operand(design)
    assert len(operands.c) == 1 << 14
    np.testing.assert_array_equal(design.compute(*operands), reference(design, operands))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("accumulator", "rules"), [*((E2M1, rules) for rules in RULES), (E3M2, RULES[3])]
)
def test_every_pattern_of_two_products(rules: FloatRules, accumulator: FloatFormat) -> None:
    design = DotProduct(length=2, operand=E2M1, accumulator=accumulator, rules=rules)
    operands = every_operand(design)
    answer = design.compute(*operands)
    for part in range(0, len(answer), 1 << 18):
        here = slice(part, part + (1 << 18))
        wanted = reference(design, Operands(*(each[here] for each in operands)))
        np.testing.assert_array_equal(answer[here], wanted)


@pytest.mark.parametrize("length", [1, 3, 4, 8])
@pytest.mark.parametrize("accumulator", [FP16, FP32])
@pytest.mark.parametrize("rules", RULES)
def test_random_operands_aimed_at_corners(
    rules: FloatRules, accumulator: FloatFormat, length: int
) -> None:
    design = DotProduct(length=length, accumulator=accumulator, rules=rules)
    operands = random_operands(design, 25, seed=length)
    np.testing.assert_array_equal(design.compute(*operands), reference(design, operands))


@given(
    operand=any_format(10),
    accumulator=any_format(23),
    rules=any_rules,
    length=st.integers(1, 9),
    seed=st.integers(0, 1000),
)
def test_any_formats_and_rules(
    operand: FloatFormat, accumulator: FloatFormat, rules: FloatRules, length: int, seed: int
) -> None:
    design = DotProduct(length=length, operand=operand, accumulator=accumulator, rules=rules)
    operands = random_operands(design, 4, seed)
    np.testing.assert_array_equal(design.compute(*operands), reference(design, operands))


def compute(design: DotProduct, a: list[float], b: list[float], c: float) -> float:
    """One sum of values; unused lanes are 0."""
    form, target = design.datapath.operand, design.datapath.accumulator
    rows = [np.array([[*each, *[0.0] * (design.length - len(each))]]) for each in (a, b)]
    x, y = (form.encode(row) for row in rows)
    return float(target.decode(design.compute(x, y, target.encode(np.array([c]))))[0])


ULP = 2.0**-23
BELOW = 1 - 2.0**-11

MEASURED: list[tuple[str, DotProduct, list[float], list[float], float, float]] = [
    ("subnormal operands", VOLTA_FP32, [2**-24], [4], 0, 2**-22),
    ("subnormal operands", VOLTA_FP16, [2**-24], [4], 0, 2**-22),
    ("subnormal accumulator", VOLTA_FP32, [], [], 2.0**-149, 2.0**-149),
    ("subnormal result", VOLTA_FP16, [2**-14], [1], -(2**-15), 2**-15),
    ("subnormal result", VOLTA_FP32, [2**-14], [2**-1], 0, 2**-15),
    ("exact product", VOLTA_FP32, [BELOW], [BELOW], 0, 1 - 2**-10 + 2**-22),
    ("exact products", VOLTA_FP32, [BELOW] * 4, [BELOW] * 4, 0, 4 * (1 - 2**-10 + 2**-22)),
    ("exact products", VOLTA_FP16, [BELOW] * 2, [BELOW, 2**-11], 0, 1 - 2**-10 + 2**-11),
    ("each term is truncated", VOLTA_FP32, [1] * 4, [2**-24] * 4, 1, 1),
    ("from the largest on", VOLTA_FP32, [1] * 4, [2**-24, 1, 2**-24, 2**-24], 2**-24, 1),
    ("towards zero", VOLTA_FP32, [1] * 2, [2, 1.5 * ULP], 0, 2),
    ("towards zero, negative", VOLTA_FP32, [1] * 2, [-2, -1.5 * ULP], 0, -2),
    ("to nearest", VOLTA_FP16, [2**-24] * 2, [2**-1, 2**-2], 0, 2**-24),
    ("no extra bit", VOLTA_FP32, [1], [1], -(1 - 2**-24), ULP),
    ("no normalisation, sum", VOLTA_FP32, [1] * 4, [2**-24] * 4, 1 - 2**-24, 1 + ULP),
    ("no normalisation, difference", VOLTA_FP32, [1] * 2, [1, -(2**-24)], -1 + 2**-24, ULP),
    ("two carry bits", VOLTA_FP32, [1] * 4, [1, 1, 1, ULP], 1 + 3 * ULP, 4 + 4 * ULP),
    ("a third carry bit", VOLTA_FP32, [1] * 4, [1, 1.5, 1.75, 1.875], 1.875, 8),
    ("truncated at the end", VOLTA_FP32, [1] * 4, [1] * 4, 1 + 3 * ULP, 5),
    ("truncated at the end, negative", VOLTA_FP32, [1] * 4, [-1] * 4, -1 - 3 * ULP, -5),
]
"""What a V100 was measured to answer: Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of
NVIDIA tensor cores", PeerJ Computer Science 7:e330 (2021), and the test suite they published."""


@pytest.mark.parametrize("case", MEASURED, ids=lambda case: f"{case[0]}, {case[1].accumulator}")
def test_measurements_of_a_v100(
    case: tuple[str, DotProduct, list[float], list[float], float, float],
) -> None:
    _, design, a, b, c, wanted = case
    assert compute(design, a, b, c) == wanted


def test_an_extra_bit_as_on_a_t4() -> None:
    """Turing and Ampere keep one bit more: 1 - (1 - 2^-24) is exact there (the same paper)."""
    rules = FloatRules(aligned_fraction_bits=24)
    assert compute(replace(VOLTA_FP32, rules=rules), [1], [1], -(1 - 2**-24)) == 2**-24


SPECIALS: list[tuple[list[float], list[float], float, int]] = [
    ([inf], [1], 0, 0x7F800000),
    ([inf], [-1], 0, 0xFF800000),
    ([inf], [0], 0, 0x7FFFFFFF),
    ([inf], [inf], -inf, 0x7FFFFFFF),
    ([inf, -inf], [1, 1], 0, 0x7FFFFFFF),
    ([inf, -inf], [1, -1], 0, 0x7F800000),
    ([NAN], [1], inf, 0x7FFFFFFF),
    ([1], [1], NAN, 0x7FFFFFFF),
    ([1], [1], -inf, 0xFF800000),
    ([-0.0] * 4, [1] * 4, -0.0, 0),
    ([1, 1], [1, -1], 0, 0),
    ([65504] * 4, [65504] * 4, 3.4028234663852886e38, 0x7F7FFFFF),
]


@pytest.mark.parametrize(("a", "b", "c", "wanted"), SPECIALS)
def test_special_values(a: list[float], b: list[float], c: float, wanted: int) -> None:
    unused = [0.0] * (4 - len(a))
    x, y = (FP16.encode(np.array([[*each, *unused]])) for each in (a, b))
    assert VOLTA_FP32.compute(x, y, FP32.encode(np.array([c]))).tolist() == [wanted]


def test_an_overflow_is_infinite_also_where_rounding_truncates() -> None:
    assert compute(VOLTA_FP32, [65504] * 4, [65504] * 4, 2.0**127 * 1.9) < inf
    bf16 = replace(VOLTA_FP32, operand=BF16)
    assert compute(bf16, [2.0**64], [2.0**63], 2.0**127) == inf
    assert compute(VOLTA_FP16, [-256], [256], 0) == -inf
    assert compute(VOLTA_FP16, [256], [255.875], 0) == 65504
    assert compute(VOLTA_FP16, [256], [255.9375], 0) == inf  # a tie, to even


def test_single_products_are_those_of_numpy() -> None:
    """One product and no accumulator: FP32 holds it, FP16 rounds it to nearest even."""
    design = replace(VOLTA_FP32, length=1)
    a, b, _ = random_operands(design, 5000, seed=3)
    none = np.zeros(len(a), np.int64)
    x, y = (each[:, 0].astype(np.uint16).view(np.float16).astype(np.float32) for each in (a, b))
    with np.errstate(all="ignore"):
        product = x * y
        half = product.astype(np.float16)
    for accumulator, rules, wanted in (
        (FP32, design.rules, product),
        (FP16, VOLTA_FP16.rules, half),
    ):
        unit = DotProduct(length=1, accumulator=accumulator, rules=rules)
        ours = accumulator.decode(unit.compute(a, b, none))
        np.testing.assert_array_equal(ours, wanted.astype(np.float64))


@given(st.integers(0, 10_000))
def test_sums_that_fit_are_those_of_numpy(seed: int) -> None:
    """Small whole numbers: no order and no rounding makes a difference."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-31, 32, (2, 50, 4))
    c = rng.integers(-(2**20), 2**20, 50)
    wanted = (a * b).astype(np.float32).sum(axis=1) + c.astype(np.float32)
    x, y = (FP16.encode(each.astype(np.float64)) for each in (a, b))
    ours = FP32.decode(VOLTA_FP32.compute(x, y, FP32.encode(c.astype(np.float64))))
    np.testing.assert_array_equal(ours, wanted)


def error_bound(terms: list[Term], design: DotProduct, result: float) -> Fraction:
    """(k + 1) units of the last aligned bit, or k + 2 with two alignments, and one (truncated) or
    half (nearest) of the last place of the result."""
    form, rules = design.datapath.accumulator, design.datapath.rules
    lost = design.length + (1 if rules.accumulator_joins else 2)
    unit = Fraction(2) ** (largest(terms) - rules.aligned_fraction_bits)
    exponent = max(int(np.frexp(result)[1]) - 1, 1 - form.bias)
    place = Fraction(2) ** (exponent - form.fraction_bits)
    return lost * unit + (place if rules.rounding == "truncate" else place / 2)


@given(seed=st.integers(0, 1000), rules=st.sampled_from(RULES[:5]), half=st.booleans())
def test_the_error_is_bounded(seed: int, rules: FloatRules, half: bool) -> None:
    design = DotProduct(accumulator=FP16 if half else FP32, rules=rules)
    form = design.datapath.accumulator
    operands = random_operands(design, 3, seed)
    results = form.decode(design.compute(*operands)).tolist()
    for a, b, c, result in zip(*(each.tolist() for each in operands), results, strict=True):
        parts = [[term_of(FP16, pattern, True) for pattern in each] for each in (a, b)]
        terms = [product_of(x, y) for x, y in zip(*parts, strict=True)]
        terms.append(term_of(form, c, True))
        if np.isfinite(result):
            exact = sum((Fraction(value) for value, _ in terms), Fraction(0))
            assert abs(Fraction(result) - exact) <= error_bound(terms, design, result)


@given(seed=st.integers(0, 1000), design=st.sampled_from([VOLTA_FP32, VOLTA_FP16, INT8_DOT]))
def test_the_order_of_products_does_not_matter(seed: int, design: DotProduct) -> None:
    a, b, c = random_operands(design, 10, seed)
    order = np.random.default_rng(seed).permutation(4)
    np.testing.assert_array_equal(
        design.compute(a, b, c), design.compute(b[:, order], a[:, order], c)
    )


@pytest.mark.parametrize("operand", [INT4, INT8])
@pytest.mark.parametrize("bits", [6, 32])
def test_integers_wrap(operand: IntegerFormat, bits: int) -> None:
    accumulator = IntegerFormat(bits=bits)
    design = DotProduct(length=5, operand=operand, accumulator=accumulator, rules=None)
    operands = random_operands(design, 200, seed=bits)
    for a, b, c, o in zip(*operands, design.compute(*operands), strict=True):
        signed = [[x - (x >> (operand.bits - 1) << operand.bits) for x in each] for each in (a, b)]
        total = int(c) + sum(int(x) * int(y) for x, y in zip(*signed, strict=True))
        assert o == total % (1 << bits)


def test_every_int4_product() -> None:
    form = IntegerFormat(bits=9)
    design = DotProduct(length=1, operand=INT4, accumulator=form, rules=None)
    a, b, c = every_operand(design)
    wanted = form.encode(INT4.decode(a[:, 0]) * INT4.decode(b[:, 0]) + form.decode(c))
    np.testing.assert_array_equal(design.compute(a, b, c), wanted)


@pytest.mark.parametrize(
    ("length", "latency"), [(1, 2), (2, 3), (3, 4), (4, 4), (5, 5), (8, 5), (16, 6)]
)
def test_latency(length: int, latency: int) -> None:
    assert replace(VOLTA_FP32, length=length).latency_cycles == latency
    assert replace(INT8_DOT, length=length).latency_cycles == latency
    assert VOLTA_FP32.interval_cycles == 1


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"length": 0}, "length must be positive, not 0"),
    (
        {"accumulator": INT32},
        "operand and accumulator must both be floats or both integers, not "
        "FloatFormat(exponent_bits=5, fraction_bits=10) and IntegerFormat(bits=32)",
    ),
    ({"rules": None}, "rules must be given for floats"),
    ({"operand": INT8, "accumulator": INT32}, "rules must be None for integers"),
    (
        {"rules": FloatRules(aligned_fraction_bits=60)},
        "the aligned sum must have at most 60 bits, not 66: "
        "fewer products or aligned_fraction_bits",
    ),
]


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_designs_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        DotProduct(**changes)
    assert str(error.value) == message


def test_values_that_cannot_be() -> None:
    none: IntArray = np.zeros((2, 4), np.int64)
    cases: list[tuple[Any, IntArray, str]] = [
        (none[:, :3], none[:, 0], "a must be of shape (2, 4), not of (2, 3)"),
        (none + 70_000, none[:, 0], "a must hold patterns of 16 bits, 0 to 65535, not 70000"),
        (none, none[:, 0] - 1, "c must hold patterns of 32 bits, 0 to 4294967295, not -1"),
        (none.astype(np.int32), none[:, 0], "a must be int64, not int32"),
    ]
    for a, c, message in cases:
        with pytest.raises(InputError) as error:
            VOLTA_FP32.compute(a, none, c)
        assert str(error.value) == message
    with pytest.raises(InputError, match=r"^a unit of integers has no datapath of floats$"):
        _ = INT8_DOT.datapath
    with pytest.raises(InputError, match=r"^rounding must be truncate or nearest_even, not 'up'$"):
        FloatRules(rounding="up")  # pyright: ignore[reportArgumentType]
