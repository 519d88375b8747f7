"""Many designs at once give what each gives by itself: cycles, energy, area."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from random_cores import SMALL, random_design
from random_layers import LATENCIES, random_layer

from archsim import EDGE_16, InputError, evaluate_many, simulate, simulate_many
from archsim.energy import account, price_design
from archsim.machine.design import Design
from archsim.machine.registry import with_settings
from rtl.cases import Draw
from workloads.layers import MatMul, Network, VectorWork


def network_of(draw: Draw) -> Network:
    """Layers of any shape, one of them twice, one of several steps, and work without products."""
    layers: list[Any] = [replace(random_layer(draw, *SMALL), name=f"c{at}") for at in range(2)]
    layers.append(replace(layers[0], name="again", batch=draw.whole(1, 3)))
    layers.append(MatMul(name="m", m=6, n=draw.whole(1, 40), k=draw.whole(1, 40), steps=3))
    work = VectorWork(name="v", operator="Relu", operations=9, input_elements=9, output_elements=9)
    layers.insert(1, work)
    return Network(name="n", source="test", layers=tuple(layers))


def priced(design: Design, technology: str) -> bool:
    """Whether the technology has figures for all of its components."""
    try:
        price_design(design, technology)
    except InputError:
        return False
    return True


@pytest.mark.parametrize("technology", ["45nm", "180nm", "eyeriss-relative"])
def test_many_designs_are_each_by_itself(technology: str) -> None:
    for number in range(2):
        draw = Draw(23, number)
        network = network_of(draw)
        given = [random_design(draw, LATENCIES) for _ in range(8)]
        wide = replace(EDGE_16, operand_bits=16, accumulator_bits=40)
        given += [EDGE_16, replace(EDGE_16, clock_hz=1e9), wide]
        designs = [design for design in given if priced(design, technology)]
        assert designs
        found = evaluate_many(designs, network, technology=technology)
        assert np.array_equal(found.cycles, simulate_many(designs, network)[0])
        for row, design in enumerate(designs):
            if not found.fits[row]:
                assert np.isnan(found.energy[row])
                assert np.isnan(found.edp[row])
                continue
            result = simulate(design, network)
            costs = account(result, technology)
            assert found.layers == costs.layers
            assert found.cycles[row].tolist() == list(costs.cycles)
            assert found.seconds[row] == pytest.approx(costs.seconds, rel=1e-12)
            assert found.energy[row] == pytest.approx(costs.total, rel=1e-9)
            assert found.edp[row] == pytest.approx(costs.edp, rel=1e-9)
            assert found.unit == costs.unit
            area = np.nan if costs.area_um2 is None else costs.area_um2
            assert found.area_um2[row] == pytest.approx(area, rel=1e-9, nan_ok=True)


def test_what_is_bounded_is_bounded_alike() -> None:
    """Compressed memories, whose rows are not counted without operands."""
    design = with_settings(EDGE_16, ["ifmap_memory.kind=boveda"])
    network = Network(name="n", source="test", layers=(MatMul(name="m", m=9, n=20, k=33),))
    costs = account(simulate(design, network), "45nm")
    assert costs.bounded
    found = evaluate_many([EDGE_16, design], network)
    assert found.energy[1] == pytest.approx(costs.total, rel=1e-9)
    assert found.energy[0] == pytest.approx(account(simulate(EDGE_16, network)).total, rel=1e-9)


def test_what_does_not_fit_and_what_is_refused() -> None:
    layer = MatMul(name="large", m=9, n=20, k=1 << 20)
    network = Network(name="n", source="test", layers=(layer,))
    small = with_settings(EDGE_16, ["accumulator_memory.capacity_bytes=512"])
    found = evaluate_many([EDGE_16, small], network)
    assert found.cycles.shape == (2, 1)
    assert (found.energy > 0).tolist() == found.fits.tolist()
    with pytest.raises(InputError, match="cycles do not depend on values, not scnn"):
        evaluate_many(["scnn"], network)
    with pytest.raises(InputError, match="no technology '46nm'"):
        evaluate_many([EDGE_16], network, technology="46nm")
    empty = evaluate_many([], network)
    assert (empty.cycles.shape, empty.energy.shape) == ((0, 1), (0,))
