"""PEs, tiles and shares of cost as figures: what is drawn is what the model says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from archsim import EDGE_16, InputError, NetworkResult, simulate
from archsim.energy import account
from archsim.energy_account import EnergyAccount
from archsim.layer.problem import Tiling
from archsim.machine.interval import ARRAY, ARRAY_WAITS
from archsim.machines.systolic.design import Systolic
from archsim.occupancy import Occupancy, occupancy
from archsim.plots.axes import NOTE, told_apart
from archsim.plots.gantt import UNITS, layer_run
from archsim.plots.shades import DARKEST, PALEST
from archsim.report import captions
from archsim.tiled.activity import Activity, layer_activity
from workloads.layers import Conv2d, MatMul, Network, VectorWork


@pytest.fixture(autouse=True)
def no_windows() -> Iterator[None]:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.fixture(scope="module")
def result() -> NetworkResult:
    return simulate("edge-16", "mobilenetv2")


@pytest.fixture(scope="module")
def energy(result: NetworkResult) -> EnergyAccount:
    return account(result, "45nm")


@pytest.fixture(scope="module")
def found(result: NetworkResult) -> Occupancy:
    return occupancy(result)


def notes(ax: Any) -> list[str]:
    return [str(one.get_gid() or "").removeprefix(NOTE) for one in ax.patches]


def pixels(image: Any) -> Any:
    """Shares of a picture's pixels."""
    return (np.asarray(image.get_array())[..., 3] - PALEST) / (DARKEST - PALEST)


def test_the_map_is_the_shares(result: NetworkResult, found: Occupancy) -> None:
    ax: Any = result.plot.pes(found)
    (image,) = ax.images
    assert image.get_extent() == [0, 16, 16, 0]
    assert pixels(image) * found.shares.max() == pytest.approx(found.shares)
    text = f"row 3, column 3: busy in {100 * found.shares[3, 3]:.2f} % of the cycles"
    assert sum(one.startswith(text) for one in notes(ax)) == 1
    least, most = 100 * found.shares.min(), 100 * found.shares.max()
    assert 0 < least < most
    assert f"PEs busy in {least:.1f} to {most:.1f} % of the cycles" in ax.get_title()


def test_lines_over_time_are_the_shares(result: NetworkResult, found: Occupancy) -> None:
    ax: Any = result.plot.pes_over_time(found)
    for lines, top in zip(found.lines, (0, 1.2), strict=True):
        parts = [one for one in ax.images if one.get_extent()[3] == top]
        drawn = np.hstack([pixels(one) for one in parts])
        assert drawn == pytest.approx(found.over_time(lines).T)
        ends = np.array([one.get_extent()[:2] for one in parts]) * 1e6
        assert ends.ravel()[[0, -1]] == pytest.approx([0, result.cycles])
    layers = [layer for layer in result.layers if layer.cycles]
    assert [one.split(":")[0] for one in notes(ax)] == [layer.name for layer in layers]


def test_arrays_of_one_pe_and_of_very_many() -> None:
    network = Network(name="n", source="", layers=(MatMul(name="fc", m=9, n=3, k=5),))
    for rows, columns, shape in ((1, 1, (1, 1)), (600, 2, (256, 2))):
        shown = simulate(Systolic(rows=rows, columns=columns), network)
        ax: Any = shown.plot.pes()
        assert ax.images[0].get_array().shape[:2] == shape
        assert len(shown.plot.pes_over_time().images) <= 4


def bars(ax: Any) -> list[tuple[str, float, float]]:
    """Unit, start and cycles of every bar."""
    names = [text.get_text() for text in ax.get_yticklabels()]
    return sorted(
        (names[round(one.get_y() + one.get_height() / 2)], one.get_x(), one.get_width())
        for one in ax.patches
    )


def intervals(run: Activity, tiles: range) -> list[tuple[str, float, float]]:
    shown = [one for one in run.of_tiles(tiles) if one.unit in UNITS]
    return sorted((one.unit, one.start_cycle, one.cycles) for one in shown)


def run_of(result: NetworkResult, name: str) -> Activity:
    (layer,) = (one for one in result.layers if one.name == name)
    assert isinstance(layer.work, Conv2d)
    return layer_activity(EDGE_16, layer.work, layer.tiling)


def test_bars_are_the_plans_intervals(result: NetworkResult) -> None:
    layer = "block2.1/expand"
    run = run_of(result, layer)
    count = len(run.tiles)
    assert [*run.of_tiles(range(count))] == [*run]
    first: Any = result.plot.gantt(layer, tiles=slice(0, 5))
    assert bars(first) == intervals(run, range(5))
    assert f"tiles 0 to 4 of {count}" in first.get_title()
    last: Any = result.plot.gantt(layer, tiles=slice(-3, None))
    assert bars(last) == intervals(run, range(count - 3, count))
    assert max(x + width for _, x, width in bars(last)) == run.cycles
    at = [one for one in run if one.unit == ARRAY][9]
    middle: Any = result.plot.gantt(layer, around=at.start_cycle, most=3)
    assert bars(middle) == intervals(run, range(8, 11))


def test_a_window_of_cycles_shows_all_that_happens_in_it(result: NetworkResult) -> None:
    run = run_of(result, "block2.2/depthwise")
    window = (run.cycles // 3, run.cycles // 3 + 9000)
    ax: Any = result.plot.gantt(cycles=window, most=1000)
    wanted = [
        (one.unit, one.start_cycle, one.cycles)
        for one in run
        if one.unit in UNITS and one.end_cycle > window[0] and one.start_cycle < window[1]
    ]
    assert bars(ax) == sorted(wanted)
    assert ax.get_xlim() == window


def test_a_layer_of_many_tiles_is_cut_and_says_so() -> None:
    layer = MatMul(name="fc", m=150, n=150, k=1)
    tilings = {"fc": Tiling(pixel_rows=1, pixel_columns=1, filters=1, channels=1)}
    network = Network(name="n", source="", layers=(layer,))
    shown = simulate(Systolic(rows=1, columns=1), network, mappings=tilings)
    ax: Any = shown.plot.gantt()
    assert len(ax.patches) < 24 * 12
    assert "tiles 0 to 23 of 22,500" in ax.get_title()
    run = layer_run(shown)
    assert "22,488 of its 22,500 tiles are not shown" in captions.gantt(run, range(12))


def test_windows_that_are_none(result: NetworkResult) -> None:
    none = f"{len(run_of(result, 'block2.2/depthwise').tiles)} tiles, and none of these"
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"tiles": slice(0, 2), "around": 5}, "only one of tiles, cycles and around can be given"),
        ({"tiles": slice(0, 9, 2)}, "tiles must follow one another, not every 2"),
        ({"tiles": slice(900, None)}, none),
        ({"cycles": (10**9, 10**9 + 1)}, none),
        ({"around": -1}, "around must be a cycle of block2.2/depthwise, 0 to"),
        ({"most": 0}, "most must be positive, not 0"),
        ({"layer": "conv"}, "mobilenetv2 on edge-16 has no layer 'conv' of tiles; .*conv1"),
    )
    for given, said in cases:
        with pytest.raises(InputError, match=said):
            result.plot.gantt(**given)
    sizes = dict.fromkeys(("input_elements", "output_elements", "operations"), 4)
    work = VectorWork(name="relu", operator="Relu", **sizes)
    empty = simulate(EDGE_16, Network(name="n", layers=(work,), source=""))
    for draw in (empty.plot.gantt, empty.plot.pes, empty.plot.pes_over_time):
        with pytest.raises(InputError, match="no layer that the array computes"):
            draw()


def test_the_captions_causes_are_the_runs(result: NetworkResult) -> None:
    run = run_of(result, "block2.2/depthwise")
    text = captions.gantt(layer_run(result), range(len(run.tiles)))
    waits: Counter[str] = Counter()
    for one in run:
        if one.unit == ARRAY_WAITS:
            waits[one.what] += one.cycles
    name, most = waits.most_common(1)[0]
    shown = f"array is idle by: {name.replace('_', ' for ')} ({100 * most / waits.total():.1f} %)"
    assert "All its tiles are shown" in text
    assert shown in text


def areas(ax: Any) -> dict[tuple[str, str], float]:
    """Area of every field by component and group."""
    found: dict[tuple[str, str], float] = {}
    for one, text in zip(ax.patches, notes(ax), strict=True):
        name, _, rest = text.partition(": ")
        found[name, rest.split()[0]] = one.get_width() * one.get_height()
    return found


def test_fields_sum_to_the_total_and_to_every_group(
    result: NetworkResult, energy: EnergyAccount
) -> None:
    totals = {
        "energy_map": (energy.total, energy.by_group, energy.by_component),
        "area_map": (energy.area_um2, energy.area_by_group, energy.area_by_component),
    }
    for name, (total, by_group, by_component) in totals.items():
        ax: Any = getattr(result.plot, name)(energy)
        found = areas(ax)
        assert total is not None and by_component is not None
        assert sum(found.values()) * total == pytest.approx(total)
        groups, components = Counter[str](), Counter[str]()
        for (component, group), area in found.items():
            groups[group] += area * total
            components["leakage" if group == "leakage" else component] += area * total
        assert dict(groups) == pytest.approx({k: v for k, v in by_group.items() if v})
        assert dict(components) == pytest.approx({k: v for k, v in by_component.items() if v})
        boxes = [one.get_bbox() for one in ax.patches]
        assert all(box.x0 >= 0 and box.x1 < 1 + 1e-9 and box.y1 < 1 + 1e-9 for box in boxes)


def test_names_in_fields_stay_inside(result: NetworkResult, energy: EnergyAccount) -> None:
    ax: Any = result.plot.energy_map(energy)
    ax.figure.canvas.draw()
    fields = [one.get_window_extent() for one in ax.patches]
    assert len(ax.texts) >= 4
    for text in ax.texts:
        box = text.get_window_extent()
        middle = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
        (field,) = [one for one in fields if one.contains(*middle)]
        assert field.x0 <= box.x0 and box.x1 <= field.x1
        assert field.y0 <= box.y0 and box.y1 <= field.y1


def test_the_caption_of_the_fields_has_their_shares(energy: EnergyAccount) -> None:
    from archsim.plots.breakdown import energy_parts

    text = captions.breakdown(energy_parts(energy), "energy")
    name, most = max(energy.by_component.items(), key=lambda item: item[1])
    assert f"The largest: {name} ({100 * most / energy.total:.1f} %)" in text


def test_names_that_differ_in_their_middle_are_told_apart() -> None:
    names = [f"encoder.layers.{at:03d}.attention.projection.w" for at in range(160)]
    short = told_apart([*names, "head"], 20)
    assert len(set(short)) == 161
    assert max(map(len, short)) <= 20
    assert "013" in short[13]
    assert told_apart(["a", "a"], 20) == ["a", "a"]
