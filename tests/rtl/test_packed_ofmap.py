"""Outputs leave packed: layers that are narrow, prime, depthwise, or one behind the other."""

import math
from dataclasses import replace
from typing import Any

import pytest
from systolic_designs import random_design as random_systolic
from tensorcore_designs import random_design as random_tensorcore
from vsq_designs import random_design as random_vsq

from archsim.errors import InputError
from archsim.layer.intake import Drawing
from archsim.machines.systolic.design import DATAFLOWS, Dataflow, Systolic
from archsim.machines.tensorcore.design import TensorCore
from archsim.machines.vsq.design import Vsq
from archsim.memory import Plain
from archsim.tiled import commands as cmd
from archsim.tiled.design import CoreDesign
from archsim.tiled.timing import layer_output, plan_tiling
from rtl.cases import Draw
from rtl.conformance import check
from rtl.layer_sequence import SequenceCase
from rtl.simulators import runner
from rtl.suite import assert_equal
from rtl.tile_cases import port_counts, random_services, random_tile_case
from rtl.tile_conformance import TileCase
from workloads.layers import Conv2d, MatMul

MEMORY = Plain(capacity_bytes=2048)
MEMORIES: dict[str, Any] = {"ifmap_memory": MEMORY, "accumulator_memory": MEMORY}


def _conv(channels: int, filters: int, groups: int, side: int, kernel: int = 1) -> Conv2d:
    return Conv2d(
        name=f"{channels}-{filters}-{groups}", channels=channels, filters=filters, groups=groups,
        ifmap_height=side, ifmap_width=side, kernel_height=kernel, kernel_width=kernel, bias=True,
    )  # fmt: skip


LAYERS: dict[str, Conv2d | MatMul] = {
    "depthwise, many groups": _conv(23, 23, 23, 3, 2),
    "a column more than the array": _conv(2, 6, 1, 3),
    "a column less": _conv(2, 4, 1, 3),
    "prime": MatMul(name="prime", m=13, n=11, k=7, bias=True, relu=True),
    "one filter": MatMul(name="one filter", m=17, n=1, k=3),
    "fewer outputs than a word": MatMul(name="few", m=1, n=3, k=4, bias=True),
    "one output": MatMul(name="one", m=1, n=1, k=1),
    "groups of two filters": _conv(6, 6, 3, 3),
    "a word exactly": MatMul(name="exact", m=5, n=1, k=2),
    "images of one pixel": replace(_conv(3, 7, 1, 1), batch=5),
}
DESIGNS: dict[str, CoreDesign] = {
    **{
        dataflow: Systolic(rows=3, columns=5, dataflow=dataflow, **MEMORIES)
        for dataflow in DATAFLOWS
    },
    "tensorcore": TensorCore(
        octets=1, group_columns=2, rows=2, operand="int8", accumulator="int32", **MEMORIES
    ),
    "vectors of rows": Vsq(lanes=2, vector=6, hold_cycles=3, **MEMORIES),
    "vectors in a row": Vsq(lanes=6, vector=2, hold_cycles=2, **MEMORIES),
    "no scales": Vsq(
        lanes=5, vector=5, hold_cycles=2, weight_scale_bits=0, activation_scale_bits=0, **MEMORIES
    ),
}


def _case(name: str, design: CoreDesign) -> TileCase:
    layer = LAYERS[name]
    tiling = plan_tiling(design, layer, None)
    draw = Draw(len(name), len(design.kind))
    counts = port_counts(design, design.numerics.problem(layer), tiling)
    return TileCase(
        design=design,
        layer=layer,
        tiling=tiling,
        operands=design.numerics.synthetic(layer, Drawing(seed=len(name))),
        services=random_services(draw, counts, 5),
        label=name,
    )


@pytest.mark.parametrize("which", DESIGNS)
def test_narrow_layers_one_behind_the_other(which: str) -> None:
    """All of them in one run, each from the cycle behind the last word of the one before."""
    design = DESIGNS[which]
    case = SequenceCase(design=design, layers=tuple(_case(name, design) for name in LAYERS))
    assert_equal(check(case, runner(design, "amaranth")))


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_a_layer_moves_its_outputs_and_no_more(dataflow: Dataflow) -> None:
    """⌈outputs / columns⌉ words, in any tiling; the empty groups of a last block count too."""
    design = Systolic(rows=3, columns=5, dataflow=dataflow, **MEMORIES)
    for name in LAYERS:
        case = _case(name, design)
        outputs = math.prod(layer_output(design, case.layer, case.operands, case.tiling).shape)
        found = case.answer()
        rows = found.tiles[found.tiles[:, cmd.LAST_K] == 1]
        computed = int((rows[:, cmd.PIXELS] * rows[:, cmd.TILE_FILTERS]).sum())
        assert computed == outputs or case.tiling.groups > 1
        outputs, words = computed, found.transfers["ofmap"].payload
        assert len(words) == -(-outputs // 5)
        assert not words.ravel()[outputs:].any(), "the last word is filled up with zeros"


@pytest.mark.parametrize("kind", ["systolic", "tensorcore", "vsq"])
def test_random_layers_one_behind_the_other(kind: str) -> None:
    draws: dict[str, Any] = {
        "systolic": random_systolic,
        "tensorcore": random_tensorcore,
        "vsq": random_vsq,
    }
    compared = 0
    for number in range(5):
        design = draws[kind](Draw(31, number))
        try:
            layers = [random_tile_case(31 + k, number, design, 500) for k in range(3)]
        except InputError:
            continue
        case = SequenceCase(design=design, layers=tuple(layers))
        assert_equal(check(case, runner(design, "amaranth")))
        compared += 1
    assert compared >= 3
