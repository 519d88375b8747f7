"""VS-Quant's PE and ours: data complete, rows right, facts that must hold; the operands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.codecs.vector_dot import dot
from archsim.codecs.vsquant import Quantized, quantize
from archsim.errors import InputError
from archsim.machines.vsq.vector_lane import LaneSteps
from archsim.papers import vsquant_hardware as hw
from archsim.papers import vsquant_operands as operands
from archsim.papers.figures import read_paper
from archsim.papers.vsquant_operands import FILTERS, LAYERS, PIXELS, blocks
from archsim.papers.vsquant_pe import Pe, array_ports, array_sums
from archsim.papers.vsquant_points import point

ROUNDED = (("4/4/4/4", 6), ("4/4/4/4", 4), ("6/6/4/4", 6), ("6/6/4/4", 4))


def of(text: str, bits: int = 0, gated: bool | None = None) -> hw.PePoint:
    return hw.measured()[text, bits, bits > 0 if gated is None else gated]


def test_every_setting_is_measured_once() -> None:
    assert list(hw.measured()) == hw.settings()
    assert len(hw.read_data()["point"]) == len(hw.settings())
    assert hw.settings()[0] == ("8/8/-/-", 0, False)
    for name in ("library", "library_sha256", "tools", "buffers", "date", "steps"):
        assert hw.read_data()[name]


def test_settings_are_read() -> None:
    assert hw.setting_of("4/8/6/10") == ("4/8/6/10", 0, False)
    assert hw.setting_of("6/8/8/-@6") == ("6/8/8/-", 6, True)


@pytest.mark.parametrize(("text", "whole", "bits"), [("8/8/6/-@6", 6, 6), ("4/4/4/4@0", 8, 0)])
def test_a_rounding_that_drops_nothing_is_refused(text: str, whole: int, bits: int) -> None:
    with pytest.raises(InputError) as error:
        hw.setting_of(text)
    assert str(error.value) == (
        f"a product of {whole} bits must be rounded to fewer, but more than 0, not {bits}"
    )


@pytest.mark.parametrize("name", ["area_um2", "energy_pj"])
def test_points_check_themselves(name: str) -> None:
    good = of("8/8/-/-")
    figures: dict[str, float] = dict(getattr(good, name))
    wrong: dict[str, Any] = {name: figures | {"ppu": 0.0}}
    with pytest.raises(InputError, match=f"8/8/-/-: {name} must be positive and of lanes, coll"):
        replace(good, **wrong)
    del figures["ppu"]
    wrong = {name: figures}
    with pytest.raises(InputError, match="must be positive and of"):
        replace(good, **wrong)


def test_scopes_add_up() -> None:
    for one in hw.measured().values():
        for part in ("area", "energy"):
            figures = one.area_um2 if part == "area" else one.energy_pj
            assert one.total(part) == pytest.approx(sum(figures.values()))
            buffers = figures["activation_buffer"] + figures["weight_buffer"]
            assert one.total(part, "lanes and PPU") == pytest.approx(one.total(part) - buffers)
            assert one.total(part, "lanes") + figures["ppu"] == pytest.approx(
                one.total(part, "lanes and PPU")
            )
    assert [of("8/8/-/-").relative("area", scope) for scope in hw.SCOPES] == [1, 1, 1]


def test_a_vector_scaled_pe_of_4_bits_is_smaller_and_takes_less_energy() -> None:
    for part in ("area", "energy"):
        for scope in hw.SCOPES:
            assert of("4/4/4/6").relative(part, scope) < 1
            assert of("4/4/-/-").relative(part, scope) < of("4/4/4/4").relative(part, scope)


def test_rounding_saves_area_and_energy() -> None:
    """Alone; and with fewer bits more, also where lanes are gated."""
    for part in ("area", "energy"):
        whole = of("4/4/4/4")
        six, four = (of("4/4/4/4", bits, gated=False) for bits in (6, 4))
        for scope in hw.SCOPES:
            assert whole.relative(part, scope) > six.relative(part, scope)
            assert six.relative(part, scope) > four.relative(part, scope)
        for text in ("4/4/4/4", "6/6/4/4", "6/8/8/-"):
            assert of(text, 6).relative(part) > of(text, 4).relative(part)


def test_what_does_not_hold_is_said() -> None:
    """Figure 3 has 4/4/4/4 with a product of 4 bits below 4/4/-/-; ours is above, gated or not."""
    channel = of("4/4/-/-").relative("energy")
    gated, ungated = (of("4/4/4/4", 4, gated=each) for each in (True, False))
    assert channel < ungated.relative("energy") < gated.relative("energy")
    assert gated.zero_steps == ungated.zero_steps > 0
    note = hw.notes()[-1]
    for value in (channel, gated.relative("energy"), ungated.relative("energy")):
        assert f"{value:.2f}" in note
    assert note.endswith("in ours it is not.")


def test_every_published_figure_has_a_row() -> None:
    rows = hw.hardware_rows()
    paper = read_paper("vsquant")
    figures = sum(
        len(group["energy"]) + len(group.get("performance_per_area", {}))
        for group in paper["hardware"]
    )
    assert len(rows) == figures + len(paper["saving"])
    assert len({row.published.key for row in rows}) == len(rows)
    by_figure = {row.published.figure: row for row in rows}
    area = by_figure["4/4/4/6: area"]
    assert area.published.value == pytest.approx(1 / 1.59)
    assert area.ours == of("4/4/4/6").relative("area")
    assert area.within
    rounded = by_figure["4/4/4/4, product of 4 bits: energy"]
    assert rounded.published.value == 0.365
    assert rounded.ours == of("4/4/4/4", 4).relative("energy")
    assert "7.0 % of steps gated" in rounded.reason
    assert [one.what for one in rounded.measured] == ["not gated"]
    assert rounded.state == "explained"


def test_the_page_has_the_figures() -> None:
    page = (Path(__file__).parents[2] / "docs" / "vsquant.md").read_text(encoding="utf-8")
    lines = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    table = {(cells[0][2:], cells[1]): cells for cells in lines if len(cells) == 8}
    for group in read_paper("vsquant")["hardware"][:3]:
        network = group["group"].removeprefix("PE, ").removesuffix("'s points")
        for text, energy in group["energy"].items():
            cells, ours = table[network, text], of(text)
            assert float(cells[2]) == energy
            shown = [f"{ours.relative('energy'):.2f}", f"{ours.relative('area'):.2f}"]
            assert [cells[3], cells[5]] == shown
            assert float(cells[4]) == pytest.approx(
                1 / group["performance_per_area"][text], abs=5e-3
            )


def test_the_abstract_stands_as_such() -> None:
    rows = [row for row in hw.hardware_rows() if "of MLSys" in row.published.source]
    assert [row.published.value for row in rows] == [31, 64, 72]
    assert all(row.reason.startswith("abstract only: no body") for row in rows)
    assert "lowest is −63.5 %" in rows[0].reason
    energies = [
        value for group in read_paper("vsquant")["hardware"] for value in group["energy"].values()
    ]
    assert min(energies) == pytest.approx(1 - 0.635)


some_points = st.builds(
    "{}/{}/{}/{}".format,
    st.sampled_from([2, 3, 4, 8]),
    st.sampled_from([2, 3, 4, 8]),
    st.sampled_from(["-", 1, 4, 6]),
    st.sampled_from(["-", 1, 4, 10]),
)


@settings(max_examples=12)
@given(text=some_points)
def test_blocks_are_the_layer_s_integers(text: str) -> None:
    """Against a convolution of the whole quantised ifmap by `dot`, window by window."""
    at = point(text)
    pe = Pe(at=at)
    for block, (layer, weight, ifmap) in zip(blocks(at), operands._tensors(), strict=True):
        assert block.layer == layer
        w = quantize(weight, pe.mac.weight, coarse_axis=0)
        a = quantize(ifmap, pe.mac.activation)
        kernel = weight.shape[2]
        wanted = dot(pe.mac, w, _middle_windows(a, kernel))
        sums, zeros = array_sums(pe, block)
        np.testing.assert_array_equal(sums, wanted)
        assert 0 <= zeros < 1
        np.testing.assert_array_equal(block.weight_coarse, w.coarse.reshape(-1))


def _middle_windows(a: Quantized, kernel: int) -> Quantized:
    height, width = a.values.shape[2:]

    def taken(x: Any) -> Any:
        found = np.zeros((PIXELS, x.shape[1], kernel, kernel), x.dtype)
        for number in range(PIXELS):
            y, col = divmod(height // 2 * width + number, width)
            for r in range(kernel):
                for s in range(kernel):
                    row, column = y + r - kernel // 2, col + s - kernel // 2
                    if 0 <= row < height and 0 <= column < width:
                        found[number, :, r, s] = x[0, :, row, column]
        return found

    scales = a.scales if a.format.vector is None else taken(a.scales)
    return replace(a, values=taken(a.values), scales=scales)


def test_blocks_have_the_stated_vectors() -> None:
    found = blocks(point("4/4/4/6"))
    assert [block.weight.shape for block in found] == [(FILTERS, j, 16) for j in (18, 16, 36)]
    assert [block.activation.shape for block in found] == [(PIXELS, j, 16) for j in (18, 16, 36)]
    assert [block.layer for block in found] == list(LAYERS)
    assert PIXELS * sum(block.weight.shape[1] for block in found) == hw.read_data()["steps"]
    zeros = np.mean([(block.activation == 0).mean() for block in found])
    assert 0.3 < zeros < 0.6, "behind a ReLU"
    with pytest.raises(InputError, match="vector must divide the 32 channels of fire4/expand3x3"):
        blocks(point("4/4/4/4", vector=24))


@pytest.mark.parametrize(
    ("text", "bits"), [("8/8/-/-", None), ("4/4/4/6", None), ("4/4/4/4", 4), ("6/3/-/4", None)]
)
def test_the_lane_s_model_answers_the_ports_with_the_sums(text: str, bits: int | None) -> None:
    pe = Pe(at=point(text), product_bits=bits, gated=bits is not None)
    found = blocks(pe.at)
    ports = array_ports(pe, found)
    columns = {name: lanes for name, (lanes, _) in ports.items()}
    for lanes, widths in ports.values():
        assert lanes.shape[1] == len(widths)
        bound = 1 << np.array(widths)
        assert (lanes < bound).all() and (lanes >= -bound // 2).all()
    wanted = np.concatenate([array_sums(pe, block)[0] for block in found])
    held = columns["weight"][np.flatnonzero(columns["begin"])].repeat(PIXELS, axis=0)
    np.testing.assert_array_equal(held, columns["weight"])
    for lane in (0, 7, 15):
        given_out = pe.lane.compute(_steps(pe, columns, lane)).sums
        np.testing.assert_array_equal(given_out, wanted[:, lane])


def _steps(pe: Pe, columns: dict[str, Any], lane: int) -> LaneSteps:
    count = len(columns["slot"])
    own = columns["weight"].reshape(count, FILTERS, -1)[:, lane]
    one = np.ones(count, np.int64)
    return LaneSteps(
        start_cycles=np.arange(count),
        weight=own[:, :16],
        activation=columns["ifmap"][:, :16],
        weight_scale=own[:, 16] if pe.mac.weight.scale_bits else one,
        activation_scale=columns["ifmap"][:, 16] if pe.mac.activation.scale_bits else one,
        address=columns["slot"][:, 0],
        first=columns["first"][:, 0],
        last=columns["last"][:, 0],
    )


def test_collectors_of_the_baseline_are_the_chip_s() -> None:
    assert Pe(at=point("8/8/-/-")).mac.accumulator_bits == 24
    assert Pe(at=point("4/8/6/10")).mac.accumulator_bits == 4 + 8 + 4 + 16 + 4
    assert Pe(at=point("4/4/4/4"), product_bits=4).mac.accumulator_bits == 4 + 4 + 4 + 4 + 4


def test_buffers_hold_a_vector_and_its_scale_a_row() -> None:
    found = Pe(at=point("4/8/6/10")).buffers(2)
    sizes = {name: dict(one.attributes) for name, one in found.items()}
    ports = {"read_ports": 1, "write_ports": 1}
    assert sizes == {
        "activation_buffer": {"word_bits": 16 * 8 + 10, "depth": 1024, **ports},
        "weight_buffer": {"word_bits": 16 * (16 * 4 + 6), "depth": 256, **ports},
    }
