"""Tiles of several images in the RTL: blocks that straddle images, a last tile of fewer."""

from dataclasses import replace

import pytest

from archsim.layer.problem import Tiling
from archsim.machines.systolic.design import DATAFLOWS, Systolic
from archsim.machines.tensorcore.design import TensorCore
from archsim.machines.vsq.design import Vsq
from archsim.memories.boveda.scratchpad import Boveda
from archsim.memory import OffChip
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled.design import CoreDesign
from archsim.tiled.walk import walk
from rtl.cases import Draw, random_case
from rtl.conformance import check
from rtl.simulators import runner
from rtl.suite import assert_equal
from rtl.tile_cases import port_counts, random_operands, random_services
from rtl.tile_conformance import TileCase
from workloads.layers import Conv2d

SYSTOLIC = [Systolic(rows=4, columns=3, dataflow=dataflow) for dataflow in DATAFLOWS]
STORED = Boveda(capacity_bytes=4096, group=4, unit_words=2)
DESIGNS: dict[str, CoreDesign] = {
    **{design.dataflow: design for design in SYSTOLIC},
    "boveda": replace(SYSTOLIC[0], ifmap_memory=STORED),
    "tensorcore": TensorCore(octets=1, group_columns=1, rows=4, length=3),
    "vsq": Vsq(lanes=2, vector=2, hold_cycles=3),
}  # fmt: skip

PLAIN = Conv2d(
    name="plain", channels=3, filters=4, ifmap_height=3, ifmap_width=4, kernel_height=2,
    kernel_width=2, pad_top=1, pad_left=1, stride_width=2, batch=5, bias=True,
)  # fmt: skip
DEPTHWISE = Conv2d(
    name="depthwise", channels=2, filters=2, groups=2, ifmap_height=4, ifmap_width=3,
    kernel_height=3, kernel_width=1, dilation_height=1, pad_bottom=1, batch=3, relu=True,
)  # fmt: skip
POINTS = Conv2d(
    name="points", channels=5, filters=3, ifmap_height=1, ifmap_width=1, kernel_height=1,
    kernel_width=1, batch=7,
)  # fmt: skip

CASES = [
    (PLAIN, Tiling(pixel_rows=2, pixel_columns=2, filters=4, channels=3, images=2)),
    (PLAIN, Tiling(pixel_rows=3, pixel_columns=1, filters=2, channels=2, images=3,
                   order="filters_outer")),
    (DEPTHWISE, Tiling(pixel_rows=3, pixel_columns=3, filters=1, channels=1, images=2)),
    (POINTS, Tiling(pixel_rows=1, pixel_columns=1, filters=3, channels=5, images=4)),
]  # fmt: skip


def case_of(design: CoreDesign, number: int) -> TileCase:
    layer, tiling = CASES[number]
    draw = Draw(31, number)
    if design.numerics.problem(layer).channels < tiling.channels:
        tiling = replace(tiling, channels=design.numerics.problem(layer).channels)
    counts = port_counts(design, design.numerics.problem(layer), tiling)
    return TileCase(
        design=design, layer=layer, tiling=tiling,
        operands=random_operands(draw, design, layer, seed=number),
        services=random_services(draw, counts, int(design.machine[mc.COLUMNS])),
    )  # fmt: skip


@pytest.mark.parametrize("name", DESIGNS)
def test_words_of_several_images(name: str) -> None:
    run = runner(DESIGNS[name], "amaranth")
    for number in range(len(CASES)):
        assert_equal(check(case_of(DESIGNS[name], number), run))


def test_the_random_cases_have_tiles_of_several_images() -> None:
    """Whole and last tiles of images, also of part of an image, where a block ends inside one."""
    seen = dict.fromkeys(("several", "last", "part", "straddling", "depthwise"), 0)
    design = Systolic(rows=3, columns=5, off_chip=OffChip())
    for number in range(260):
        case = random_case(1, number, design, longest_words=4000)
        if not isinstance(case, TileCase):  # several layers, one behind the other
            continue
        problem = design.numerics.problem(case.layer)
        tiles = walk(problem.vector(), case.tiling.vector(), design.machine)
        images = tiles[:, cmd.TILE_IMAGES]
        if images.max() == 1:
            continue
        plane = tiles[:, cmd.PIXELS] // images
        seen["several"] += 1
        seen["last"] += bool(images.min() < images.max())
        seen["part"] += bool(plane.max() < problem.out_height * problem.out_width)
        seen["straddling"] += bool((plane[images > 1] % design.rows != 0).any())
        seen["depthwise"] += problem.groups > 1 and problem.channels == problem.filters == 1
    assert min(seen.values()) >= 3 and seen["several"] >= 15, seen
