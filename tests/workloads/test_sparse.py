"""Sparse operands: exact densities, clusters, and a trained network that was pruned."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from workloads import sparse
from workloads.errors import WorkloadError
from workloads.layers import Conv2d, MatMul
from workloads.operands import from_onnx
from workloads.packaged import packaged
from workloads.quantize import Integers
from workloads.sparse import (
    MEASURED_CLUSTERING,
    NETWORK,
    prune_convolutions,
    prune_magnitude,
    prune_model,
    sparse_activations,
    sparse_operands,
)

SHARES = st.floats(0, 1) | st.sampled_from((0.0, 0.5, 1.0))
EIGHTH = 8


def _conv(**sizes: int) -> Conv2d:
    every: dict[str, Any] = {
        "channels": 6, "filters": 4, "ifmap_height": 12, "ifmap_width": 12,
        "kernel_height": 3, "kernel_width": 3, **sizes,
    }  # fmt: skip
    return Conv2d(name="layer", **every)


def _activations(density: float, clustering: float, seed: int = 0) -> Integers:
    random = np.random.default_rng(seed)
    return sparse_activations((1, 64, 32, 32), density, clustering=clustering, random=random)


def _tiles(ifmap: Integers) -> NDArray[np.float64]:
    """Densities of tiles of an eighth of the plane's sides, [channels, tiles]."""
    side = max(1, -(-ifmap.shape[2] // EIGHTH))
    rows = ifmap.shape[2] // side * side
    cut = (ifmap[0, :, :rows, :rows] != 0).reshape(len(ifmap[0]), rows // side, side, -1, side)
    return cut.mean(axis=(2, 4)).reshape(len(cut), -1)


@settings(max_examples=60)
@given(
    layer=st.builds(
        _conv,
        channels=st.integers(1, 9),
        filters=st.integers(1, 9),
        ifmap_height=st.integers(3, 11),
        ifmap_width=st.integers(3, 11),
    )
    | st.builds(MatMul, name=st.just("m"), m=st.integers(1, 9), n=st.integers(1, 9), k=st.just(7)),
    weight=SHARES,
    ifmap=SHARES,
    clustering=SHARES,
    bits=st.integers(2, 16),
)
def test_densities_are_exact(
    layer: Conv2d | MatMul, weight: float, ifmap: float, clustering: float, bits: int
) -> None:
    drawn = sparse_operands(
        layer, weight_density=weight, ifmap_density=ifmap, clustering=clustering, bits=bits
    )
    assert np.count_nonzero(drawn.weight) == round(weight * layer.weight_elements)
    assert np.count_nonzero(drawn.ifmap) == round(ifmap * layer.ifmap_elements)
    limit = (1 << (bits - 1)) - 1
    assert drawn.ifmap.min() >= 0  # behind a ReLU
    assert max(int(drawn.ifmap.max()), int(np.abs(drawn.weight.astype(int)).max())) <= limit


def test_the_seed_and_the_name_decide() -> None:
    def draw(seed: int, name: str = "layer", clustering: float = 0.5) -> Integers:
        layer = Conv2d(**{**vars(_conv()), "name": name})
        return sparse_operands(
            layer, weight_density=0.3, ifmap_density=0.6, clustering=clustering, seed=seed
        ).ifmap

    assert np.array_equal(draw(1), draw(1))
    assert not np.array_equal(draw(1), draw(2))
    assert not np.array_equal(draw(1), draw(1, "other"))


@pytest.mark.parametrize("density", [0.2, 0.5, 0.8])
def test_clustering_raises_the_variance_over_tiles(density: float) -> None:
    spreads = [_tiles(_activations(density, c)).std() for c in (0.0, 0.3, 0.6, 0.9)]
    binomial = np.sqrt(density * (1 - density) / 16)
    assert spreads[0] == pytest.approx(binomial, rel=0.05)  # scattered evenly
    assert all(after > 1.1 * before for before, after in pairwise(spreads))


def test_patches_channels_and_the_image_all_vary() -> None:
    even, clustered = _tiles(_activations(0.4, 0.0)), _tiles(_activations(0.4, 0.8))
    for axis in (0, 1):  # over tiles: the image's; over channels: their own density
        assert clustered.mean(axis=axis).std() > 1.5 * even.mean(axis=axis).std()
    within = [(tiles - tiles.mean(axis=1, keepdims=True)).std() for tiles in (even, clustered)]
    assert within[1] > 1.5 * within[0]


def test_neighbours_are_alike_only_where_clustered() -> None:
    for clustering, least, most in ((0.0, -0.03, 0.03), (0.9, 0.3, 1.0)):
        flags = (_activations(0.5, clustering)[0] != 0).astype(float)
        alike = np.corrcoef(flags[:, :, 1:].ravel(), flags[:, :, :-1].ravel())[0, 1]
        assert least < alike < most


def test_the_measured_clustering_is_squeezenets() -> None:
    """Tiles of its activations spread as the generator's: the nearest tenth, in the mean."""
    network = packaged(NETWORK)
    real = [o.ifmap for o in from_onnx(network.model(), network.input(0), bits=16).values()]
    real = [x for x in real if x.ndim == 4 and np.mean(x != 0) < 0.97]
    assert len(real) > 15

    def ratio(clustering: float) -> float:
        random = np.random.default_rng(0)
        drawn = [
            sparse_activations(
                x.shape, float(np.mean(x != 0)), clustering=clustering, random=random
            )
            for x in real
        ]
        pairs = zip(drawn, real, strict=True)
        return float(np.mean([_tiles(ours).std() / _tiles(theirs).std() for ours, theirs in pairs]))

    errors = {tenth: abs(ratio(tenth / 10) - 1) for tenth in (0, 6, 7, 8, 9)}
    assert min(errors, key=errors.__getitem__) == round(10 * MEASURED_CLUSTERING)
    assert errors[8] < 0.1
    assert errors[0] > 0.4  # evenly scattered zeros are far from real ones


def test_bad_requests_are_refused() -> None:
    for shares in ({"ifmap_density": 1.5}, {"weight_density": -0.1}, {"clustering": 2.0}):
        request: dict[str, Any] = {"ifmap_density": 0.5, "weight_density": 0.5, **shares}
        with pytest.raises(WorkloadError, match=r"layer: .* must be 0 to 1, not"):
            sparse_operands(_conv(), **request)
    with pytest.raises(WorkloadError, match="bits must be 2 to 16"):
        sparse_operands(_conv(), ifmap_density=0.5, weight_density=0.5, bits=17)


@given(values=st.lists(st.floats(-8, 8, width=32), min_size=1, max_size=40), density=SHARES)
def test_pruning_keeps_the_largest(values: list[float], density: float) -> None:
    weight = np.array(values, np.float32)
    pruned = prune_magnitude(weight, density)
    count = round(density * len(weight))
    kept = np.sort(np.abs(weight))[::-1]
    assert np.array_equal(np.sort(np.abs(pruned))[::-1][:count], kept[:count])
    assert not np.any(np.sort(np.abs(pruned))[::-1][count:])
    assert set(pruned[pruned != 0]) <= set(weight)


def test_a_pruned_network_runs_on_a_photograph() -> None:
    densities = {"conv1": 0.5, "fire2/squeeze1x1": 0.25, "fire9/expand3x3": 0.1}
    network = packaged(NETWORK)
    model = prune_model(network.model(), densities)
    pruned = from_onnx(model, network.input(0), bits=16)
    whole = from_onnx(network.model(), network.input(0), bits=16)
    assert set(pruned) == set(whole)
    for name, operands in pruned.items():
        if name in densities:
            assert np.mean(operands.weight != 0) == pytest.approx(densities[name], abs=1e-3)
        else:
            assert np.array_equal(operands.weight, whole[name].weight)
    assert np.array_equal(pruned["conv1"].ifmap, whole["conv1"].ifmap)  # the photograph
    later = pruned["fire9/expand3x3"].ifmap, whole["fire9/expand3x3"].ifmap
    assert not np.array_equal(*later)  # what the pruned network makes of it
    assert 0.1 < np.mean(later[0] != 0) < 0.9 and later[0].min() == 0


def test_pruning_an_unknown_layer_is_refused() -> None:
    model = packaged(NETWORK).model()
    with pytest.raises(WorkloadError, match="convolution"):
        prune_model(model, {"fire1": 0.5})
    with pytest.raises(WorkloadError, match="density must be 0 to 1"):
        prune_model(model, {"conv1": 1.5})


def test_all_convolutions_are_pruned_alike() -> None:
    import onnx

    found = prune_convolutions(packaged(NETWORK).model(), 0.25)
    weights = [
        onnx.numpy_helper.to_array(one)
        for one in found.graph.initializer
        if one.name.endswith("/weight")
    ]
    assert len(weights) == 26
    for weight in weights:
        assert np.count_nonzero(weight) == round(0.25 * weight.size)
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    bare = onnx.helper.make_model(onnx.helper.make_graph([node], "bare", [], []))
    with pytest.raises(WorkloadError, match=r"^bare: no convolution has constant weights to pr"):
        prune_convolutions(bare, 0.5)


def test_the_model_itself_is_not_changed() -> None:
    model = packaged(NETWORK).model()
    before = model.SerializeToString()
    prune_model(model, {"conv1": 0.5})
    assert model.SerializeToString() == before


def test_too_much_of_a_share_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: a channel's own density left out of the keys."""
    monkeypatch.setattr(sparse, "SHARES", (0.7, 0.0, 0.14))
    flat = _tiles(_activations(0.4, 0.8)).mean(axis=1).std()
    monkeypatch.undo()
    assert flat < 0.75 * _tiles(_activations(0.4, 0.8)).mean(axis=1).std()
