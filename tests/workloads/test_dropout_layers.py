"""Dropout of recurrent networks as layers: what shrinks, by how much, and what is refused."""

from typing import Any

import numpy as np
import pytest
from written_networks import written

from workloads.builtin import builtin
from workloads.errors import WorkloadError
from workloads.named import shapes_named
from workloads.operands import operand_shapes
from workloads.recurrent import Recurrence, recurrent_layers
from workloads.training.activity import Activity
from workloads.training.drawn import DrawnStep
from workloads.training.dropout import Dropout
from workloads.training.pass_layer import Tensors
from workloads.training.step import training_network, training_step

SMALL = "one = lstm 6\ntwo = gru 5\nend = linear 3 dropout\n"


def _step(**settings):
    return training_step(written(SMALL, (4, 2, 8)), dropout=Dropout(**settings))


def _sizes(step, name):
    return {p.layer.name: (p.layer.m, p.layer.n, p.layer.k, p.layer.steps)
            for p in step.passes if p.of.name == name}  # fmt: skip


def test_case_three_shrinks_a_dimension_of_each_pass_step_by_step():
    step = _step(case=3, percent=50, recurrent=True, seed=1)
    for name, units, gates in (("one/input", 8, 24), ("two/steps", 5, 15), ("end", 5, 3)):
        kept = [len(one) for one in step.sites[name].kept]
        assert len(kept) == 4 and all(0 < one < units for one in kept)
        sizes = _sizes(step, name)
        for t, count in enumerate(kept):
            assert sizes[f"{name}/{t}"] == (2, gates, count, 1)
            assert sizes[f"{name}/WG{t}"] == (count, gates, 2, 1)
            if name != "one/input":
                assert sizes[f"{name}/BP{t}"] == (2, count, gates, 1)
        assert len(sizes) == (8 if name == "one/input" else 12)


def test_case_four_shrinks_them_once_for_all_steps():
    step = _step(case=4, percent=50, recurrent=True, seed=1)
    (kept,) = step.sites["two/steps"].kept
    assert _sizes(step, "two/steps") == {
        "two/steps": (8, 15, len(kept), 4),
        "two/steps/BP": (8, len(kept), 15, 4),
        "two/steps/WG": (len(kept), 15, 8, 1),
    }
    assert 0 < len(kept) < 5


@pytest.mark.parametrize("case", [1, 2])
def test_scattered_zeros_shrink_nothing_but_are_shares(case):
    step = _step(case=case, percent=50, seed=1)
    whole = training_step(written(SMALL, (4, 2, 8)))
    assert [one.layer for one in step.passes] == [one.layer for one in whole.passes]
    share = step.sites["two/input"].density
    assert 0.1 < share < 0.9
    assert step.densities["two/input"].ifmap == step.densities["two/input/WG"].ifmap == share
    assert step.densities["two/input/BP"].output == share
    assert "two/steps" not in step.densities


def test_masks_are_drawn_and_repeated_as_their_case_says():
    shapes = {1: (4, 2, 6), 2: (1, 2, 6), 3: (4, 1, 6), 4: (1, 1, 6)}
    for case, shape in shapes.items():
        site = _step(case=case, percent=50, seed=3).sites["two/input"]
        assert site.flags.shape == shape and site.mask.shape == (4, 2, 6)
        assert site.kept_elements == np.count_nonzero(site.mask)
        assert site.scale == 2.0
    first, second = (_step(case=3, percent=50, seed=s).sites["two/input"].flags for s in (3, 4))
    assert not np.array_equal(first, second)
    many = training_step(builtin("lstm-zaremba-medium"), dropout=Dropout(case=3, percent=65))
    assert abs(many.sites["lstm2/input"].density - 0.35) < 0.01


def test_nothing_dropped_step_by_step_multiplies_as_often():
    whole, steps = (
        shapes_named(f"lstm-tagging:training{more}") for more in ("", ",dropout=3,rate=0")
    )
    assert whole.macs == steps.macs and len(steps.layers) > len(whole.layers)


def test_vector_work_of_dropping_is_counted():
    step = _step(case=3, percent=50, recurrent=True, seed=1)
    layers: Any = {one.name: one for one in step.network.layers}
    site = step.sites["two/steps"]
    for name in ("two/steps/dropout", "two/steps/BP_dropout"):
        assert layers[name].operations == site.kept_elements
    made = 15 * sum(len(one) for one in site.kept)
    assert layers["two/steps/WG_sum"].input_elements == made
    assert layers["two/steps/WG_sum"].operations == max(made - 75, 0)
    without = _step(case=3, percent=50, seed=1).network.training
    both = step.network.training
    assert both is not None and without is not None
    flags = both.kept_flag_bits - without.kept_flag_bits
    assert flags == 4 * (6 + 5)


@pytest.mark.parametrize("case", [1, 3])
def test_drawn_operands_have_one_mask_in_all_passes(case):
    step = _step(case=case, percent=50, seed=1)
    drawn = DrawnStep(step=step, activity=Activity.even(step.backward.network, 1.0))
    flags = step.sites["two/input"].mask.reshape(1, 8, 6)
    for one in step.passes:
        if one.of.name != "two/input":
            continue
        operands, where = drawn(one.layer), Tensors(x=flags, w=np.ones((1, 6, 15), bool))
        assert operands.ifmap.shape == operand_shapes(one.layer)[0]
        if one.kind == "BP":
            wanted = one.part(flags) if case == 1 else None
            if wanted is None or operands.needed is None:
                assert operands.needed is wanted
            else:
                assert np.array_equal(operands.needed, wanted)
        else:
            assert np.array_equal(operands.ifmap != 0, one.ifmap(where))


@pytest.mark.parametrize(
    ("name", "error"),
    [
        (
            "lstm-tagging:training,dropout=5",
            "dropout is one of the cases 1 random within the batch",
        ),
        (
            "lstm-tagging:training,dropout=3,rate=100",
            "of percent, 0 to 99, not 100: at 100 nothing",
        ),
        ("resnet18:training,dropout=3,rate=50", "resnet18: dropout is of recurrent layers (LSTM"),
        ("resnet18:training,dropout=3", "resnet18: say the rate of dropout in percent: dropout=3,"),
        ("lstm-tagging:training,rate=50", "rate is of dropout: say lstm-tagging:training,dropout="),
        ("lstm-tagging:recurrent", "lstm-tagging: recurrent is of training: say lstm-tagging:tr"),
        ("lstm-tagging:training,dropout=3,recurrent=2", "recurrent stands alone, or is 0 or 1"),
        ("lstm-tagging:training,recurrent", "recurrent is of dropout: say lstm-tagging:training,"),
        ("resnet18:training,training", "resnet18: training is said twice"),
        (
            "resnet18:training,densty=50",
            "there are batch, epoch, density, clustering, frozen",
        ),
        ("resnet18:training,density=-1", "not 'density=-1': numbers are whole, without a sign"),
        ("lstm-tagging:training,dropout=case3", "takes NAME:KEY=NUMBER,KEY=NUMBER, not 'dropout="),
    ],
)
def test_refusals_say_what_would_be_right(name, error):
    with pytest.raises(WorkloadError) as caught:
        shapes_named(name)
    assert error in str(caught.value) and "\n" not in str(caught.value)


def test_sequences_that_end_apart_are_refused():
    from workloads.flow import Node
    from workloads.layers import Network

    layers = recurrent_layers(
        Recurrence(name="r", kind="LSTM", steps=4, batch=2, inputs=3, hidden=5, lengths=(4, 2))
    )
    node = Node(name="r", operator="LSTM", reads=("input",), shape=(4, 2, 5),
                layers=tuple(one.name for one in layers))  # fmt: skip
    network = Network(name="apart", layers=layers, source="a test", flow=(node,))
    with pytest.raises(WorkloadError, match="dropout of r is not defined: its sequences end at"):
        training_network(network, dropout=Dropout(case=3, percent=50))
