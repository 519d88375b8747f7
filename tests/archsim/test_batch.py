"""Several images at once: none costs more than one alone, and weights are shared by a tile's."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from random_cores import SMALL, TINY, random_design
from random_layers import LATENCIES, random_layer

from archsim.layer import problem as pb
from archsim.layer.problem import Tiling
from archsim.machine.registry import load_design
from archsim.machines.systolic.design import CLOUD_128, DATAFLOWS, EDGE_16, Systolic
from archsim.machines.tensorcore.design import VOLTA
from archsim.numbers import IntArray
from archsim.simulate import simulate
from archsim.tiled.choice import MOST_TILES, choose_mapping, choose_tiling, find_tiling
from archsim.tiled.design import CoreDesign
from archsim.tiled.side_by_side import block_problem
from archsim.tiled.summary import count_cycles
from archsim.tiled.timing import time_layer
from archsim.tiled.traffic import port_bytes
from archsim.tiled.walk import walk
from rtl.cases import Draw
from workloads.builtin import builtin, networks
from workloads.layers import Conv2d, MatMul, Network
from workloads.operands import synthetic

Chooser = Callable[[IntArray, IntArray, IntArray], bool]
"""Writes a problem's tiling on a machine; whether there is one."""

BATCHES = tuple(range(2, 10))
NAMED = ("cloud-128", "edge-16", "tpu-v1", "volta", "vsq-5nm", "vsq-16", "vsq-baseline")


def cost(problem: IntArray, machine: IntArray, choose: Chooser) -> tuple[int, int] | None:
    """Cycles and bytes in the automatic tiling; None where nothing fits."""
    tiling = np.zeros(pb.TILING_COLUMNS, np.int64)
    if not choose(problem, machine, tiling):
        return None
    tiles = walk(block_problem(problem, tiling[pb.T_GROUPS]), tiling, machine)
    return int(count_cycles(tiles, machine)), int(port_bytes(tiles, machine).sum())


def excess(design: CoreDesign, layer: Conv2d, choose: Chooser = choose_mapping) -> tuple[int, int]:
    """The most cycles, and bytes, that a batch takes beyond as many single images."""
    problem = design.numerics.problem(layer).vector()
    alone = cost(problem, design.machine, choose)
    if alone is None:
        return 0, 0
    cycles, moved = [0], [0]
    for images in BATCHES:
        problem[pb.IMAGES] = images
        together = cost(problem, design.machine, choose)
        assert together is not None
        cycles.append(together[0] - images * alone[0])
        moved.append(together[1] - images * alone[1])
    return max(cycles), max(moved)


@pytest.mark.parametrize("choose", [choose_tiling, choose_mapping], ids=["alone", "side-by-side"])
@pytest.mark.parametrize("seed", range(2))
def test_no_image_costs_more_than_alone(seed: int, choose: Chooser) -> None:
    """However long the latency, of layers that take less than it too."""
    for number in range(250):
        draw = Draw(seed, number)
        layer = random_layer(draw, *(TINY if number % 2 else SMALL))
        design = random_design(draw, LATENCIES)
        assert excess(design, layer, choose) <= (0, 0), (number, layer)


def test_latencies_beyond_a_layer_do_not_pass_again_with_an_image() -> None:
    """What a tile loads is asked for with the layer's command, not behind the load before it."""
    for number in range(400, 900):
        draw = Draw(5, number)
        design = random_design(draw, (100, 500, 3000))
        layer = random_layer(draw, *SMALL)
        assert excess(design, layer, choose_tiling) <= (0, 0), (number, layer)


@pytest.mark.parametrize("name", NAMED)
def test_named_designs(name: str) -> None:
    design = load_design(name)
    assert isinstance(design, CoreDesign)
    kinds = DATAFLOWS if isinstance(design, Systolic) else (None,)
    for number in range(24):
        draw = Draw(7, number)
        layer = random_layer(draw, (1, 4, 7, 14, 28, 56), (1, 3, 16, 64, 100, 256))
        kind = kinds[number % len(kinds)]
        one = replace(design, dataflow=kind) if kind else design  # pyright: ignore[reportCallIssue]
        assert excess(one, layer) <= (0, 0), (number, layer)


@pytest.mark.parametrize("design", [CLOUD_128, EDGE_16], ids=["cloud-128", "edge-16"])
def test_built_in_networks_in_batches_of_eight(design: CoreDesign) -> None:
    """Every layer of every network, matrix products too.

    Products with weights of their own (attention) are groups, not images: eight times as many may
    lie side by side otherwise, in no more cycles, and for them only cycles are compared.  A layer
    in fewer cycles may move more, by twice the share of the cycles that it saves and a fifth at the
    most: cycles are what tilings are chosen by.  Two of 3,066 layers do beside those that save a
    tenth, by 0.4 and 2.9 %.  No network does.
    """
    for name in networks():
        layers = builtin(name).layers
        groups = {one.name for one in layers if isinstance(one, MatMul) and not one.shared_weight}
        alone, together = (
            simulate(design, builtin(name, parameters={"batch": batch})) for batch in (1, 8)
        )
        for one, eight in zip(alone.layers, together.layers, strict=True):
            assert eight.cycles <= 8 * one.cycles, (name, one.name)
            moved = sum(eight.bytes_moved.values()), sum(one.bytes_moved.values())
            saved = 1 - eight.cycles / max(8 * one.cycles, 1)
            most = 8 * (1 + min(2 * saved, 0.2)) * moved[1]
            assert moved[0] <= most or one.name in groups, (name, one.name)
        moved_in_all = [sum(result.bytes_moved.values()) for result in (together, alone)]
        assert moved_in_all[0] <= 8 * moved_in_all[1], name


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_a_fully_connected_layer_reads_its_weights_once(dataflow: Any) -> None:
    """Its weights fill many tiles, and a tile has a pixel of each image."""
    design = replace(EDGE_16, dataflow=dataflow)
    layer = Conv2d(
        name="fc", channels=512, filters=1000, ifmap_height=1, ifmap_width=1, kernel_height=1,
        kernel_width=1,
    )  # fmt: skip
    one = time_layer(design, layer)
    many = time_layer(design, replace(layer, batch=35))
    assert many.tiling is not None and many.tiling.images == 35
    assert many.bytes_moved["weight"] <= one.bytes_moved["weight"] * 1.01
    assert many.cycles < 6 * one.cycles


@pytest.mark.parametrize("k, n", [(3072, 768), (768, 3072)])
@pytest.mark.parametrize("rows", [384, 197])
def test_rows_of_a_batch_take_no_more_cycles_than_alone(rows: int, k: int, n: int) -> None:
    """BERT's and ViT's products, whose batch is more rows: tiles of whole blocks of pixels."""
    alone = time_layer(VOLTA, MatMul(name="a", m=rows, n=n, k=k, bias=True))
    for batch in (2, 3, 8, 16):
        result = time_layer(VOLTA, MatMul(name="a", m=batch * rows, n=n, k=k, bias=True))
        assert result.cycles <= batch * alone.cycles, batch
        assert 16 * result.total_bytes <= 17 * batch * alone.total_bytes, batch


def test_the_tiling_of_several_images_does_not_change_values() -> None:
    layer = Conv2d(
        name="c", channels=6, filters=5, ifmap_height=5, ifmap_width=4, kernel_height=3,
        kernel_width=2, pad_top=1, stride_width=2, groups=1, batch=5, bias=True,
    )  # fmt: skip
    operands = {"c": synthetic(layer, seed=3)}
    network = Network(name="n", source="a test", layers=(layer,))
    tiling = Tiling(pixel_rows=2, pixel_columns=2, filters=5, channels=6)
    ofmaps: list[Any] = []
    for images in (1, 2, 5):
        tilings = {"c": replace(tiling, images=images)}
        result = simulate(EDGE_16, network, operands=operands, mappings=tilings)
        ofmaps.append(result.layers[0].ofmap)
    first: Any = ofmaps[0]
    assert all(np.array_equal(first, other) for other in ofmaps[1:])


def test_a_batch_of_too_many_tiles_is_not_timed() -> None:
    """The layer is refused later; to choose its tiling takes no memory for the tiles."""
    layer = Conv2d(
        name="c", channels=4, filters=4, ifmap_height=64, ifmap_width=64, kernel_height=3,
        kernel_width=3, batch=1 << 40,
    )  # fmt: skip
    tiling = find_tiling(EDGE_16.numerics.problem(layer), EDGE_16.machine)
    assert tiling is not None
    assert layer.batch // tiling.images > MOST_TILES
