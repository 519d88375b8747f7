"""The report in a real browser: Debian's chromium, driven by playwright (`scripts/setup.sh`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from real_browser import CHROMIUM, NO_CHROMIUM

from archsim import EDGE_16, NetworkResult, simulate
from archsim.energy import account
from archsim.energy_account import EnergyAccount
from archsim.report import write_report
from archsim.tiled.timeline import binned
from workloads.builtin import builtin

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)

WIDTHS = (360, 768, 1280)

OVERFLOW = "[document.documentElement.scrollWidth, window.innerWidth]"
FIGURES = """() => [...document.querySelectorAll("figure")].map(figure => ({
  name: figure.id,
  drawings: [...figure.querySelectorAll("svg")]
    .map(svg => svg.getBoundingClientRect()).filter(box => box.width > 0)
    .map(box => [box.width, box.height]),
}))"""
SMALLEST_TEXT = """() => Math.min(...[...document.querySelectorAll("svg text")]
  .filter(text => text.getClientRects().length && text.textContent.trim())
  .map(text => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a
    || parseFloat(getComputedStyle(text).fontSize) * Math.hypot(
      text.getScreenCTM().a, text.getScreenCTM().b)))"""
CLIPPED_TEXT = """() => [...document.querySelectorAll("svg text")]
  .filter(text => {
    const box = text.getBoundingClientRect();
    const frame = text.ownerSVGElement.getBoundingClientRect();
    return box.width && (box.left < frame.left - 2 || box.right > frame.right + 2
      || box.top < frame.top - 2 || box.bottom > frame.bottom + 2);
  }).map(text => text.textContent)"""
CONTRASTS = """() => {
  const parse = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const luminance = colour => parse(colour).map(part => part / 255)
    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (!/, 0\\)$/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const found = {};
  for (const element of document.querySelectorAll("h1, p, a, li, dt, dd, td, th, figcaption, "
      + "summary, code, button, svg text")) {
    if (!element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const ink = element.tagName === "text" ? style.fill : style.color;
    const [low, high] = [luminance(ink), luminance(ground(element))].sort((a, b) => a - b);
    found[element.tagName + " " + ink] = (high + 0.05) / (low + 0.05);
  }
  return found;
}"""


@dataclass(frozen=True, kw_only=True)
class Report:
    """A report on disk, and what it is of."""

    url: str
    result: NetworkResult
    energy: EnergyAccount


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    network = builtin("squeezenet1.1")
    result = simulate(EDGE_16, network)
    energy = account(result, "45nm")
    path: Path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(result, path, account=energy, activity=binned(EDGE_16, network))
    return Report(url=path.as_uri(), result=result, energy=energy)


@pytest.fixture
def page(browser: Browser, report: Report) -> Iterator[Page]:
    """The page, opened; at the end nothing was said on its console and nothing else was fetched."""
    said: list[str] = []
    fetched: list[str] = []
    context = browser.new_context(color_scheme="light")
    opened = context.new_page()
    opened.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("request", lambda request: fetched.append(request.url))
    opened.goto(report.url)
    yield opened
    context.close()
    assert said == []
    assert set(fetched) <= {report.url, "data:,"}


def numbers(value: Any) -> list[float]:
    return [float(one) for one in value]


def test_headline_figures_are_the_results(page: Page, report: Report) -> None:
    cards: dict[str, str] = dict(
        page.eval_on_selector_all(
            ".card",
            "cards => cards.map(card => [card.querySelector('dt').textContent,"
            " card.querySelector('data').textContent])",
        )
    )
    assert cards["Cycles"] == f"{report.result.cycles:,}"
    assert cards["Utilisation"] == f"{100 * report.result.utilization:.1f} %"
    values = page.eval_on_selector_all("data", "all => all.map(one => Number(one.value))")
    assert numbers(values)[:4] == pytest.approx(
        [
            report.result.cycles,
            report.result.seconds,
            report.result.utilization,
            sum(report.result.bytes_moved.values()),
        ]
    )
    assert numbers(values)[4] == pytest.approx(report.energy.total * 1e-12)
    assert page.title() == "squeezenet1.1 on edge-16 – archsim report"


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_fits_and_every_figure_is_seen_once(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    wanted, there = numbers(page.evaluate(OVERFLOW))
    assert wanted <= there == width
    figures = page.evaluate(FIGURES)
    assert len(figures) == 14
    for figure in figures:
        (drawing,) = figure["drawings"]
        assert min(drawing) > 100, figure
        assert drawing[0] > 0.85 * min(width, 480), figure
    assert page.evaluate(CLIPPED_TEXT) == []


def test_text_in_figures_is_legible_on_a_telephone(page: Page) -> None:
    for width, least in ((360, 9), (768, 8)):
        page.set_viewport_size({"width": width, "height": 800})
        assert float(page.evaluate(SMALLEST_TEXT)) >= least, width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(page: Page, scheme: Any) -> None:
    page.emulate_media(color_scheme=scheme)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 22, 26)"}[scheme]
    contrasts: dict[str, float] = page.evaluate(CONTRASTS)
    assert len(contrasts) > 10
    assert {text: ratio for text, ratio in contrasts.items() if ratio < 4.5} == {}


def test_the_scheme_can_be_changed_and_is_not_kept(page: Page) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    button = page.locator("#theme")
    assert button.text_content() == "Dark"
    button.click()
    assert page.evaluate(ground) == "rgb(20, 22, 26)"
    assert button.text_content() == "Light"
    button.click()
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    button.click()
    page.reload()
    assert page.evaluate(ground) == "rgb(255, 255, 255)"


def test_print_is_on_white_without_controls_and_in_full(page: Page) -> None:
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(27, 30, 35)"
    for control in ("#theme", "nav", "thead button"):
        assert not page.locator(control).first.is_visible()
    for box in page.evaluate(
        "[...document.querySelectorAll('.scroll')].map(box => [box.scrollHeight, box.clientHeight])"
    ):
        assert box[0] <= box[1] + 1
    drawn = page.evaluate(FIGURES)
    assert all(len(figure["drawings"]) == 1 for figure in drawn)
    avoid = "getComputedStyle(document.querySelector('figure')).breakInside"
    assert page.evaluate(avoid) == "avoid"
    assert len(page.pdf()) > 50_000


def test_layers_are_sorted_by_a_click(page: Page, report: Report) -> None:
    cells = "rows => rows.map(row => row.cells[0].textContent)"
    names = [layer.name for layer in report.result.layers]
    body = "#table-layers tbody tr"
    assert page.eval_on_selector_all(body, cells) == names
    page.get_by_role("button", name="Sort by cycles").click()
    slowest = max(report.result.layers, key=lambda layer: layer.cycles)
    assert page.eval_on_selector_all(body, cells)[0] == slowest.name
    heading = page.locator("#table-layers th", has_text="cycles").first
    assert heading.get_attribute("aria-sort") == "descending"
    page.get_by_role("button", name="Sort by layer").click()
    assert page.eval_on_selector_all(body, cells) == sorted(names)


def test_the_head_of_a_table_stays_in_sight(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    tops = page.evaluate(
        """() => {
          const box = document.querySelector(".scroll.layers");
          box.scrollTo(200, 300);
          const head = box.querySelector("thead th").getBoundingClientRect();
          const name = box.querySelector("tbody tr:last-child th").getBoundingClientRect();
          const frame = box.getBoundingClientRect();
          return [head.top - frame.top, name.left - frame.left, box.scrollLeft];
        }"""
    )
    assert numbers(tops)[:2] == pytest.approx([1, 1], abs=1.5)
    assert numbers(tops)[2] == 200


def test_readers_hear_each_figure_once(page: Page) -> None:
    assert page.get_by_role("img").count() == 14
    names = page.get_by_role("img").evaluate_all("all => all.map(one => one.ariaLabel)")
    assert all("squeezenet1.1 on edge-16" in name for name in names)
    assert page.locator("svg:not([aria-hidden=true])").count() == 0
