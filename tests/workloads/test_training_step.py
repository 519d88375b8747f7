"""A training step as a network: which layers, how much of everything."""

import re
from typing import Any

import pytest
from written_networks import written

from workloads.builtin import builtin
from workloads.errors import WorkloadError
from workloads.layers import MatMul, Network
from workloads.training.step import training_network, training_passes, training_step
from workloads.training_record import PHASES

PARAMETERS = {  # trained values, torchvision's documentation; AlexNet with two towers: Caffe's
    "alexnet": 60965224,
    "densenet121": 7978856,
    "mobilenetv2": 3504872,
    "resnet18": 11689512,
    "resnet34": 21797672,
    "resnet50": 25557032,
    "squeezenet1.1": 1235496,
    "vgg16": 138357544,
}


def _training(network):
    assert network.training is not None
    return network.training


@pytest.mark.parametrize("name", PARAMETERS)
def test_as_many_trained_values_as_published(name):
    step = training_step(builtin(name))
    assert _training(step.network).trained_elements == PARAMETERS[name]
    assert step.network.weight_elements == builtin(name).weight_elements
    macs = {kind: sum(p.layer.macs for p in step.passes if p.kind == kind) for kind in PHASES}
    first = builtin(name).matrix_layers[0].macs
    assert macs["FP"] == macs["WG"] == builtin(name).macs
    assert 0.98 < macs["BP"] / (macs["FP"] - first) < 1.02


def test_the_order_of_a_small_step():
    small = written(
        "a = conv 4 3x3 +1 bias relu\n"
        "p = maxpool 2x2 /2\n"
        "b = conv 4 3x3 +1 bias\n"
        "s = add from p b\n"
        "f = fc 5\n"
        "y = Softmax\n"
    )
    step = training_network(small)
    kinds = [(_training(step).passes[one.name], one.name) for one in step.layers]
    assert kinds == [
        ("FP", "a"), ("FP", "p"), ("FP", "b"), ("FP", "s"), ("FP", "f"), ("FP", "y"),
        ("BP", "y/BP"), ("WG", "f/WG"), ("BP", "f/BP"), ("WG", "b/WG"), ("BP", "b/BP"),
        ("WG", "b/WG_bias"), ("BP", "p/BP_sum"), ("BP", "p/BP"), ("BP", "a/BP_relu"),
        ("WG", "a/WG"), ("WG", "a/WG_bias"), ("update", "update"),
    ]  # fmt: skip
    kept = _training(step)
    pooled = 2 * 4 * 4 * 4
    assert kept.kept_elements == 2 * 3 * 8 * 8 + 2 * pooled + 2 * 5
    assert kept.kept_flag_bits == 2 * 4 * 8 * 8 + 2 * pooled
    update: Any = step.layers[-1]
    assert kept.trained_elements == 4 * 27 + 4 + 4 * 36 + 4 + 64 * 5
    assert update.operations == 6 * kept.trained_elements


def test_frozen_layers_have_no_weight_gradient_and_end_the_way_back():
    small = written("a = conv 4 3x3\nb = conv 4 3x3\nc = conv 4 3x3\n")
    kinds = [(one.kind, one.of.name) for one in training_passes(small, frozen=["a"])]
    assert kinds[3:] == [("WG", "c"), ("BP", "c"), ("WG", "b")]
    kinds = [(one.kind, one.of.name) for one in training_passes(small, frozen=["b"])]
    assert kinds[3:] == [("WG", "c"), ("BP", "c"), ("BP", "b"), ("WG", "a")]
    with pytest.raises(
        WorkloadError, match="no layer with weights is named 'd'; there are a, b, c"
    ):
        training_passes(small, frozen=["d"])


def test_normalisation_stands_behind_its_convolution():
    small = written("a = conv 4 3x3 bias relu\nb = conv 4 3x3\n", normalised=True)
    step = training_network(small)
    names = [one.name for one in step.layers]
    assert names[:3] == ["a", "a/batch_norm", "b"]
    assert names[-4:] == ["a/BP_relu", "a/BP_batch_norm", "a/WG", "update"]
    assert _training(step).trained_elements == 4 * 27 + 2 * 4 + 4 * 36


def test_recurrent_layers_go_back_through_time():
    medium = builtin("lstm-zaremba-medium", parameters={"steps": 5, "batch": 4})
    parts: Any = {one.layer.name: one.layer for one in training_passes(medium)}
    assert parts["lstm2/steps/BP"].steps == 5
    assert (parts["lstm2/steps/BP"].n, parts["lstm2/steps/BP"].k) == (650, 2600)
    assert parts["lstm1/input/WG"].k == 20 and "lstm1/steps/BP" in parts


def test_a_gradient_that_is_not_defined_names_its_node():
    odd = written("a = conv 4 3x3\nodd = Round\nb = conv 4 3x3\n")
    said = "the gradient of node odd is not defined: its operator is Round; those with one are"
    with pytest.raises(WorkloadError, match=re.escape(said)):
        training_network(odd)
    bare = Network(name="bare", layers=(MatMul(name="fc", m=1, n=2, k=3),), source="a test")
    with pytest.raises(WorkloadError, match="bare: what its operators read is not known"):
        training_network(bare)


def test_flags_of_a_relu_are_kept_only_where_its_values_are_not():
    kept = _training(training_network(written("a = conv 4 3x3 relu\nb = conv 4 3x3 relu\n")))
    first, last = 2 * 4 * 6 * 6, 2 * 4 * 4 * 4
    assert kept.kept_elements == 2 * 3 * 8 * 8 + first  # b reads a, and nobody b
    assert kept.kept_flag_bits == last
