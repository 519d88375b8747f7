"""Operands drawn for a training step: one mask a tensor, wherever it is met."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from written_networks import written

from archsim.simulate import simulate
from workloads.errors import WorkloadError
from workloads.pooling import MaxPool
from workloads.training.activity import Activity
from workloads.training.drawn import DrawnStep
from workloads.training.pool_gradient import to_winners, winners
from workloads.training.step import training_step

TEXT = """
a = conv 8 3x3 +1 relu
p = maxpool 2x2 /2
b = conv 4 3x3 +1 relu
c = conv 4 3x3 +1 from p
s = concat from b c
d = conv 4 1x1 /2
f = fc 5
"""
ACTIVITY = Activity(density={"a": 0.3, "p": 0.5, "b": 0.4}, source="a test")


def drawn(text=TEXT, activity=ACTIVITY, **settings):
    step = training_step(written(text, (2, 3, 12, 12)), activity=activity)
    return step, DrawnStep(step=step, activity=activity, **settings)


def test_the_same_mask_in_all_passes():
    step, source = drawn()
    found: Any = {one.layer.name: source(one.layer) for one in step.passes}
    x = found["b"].ifmap
    assert np.array_equal(found["b/BP"].needed, x != 0)
    assert np.array_equal(found["c"].ifmap, x) and np.array_equal(found["c/BP"].needed, x != 0)
    assert found["a"].needed is None and "a/BP" not in found
    assert np.mean(x != 0) == pytest.approx(0.5, abs=0.001)
    forward, gradient = source.values("a"), found["a/WG"].weight
    assert np.mean(forward != 0) == pytest.approx(0.3, abs=0.001)
    dy = gradient[0].reshape(2, 12, 12, 8).transpose(0, 3, 1, 2)
    assert not dy[forward == 0].any()
    pooled = forward.reshape(2, 8, 6, 2, 6, 2).max(axis=(3, 5))
    assert np.array_equal(pooled, x)
    assert np.count_nonzero(dy) == np.count_nonzero(pooled)  # a winner a window
    places = winners(forward, MaxPool(window=(2, 2), stride=(2, 2)))
    won = to_winners(pooled != 0, places, forward.shape, MaxPool(window=(2, 2), stride=(2, 2)))
    assert np.array_equal(dy != 0, won)
    assert found["d/BP"].needed is None  # what c makes is no ReLU's
    assert np.array_equal(found["b/BP"].ifmap != 0, source.values("b") != 0)


def test_the_same_seed_gives_the_same_in_any_order():
    step, first = drawn()
    _, second = drawn()
    _, other = drawn(seed=1)
    for one in step.passes:
        assert np.array_equal(
            first(one.layer).ifmap, DrawnStep(step=step, activity=ACTIVITY)(one.layer).ifmap
        )
    layer = step.passes[-1].layer
    assert np.array_equal(second(layer).weight, first(layer).weight)
    assert not np.array_equal(other(layer).weight, first(layer).weight)


def test_densities_are_met_by_what_is_drawn():
    step, source = drawn(activity=replace(ACTIVITY, clustering=0.0))
    for one in step.passes:
        operands, expected = source(one.layer), step.densities[one.layer.name]
        padding = one.kind == "WG"
        assert np.mean(operands.ifmap != 0) == pytest.approx(
            expected.ifmap, abs=0.12 if padding else 0.05
        )
        needed = operands.needed
        assert (1 if needed is None else needed.mean()) == pytest.approx(expected.output, abs=0.01)


@pytest.mark.parametrize("design", ["edge-16", "volta", "vsq-16", "scnn-4pe"])
def test_every_machine_computes_the_three_passes(design):
    """Values too: those that are needed, and 0 elsewhere."""
    step, _ = drawn("a = conv 4 3x3 +1 relu\nb = conv 4 3x3 /2 +1 relu\nf = fc 3\n",
                    Activity(density={"a": 0.5, "b": 0.5}, source="a test"))  # fmt: skip
    source = DrawnStep(
        step=step, activity=Activity(density={"a": 0.5, "b": 0.5}, source="t"), bits=4
    )
    result = simulate(design, step.network, operands=source)
    assert result.training is not None
    by_pass = result.training.passes
    assert all(by_pass[kind].cycles > 0 for kind in ("FP", "BP", "WG"))
    assert sum(one.cycles for one in by_pass.values()) == result.cycles
    assert by_pass["update"].vector_operations == 6 * (4 * 27 + 4 * 36 + 3 * 144)
    assert result.training.footprint_bytes > 3 * (4 * 27 + 4 * 36)
    back: Any = {one.name: one for one in result.layers}["b/BP0.0"]
    assert not back.ofmap[source.values("a")[:, :, ::2, ::2] == 0].any() and back.ofmap.any()


def test_layers_of_others_are_refused():
    step, source = drawn()
    other = written("a = conv 2 3x3\n")
    with pytest.raises(WorkloadError, match="a is no layer of text:training"):
        source(other.matrix_layers[0])
    with pytest.raises(WorkloadError, match="no tensor behind a ReLU is named 'c'"):
        _ = drawn(activity=Activity(density={"c": 0.5}, source="t"))[0].network
    assert step.passes
