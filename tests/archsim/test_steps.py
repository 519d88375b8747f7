"""A layer of several steps is as many layers of one, in every figure and value."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from archsim import EDGE_16, simulate, simulate_many
from archsim.machine.registry import load_design, with_settings
from workloads.errors import WorkloadError
from workloads.layers import MatMul, Network
from workloads.operands import synthetic
from workloads.recurrent import Recurrence, recurrent_layers
from workloads.steps import each_step

LAYER = MatMul(name="cell", m=6, n=9, k=5, steps=3)
DESIGNS: dict[str, Any] = {
    "edge-16": EDGE_16,
    "tensorcore": load_design("volta"),
    "vsq": load_design("vsq-16"),
    "compressed": with_settings(EDGE_16, ["ifmap_memory.kind=boveda"]),
    "scnn": load_design("scnn-4pe"),
}


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("values", [True, False])
def test_steps_are_layers(name: str, values: bool) -> None:
    design = DESIGNS[name]
    if name == "scnn" and not values:
        pytest.skip("its cycles depend on values")
    operands = synthetic(LAYER, density=0.5, seed=4, bits=design.intake.source_bits)
    steps = list(each_step(LAYER, operands))
    assert [one.name for one, _ in steps] == ["cell/0", "cell/1", "cell/2"]
    apart = Network(name="apart", source="test", layers=tuple(one for one, _ in steps))
    whole = Network(name="whole", source="test", layers=(LAYER,))
    by_name = {one.name: kept for one, kept in steps} | {"cell": operands}
    given = (lambda layer: by_name[layer.name]) if values else None
    (one,) = simulate(design, whole, operands=given).layers
    many = simulate(design, apart, operands=given)
    assert one.cycles == many.cycles > 0
    assert (one.macs, one.serial_cycles) == (many.macs, many.serial_cycles)
    assert (dict(one.where), dict(one.bytes_moved)) == (many.where, many.bytes_moved)
    assert dict(one.actions) == dict(many.actions)
    assert (one.tiles, one.folds) == tuple(
        sum(getattr(step, figure) for step in many.layers) for figure in ("tiles", "folds")
    )
    if values and name != "vsq":  # which takes its coarse scales of the whole tensor
        ofmaps = [np.asarray(step.ofmap) for step in many.layers]
        assert np.array_equal(np.asarray(one.ofmap), np.concatenate(ofmaps, axis=1))
    if name in ("edge-16", "tensorcore"):
        assert simulate_many([design], whole)[0].tolist() == [[one.cycles]]


def recurrent(steps: int) -> Network:
    size = Recurrence(
        name="r", kind="LSTM", steps=steps, batch=2, inputs=8, hidden=16, directions=2
    )
    return Network(name="n", source="test", layers=recurrent_layers(size))


def test_any_length_costs_as_much() -> None:
    short, long = recurrent(10), recurrent(10**9)
    assert len(short.layers) == len(long.layers) == 6
    steps = [simulate(EDGE_16, one).layers[1].cycles for one in (short, recurrent(10**5))]
    assert steps[1] == 10**4 * steps[0]
    begin = time.process_time()
    simulate(EDGE_16, recurrent(10**5))
    assert time.process_time() - begin < 5


def test_steps_whose_cycles_depend_on_values_have_a_limit() -> None:
    layer = MatMul(name="r/steps", m=5000, n=2, k=2, steps=5000)
    network = Network(name="n", source="test", layers=(layer,))
    with pytest.raises(WorkloadError, match=r"^r/steps: steps whose cycles .* at most 4,096"):
        simulate("scnn-4pe", network, operands=synthetic)


def test_steps_have_as_many_rows_each() -> None:
    with pytest.raises(WorkloadError, match="4 steps must share the weight"):
        replace(LAYER, steps=4)
    with pytest.raises(WorkloadError, match=r"sequence lengths must be 2 numbers from 0 to 3"):
        Recurrence(name="r", kind="GRU", steps=3, batch=2, inputs=1, hidden=1, lengths=(1, 4))
