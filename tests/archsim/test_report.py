"""The report's HTML: complete, self-contained, the same for the same result, and never half."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from heads import unnamed
from html_page import Page

from archsim import EDGE_16, InputError, NetworkResult, simulate
from archsim.energy import account
from archsim.energy_account import EnergyAccount
from archsim.machine.registry import design_from_record
from archsim.report import report_html, write_report
from archsim.report.svg import page_svg
from archsim.report.tables import missing
from archsim.report.theme import DARK, LIGHT, VARIABLES
from archsim.tiled.timeline import binned
from workloads.builtin import builtin
from workloads.layers import MatMul, Network, VectorWork

FIGURES = {
    "cycles", "activity", "utilization", "roofline", "energy", "energy-by-component", "area",
    "traffic", "memory-bytes", "pes", "pes-over-time", "gantt", "energy-map", "area-map",
}  # fmt: skip


@pytest.fixture(scope="module")
def result() -> NetworkResult:
    return simulate(EDGE_16, builtin("alexnet"))


@pytest.fixture(scope="module")
def energy(result: NetworkResult) -> EnergyAccount:
    return account(result, "45nm")


@pytest.fixture(scope="module")
def tiny() -> NetworkResult:
    network = Network(name="tiny", layers=(MatMul(name="fc", m=3, n=4, k=5),), source="")
    return simulate(EDGE_16, network)


@pytest.fixture(scope="module")
def html(result: NetworkResult, energy: EnergyAccount) -> str:
    over_time = binned(EDGE_16, builtin("alexnet"), bins=50)
    command = "archsim run edge-16 alexnet --report 'a <b>.html'"
    return report_html(result, account=energy, activity=over_time, command_line=command)


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_every_tag_is_closed_where_it_was_opened(page: Page) -> None:
    assert page.open == []
    assert page.tags[0] == ("html", {"lang": "en"})


def test_nothing_is_fetched(page: Page) -> None:
    assert page.attributes("src") == []
    for link in page.attributes("href"):
        assert link.startswith(("#", "data:image/png;base64,")) or link == "data:,"
    policy = next(
        found["content"] for _, found in page.tags if "http-equiv" in found and found["content"]
    )
    assert policy.startswith("default-src 'none'; ")


def test_ids_are_unique_and_references_lead_somewhere(page: Page, html: str) -> None:
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    wanted = {link[1:] for link in page.attributes("href") if link.startswith("#")}
    wanted |= set(re.findall(r"url\(#([^)]+)\)", html))
    for name in ("aria-labelledby", "aria-describedby"):
        wanted |= set(page.attributes(name))
    assert wanted <= set(ids)


def test_every_figure_is_there_in_both_widths(page: Page, html: str) -> None:
    figures = {found["id"] for tag, found in page.tags if tag == "figure"}
    assert figures == FIGURES
    drawings = [found for tag, found in page.tags if tag == "svg"]
    assert len(drawings) == 2 * len(FIGURES)
    assert {found["viewbox"].split()[2] for found in drawings if found["viewbox"]} == {
        "800",
        "340",
    }
    assert all(found["aria-hidden"] == "true" for found in drawings)
    labels = [found["aria-label"] for _, found in page.tags if found.get("role") == "img"]
    assert len(labels) == len(FIGURES)
    assert all(labels)


def test_headings_are_in_order(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_headline_figures_are_exact(page: Page, result: NetworkResult, energy: Any) -> None:
    values = [float(found["value"] or "") for tag, found in page.tags if tag == "data"]
    assert values == pytest.approx(
        [
            result.cycles,
            result.seconds,
            result.utilization,
            sum(result.bytes_moved.values()),
            energy.total * 1e-12,
            energy.edp * 1e-12,
            energy.power_w,
            energy.area_um2,
        ],
        rel=1e-15,
    )


def test_heads_are_in_the_glossary(page: Page) -> None:
    heads = {head for table in page.rows.values() for head in table[0]}
    assert len(heads) > 20
    assert [head for head in heads if unnamed(head)] == []


def test_the_table_has_every_layer_and_a_total(page: Page, result: NetworkResult) -> None:
    heading, *rows, total = page.rows["table-layers"]
    assert [row[0] for row in rows] == [layer.name for layer in result.layers]
    cycles, moved = heading.index("cycles"), heading.index("off-chip bytes")
    for row, layer in zip(rows, result.layers, strict=True):
        assert row[cycles] == (f"{layer.cycles:,}" if layer.cycles else "–")
        assert row[moved] == (f"{layer.total_bytes:,}" if layer.cycles else "–")
    assert total[cycles] == f"{result.cycles:,}"
    assert total[moved] == f"{sum(result.bytes_moved.values()):,}"


def test_every_price_is_in_the_table_with_its_source(
    page: Page, html: str, energy: EnergyAccount
) -> None:
    heading, *rows = page.rows["table-prices"]
    prices = energy.record()["energy"]["prices"]
    assert len(rows) == len(prices)
    for row, price in zip(rows, prices, strict=True):
        cells = dict(zip(heading, row, strict=True))
        assert (cells["component"], cells["what"]) == (price["component"], price["what"])
        if price["value"] is None:
            assert (cells["value"], cells["how"]) == ("–", price["how"])
        else:
            assert float(cells["value"].replace(",", "")) == pytest.approx(price["value"], rel=1e-5)
            assert energy.sources[int(cells["source"].strip("[]")) - 1] == price["source"]
    for source in energy.sources:
        assert f"<li>{source}</li>" in unescape(html)


def test_what_is_missing_is_said(html: str, energy: EnergyAccount) -> None:
    said = [
        f"{where} ({kind}): {why}"
        for why, texts in missing(energy).items()
        for where, kinds in (text.removesuffix(")").split(" (") for text in texts)
        for kind in kinds.split(", ")
    ]
    assert sorted(said) == sorted(energy.missing)
    for reason, texts in missing(energy).items():
        assert f"<dt>{reason}</dt>" in unescape(html)
        assert f"<dd>{', '.join(texts)}</dd>" in unescape(html)


def test_the_design_can_be_run_again(html: str) -> None:
    found = re.search(r"<pre tabindex=\"0\"><code>(kind = .*?)</code>", unescape(html), re.DOTALL)
    assert found is not None
    assert design_from_record(tomllib.loads(found[1]), "here") == EDGE_16
    assert "archsim run edge-16 alexnet --report &#39;a &lt;b&gt;.html&#39;" in html


def test_colours_of_figures_are_the_pages(html: str) -> None:
    drawings = re.findall(r"<svg .*?</svg>", html, re.DOTALL)
    for drawing in drawings:
        assert not re.findall(r"#[0-9a-f]{6}\b|font-family|<style|<metadata", drawing)
    used = {name for one in drawings for name in re.findall(r"var\(--([a-z]+)\)", one)}
    assert used <= set(LIGHT)
    assert set(LIGHT) == set(DARK)
    assert set(VARIABLES.values()) <= set(LIGHT)


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2.2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_text_has_contrast_on_every_ground(theme: dict[str, str]) -> None:
    for ground in ("background", "raised"):
        for text in ("text", "soft", "accent"):
            assert contrast(theme[text], theme[ground]) >= 4.5, (text, ground)


def test_marks_say_their_exact_figure(html: str, result: NetworkResult) -> None:
    for layer in result.layers:
        if layer.cycles:
            text = f"{layer.name}: computing {layer.where['computing']:,} cycles"
            assert html.count(f"<title>{text}</title>") == 2


def test_relative_energies_are_in_macs(result: NetworkResult, energy: EnergyAccount) -> None:
    prices = energy.price_list
    relative = replace(
        energy,
        price_list=replace(prices, technology=replace(prices.technology, unit="MAC")),
    )
    html = report_html(result, account=relative)
    assert "multiples of one multiply-accumulate (MAC)" in html
    assert "Mean power" not in html
    assert "MAC·s" in html
    assert "times its MACs alone" in html


def test_names_are_text_and_not_markup() -> None:
    name = "<script>alert(1)</script>&"
    network = Network(name=name, layers=(MatMul(name=name, m=2, n=2, k=2),), source=name)
    html = report_html(simulate(EDGE_16, network), why_no_energy=name)
    assert "<script>alert" not in html
    assert html.count("<script>") == 1
    assert "not in this report: &lt;script&gt;alert(1)&lt;/script&gt;&amp;." in html


def test_a_network_of_vector_work_alone_has_a_page() -> None:
    sizes = dict.fromkeys(("input_elements", "output_elements", "operations"), 4)
    work = VectorWork(name="relu", operator="Relu", **sizes)
    network = Network(name="n", layers=(work,), source="")
    assert Page(report_html(simulate(EDGE_16, network))).open == []


def test_the_report_is_written_whole_and_always_the_same(
    tmp_path: Path, tiny: NetworkResult
) -> None:
    import matplotlib.pyplot as plt

    plt.close("all")
    before = dict(mpl.rcParams)
    path = tmp_path / "new" / "report.html"
    write_report(tiny, path)
    assert dict(mpl.rcParams) == before
    assert plt.get_fignums() == []
    html = path.read_text(encoding="utf-8")
    assert html == report_html(tiny)
    assert 'id="energy"' not in html
    assert "not in this report: no technology was chosen." in html
    assert [one.name for one in path.parent.iterdir()] == ["report.html"]


def test_a_file_that_exists_is_not_overwritten(tmp_path: Path, tiny: NetworkResult) -> None:
    path = tmp_path / "report.html"
    path.write_text("mine")
    with pytest.raises(InputError) as refused:
        write_report(tiny, path)
    assert str(refused.value) == f"{path} exists; give a name that does not, or say --force"
    assert path.read_text() == "mine"


def test_importing_the_report_loads_neither_matplotlib_nor_jinja() -> None:
    code = (
        "import archsim.report, sys; "
        "sys.exit(bool({'matplotlib', 'jinja2', 'pandas'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_drawing_loses_what_the_page_must_not_have() -> None:
    drawn = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        'viewBox="0 0 10 20"><metadata>when</metadata><defs><style>*{}</style></defs>'
        '<g id="note: a &amp; b"><path d="M 1.005 2.5 L 3 4.123 z" style="fill: #009e73"/></g>'
        '<g id="note: none"><path d="M 1 2 L 3 2 z" style="fill: #009e73"/></g>'
        '<g id="axes_1"><use xlink:href="#m0123456789" style="stroke: #1A1A1B"/></g></svg>'
    )
    assert page_svg(drawn, "x") == (
        '<svg viewBox="0 0 10 20" fill="var(--black)" aria-hidden="true" focusable="false">'
        '<defs /><path d="M1 2.5L3 4.12z" class="green"><title>a &amp; b</title></path>'
        '<use href="#x-m0123456789" style="stroke:var(--text)" /></svg>'
    )
