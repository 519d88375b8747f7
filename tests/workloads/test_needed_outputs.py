"""Outputs that nobody reads, and how sparse a layer is where there are no values."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from archsim.errors import InputError
from archsim.simulate import simulate
from workloads.errors import WorkloadError
from workloads.layers import Conv2d, MatMul, Network
from workloads.operands import ofmap_shape, synthetic
from workloads.reference import compute
from workloads.sparsity import DENSE, Densities

CONV = Conv2d(
    name="conv", channels=3, filters=4, ifmap_height=6, ifmap_width=5, kernel_height=3,
    kernel_width=3, batch=2, bias=True,
)  # fmt: skip
PRODUCT = MatMul(name="product", m=4, n=5, k=6)
NETWORK = Network(name="two", layers=(CONV, PRODUCT), source="tests")


def _masked(layer):
    operands = synthetic(layer, seed=3)
    needed = np.random.default_rng(1).random(ofmap_shape(layer)) < 0.5
    return operands, replace(operands, needed=needed)


@pytest.mark.parametrize("design", ["edge-16", "vsq-16", "volta", "scnn-4pe"])
def test_every_machine_gives_0_where_no_output_is_needed(design):
    layers = [PRODUCT] if design == "scnn-4pe" else [CONV, PRODUCT]
    network = replace(NETWORK, layers=tuple(layers))
    pairs = {layer.name: _masked(layer) for layer in layers}
    whole = simulate(design, network, operands={name: one for name, (one, _) in pairs.items()})
    found = simulate(design, network, operands={name: one for name, (_, one) in pairs.items()})
    results: Any = zip(whole.layers, found.layers, strict=True)
    for every, kept in results:
        needed: Any = pairs[kept.name][1].needed
        assert np.array_equal(kept.ofmap[needed], every.ofmap[needed])
        assert not kept.ofmap[~needed].any() and every.ofmap[~needed].any()
        assert kept.ofmap.dtype == every.ofmap.dtype


def test_the_reference_gives_0_there():
    plain, masked = _masked(CONV)
    assert masked.needed is not None
    found = compute(CONV, masked)
    assert np.array_equal(found, np.where(masked.needed, compute(CONV, plain), 0))
    assert found.dtype == compute(CONV, plain).dtype


@pytest.mark.parametrize(
    ("needed", "said"),
    [
        (np.ones((2, 4, 4), bool), r"conv: needed must have the ofmap's shape \(2, 4, 4, 3\), not"),
        (np.ones((2, 4, 4, 3), np.int8), r"conv: needed must hold yes or no \(bool\), not int8"),
        ([[True]], r"conv: needed must be an array of yes or no \(bool\), not list"),
    ],
)
def test_a_mask_of_the_wrong_shape_or_type_is_refused(needed, said):
    operands = replace(synthetic(CONV), needed=needed)
    with pytest.raises(InputError, match=said):
        simulate("edge-16", replace(NETWORK, layers=(CONV,)), operands={"conv": operands})
    with pytest.raises(InputError, match=said):
        simulate("volta", replace(NETWORK, layers=(CONV,)), operands={"conv": operands})


def test_densities_are_shares_of_a_networks_own_layers():
    sparse = Densities(ifmap=0.5, weight=0.25, output=0.5)
    network = replace(NETWORK, densities={"conv": sparse})
    assert network.densities_of(CONV) == sparse and sparse.work == 0.0625
    assert network.densities_of(PRODUCT) == DENSE and DENSE.work == 1
    assert hash(network) == hash(NETWORK)
    with pytest.raises(WorkloadError, match=r"density of output must be 0 to 1, not 1\.5"):
        Densities(output=1.5)
    with pytest.raises(WorkloadError, match="density of ifmap must be 0 to 1, not nan"):
        Densities(ifmap=float("nan"))
    with pytest.raises(
        WorkloadError, match="no matrix layer is named 'convolution'; nearest: conv"
    ):
        replace(NETWORK, densities={"convolution": sparse})
