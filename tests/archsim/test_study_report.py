"""The page of a study in a real browser: every point is there, filtered and brushed together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from real_browser import CHROMIUM, NO_CHROMIUM

from archsim import EDGE_16, InputError
from archsim.cli.report import POINTS
from archsim.machine.registry import load_design
from archsim.plots.palette import ORANGE
from archsim.study_report import study_report_html, write_study_report
from archsim.study_report.shown import MOST_POINTS, fronts_of, shown_of
from archsim.sweeps import MachineSpace, Space, Study
from archsim.sweeps.front import front_of
from archsim.sweeps.points import Grid
from archsim.sweeps.store import arrow, uuids
from tests.shared.command_line import Call, refused
from workloads.builtin import builtin

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
HOSTILE = "<script>alert(1)</script> & [red] “x”"
ROWS = "document.querySelectorAll('#points tbody tr').length"
PAGE = "Bokeh.documents[0].get_model_by_name('filter').args.page"


def made_up(folder: Path, *, sizes: int, networks: int = 2) -> Study:
    """A study whose figures are made up: sizes² · 6 designs, without simulating them."""
    fields = {
        "rows": {"from": 1, "to": sizes},
        "columns": {"from": 1, "to": sizes},
        "dataflow": ["weight_stationary", "output_stationary", "input_stationary"],
        "ifmap_memory.capacity_bytes": [16384, 1 << 20],
    }
    names = ("alexnet", "resnet18")[:networks]
    arrays = MachineSpace(design=EDGE_16, fields=fields, name=HOSTILE)
    space = Space(
        name=HOSTILE,
        machines=(arrays,),
        networks=tuple(builtin(name) for name in names),
        objectives=("cycles", "energy", "area"),
    )
    study = Study.begin(folder, space)
    grid = Grid(space)
    numbers = np.arange(space.design_count)
    for at in range(len(names)):
        study.store.write([_rows(grid, numbers, at)], [])
    return study


def _rows(grid: Grid, numbers: Any, network: int) -> Any:
    pa, count = arrow(), len(numbers)
    fields = grid.columns(numbers)
    rng = np.random.default_rng(network)
    pes = fields["rows"].astype(float) * fields["columns"].astype(float)
    area = pes * 500 + fields["ifmap_memory.capacity_bytes"].astype(float)
    return pa.table(
        {
            "id": uuids(grid.ids(numbers, network)),
            "number": numbers * len(grid.networks) + network,
            "batch": pa.array(np.zeros(count, np.int32)),
            "status": pa.array(["done"] * count),
            "error": pa.nulls(count, pa.string()),
            "machine": pa.array(list(fields["machine"])),
            "network": pa.array([grid.space.network_names[network]] * count),
            **{name: pa.array(list(fields[name])) for name in grid.space.fields},
            "cycles": np.ceil(1e9 / pes * (1 + rng.random(count))),
            "energy_pj": 1e9 * (1 + rng.random(count)) + area,
            "area_um2": area,
        }
    )


def opened(browser: Browser, path: Path, **settings: Any) -> tuple[Page, list[str]]:
    """The page when its figures are drawn, and what went wrong in it."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000}, **settings)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.extend([said.text] * (said.type == "error")))
    page.on("request", lambda asked: faults.extend([asked.url] * asked.url.startswith("http")))
    page.set_default_timeout(120_000)
    page.goto(path.as_uri())
    page.wait_for_function(f"{ROWS} > 0")
    return page, faults


def check_page(browser: Browser, study: Study, path: Path) -> None:
    """Fronts, filters and brush of a page against the study's own answers."""
    write_study_report(study, path)
    first = study.space.network_names[0]
    frame = study.frame(network=first)
    page, faults = opened(browser, path)
    assert page.inner_text("#shown-points") == f"{len(frame):,}"
    assert HOSTILE in page.inner_text("h1")
    _check_fronts(page, frame)
    brushed = frame[frame["number"].isin(_brush(page, len(frame)))]

    page.evaluate(f"{PAGE}.widgets.dataflow.value = ['input_stationary']")
    page.evaluate(f"{PAGE}.widgets.cycles.value = 1e8")
    kept = frame[(frame["dataflow"] == "input_stationary") & (frame["cycles"] <= 1e8)]
    assert page.inner_text("#shown-points") == f"{len(kept):,}"
    _check_fronts(page, kept)
    both = len(set(brushed["number"]) & set(kept["number"]))
    assert page.inner_text("#chosen-points") == f"{both:,} brushed"

    if len(study.space.network_names) > 1:
        page.evaluate(f"{PAGE}.network.value = {PAGE}.network.options[1]")
        other = study.frame(network=study.space.network_names[1])
        other = other[(other["dataflow"] == "input_stationary") & (other["cycles"] <= 1e8)]
        assert page.inner_text("#shown-points") == f"{len(other):,}"
        page.evaluate(f"{PAGE}.network.value = {PAGE}.network.options[0]")
    assert faults == []
    page.close()


def _check_fronts(page: Page, points: Any) -> None:
    for x, y in (("cycles", "energy_pj"), ("cycles", "area_um2"), ("energy_pj", "area_um2")):
        wanted = points.iloc[front_of(points[[x, y]].to_numpy(float))]
        shown = page.evaluate(
            f"[...{PAGE}.fronts.find(f => f.x === '{x}' && f.y === '{y}').source.data.number]"
        )
        assert sorted(shown) == sorted(wanted["number"])


def _drag(page: Page) -> None:
    box = page.locator("section[aria-labelledby=fronts] .bk-Figure").first.bounding_box()
    assert box is not None
    left, top = box["x"] + 110, box["y"] + 10
    page.mouse.move(left, top)
    page.mouse.down()  # held still, it would be a press
    page.mouse.move(left + 300, top + 150, steps=3)
    page.wait_for_timeout(300)
    page.mouse.move(box["x"] + box["width"] - 60, box["y"] + box["height"] - 70, steps=3)
    page.wait_for_timeout(300)
    page.mouse.up()
    page.wait_for_timeout(500)


def _brush(page: Page, count: int) -> list[int]:
    """Numbers of the points that a box over most of the first figure chooses."""
    page.evaluate("document.querySelector('#fronts').scrollIntoView()")
    page.wait_for_timeout(500)
    for _ in range(5):  # a busy machine may take a drag for a click
        _drag(page)
        if page.inner_text("#chosen-points").endswith("brushed"):
            break
    numbers = page.evaluate(
        f"[...{PAGE}.source.selected.indices].map(at => {PAGE}.source.data.number[at])"
    )
    assert count / 2 <= len(numbers) <= count
    assert page.inner_text("#chosen-points") == f"{len(numbers):,} brushed"
    assert page.evaluate(ROWS) == min(len(numbers), 500)
    return numbers


@in_a_browser
def test_the_page_shows_what_the_study_says(browser: Browser, tmp_path: Path) -> None:
    with made_up(tmp_path / "study", sizes=5) as study:
        check_page(browser, study, tmp_path / "page.html")


@in_a_browser
def test_the_page_follows_the_colours_and_the_width(browser: Browser, tmp_path: Path) -> None:
    with made_up(tmp_path / "study", sizes=2) as study:
        write_study_report(study, tmp_path / "page.html")
    page, faults = opened(browser, tmp_path / "page.html", color_scheme="dark")
    ground = "getComputedStyle(document.documentElement).getPropertyValue('--background').trim()"
    drawn = "[...Bokeh.documents[0]._all_models.values()].find(m => m.type === 'Figure')"
    dark = page.evaluate(ground)
    assert page.evaluate(f"{drawn}.background_fill_color") == dark
    axes = "[...Bokeh.documents[0]._all_models.values()].find(m => m.type === 'Segment')"
    soft = page.evaluate(ground.replace("--background", "--soft"))
    assert page.evaluate(f"{axes}.line_color.value") == soft  # black on black would not be seen
    arrow = page.locator("select:not([multiple])").first.evaluate(
        "one => [getComputedStyle(one).backgroundImage, getComputedStyle(one).color]"
    )
    assert arrow[1] in arrow[0]  # in the colour of the text
    page.click("#theme")
    assert page.evaluate(ground) != dark
    assert page.evaluate(f"{drawn}.background_fill_color") == page.evaluate(ground)
    page.set_viewport_size({"width": 360, "height": 800})
    page.wait_for_timeout(300)
    wide, window = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert wide <= window
    assert faults == []


@pytest.mark.slow
@in_a_browser
def test_a_hundred_thousand_points_are_brushed(browser: Browser, tmp_path: Path) -> None:
    with made_up(tmp_path / "study", sizes=129, networks=1) as study:
        assert 99_000 < study.count <= 100_000
        check_page(browser, study, tmp_path / "page.html")


def test_the_command_shows_as_many_points_as_the_call() -> None:
    """The command line says the number by itself: what makes pages is loaded when it is asked."""
    assert POINTS == MOST_POINTS


def test_of_more_points_fronts_and_a_sample_are_shown(tmp_path: Path) -> None:
    with made_up(tmp_path, sizes=12) as study:
        shown = shown_of(study, fronts_of(study), most=100)
        assert not shown.whole
        assert shown.computed == 2 * 864
        numbers = set(shown.points["number"])
        for network in study.space.network_names:
            assert set(study.front(network=network)["number"]) <= numbers
            assert set(study.front(["cycles", "area_um2"], network=network)["number"]) <= numbers
        again = shown_of(study, fronts_of(study), most=100)
        assert list(again.points["number"]) == list(shown.points["number"])
        text = study_report_html(study, most_points=100)
        assert f"{len(shown.points):,} of 1,728 points are on this page" in text
        assert "<script>alert" not in text


def test_a_study_without_points_and_a_folder_without_study_say_so(
    tmp_path: Path, archsim: Call
) -> None:
    space = Space(machines=(MachineSpace(design=EDGE_16),), networks=("alexnet",))
    with Study.begin(tmp_path / "empty", space) as study, pytest.raises(InputError, match="no poi"):
        study_report_html(study)
    assert "keeps no study" in refused(archsim("report", str(tmp_path / "none")))
    folder = str(tmp_path / "empty")
    assert "--points must be at least 1" in refused(archsim("report", folder, "--points", "0"))


def test_the_design_of_a_point_is_written(tmp_path: Path, archsim: Call) -> None:
    with made_up(tmp_path / "study", sizes=2, networks=1) as study:
        row = study.points([7]).iloc[0]
    folder = str(tmp_path / "study")
    assert archsim("export", folder, "point.toml", "--point", 7).code == 0
    design = load_design("point.toml")
    assert (design.rows, design.columns) == (row["rows"], row["columns"])  # pyright: ignore
    assert "has no point 99" in refused(archsim("export", folder, "b.toml", "--point", 99))
    refused(archsim("export", folder, "b.toml", "--point", 7, "--by", "cycles"))


def test_figures_of_a_study_in_a_notebook(tmp_path: Path) -> None:
    with made_up(tmp_path, sizes=4) as study:
        first = study.space.network_names[0]
        front = study.plot.front("area", "cycles", network=first)
        assert front.get_xlabel() == "area_um2 (µm²)"
        steps: Any = front.lines[0]
        wanted = study.front(["area_um2", "cycles"], network=first)
        assert list(steps.get_xdata()) == list(wanted["area_um2"])
        assert list(steps.get_ydata()) == list(wanted["cycles"])
        parallel = study.plot.parallel(network=first)
        orange = [line for line in parallel.lines if line.get_color() == ORANGE]
        assert len(orange) == len(study.front(network=first))
        bars: list[Any] = list(study.plot.sensitivity(network=first).patches)
        assert max(bar.get_width() for bar in bars) <= 100
        with pytest.raises(InputError, match="of which network"):
            study.plot.front()
        with pytest.raises(InputError, match="no objective 'aera'"):
            study.plot.front("aera", "cycles", network=first)
