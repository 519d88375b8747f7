"""Areas and energies beside published ones: `archsim paper scnn-area, eyeriss, mac-area`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from archsim.papers import Comparison, compare
from archsim.papers.eyeriss import EYERISS_BUDGET, energies, ratios, words_moved
from archsim.papers.figures import load_figures, read_paper
from archsim.papers.mac_area import LIBRARIES, hand_count
from archsim.papers.scnn_area import PES, part_areas_um2, printed_areas_um2, scnn_pe
from archsim.simulate import simulate
from energy_models.technology import load_technology
from workloads.builtin import builtin

PAPERS = ("scnn-area", "eyeriss", "mac-area")


@pytest.fixture(scope="module", params=PAPERS)
def comparison(request: pytest.FixtureRequest) -> Comparison:
    return compare(request.param)


def test_every_figure_is_compared_and_every_mismatch_explained(comparison: Comparison) -> None:
    keys = {row.published.key for row in comparison.rows}
    assert keys == set(load_figures(comparison.paper))
    for row in comparison.rows:
        assert row.within is not False or row.measured or row.missing
        assert row.published.source
        assert row.published.why or row.published.value is None


def within(paper: str) -> dict[str, bool | None]:
    return {row.published.key: row.within for row in compare(paper).rows}


def test_scnn_what_agrees_and_what_does_not() -> None:
    """Golden: with the cheaper of macros and registers only the large memories are the paper's;
    flip-flops for FIFO and sums are on its other side."""
    rows = {row.published.key: row for row in compare("scnn-area").rows}
    outside = {key for key, row in rows.items() if row.within is False}
    small = {"fifo", "alus", "crossbar", "accumulators"}
    assert outside == {*small, "described", "pe", "chip"}
    for key in ("fifo", "accumulators"):
        paper, flops = rows[key].published.value, rows[key].measured[0]
        assert paper is not None and flops.what == "as flip-flops"
        assert rows[key].ours < paper < flops.value
    assert rows["crossbar"].measured[0].what == "as emitted, with arbitration and queues"
    assert rows["crossbar"].measured[0].value > 5 * rows["crossbar"].ours


def test_scnn_parts_follow_their_sizes() -> None:
    technology = load_technology("16nm")
    areas = part_areas_um2(technology)
    assert set(areas) == set(scnn_pe())
    adder = scnn_pe()["accumulators"][-1]
    one = technology.area_um2(adder)
    wider = technology.area_um2(replace(adder, attributes={"bits": 48}))
    assert one is not None and wider is not None
    assert 1.8 < wider.value / one.value < 2.2


def test_scnn_table_adds_up() -> None:
    """The printed components sum to 0.124 mm², the printed total is 0.123."""
    printed = printed_areas_um2()
    whole = printed.pop("all_processing_elements")
    pe = printed.pop("processing_element")
    assert sum(printed.values()) == pytest.approx(pe, abs=1000)
    assert PES * pe == pytest.approx(whole, rel=0.005)


def test_eyeriss_orderings() -> None:
    """On chip dominates convolutions, DRAM fully connected layers; arithmetic is below 10 %."""
    ours = {row.published.key: row.ours for row in compare("eyeriss").rows}
    assert ours["conv.DRAM"] < ours["conv.buffer"] + ours["conv.array"]
    assert ours["fc.DRAM"] > 50
    assert ours["conv.MAC"] < 10
    for kind in ("conv", "fc"):
        assert sum(value for key, value in ours.items() if key.startswith(f"{kind}.")) == (
            pytest.approx(100)
        )


def test_eyeriss_accesses_are_the_counts() -> None:
    assert ratios() == {"DRAM": 200, "buffer": 6, "array": 2, "MAC": 1}
    result = simulate(EYERISS_BUDGET, builtin("alexnet"))
    layer = result.layers[0]
    moved = words_moved(layer, EYERISS_BUDGET)
    assert moved["DRAM"] == layer.total_bytes / 2
    assert moved["MAC"] == layer.macs
    assert energies([layer])["DRAM"] == 100 * layer.total_bytes


def test_cells_by_hand_on_a_small_case() -> None:
    """2 × 2 bits: 4 ANDs, 2 half adders, no full adder."""
    cells = {"and": 1.0, "half_adder": 10.0, "full_adder": 100.0}
    assert hand_count(2, cells) == 4 + 20
    assert hand_count(4, cells) == 16 + 40 + 800
    assert hand_count(4, cells, sum_bits=32) == 16 + 40 + 800 + 3200


def test_the_printed_ratios_are_the_count() -> None:
    cells = read_paper("mac-area")["cells"]
    figures = load_figures("mac-area")
    for key, sum_bits in (("hand.mac", 32), ("hand.multiplier", 0)):
        ratio = hand_count(4, cells, sum_bits) / hand_count(8, cells, sum_bits)
        assert figures[key].value == pytest.approx(ratio, abs=5e-4)


def test_mac_ratios_agree_but_for_one_library_s_adders() -> None:
    rows = compare("mac-area").rows
    assert len(rows) == len(LIBRARIES) * len(load_figures("mac-area"))
    outside = [row.published.figure for row in rows if not row.within]
    assert outside == [
        "area, 32-bit addition over 8-bit addition (sky130)",
        "energy, 32-bit addition over 8-bit addition (sky130)",
    ]


def test_eyeriss_rereads_are_what_its_buffers_and_mapping_make_of_them() -> None:
    rows = {row.published.key: row for row in compare("eyeriss").rows}
    measured = {one.what: one.value for one in rows["conv_dram"].measured}
    assert measured["every word once"] < 2.9 < rows["conv_dram"].ours
    assert measured["buffers of 24, 12 and 72 KiB"] < rows["conv_dram"].ours
    assert measured["each ifmap word crosses"] > 2
