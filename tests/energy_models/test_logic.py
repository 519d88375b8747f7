"""Coefficient files and the estimator on them: exact, interpolated by law, or refused."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from energy_models.component import KINDS, Component
from energy_models.errors import EnergyError
from energy_models.logic import LogicEstimator
from energy_models.measured import (
    LOGIC_KINDS,
    Coefficients,
    Point,
    coefficient_names,
    load_coefficients,
)

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SHIPPED = ("osu018", "sky130")
shipped = pytest.mark.parametrize("name", SHIPPED)


def part(kind: str, *sizes: int, name: str = "array.part") -> Component:
    return Component(name=name, kind=kind, attributes=dict(zip(KINDS[kind][0], sizes, strict=True)))


def coefficients(kind: str, figures: dict[tuple[int, ...], float]) -> Coefficients:
    """A file of one kind: area as given, leakage a tenth of it, every energy twice that."""
    points = tuple(
        Point(
            kind=kind,
            sizes=dict(zip(KINDS[kind][0], key, strict=True)),
            cells=1,
            area_um2=value,
            leakage_mw=value / 10,
            energy_pj=dict.fromkeys(KINDS[kind][1], 2 * value),
            module=f"module_{number}" if kind == "control" else "",
        )
        for number, (key, value) in enumerate(figures.items())
    )
    return Coefficients(
        name="tiny",
        library="cells",
        library_source="here",
        library_sha256="0",
        tools="Yosys 1",
        method="none\nat all",
        node_nm=65.0,
        voltage_v=1.1,
        points={kind: points},
    )


LAWS: dict[str, Callable[..., float]] = {
    "mac": lambda n, w: 3 * n * n * w + 2 * n * n + 5 * w + 7,
    "mux": lambda bits, ways: 2 * bits * ways + 3 * bits + 5 * ways + 1,
    "one_hot": lambda bits, ways: 4 * bits * ways - bits + 2,
    "multiplier": lambda a, b: 4 * a * b + 6 * (a + b) + 2,
    "adder": lambda n: 7 * n + 3,
    "register": lambda n: 96 * n,
    "shifter": lambda n: 5 * n * math.log2(n) + 2,
}
GRID = (2, 5, 8, 16, 40)


@given(st.sampled_from(sorted(LAWS)), st.integers(2, 40), st.integers(2, 40))
def test_hardware_that_grows_by_the_law_is_met_exactly(kind: str, first: int, second: int) -> None:
    law = LAWS[kind]
    two = len(KINDS[kind][0]) == 2
    grid = [(a, b) for a in GRID for b in GRID] if two else [(a,) for a in GRID]
    estimator = LogicEstimator(coefficients(kind, {key: law(*key) for key in grid}))
    sizes = (first, second) if two else (first,)
    component = part(kind, *sizes)
    value = law(*sizes)
    area = estimator.area_um2(component)
    assert area.value == pytest.approx(value)
    assert estimator.leakage_mw(component).value == pytest.approx(value / 10)
    for action in KINDS[kind][1]:
        assert estimator.energy_pj(component, action).value == pytest.approx(2 * value)
    assert (area.how == "") == (sizes in grid)
    assert area.how == "" or area.how.startswith("interpolated between ")
    assert area.source == "synthesis with Yosys 1 and cells (tiny)"


def test_how_names_the_neighbours_and_the_law() -> None:
    grid = {(a, b): float(a * b) for a in GRID for b in GRID}
    found = LogicEstimator(coefficients("mac", grid)).area_um2(part("mac", 6, 20))
    assert found.how == (
        "interpolated between 5 × 16 and 8 × 40, linear in operand_bits² and in accumulator_bits"
    )


def test_a_multiplier_may_be_measured_one_way_only() -> None:
    grid = {(a, b): float(3 * a * b) for a in GRID for b in GRID if a >= b}
    estimator = LogicEstimator(coefficients("multiplier", grid))
    for a, b in ((2, 16), (16, 2), (3, 30), (30, 3), (6, 7), (7, 6)):
        assert estimator.area_um2(part("multiplier", a, b)).value == pytest.approx(3 * a * b)


def test_beyond_the_measured_sizes_it_refuses() -> None:
    grid = {(bits, ways): 1.0 for bits in (1, 8) for ways in (2, 4)}
    estimator = LogicEstimator(coefficients("mux", grid))
    with pytest.raises(EnergyError) as caught:
        estimator.energy_pj(part("mux", 6, 5), "select")
    assert str(caught.value) == (
        "array.part: mux(bits=6, ways=5) is beyond what tiny has measured "
        "(bits from 1 to 8, ways from 2 to 4); the nearest is mux(bits=8, ways=4)"
    )


def test_a_hole_in_the_grid_is_beyond_too() -> None:
    estimator = LogicEstimator(coefficients("mux", {(1, 2): 1.0, (8, 2): 2.0, (8, 4): 3.0}))
    assert estimator.area_um2(part("mux", 4, 2)).value == pytest.approx(1 + 3 / 7)
    with pytest.raises(EnergyError, match="the nearest is mux"):
        estimator.area_um2(part("mux", 4, 3))


def test_control_is_in_proportion_to_flip_flops() -> None:
    estimator = LogicEstimator(coefficients("control", {(100,): 1000.0, (300,): 1400.0}))
    found = estimator.area_um2(part("control", 10_000))
    assert found.value == pytest.approx(10_000 * 2400 / 400)
    assert found.how == (
        "in proportion to flip-flops, from 2 control modules of 100 to 300 flip-flops"
    )


def test_what_was_not_measured() -> None:
    estimator = LogicEstimator(coefficients("adder", {(8,): 1.0}))
    with pytest.raises(EnergyError) as caught:
        estimator.area_um2(Component(name="bank", kind="dram"))
    assert str(caught.value) == (
        "bank: tiny has no figure of dram(); it has been measured for: adder"
    )
    with pytest.raises(EnergyError) as caught:
        estimator.energy_pj(part("adder", 8), "multiply")
    assert str(caught.value) == "array.part: a adder does not 'multiply'; it does: add"


@shipped
def test_the_files_of_the_package(name: str) -> None:
    loaded = load_coefficients(name)
    estimator = LogicEstimator(name)
    assert (estimator.name, estimator.node_nm, estimator.voltage_v) == (
        name,
        {"osu018": 180, "sky130": 130}[name],
        1.8,
    )
    assert tuple(loaded.points) == LOGIC_KINDS
    for points in loaded.points.values():
        for point in points:
            component = part(point.kind, *point.key)
            if point.kind != "control":
                assert estimator.area_um2(component).value == point.area_um2
                assert estimator.area_um2(component).how == ""
            assert point.area_um2 > 0
            assert all(energy > 0 for energy in point.energy_pj.values())


@shipped
def test_sizes_that_designs_have_are_priced(name: str) -> None:
    estimator = LogicEstimator(name)
    for operand in (4, 8, 16):
        for total in range(2 * operand, 41):
            mac = part("mac", operand, total)
            assert 0 < estimator.energy_pj(mac, "mac").value < 150
    for component in (part("multiplier", 41, 16), part("adder", 58), part("shifter", 58)):
        assert estimator.area_um2(component).value > 0


@shipped
def test_more_bits_cost_more(name: str) -> None:
    estimator = LogicEstimator(name)
    for kind, sizes in (
        ("mac", [(2, 32), (4, 32), (8, 32), (16, 32)]),
        ("multiplier", [(4, 4), (8, 4), (8, 8), (16, 8), (16, 16)]),
        ("adder", [(4,), (8,), (16,), (32,), (64,)]),
        ("register", [(1,), (8,), (64,)]),
        ("shifter", [(8,), (16,), (32,), (64,)]),
        ("control", [(10,), (100,)]),
    ):
        areas = [estimator.area_um2(part(kind, *size)).value for size in sizes]
        assert areas == sorted(areas)
        assert len(set(areas)) == len(areas)


@pytest.mark.parametrize(
    ("name", "area", "energy"), [("osu018", 0.495, 0.454), ("sky130", 0.501, 0.466)]
)
def test_four_bits_against_eight(name: str, area: float, energy: float) -> None:
    estimator = LogicEstimator(name)
    four, eight = part("mac", 4, 32), part("mac", 8, 32)
    areas = [estimator.area_um2(mac).value for mac in (four, eight)]
    energies = [estimator.energy_pj(mac, "mac").value for mac in (four, eight)]
    assert areas[0] / areas[1] == pytest.approx(area, abs=5e-4)
    assert energies[0] / energies[1] == pytest.approx(energy, abs=5e-4)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    written = coefficients("adder", {(8,): 1.5, (9,): 2.25})
    path = tmp_path / "tiny.toml"
    path.write_text(written.to_toml(), encoding="utf-8")
    again = load_coefficients(path)
    assert again.points == written.points
    assert again.method == "none\nat all\n"
    assert LogicEstimator(str(path)).area_um2(part("adder", 9)).value == 2.25


GOOD = coefficients("adder", {(8,): 1.0}).to_toml()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("node_nm", "node_um", "unknown field 'node_um'; did you mean node_nm?"),
        ("node_nm = 65.0", "", "node_nm is missing"),
        ("node_nm = 65.0", "node_nm = -1", "node_nm must not be negative, not -1"),
        (
            "area_um2",
            "area_mm2",
            "adder, point 1: unknown field 'area_mm2'; did you mean area_um2?",
        ),
        ("add_pj = 2.0", "add_pj = true", "adder, point 1: add_pj must be a number, not True"),
        ("add_pj = 2.0", "add_pj = -2", "adder, point 1: add_pj must not be negative, not -2"),
        ("add_pj = 2.0", "add_pj = nan", "adder, point 1: add_pj must not be negative, not nan"),
        (", add_pj = 2.0", "", "adder, point 1: add_pj is missing"),
        ("bits = 8", "bits = 0", "adder, point 1: bits must be a positive whole number, not 0"),
        ("bits = 8", "bits = 8.5", "adder, point 1: bits must be a positive whole number, not 8.5"),
        ('tools = "Yosys 1"', "tools = 1", "tools must be text"),
        ("adder = [", "adder = [ 5,", "adder, point 1 must be a table, not 5"),
    ],
)
def test_bad_files(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    path = tmp_path / "bad.toml"
    path.write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(EnergyError) as caught:
        load_coefficients(path)
    assert str(caught.value) == f"{path}: {message}"


def test_double_entries(tmp_path: Path) -> None:
    row = next(line for line in GOOD.splitlines() if "bits = 8" in line)
    path = tmp_path / "bad.toml"
    path.write_text(GOOD.replace(row, f"{row}\n{row}"), encoding="utf-8")
    with pytest.raises(EnergyError) as caught:
        load_coefficients(path)
    assert str(caught.value) == "tiny: adder 8 is given twice"


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(EnergyError) as caught:
        load_coefficients("osu180")
    assert str(caught.value) == (
        "no coefficients 'osu180'; did you mean osu018?; or give a path to a .toml file"
    )
    with pytest.raises(EnergyError) as caught:
        load_coefficients(tmp_path / "none.toml")
    assert str(caught.value) == (f"{tmp_path}/none.toml cannot be read: No such file or directory")
    assert coefficient_names() == SHIPPED


@pytest.mark.parametrize("bits", [2, 3, 4])
def test_the_array_multiplier_that_is_counted_by_hand_multiplies(
    bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    fit = importlib.import_module("logic_fit")
    for a in range(1 << bits):
        for b in range(1 << bits):
            assert fit.multiply_by_gates(bits, a, b) == a * b
    kinds = [gate[0] for gate in fit.array_multiplier(bits)[0]]
    counts = (kinds.count("and"), kinds.count("half"), kinds.count("full"))
    assert counts == (bits**2, bits, bits * (bits - 2))
    sys.modules.pop("logic_fit", None)


def test_the_benchmark_says_what_it_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    fit = importlib.import_module("logic_fit")
    fit.print_errors()
    fit.print_ratios()
    page = (BENCHMARKS / "logic_fit.md").read_text(encoding="utf-8")
    for line in capsys.readouterr().out.splitlines():
        assert line in page
    sys.modules.pop("logic_fit", None)
