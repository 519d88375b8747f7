"""Maps of the PEs: what each did is what the sparse machine's timing says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from command_line import Call, good

from archsim import NetworkResult, simulate
from archsim.errors import InputError
from archsim.layer.intake import Drawing
from archsim.machines.scnn.design import SCNN_ISCA17
from archsim.machines.scnn.layer import layer_timing
from archsim.plots.axes import NOTE
from archsim.plots.pe_maps import MAPS, pe_shares
from workloads.layers import Conv2d, Network

WIDE = Conv2d(
    name="wide", channels=5, filters=12, ifmap_height=17, ifmap_width=23, kernel_height=3,
    kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1,
)  # fmt: skip
FEW = Conv2d(
    name="few", channels=5, filters=12, ifmap_height=3, ifmap_width=5, kernel_height=1,
    kernel_width=1,
)  # fmt: skip
OPERANDS = {
    layer.name: SCNN_ISCA17.intake.synthetic(layer, Drawing(density=0.5)) for layer in (WIDE, FEW)
}


@pytest.fixture(scope="module")
def result() -> NetworkResult:
    mpl.use("Agg")
    network = Network(name="two", source="here", layers=(WIDE, FEW))
    return simulate(SCNN_ISCA17, network, operands=OPERANDS)


def notes(ax: Any) -> list[str]:
    return [str(patch.get_gid()).removeprefix(NOTE) for patch in ax.patches]


@pytest.mark.parametrize("layer", [WIDE, FEW], ids=lambda layer: layer.name)
def test_cycles_of_every_pe_sum_to_the_layers(result: NetworkResult, layer: Conv2d) -> None:
    timing = layer_timing(SCNN_ISCA17, layer, OPERANDS[layer.name])
    (found,) = (one for one in result.layers if one.name == layer.name)
    assert set(found.per_pe) == set(MAPS)
    assert np.all(sum(found.per_pe.values()) == timing.compute_cycles)
    busy = found.per_pe["load"] + found.per_pe["conflict"]
    assert np.array_equal(busy, timing.per_pe("busy"))
    assert np.array_equal(found.per_pe["conflict"], timing.per_pe("conflict"))


def test_pes_that_the_plane_does_not_reach_idle(result: NetworkResult) -> None:
    idle = pe_shares([result.layers[1]])["idle"]
    assert np.all(idle[3:] == 1)
    assert np.all(idle[:, 5:] == 1)
    assert np.all(idle[:3, :5] < 1)


def test_the_maps_show_every_pe(result: NetworkResult) -> None:
    ax: Any = result.plot.pes()
    assert len(notes(ax)) == 3 * 64
    share = 100 * pe_shares(list(result.layers))["load"][2, 7]
    assert f"PE (2, 7): load in {share:.1f} % of the cycles" in notes(ax)
    alphas = [patch.get_alpha() for patch in ax.patches[:64]]
    assert len(set(alphas)) > 1
    one: Any = result.plot.pes("few")
    assert "few on scnn" in one.get_title()


def test_where_there_are_none(result: NetworkResult) -> None:
    with pytest.raises(InputError, match=r"no layer 'wyde' .*wide"):
        result.plot.pes("wyde")


def test_report_and_json_have_them(archsim: Call, tmp_path: Path) -> None:
    words = ("run", "scnn", "resnet18", "--density", "0.1", "--report", "r.html", "--json")
    record = json.loads(good(archsim(*words)))
    per_pe = record["layers"][0]["per_pe"]
    assert np.shape(per_pe["load"]) == (8, 8)
    page = (tmp_path / "r.html").read_text()
    assert 'id="pes"' in page
    assert page.count("<title>PE (7, 7): ") == 6, "three maps, wide and narrow"
