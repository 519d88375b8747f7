"""`simulate(chain=True)`: layers of a network whose ofmaps stay in a sparse machine, or are pooled
there."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from command_line import Call, good, refused

from archsim import EDGE_16, simulate
from archsim.errors import InputError
from archsim.machines.scnn.chain import chain_timing
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.layer import layer_timing
from archsim.machines.scnn.simulation import chains
from workloads.layers import Conv2d, Network
from workloads.operands import Operands, synthetic
from workloads.pooling import Feed, MaxPool
from workloads.vector_work import pooling

FOUR = Scnn(grid_rows=2, grid_columns=2)
FIRST = Conv2d(
    name="first", channels=2, filters=5, ifmap_height=8, ifmap_width=8, kernel_height=3,
    kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, relu=True,
)  # fmt: skip
SECOND = replace(FIRST, name="second", channels=5, filters=3)
HALF = {"ifmap_height": 4, "ifmap_width": 4}
THIRD = replace(FIRST, name="third", channels=3, filters=4, **HALF)
LAYERS = (FIRST, SECOND, THIRD)
POOL = MaxPool(window=(2, 2), stride=(2, 2))
WORK = pooling("pool", "MaxPool", ((1, 3, 8, 8), (1, 3, 4, 4)), (2, 2))
NETWORK = Network(
    name="n", source="here", layers=(FIRST, SECOND, WORK, THIRD),
    feeds=(
        Feed(source="first", target="second"),
        Feed(source="second", target="third", pool=POOL, pool_layer="pool"),
    ),
)  # fmt: skip


def _operands() -> dict[str, Operands]:
    """Each layer's ifmap is what the layer before gives, pooled where it is."""
    found: dict[str, Operands] = {}
    ofmap: Any = None
    for layer, pool in zip(LAYERS, (None, POOL, None), strict=True):
        own = synthetic(layer, bits=8, density=0.6, seed=4)
        own = own if ofmap is None else replace(own, ifmap=ofmap)
        found[layer.name] = own
        ofmap = layer_timing(FOUR, layer, own, pool=pool).ofmap
    return found


OPERANDS = _operands()


def test_a_network_of_exact_operands_is_a_chain() -> None:
    expected = chain_timing(
        FOUR, LAYERS, [OPERANDS[one.name] for one in LAYERS], pools=(None, POOL, None)
    )
    found = simulate(FOUR, NETWORK, operands=OPERANDS, chain=True)
    plain = simulate(FOUR, NETWORK, operands=OPERANDS)
    matrix = [one for one in found.layers if one.name != "pool"]
    assert [one.cycles for one in matrix] == [one.cycles for one in expected]
    assert [dict(one.actions) for one in matrix] == [one.actions for one in expected]
    for one, timing in zip(matrix, expected, strict=True):
        assert one.ofmap is not None and np.array_equal(one.ofmap, timing.ofmap)
    assert found.cycles < plain.cycles
    moved = [(one.bytes_moved["ifmap"], one.bytes_moved["ofmap"]) for one in matrix]
    assert [(a > 0, b > 0) for a, b in moved] == [(True, False), (False, False), (False, True)]
    assert matrix[1].operands.endswith(", ifmap has stayed, pooled in the PEs")


def test_what_the_pes_pool_is_no_work_beside_them() -> None:
    def work(**options: Any) -> list[int]:
        layers = simulate(FOUR, NETWORK, operands=OPERANDS, **options).layers
        return [one.vector_operations for one in layers if one.name == "pool"]

    assert work() == [WORK.operations]
    assert work(chain=True) == [0]


def test_operands_that_were_drawn_stand_for_the_ofmap() -> None:
    drawn = {one.name: synthetic(one, bits=8, density=0.4, seed=9) for one in LAYERS}
    found = simulate(FOUR, NETWORK, operands=drawn, chain=True)
    alone = simulate(FOUR, NETWORK, operands=drawn)
    assert [one.products for one in found.layers] == [one.products for one in alone.layers]
    assert found.layers[1].bytes_moved["ifmap"] == 0 < alone.layers[1].bytes_moved["ifmap"]


def test_without_feeds_nothing_stays() -> None:
    bare = replace(NETWORK, feeds=())
    chained, plain = (
        replace(simulate(FOUR, bare, operands=OPERANDS, chain=chain), options={}).to_json()
        for chain in (True, False)
    )
    assert chained == plain


def test_chains_are_of_layers_that_follow_one_another() -> None:
    def names(feeds: tuple[Feed, ...]) -> list[list[str]]:
        return [[one.name for one in each] for each in chains(replace(NETWORK, feeds=feeds))]

    assert names(NETWORK.feeds) == [["first", "second", "third"]]
    assert names((Feed(source="first", target="third"),)) == [["first"]]
    assert names(NETWORK.feeds[1:]) == [["second", "third"]]
    assert names(()) == []


def test_other_machines_have_no_chains() -> None:
    said = r"^systolic machines have no option chain, which scnn machines have; they have: mappings"
    with pytest.raises(InputError, match=said):
        simulate(EDGE_16, NETWORK, chain=True)


def test_on_the_command_line(archsim: Call) -> None:
    words = ("run", "scnn", "squeezenet1.1", "--density", "0.2", "--json")
    found, alone = (
        {one["name"]: one for one in json.loads(good(archsim(*words, *more)))["layers"]}
        for more in (("--chain",), ())
    )
    assert found["conv1"]["operands"].endswith("pooled in the PEs")
    assert found["conv1"]["ofmap_bytes"] < 0.4 * alone["conv1"]["ofmap_bytes"]
    assert found["pool1"]["vector_operations"] == 0 < alone["pool1"]["vector_operations"]
    message = refused(archsim("run", "edge-16", "alexnet", "--timing-only", "--chain"))
    assert message == (
        "systolic machines have no option --chain, which scnn machines have; they have: --mapping "
        "(how layers are mapped, by name), --mapper (how mappings are found), --objective (what "
        "mappings are the best by), --objective-technology (whose energy the objective means)"
    )
