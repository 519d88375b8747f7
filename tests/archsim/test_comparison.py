"""Comparisons: ratios to the baseline, what changed, which layers moved, and what is said aloud."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim import EDGE_16, InputError, NetworkResult, Systolic, simulate
from archsim.comparison import ResultComparison, compare_results, ratio
from archsim.comparison.changes import changes_in
from archsim.energy import account
from archsim.energy_account import EnergyAccount
from archsim.layer.problem import Tiling
from archsim.saved import SavedResult, parse_result
from workloads.builtin import builtin
from workloads.layers import Conv2d, MatMul, Network, VectorWork
from workloads.operands import synthetic

Account = Callable[..., EnergyAccount]

FASTER = replace(EDGE_16, rows=32, off_chip=replace(EDGE_16.off_chip, bytes_per_cycle=8.0))


@pytest.fixture(scope="module")
def base() -> NetworkResult:
    return simulate(EDGE_16, builtin("alexnet"))


@pytest.fixture(scope="module")
def other() -> NetworkResult:
    return simulate(FASTER, builtin("alexnet"))


def small(filters: int = 8, name: str = "small") -> Network:
    layers = (
        Conv2d(name="conv", batch=1, channels=3, filters=filters, ifmap_height=8, ifmap_width=8,
               kernel_height=3, kernel_width=3),
        VectorWork(name="relu", operator="Relu", input_elements=4, output_elements=4, operations=4),
        MatMul(name="fc", m=1, n=6, k=5),
    )  # fmt: skip
    return Network(name=name, layers=layers, source="")


def priced(result: NetworkResult, account: EnergyAccount) -> SavedResult:
    return parse_result(json.loads(result.to_json()) | account.record(), "priced")


def figure(comparison: ResultComparison, name: str) -> Any:
    return next(one for one in comparison.figures if one.name == name)


designs = st.builds(
    Systolic,
    rows=st.integers(1, 12),
    columns=st.integers(1, 12),
    clock_hz=st.sampled_from([1e8, 5e8, 1e9]),
)


def all_ratios(comparison: ResultComparison) -> list[tuple[float | None, ...]]:
    layers = [one for layer in comparison.layers for one in layer.figures]
    return [one.ratios for one in (*comparison.figures, *layers)]


def sums(parts: Iterable[tuple[float | None, ...]]) -> tuple[float, ...]:
    return tuple(sum(value or 0 for value in column) for column in zip(*parts, strict=True))


# Properties


@given(design=designs, copies=st.integers(2, 4))
def test_a_result_compared_with_itself_is_the_same(design: Systolic, copies: int) -> None:
    comparison = compare_results([simulate(design, small())] * copies)
    assert all(ratios == (1.0,) * copies for ratios in all_ratios(comparison))
    assert comparison.speedups == (1.0,) * copies
    assert (comparison.design_changes, comparison.technology_changes) == ((), ())
    assert comparison.largest_movers(None) == ()
    assert comparison.notes == ()
    assert all(layer.in_all for layer in comparison.layers)


@given(first=designs, second=designs)
def test_swapping_inverts_the_ratios(first: Systolic, second: Systolic) -> None:
    results = [simulate(design, small()) for design in (first, second)]
    ahead, back = compare_results(results), compare_results(results[::-1])
    for (_, there), (_, again) in zip(all_ratios(ahead), all_ratios(back), strict=True):
        if there and again:
            assert there * again == pytest.approx(1)
        else:
            assert {there, again} == {0, None}
    assert ahead.speedups[1] == pytest.approx(1 / (back.speedups[1] or 0))
    assert [one.values[::-1] for one in ahead.design_changes] == [
        one.values for one in back.design_changes
    ]
    assert {one.name for one in ahead.largest_movers(None)} == {
        one.name for one in back.largest_movers(None)
    }


@given(first=designs, second=designs)
def test_layers_sum_to_the_totals(first: Systolic, second: Systolic) -> None:
    comparison = compare_results([simulate(design, small()) for design in (first, second)])
    for name, unit in (("cycles", "cycles"), ("bytes moved", "bytes")):
        parts = [
            one.values for layer in comparison.layers for one in layer.figures if one.name == name
        ]
        total = figure(comparison, name)
        assert total.unit == unit
        assert sums(parts) == total.values
    for group, name in (("cycles by cause", "cycles"), ("bytes by port", "bytes moved")):
        parts = list(comparison.group(group).values())
        assert sums(parts) == figure(comparison, name).values


number = st.none() | st.floats(0, 1e100) | st.integers(0, 2**63)


@given(value=number, base=number)
def test_a_ratio_is_a_number_or_nothing(value: float | None, base: float | None) -> None:
    found = ratio(value, base)
    if value is None or base is None:
        assert found is None
    elif value == base:
        assert found == 1
    elif base == 0:
        assert found is None
    else:
        assert found is None or (math.isfinite(found) and found * base == pytest.approx(value))


nested = st.recursive(
    st.integers(0, 2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, min_size=1),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), nested), min_size=2, max_size=4))
def test_changes_are_what_differs(records: list[dict[str, Any]]) -> None:
    def look_up(record: Any, key: str) -> Any:
        for step in key.split("."):
            record = record.get(step) if isinstance(record, dict) else None
        return None if isinstance(record, dict) else record

    changes = changes_in(records)
    for one in changes:
        assert one.values == tuple(look_up(record, one.key) for record in records)
        assert len(set(one.values)) > 1
    assert bool(changes) == any(record != records[0] for record in records)


# What a user sees of two designs


def test_figures_are_the_results(base: NetworkResult, other: NetworkResult) -> None:
    comparison = compare_results([base, other])
    assert figure(comparison, "cycles").values == (base.cycles, other.cycles)
    assert figure(comparison, "cycles").ratios == (1.0, other.cycles / base.cycles)
    assert figure(comparison, "time").values == (base.seconds, other.seconds)
    assert figure(comparison, "utilisation").values == (base.utilization, other.utilization)
    assert figure(comparison, "MACs").ratios == (1.0, 1.0)
    assert comparison.group("cycles by cause")["memory"] == (
        base.where["memory"],
        other.where["memory"],
    )
    assert comparison.speedups == (1.0, base.seconds / other.seconds)
    assert [(one.key, one.values) for one in comparison.design_changes] == [
        ("rows", (16, 32)),
        ("off_chip.bytes_per_cycle", (16.0, 8.0)),
    ]


def test_speedup_is_of_seconds_not_cycles(base: NetworkResult) -> None:
    twice = simulate(replace(EDGE_16, clock_hz=2 * EDGE_16.clock_hz), builtin("alexnet"))
    comparison = compare_results([base, twice])
    assert figure(comparison, "cycles").ratios == (1.0, 1.0)
    assert comparison.speedups == (1.0, 2.0)
    assert comparison.notes == (
        "clocks differ: A 500 MHz, B 1,000 MHz; compare seconds, not cycles",
    )


def test_the_largest_movers_come_first(base: NetworkResult, other: NetworkResult) -> None:
    comparison = compare_results([base, other])
    pairs = zip(base.layers, other.layers, strict=True)
    moved = {one.name: abs(one.cycles - two.cycles) for one, two in pairs}
    wanted = sorted((name for name in moved if moved[name]), key=lambda name: -moved[name])
    assert [one.name for one in comparison.largest_movers(None)] == wanted
    assert [one.name for one in comparison.largest_movers(2)] == wanted[:2]
    assert comparison.largest_movers(0) == ()
    assert comparison.record()["largest_movers"] == wanted[:10]


def test_layers_of_other_shapes_are_not_compared() -> None:
    narrow, wide = (simulate(EDGE_16, small(filters)) for filters in (8, 24))
    comparison = compare_results([narrow, wide])
    assert [(one.name, one.macs, one.in_all) for one in comparison.layers] == [
        ("conv", narrow.layers[0].macs, False),
        ("relu", 0, True),
        ("fc", 30, True),
        ("conv", wide.layers[0].macs, False),
    ]
    assert comparison.layers[0].cycles.values == (narrow.layers[0].cycles, None)
    assert comparison.layers[3].cycles.ratios == (None, None)
    assert comparison.largest_movers() == ()
    assert comparison.speedups == (None, None)
    assert comparison.notes == (
        "the results are of different layers (A small, B small): ratios of the totals compare "
        "different work, and there is no speedup",
        "layers of one name but of different shapes: conv",
    )


def test_same_layers_under_another_name_are_the_same_work() -> None:
    comparison = compare_results([simulate(EDGE_16, small(name=name)) for name in ("x", "y")])
    assert comparison.speedups == (1.0, 1.0)
    assert comparison.notes == ("networks of the same layers under different names: A x, B y",)


# Apples and pears


def test_versions_and_skipped_operators_are_said(base: NetworkResult) -> None:
    strange = replace(base, version="0.0.9", skipped=("x: Strange",))
    assert compare_results([base, strange]).notes == (
        "operators were skipped: A (none), B (x: Strange)",
        f"archsim versions differ: A {base.version}, B 0.0.9; "
        "a difference may be the simulator's, not the design's",
    )


def test_seeds_and_operands_are_said() -> None:
    def run(seed: int | None, density: float) -> NetworkResult:
        if seed is None:
            return simulate(EDGE_16, small())
        draw = partial(synthetic, bits=8, seed=seed, density=density)
        return simulate(EDGE_16, small(), operands=draw, seed=seed)

    timing, first, second = run(None, 1), run(1, 1), run(2, 0.5)
    schemes = [one.layers[0].operands for one in (first, second)]
    assert compare_results([timing, first, second]).notes == (
        "seeds differ: A none, B 1, C 2",
        f"operands differ: A none (timing only), B ({schemes[0]}), C ({schemes[1]})",
    )
    assert compare_results([timing, replace(timing, seed=3)]).notes == (
        "seeds differ: A none, B 3 (without effect: no operands were drawn)",
    )


def test_options_are_kept_and_said() -> None:
    tiling = Tiling(pixel_rows=1, pixel_columns=2, filters=4, channels=3)
    fewer = replace(tiling, filters=2)
    plain = simulate(EDGE_16, small())
    by_hand, other = (simulate(EDGE_16, small(), mappings={"conv": one}) for one in (tiling, fewer))
    assert "options" not in json.loads(plain.to_json())
    read = parse_result(json.loads(by_hand.to_json()), "by hand")
    assert read.options == {"mappings": {"conv": asdict(tiling)}}
    first, second = "A (mappings of conv)", "B (mappings of conv)"
    assert compare_results([by_hand, other]).notes == (
        f"options differ: {first}, {second}; in mappings.conv.filters",
    )
    assert compare_results([by_hand, plain]).notes == (
        f"options differ: {first}, B (none); in mappings.conv.pixel_rows, "
        "mappings.conv.pixel_columns, mappings.conv.filters, mappings.conv.channels, "
        "mappings.conv.order and 2 more",
    )
    assert compare_results([plain, replace(plain, options={"chain": True})]).notes == (
        "options differ: A (none), B (chain=True); in chain",
    )


def test_energies(base: NetworkResult, other: NetworkResult, account_at: Account) -> None:
    cheap, dear = account_at(base, 1.0), account_at(other, 3.0)
    comparison = compare_results([priced(base, cheap), priced(other, dear)])
    assert comparison.notes == ()
    energy = figure(comparison, "energy")
    assert (energy.unit, energy.values) == ("pJ", pytest.approx((cheap.total, dear.total)))
    product = figure(comparison, "energy-delay product")
    assert (product.unit, product.values) == ("pJ·s", pytest.approx((cheap.edp, dear.edp)))
    assert figure(comparison, "area").values == (1050, 3050)
    assert comparison.group("energy by component")["array.mac"] == pytest.approx(
        (base.macs, 3 * base.macs)
    )
    assert comparison.group("energy by group")["leakage"] == pytest.approx(
        (cheap.by_group["leakage"], dear.by_group["leakage"])
    )
    assert comparison.group("area by component")["array.mac"] == (1000, 3000)
    conv1 = comparison.layers[0].figures[-1]
    assert (conv1.name, conv1.unit) == ("energy", "pJ")
    assert conv1.values == pytest.approx((cheap.by_layer["conv1"], dear.by_layer["conv1"]))


def test_other_technologies_are_said(base: NetworkResult, account_at: Account) -> None:
    here = priced(base, account_at(base, 1.0))
    lower = priced(base, account_at(base, 1.0, voltage_v=0.8, name="low"))
    comparison = compare_results([here, lower])
    assert comparison.notes == (
        "technologies differ (A made-up, B low) in name, voltage_v: "
        "a difference in energy or area may be the technology's",
    )
    assert [one.key for one in comparison.technology_changes] == ["name", "voltage_v"]
    assert compare_results([here, base]).notes == ("no energies in B", "no areas in B")
    assert figure(compare_results([here, base]), "energy").ratios == (1.0, None)


def test_energies_in_two_units_have_no_ratio(base: NetworkResult, account_at: Account) -> None:
    relative = priced(base, account_at(base, 1.0, unit="MAC"))
    comparison = compare_results([priced(base, account_at(base, 1.0)), relative])
    found = [one for one in comparison.figures if one.name == "energy"]
    assert [(one.unit, one.ratios) for one in found] == [("pJ", (1.0, None)), ("MAC", (None, None))]
    conv1 = [one for one in comparison.layers[0].figures if one.name == "energy"]
    assert [(one.unit, one.ratios) for one in conv1] == [("pJ", (1.0, None)), ("MAC", (None, None))]
    group = "energy by component"
    assert comparison.group(group)["array.mac"] == (base.macs, None)
    assert comparison.group(group, "MAC")["array.mac"] == (None, base.macs)
    assert comparison.group("of no such name") == {}
    assert comparison.notes == (
        "technologies differ (A made-up, B made-up) in unit: "
        "a difference in energy or area may be the technology's",
        "energies are in MAC and in pJ: they have no ratio",
    )


def test_what_energies_leave_out_is_said(base: NetworkResult, account_at: Account) -> None:
    whole = priced(base, account_at(base, 1.0))
    assert whole.energy is not None
    partial = replace(whole, energy=replace(whole.energy, missing=("leakage of x: unknown",)))
    assert compare_results([whole, partial]).notes == (
        "the energies and areas leave out different things: A (nothing), B (leakage of x: unknown)",
    )


def test_what_is_left_out_is_said_by_kind() -> None:
    """Components of other names, in designs of one technology, are nothing to speak of."""
    results = [simulate(name, small()) for name in ("edge-16", "tpu-v1", "vsq-16")]
    saved = [priced(one, account(one, "45nm")) for one in results]
    assert saved[0].energy and saved[1].energy
    fewer = replace(saved[1].energy, missing=saved[0].energy.missing[::-1])
    assert not [note for note in compare_results([saved[0], replace(saved[1], energy=fewer)]).notes
                if "leave out" in note]  # fmt: skip
    (note,) = (one for one in compare_results([saved[0], saved[2]]).notes if "leave out" in one)
    kinds = "leakage of adder, control, mac, multiplier, mux, register, shifter: Horowitz"
    assert f"A ({kinds}" in note and note.count("Horowitz") == 2


# As data


def test_record_is_plain_and_complete(base: NetworkResult, other: NetworkResult) -> None:
    comparison = compare_results([base, other])
    record = json.loads(json.dumps(comparison.record(), allow_nan=False))
    assert record == comparison.record()
    assert record["baseline"] == "A"
    assert [one["label"] for one in record["results"]] == ["A", "B"]
    assert record["speedups"] == list(comparison.speedups)
    assert record["figures"][0] == {
        "group": "total",
        "figure": "cycles",
        "unit": "cycles",
        "values": [base.cycles, other.cycles],
        "ratios": [1.0, other.cycles / base.cycles],
    }
    assert len(record["layers"]) == len(base.layers)


def test_frame_has_a_row_for_every_figure(base: NetworkResult, other: NetworkResult) -> None:
    comparison = compare_results([base, other, base])
    frame = comparison.to_frame()
    columns = ["layer", "kind", "group", "figure", "unit", "A", "B", "C", "B/A", "C/A"]
    assert list(frame.columns) == columns
    assert {str(frame[name].dtype) for name in columns[5:]} == {"float64"}
    cycles = frame[(frame.figure == "cycles") & (frame.layer != "")]
    assert len(cycles) == len(base.layers)
    assert cycles["B"].sum() == other.cycles
    assert (frame["C/A"] == 1).all()
    assert len(frame) == len(comparison.figures) + 3 * len(base.layers)


@pytest.mark.parametrize("count", [0, 1, 27])
def test_too_few_and_too_many_are_refused(base: NetworkResult, count: int) -> None:
    with pytest.raises(InputError) as caught:
        compare_results([base] * count)
    assert str(caught.value) == f"a comparison is of 2 to 26 results, not {count}"
