"""The built-in networks against published totals, and against ONNX models of the same nets."""

import sys
from collections import Counter
from dataclasses import replace

import pytest

from workloads.builtin import builtin, networks, published
from workloads.errors import WorkloadError
from workloads.layers import Conv2d, MatMul
from workloads.notation import Builder
from workloads.onnx_import import import_onnx

REQUIRED = (
    "alexnet",
    "bert-base",
    "densenet121",
    "googlenet",
    "lstm-zaremba-large",
    "lstm-zaremba-medium",
    "mobilenetv2",
    "resnet18",
    "resnet50",
    "squeezenet1.1",
    "vgg16",
    "vit-b16",
)
FIGURES = [(name, figure) for name in networks() for figure in published(name)]


def test_required_networks_exist_and_each_has_published_macs():
    assert set(REQUIRED) <= set(networks())
    for name in networks():
        assert any(figure["quantity"] == "macs" for figure in published(name)), name


@pytest.mark.parametrize(
    ("name", "figure"), FIGURES, ids=[f"{n}-{f['quantity']}-{f['value']:.4g}" for n, f in FIGURES]
)
def test_totals_equal_the_published_figures(name, figure):
    network = builtin(name)
    if figure["quantity"] == "macs":
        ours = network.macs
    else:
        assert figure["quantity"] == "weights"
        ours = network.weight_elements + figure.get("not_counted", 0)
    assert abs(ours - figure["value"]) <= figure["tolerance"] * figure["value"]
    assert figure["tolerance"] <= 0.06
    assert figure["source"]
    assert figure["reason"]


def calls(work):
    """Of Python and of C, that `work` makes: what it costs, however busy the machine is."""
    seen = Counter()
    sys.setprofile(lambda frame, event, argument: seen.update([event]))
    try:
        work()
    finally:
        sys.setprofile(None)
    return seen["call"] + seen["c_call"]


@pytest.mark.parametrize("name", networks())
def test_loading_costs_as_much_as_it_has_layers(name):
    """Some 70 to 190 calls a layer: 2 to 20 ms for a network."""
    network = builtin(name)
    assert calls(lambda: builtin(name)) < 1000 + 170 * len(network.layers)
    assert len(network.source) > 20


def shapes(network):
    """Matrix layers without names, biases and ReLUs, as a multiset."""
    return Counter(
        replace(layer, name="", bias=False, relu=False) for layer in network.matrix_layers
    )


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("resnet50", "light_resnet50"),
        ("densenet121", "light_densenet121"),
        ("googlenet-floor", "light_inception_v1"),
        ("squeezenet1.1", "light_squeezenet"),
    ],
)
def test_same_layers_as_the_onnx_model(name, file, light):
    ours, theirs = shapes(builtin(name)), shapes(import_onnx(light / f"{file}.onnx"))
    if name == "densenet121":
        fc = Counter([MatMul(name="", m=1, n=1000, k=1024)])
        conv = Counter([one_by_one(1024, 1000)])
        assert ours - theirs == fc
        assert theirs - ours == conv
    else:
        assert ours == theirs


def one_by_one(channels, filters):
    return Conv2d(
        name="",
        channels=channels,
        filters=filters,
        ifmap_height=1,
        ifmap_width=1,
        kernel_height=1,
        kernel_width=1,
    )


def test_alexnet_has_the_weights_of_the_onnx_model_and_the_papers_sizes(light):
    ours, theirs = builtin("alexnet"), import_onnx(light / "light_bvlc_alexnet.onnx")
    assert ours.weight_elements == theirs.weight_elements
    convs = [layer for layer in ours.layers if isinstance(layer, Conv2d)]
    assert [layer.ofmap_height for layer in convs] == [55, 27, 13, 13, 13]
    assert [layer.groups for layer in convs] == [1, 2, 1, 2, 2]


def test_bert_layer_holds_its_attention_products():
    network = builtin("bert-base")
    first = {x.name: x for x in network.matrix_layers if x.name.startswith("layer0/")}
    assert first["layer0/scores"] == MatMul(
        name="layer0/scores", m=384, n=384, k=64, batch=12, shared_weight=False
    )
    assert first["layer0/context"] == MatMul(
        name="layer0/context", m=384, n=64, k=384, batch=12, shared_weight=False
    )
    assert first["layer0/ffn1"].macs == 384 * 768 * 3072
    assert len(first) == 8


def test_parameters_scale_the_work_and_leave_the_weights():
    one, eight = builtin("resnet18"), builtin("resnet18", parameters={"batch": 8})
    assert eight.macs == 8 * one.macs
    assert eight.weight_elements == one.weight_elements
    half = builtin("bert-base", parameters={"tokens": 128})
    assert half.layers == builtin("bert-base-128").layers


def test_lstm_steps_follow_each_other_and_share_their_weight():
    network = builtin("lstm-zaremba-medium")
    steps = MatMul(name="lstm1/steps", m=35 * 20, n=2600, k=650, steps=35)
    assert [one for one in network.matrix_layers if one.name.startswith("lstm1/step")] == [steps]


def test_unknown_names_and_parameters():
    with pytest.raises(
        WorkloadError, match=r"^no built-in network is named 'resnet-50'; nearest: resnet50"
    ):
        builtin("resnet-50")
    with pytest.raises(WorkloadError, match=r"named 'qqq'; there are alexnet, bert-base"):
        builtin("qqq")
    with pytest.raises(WorkloadError, match=r"^vgg16: no parameter is named 'size'; there are bat"):
        builtin("vgg16", parameters={"size": 3})
    with pytest.raises(WorkloadError, match=r"^vgg16: batch must be positive, not 0$"):
        builtin("vgg16", parameters={"batch": 0})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x conv 3", "a line must read NAME = OPERATOR"),
        ("x = convolve 3", "no operator is named 'convolve'; there are"),
        ("x = conv 8 9x9", "dilated kernel height must be at most the padded ifmap height 8"),
        ("x = conv eight 3x3", r"must be whole numbers joined by \* and \+, not 'eight'"),
        ("x = Relu from y", "no tensor is named 'y' before this line"),
        ("x = @block", r"no block is named 'block'; there are \[\]"),
        ("x = conv {k} 3x3", "no value is given for {k}"),
        ("x = add", "add needs two or more tensors of one shape"),
        ("x = reshape 1,3,9,9", "a reshape must not make elements"),
        ("x = product 2 2 2 2 8", "must hold batch"),
    ],
)
def test_errors_in_the_notation_quote_the_line(line, message):
    builder = Builder(shape=(1, 3, 8, 8), blocks={}, where="networks/t.toml")
    with pytest.raises(WorkloadError, match=message) as caught:
        builder.read(line, {})
    assert str(caught.value).startswith(f"networks/t.toml: in line {line!r}: ")
