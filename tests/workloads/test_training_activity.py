"""Densities of the passes: the ideal columns, which are arithmetic on measured figures."""

import pytest
from written_networks import written

from workloads.builtin import builtin
from workloads.errors import WorkloadError
from workloads.named import shapes_named
from workloads.sparsity import Densities
from workloads.training.activity import Activity
from workloads.training.ideal import ideal_speedup
from workloads.training.measured import measured_activity, measured_epochs, measured_networks
from workloads.training.step import training_network

LAST = 0
MEAN = None
IDEALS = [  # MAC-weighted, perfect skipping, independent masks: by hand from the table
    ("vgg16", MEAN, {"FP": 3.78, "BP output": 3.84, "BP input": 7.68, "BP": 27.9, "WG": 25.9}),
    ("resnet34", 1, {"FP": 1.77, "BP output": 1.82, "BP input": 1.0, "BP": 1.82, "FP+BP": 1.79}),
    ("resnet34", MEAN, {"FP": 2.46, "BP output": 2.58, "BP": 2.58, "FP+BP": 2.52, "all": 2.50}),
    ("resnet34", LAST, {"FP": 2.46, "BP output": 2.59, "FP+BP": 2.52}),
    ("resnet50", 1, {"FP": 1.75, "BP output": 1.79, "BP input": 1.0, "FP+BP": 1.77}),
    ("resnet50", MEAN, {"FP": 2.45, "BP output": 2.56, "FP+BP": 2.51, "all": 2.49}),
    ("resnet50", LAST, {"FP": 2.53, "BP output": 2.65, "FP+BP": 2.59}),
]


@pytest.mark.parametrize(("name", "epoch", "columns"), IDEALS)
def test_ideal_columns(name, epoch, columns):
    epoch = measured_epochs(name)[-1] if epoch == LAST and epoch is not None else epoch
    step = training_network(builtin(name), activity=measured_activity(name, epoch))
    ours = {
        "FP": ideal_speedup(step, "FP"),
        "BP": ideal_speedup(step, "BP"),
        "BP output": ideal_speedup(step, "BP", skip=("output",)),
        "BP input": ideal_speedup(step, "BP", skip=("ifmap", "weight")),
        "WG": ideal_speedup(step, "WG"),
        "FP+BP": ideal_speedup(step, "FP", "BP"),
        "all": ideal_speedup(step, "FP", "BP", "WG"),
    }
    assert {key: ours[key] for key in columns} == pytest.approx(columns, rel=0.02)


def test_a_quarter_of_the_places_under_a_max_pooling_has_a_gradient():
    step = training_network(
        builtin("vgg16"), activity=Activity(density={"conv1_2": 0.5, "pool1": 0.8}, source="a test")
    )
    assert step.densities["conv1_2/BP"].ifmap == pytest.approx(0.2)
    assert step.densities["conv1_2/WG"] == Densities(ifmap=1, weight=0.2)
    assert step.densities["conv2_1/BP"].output == 0.8
    assert step.densities["conv1_2/BP"].output == 1  # of conv1_1 nothing is known


def test_a_normalisation_destroys_zeros_and_the_mask_survives():
    step = training_network(builtin("resnet18"), activity=Activity.even(builtin("resnet18"), 0.5))
    found = step.densities["res2.1/conv2/BP"]
    assert (found.ifmap, found.output) == (1.0, 0.5)


def test_residual_sums_pass_masks_on_where_nothing_is_normalised():
    """dy of a branch has the zeros of the ReLU behind the sum."""
    small = written(
        "a = conv 4 3x3 +1 relu\nb = conv 4 3x3 +1\ns = add from a b\nr = Relu\nc = conv 4 1x1\n"
    )
    step = training_network(small, activity=Activity(density={"a": 0.5, "r": 0.25}, source="t"))
    assert step.densities["b/BP"] == Densities(ifmap=0.25, output=0.5)
    assert step.densities["a/WG"].weight == 0.5  # through b all of a that is not 0 has a gradient
    assert step.densities["c/BP"].output == 0.25


def test_what_cannot_be_is_refused():
    with pytest.raises(WorkloadError, match=r"density of conv1 must be 0 to 1, not 1\.2"):
        Activity(density={"conv1": 1.2}, source="a test")
    with pytest.raises(WorkloadError, match="no tensor behind a ReLU is named 'fc'; there are"):
        training_network(builtin("resnet18"), activity=Activity(density={"fc": 0.5}, source="t"))
    with pytest.raises(WorkloadError, match="no network whose training was measured is named"):
        measured_activity("resnet18")
    with pytest.raises(WorkloadError, match="vgg16: the training was measured at the epochs 1, 2"):
        measured_activity("vgg16", 73)


def test_a_step_is_asked_for_behind_a_name():
    step = shapes_named("resnet34:training,batch=2,epoch=10")
    assert step.name == "resnet34:training" and "epoch 10: andygongyb" in step.source
    tenth = measured_activity("resnet34", 10).density
    assert step.densities["res2.1/conv2"].ifmap == tenth["res2.1/conv1"]
    assert not shapes_named("alexnet:training").densities
    assert shapes_named("alexnet:training,density=30").densities["conv4"].ifmap == 0.3
    frozen = shapes_named("alexnet:training,frozen=2")
    names = {layer.name for layer in frozen.layers}
    assert "conv3/WG" in names and not {"conv2/WG", "conv3/BP"} & names
    assert set(measured_networks()) == {"vgg16", "resnet34", "resnet50"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("alexnet:training=2", "alexnet: training stands alone: alexnet:training, not training=2"),
        ("alexnet:epoch=2", "alexnet: epoch is of training: say alexnet:training,epoch="),
        ("alexnet:training,epoch=2", "no network whose training was measured is named 'alexnet'"),
        ("alexnet:training,density=101", "alexnet: density is in percent, 0 to 100, not 101"),
        ("alexnet:training,frozen=8", "frozen must be less than its 8 layers with weights, not 8"),
        ("alexnet:training,density=1,epoch=1", "alexnet: say density or epoch, not both"),
        ("alexnet:training,steps=1", "alexnet: no parameter is named 'steps'; there are batch"),
        ("llama3-8b:training", "llama3-8b: the training of language models is not known here"),
    ],
)
def test_wrong_requests_are_refused(text, said):
    with pytest.raises(WorkloadError, match=said):
        shapes_named(text)
