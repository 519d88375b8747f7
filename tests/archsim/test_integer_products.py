"""Products of bytes by ONNX Runtime: exact or not taken, and the values that cores make of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from archsim.layer import integer_products as products
from archsim.layer import integer_values as values
from archsim.layer.layout import ifmap_view, join_ofmap, split_bias, weight_view
from archsim.layer.problem import problem_of
from archsim.layer.values import accumulate, compute, compute_with_sums, requantize
from archsim.machines.systolic.design import Systolic
from archsim.numbers import wrap
from archsim.tiled.timing import layer_output
from workloads import reference
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, bias_shape, operand_shapes
from workloads.threads import set_threads

Layer = Conv2d | MatMul


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """ONNX Runtime is taken for whatever size, in small blocks; how many products it made."""
    exact, made = products.exact_product(), [0]
    assert exact is not None, "this machine's ONNX Runtime has no exact product of bytes"

    def counted(left: products.UnsignedBytes, right: products.Bytes) -> products.Sums:
        made[0] += 1
        return exact(left, right)

    monkeypatch.setattr(values, "product_for", lambda macs, depth: counted)
    monkeypatch.setattr(values, "_BLOCK_BYTES", 64)
    monkeypatch.setattr(values, "_LEAST_PIXELS", 3)
    monkeypatch.setattr(values, "_THREAD_MACS", 1)
    yield made


@st.composite
def layers(draw: st.DrawFn) -> Layer:
    whole = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    if draw(st.booleans()):
        batch = whole(1, 3)
        return MatMul(
            name="m", m=whole(1, 9), n=whole(1, 9), k=whole(1, 70), batch=batch,
            shared_weight=batch == 1,
            bias=draw(st.booleans()), relu=draw(st.booleans()),
        )  # fmt: skip
    kernel, dilation = (whole(1, 3), whole(1, 3)), (whole(1, 2), whole(1, 2))
    groups = whole(1, 3)
    channels, filters = (1, 1) if draw(st.booleans()) else (whole(1, 5), whole(1, 7))
    reach = [(kernel[axis] - 1) * dilation[axis] + 1 for axis in (0, 1)]
    return Conv2d(
        name="c", channels=channels * groups, filters=filters * groups,
        ifmap_height=reach[0] + whole(0, 6), ifmap_width=reach[1] + whole(0, 6),
        kernel_height=kernel[0], kernel_width=kernel[1],
        stride_height=whole(1, 3), stride_width=whole(1, 3),
        pad_top=whole(0, 4), pad_left=whole(0, 4), pad_bottom=whole(0, 4), pad_right=whole(0, 4),
        dilation_height=dilation[0], dilation_width=dilation[1], groups=groups,
        batch=whole(1, 4), bias=draw(st.booleans()), relu=draw(st.booleans()),
    )  # fmt: skip


def operands_of(layer: Layer, bits: int, seed: int) -> Operands:
    """Every value of the width alike, or only its ends; multipliers and shifts of every size."""
    random = np.random.default_rng(seed)
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def drawn(shape: tuple[int, ...]) -> NDArray[np.int8]:
        if seed % 3 == 0:
            return random.choice(np.array([low, high], np.int8), shape)
        return random.integers(low, high, shape, np.int8, endpoint=True)

    ifmap, weight = operand_shapes(layer)
    bias = None
    if layer.bias:
        bias = random.integers(-(1 << 20), 1 << 20, max(bias_shape(layer)), np.int32)
    return Operands(
        ifmap=drawn(ifmap), weight=drawn(weight), bias=bias,
        multiplier=int(random.integers(1, 1 << 16)), shift=int(random.integers(0, 30)),
        scheme="", ifmap_scale=1.0, weight_scale=1.0, ofmap_scale=1.0,
    )  # fmt: skip


def by_folds(
    layer: Layer, operands: Operands, bits: int, accumulator_bits: int
) -> NDArray[np.int64]:
    """The ofmap where accumulators wrap after every product: plain sums, one at a time."""
    problem = problem_of(layer)
    x = ifmap_view(layer, problem, operands.ifmap).astype(object)
    w = weight_view(layer, problem, operands.weight).astype(object)
    bias = operands.bias
    added = None if bias is None else split_bias(layer, problem, bias.astype(np.int64))
    half, size = 1 << (accumulator_bits - 1), 1 << accumulator_bits
    shape = (problem.images, problem.groups, problem.out_height, problem.out_width, problem.filters)
    found = np.zeros(shape, np.int64)
    for image, group, p, q, k in np.ndindex(shape):
        total = 0
        for r, s, c in np.ndindex(w.shape[2:]):
            y = p * problem.stride_height + r * problem.dilation_height - problem.pad_top
            column = q * problem.stride_width + s * problem.dilation_width - problem.pad_left
            if 0 <= y < x.shape[2] and 0 <= column < x.shape[3]:
                total += x[image, group, y, column, c] * w[group, k, r, s, c]
                total = (total + half) % size - half
        total += 0 if added is None else int(added[group, k])
        rounding = (1 << operands.shift) >> 1
        kept = (total * operands.multiplier + rounding) >> operands.shift
        low = 0 if layer.relu else -(1 << (bits - 1))
        found[image, group, p, q, k] = min(max(kept, low), (1 << (bits - 1)) - 1)
    return join_ofmap(layer, problem, found)


def output_of(
    layer: Layer, operands: Operands, bits: int, accumulator_bits: int
) -> NDArray[np.integer]:
    problem, bias = problem_of(layer), operands.bias
    found = compute(
        problem,
        (ifmap_view(layer, problem, operands.ifmap), weight_view(layer, problem, operands.weight),
         None if bias is None else split_bias(layer, problem, bias.astype(np.int64))),
        (operands.multiplier, operands.shift),
        (bits, accumulator_bits),
    )  # fmt: skip
    assert found.dtype == np.int8
    return join_ofmap(layer, problem, found)


@pytest.mark.parametrize("few", [0, 1 << 30])
def test_values_equal_the_reference(
    few: int, always: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By products, and by plain loops where groups are more than one."""
    monkeypatch.setattr(values, "_FEW_MACS", few)
    monkeypatch.setattr(values, "_FEW_FILTERS", 0)

    @settings(deadline=None, max_examples=120)
    @given(layers(), st.integers(2, 8), st.integers(0, 10**6))
    def check(layer: Layer, bits: int, seed: int) -> None:
        operands, before = operands_of(layer, bits, seed), always[0]
        ours = output_of(layer, operands, bits, 32)
        assert (ours == reference.compute(layer, operands, bits=bits)).all()
        directly = few > 0 and problem_of(layer).groups > 1
        assert (always[0] == before) == directly

    check()


@pytest.mark.parametrize("few", [0, 1 << 30])
def test_one_wrap_of_a_sum_is_a_wrap_after_every_product(
    few: int, always: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of 8-bit operands in accumulators as narrow as a product: most of them wrap."""
    monkeypatch.setattr(values, "_FEW_MACS", few)
    monkeypatch.setattr(values, "_FEW_FILTERS", 0)
    wrapped = 0
    for seed, accumulator_bits in enumerate((16, 17, 18, 20)):
        conv = Conv2d(name="c", channels=6, filters=4, ifmap_height=4, ifmap_width=4, groups=2,
                      kernel_height=2, kernel_width=3, pad_left=1, bias=True)  # fmt: skip
        for layer in (conv, MatMul(name="m", m=3, n=4, k=30, batch=2, shared_weight=False)):
            operands = operands_of(layer, 8, 3 * seed)
            exact = reference.accumulate(layer, operands.ifmap, operands.weight)
            wrapped += int((np.abs(exact) >> (accumulator_bits - 1) > 0).sum())
            expected = by_folds(layer, operands, 8, accumulator_bits)
            assert (output_of(layer, operands, 8, accumulator_bits) == expected).all()
    assert wrapped > 50


@pytest.mark.parametrize("few", [0, 1 << 30])
def test_sums_that_are_given_and_more_that_is_added(
    few: int, always: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums before the bias are those of the reference, wrapped; what is added to them wraps with
    them, and the ofmap is made of that.  Rows of every width, in blocks of one and of many."""
    monkeypatch.setattr(values, "_FEW_MACS", few)
    monkeypatch.setattr(values, "_FEW_FILTERS", 0)

    @settings(deadline=None, max_examples=120)
    @given(layers(), st.integers(2, 8), st.integers(12, 32), st.integers(0, 10**6))
    def check(layer: Layer, bits: int, accumulator_bits: int, seed: int) -> None:
        operands, problem = operands_of(layer, bits, seed), problem_of(layer)
        bias = operands.bias
        split = (
            ifmap_view(layer, problem, operands.ifmap),
            weight_view(layer, problem, operands.weight),
            None if bias is None else split_bias(layer, problem, bias.astype(np.int64)),
        )
        rules = (operands.multiplier, operands.shift), (bits, accumulator_bits)
        before = always[0]
        monkeypatch.setattr(values, "_BLOCK_BYTES", (64, 64, 1000, 1 << 20)[seed % 4])
        ofmap, sums = compute_with_sums(problem, split, *rules)
        directly = few > 0 and problem.groups > 1
        assert (always[0] == before) == directly
        exact = accumulate(problem, split[0], split[1], bits).astype(np.int64)
        assert sums.dtype == np.int64
        assert np.array_equal(sums, wrap(exact, accumulator_bits))
        assert np.array_equal(ofmap, compute(problem, split, *rules))
        ends = np.iinfo(np.int32)
        random = np.random.default_rng(seed)
        more = random.integers(ends.min, ends.max, sums.shape, np.int32, endpoint=True)
        if seed % 2:  # filters first, as it usually lies
            more = np.ascontiguousarray(more.transpose(0, 1, 4, 2, 3)).transpose(0, 1, 3, 4, 2)
        kept = more.copy()
        added = 0 if split[2] is None else split[2][None, :, None, None, :]
        wanted = requantize(
            wrap(exact + more, accumulator_bits), added, rules[0], bool(layer.relu), bits
        )
        assert np.array_equal(compute(problem, split, *rules, more), wanted)
        assert np.array_equal(more, kept)

    check()


@pytest.mark.parametrize("bound", ["by ONNX Runtime", "by another product"])
def test_a_bound_product_is_of_what_lies_there_when_it_is_called(bound: str) -> None:
    exact = products.exact_product()
    assert exact is not None
    product = exact if bound == "by ONNX Runtime" else lambda left, right: exact(left, right)
    random = np.random.default_rng(0)
    left, right = np.empty((5, 70), np.int8), np.empty((70, 33), np.int8)
    shifted, sums = left.view(np.uint8), np.empty((5, 33), np.int32)
    multiply = products.bound_product(product, shifted, right, sums)
    for _ in range(3):
        left[:], right[:] = (random.integers(-128, 128, one.shape) for one in (left, right))
        expected = left.astype(np.int64) @ right
        shifted ^= 128
        multiply()
        assert np.array_equal(sums, expected)


@pytest.mark.parametrize("shape", [(1, 1 << 16, 1), (2, 1 << 16, 17)])
def test_the_deepest_sums(shape: tuple[int, int, int]) -> None:
    """Of the lowest values: one term more would be refused."""
    product = products.exact_product()
    assert product is not None
    rows, depth, wide = shape
    left = np.full((rows, depth), -128, np.int8)
    for value in (-128, 127):
        right = np.full((depth, wide), value, np.int8)
        assert (product(products.shifted(left), right) == -128 * value * depth).all()
    left = np.full((rows, depth), 127, np.int8)  # the largest before the shift is taken off
    right = np.full((depth, wide), 127, np.int8)
    assert (product(products.shifted(left), right) == 127 * 127 * depth).all()
    assert depth * 255 * 128 < 1 << 31
    assert products.product_for(1 << 40, depth + 1) is None


def test_sums_beyond_32_bits_are_not_taken() -> None:
    """Of groups that plain loops would sum: 2^31 wraps in 32 bits, and not in 40."""
    depth = 1 << 17
    layer = MatMul(name="deep", m=1, n=1, k=depth, batch=2, shared_weight=False)
    operands = replace(
        operands_of(layer, 8, 1), ifmap=np.full((2, 1, depth), -128, np.int8),
        weight=np.full((2, depth, 1), -128, np.int8), multiplier=1, shift=25,
    )  # fmt: skip
    assert (output_of(layer, operands, 8, 40) == 1 << 6).all()


def saturating(left: products.UnsignedBytes, right: products.Bytes) -> products.Sums:
    """Two products at a time, in 16 bits: what a kernel does without the instruction of four."""
    depth = left.shape[1]
    pairs = [
        left[:, at : at + 2].astype(np.int64) @ right[at : at + 2] for at in range(0, depth, 2)
    ]
    limited = [np.clip(one, -(1 << 15), (1 << 15) - 1) for one in pairs]
    shift = 128 * right.sum(axis=0, dtype=np.int64)
    return (np.sum(limited, axis=0) - shift).astype(np.int32)


def test_a_product_that_saturates_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = np.full((2, 64), 127, np.int8), np.full((64, 3), 127, np.int8)
    exact = products.exact_product()
    assert exact is not None
    assert products.is_exact(exact)
    assert not (
        saturating(products.shifted(left), right) == exact(products.shifted(left), right)
    ).all()
    assert not products.is_exact(saturating)
    layer = MatMul(name="m", m=4, n=5, k=64)
    operands = operands_of(layer, 8, 1)
    products.exact_product.cache_clear()
    monkeypatch.setattr(products, "LOADING_MACS", 0)
    for broken in (lambda right: saturating, lambda right: 1 / 0):
        monkeypatch.setattr(products, "_RuntimeProduct", broken)
        products.exact_product.cache_clear()
        assert products.product_for(1, 1) is None
        ours = output_of(layer, operands, 8, 32)
        assert (ours == reference.compute(layer, operands)).all()
    products.exact_product.cache_clear()


@pytest.mark.parametrize("shape", [(1, 64, 3), (7, products.DEEPEST, 5), (33, 515, 37)])
def test_unsigned_bytes_need_no_instruction(shape: tuple[int, int, int]) -> None:
    """The product of processors on which that of signed bytes saturates, tried on every one."""
    product = products._unsigned_product()  # pyright: ignore[reportPrivateUsage]
    assert products.is_exact(product)
    rows, depth, wide = shape
    for x, w in ((-128, -128), (127, -128), (127, 127)):
        left, right = np.full((rows, depth), x, np.int8), np.full((depth, wide), w, np.int8)
        assert (product(products.shifted(left), right) == x * w * depth).all()


def test_unsigned_bytes_are_taken_where_signed_ones_saturate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []

    def product(left: products.UnsignedBytes, right: products.Bytes) -> products.Sums:
        made.append(1)
        return (left.astype(np.int32) - 128) @ right

    monkeypatch.setattr(products, "_signed_product", lambda: saturating)
    monkeypatch.setattr(products, "_unsigned_product", lambda: product)
    products.exact_product.cache_clear()
    assert products.exact_product() is product and made
    products.exact_product.cache_clear()


def test_onnx_runtime_is_loaded_when_it_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_asked", 0)
    monkeypatch.setattr(products, "sys", SimpleNamespace(modules={}))
    monkeypatch.setattr(products, "exact_product", lambda: saturating)
    half = products.LOADING_MACS // 2
    asked = [products.product_for(half, 1), products.product_for(half, 1)]
    assert asked == [None, saturating]


@pytest.mark.parametrize(
    ("right", "inputs"),
    [(onnx.TensorProto.INT8, ["a", "b", "z"]), (onnx.TensorProto.UINT8, ["a", "b", "z", "z"])],
)
def test_the_network_of_one_product_is_as_onnx_writes_it(right: int, inputs: list[str]) -> None:
    model = onnx.load_from_string(products._model(right))  # pyright: ignore[reportPrivateUsage]
    types = [one.type.tensor_type.elem_type for one in (*model.graph.input, *model.graph.output)]
    assert types == [onnx.TensorProto.UINT8, right, onnx.TensorProto.INT32]
    (node,) = model.graph.node
    assert (node.op_type, list(node.input), list(node.output)) == ("MatMulInteger", inputs, ["y"])
    assert onnx.numpy_helper.to_array(model.graph.initializer[0]) == 128


def test_values_do_not_depend_on_the_number_of_threads(always: list[int]) -> None:
    layer = Conv2d(name="c", channels=8, filters=16, ifmap_height=12, ifmap_width=12, batch=2,
                   kernel_height=3, kernel_width=3, pad_top=1, pad_left=1, bias=True)  # fmt: skip
    operands = operands_of(layer, 8, 5)
    try:
        set_threads(1)
        one = output_of(layer, operands, 8, 24)
        set_threads(4)
        assert (output_of(layer, operands, 8, 24) == one).all()
    finally:
        set_threads(None)
    assert always[0] > 20


@pytest.mark.parametrize(("bits", "kind"), [(4, np.int8), (8, np.int8), (16, np.int16)])
def test_an_ofmap_has_the_type_of_its_width(bits: int, kind: type[np.integer]) -> None:
    layer = MatMul(name="m", m=2, n=2, k=3)
    ours = layer_output(Systolic(operand_bits=bits), layer, operands_of(layer, min(bits, 8), 1))
    assert ours.dtype == kind


def test_threads_lend_sessions_one_behind_the_other() -> None:
    product = products.exact_product()
    if not isinstance(product, products._RuntimeProduct):  # pyright: ignore[reportPrivateUsage]
        pytest.skip("products of bytes need no session")
    lent: list[object] = []
    meet = threading.Barrier(2, timeout=30)

    def multiply() -> None:
        left, right = np.full((1, 3), 129, np.uint8), np.full((3, 1), 2, np.int8)
        sums = np.empty((1, 1), np.int32)
        products.bound_product(product, left, right, sums)()
        assert sums == 6
        lent.append(product._session)  # pyright: ignore[reportPrivateUsage]
        meet.wait()

    for _ in range(3):
        both = [threading.Thread(target=multiply) for _ in range(2)]
        for one in both:
            one.start()
        for one in both:
            one.join()
    by_turn = [{id(one) for one in lent[at : at + 2]} for at in (0, 2, 4)]
    assert len(by_turn[0]) == 2
    assert by_turn[0] == by_turn[1] == by_turn[2]
