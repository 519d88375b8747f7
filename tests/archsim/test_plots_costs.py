"""Figures of energy, area, memories, the roofline and the run over time: exact sums, limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim import CLOUD_128, EDGE_16, TPU_V1, InputError, NetworkResult, OffChip, simulate
from archsim.causes import CAUSES
from archsim.energy import account
from archsim.energy_account import GROUPS, STATIC, EnergyAccount
from archsim.machines.systolic.design import Systolic
from archsim.plots import GROUP_COLOURS, Layout, ResultPlots
from archsim.plots.axes import NOTE
from archsim.plots.component_bars import network_memory_traffic
from archsim.plots.roofline import bound_by, channels
from archsim.plots.units import byte_text, energy_unit, si_text, significant
from archsim.tiled.timeline import binned
from workloads.builtin import builtin
from workloads.layers import MatMul, Network


@pytest.fixture(scope="module")
def result() -> NetworkResult:
    return simulate(EDGE_16, builtin("squeezenet1.1"))


@pytest.fixture(scope="module")
def energy(result: NetworkResult) -> EnergyAccount:
    return account(result, "45nm")


@pytest.fixture(autouse=True)
def no_windows() -> Iterator[Any]:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def lengths(ax: Any, *, lying: bool = False) -> np.ndarray:
    """The length of every stack of bars, from the top or the left."""
    found = [[b.get_width() if lying else b.get_height() for b in c] for c in ax.containers]
    return np.sum(found, axis=0)


def notes(ax: Any) -> list[str]:
    gids = [mark.get_gid() or "" for mark in [*ax.patches, *ax.get_lines()]]
    return [gid.removeprefix(NOTE) for gid in gids if gid.startswith(NOTE)]


def legend(ax: Any) -> list[str]:
    return ax.get_legend_handles_labels()[1]


def test_energy_of_the_layers_adds_up(result: NetworkResult, energy: EnergyAccount) -> None:
    ax: Any = result.plot.energy(energy)
    unit = energy_unit(energy, max(energy.by_layer.values()))
    assert ax.get_ylabel() == f"energy ({unit.name})"
    assert lengths(ax) * unit.size == pytest.approx(list(energy.by_layer.values()))
    assert f"{energy_unit(energy, energy.total).text(energy.total)} in 45nm" in ax.get_title()
    assert set(legend(ax)) == {name for name, value in energy.by_group.items() if value}


def test_energy_by_name_of_the_technology_is_the_same(
    result: NetworkResult, energy: EnergyAccount
) -> None:
    given, named, default = (result.plot.energy_by_component(one) for one in (energy, "45nm", None))
    assert given.get_title() == named.get_title() == default.get_title()


def test_components_add_up_to_the_energy(result: NetworkResult, energy: EnergyAccount) -> None:
    ax: Any = result.plot.energy_by_component(energy)
    unit = energy_unit(energy, energy.total)
    shown = lengths(ax, lying=True) * unit.size
    wanted = sorted((value for value in energy.by_component.values() if value), reverse=True)
    assert shown == pytest.approx(wanted)
    assert shown.sum() == pytest.approx(energy.total)
    texts = [text.get_text() for text in ax.texts]
    assert len(texts) == len(wanted)
    for text, value in zip(texts, wanted, strict=True):
        assert text.endswith(f"({100 * value / energy.total:.1f} %)")


def test_area_adds_up(result: NetworkResult, energy: EnergyAccount) -> None:
    ax: Any = result.plot.area(energy)
    areas = energy.area_by_component
    assert areas is not None
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    size = 1e6 if ax.get_xlabel() == "area (mm²)" else 1.0
    shown = dict(zip(names, lengths(ax, lying=True) * size, strict=True))
    assert shown == pytest.approx(areas)
    assert list(shown.values()) == sorted(shown.values(), reverse=True)


def test_a_technology_without_areas_is_refused(
    result: NetworkResult, energy: EnergyAccount
) -> None:
    prices = energy.price_list
    nowhere = replace(prices, area_um2=np.full_like(prices.area_um2, np.nan))
    with pytest.raises(InputError) as refused:
        result.plot.area(replace(energy, price_list=nowhere))
    assert str(refused.value) == "technology 45nm has no areas; choose one that does"


def test_every_group_has_a_colour_of_its_own() -> None:
    assert set(GROUP_COLOURS) == {*GROUPS.values(), STATIC}
    assert len(set(GROUP_COLOURS.values())) == len(GROUP_COLOURS)


def test_memories_move_the_bytes_that_the_actions_say(result: NetworkResult) -> None:
    moved = {one.name: one for one in network_memory_traffic(result)}
    ports, counts = result.bytes_moved, result.actions
    outside = moved["off_chip.dram"]
    assert outside.read_bytes == ports["ifmap"] + ports["weight"] + ports["bias"]
    assert outside.written_bytes == ports["ofmap"]
    assert moved["ifmap.memory"].written_bytes == ports["ifmap"]
    assert moved["ifmap.memory"].read_bytes == counts["ifmap_read"] * 16
    assert moved["weight.memory"].written_bytes == ports["weight"]
    assert moved["weight.memory"].read_bytes == counts["weight_read"] * 16
    assert moved["accumulator.memory"].read_bytes == counts["accumulator_read"] * 16 * 4
    assert moved["accumulator.memory"].written_bytes == counts["accumulator_write"] * 16 * 4


def test_bytes_of_memories_are_drawn_in_full(result: NetworkResult) -> None:
    ax: Any = result.plot.memory_bytes()
    moved = network_memory_traffic(result)
    wanted = [count for one in moved for count in (one.read_bytes, one.written_bytes)]
    assert [text.get_text() for text in ax.texts] == [byte_text(count) for count in wanted]
    shown = lengths(ax, lying=True)
    assert shown / shown.max() == pytest.approx(np.array(wanted) / max(wanted))


def test_activity_over_time_is_what_the_bins_say(result: NetworkResult) -> None:
    over_time = binned(EDGE_16, builtin("squeezenet1.1"), bins=40)
    ax: Any = result.plot.activity(over_time)
    patches = [patch for patch in ax.patches if patch.get_label() in legend(ax)]
    stacked = [patch for patch in patches if patch.get_fill()]
    values, edges, _ = stacked[-1].get_data()
    assert values == pytest.approx(np.full(40, 100.0))
    assert edges[-1] * 1e6 == pytest.approx(result.cycles)
    assert ax.get_xlabel() == "time (million cycles)"
    share = 100 * over_time.shares[:, CAUSES.index("computing")]
    assert stacked[0].get_data()[0] == pytest.approx(share)


def test_without_bins_every_layer_is_one(result: NetworkResult) -> None:
    ax: Any = result.plot.activity()
    layers = [layer for layer in result.layers if layer.cycles]
    computing = next(patch for patch in ax.patches if patch.get_label() == "computing")
    values, edges, _ = computing.get_data()
    assert values == pytest.approx([100 * o.where["computing"] / o.cycles for o in layers])
    assert np.diff(edges) * 1e6 == pytest.approx([layer.cycles for layer in layers])
    line = next(patch for patch in ax.patches if patch.get_label().startswith("utilisation"))
    assert line.get_data()[0] == pytest.approx([100 * layer.utilization for layer in layers])
    assert len(notes(ax)) == len(layers)


def test_points_of_the_roofline_are_the_layers(result: NetworkResult) -> None:
    ax: Any = result.plot.roofline()
    layers = [layer for layer in result.layers if layer.cycles]
    points = [line.get_xydata()[0] for line in ax.get_lines() if line.get_marker() == "o"]
    wanted = [(o.macs / o.total_bytes, o.macs / o.cycles) for o in layers]
    assert np.array(points) == pytest.approx(np.array(wanted))
    assert "array: 256 MACs/cycle" in legend(ax)
    assert "off-chip memory: 16 bytes/cycle" in legend(ax)
    assert len(notes(ax)) == len(layers)


@pytest.mark.parametrize(
    ("design", "total", "names"),
    [
        (EDGE_16, 16, ["off-chip memory"]),
        (CLOUD_128, 256, ["off-chip memory"]),
        (replace(EDGE_16, off_chip=OffChip()), 112, ["ifmap", "weight", "bias", "ofmap"]),
        (TPU_V1, 3 * 256 + 34e9 / 700e6, ["ifmap", "bias", "ofmap", "weight"]),
        (
            replace(EDGE_16, off_chip=OffChip(bytes_per_cycle=8, weight_bytes_per_cycle=4)),
            12,
            ["memory of ifmap, bias, ofmap", "weight"],
        ),
    ],
)
def test_channels_are_those_of_the_design(design: Systolic, total: float, names: list[str]) -> None:
    ways = channels(design)
    assert sum(way.bytes_per_cycle for way in ways) == pytest.approx(total)
    assert [way.name.removesuffix(" channel") for way in ways] == names


@given(
    m=st.integers(1, 40),
    n=st.integers(1, 40),
    k=st.integers(1, 40),
    rate=st.sampled_from([0.0, 0.5, 4.0, 64.0]),
    apart=st.sampled_from([None, 0.25, 8.0]),
    shared=st.booleans(),
)
def test_no_layer_is_above_the_roof(
    m: int, n: int, k: int, rate: float, apart: float | None, shared: bool
) -> None:
    memory = OffChip(bytes_per_cycle=rate, weight_bytes_per_cycle=apart, shared=shared)
    design = replace(EDGE_16, off_chip=memory, rows=4, columns=4)
    network = Network(name="n", layers=(MatMul(name="fc", m=m, n=n, k=k),), source="")
    layer = simulate(design, network).layers[0]
    name, least = bound_by(layer, channels(design))
    slack = 2 * memory.burst_bytes / min([r for r in (rate, apart) if r] or [1])
    assert least <= layer.cycles + slack, name


def test_a_weight_channel_of_its_own_has_a_roof(no_windows: Any) -> None:
    ax: Any = simulate(TPU_V1, builtin("alexnet")).plot.roofline()
    assert "weight channel alone: 48.57 bytes/cycle" in legend(ax)
    assert "ports: 816.57 bytes/cycle" in legend(ax)


@pytest.mark.parametrize("narrow", [False, True])
def test_no_text_leaves_the_figure(
    result: NetworkResult, energy: EnergyAccount, *, narrow: bool
) -> None:
    width = 4.7 if narrow else 11.0
    layout = Layout(narrow=narrow, width_inches=(width, width), smallest_text_points=9)
    plot = ResultPlots(result, layout)
    drawn: list[Any] = [
        plot.cycles(), plot.utilization(), plot.traffic(), plot.roofline(), plot.activity(),
        plot.memory_bytes(), plot.energy(energy), plot.energy_by_component(energy),
        plot.area(energy),
    ]  # fmt: skip
    for ax in drawn:
        ax.set_title("")
        if ax.get_legend() is not None:
            ax.get_legend().remove()
        ax.figure.canvas.draw()
        left, right = ax.get_xlim()
        ticks = [text for text in ax.get_xticklabels() if left <= text.get_position()[0] <= right]
        texts = [*ax.texts, *ticks, *ax.get_yticklabels(), ax.xaxis.label]
        for text in texts:
            if text.get_text() and text.get_visible():
                box, frame = text.get_window_extent(), ax.figure.bbox
                assert frame.x0 - 1 <= box.x0, text
                assert box.x1 <= frame.x1 + 1, text


def test_narrow_layers_run_down_the_page(result: NetworkResult) -> None:
    layout = Layout(narrow=True, width_inches=(4.7, 4.7), smallest_text_points=10)
    ax: Any = ResultPlots(result, layout).cycles()
    layers = [layer for layer in result.layers if layer.cycles]
    assert np.array_equal(lengths(ax, lying=True), [layer.cycles for layer in layers])
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.get_yticklabels()]
    assert len(boxes) == len(layers)
    assert all(lower.y1 <= upper.y0 + 0.5 for upper, lower in pairwise(boxes))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (1, "1.000"), (9.83, "9.830"), (123.456, "123.5"), (12345.6, "12,346"),
        (0.01, "0.01000"), (999.96, "1,000.0"),
    ],
)  # fmt: skip
def test_numbers_keep_four_significant_digits(value: float, text: str) -> None:
    assert significant(value) == text


def test_texts_with_units() -> None:
    assert si_text(0.0365, "s") == "36.50 ms"
    assert si_text(0, "J") == "0 J"
    assert byte_text(71_528_464) == "68.21 MiB"
    assert byte_text(17) == "17.00 bytes"
