"""What the roofline's caption says is what its points are."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot

from archsim import EDGE_16, simulate
from archsim.machines.systolic.design import CLOUD_128, TPU_V1
from archsim.machines.tensorcore.design import TensorCore
from archsim.memory import OffChip
from archsim.plots.roofline import roofline
from archsim.report import captions
from archsim.result import NetworkResult
from archsim.tiled.design import CoreDesign
from workloads.builtin import builtin
from workloads.layers import Conv2d, MatMul, Network

mpl.use("Agg")


def plotted(result: NetworkResult) -> tuple[list[tuple[float, float]], list[str], float]:
    """Places of the points and the labels of their colours, and where the drawn roofs meet."""
    ax: Any = result.plot.roofline()
    points = [line for line in ax.get_lines() if line.get_marker() == "o"]
    colours: dict[Any, str] = {}
    for line in points:
        if not line.get_label().startswith("_"):
            colours[line.get_color()] = line.get_label().removeprefix("layer bound by the ")
    array = next(line for line in ax.get_lines() if line.get_label().startswith("array:"))
    ridge = float(array.get_xdata()[0])
    places = [(float(x), float(y)) for x, y in (line.get_xydata()[0] for line in points)]
    found = [colours[line.get_color()] for line in points]
    pyplot.close(ax.figure)
    return places, found, ridge


def check(result: NetworkResult, design: CoreDesign) -> None:
    """Every number of the caption, counted in the figure that is drawn."""
    text = captions.roofline(roofline(result, design), design)
    places, bound, ridge = plotted(result)
    right = sum(x >= ridge * (1 - 1e-12) for x, _ in places)
    said = re.search(r"(\d+) of (\d+) layers lie to the right", text)
    assert said and (int(said[1]), int(said[2])) == (right, len(places))
    for name in set(bound):
        counted = re.search(rf"the {re.escape(name)} (\d+) with ([\d.]+) % of the cycles", text)
        assert counted and int(counted[1]) == bound.count(name)
        of_it = [layer for layer, one in zip(busy(result), bound, strict=True) if one == name]
        whole = sum(layer.cycles for layer in busy(result))
        share = 100 * sum(layer.cycles for layer in of_it) / whole
        assert float(counted[2]) == pytest.approx(share, abs=0.051)
    apart = sum((x >= ridge) != (one == "array") for (x, _), one in zip(places, bound, strict=True))
    assert (f" {apart} of these are not what their side" in text) == bool(apart)
    reach = re.search(r"reach ([\d.]+) to ([\d.]+) % of the roof", text)
    peak = design.macs_per_cycle
    reached = [100 * y / min(peak, x * peak / ridge) for x, y in places]
    assert reach and float(reach[1]) == pytest.approx(min(reached), abs=0.06)
    assert float(reach[2]) == pytest.approx(max(reached), abs=0.06)


def busy(result: NetworkResult) -> list[Any]:
    return [one for one in result.layers if one.multiplied and one.total_bytes]


@pytest.mark.parametrize(
    "design",
    [
        EDGE_16,
        CLOUD_128,
        TPU_V1,
        replace(EDGE_16, off_chip=OffChip()),
        replace(EDGE_16, off_chip=OffChip(bytes_per_cycle=8, weight_bytes_per_cycle=4)),
        TensorCore(octets=1, group_columns=2, rows=4),
    ],
    ids=lambda design: design.size,
)
@pytest.mark.parametrize("network", ["alexnet", "mobilenetv2"])
def test_captions_of_networks(design: CoreDesign, network: str) -> None:
    check(simulate(design, builtin(network)), design)


@settings(max_examples=15, deadline=None)
@given(
    sizes=st.lists(st.tuples(*[st.integers(1, 300)] * 3), min_size=1, max_size=4),
    rate=st.sampled_from([0.0, 0.5, 4.0, 64.0]),
    apart=st.sampled_from([None, 0.25, 8.0]),
    shared=st.booleans(),
)
def test_captions_of_random_layers(
    sizes: list[tuple[int, int, int]], rate: float, apart: float | None, shared: bool
) -> None:
    memory = OffChip(bytes_per_cycle=rate, weight_bytes_per_cycle=apart, shared=shared)
    design = replace(EDGE_16, off_chip=memory, rows=4, columns=4)
    layers = tuple(MatMul(name=f"fc{at}", m=m, n=n, k=k) for at, (m, n, k) in enumerate(sizes))
    check(simulate(design, Network(name="n", layers=layers, source="")), design)


def test_a_network_without_points_says_so() -> None:
    shown = replace(roofline(simulate(EDGE_16, SMALL), EDGE_16), points=())
    assert captions.roofline(shown, EDGE_16) == "No layer both multiplies and moves bytes."


SMALL = Network(
    name="n",
    source="",
    layers=(
        Conv2d(
            name="c", channels=3, filters=4, ifmap_height=6, ifmap_width=6, kernel_height=3,
            kernel_width=3,
        ),
    ),
)  # fmt: skip


def several_named(result: NetworkResult) -> bool:
    """Whether a name in the figure stands for several layers."""
    ax: Any = result.plot.roofline()
    found = any(re.search(r" \+ \d+$", text.get_text()) for text in ax.texts)
    pyplot.close(ax.figure)
    return found


@pytest.mark.parametrize(("name", "several"), [("alexnet", False), ("resnet18", True)])
def test_the_caption_explains_only_what_is_there(name: str, several: bool) -> None:
    """Layers of AlexNet lie apart; blocks of ResNet-18 come twice."""
    result = simulate(EDGE_16, name)
    text = captions.roofline(roofline(result, EDGE_16), EDGE_16)
    assert ("Behind a name" in text) == several == several_named(result)
