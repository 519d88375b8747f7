"""A third kind of machine from a package of its own."""

from __future__ import annotations

import json
from dataclasses import make_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Call, good, refused
from plugin_packages import EXAMPLE, archsim_with, example_site

from archsim.cli.listing import first_line
from archsim.layer.intake import Drawing
from archsim.machines.systolic.design import EDGE_16
from archsim.numbers import IntArray
from archsim.simulate import simulate, simulate_many
from workloads.layers import Conv2d, MatMul, Network

NETWORK = ("googlenet", "--layer", "classifier")


@pytest.fixture
def third(tmp_path: Path) -> Call:
    """The command line with the example package installed."""
    return archsim_with(example_site(tmp_path / "site"), cwd=tmp_path)


def test_a_third_kind_of_machine_is_listed_and_shown(third: Call, tmp_path: Path) -> None:
    listed = {one["name"]: one for one in json.loads(good(third("list", "designs", "--json")))}
    assert listed["dot-8"]["kind"] == "dot-unit"
    (tmp_path / "mine.toml").write_text(good(third("show", "dot-8", "--set", "lanes=3")))
    assert "lanes = 3" in good(third("show", "mine.toml"))
    assert refused(third("show", "dot-8", "--set", "lanse=3")) == (
        "the design has no 'lanse'; did you mean lanes?"
    )


def test_it_runs_and_is_compared(third: Call, tmp_path: Path) -> None:
    words = ("run", "dot-8", "alexnet", "--timing-only", "-o", "saved", "--report", "page.html")
    assert "alexnet" in good(third(*words))
    result = json.loads((tmp_path / "saved" / "result.json").read_text())
    layers = {one["name"]: one for one in result["layers"]}
    sums, steps = 4096, 9216 // 8
    assert layers["fc6"]["cycles"] == sums * steps + 2
    assert layers["fc6"]["actions"] == {"pair": sums * steps, "sum": sums}
    dram = 8 * (layers["fc6"]["ifmap_bytes"] + layers["fc6"]["weight_bytes"] + 4 * sums)
    prices = {(one["component"], one["what"]): one["value"] for one in result["energy"]["prices"]}
    assert result["energy"]["layers"]["fc6"]["off_chip.dram"] == pytest.approx(
        dram * prices["off_chip.dram", "read"]
    )
    assert "<svg" in (tmp_path / "page.html").read_text()
    assert "dot-8" in good(third("compare", "saved", "saved"))


def test_it_is_traced(third: Call, tmp_path: Path) -> None:
    files = ("--perfetto", "p.json", "--vcd", "w.vcd", "--no-lanes")
    words = ("trace", "dot-8", "--set", "lanes=128", *NETWORK, *files, "--json")
    summary = json.loads(good(third(*words)))
    sums, steps = 1000, 1024 // 128
    assert summary["cycles"] == sums * steps + 2
    assert summary["activity"] == {"array": {"sum": sums * steps}}
    assert summary["vcd"]["transfers"] == 1 + 2 * sums * steps + sums
    events = json.loads((tmp_path / "p.json").read_text())["traceEvents"]
    assert {one["args"]["name"] for one in events if one.get("name") == "thread_name"} == {
        "layers", "array",
    }  # fmt: skip


def test_options_of_others_are_refused(third: Call) -> None:
    said = refused(third("run", "dot-8", "alexnet", "--timing-only", "--chain"))
    assert said == (
        "dot-unit machines have no option --chain, which scnn machines have; "
        "they have: --parts (into how many sums a dot product is cut)"
    )


def convolved(layer: Conv2d, ifmap: IntArray, weight: IntArray) -> IntArray:
    """Sums, output by output."""
    pads = ((layer.pad_top, layer.pad_bottom), (layer.pad_left, layer.pad_right))
    ifmap = np.pad(ifmap.astype(np.int64), ((0, 0), (0, 0), *pads))
    depth, filters = layer.channels // layer.groups, layer.filters // layer.groups
    found = np.zeros((layer.batch, layer.filters, layer.ofmap_height, layer.ofmap_width), np.int64)
    for image, k, p, q in np.ndindex(found.shape):
        first = k // filters * depth
        for c, r, s in np.ndindex(depth, layer.kernel_height, layer.kernel_width):
            row = p * layer.stride_height + r * layer.dilation_height
            column = q * layer.stride_width + s * layer.dilation_width
            found[image, k, p, q] += ifmap[image, first + c, row, column] * int(weight[k, c, r, s])
    return found


LAYERS = (
    Conv2d(
        name="c", channels=6, filters=4, groups=2, ifmap_height=6, ifmap_width=5, kernel_height=3,
        kernel_width=2, stride_height=2, dilation_width=2, pad_top=1, pad_right=2, batch=2,
    ),
    MatMul(name="m", m=3, n=4, k=21, batch=2, shared_weight=False),
)  # fmt: skip


def test_a_design_of_a_notebook_runs_without_being_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its model is asked, not a table of kinds; one that times no designs at once is asked each."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    dot: Any = import_module("own_parts.dot_unit.design")
    designs = [dot.DotUnit(lanes=lanes) for lanes in (1, 4, 7)]
    network = Network(name="two", layers=LAYERS, source="here")
    intake = designs[0].intake
    operands = {one.name: intake.synthetic(one, Drawing(seed=3)) for one in LAYERS}
    conv, product = (operands[one.name] for one in LAYERS)
    cycles, names = simulate_many([EDGE_16, *designs], network)
    assert names == ("c", "m")
    for row, design in enumerate(designs, 1):
        result = simulate(design, network, operands=operands)
        assert [one.cycles for one in result.layers] == cycles[row].tolist()
        found = [one.ofmap for one in result.layers]
        np.testing.assert_array_equal(found[0], convolved(LAYERS[0], conv.ifmap, conv.weight))
        np.testing.assert_array_equal(
            found[1], product.ifmap.astype(np.int64) @ product.weight.astype(np.int64)
        )
    assert cycles[0].tolist() == [one.cycles for one in simulate(EDGE_16, network).layers]


def test_what_says_nothing_of_itself_has_no_title() -> None:
    """Python writes the fields of a dataclass where its words would stand."""
    bare = make_dataclass("Bare", [("size", int)])
    assert "size: int" in (bare.__doc__ or "")
    assert first_line(bare) == ""
    assert first_line(first_line).startswith("Of what it says")
