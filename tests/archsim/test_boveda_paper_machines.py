"""Sweeps of memories in `archsim paper boveda`: curves, gains at equal bytes, machines."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.memories.boveda.scratchpad import Boveda
from archsim.papers import boveda_machines, boveda_rows
from archsim.papers.boveda_footprint import GROUP
from archsim.papers.boveda_gains import curve, gains, size_for, value_at
from archsim.papers.boveda_machines import (
    MACHINES,
    Point,
    Step,
    memory_bytes,
    sweep,
    with_memories,
)
from archsim.simulate import simulate


def _points(values: list[float]) -> list[tuple[float, float]]:
    return [(2.0**at, value) for at, value in enumerate(values, 5)]


@given(st.lists(st.floats(1, 1000), min_size=1, max_size=8), st.floats(16, 10000))
def test_curves_never_rise(values: list[float], size: float) -> None:
    found = curve(reversed(_points(values)))
    assert [value for _, value in found] == [min(values[: at + 1]) for at in range(len(values))]
    value = value_at(found, size)
    assert min(values) <= value * (1 + 1e-9) and value <= values[0] * (1 + 1e-9)
    enough = size_for(found, value)
    if enough is not None:
        assert enough <= max(size, found[0][0]) * (1 + 1e-6)
        assert value_at(found, enough) == pytest.approx(value, rel=1e-6)


def test_sizes_are_interpolated_over_their_logarithm() -> None:
    line = curve([(32, 10), (128, 2)])
    assert value_at(line, 64) == pytest.approx(6)
    assert size_for(line, 6) == pytest.approx(64)
    assert size_for(line, 2) == pytest.approx(128)
    assert size_for(line, 10) is None and size_for(line, 1) is None
    assert value_at(line, 8) == 10 and value_at(line, 1024) == 2


def test_gains_compare_equal_bytes() -> None:
    """Compressed memories as good as plain ones of twice the size, and a directory of an eighth."""

    def point(size: float, moved: float) -> Point:
        return Point(size_bytes=size, off_chip_bytes=moved, cycles=2 * moved)

    moved = [800.0, 400.0, 200.0, 200.0]
    steps = [
        Step(
            kibibytes=at,
            plain=point(2.0**at, moved[at]),
            compressed=point(1.125 * 2.0**at, moved[min(at + 1, 3)]),
        )
        for at in range(4)
    ]
    found = gains(steps)
    assert [one.size is None for one in found] == [True, True, False, True]
    assert found[2].size == pytest.approx(100 * (1.125 * 2 / 4 - 1))
    between = value_at([(1.125, 400), (2.25, 200)], 2)
    assert found[1].off_chip == found[1].cycles == pytest.approx(100 * (between / 400 - 1))
    assert found[0].off_chip == pytest.approx(-50) and found[3].off_chip == 0


@pytest.mark.parametrize("machine", MACHINES)
def test_memories_of_a_size_are_counted_with_their_directories(machine: str) -> None:
    design = MACHINES[machine][0]
    plain, small = (with_memories(design, 64, compressed=one) for one in (False, True))
    for operand in ("ifmap", "weight"):
        assert memory_bytes(plain, operand) == 64 * 1024
        memory = small.memory(operand)
        assert isinstance(memory, Boveda)
        port = next(one for one in small.data_ports if one.name == operand)
        assert memory.group == min(GROUP, port.lanes)
        units = 2 * memory.units(port.bits) * port.lanes // memory.group
        extra = units * memory.entry_bits(port.bits, port.lane_bits[0])
        assert memory_bytes(small, operand) == 64 * 1024 + extra / 8 < 1.12 * 64 * 1024


def test_gains_of_energy() -> None:
    known = Point(size_bytes=4, off_chip_bytes=1, cycles=1, memories_pj=20, total_pj=100)
    better = replace(known, memories_pj=30, total_pj=90)
    unknown = replace(known, memories_pj=None, total_pj=None)
    steps = [Step(kibibytes=1, plain=known, compressed=one) for one in (better, unknown)]
    first, second = (gains([step])[0] for step in steps)
    assert first.memories == pytest.approx(50) and first.total == pytest.approx(-10)
    assert second.memories is None and second.total is None
    rows = [*boveda_rows.machine_rows("machine", steps[:1])]
    assert rows[0].reason.endswith("energy of memories +50 %, of all -10.0 %")


def test_a_sweep_is_what_the_simulator_says(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = next(iter(MACHINES))
    network, operands = boveda_machines.workload("tensor-8")
    few = replace(network, layers=network.matrix_layers[-7:-3])
    monkeypatch.setattr(boveda_machines, "workload", lambda _form: (few, operands))
    told: list[str] = []
    steps = sweep(machine, (32, 16), told.append)
    assert [step.kibibytes for step in steps] == [16, 32]
    assert told == [f"{machine}: 16 KiB", f"{machine}: 32 KiB"]
    for step in steps:
        assert step.compressed.off_chip_bytes <= step.plain.off_chip_bytes
        design = with_memories(MACHINES[machine][0], step.kibibytes, compressed=True)
        result = simulate(design, few, operands=operands, mapper="rough")  # as the sweep does
        assert step.compressed.cycles == result.cycles
        assert step.compressed.off_chip_bytes == sum(result.bytes_moved.values())
    assert steps[0].compressed.off_chip_bytes < steps[0].plain.off_chip_bytes
    rows = [*boveda_rows.machine_rows(machine, steps)]
    assert [row.published.figure for row in rows] == ["16 KiB each", "32 KiB each"]
    assert 50 < rows[0].ours == 100 + gains(steps)[0].off_chip < 100
    assert "MB plainly; cycles " in rows[0].reason
