"""SimpleNet: the papers' sizes; its ONNX model against sums written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from workloads.errors import WorkloadError
from workloads.onnx_runtime import run_session
from workloads.simplenet import SimpleNet
from workloads.simplenet_onnx import simplenet_onnx


@pytest.mark.parametrize(
    ("network", "weights"),
    [
        (SimpleNet(), 1_082_826),
        (SimpleNet(channels=64, colours=3, side=32), 5_498_378),
        (SimpleNet(channels=8), 69_114),
    ],
)
def test_weights_are_as_many_as_published(network: SimpleNet, weights: int) -> None:
    assert network.weights == weights


def test_products_of_the_mnist_network() -> None:
    assert round(SimpleNet().macs / 1e6) == 136
    assert [one.side for one in SimpleNet().convolutions] == [28] * 4 + [14] * 3 + [7] * 3 + [3]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"channels": 7}, "channels must be even and from 2 to 1024, not 7"),
        ({"channels": 2048}, "channels must be even and from 2 to 1024, not 2048"),
        ({"side": 30}, "pictures must be 28 or 32 wide, not 30"),
    ],
)
def test_refusals(given: dict[str, Any], said: str) -> None:
    with pytest.raises(WorkloadError, match=said):
        SimpleNet(**given)


def test_weights_that_are_not_its_own_are_refused() -> None:
    network = SimpleNet(channels=2)
    weights = network.draw(0)
    with pytest.raises(WorkloadError, match=r"lack classify\.bias"):
        simplenet_onnx(network, {k: v for k, v in weights.items() if k != "classify.bias"})
    with pytest.raises(WorkloadError, match=r"conv1.bias must be of shape \(2,\), not \(3,\)"):
        simplenet_onnx(network, weights | {"conv1.bias": np.zeros(3, np.float32)})


def plain_logits(network: SimpleNet, weights: dict[str, Any], pictures: Any) -> Any:
    """Each convolution as a sum over its kernel, groups one by one."""
    x = pictures.astype(np.float64)
    for layer in network.convolutions:
        kernel, half, side = weights[f"{layer.name}.weight"], layer.kernel // 2, layer.side
        padded = np.pad(x, ((0, 0), (0, 0), (half, half), (half, half)))
        y = np.zeros((len(x), layer.outputs, side, side))
        for r in range(layer.kernel):
            for s in range(layer.kernel):
                part = padded[:, :, r : r + side, s : s + side]
                y += np.einsum("nchw,kc->nkhw", part, kernel[:, :, r, s])
        y += weights[f"{layer.name}.bias"][:, None, None]
        size = layer.outputs // layer.groups
        for first in range(0, layer.outputs, size):
            group = y[:, first : first + size]
            mean = group.mean(axis=(1, 2, 3), keepdims=True)
            variance = group.var(axis=(1, 2, 3), keepdims=True)
            y[:, first : first + size] = (group - mean) / np.sqrt(variance + 1e-5)
        y = y * (1 + weights[f"{layer.name}.scale"])[:, None, None]
        y = np.maximum(y + weights[f"{layer.name}.shift"][:, None, None], 0)
        count = side // layer.pool
        y = y[:, :, : count * layer.pool, : count * layer.pool]
        blocks = y.reshape(len(x), layer.outputs, count, layer.pool, count, layer.pool)
        x = blocks.max(axis=(3, 5))
    return x.reshape(len(x), -1) @ weights["classify.weight"].T + weights["classify.bias"]


@pytest.mark.parametrize("network", [SimpleNet(channels=2), SimpleNet(channels=2, side=32)])
def test_the_onnx_model_computes_it(network: SimpleNet) -> None:
    draws = np.random.default_rng(1)
    weights = {
        name: array + draws.normal(0, 0.1, array.shape).astype(np.float32)
        for name, array in network.draw(3).items()
    }
    pictures = draws.random((2, network.colours, network.side, network.side), np.float32)
    found = run_session(simplenet_onnx(network, weights), ["logits"], {"pictures": pictures})[0]
    np.testing.assert_allclose(
        found, plain_logits(network, weights, pictures), rtol=2e-3, atol=2e-3
    )
