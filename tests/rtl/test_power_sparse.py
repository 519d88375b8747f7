"""Power of the sparse core: its netlist computes what its model says, and zeros cost less."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Call, good, refused
from toggles import same_toggles

from archsim.errors import InputError
from archsim.layer.intake import Drawing
from archsim.machines.scnn.dense import Dcnn
from archsim.machines.scnn.design import Scnn
from rtl.conformance import Case
from rtl.layer_case import layer_case, random_layer
from rtl.synthesis import power
from rtl.synthesis.flat_netlist import flatten
from rtl.synthesis.liberty import DEFAULT_LIBRARY
from rtl.synthesis.power import PowerMeter, PowerReport, netlist_modules
from rtl.synthesis.synthesize import synthesize
from workloads.layers import MatMul

installed = pytest.mark.skipif(
    not DEFAULT_LIBRARY.is_file(), reason="no cell library: apt-get install qflow-tech-osu018"
)

PAIR = Scnn(
    grid_rows=1, grid_columns=2, weight_lanes=2, ifmap_lanes=2, banks=4, bank_queue=2,
    operand_bits=8, accumulator_bits=20, iaram_bytes=400, oaram_bytes=400,
)  # fmt: skip
"""Two PEs, which share halos."""
SETTINGS = (
    "grid_rows=1", "grid_columns=2", "weight_lanes=2", "ifmap_lanes=2", "banks=4", "bank_queue=2",
    "operand_bits=8", "accumulator_bits=20", "iaram_bytes=400", "oaram_bytes=400",
)  # fmt: skip
WORDS = ("power", "scnn", *(f"--set={one}" for one in SETTINGS))


def test_large_cores_are_refused_before_they_are_synthesised(archsim: Call) -> None:
    said = refused(archsim("power", "scnn-4pe"))
    assert said == (
        "scnn-4pe has at least 25,821,184 gates, and netlists of at most 2,000,000 are simulated; "
        "choose a smaller design"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set=barrier=channel"], "barrier must be group in the RTL of scnn, not channel"),
        (["--range-bits", "9"], "--range-bits must be from 2 to the design's 6, not 9"),
        (["--layer", "conv1"], "--layer is of a network; name the network too"),
    ],
)
def test_the_verb_refuses(archsim: Call, arguments: list[str], message: str) -> None:
    assert refused(archsim(*WORDS, *arguments)) == message


def test_what_takes_hours_is_refused(archsim: Call) -> None:
    large = ("--set=iaram_bytes=4096", "--set=oaram_bytes=4096")
    said = refused(archsim(*WORDS, *large, "resnet18", "--layer", "conv1"))
    assert said.startswith("layer conv1 takes ")
    assert said.endswith(" cycles, or a smaller design")


def test_machines_without_rtl_are_refused() -> None:
    other: Any = Dcnn()
    known = "; known: scnn, sparsetrain, systolic, tensorcore, vsq"
    layer = random_layer(PAIR)
    for ask in (
        lambda: random_layer(other),
        lambda: layer_case(other, layer, PAIR.intake.synthetic(layer, Drawing())),
    ):
        with pytest.raises(InputError) as caught:
            ask()
        assert str(caught.value) == f"no RTL for designs of kind 'dcnn'{known}"


@cache
def meter() -> PowerMeter:
    return PowerMeter.of(PAIR)


def case(density: float = 1.0) -> Case:
    layer = random_layer(PAIR)
    return layer_case(PAIR, layer, PAIR.intake.synthetic(layer, Drawing(density=density)))


@cache
def measured(density: float = 1.0) -> PowerReport:
    return meter().run(case(density))


def assert_equal(found: PowerReport) -> None:
    assert found.verdict is not None
    assert found.verdict.equal, found.verdict.record()


@installed
@pytest.mark.slow
@pytest.mark.parametrize("density", [1.0, 0.4])
def test_the_netlist_equals_the_model(density: float) -> None:
    found = measured(density)
    assert_equal(found)
    assert found.cycles == case(density).answer().cycles
    assert found.macs == random_layer(PAIR).macs
    assert found.record()["netlist_equals_model"] is True


@installed
@pytest.mark.slow
def test_a_layer_of_several_passes() -> None:
    layer = MatMul(name="products", m=5, n=3, k=4, batch=2, shared_weight=False)
    drawn = PAIR.intake.synthetic(layer, Drawing(density=0.5))
    found = meter().run(layer_case(PAIR, layer, drawn))
    assert_equal(found)
    assert found.workload == "layer products"


@installed
@pytest.mark.slow
def test_a_wrong_gate_is_found() -> None:
    """One NAND of the multipliers and banks of a PE as a NOR."""
    netlist = synthesize(PAIR).netlist
    head, mark, body = netlist.partition("module accumulator_banks(")
    assert mark
    wrong = head + mark + body.replace("NAND2X1", "NOR2X1", 1)
    broken = replace(meter(), flat=flatten(netlist_modules(wrong), meter().library))
    verdict = broken.run(case()).verdict
    assert verdict is not None
    assert not verdict.equal


@installed
@pytest.mark.slow
def test_toggles_are_those_that_verilator_counts(tmp_path: Path) -> None:
    """Ports of every module are in RTL and netlist: their toggles agree but for the reset."""
    assert same_toggles(case(0.4), meter().flat, tmp_path) > 5_000


@installed
@pytest.mark.slow
def test_zeros_cost_less() -> None:
    """Fewer pairs, so fewer cycles; and an idle core only spends its clock's energy."""
    dense, sparse, idle = measured(), measured(0.4), meter().idle(200)
    assert sparse.cycles < dense.cycles
    for path in ("", "pe_0_0", "pe_0_1", "weight_decoder"):
        assert sparse.energy(path).total_pj < dense.energy(path).total_pj
        assert idle.energy_per_cycle_pj(path) < sparse.energy_per_cycle_pj(path)
    clocks = [one.energy().clock_pj / one.cycles for one in (dense, sparse, idle)]
    assert clocks == pytest.approx([clocks[0]] * 3)
    assert np.isnan(idle.energy_per_mac_pj())


@installed
@pytest.mark.slow
def test_too_many_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known after the synthesis: fewer than that cannot be, and the netlist is not read."""
    gates = synthesize(PAIR).synthesis.total.cells
    monkeypatch.setattr(power, "MOST_GATES", gates - 1)
    power.refuse_hopeless(case())
    with pytest.raises(InputError) as caught:
        PowerMeter.of(PAIR)
    assert str(caught.value) == (
        f"scnn-1x2x2x2 has {gates:,} gates, and netlists of at most {gates - 1:,} are simulated; "
        "choose a smaller design"
    )


@installed
@pytest.mark.slow
@pytest.mark.parametrize("show", [json.loads, str])
def test_the_verb(archsim: Call, show: Callable[[str], Any]) -> None:
    arguments = [*WORDS, "--density", "0.4", *(["--json"] if show is json.loads else [])]
    found = show(good(archsim(*arguments)))
    if show is json.loads:
        assert found["netlist_equals_model"] is True
        assert found["macs"] == random_layer(PAIR).macs
        assert {"pe_0_0", "pe_0_1", "weight_decoder"} <= {one["path"] for one in found["modules"]}
    else:
        assert "scnn-1x2x2x2 on osu018_stdcells: layer random" in found
        assert "netlist and model are equal" in found
