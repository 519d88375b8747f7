"""Energy and area of simulated networks: counts times prices, and nothing lost on the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim import CLOUD_128, EDGE_16, TPU_V1, InputError, NetworkResult, Plain, simulate
from archsim.energy import account, action_counts, price_design
from archsim.energy_account import STATIC
from archsim.machines.systolic.design import DATAFLOWS, Dataflow, Systolic
from energy_models.technology import load_technology
from workloads.builtin import builtin
from workloads.layers import Conv2d, MatMul, Network, VectorWork

TECHNOLOGIES = ("180nm", "130nm", "45nm", "16nm", "7nm")


@pytest.fixture(scope="module")
def result() -> NetworkResult:
    return simulate(EDGE_16, builtin("alexnet"))


def test_every_named_design_has_energy_and_area_in_every_technology() -> None:
    network = builtin("squeezenet1.1")
    for design in (EDGE_16, CLOUD_128, TPU_V1):
        found = simulate(design, network)
        for name in TECHNOLOGIES:
            cost = account(found, name)
            assert cost.total > 0
            assert cost.area_um2 is not None
            assert cost.area_um2 > 0


def test_sums_agree(result: NetworkResult) -> None:
    cost = account(result, "45nm")
    assert sum(cost.by_layer.values()) == pytest.approx(cost.total)
    assert sum(cost.by_component.values()) == pytest.approx(cost.total)
    assert sum(cost.by_group.values()) == pytest.approx(cost.total)
    assert sum(map(sum, cost.layer_groups.values())) == pytest.approx(cost.total)
    assert cost.to_frame().to_numpy().sum() == pytest.approx(cost.total)
    assert sum((cost.area_by_component or {}).values()) == pytest.approx(cost.area_um2)
    assert cost.power_w == pytest.approx(cost.total * 1e-12 / result.seconds)
    assert cost.edp == pytest.approx(cost.total * result.seconds)


def test_dram_energy_is_bits_times_the_interface(result: NetworkResult) -> None:
    """LPDDR4 in the table: 8 pJ a bit."""
    bits = 8 * sum(result.bytes_moved.values())
    assert account(result, "45nm").by_group["DRAM"] == pytest.approx(8.0 * bits)


def test_a_mac_is_horowitz_in_45nm(result: NetworkResult) -> None:
    """0.2 pJ for the multiplication, 0.1 pJ for the 32-bit addition, each useful MAC once."""
    cost = account(result, "45nm")
    assert cost.by_component["array.mac"] == pytest.approx(0.3 * result.macs)


def test_vector_work_is_not_in_the_account() -> None:
    work = VectorWork(
        name="pool", operator="MaxPool", input_elements=900, output_elements=100, operations=800
    )
    layer = MatMul(name="fc", m=4, n=8, k=16)
    alone = simulate(EDGE_16, Network(name="a", source="test", layers=(layer,)))
    both = simulate(EDGE_16, Network(name="b", source="test", layers=(layer, work)))
    assert account(both).layers == ("fc",)
    assert account(both).total == account(alone).total


def test_a_slower_clock_costs_leakage_and_nothing_else(result: NetworkResult) -> None:
    slow = replace(result, clock_hz=result.clock_hz / 10)
    fast, paid = account(result, "45nm"), account(slow, "45nm")
    assert paid.by_component[STATIC] == pytest.approx(10 * fast.by_component[STATIC])
    assert paid.by_component[STATIC] > 0
    dynamic = [one.total - one.by_component[STATIC] for one in (fast, paid)]
    assert dynamic[0] == pytest.approx(dynamic[1])


def test_voltage_scales_logic_and_memories_and_not_dram(result: NetworkResult) -> None:
    full = account(result, "130nm")
    low = account(result, load_technology("130nm", voltage_v=1.44))
    assert low.by_group["DRAM"] == full.by_group["DRAM"]
    assert low.by_group["arithmetic"] == pytest.approx(0.64 * full.by_group["arithmetic"])
    assert low.by_group["memories"] < 0.8 * full.by_group["memories"]


def test_srams_below_their_minimum_voltage(result: NetworkResult) -> None:
    full = account(result, "45nm")
    low = account(result, load_technology("45nm", sram_relative_voltage=0.848))
    assert low.by_group["memories"] == pytest.approx(0.695 * full.by_group["memories"])
    others = set(full.by_group) - {"memories"}
    assert all(low.by_group[name] == full.by_group[name] for name in others)


def test_what_is_missing_is_named(result: NetworkResult) -> None:
    cost = account(result, "45nm")
    assert any(text.startswith("leakage of ") and "mac" in text for text in cost.missing_reasons)
    assert not any("sram" in text for text in cost.missing_reasons)


def test_relative_costs_have_no_area_and_no_power() -> None:
    design = replace(
        EDGE_16,
        operand_bits=16,
        accumulator_bits=40,
        ifmap_memory=Plain(capacity_bytes=48 * 1024),
    )
    cost = account(simulate(design, builtin("alexnet")), "eyeriss-relative")
    assert (cost.unit, cost.power_w, cost.area_um2) == ("MAC", None, None)
    assert cost.by_component["array.mac"] == sum(cost.macs)


def test_a_design_beyond_a_table_is_refused_with_the_nearest(result: NetworkResult) -> None:
    narrow = simulate(replace(EDGE_16, operand_bits=4), builtin("alexnet"))
    with pytest.raises(InputError) as caught:
        account(narrow, "45nm")
    assert "horowitz-2014 has no" in str(caught.value)
    assert "nearest: " in str(caught.value)
    assert account(narrow, "130nm").total > 0
    with pytest.raises(InputError, match=r"^no technology '44nm'"):
        account(result, "44nm")


def test_a_narrow_mac_costs_less() -> None:
    """4 against 8 bits: half the bits of each operand are about a third of the energy."""
    macs = [
        price_design(replace(EDGE_16, operand_bits=bits), "130nm").prices for bits in (4, 8, 16)
    ]
    energies = [
        next(one.figure.value for one in prices if one.what == "mac" and one.figure)
        for prices in macs
    ]
    assert energies[0] < 0.6 * energies[1]
    assert energies[1] < 0.6 * energies[2]


def test_a_record_is_plain_data(result: NetworkResult) -> None:
    import json

    record = account(result, "45nm").record()
    assert json.loads(json.dumps(record)) == record
    assert record["technology"]["name"] == "45nm"
    assert all(entry["source"] for entry in record["energy"]["prices"])


def test_a_technology_of_the_users_own(result: NetworkResult, tmp_path: Path) -> None:
    text = Path(load_technology("45nm").folder / "45nm.toml").read_text()
    path = tmp_path / "mine.toml"
    path.write_text(text.replace('dram = "dram:lpddr4"', 'dram = "dram:hbm2"'))
    ours, theirs = account(result, str(path)), account(result, "45nm")
    assert ours.by_group["DRAM"] < theirs.by_group["DRAM"]
    assert ours.by_group["memories"] == theirs.by_group["memories"]


SIZES = st.sampled_from((1, 2, 3, 5, 8, 16, 33))


@st.composite
def designs(draw: st.DrawFn) -> Systolic:
    flows: tuple[Dataflow, ...] = DATAFLOWS
    kibibytes = draw(st.sampled_from((8, 16, 64)))
    memory = Plain(capacity_bytes=kibibytes * 1024)
    return Systolic(
        rows=draw(SIZES),
        columns=draw(SIZES),
        dataflow=draw(st.sampled_from(flows)),
        operand_bits=draw(st.sampled_from((4, 8, 16))),
        ifmap_memory=memory,
        weight_memory=memory,
        accumulator_memory=memory,
        bias_words=draw(st.sampled_from((8, 64, 512))),
    )


@settings(max_examples=30, deadline=None)
@given(design=designs(), filters=st.integers(1, 40), channels=st.integers(1, 20))
def test_no_event_is_negative(design: Systolic, filters: int, channels: int) -> None:
    """Registers are written at most once a cycle; so every component's events are ≥ 0."""
    layer = Conv2d(
        name="conv",
        channels=channels,
        filters=filters,
        ifmap_height=9,
        ifmap_width=7,
        kernel_height=3,
        kernel_width=3,
        pad_left=1,
    )
    found = simulate(design, Network(name="one", source="test", layers=(layer,)))
    counts = action_counts(found.layers[0])
    for component in design.components:
        for action, events in component.actions.items():
            number = sum(factor * counts[name] for name, factor in events.items())
            assert number >= 0, (component.name, component.text, action)


def test_pricing_is_one_product(result: NetworkResult) -> None:
    prices = price_design(EDGE_16, "45nm")
    counts = [action_counts(layer) for layer in result.layers if layer.cycles]
    by_hand = np.zeros((len(counts), len(prices.components)))
    for place, component in enumerate(prices.components):
        for action, events in component.actions.items():
            figure = prices.technology.energy(component, action)
            assert figure is not None
            for row, count in enumerate(counts):
                number = sum(factor * count[name] for name, factor in events.items())
                by_hand[row, place] += number * figure.value
    assert np.allclose(prices.energy(counts), by_hand)
