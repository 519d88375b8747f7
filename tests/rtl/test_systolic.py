"""The systolic core passes the conformance suite."""

import pytest

from archsim.designs.systolic import DATAFLOWS, Dataflow, Systolic
from archsim.memory import OffChip, Plain
from rtl.cases import Draw, random_case, random_design
from rtl.conformance import Case, check, free_services
from rtl.simulators import runner
from rtl.suite import DesignConformance, assert_equal
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

    def random_design(self, draw: Draw) -> Systolic:
        return random_design(draw)


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_one_by_one_array(dataflow: Dataflow) -> None:
    design = Systolic(rows=1, columns=1, dataflow=dataflow)
    for number in range(4):
        case = random_case(3, number, design, longest_words=1500)
        assert_equal(check(case, runner(design, "amaranth")))


LAYERS = (
    MatMul(name="one", m=1, n=1, k=1, bias=True),
    MatMul(name="k of one", m=9, n=5, k=1),
    MatMul(name="one more than a multiple", m=9, n=9, k=9, bias=True, relu=True),
    MatMul(name="attention", m=5, n=7, k=6, batch=3, shared_weight=False),
    Conv2d(
        name="depthwise, stride 2", channels=3, filters=3, ifmap_height=7, ifmap_width=8,
        kernel_height=3, kernel_width=3, stride_height=2, stride_width=2, pad_top=1, pad_left=1,
        pad_bottom=1, pad_right=1, groups=3, bias=True, relu=True,
    ),
    Conv2d(
        name="pointwise, stride 2", channels=9, filters=5, ifmap_height=5, ifmap_width=5,
        kernel_height=1, kernel_width=1, stride_height=2, stride_width=2, batch=2,
    ),
    Conv2d(
        name="dilated, all padding at a corner", channels=2, filters=5, ifmap_height=4,
        ifmap_width=3, kernel_height=3, kernel_width=2, pad_top=4, pad_left=3, pad_bottom=4,
        pad_right=3, dilation_height=2, dilation_width=2,
    ),
    Conv2d(
        name="stride beyond the kernel", channels=3, filters=4, ifmap_height=9, ifmap_width=9,
        kernel_height=2, kernel_width=2, stride_height=4, stride_width=5,
    ),
)  # fmt: skip


@pytest.mark.parametrize("dataflow", DATAFLOWS)
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_unusual_layers(layer: Conv2d | MatMul, dataflow: Dataflow) -> None:
    """Each shape, in its automatic tiling, with ports that never wait."""
    from archsim.simulate import plan_tiling

    design = Systolic(rows=4, columns=3, dataflow=dataflow, ifmap_memory=SMALL)
    case = Case(
        design=design,
        layer=layer,
        tiling=plan_tiling(design, layer, None),
        operands=synthetic(layer, bits=8, seed=5),
        services=free_services(),
    )
    assert_equal(check(case, runner(design, "amaranth")))


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_off_chip_memory_replayed(dataflow: Dataflow) -> None:
    """The words that the off-chip model offers and accepts, cycle for cycle, against the RTL.

    The run's total equals the one that `simulate` reports.
    """
    from archsim.core.problem import problem_of
    from archsim.core.traffic import service_objects, services_of
    from archsim.core.walk import walk
    from archsim.simulate import plan_tiling, time_layer

    design = Systolic(
        rows=4, columns=4, dataflow=dataflow, ifmap_memory=SMALL, weight_memory=SMALL,
        accumulator_memory=SMALL,
        off_chip=OffChip(bytes_per_cycle=2.7, latency_cycles=23, burst_bytes=16),
    )  # fmt: skip
    layer = Conv2d(
        name="c", channels=10, filters=9, ifmap_height=8, ifmap_width=8, kernel_height=3,
        kernel_width=3, bias=True,
    )  # fmt: skip
    tiling = plan_tiling(design, layer, None)
    tiles = walk(problem_of(layer).vector(), tiling.vector(), design.machine)
    services = service_objects(services_of(tiles, design.machine))
    assert any(service.burst_words for service in services)
    case = Case(
        design=design, layer=layer, tiling=tiling, operands=synthetic(layer, seed=2),
        services=services,
    )  # fmt: skip
    assert_equal(check(case, runner(design, "amaranth")))
    assert case.answer().cycles == time_layer(design, layer, tiling).cycles
