"""`archsim show mapping`, and the options by which mappings are found."""

import json
import tomllib
from pathlib import Path

import pytest
from command_line import Call, good, refused

from archsim.machines.systolic.design import EDGE_16
from archsim.tiled.timing import plan_tiling, time_layer
from archsim.tiled.toml_lines import lines_of
from workloads.builtin import builtin

RUN = ("run", "edge-16", "alexnet", "--timing-only", "--json")
SHOW = ("show", "mapping", "edge-16", "alexnet")


def cycles(text: str) -> int:
    return json.loads(text)["cycles"]


def test_a_file_of_mappings_is_given_back(
    archsim: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert good(archsim(*SHOW, "--mapper", "exact", "-o", "m.toml")) == ""
    written = tomllib.loads(Path("m.toml").read_text(encoding="utf-8"))
    network = builtin("alexnet")
    assert list(written) == [one.name for one in network.matrix_layers]
    by_hand = cycles(good(archsim(*RUN, "--mapping", "m.toml")))
    assert by_hand == cycles(good(archsim(*RUN, "--mapper", "exact")))
    assert by_hand < cycles(good(archsim(*RUN)))
    again = archsim(*SHOW, "-o", "m.toml")
    assert refused(again) == "m.toml exists; give a name that does not, or say --force"


def test_loops_and_what_memories_hold(archsim: Call) -> None:
    layer = builtin("alexnet").matrix_layers[0]
    tiling = plan_tiling(EDGE_16, layer, None)
    result = time_layer(EDGE_16, layer, tiling)
    lines = good(archsim(*SHOW, "--layer", "conv1")).splitlines()
    assert lines[0] == "conv1"
    assert sum(line.lstrip().startswith("for ") for line in lines) >= 1
    moved = sum(result.bytes_moved.values())
    assert lines[-1].strip() == f"{result.cycles:,} cycles, {moved:,} bytes off the chip"
    (shown,) = json.loads(good(archsim(*SHOW, "--layer", "conv1", "--json")))
    sizes = {loop["over"]: loop for loop in shown["loops"]}
    assert sizes["channels"]["size"] == tiling.channels
    assert sizes["rows of pixels"]["size"] == tiling.pixel_rows
    total = 1
    for loop in shown["loops"]:
        total *= loop["tiles"]
    assert total == result.tiles
    assert all(0 < held["taken_bytes"] <= held["tile_bytes"] for held in shown["held"])
    assert [held["tile_bytes"] for held in shown["held"]][:2] == [
        memory.capacity_bytes // 2 for memory in (EDGE_16.ifmap_memory, EDGE_16.weight_memory)
    ]


@pytest.mark.parametrize(
    "words, message",
    [
        (("show", "mapping", "edge-16"), "archsim show mapping DESIGN NETWORK takes a design and"),
        (("show", "edge-16", "alexnet"), "archsim show mapping DESIGN NETWORK takes more than a"),
        (("show", "mapping", "scnn", "alexnet"), "scnn machines have no mappings that could be"),
        ((*SHOW, "--layer", "con1"), "alexnet has no matrix layer 'con1'; did you mean conv1"),
        ((*RUN, "--mapper", "exat"), "there is no mapper 'exat'; did you mean exact?"),
        ((*RUN, "--objective", "egde"), "there is no objective 'egde'; "),
        (
            (*RUN, "--objective-technology", "45nm"),
            "objective_technology is of energy and edp; the objective is cycles",
        ),
        (
            (*RUN, "--objective", "energy", "--objective-technology", "46nm"),
            "no technology '46nm'; known: ",
        ),
    ],
)
def test_what_is_refused(archsim: Call, words: tuple[str, ...], message: str) -> None:
    assert refused(archsim(*words)).startswith(message)


def test_lines_of_tables_and_keys() -> None:
    """By any way to write them; of two tables with keys of one name, each its own."""
    text = '# [conv0]\n[conv1]\nfilters = 3\r\n\n["a.b"]\nfilters = 4\nc = {x = 1, y = {z = 2}}\n'
    text += "[t.u]\nq = [\n1,\n]\nd.e = 3\n"
    assert lines_of(text) == {
        ("conv1",): 2, ("conv1", "filters"): 3, ("a.b",): 5, ("a.b", "filters"): 6,
        ("a.b", "c"): 7, ("a.b", "c", "x"): 7, ("a.b", "c", "y"): 7, ("a.b", "c", "y", "z"): 7,
        ("t", "u"): 8, ("t", "u", "d"): 12, ("t", "u", "d", "e"): 12,
    }  # fmt: skip
