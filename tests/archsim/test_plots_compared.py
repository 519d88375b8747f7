"""Designs side by side as figures: bars are the results' figures, in all and for each MAC."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from command_line import Call, good, refused

from archsim import NetworkResult, simulate
from archsim.comparison import ResultComparison, compare_results
from archsim.energy import account
from archsim.errors import InputError
from archsim.machine.registry import load_design
from archsim.saved import SavedResult, parse_result

DESIGNS = ("edge-16", "volta", "tpu-v1")


@pytest.fixture(autouse=True)
def no_windows() -> Iterator[None]:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def saved(result: NetworkResult) -> SavedResult:
    record = {**json.loads(result.to_json()), **account(result, "45nm").record()}
    return parse_result(json.loads(json.dumps(record)), result.design_name)


@pytest.fixture(scope="module")
def comparison() -> ResultComparison:
    return compare_results([saved(simulate(name, "alexnet")) for name in DESIGNS])


def lengths(ax: Any) -> list[float]:
    """Of each result's whole bar, on the axis."""
    sums = [0.0] * len(ax.get_yticks())
    for container in ax.containers:
        for at, bar in enumerate(container):
            assert bar.get_x() == pytest.approx(sums[at])
            sums[at] += bar.get_width()
    return sums


def in_unit(ax: Any, units: dict[str, float]) -> list[float]:
    name = ax.get_xlabel().partition("(")[2].removesuffix(")").partition(" per ")[0]
    return [length * units[name] for length in lengths(ax)]


UNITS = {
    "million cycles": 1e6, "cycles": 1.0, "mJ": 1e9, "pJ": 1.0, "mm²": 1e6, "µm²": 1.0,
}  # fmt: skip


def test_bars_are_the_results_figures(comparison: ResultComparison) -> None:
    results, plot = comparison.results, comparison.plot
    macs = [load_design(name).macs_per_cycle for name in DESIGNS]
    for draw, wanted, each in (
        (plot.cycles, [one.cycles for one in results], [one.macs for one in results]),
        (plot.energy, [one.energy.total for one in results if one.energy], [results[0].macs] * 3),
        (plot.area, [one.area.total_um2 for one in results if one.area], macs),
    ):
        assert in_unit(draw(), UNITS) == pytest.approx(wanted)
        per = [value / count for value, count in zip(wanted, each, strict=True)]
        assert in_unit(draw(per_mac=True), UNITS) == pytest.approx(per)
    texts = [text.get_text() for text in plot.cycles().texts]
    assert texts[0] == f"{results[0].cycles:,}"
    assert texts[1] == f"{results[1].cycles:,}  ({results[1].cycles / results[0].cycles:.2f} ×)"


def test_the_overview_has_what_the_results_have(comparison: ResultComparison) -> None:
    titles = [ax.get_title() for ax in comparison.plot.overview().axes]
    whole = ["cycles", "energy", "area"]
    assert titles == [*whole, "cycles per MAC", "energy per MAC", "area per MAC a cycle"]
    bare = compare_results([replace(one, energy=None, area=None) for one in comparison.results])
    assert [ax.get_title() for ax in bare.plot.overview().axes] == ["cycles", "cycles per MAC"]
    with pytest.raises(InputError, match="no result has energies"):
        bare.plot.energy()
    with pytest.raises(InputError, match="no result has areas"):
        bare.plot.area()


def test_what_is_not_known_has_no_bar(comparison: ResultComparison) -> None:
    first, second, third = comparison.results
    assert first.energy is not None
    relative = replace(first, energy=replace(first.energy, unit="MAC"))
    unlike = replace(second, design={"kind": "unheard"}, area=replace_groups(second))
    plot = compare_results([first, unlike, relative, third]).plot
    energy: Any = plot.energy()
    assert [text.get_text() for text in energy.texts][2] == "not known"
    assert lengths(energy)[2] == 0
    area: Any = plot.area(per_mac=True)
    assert [text.get_text() for text in area.texts][1] == "not known"
    assert len(area.containers) == 1, "one has no groups, so that all are of one colour"


def replace_groups(one: SavedResult) -> Any:
    assert one.area is not None
    return replace(one.area, by_group={})


def test_names_of_forty_letters_stay_in_the_figure(comparison: ResultComparison) -> None:
    long = [
        replace(one, design_name=f"{one.design_name}-{'of-a-long-name-' * 3}"[:40])
        for one in comparison.results
    ]
    figure: Any = compare_results(long).plot.overview()
    figure.canvas.draw()
    whole = figure.bbox
    for ax in figure.axes:
        for text in (*ax.get_yticklabels(), *ax.texts, ax.title, ax.xaxis.label):
            box = text.get_window_extent()
            if text.get_text():
                assert whole.x0 <= box.x0 and box.x1 <= whole.x1, text.get_text()
        legend = ax.get_legend()
        for text in ax.texts if legend else ():
            assert not text.get_window_extent().overlaps(legend.get_window_extent())


def test_the_command_writes_the_figure(archsim: Call, tmp_path: Path) -> None:
    for name in ("edge-16", "volta"):
        good(archsim("run", name, "alexnet", "--timing-only", "-o", name))
    for ending, begins in ((".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")):
        good(archsim("compare", "edge-16", "volta", "--plot", f"c{ending}"))
        assert (tmp_path / f"c{ending}").read_bytes().startswith(begins)
    before = (tmp_path / "c.svg").read_bytes()
    good(archsim("compare", "edge-16", "volta", "--plot", "c.svg", "--force"))
    assert (tmp_path / "c.svg").read_bytes() == before
    said = refused(archsim("compare", "edge-16", "volta", "--plot", "c.gif"))
    assert said == "--plot must end in .svg, .png, .pdf, not 'c.gif'"
    assert "c.svg exists" in refused(archsim("compare", "edge-16", "volta", "--plot", "c.svg"))
