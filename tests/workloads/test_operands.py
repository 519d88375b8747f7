"""Operands drawn from a seed, and operands of real models."""

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.errors import WorkloadError
from workloads.layers import Conv2d, MatMul
from workloads.onnx_import import import_onnx
from workloads.operands import from_onnx, operand_shapes, synthetic
from workloads.reference import accumulate, compute

CONV = Conv2d(
    name="conv", channels=16, filters=8, ifmap_height=9, ifmap_width=9, kernel_height=3,
    kernel_width=3, groups=2, bias=True,
)  # fmt: skip
FC = MatMul(name="fc", m=9, n=33, k=64)
ATTENTION = MatMul(name="attention", m=7, n=5, k=64, batch=3, shared_weight=False)
LAYERS = (CONV, FC, ATTENTION)


@given(
    layer=st.sampled_from(LAYERS),
    bits=st.sampled_from([4, 8, 16]),
    density=st.floats(0, 1),
    distribution=st.sampled_from(["uniform", "normal"]),
    seed=st.integers(0, 9),
)
def test_synthetic_density_is_exact_and_values_fit(layer, bits, density, distribution, seed):
    got = synthetic(layer, bits=bits, density=density, distribution=distribution, seed=seed)
    for array, shape in zip((got.ifmap, got.weight), operand_shapes(layer), strict=True):
        assert array.shape == shape
        assert array.dtype == (np.int16 if bits == 16 else np.int8)
        assert np.count_nonzero(array) == round(density * array.size)
        assert np.abs(array.astype(int)).max() <= 2 ** (bits - 1) - 1
    assert (got.bias is not None) == layer.bias


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
@pytest.mark.parametrize("bits", [4, 8, 16])
@pytest.mark.parametrize("density", [0.2, 1.0])
@pytest.mark.parametrize("distribution", ["uniform", "normal"])
def test_synthetic_outputs_neither_all_saturate_nor_all_vanish(layer, bits, density, distribution):
    operands = synthetic(layer, bits=bits, density=density, distribution=distribution, seed=3)
    ofmap = compute(layer, operands, bits=bits).astype(int)
    limit = 2 ** (bits - 1)
    assert np.mean((ofmap == -limit) | (ofmap == limit - 1)) < 0.05
    assert np.mean(ofmap != 0) > 0.5
    assert ofmap.min() < 0 < ofmap.max()


def test_synthetic_depends_on_seed_and_name_alone():
    first, again = synthetic(FC, seed=1), synthetic(FC, seed=1)
    assert np.array_equal(first.ifmap, again.ifmap)
    assert np.array_equal(first.weight, again.weight)
    assert not np.array_equal(first.ifmap, synthetic(FC, seed=2).ifmap)
    other = MatMul(name="fc2", m=FC.m, n=FC.n, k=FC.k)
    assert not np.array_equal(first.ifmap, synthetic(other, seed=1).ifmap)
    assert first.ifmap[0, 0, :4].tolist() == [28, 57, 66, -23]


def test_distributions_differ_as_they_should():
    wide = MatMul(name="fc", m=100, n=100, k=100)
    uniform = synthetic(wide).weight.astype(float)
    normal = synthetic(wide, distribution="normal").weight.astype(float)
    assert abs(uniform.std() - 127 / np.sqrt(3)) < 2
    assert abs(normal.std() - 127 / 3) < 2
    assert set(np.unique(uniform)) == set(range(-127, 128)) - {0}


def test_bad_arguments():
    with pytest.raises(WorkloadError, match=r"^fc: density must be 0 to 1, not 1.5$"):
        synthetic(FC, density=1.5)
    with pytest.raises(
        WorkloadError, match=r"^fc: distribution must be uniform or normal, not 'po"
    ):
        synthetic(FC, distribution=cast("Any", "poisson"))
    with pytest.raises(WorkloadError, match=r"^quantisation: bits must be 2 to 16, not 32$"):
        synthetic(FC, bits=32)


@pytest.fixture(scope="module")
def mixed(model):
    """Convolution with ReLU, Gemm with transposed weight and alpha, attention; some input."""
    random = np.random.default_rng(5)

    def normal(*shape):
        return random.standard_normal(shape).astype(np.float32)

    made = model(
        [
            ("Conv", ["x", "cw", "cb"], ["c"], {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
            ("Relu", ["c"], ["r"], {}),
            ("Reshape", ["r", "rows"], ["rows6"], {}),
            ("Gemm", ["rows6", "gw", "gb"], ["g"], {"transB": 1, "alpha": 0.5, "beta": 2.0}),
            ("Reshape", ["g", "heads"], ["q"], {}),
            ("Transpose", ["q"], ["k"], {"perm": [0, 2, 1]}),
            ("MatMul", ["q", "k"], ["scores"], {}),
            ("MatMul", ["scores", "mw"], ["y"], {}),
        ],
        {"x": ["batch", 3, 8, 8]},
        ["y"],
        {
            "cw": normal(6, 3, 3, 3),
            "cb": normal(6),
            "rows": np.array([16, 6], np.int64),
            "gw": normal(10, 6),
            "gb": normal(1, 10),
            "heads": np.array([2, 8, 10], np.int64),
            "mw": normal(8, 4),
        },
    )
    return made, {"x": normal(1, 3, 8, 8)}


def test_real_operands_bear_the_importers_names_and_shapes(mixed):
    made, inputs = mixed
    network = import_onnx(made, dims={"batch": 1})
    operands = from_onnx(made, inputs)
    assert list(operands) == [layer.name for layer in network.matrix_layers]
    for layer in network.matrix_layers:
        got = operands[layer.name]
        assert (got.ifmap.shape, got.weight.shape) == operand_shapes(layer)
        assert (got.bias is not None) == layer.bias
    assert "per-tensor symmetric" in operands["c_node"].scheme


@pytest.mark.parametrize(("bits", "tolerance"), [(8, 0.03), (16, 0.0002)])
def test_real_operands_compute_what_the_float_network_does(mixed, bits, tolerance):
    """Each layer's dequantised ofmap is near the ifmap which the next one gets."""
    made, inputs = mixed
    layers = {x.name: x for x in import_onnx(made, dims={"batch": 1}).matrix_layers}
    operands = from_onnx(made, inputs, bits=bits)

    def ofmap(name):
        return compute(layers[name], operands[name], bits=bits) * operands[name].ofmap_scale

    def ifmap(name):
        return operands[name].ifmap * operands[name].ifmap_scale

    pairs = [
        (ofmap("c_node").reshape(16, 6), ifmap("g_node")[0]),
        (ofmap("g_node").reshape(2, 8, 10), ifmap("scores_node")),
        (ofmap("scores_node").reshape(16, 8), ifmap("y_node")[0]),
    ]
    assert layers["c_node"].relu
    for ours, real in pairs:
        assert np.abs(ours - real).max() <= tolerance * np.abs(real).max() * 2
        assert np.sqrt(np.mean((ours - real) ** 2)) <= tolerance * np.sqrt(np.mean(real**2))


def test_bias_is_at_the_accumulators_scale(mixed):
    made, inputs = mixed
    got = from_onnx(made, inputs)["c_node"]
    real = next(t for t in made.graph.initializer if t.name == "cb")
    expected = np.frombuffer(real.raw_data, np.float32)
    scale = got.ifmap_scale * got.weight_scale
    assert got.bias is not None
    assert got.bias.dtype == np.int32
    assert np.abs(got.bias * scale - expected).max() <= scale / 2
    acc = accumulate(import_onnx(made, dims={"batch": 1}).matrix_layers[0], got.ifmap, got.weight)
    assert np.abs(acc).max() < 2**31


def test_inputs_which_do_not_fit_are_refused(mixed):
    made, inputs = mixed
    with pytest.raises(WorkloadError, match=r"^tiny: no input is named 'image'; there are x$"):
        from_onnx(made, {"image": inputs["x"]}, dims={"batch": 1})
    with pytest.raises(WorkloadError, match=r"^tiny: input 'x' must be given, and is not$"):
        from_onnx(made, {}, dims={"batch": 1})
    with pytest.raises(WorkloadError, match=r"must have shape \(1, 3, 8, 8\), not \(2, 3, 8, 8\)$"):
        from_onnx(made, {"x": np.repeat(inputs["x"], 2, axis=0)}, dims={"batch": 1})
    with pytest.raises(WorkloadError, match="dimension 'batch' of input 'x' is dynamic"):
        from_onnx(made, {})
    with pytest.raises(WorkloadError, match="every value must be finite"):
        from_onnx(made, {"x": np.full((1, 3, 8, 8), np.nan, np.float32)})
