"""Whole layers of a trained network on 16 × 16 through the emitted Verilog; and many transfers."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from archsim.machines.scnn.design import SCNN_ISCA17
from archsim.machines.systolic.design import EDGE_16, Systolic
from archsim.machines.tensorcore.design import VOLTA
from archsim.machines.vsq.design import VSQ_16
from archsim.memory import Plain
from archsim.tiled import machine_vector as mc
from archsim.tiled.design import CoreDesign
from archsim.tiled.timing import layer_output, plan_tiling
from archsim.tiled.trace import PORTS
from archsim.timing import Service
from rtl.benches.verilated import Verilated
from rtl.cases import Draw
from rtl.conformance import bench_of, check, judge
from rtl.emit import emit
from rtl.layer_case import layer_case
from rtl.simulators import runner
from rtl.suite import assert_equal
from rtl.tile_cases import port_counts, random_services
from rtl.tile_conformance import TileCase, free_services
from workloads.layers import Conv2d, MatMul, Network
from workloads.onnx_import import import_onnx
from workloads.operands import Operands, from_onnx, synthetic
from workloads.packaged import packaged

LAYERS = ("fire2/squeeze1x1", "fire5/expand3x3", "fire9/expand1x1")


@cache
def _network(bits: int) -> tuple[Network, dict[str, Operands]]:
    entry = packaged("squeezenet-imagenet")
    model = entry.model()
    return import_onnx(model, name=entry.name), from_onnx(model, entry.input(), bits=bits)


def _real_case(name: str, design: CoreDesign = EDGE_16) -> TileCase:
    network, operands = _network(design.numerics.source_bits)
    (layer,) = (one for one in network.matrix_layers if name in one.name)
    tiling = plan_tiling(design, layer, None)
    counts = port_counts(design, design.numerics.problem(layer), tiling)
    return TileCase(
        design=design,
        layer=layer,
        tiling=tiling,
        operands=operands[layer.name],
        services=random_services(Draw(17, len(name)), counts, int(design.machine[mc.COLUMNS])),
        label=name,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYERS)
def test_a_real_layer_through_cocotb(name: str) -> None:
    """Every transfer of the layer, real weights and activations, random stalls on every port."""
    verdict = check(_real_case(name), runner(EDGE_16, "cocotb"))
    assert_equal(verdict)
    assert verdict.transfers > 4_000


DESIGNS = (
    VSQ_16,
    replace(VOLTA, operand="int8", accumulator="int32"),
    replace(VOLTA, group_columns=2),
)
"""Lanes with per-vector scales; tensor cores of integers and, of half as many units, floats."""


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: f"{design.kind}-{design.size}")
def test_a_real_layer_on_the_other_cores(design: CoreDesign) -> None:
    """The same through Verilator: a 3 × 3 kernel, padding, real values in the core's format."""
    verdict = check(_real_case(LAYERS[1], design), runner(design, "verilator"))
    assert_equal(verdict)
    assert verdict.transfers > 4_000


def test_the_words_that_leave_are_the_layers_output() -> None:
    """The ofmap port's words, put together, are what `simulate` gives as the layer's output."""
    case = _real_case(LAYERS[0])
    expected = layer_output(EDGE_16, case.layer, case.operands)
    words = case.answer().transfers["ofmap"].payload
    assert np.sort(words[words != 0]).tolist() == np.sort(expected[expected != 0]).tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    "design", [EDGE_16, VSQ_16, VOLTA], ids=lambda design: f"{design.kind}-{design.size}"
)
def test_all_layers_of_the_network(design: CoreDesign) -> None:
    """The long matrix: every layer of the network on the Verilog, ports that never wait."""
    run = runner(design, "verilator")
    network, operands = _network(design.numerics.source_bits)
    for layer in network.matrix_layers:
        case = TileCase(
            design=design,
            layer=layer,
            tiling=plan_tiling(design, layer, None),
            operands=operands[layer.name],
            services=free_services(),
            label=layer.name,
        )
        assert_equal(check(case, run))


def _many_transfers() -> TileCase:
    """A design of one row: nearly every cycle moves words through the ports."""
    design = Systolic(
        rows=2, columns=2, ifmap_memory=Plain(capacity_bytes=1 << 15),
        accumulator_memory=Plain(capacity_bytes=1 << 17),
    )  # fmt: skip
    layer: Conv2d | MatMul = MatMul(name="long", m=700_000, n=2, k=2, relu=True)
    tiling = plan_tiling(design, layer, None)
    gaps = np.zeros(1 << 20, np.int64)
    gaps[::37] = 3
    services = tuple(Service(gaps=gaps) if name == "ofmap" else Service() for name in PORTS)
    return TileCase(
        design=design, layer=layer, tiling=tiling, operands=synthetic(layer, seed=3),
        services=services,
    )  # fmt: skip


def test_more_than_a_million_transfers_in_batches() -> None:
    """Python steps the Verilated core in batches; every transfer is compared at the end."""
    case = _many_transfers()
    expected = case.answer()
    batches = 0
    with Verilated(emit(case.design).verilog, top="top").start(bench_of(case, expected)) as session:
        while session.running:
            session.step(100_000)
            batches += 1
        verdict = judge(case, expected, session.outcome())
    assert_equal(verdict)
    assert verdict.transfers > 1_000_000
    assert batches > 5


SPARSE = replace(SCNN_ISCA17, grid_rows=2, grid_columns=2, weight_lanes=2, ifmap_lanes=2, banks=8)


@pytest.mark.slow
def test_a_real_layer_on_the_sparse_core() -> None:
    """Its zeros are those of the trained network; every word of every pass is compared."""
    network, operands = _network(SPARSE.intake.source_bits)
    (layer,) = (one for one in network.matrix_layers if LAYERS[2] in one.name)
    case = layer_case(SPARSE, layer, operands[layer.name])
    verdict = check(case, runner(SPARSE, "verilator"))
    assert_equal(verdict)
    assert verdict.transfers > 4_000
