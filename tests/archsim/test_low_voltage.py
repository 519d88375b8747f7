"""The best voltages of a machine's memories: against all combinations, and as the command says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from command_line import Call, good, refused
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.machines.scnn.design import SCNN_ISCA17
from archsim.machines.systolic.design import EDGE_16
from archsim.machines.vsq.design import VSQ_16
from archsim.robust.low_voltage import CHANCE_PERCENT, Point, Series, at_low_voltage
from archsim.robust.machine_points import SHIPPED, Energy, MachinePoints
from archsim.robust.model import shipped
from archsim.robust.placed import VOLTAGES, At, able, memory_of_part, of_operands
from energy_models.voltage import bit_error_rate, sram_energy_factor

NOMINAL_PJ = 1000.0
CLEAN = 2.0


@dataclass
class Drawn:
    """Points by a rule: errors grow with every memory's rate, each memory saves by its voltage."""

    seed: int
    asked: list[tuple[At, ...]] = field(default_factory=list[tuple[At, ...]])

    def _of(self, memory: str, form: str) -> tuple[float, float]:
        names = ["ifmap", "weight", "plain", "boveda", "secded"]
        draws = np.random.default_rng([self.seed, names.index(memory), names.index(form)])
        return float(10 ** draws.uniform(0, 5)), float(draws.uniform(-20, 200))

    def errors(self, design: Any, at: Sequence[At] = ()) -> list[float]:
        self.asked.append(tuple(at))
        more = sum(self._of(one.memory, one.form)[0] * bit_error_rate(one.voltage) for one in at)
        return [min(CLEAN + more, 90.0)] * 2

    def energy(self, design: Any, at: Sequence[At] = ()) -> Energy:
        own = {"ifmap": 300.0, "weight": 300.0}
        for one in at:
            base = self._of(one.memory, one.form)[1]
            own[one.memory] -= base * (1 - sram_energy_factor(one.voltage)) - 5 * (base < 0)
        return Energy(total_pj=NOMINAL_PJ - 600 + sum(own.values()), by_memory_pj=own)


@given(seed=st.integers(0, 10_000), loss=st.sampled_from([0.0, 0.5, 3.0, 30.0]))
@settings(max_examples=12)
def test_the_best_is_the_best_of_all(seed: int, loss: float) -> None:
    points = Drawn(seed)
    found = at_low_voltage(EDGE_16, cast("MachinePoints", points), loss)
    choices = [
        [None, *(At(memory, form, voltage) for form in forms for voltage in VOLTAGES)]
        for memory, forms in able(EDGE_16).items()
        if memory in of_operands(EDGE_16)
    ]
    borne = [
        points.energy(EDGE_16, at).total_pj
        for some in product(*choices)
        if (at := [one for one in some if one])
        and points.errors(EDGE_16, at)[0] <= CLEAN + loss
        and points.energy(EDGE_16, at).total_pj < NOMINAL_PJ
    ]
    if found.best is None:
        assert not borne
    else:
        assert found.best.error <= CLEAN + loss
        assert found.best.energy.total_pj == pytest.approx(min(borne))
    one = found.one_voltage
    if one is not None:
        assert one.error <= CLEAN + loss and len({each.voltage for each in one.at}) == 1


def test_series_end_at_chance_and_refusals_are_said() -> None:
    found = at_low_voltage(VSQ_16, cast("MachinePoints", Drawn(4)))
    for one in found.series:
        assert bool(one.refused) != bool(one.points)
        voltages = [point.at[0].voltage for point in one.points]
        assert voltages == sorted(VOLTAGES, reverse=True)[: len(voltages)]
        errors = [point.error for point in one.points]
        assert all(error <= CHANCE_PERCENT for error in errors[:-1])
        assert len(errors) in (0, len(VOLTAGES)) or errors[-1] > CHANCE_PERCENT
    refused = {(one.memory, one.form) for one in found.series if one.refused}
    assert ("ifmap", "boveda") in refused
    assert {one.memory for one in found.series} == {"ifmap", "weight"} == set(of_operands(VSQ_16))


def _point(voltage: float, error: float) -> Point:
    energy = Energy(total_pj=1.0, by_memory_pj={})
    return Point(at=(At("ifmap", "plain", voltage),), errors=(error, error + 2), energy=energy)


def test_the_lowest_voltage_is_the_last_of_those_that_are_borne() -> None:
    one = Series(
        memory="ifmap", form="plain", points=(_point(0.9, 1), _point(0.8, 5), _point(0.7, 1))
    )
    assert (one.lowest(3), one.lowest(6), one.lowest(1)) == (0.9, 0.7, None)
    assert (one.points[1].error, one.points[1].deviation) == (6.0, 1.0)


@pytest.fixture
def nothing_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(self: Any, *_: Any) -> Any:
        raise AssertionError("not measured already")

    monkeypatch.setattr(MachinePoints, "_sets", property(measured))


@pytest.mark.usefixtures("nothing_measured")
def test_lists_of_the_sparse_core_are_one_memory_in_two_places(archsim: Call) -> None:
    assert of_operands(SCNN_ISCA17) == ("activation", "weight")
    assert able(SCNN_ISCA17)["accumulator"] == ("plain", "secded")
    parts = memory_of_part(SCNN_ISCA17)
    assert (parts["iaram"], parts["oaram"]) == ("activation", "activation")
    assert parts["weight_fifo"] == "weight" and able(SCNN_ISCA17)["weight"] == ("plain", "secded")
    index = SCNN_ISCA17.operand_bits, SCNN_ISCA17.index_bits
    assert SCNN_ISCA17.lane_bits("activation") == sum(index) == 20
    table = good(archsim("voltage", "scnn"))
    rows = [line.split() for line in table.splitlines()]
    assert ["activation", "plain", "1.5", "86.5", "0.969", "9"] in rows
    assert ["activation", "secded", *["1.0"] * 4, "87.0", "0.891", "-7"] in rows
    assert ["activation", "boveda", "1.0", "15.0", "91.0", "0.969", "47"] in rows
    assert ["weight", "plain", "1.0", "8.5", "88.0", "0.969", "25"] in rows
    assert ["weight", "secded", *["1.0"] * 4, "89.0", "0.891", "9"] in rows
    assert "the weak memory: activation" in table  # of which fewer voltages were tried


@pytest.mark.usefixtures("nothing_measured")
@pytest.mark.skipif(not SHIPPED.exists(), reason="no points")
def test_the_weak_memory_of_the_shipped_points(archsim: Call) -> None:
    found = json.loads(good(archsim("voltage", "edge-16", "--json")))
    assert found["weak"] == "ifmap"
    by = {(one["memory"], one["form"]): one["points"] for one in found["series"]}

    def at(memory: str, form: str, voltage: float) -> float:
        return next(p["mean_percent"] for p in by[memory, form] if p["at"][0]["voltage"] == voltage)

    assert at("weight", "plain", 0.848) < at("ifmap", "plain", 0.848)
    assert at("ifmap", "boveda", 0.906) > at("ifmap", "plain", 0.906)
    assert at("ifmap", "secded", 0.906) <= at("ifmap", "plain", 0.906)
    parts = {one["at"]["memory"]: one for one in found["parts"]}
    assert list(parts) == ["ifmap", "weight"]
    bits = [sum(errors) for errors in parts["ifmap"]["by_bit_percent"]]
    assert len(bits) == 8 and max(bits[:7]) < bits[7]
    assert len(parts["weight"]["by_layer_percent"]) == 12
    assert found["best"]["energy_pj"] <= found["one_voltage"]["energy_pj"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "mnist-int8-randbat-1"], "no shipped model"),
        (["--images", "0"], "images must be positive"),
        (["--chips", "0"], "chips must be positive"),
        (["--loss", "-1"], "--loss must be from 0 to 100, not -1"),
        (["--set", "operand_bits=4"], "do not hold codes of 8"),
    ],
)
def test_what_cannot_be_is_refused(words: list[str], said: str, archsim: Call) -> None:
    assert said in refused(archsim("voltage", "edge-16", *words))


@pytest.mark.usefixtures("nothing_measured")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sparsetrain"], "no cells may fail of row, column, accumulator, scratchpad: row_memory"),
        (["sparsetrain", "--memory", "scratchpad"], "what is read of it again is what PEs"),
        (
            ["sparsetrain", "--memory", "column", "--memory", "scratchpad"],
            "no cells may fail of column, scratchpad: column_memory must be exact, not faulty: the "
            "window moves on by what is read of it; scratchpad_memory must be exact, not faulty: ",
        ),
    ],
)
def test_memories_of_which_none_may_fail_are_refused(
    words: list[str], said: str, archsim: Call
) -> None:
    assert said in refused(archsim("voltage", *words))


class Sound(MachinePoints):
    """Nothing is ever wrong."""

    def errors(self, design: Any, at: Sequence[At] = ()) -> list[float]:
        return [0.0]


def _unseen() -> Any:
    pytest.fail("asked for pictures")


def test_memories_that_are_named_twice_are_looked_at_once() -> None:
    """Banks of biases among them, whose energy was the output stage's."""
    points = Sound(shipped("mnist-int8-randbet-1"), 2, 1, _unseen)
    found = at_low_voltage(EDGE_16, points, memories=["bias", "bias"])
    assert [one.memory for one in found.series] == ["bias"] * 3
    plain = found.series[0].points[0].energy
    saved = {
        name: pj - plain.by_memory_pj[name]
        for name, pj in found.nominal.energy.by_memory_pj.items()
        if pj != plain.by_memory_pj[name]
    }
    assert list(saved) == ["bias"] and saved["bias"] > 0
    assert sum(plain.by_memory_pj.values()) == pytest.approx(plain.total_pj)


def test_an_energy_that_was_kept_when_groups_were_one_is_counted_again(tmp_path: Path) -> None:
    path = tmp_path / "points.jsonl"

    def points() -> MachinePoints:
        model = shipped("mnist-int8-randbet-1")
        return MachinePoints(model, 2, 1, _unseen, files=(path,))

    whole = points().energy(EDGE_16)
    (line,) = path.read_text().splitlines()
    key, value = json.loads(line)
    own = value["by_memory_pj"]
    own["output_stage"] += own.pop("bias")
    path.write_text(json.dumps([key, value]) + "\n")
    assert points().energy(EDGE_16) == whole
    assert len(path.read_text().splitlines()) == 2
    assert points().energy(EDGE_16) == whole and len(path.read_text().splitlines()) == 2
