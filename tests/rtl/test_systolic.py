"""The systolic core passes the conformance suite."""

from dataclasses import replace
from typing import Any

import pytest
from systolic_designs import random_design
from unusual_layers import UNUSUAL_LAYERS

from archsim.errors import InputError
from archsim.machine.registry import load_design, with_settings
from archsim.machines.systolic.design import DATAFLOWS, Dataflow, Systolic
from archsim.memory import OffChip, Plain
from rtl.cases import LONGEST_WORDS, Draw
from rtl.conformance import check
from rtl.simulators import runner
from rtl.suite import DesignConformance, assert_equal, check_random_cases
from rtl.tile_conformance import TileCase, free_services
from workloads.layers import Conv2d, MatMul
from workloads.operands import synthetic

SMALL = Plain(capacity_bytes=2048)


class TestSystolic(DesignConformance):
    """Three dataflows, odd sizes and every operand width in Verilog; random ones in Amaranth."""

    designs = (
        Systolic(rows=3, columns=5, ifmap_memory=SMALL, weight_memory=SMALL),
        Systolic(
            rows=5, columns=3, dataflow="output_stationary", operand_bits=4, ifmap_memory=SMALL
        ),
        Systolic(rows=4, columns=7, dataflow="input_stationary", operand_bits=16),
    )

    amaranth_cases = 16
    amaranth_words = 600

    def random_design(self, draw: Draw) -> Systolic:
        return random_design(draw)


@pytest.mark.slow
class TestSystolicAtLength(TestSystolic):
    """More designs, longer cases."""

    amaranth_cases = 36
    amaranth_words = LONGEST_WORDS
    verilator_cases = 200


@pytest.mark.parametrize(("dataflow", "registers"), zip(DATAFLOWS, (2, 2, 1), strict=True))
def test_product_registers(dataflow: Dataflow, registers: int) -> None:
    """Sums come as many cycles later, with an output-stationary array one more."""
    sizes: dict[str, Any] = {"rows": 3, "columns": 2, "dataflow": dataflow}
    design = Systolic(**sizes, product_registers=registers, ifmap_memory=SMALL)
    later = design.result_latency_cycles - Systolic(**sizes).result_latency_cycles
    assert later == registers + (dataflow == "output_stationary")
    check_random_cases(design, "amaranth", seed=11, cases=3, longest_words=700)


@pytest.mark.parametrize(("dataflow", "registers"), [*zip(DATAFLOWS, (2, 1, 1), strict=True)])
def test_output_registers(dataflow: Dataflow, registers: int) -> None:
    """Words leave as many cycles later, and back-pressure costs no throughput yet."""
    sizes: dict[str, Any] = {"rows": 2, "columns": 3, "dataflow": dataflow}
    design = Systolic(**sizes, output_registers=registers, ifmap_memory=SMALL)
    assert design.output_latency_cycles == Systolic(**sizes).output_latency_cycles + registers
    assert design.output_queue_depth > design.output_latency_cycles
    check_random_cases(design, "amaranth", seed=13, cases=3, longest_words=700)


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_accumulator_registers(dataflow: Dataflow) -> None:
    """Sums are written in the same cycle, also into the row before; words leave one later."""
    sizes: dict[str, Any] = {"rows": 1, "columns": 2, "dataflow": dataflow}
    plain, design = (Systolic(**sizes, accumulator_registers=n, ifmap_memory=SMALL) for n in (0, 1))
    assert design.result_latency_cycles == plain.result_latency_cycles
    assert design.accumulate_latency_cycles == plain.accumulate_latency_cycles + 1
    assert design.output_latency_cycles == plain.output_latency_cycles + 1
    most = replace(design, output_registers=2)
    assert most.output_queue_depth > most.output_latency_cycles
    check_random_cases(design, "amaranth", seed=19, cases=2, longest_words=400)


def test_accumulators_that_err_have_no_way_around_them() -> None:
    faulty: Any = with_settings(
        load_design("edge-16"), ["accumulator_memory.kind=faulty", "accumulator_memory.rate=0.01"]
    )
    memories = {n: getattr(faulty, n).for_fpga() for n in ("ifmap_memory", "weight_memory")}
    assert faulty.for_fpga() == replace(
        faulty, pipelined_control=True, ifmap_registers=1, product_registers=2, output_registers=2,
        **memories,
    )  # fmt: skip
    for value, text in ((1, "must be 0 with an accumulator_memory"), (2, "must be 0 or 1, not 2")):
        with pytest.raises(InputError, match=f"accumulator_registers {text}"):
            replace(faulty, accumulator_registers=value)
    plain: Any = load_design("edge-16").for_fpga()
    assert plain.accumulator_registers == 1


@pytest.mark.slow
class TestProductRegisters(DesignConformance):
    """Each dataflow in Verilog."""

    designs = tuple(
        Systolic(
            rows=3, columns=4, dataflow=dataflow, product_registers=registers,
            output_registers=registers, pipelined_control=registers == 2,
            accumulator_registers=1, ifmap_registers=registers - 1, lut_product_rows=registers,
        )
        for dataflow, registers in zip(DATAFLOWS, (2, 2, 1), strict=True)
    )  # fmt: skip
    amaranth_cases = 4

    def random_design(self, draw: Draw) -> Systolic:
        names = (
            "product_registers",
            "output_registers",
            "accumulator_registers",
            "ifmap_registers",
        )
        lowest, highest = (1, 0, 0, 0), (2, 2, 1, 1)
        drawn = zip(names, lowest, highest, strict=True)
        registers: Any = {name: draw.whole(low, high) for name, low, high in drawn}
        design = replace(random_design(draw), **registers)
        return replace(design, lut_product_rows=draw.whole(0, design.rows))


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_one_by_one_array(dataflow: Dataflow) -> None:
    design = Systolic(rows=1, columns=1, dataflow=dataflow)
    check_random_cases(design, "amaranth", seed=3, cases=4, longest_words=1500)


@pytest.mark.parametrize("dataflow", DATAFLOWS)
@pytest.mark.parametrize("layer", UNUSUAL_LAYERS, ids=lambda layer: layer.name)
def test_unusual_layers(layer: Conv2d | MatMul, dataflow: Dataflow) -> None:
    """Each shape, in its automatic tiling, with ports that never wait."""
    from archsim.tiled.timing import plan_tiling

    design = Systolic(rows=4, columns=3, dataflow=dataflow, ifmap_memory=SMALL)
    case = TileCase(
        design=design,
        layer=layer,
        tiling=plan_tiling(design, layer, None),
        operands=synthetic(layer, bits=8, seed=5),
        services=free_services(),
    )
    assert_equal(check(case, runner(design, "amaranth")))


@pytest.mark.parametrize(("latency", "batch"), [(23, 1), (600, 2)])
@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_off_chip_memory_replayed(dataflow: Dataflow, latency: int, batch: int) -> None:
    """The words that the off-chip model offers and accepts, cycle for cycle, against the RTL.

    The run's total equals the one that `simulate` reports.
    """
    from archsim.tiled.timing import plan_tiling, time_layer

    design = Systolic(
        rows=4, columns=4, dataflow=dataflow, ifmap_memory=SMALL, weight_memory=SMALL,
        accumulator_memory=SMALL,
        off_chip=OffChip(bytes_per_cycle=2.7, latency_cycles=latency, burst_bytes=16),
    )  # fmt: skip
    layer = Conv2d(
        name="c", channels=10, filters=9, ifmap_height=6, ifmap_width=6, kernel_height=3,
        kernel_width=3, bias=True, batch=batch,
    )  # fmt: skip
    tiling = plan_tiling(design, layer, None)
    case = TileCase(design=design, layer=layer, tiling=tiling, operands=synthetic(layer, seed=2))
    assert_equal(check(case, runner(design, "amaranth")))
    assert case.answer().cycles == time_layer(design, layer, tiling).cycles
