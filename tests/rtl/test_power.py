"""Power by module: reports that add up, and a core whose netlist computes what the model says."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from toggles import same_toggles
from typer.testing import CliRunner

from archsim.errors import InputError
from rtl.cli.power import register
from rtl.conformance import Case
from rtl.layer_case import layer_case
from rtl.synthesis.activity import rtl_activity
from rtl.synthesis.control import CORE, LAYER
from rtl.synthesis.flat_netlist import flatten
from rtl.synthesis.gates import Energy
from rtl.synthesis.liberty import DEFAULT_LIBRARY
from rtl.synthesis.power import ModulePower, PowerMeter, PowerReport, netlist_modules
from workloads.operands import synthetic

installed = pytest.mark.skipif(
    not DEFAULT_LIBRARY.is_file(), reason="no cell library: apt-get install qflow-tech-osu018"
)


def report() -> PowerReport:
    """A core with an array of two PEs, by hand."""

    def part(path: str, energy: float, toggles: int) -> ModulePower:
        return ModulePower(
            path=path,
            module="m",
            cells=1,
            registers=1,
            area_um2=1.0,
            leakage_mw=0.5,
            nets=4,
            toggles=toggles,
            energy=Energy(switching_pj=energy, clock_pj=1.0),
        )

    return PowerReport(
        design_name="core",
        library="tiny",
        workload="layer",
        cycles=10,
        macs=20,
        modules=(part("", 3, 8), part("array", 5, 0), part("array.pe_0", 7, 40)),
        verdict=None,
    )


def test_a_report_adds_up_the_hierarchy() -> None:
    found = report()
    assert found.energy().total_pj == 18
    assert found.energy("array").total_pj == 14
    assert found.energy_per_cycle_pj("array.pe_0") == pytest.approx(0.8)
    assert found.energy_per_mac_pj() == pytest.approx(18 / 20)
    assert found.activity() == pytest.approx(48 / (12 * 10))
    assert found.activity("array") == pytest.approx(40 / (8 * 10))
    rows = found.record()["modules"]
    assert [row["path"] for row in rows] == ["", "array", "array.pe_0"]
    assert rows[1]["energy_per_cycle_pj"] == pytest.approx(1.4)
    assert rows[0]["leakage_mw"] == pytest.approx(1.5)
    with pytest.raises(InputError) as caught:
        found.energy("arr")
    assert str(caught.value) == "the netlist has no instance 'arr'; in the core are array"


def command() -> typer.Typer:
    app = typer.Typer()

    @app.callback()
    def _options() -> None: ...  # pyright: ignore[reportUnusedFunction]

    register(app)
    return app


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--range-bits", "9"], "--range-bits must be from 2 to the design's 8, not 9"),
        (["--density", "2"], "--density must be above 0 and at most 1, not 2"),
        (["--layer", "conv1"], "--layer is of a network; name the network too"),
        (["--depth", "-1"], "--depth must not be negative, not -1"),
        (["resnet18", "--layer", "nothing"], None),
    ],
)
def test_the_verb_refuses(arguments: list[str], message: str | None) -> None:
    done = CliRunner().invoke(command(), ["power", "edge-16", *arguments])
    assert isinstance(done.exception, InputError)
    assert message is None or str(done.exception) == message


def test_the_verb_refuses_what_takes_hours() -> None:
    done = CliRunner().invoke(command(), ["power", "edge-16", "resnet18", "--layer", "conv1"])
    assert isinstance(done.exception, InputError)
    assert str(done.exception).startswith("layer conv1 takes ")
    assert str(done.exception).endswith(" cycles, or a smaller design")


@cache
def meter() -> PowerMeter:
    return PowerMeter.of(CORE)


def case(*, bits: int = 8, density: float = 1.0) -> Case:
    return layer_case(CORE, LAYER, synthetic(LAYER, bits=bits, density=density))


@cache
def measured(bits: int = 8, density: float = 1.0) -> PowerReport:
    return meter().run(case(bits=bits, density=density))


@installed
@pytest.mark.slow
def test_the_netlist_equals_the_model() -> None:
    verdict = measured().verdict
    assert verdict is not None
    assert verdict.equal, verdict.record()
    assert verdict.transfers == 705  # a command, 256 ifmap words, 5 times 64 weights, 128 outputs
    assert measured().macs == LAYER.macs


@installed
@pytest.mark.slow
def test_a_wrong_gate_is_found() -> None:
    """One of the array's NANDs as a NOR: the comparison that runs along sees it."""
    from rtl.synthesis.synthesize import synthesize

    netlist = synthesize(CORE).netlist
    head, mark, body = netlist.partition("module stationary_pe(")
    wrong = head + mark + body.replace("NAND2X1", "NOR2X1", 1)
    flat = flatten(netlist_modules(wrong), meter().library)
    broken = replace(meter(), flat=flat)
    verdict = broken.run(case()).verdict
    assert verdict is not None
    assert not verdict.equal


@installed
@pytest.mark.slow
def test_what_switches_less_costs_less() -> None:
    dense, sparse, narrow = measured(), measured(density=0.3), measured(bits=4)
    idle = meter().idle(200)
    for path in ("", "array"):  # an output stage sees sums, rescaled to as many bits
        assert sparse.energy_per_cycle_pj(path) < narrow.energy_per_cycle_pj(path)
        assert sparse.activity(path) < narrow.activity(path)
    for path in ("", "array", "output_stage"):
        assert narrow.energy_per_cycle_pj(path) < dense.energy_per_cycle_pj(path)
        assert idle.energy_per_cycle_pj(path) < sparse.energy_per_cycle_pj(path)
        assert idle.activity(path) < 0.001
        assert max(sparse.activity(path), narrow.activity(path)) < dense.activity(path)
    clocks = [one.energy().clock_pj / one.cycles for one in (dense, sparse, narrow, idle)]
    assert clocks == pytest.approx([clocks[0]] * 4)
    assert idle.energy_per_cycle_pj() == pytest.approx(clocks[0], rel=1e-3)
    assert np.isnan(idle.energy_per_mac_pj())


@installed
@pytest.mark.slow
def test_toggles_are_those_that_verilator_counts(tmp_path: Path) -> None:
    """Ports of every module are in RTL and netlist: their toggles agree but for the reset."""
    assert same_toggles(case(), meter().flat, tmp_path) > 10_000


@pytest.mark.slow
def test_activity_of_the_rtl() -> None:
    dense, sparse = rtl_activity(case()), rtl_activity(case(density=0.3))
    assert dense.verdict.equal
    assert sparse.verdict.equal
    assert dense.cycles == sparse.cycles
    for path in ("array.row_0.pe_0", "array", "output_stage"):
        assert 0 < sparse.toggles_per_cycle[path] < dense.toggles_per_cycle[path] < 1
    walks = [one.toggles_per_cycle["tile_walker"] for one in (dense, sparse)]
    assert walks[0] == pytest.approx(walks[1], rel=0.01)  # all but the command's scaling is alike


@installed
@pytest.mark.slow
@pytest.mark.parametrize("show", [json.loads, str])
def test_the_verb(show: Callable[[str], Any]) -> None:
    settings = [
        *("rows=4", "columns=4", "bias_words=16"),
        *(f"{name}_memory.capacity_bytes=4096" for name in ("ifmap", "weight", "accumulator")),
    ]
    arguments = ["power", "edge-16", *(f"--set={one}" for one in settings)]
    done = CliRunner().invoke(command(), [*arguments, *(["--json"] if show is json.loads else [])])
    assert done.exit_code == 0, done.output
    found = show(done.stdout)
    if show is json.loads:
        assert found["netlist_equals_model"] is True
        assert found["modules"][0]["path"] == ""
        assert found["modules"][0]["energy_per_mac_pj"] > 0
    else:
        assert "705 transfers compared: netlist and model are equal" in found
        assert "without wires, glitches, clock tree and memories" in found
