"""The page of a machine's memories at low voltage, and which voltage its parts are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from command_line import Call, good, refused
from heads import unnamed
from html_page import Page

from archsim import EDGE_16
from archsim.errors import InputError
from archsim.machine.registry import load_design
from archsim.robust.low_voltage import CHANCE_PERCENT, MachineAtLowVoltage, at_low_voltage
from archsim.robust.machine_points import Energy, MachinePoints
from archsim.robust.model import shipped
from archsim.robust.parts_alone import PartsAlone, parts_alone
from archsim.robust.placed import At
from archsim.voltage_report import voltage_report_html, write_voltage_report

HOSTILE = "<script>alert(1)</script> & “x” $a$"
LAYERS = 12


class Made(SimpleNamespace):
    """Points by a rule: the ifmap at chance below 0.9; layers and bits by their number."""

    model = shipped("mnist-int8-randbet-1")

    def errors(self, design: Any, at: Sequence[At] = ()) -> list[float]:
        own = {"ifmap": 200.0, "weight": 30.0, "accumulator": 2000.0}
        errors = 1 + sum(own[one.memory] * (0.97 - one.voltage) for one in at)
        return [min(errors, 90.0), min(errors + 1, 90.0)]

    def energy(self, design: Any, at: Sequence[At] = ()) -> Energy:
        own: dict[str, float] = dict.fromkeys(("ifmap", "weight", "accumulator"), 300.0)
        for one in at:
            own[one.memory] *= one.voltage
        return Energy(total_pj=sum(own.values()), by_memory_pj=own)

    def errors_in_layer(self, design: Any, at: At, layer: str) -> list[float]:
        return [len(layer) + 0.25, len(layer) + 0.75]

    def errors_in_bit(self, design: Any, at: At, bit: int) -> list[float]:
        return [10.0 + bit, 11.0 + bit]


def _found(design: Any = EDGE_16) -> tuple[MachineAtLowVoltage, list[PartsAlone]]:
    points = cast("MachinePoints", Made())
    found = at_low_voltage(design, points)
    return found, list(parts_alone(found, points))


def test_a_memory_is_looked_at_where_it_errs_and_still_works() -> None:
    found, parts = _found()
    assert [one.at.memory for one in parts] == ["ifmap", "weight"]
    for one in parts:
        series = next(s for s in found.series if (s.memory, s.form) == (one.at.memory, "plain"))
        working = [p.at[0].voltage for p in series.points if p.error <= CHANCE_PERCENT]
        assert one.at == At(one.at.memory, "plain", min(working))
        assert len(one.by_layer) == LAYERS and len(one.by_bit) == 8


def test_a_memory_at_chance_everywhere_is_looked_at_where_it_fails_least() -> None:
    points = Made()
    points.errors = lambda design, at=(): [1.0 if not at else 89.0]  # type: ignore[method-assign]
    made = cast("MachinePoints", points)
    (one,) = parts_alone(at_low_voltage(EDGE_16, made, memories=["ifmap"]), made)
    assert one.at.voltage == 0.969


@pytest.mark.parametrize("name", ["edge-16", "volta"])
def test_the_page_has_every_number(name: str) -> None:
    found, parts = _found(load_design(name))
    page = Page(text := voltage_report_html(found, parts, evaluated=HOSTILE, command_line=HOSTILE))
    assert page.open == [] and page.attributes("src") == [] and page.attributes("href")[0][0] != "h"
    assert "<script>alert" not in text and text.count("&lt;script&gt;alert(1)") == 3
    ids = page.attributes("id")
    assert len(set(ids)) == len(ids)
    heading, *rows, total = page.rows["table-layers"]
    assert heading == ["layer", "ifmap", "weight"] and len(rows) == LAYERS
    assert rows[0] == ["conv1", "5.5", "5.5"]
    assert total == ["all together", *(f"{sum(one.whole) / 2:.1f}" for one in parts)]
    _, first, *_ = page.rows["table-bits"]
    bits = len(parts[0].by_bit)
    assert first == [str(bits - 1), f"{bits + 9.5:.1f}", f"{bits + 9.5:.1f}"]
    series = [row for row in page.rows["table-series"] if row[:2] == ["ifmap", "plain"]]
    assert series[0][2:4] == ["1.7", "5.9"]
    heads = {head for rows in page.rows.values() for head in rows[0]}
    assert [head for head in heads if unnamed(head)] == []
    assert "ifmap, conv1: 5.5 %" in text and "weight, bit 0: 10.5 %" in text


def test_the_page_is_always_the_same_and_replaces_nothing(tmp_path: Path) -> None:
    found, parts = _found()
    path = tmp_path / "page.html"
    write_voltage_report(found, parts, path)
    assert path.read_text() == voltage_report_html(found, parts)
    with pytest.raises(InputError, match="exists"):
        write_voltage_report(found, parts, path)


def test_a_machine_none_of_whose_memories_may_fail_has_a_page() -> None:
    found = replace(_found()[0], series=(), best=None, one_voltage=None)
    text = voltage_report_html(found, [])
    assert Page(text).open == [] and "nothing below V_min is borne" in text
    assert 'id="by-layer"' not in text and 'id="by-bit"' not in text


def test_the_command_writes_it(archsim: Call, tmp_path: Path) -> None:
    path = tmp_path / "edge.html"
    good(archsim("voltage", "edge-16", "--report", str(path)))
    rows = Page(path.read_text()).rows["table-bits"]
    assert rows[0] == ["bit", "ifmap", "weight"] and len(rows) == 1 + 8 + 1
    assert "exists" in refused(archsim("voltage", "edge-16", "--report", str(path)))
    assert "must end in .html" in refused(archsim("voltage", "edge-16", "--report", "page.txt"))
