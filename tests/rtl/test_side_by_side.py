"""Groups side by side as hardware: model and RTL equal under stalls, for blocks of every kind."""

from dataclasses import replace

import numpy as np
import pytest

from archsim.layer.intake import Drawing
from archsim.layer.problem import Tiling
from archsim.machines.systolic.design import DATAFLOWS, Systolic
from archsim.machines.tensorcore.design import TensorCore
from archsim.machines.vsq.design import Vsq
from archsim.memories.boveda.scratchpad import Boveda
from archsim.tiled.design import CoreDesign
from archsim.tiled.timing import layer_output, plan_tiling
from archsim.tiled.trace import PORTS
from rtl.cases import Draw
from rtl.conformance import check
from rtl.simulators import runner
from rtl.suite import assert_equal
from rtl.tile_cases import port_counts, random_services
from rtl.tile_conformance import TileCase
from workloads import reference
from workloads.layers import Conv2d, MatMul

CONV = Conv2d(
    name="conv", channels=10, filters=15, groups=5, ifmap_height=4, ifmap_width=3, kernel_height=2,
    kernel_width=2, stride_width=2, pad_top=1, pad_left=1, bias=True,
)  # fmt: skip
DILATED = replace(CONV, channels=5, filters=5, dilation_width=2, relu=True, batch=2)
PRODUCTS = MatMul(name="products", batch=7, shared_weight=False, m=5, n=3, k=2, bias=True)
COMPRESSED = Boveda(capacity_bytes=1024, group=1, unit_words=2, expansion=4)

DESIGNS: dict[str, CoreDesign] = {
    **{flow: Systolic(rows=4, columns=5, dataflow=flow) for flow in DATAFLOWS},
    "compressed": Systolic(
        rows=3, columns=4, ifmap_memory=COMPRESSED, weight_memory=replace(COMPRESSED, group=2)
    ),
    "floats": TensorCore(octets=1, group_columns=1, rows=4, length=2),
    "integers": TensorCore(
        octets=1, group_columns=2, rows=4, length=4, operand="int8", accumulator="int32"
    ),
    "vectors": Vsq(lanes=3, vector=3, hold_cycles=3),
    "one scale": Vsq(lanes=4, vector=2, weight_scale_bits=0, activation_scale_bits=0),
}


def blocks(design: CoreDesign, layer: Conv2d | MatMul, groups: int) -> Tiling:
    """Two rows of pixels a tile, or some pixels of the only one."""
    problem = design.numerics.problem(layer)
    return Tiling(
        pixel_rows=min(2, problem.out_height),
        pixel_columns=3,
        filters=groups * problem.filters,
        channels=groups * problem.channels,
        groups=groups,
    )


@pytest.mark.parametrize("kind", DESIGNS)
def test_blocks_of_every_kind(kind: str) -> None:
    """Two groups with an empty one in the last block, most of them, all in one block."""
    design = DESIGNS[kind]
    run = runner(design, "amaranth")
    second = CONV if kind == "vectors" else DILATED  # of one filter a group scales would mix
    for number, (layer, groups) in enumerate(((CONV, 2), (second, 4), (PRODUCTS, 7))):
        operands = design.numerics.synthetic(layer, Drawing(seed=number))
        tiling = blocks(design, layer, groups)
        plan_tiling(design, layer, tiling, operands)
        counts = port_counts(design, design.numerics.problem(layer), tiling)
        services = random_services(Draw(8, number), counts, 4)
        case = TileCase(
            design=design, layer=layer, tiling=tiling, operands=operands, services=services
        )
        assert_equal(check(case, run))


@pytest.mark.parametrize("kind", DATAFLOWS)
def test_what_leaves_is_the_reference(kind: str) -> None:
    """Words of the ofmap port, taken apart by hand, are the layer's plain ofmap."""
    design = DESIGNS[kind]
    operands = design.numerics.synthetic(PRODUCTS, Drawing(seed=1))
    tiling = replace(blocks(design, PRODUCTS, 3), pixel_columns=5)
    case = TileCase(
        design=design,
        layer=PRODUCTS,
        tiling=tiling,
        operands=operands,
        services=random_services(Draw(1, 1), dict.fromkeys(PORTS, 200), 5),
    )
    left = case.answer().transfers["ofmap"].payload.reshape(3, 45)  # packed: blocks end in words
    whole = np.zeros((9, 5, 3), np.int64)  # 7 groups of 5 pixels and 3 filters in 3 blocks
    if kind == "input_stationary":
        sums = left.reshape(3, 9, 5).transpose(0, 2, 1)  # a row a filter, a lane a pixel
    else:
        steps = left[:, :25].reshape(3, 5, 5), left[:, 25:].reshape(3, 5, 4)
        sums = np.concatenate(steps, axis=2)
    for group in range(9):
        whole[group] = sums[group // 3, :, group % 3 * 3 : group % 3 * 3 + 3]
    np.testing.assert_array_equal(whole[:7], reference.compute(PRODUCTS, operands))
    np.testing.assert_array_equal(whole[7:], 0)
    np.testing.assert_array_equal(layer_output(design, PRODUCTS, operands, tiling), whole[:7])
