"""Shapes, MACs, elements and bytes of layers and networks."""

import re
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.errors import WorkloadError
from workloads.layers import Conv2d, MatMul, Network, VectorWork

CONV = {
    "name": "conv",
    "channels": 4,
    "filters": 6,
    "ifmap_height": 5,
    "ifmap_width": 7,
    "kernel_height": 3,
    "kernel_width": 3,
}


def places(side: int, before: int, after: int, kernel: int, stride: int, dilation: int) -> int:
    """Positions of a kernel, counted one by one."""
    span = dilation * (kernel - 1) + 1
    return sum(1 for start in range(-before, side + after - span + 1, stride))


small = st.integers(1, 4)
pad = st.integers(0, 3)


@given(side=st.integers(1, 12), kernel=small, stride=small, dilation=small, before=pad, after=pad)
def test_conv_output_size_counts_the_places_of_the_kernel(
    side, kernel, stride, dilation, before, after
):
    expected = places(side, before, after, kernel, stride, dilation)
    fields = {
        **CONV,
        "ifmap_height": side,
        "kernel_height": kernel,
        "stride_height": stride,
        "dilation_height": dilation,
        "pad_top": before,
        "pad_bottom": after,
    }
    if expected == 0:
        with pytest.raises(WorkloadError, match="kernel height must be at most the padded ifmap"):
            Conv2d(**fields)
    else:
        assert Conv2d(**fields).ofmap_height == expected
    turned = {
        key.replace("height", "w").replace("width", "height").replace("_w", "_width"): value
        for key, value in fields.items()
        if not key.startswith("pad")
    } | {"pad_left": before, "pad_right": after}
    if expected:
        assert Conv2d(**turned).ofmap_width == expected


def test_conv_counts_of_grouped_batched_layer():
    layer = Conv2d(**{**CONV, "groups": 2, "batch": 3, "pad_left": 1, "pad_right": 1})
    assert (layer.ofmap_height, layer.ofmap_width) == (3, 7)
    assert layer.ifmap_elements == 3 * 4 * 5 * 7
    assert layer.weight_elements == 6 * 2 * 9
    assert layer.ofmap_elements == 3 * 6 * 3 * 7
    assert layer.macs == 3 * 6 * 3 * 7 * 2 * 9


def test_bytes_round_up_once_per_tensor():
    layer = MatMul(name="fc", m=1, n=3, k=5)
    assert (layer.ifmap_bytes(4), layer.weight_bytes(4), layer.ofmap_bytes(4)) == (3, 8, 2)
    assert (layer.ifmap_bytes(16), layer.weight_bytes(8), layer.ofmap_bytes(32)) == (10, 15, 12)
    with pytest.raises(WorkloadError, match=r"^bytes: bits must be positive, not 0$"):
        layer.ifmap_bytes(0)


def test_matmul_counts_a_weight_for_each_element_of_the_batch():
    layer = MatMul(name="scores", m=5, n=7, k=3, batch=4, shared_weight=False)
    assert layer.macs == 4 * 5 * 7 * 3
    assert layer.ifmap_elements == 4 * 5 * 3
    assert layer.weight_elements == 4 * 3 * 7
    assert layer.ofmap_elements == 4 * 5 * 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stride_height": 0}, "conv: stride_height must be positive, not 0"),
        ({"channels": -4}, "conv: channels must be positive, not -4"),
        ({"pad_left": -1}, "conv: pad_left must be zero or positive, not -1"),
        ({"filters": 2.5}, "conv: filters must be a whole number, not 2.5"),
        ({"batch": True}, "conv: batch must be a whole number, not True"),
        ({"groups": 3}, "conv: channels must be a multiple of groups 3, not 4"),
        ({"groups": 4}, "conv: filters must be a multiple of groups 4, not 6"),
        (
            {"kernel_width": 8},
            "conv: dilated kernel width must be at most the padded ifmap width 7, not 8",
        ),
        (
            {"dilation_height": 3},
            "conv: dilated kernel height must be at most the padded ifmap height 5, not 7",
        ),
    ],
)
def test_bad_convolutions(change, message):
    with pytest.raises(WorkloadError, match=f"^{re.escape(message)}$"):
        Conv2d(**{**CONV, **change})


def test_bad_matrix_products_and_vector_work():
    with pytest.raises(WorkloadError, match=r"^fc: n must be positive, not 0$"):
        MatMul(name="fc", m=1, n=0, k=1)
    with pytest.raises(WorkloadError, match=r"^fc: batch must be 1 where the weight is shared"):
        MatMul(name="fc", m=1, n=1, k=1, batch=2)
    with pytest.raises(WorkloadError, match=r"^p: operations must be zero or positive, not -1$"):
        VectorWork(name="p", operator="MaxPool", input_elements=1, output_elements=1, operations=-1)


def test_layers_are_frozen_keyword_only_and_compare_by_value():
    assert Conv2d(**CONV) == Conv2d(**CONV)
    with pytest.raises(FrozenInstanceError):
        Conv2d(**CONV).channels = 3  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TypeError):
        MatMul("fc", 1, 2, 3)  # pyright: ignore[reportCallIssue]


def test_network_totals_count_shared_and_computed_operands_as_told():
    layers = (
        Conv2d(**CONV),
        MatMul(name="step0", m=2, n=8, k=4),
        MatMul(name="step1", m=2, n=8, k=4, weight_of="step0"),
        MatMul(name="scores", m=2, n=2, k=4, batch=3, shared_weight=False),
        VectorWork(name="relu", operator="Relu", input_elements=9, output_elements=9, operations=9),
    )
    network = Network(name="net", layers=layers, source="test")
    assert network.matrix_layers == layers[:4]
    assert network.macs == sum(layer.macs for layer in layers[:4])
    assert network.weight_elements == 6 * 4 * 9 + 8 * 4
    with pytest.raises(WorkloadError, match=r"^net: layer names must be unique, not 'relu' twice$"):
        Network(name="net", layers=(layers[4], layers[4]), source="test")
