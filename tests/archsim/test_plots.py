"""Figures of results: what is drawn is what the result says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from archsim import EDGE_16, NetworkResult, simulate
from archsim.causes import CAUSES
from archsim.plots import CAUSE_COLOURS, PORT_COLOURS
from archsim.result import TRAFFIC
from workloads.builtin import builtin
from workloads.layers import MatMul, Network, VectorWork


@pytest.fixture(scope="module")
def result() -> NetworkResult:
    return simulate(EDGE_16, builtin("resnet50"))


@pytest.fixture(autouse=True)
def no_windows() -> Iterator[Any]:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def tops(ax: Any) -> np.ndarray:
    """The height of each layer's stack of bars."""
    bars = [container for container in ax.containers if len(container)]
    return np.sum([[bar.get_height() for bar in container] for container in bars], axis=0)


def labels(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_cycles_are_stacked_by_cause(result: NetworkResult) -> None:
    ax: Any = result.plot.cycles()
    layers = [layer for layer in result.layers if layer.cycles]
    assert np.array_equal(tops(ax), [layer.cycles for layer in layers])
    assert ax.get_ylabel() == "cycles"
    assert f"{result.cycles:,} cycles" in ax.get_title()
    assert len(labels(ax)) == sum(result.where[cause] > 0 for cause in CAUSES)
    for lower, upper in pairwise(ax.containers):
        for above, below in zip(upper, lower, strict=True):
            assert above.get_y() == pytest.approx(below.get_y() + below.get_height())


def test_utilization_has_a_mean_line(result: NetworkResult) -> None:
    ax: Any = result.plot.utilization()
    layers = [layer for layer in result.layers if layer.cycles]
    assert tops(ax) == pytest.approx([100 * layer.utilization for layer in layers])
    assert ax.get_lines()[0].get_ydata() == pytest.approx([100 * result.utilization] * 2)
    assert ax.get_ylabel() == "utilisation (%)"
    assert ax.get_ylim() == (0, 100)


def test_traffic_is_every_byte_of_every_port(result: NetworkResult) -> None:
    ax: Any = result.plot.traffic()
    layers = [layer for layer in result.layers if layer.cycles]
    assert ax.get_ylabel() == "bytes moved (MiB)"
    assert tops(ax) * 2**20 == pytest.approx([layer.total_bytes for layer in layers])
    assert labels(ax)[::-1] == list(TRAFFIC)


def test_small_traffic_is_in_bytes() -> None:
    layers = (MatMul(name="fc", m=1, n=4, k=4), MatMul(name="fd", m=1, n=4, k=4))
    network = Network(name="n", layers=layers, source="")
    assert simulate(EDGE_16, network).plot.traffic().get_ylabel() == "bytes moved (bytes)"


def test_colours_are_one_for_each_and_different() -> None:
    assert set(CAUSE_COLOURS) == set(CAUSES)
    assert set(PORT_COLOURS) == set(TRAFFIC)
    assert PORT_COLOURS["bias"] not in CAUSE_COLOURS.values()  # beside causes in the Gantt chart
    for elsewhere in (("conflict", "barrier"), ("filling", "wait_output")):
        together = [CAUSE_COLOURS[name] for name in CAUSES if name not in elsewhere]
        assert len(set(together)) == len(together)


def test_figures_are_drawn_on_the_axes_given(result: NetworkResult, no_windows: Any) -> None:
    from matplotlib.figure import Figure

    axes = Figure().subplots(3)
    for ax, draw in zip(axes, ("cycles", "utilization", "traffic"), strict=True):
        assert getattr(result.plot, draw)(ax) is ax
    assert no_windows.get_fignums() == []
    before = dict(mpl.rcParams)
    result.plot.cycles()
    assert len(no_windows.get_fignums()) == 1
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("name", ["resnet50", "densenet121", "bert-base"])
def test_many_layers_stay_readable(name: str) -> None:
    """No name touches its neighbour, and the axes keep most of the figure."""
    drawn = simulate(EDGE_16, builtin(name))
    ax: Any = drawn.plot.cycles()
    figure = ax.figure
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.get_xticklabels() if text.get_text()]
    assert len(boxes) >= min(50, sum(layer.cycles > 0 for layer in drawn.layers))
    assert all(left.x1 <= right.x0 + 0.5 for left, right in pairwise(boxes))
    assert ax.get_window_extent().width > 0.7 * figure.bbox.width
    assert ax.get_window_extent().height > 0.4 * figure.bbox.height


def test_a_network_of_vector_work_alone_is_an_empty_figure() -> None:
    sizes = dict.fromkeys(("input_elements", "output_elements", "operations"), 4)
    work = VectorWork(name="relu", operator="Relu", **sizes)
    plot = simulate(EDGE_16, Network(name="n", layers=(work,), source="")).plot
    for ax in (plot.cycles(), plot.utilization(), plot.traffic()):
        assert not ax.patches


def test_matplotlib_is_not_loaded_before_a_figure_is_drawn() -> None:
    code = "import archsim.plots, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
