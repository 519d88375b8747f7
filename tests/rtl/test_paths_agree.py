"""Every way to ask for a layer's figures says the same: over random designs of every kind.

With values and without, one design or many, alone or in a network, summed up or word by word.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import compressed_designs
import numpy as np
import pytest
import systolic_designs
import tensorcore_designs
import vsq_designs
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim import simulate, simulate_many
from archsim.errors import InputError
from archsim.machine.registry import load_design, with_settings
from archsim.machines.scnn.answer import sparse_answer
from archsim.machines.scnn.chain import chain_timing
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.layer import layer_timing
from archsim.machines.scnn.words import LayerRun, pass_words
from archsim.machines.sparsetrain.design import SparseTrain
from archsim.memory import OffChip
from archsim.result import LayerResult
from archsim.tiled.design import CoreDesign
from archsim.tiled.trace import answer
from rtl.cases import Draw, random_case
from rtl.sparse_cases import random_layer as sparse_layer
from rtl.tile_cases import random_layer, random_operands
from rtl.tile_conformance import free_services
from workloads.layers import Conv2d, Network
from workloads.operands import synthetic
from workloads.pooling import Feed

KINDS = {
    "systolic": systolic_designs.random_design,
    "tensorcore": tensorcore_designs.random_design,
    "vsq": vsq_designs.random_design,
    "compressed": compressed_designs.random_design,
}
RATES = (0.0, 0.3, 1.7, 8.0, 33.3)
seeds = st.integers(0, 10**6)


def off_chip(draw: Draw) -> OffChip:
    return OffChip(
        bytes_per_cycle=RATES[draw.whole(0, len(RATES) - 1)],
        latency_cycles=draw.one_of(0, 0, 7, 90),
        burst_bytes=draw.one_of(1, 16, 64),
    )


def drawn(kind: str, seed: int) -> tuple[CoreDesign, Any, Any]:
    """A design, a layer that has a tiling on it, and its operands."""
    draw = Draw(seed, 77)
    while True:
        design = replace(KINDS[kind](draw), off_chip=off_chip(draw))
        layer = random_layer(draw, design)
        try:
            simulate(design, network_of(layer))
        except InputError:
            continue
        return design, layer, random_operands(draw, design, layer, seed)


def network_of(*layers: Any, feeds: tuple[Feed, ...] = ()) -> Network:
    return Network(name="n", source="drawn", layers=layers, feeds=feeds)


def alone(design: Any, layer: Any, **options: Any) -> LayerResult:
    return simulate(design, network_of(layer), **options).layers[0]


def figures(result: LayerResult) -> dict[str, Any]:
    """All that says how long and how often."""
    return {
        "cycles": result.cycles, "serial": result.serial_cycles, "where": dict(result.where),
        "bytes": dict(result.bytes_moved), "tiles": result.tiles, "folds": result.folds,
        "macs": result.macs, "actions": dict(result.actions),
    }  # fmt: skip


def bytes_of(ports: Any, words: dict[str, int]) -> dict[str, int]:
    """Whole bytes a word."""
    found = {port.name: -(-port.bits // 8) * words[port.name] for port in ports}
    return {name: found[name] for name in ("ifmap", "weight", "bias", "ofmap")}


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=12)
@given(seed=seeds)
def test_tiles(kind: str, seed: int) -> None:
    design, layer, operands = drawn(kind, seed)
    timed = alone(design, layer)
    assert simulate_many([design], network_of(layer))[0].tolist() == [[timed.cycles]]
    valued = alone(design, layer, operands={layer.name: operands})
    assert valued.tiling is not None
    here = alone(design, layer, mappings={layer.name: valued.tiling}) if not design.stores else None
    assert here is None or figures(here) == figures(valued)
    if valued.tiling == timed.tiling:
        counted = {name: valued.actions[name] for name in timed.actions}
        assert figures(timed) == figures(valued) | {"actions": counted}
    full = answer(design, layer, valued.tiling, operands)
    assert (full.cycles, full.actions) == (valued.cycles, dict(valued.actions))
    words = {name: len(one) for name, one in full.transfers.items()}
    assert bytes_of(design.ports, words) == dict(valued.bytes_moved)
    free = replace(design, off_chip=OffChip())
    ideal = answer(free, layer, valued.tiling, operands)
    gaps = answer(free, layer, valued.tiling, operands, free_services())
    assert ideal.cycles == gaps.cycles <= full.cycles
    for name, one in ideal.transfers.items():
        assert np.array_equal(one.cycle, gaps.transfers[name].cycle), name
    other = replace(layer, name="other")
    pair = simulate(design, network_of(layer, other), operands=lambda one: operands).layers
    assert [figures(one) for one in pair] == [figures(valued)] * 2


def protected_design(draw: Draw) -> Any:
    """Memories that fail, or have check bits."""
    changed = [f"rows={draw.whole(1, 5)}", f"columns={draw.whole(1, 5)}"]
    for name in ("ifmap", "weight"):
        kind = ("faulty", "parity", "secded")[draw.whole(0, 2)]
        changed.append(f"{name}_memory.kind={kind}")
        changed += [f"{name}_memory.rate=0.01"] if kind == "faulty" else []
    return with_settings(load_design("edge-16"), changed)


def training_design(draw: Draw) -> SparseTrain:
    lanes = draw.one_of(4, 8)
    return SparseTrain(
        pes=2, lanes=lanes, rows=4, columns=4, depth=draw.whole(1, 4),
        look_ahead=draw.whole(0, 2), look_aside=draw.one_of(0, lanes // 2),
        segments=draw.one_of(1, 2), skip_outputs=draw.chance(0.5),
        row_scratchpad=draw.one_of(0, 20), column_scratchpad=draw.one_of(0, 20),
    )  # fmt: skip


EVERY = {
    **KINDS,
    "protected": protected_design,
    "scnn": lambda draw: sparse_design(draw),
    "sparsetrain": training_design,
}


@pytest.mark.parametrize("kind", EVERY)
@settings(deadline=None, max_examples=12)
@given(seed=seeds)
def test_cases_of_every_kind(kind: str, seed: int) -> None:
    """What `verify` asks of every case: plans and scans, rows and loops, tiles and their kinds,
    passes and layers, many designs at once and one."""
    draw = Draw(seed, 79)
    while True:
        design: Any = EVERY[kind](draw)
        try:
            case = random_case(seed, 0, design, longest_words=3000)
        except InputError:
            continue
        assert case.figures_apart() == {}
        return


def sparse_design(draw: Draw) -> Scnn:
    return Scnn(
        grid_rows=draw.whole(1, 3), grid_columns=draw.whole(1, 3),
        weight_lanes=draw.whole(1, 3), ifmap_lanes=draw.whole(1, 3),
        banks=draw.one_of(1, 2, 8), bank_entries=draw.one_of(32, 64),
        bank_queue=draw.whole(1, 3), weight_fifo_vectors=draw.one_of(30, 50),
        iaram_bytes=draw.one_of(200, 2000), oaram_bytes=draw.one_of(200, 2000),
        operand_bits=8, accumulator_bits=20, index_bits=draw.whole(1, 4),
        filter_group=draw.whole(1, 8), off_chip=off_chip(draw),
    )  # fmt: skip


def sparse_drawn(seed: int) -> tuple[Scnn, Any, Any]:
    draw = Draw(seed, 78)
    while True:
        design = sparse_design(draw)
        layer = replace(sparse_layer(draw, design), bias=False)
        operands = synthetic(layer, bits=8, density=0.1 + 0.9 * float(draw.rng.random()), seed=seed)
        try:
            layer_timing(design, layer, operands)
        except InputError:
            continue
        return design, layer, operands


@settings(deadline=None, max_examples=25)
@given(seed=seeds)
def test_sparse_lists(seed: int) -> None:
    """The network's figures, the layer's, those of all words; alone and in a chain of one."""
    design, layer, operands = sparse_drawn(seed)
    given_ = {layer.name: operands}
    found = alone(design, layer, operands=given_)
    assert figures(found) == figures(alone(design, layer, operands=given_, chain=True))
    full = design.machine_model().answer(layer, operands, {})
    assert (full.cycles, dict(full.actions)) == (found.cycles, dict(found.actions))
    bits = {port.name: port.bits for port in design.machine_model().ports}
    for name, moved in found.bytes_moved.items():
        assert moved == -(-bits[name] * len(full.transfers[name]) // 8), name
    timing = layer_timing(design, layer, operands)
    assert (timing.cycles, timing.actions) == (found.cycles, dict(found.actions))
    assert sum(found.where.values()) == found.cycles
    (chained,) = chain_timing(design, [layer], [operands])
    assert (chained.cycles, chained.actions) == (timing.cycles, timing.actions)
    free = layer_timing(replace(design, off_chip=OffChip()), layer, operands)
    waits = "conflict_cycle"  # queues empty themselves while weights are waited for
    assert {**free.actions, waits: 0} == {**timing.actions, waits: 0}
    assert free.actions[waits] >= timing.actions[waits]
    assert free.cycles == timing.cycles - found.where["memory"]
    other = replace(layer, name="other")
    pair = simulate(design, network_of(layer, other), operands=lambda one: operands).layers
    assert [figures(one) for one in pair] == [figures(found)] * 2


def chain_drawn(seed: int) -> tuple[Scnn, list[Any], list[Any]]:
    """Two or three convolutions, each of what the one before gives; the ofmaps of some stay."""
    draw = Draw(seed, 81)
    while True:
        design = replace(sparse_design(draw), iaram_bytes=draw.one_of(200, 3000), oaram_bytes=3000)
        layers, operands = list[Any](), list[Any]()
        channels, height, width = draw.whole(1, 4), draw.whole(3, 7), draw.whole(3, 7)
        try:
            for number in range(draw.whole(2, 3)):
                kernel = draw.one_of(1, 3)
                sides = ("top", "bottom", "left", "right")
                pads: dict[str, Any] = {f"pad_{side}": kernel // 2 for side in sides}
                layer = Conv2d(
                    name=f"layer {number}", channels=channels, filters=draw.whole(1, 5),
                    ifmap_height=height, ifmap_width=width, kernel_height=kernel,
                    kernel_width=kernel, stride_height=draw.one_of(1, 1, 1, 2), relu=True, **pads,
                )  # fmt: skip
                own = synthetic(layer, bits=8, density=0.7, seed=seed + number)
                if operands:
                    before = layer_timing(design, layers[-1], operands[-1])
                    own = replace(own, ifmap=before.ofmap.astype(own.ifmap.dtype))
                layers.append(layer)
                operands.append(own)
                channels, height, width = layer.filters, layer.ofmap_height, layer.ofmap_width
            layer_timing(design, layers[-1], operands[-1])
        except InputError:
            continue
        return design, layers, operands


@settings(deadline=None, max_examples=25)
@given(seed=seeds)
def test_sparse_chains(seed: int) -> None:
    """A network's chain, its layers' timings, and all words; layers alone but for what stays."""
    design, layers, operands = chain_drawn(seed)
    chained = chain_timing(design, layers, operands)
    stays = [bool(one.passes[0].mapping.keep_ofmap) for one in chained]
    feeds = tuple(Feed(source=a.name, target=b.name) for a, b in pairwise(layers))
    given_ = {layer.name: own for layer, own in zip(layers, operands, strict=True)}
    found = simulate(design, network_of(*layers, feeds=feeds), operands=given_, chain=True).layers
    for one, timing in zip(found, chained, strict=True):
        assert (one.cycles, dict(one.actions)) == (timing.cycles, timing.actions)
        assert sum(one.where.values()) == one.cycles
    runs = [LayerRun(layer=layer, operands=own, keep_ofmap=stay)
            for layer, own, stay in zip(layers, operands, stays, strict=True)]  # fmt: skip
    words = sparse_answer(design, pass_words(design, runs))
    assert words.cycles == sum(one.cycles for one in chained)
    for name, count in words.actions.items():
        assert count == sum(one.actions[name] for one in chained), name
    for number, (layer, one) in enumerate(zip(layers, found, strict=True)):
        plain, came = alone(design, layer, operands=given_), number > 0 and stays[number - 1]
        assert plain.ofmap is not None
        assert np.array_equal(chained[number].ofmap, plain.ofmap)
        moved = {"ifmap": not came, "weight": True, "bias": True, "ofmap": not stays[number]}
        if not came and not stays[number]:
            assert figures(one) == figures(plain)
        else:
            crossed = {name: plain.bytes_moved[name] * moves for name, moves in moved.items()}
            assert dict(one.bytes_moved) == crossed
            assert one.actions["product"] == plain.actions["product"]
