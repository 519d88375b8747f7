"""The fast floating values against a plain loop over `DotProduct.compute`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.arithmetic.dot_product import INT8_DOT, VOLTA_FP16, VOLTA_FP32, DotProduct
from archsim.arithmetic.float_datapath import FloatRules
from archsim.arithmetic.float_kernels import over
from archsim.arithmetic.float_sum import add_floats, adder
from archsim.arithmetic.formats import BF16, FP16, FP32, FloatFormat
from archsim.errors import InputError
from archsim.layer import layout
from archsim.layer.problem import Problem, problem_of
from archsim.machines.tensorcore import float_values
from archsim.machines.tensorcore.float_values import float_sums
from archsim.numbers import IntArray
from workloads.layers import MatMul

E3M2 = FloatFormat(exponent_bits=3, fraction_bits=2)


def problem(**sizes: int) -> Problem:
    """A problem of ones, but for the sizes given; its output fills what the windows reach."""
    every = dict.fromkeys(Problem.__dataclass_fields__, 1)
    every |= {"pad_top": 0, "pad_left": 0, "has_bias": 0, "relu": 0}
    return Problem(**(every | sizes))


def lanes_of(p: Problem, channels: range) -> list[list[tuple[int, int, int]]]:
    """The runs of a channel tile, as kernel row, column and channel, in order."""
    runs: list[list[tuple[int, int, int]]] = []
    for row in range(p.kernel_height):
        taps = [[(row, tap, c) for c in channels] for tap in range(p.kernel_width)]
        runs += [list(chain(*taps))] if p.dilation_width == 1 else taps
    return runs


def window(p: Problem, ifmap: IntArray, element: tuple[int, int, int]) -> IntArray:
    """What every pixel multiplies with that element of a filter: [images, groups, P, Q]."""
    row, column, channel = element
    values = np.zeros((p.images, p.groups, p.out_height, p.out_width), np.int64)
    for y, x in np.ndindex(p.out_height, p.out_width):
        h = y * p.stride_height + row * p.dilation_height - p.pad_top
        w = x * p.stride_width + column * p.dilation_width - p.pad_left
        if 0 <= h < p.height and 0 <= w < p.width:
            values[:, :, y, x] = ifmap[:, :, h, w, channel]
    return values


def reference(
    p: Problem, ifmap: IntArray, weight: IntArray, dot: DotProduct, channel_tile: int
) -> IntArray:
    """Chunk by chunk, for all sums together."""
    shape = (p.images, p.groups, p.out_height, p.out_width, p.filters)
    none = np.zeros(shape, np.int64)
    total = none
    for first in range(0, p.channels, channel_tile):
        tile = none
        for run in lanes_of(p, range(first, min(first + channel_tile, p.channels))):
            for at in range(0, len(run), dot.length):
                a, b = [none] * dot.length, [none] * dot.length
                for lane, element in enumerate(run[at : at + dot.length]):
                    row, column, channel = element
                    a[lane] = np.broadcast_to(window(p, ifmap, element)[..., None], shape)
                    filters = weight[:, :, row, column, channel]
                    b[lane] = np.broadcast_to(filters[None, :, None, None, :], shape)
                x, y = (np.stack(each, axis=-1).reshape(-1, dot.length) for each in (a, b))
                tile = dot.compute(x, y, tile.reshape(-1)).reshape(shape)
        join = adder(dot.datapath.accumulator, dot.datapath.rules)
        total = add_floats(join, total, tile) if first else tile
    return total


def operands_of(p: Problem, form: FloatFormat, seed: int) -> tuple[IntArray, IntArray]:
    """Patterns of an ifmap and a weight: any; or of exponents close together, with some zeros and,
    sometimes, infinities and NaNs."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 4)
    lowest = rng.integers(0, form.special_exponent)
    limit = form.special_exponent - (0 if kind == 1 else 1)

    def some(*shape: int) -> IntArray:
        patterns = rng.integers(0, 1 << form.bits, shape)
        if kind:
            field = np.clip(lowest + rng.integers(-3, 4, shape), 0, limit)
            patterns = (patterns & ~form.infinity) | (field << form.fraction_bits)
        zero = rng.random(shape) < 0.1
        return np.where(zero, patterns & form.sign_mask, patterns)

    return (
        some(p.images, p.groups, p.height, p.width, p.channels),
        some(p.groups, p.filters, p.kernel_height, p.kernel_width, p.channels),
    )


def check(p: Problem, dot: DotProduct, channel_tile: int, seed: int) -> None:
    ifmap, weight = operands_of(p, dot.datapath.operand, seed)
    ours = float_sums(p, ifmap, weight, dot, channel_tile)
    np.testing.assert_array_equal(ours, reference(p, ifmap, weight, dot, channel_tile))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Any kernel, stride, dilation and padding, also windows that lie outside altogether."""
    most = {
        "images": 2, "groups": 3, "channels": 7, "height": 5, "width": 5, "kernel_height": 3,
        "kernel_width": 3, "stride_height": 3, "stride_width": 3, "dilation_height": 2,
        "dilation_width": 2, "out_height": 3, "out_width": 4, "filters": 5,
    }  # fmt: skip
    sizes = {name: draw(st.integers(1, size)) for name, size in most.items()}
    padding = {name: draw(st.integers(0, 2)) for name in ("pad_top", "pad_left")}
    return problem(**sizes, **padding)


RULES = st.builds(
    FloatRules,
    aligned_fraction_bits=st.sampled_from([23, 25]) | st.integers(0, 45),
    rounding=st.sampled_from(["truncate", "nearest_even"]),
    accumulator_joins=st.booleans(),
    subnormal_inputs=st.booleans(),
    subnormal_outputs=st.booleans(),
)
UNITS = st.builds(
    DotProduct,
    length=st.sampled_from([1, 3, 4]),
    operand=st.sampled_from([FP16, BF16]),
    accumulator=st.sampled_from([FP32, FP16]),
    rules=RULES,
)
OTHER_UNITS = st.builds(
    DotProduct,
    operand=st.sampled_from([E3M2, FP32])
    | st.builds(FloatFormat, exponent_bits=st.integers(2, 8), fraction_bits=st.integers(1, 23)),
    accumulator=st.builds(
        FloatFormat, exponent_bits=st.integers(2, 8), fraction_bits=st.integers(1, 23)
    ),
    rules=RULES,
)


@settings(max_examples=250)
@given(p=problems(), dot=UNITS | OTHER_UNITS, tile=st.integers(1, 8), seed=st.integers(0, 10**6))
def test_sums_are_those_of_the_dot_product(
    p: Problem, dot: DotProduct, tile: int, seed: int
) -> None:
    check(p, dot, tile, seed)


@pytest.mark.parametrize("dot", [VOLTA_FP32, VOLTA_FP16, replace(VOLTA_FP32, operand=BF16)])
@pytest.mark.parametrize(
    "p",
    [
        problem(channels=50, filters=131, kernel_width=3, width=7, out_width=5),  # wide panels
        problem(width=1100, channels=5, out_width=1100, filters=18),  # two shares of pixels
        problem(width=301, channels=9, out_width=301, filters=2, groups=2),  # columns are pixels
        problem(kernel_height=2, kernel_width=2, channels=90, height=2, width=2, filters=17),
    ],
    ids=["filters", "pixels", "swapped", "deep"],
)
def test_more_than_one_panel(p: Problem, dot: DotProduct) -> None:
    """More columns, elements and rows than are worked on at a time."""
    for seed in (0, 2):
        check(p, dot, 40, seed)


def test_scales_are_the_same_as_python() -> None:
    """`NUMBA_DISABLE_JIT=1` runs kernels so: no number on the way takes more than 64 bits."""
    for bits in (0, 1, 2, 27):
        for power in (2.0**-990, 0.5, 1.0, 2.0**1000):
            scale = Fraction(2) ** bits / Fraction(power)
            assert Fraction(float(over.py_func(power, bits))) == scale


def test_wider_sums_than_float64_holds() -> None:
    """These go to `DotProduct.compute` itself; around the last width, both."""
    for bits in (48, 49, 50, 51, 52):
        rules = FloatRules(aligned_fraction_bits=bits, rounding="nearest_even")
        for length in (1, 4):
            dot = DotProduct(length=length, operand=BF16, rules=rules)
            for seed in range(4):
                check(problem(channels=9, filters=7, width=3, out_width=3), dot, 5, seed)


def test_the_order_of_sums_shows() -> None:
    """Other tiles, chunks and runs give other sums: the tests above tell them apart."""
    p = problem(channels=6, kernel_width=3, width=12, out_width=4, filters=40, dilation_width=2)
    ifmap, weight = operands_of(p, FP16, 5)

    def sums(changed: Problem, dot: DotProduct, channel_tile: int) -> IntArray:
        return float_sums(changed, ifmap, weight, dot, channel_tile)

    ours = sums(p, VOLTA_FP32, 6)
    for other in (
        sums(p, VOLTA_FP32, 3),
        sums(p, VOLTA_FP32, 5),
        sums(p, replace(VOLTA_FP32, length=3), 6),
        sums(p, replace(VOLTA_FP32, rules=FloatRules(rounding="nearest_even")), 6),
    ):
        assert (ours != other).mean() > 0.1
        np.testing.assert_allclose(FP32.decode(ours), FP32.decode(other), rtol=1e-3, atol=1e-2)


def test_sums_of_small_whole_numbers_are_exact() -> None:
    """A matrix product in the layout of the core, against NumPy's."""
    rng = np.random.default_rng(1)
    layer = MatMul(name="m", m=33, n=20, k=100)
    p = problem_of(layer)
    a, b = rng.integers(-9, 10, (1, 33, 100)), rng.integers(-9, 10, (1, 100, 20))
    x, y = (FP16.encode(each.astype(float)) for each in (a, b))
    ifmap, weight = layout.split_ifmap(layer, p, x), layout.split_weight(layer, p, y)
    for tile in (100, 7):
        ours = layout.join_ofmap(layer, p, float_sums(p, ifmap, weight, VOLTA_FP32, tile))
        np.testing.assert_array_equal(FP32.decode(ours), a @ b)


def test_padding_is_zero_also_beside_infinities() -> None:
    """0 · ∞ is NaN, as in hardware; a chunk that is filled up adds +0 · +0, and nothing else."""
    p = problem(kernel_width=2, width=1, out_width=2, pad_left=1)
    weight = np.full((1, 1, 1, 2, 1), FP16.infinity)
    sums = float_sums(p, np.full((1, 1, 1, 1, 1), 0x3C00), weight, VOLTA_FP32, 1)
    assert sums.reshape(-1).tolist() == [FP32.nan, FP32.nan]
    p = replace(p, pad_left=0, out_width=1, width=2)
    sums = float_sums(p, np.full((1, 1, 1, 2, 1), 0x3C00), weight, VOLTA_FP32, 1)
    assert sums.reshape(-1).tolist() == [FP32.infinity]


Change = Callable[[Any], Any]


def _rules(**changes: Any) -> tuple[str, Change]:
    return "unit_of", lambda unit: unit._replace(**changes)


FAULTS: dict[str, tuple[DotProduct, tuple[str, Change]]] = {
    "rounded to nearest": (VOLTA_FP32, _rules(nearest=True)),
    "truncated": (VOLTA_FP16, _rules(nearest=False)),
    "an aligned bit more": (VOLTA_FP32, _rules(aligned_bits=24, aligned_step=2.0**-24)),
    "an aligned bit less": (VOLTA_FP32, _rules(aligned_bits=22, aligned_step=2.0**-22)),
    "the accumulator aligned apart": (VOLTA_FP32, _rules(joins=0.0)),
    "overflow a power too late": (VOLTA_FP16, _rules(limit=2.0**17)),
    "a fraction bit less": (VOLTA_FP16, _rules(fraction_bits=9, fraction_step=2.0**-9)),
    "subnormal accumulators dropped": (VOLTA_FP16, _rules(least_input=2.0**-14)),
    "subnormal sums dropped": (VOLTA_FP16, _rules(least_output=2.0**-14)),
    "subnormal exponents too small": (VOLTA_FP16, _rules(least_normal=2.0**-15)),
    "subnormal operands dropped": (
        VOLTA_FP16,
        ("_decoded", lambda values: np.where(abs(values) < 2.0**-14, np.float32(0), values)),
    ),
    "chunks not filled up": (VOLTA_FP32, ("elements", lambda e: (np.maximum(e[0], 0), e[1]))),
    "one channel tile": (VOLTA_FP32, ("elements", lambda e: (e[0], e[1][-1:]))),
    "padding of ones": (
        VOLTA_FP32,
        ("_padded", lambda padded: np.where(padded == 0, FP16.encode(np.array(1.0)), padded)),
    ),
}


def _differs(dot: DotProduct) -> bool:
    p = problem(channels=5, kernel_width=3, width=6, out_width=6, pad_left=1, filters=20)
    for seed in range(40):
        try:
            check(p, dot, 3, seed)
        except AssertionError:
            return True
    return False


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dot, (function, change) = FAULTS[name]
    plain = getattr(float_values, function)
    monkeypatch.setattr(float_values, function, lambda *given: change(plain(*given)))
    assert _differs(dot)


@pytest.mark.parametrize("dot", [VOLTA_FP32, VOLTA_FP16])
def test_without_a_fault_nothing_differs(dot: DotProduct) -> None:
    assert not _differs(dot)


ONES = problem()
PATTERN = np.zeros((1, 1, 1, 1, 1), np.int64)


@pytest.mark.parametrize(
    ("ifmap", "weight", "dot", "tile", "message"),
    [
        (PATTERN, PATTERN, VOLTA_FP32, 0, "channel_tile must be positive, not 0"),
        (PATTERN, PATTERN, INT8_DOT, 1, "a unit of integers has no datapath of floats"),
        (PATTERN[0], PATTERN, VOLTA_FP32, 1, r"ifmap must be of shape \(1, 1, 1, 1, 1\), not of"),
        (PATTERN, PATTERN[0], VOLTA_FP32, 1, r"weight must be of shape \(1, 1, 1, 1, 1\), not of"),
        (PATTERN - 1, PATTERN, VOLTA_FP32, 1, r"ifmap must hold patterns of 16 bits, .*not -1"),
        (PATTERN, PATTERN + 65536, VOLTA_FP32, 1, r"weight must hold patterns of .*not 65536"),
        (PATTERN.astype(np.int32), PATTERN, VOLTA_FP32, 1, "ifmap must be int64, not int32"),
    ],
)
def test_bad_input_is_refused(
    ifmap: IntArray, weight: IntArray, dot: DotProduct, tile: int, message: str
) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        float_sums(ONES, ifmap, weight, dot, tile)
