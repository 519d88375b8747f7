"""Netlists simulated gate by gate: right values, counted toggles, and energies by hand."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from energy_models.errors import EnergyError
from rtl.synthesis.flat_netlist import flatten
from rtl.synthesis.gate_simulation import GateSimulation
from rtl.synthesis.gates import Energy, Gates
from rtl.synthesis.liberty import CellLibrary, read_library

LIBRARY = """
library(tiny) {
  nom_voltage : 2.0;
  cell(INV) { area : 1; cell_leakage_power : 1; pin(A) { direction : input; capacitance : 0.5; }
    pin(Y) { direction : output; function : "!A";
      internal_power() { rise_power(scalar) { values("3"); } fall_power(scalar) { values("1"); } }
  } }
  cell(AND) { area : 2; pin(A) { direction : input; capacitance : 0.25; }
    pin(B) { direction : input; capacitance : 0.75; }
    pin(Y) { direction : output; function : "A B"; } }
  cell(DFF) { area : 5; ff(IQ, IQN) { next_state : "D"; clocked_on : "CK"; }
    pin(CK) { direction : input; capacitance : 0.125; clock : true;
      internal_power() { rise_power(scalar) { values("2"); } fall_power(scalar) { values("4"); } }
    }
    pin(D) { direction : input; capacitance : 0.5; }
    pin(Q) { direction : output; function : "IQ"; }
    pin(QN) { direction : output; function : "IQN"; } }
  cell(LATCH) { area : 3; latch(IQ, IQN) { data_in : "D"; enable : "G"; }
    pin(G) { direction : input; } pin(D) { direction : input; }
    pin(Q) { direction : output; function : "IQ"; } }
  cell(DFFR) { area : 6; ff(IQ, IQN) { next_state : "D"; clocked_on : "CK"; clear : "!R"; }
    pin(CK) { direction : input; } pin(D) { direction : input; } pin(R) { direction : input; }
    pin(Q) { direction : output; function : "IQ"; } }
  cell(TRI) { area : 1; pin(A) { direction : input; } pin(E) { direction : input; }
    pin(Y) { direction : output; function : "A"; three_state : "!E"; } }
}
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> CellLibrary:
    path = tmp_path_factory.mktemp("library") / "tiny.lib"
    path.write_text(LIBRARY)
    return read_library(path)


def module(ports: dict[str, tuple[str, list[Any]]], cells: dict[str, Any]) -> dict[str, Any]:
    return {
        "ports": {name: {"direction": way, "bits": bits} for name, (way, bits) in ports.items()},
        "cells": {
            name: {"type": kind, "connections": {pin: list(bits) for pin, bits in nets.items()}}
            for name, (kind, nets) in cells.items()
        },
    }


CHAIN = {
    "top": module(
        {"clk": ("input", [2]), "a": ("input", [3]), "o": ("output", [6, "1"])},
        {
            "one": ("INV", {"A": [3], "Y": [4]}),
            "store": ("DFF", {"CK": [2], "D": [4], "Q": [5], "QN": [7]}),
            "both": ("AND", {"A": [5], "B": [4], "Y": [6]}),
        },
    )
}
"""o[0] = not a, and not a of the cycle before; o[1] = 1."""


def test_values_and_toggles_of_a_chain(tiny: CellLibrary) -> None:
    flat = flatten(CHAIN, tiny)
    simulation = GateSimulation(flat)
    simulation.settle()
    simulation.skip()
    seen: list[int] = []
    for a in (0, 0, 1, 0, 0):
        simulation.edge()
        simulation.drive("a", a)
        simulation.settle()
        simulation.count()
        seen.append(simulation.read("o"))
    # not a: 1 1 0 1 1, and its register one cycle later, from the settled start: 1 1 1 0 1
    assert seen == [3, 3, 2, 2, 3]
    nets = flat.instances[0].nets
    assert {net: int(simulation.toggles[nets[net]]) for net in (2, 3, 4, 5, 6, 7)} == {
        2: 0,
        3: 2,
        4: 2,
        5: 3,
        6: 3,
        7: 3,
    }


def test_energy_by_hand(tiny: CellLibrary) -> None:
    gates = Gates.of(CHAIN["top"], tiny)
    assert (gates.area_um2, gates.registers) == (8, 1)
    assert gates.leakage_mw == pytest.approx(1e-6)
    half_square = 2.0**2 / 2
    costs = gates.toggle_energies
    assert costs[3] == Energy(switching_pj=0.5 * half_square)
    assert costs[4] == Energy(switching_pj=(0.5 + 0.75) * half_square, internal_pj=2.0)
    assert costs[5] == Energy(switching_pj=0.25 * half_square)
    assert costs[6] == Energy()
    assert costs[2] == Energy(clock_pj=0.125 * half_square + 3.0)
    toggles = np.array([{2: 2, 4: 3, 5: 1}.get(int(net), 0) for net in gates.costs[0]], np.float64)
    found = gates.energy(toggles)
    assert found.clock_pj == pytest.approx(2 * 3.25)
    assert found.internal_pj == pytest.approx(6.0)
    assert found.switching_pj == pytest.approx(3 * 2.5 + 0.5)
    assert found.total_pj == pytest.approx(6.5 + 6 + 8)


def test_ports_that_are_constants_inputs_or_each_other(tiny: CellLibrary) -> None:
    inner = module(
        {
            "a": ("input", [2, 3]),
            "same": ("output", [2]),
            "one": ("output", ["1"]),
            "x": ("output", [4]),
            "y": ("output", [4]),
        },
        {"not": ("INV", {"A": [3], "Y": [4]})},
    )
    top = module(
        {"a": ("input", [2, 3]), "o": ("output", [10, 11, 12, 13])},
        {
            "box": (
                "inner",
                {"a": [2, 3], "same": [10], "one": [11], "x": [12], "y": [13]},
            )
        },
    )
    simulation = GateSimulation(flatten({"top": top, "inner": inner}, tiny))
    for a, expected in ((0b00, 0b1110), (0b01, 0b1111), (0b10, 0b0010), (0b11, 0b0011)):
        simulation.drive("a", a)
        simulation.settle()
        assert simulation.read("o") == expected


@pytest.mark.parametrize("transparent", [False, True])
@given(steps=st.lists(st.tuples(st.booleans(), *[st.integers(0, 3)] * 3), max_size=30))
def test_memories(
    tiny: CellLibrary, transparent: bool, steps: list[tuple[bool, int, int, int]]
) -> None:
    names = {
        "clk": [2],
        "write": [3],
        "write_address": [4, 5],
        "write_data": [6, 7],
        "read_address": [8, 9],
        "read_data": [10, 11],
    }
    top = module(
        {n: ("output" if n == "read_data" else "input", bits) for n, bits in names.items()},
        {"words": ("sram", names)},
    )
    top["cells"]["words"]["parameters"] = {"DEPTH": "11", "TRANSPARENT": str(int(transparent))}
    simulation = GateSimulation(flatten({"top": top}, tiny))
    words, shown = [0] * 3, 0
    for write, to, data, place in steps:
        for name, value in zip(
            ("write", "write_address", "write_data", "read_address"),
            (int(write), to, data, place),
            strict=True,
        ):
            simulation.drive(name, value)
        simulation.settle()
        assert simulation.read("read_data") == shown
        simulation.edge()
        shown = words[place] if place < 3 else 0
        if write and to < 3:
            words[to] = data
            if transparent and to == place:
                shown = data


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            {"x": ("INV", {"A": [4], "Y": [3]}), "y": ("INV", {"A": [3], "Y": [4]})},
            "the netlist has a combinational loop: it cannot be simulated",
        ),
        (
            {"x": ("LATCH", {"G": [2], "D": [3], "Q": [4]})},
            "LATCH is a latch: it cannot be simulated here",
        ),
        (
            {"x": ("DFF", {"CK": [3], "D": [2], "Q": [4]})},
            "DFF is not clocked by the rising edge of clk: it cannot be simulated here",
        ),
        (
            {"x": ("DFFR", {"CK": [2], "D": [3], "R": [3], "Q": [4]})},
            "DFFR is forced by a signal: it cannot be simulated here",
        ),
        (
            {"x": ("DFFR", {"CK": [2], "D": [3], "R": ["0"], "Q": [4]})},
            "DFFR is forced by a signal: it cannot be simulated here",
        ),
        (
            {"x": ("TRI", {"A": [3], "E": [2], "Y": [4]})},
            "cell TRI has no plain function at Y: it cannot be simulated",
        ),
        ({"x": ("other", {"A": [3]})}, "x: the netlist has no module other"),
        ({"x": ("$_AND_", {"A": [3]})}, "cell x is a $_AND_, which tiny has no cell for"),
    ],
)
def test_netlists_that_are_refused(tiny: CellLibrary, cells: dict[str, Any], message: str) -> None:
    top = module({"clk": ("input", [2]), "a": ("input", [3])}, cells)
    with pytest.raises(EnergyError) as caught:
        flatten({"top": top}, tiny)
    assert str(caught.value) == message


def test_a_reset_that_is_never_on_is_no_obstacle(tiny: CellLibrary) -> None:
    cells = {"x": ("DFFR", {"CK": [2], "D": [3], "R": ["1"], "Q": [4]})}
    top = module({"clk": ("input", [2]), "a": ("input", [3]), "o": ("output", [4])}, cells)
    simulation = GateSimulation(flatten({"top": top}, tiny))
    simulation.drive("a", 1)
    simulation.settle()
    simulation.edge()
    simulation.settle()
    assert simulation.read("o") == 1
