"""Memories that do not give back what was written: values change as their cells do, and no others.

The kind is a package's own (`composed_memories.Flip`); nothing in archsim knows it.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from composed_memories import Flip, Late, Stuck, Voted, installed

from archsim.layer.intake import Drawing
from archsim.layer.problem import Tiling
from archsim.machine.registry import design_from_record, design_record
from archsim.machines.systolic.design import DATAFLOWS, Systolic
from archsim.machines.tensorcore.design import TensorCore
from archsim.machines.vsq.design import Vsq
from archsim.memories.boveda.scratchpad import Boveda
from archsim.memory import Plain
from archsim.tiled.timing import layer_output, plan_tiling
from archsim.tiled.trace import answer
from rtl.cases import random_case
from rtl.conformance import check
from rtl.simulators import runner
from workloads.layers import Conv2d, MatMul

PLAIN = Plain(capacity_bytes=2048)
MEMORIES: dict[str, Any] = {"accumulator_memory": Plain(capacity_bytes=4096), "bias_words": 32}
OPERANDS: dict[str, Any] = {"ifmap_memory": PLAIN, "weight_memory": PLAIN, **MEMORIES}
DESIGNS: dict[str, Any] = {
    **{one: Systolic(rows=4, columns=4, dataflow=one, **OPERANDS) for one in DATAFLOWS},
    "floats": TensorCore(octets=1, group_columns=2, rows=4, length=2, **OPERANDS),
    "vectors": Vsq(lanes=4, vector=4, hold_cycles=2, **OPERANDS),
}
CONV = Conv2d(
    name="c", channels=6, filters=10, ifmap_height=7, ifmap_width=6, kernel_height=3,
    kernel_width=2, pad_top=1, pad_left=1, pad_bottom=1, stride_height=2, groups=2, batch=2,
    bias=True,
)  # fmt: skip


@pytest.fixture(autouse=True)
def package(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path):
        yield


def with_memory(design: Any, **kinds: Any) -> Any:
    """The design with kinds around the memories that stand there."""
    found = {
        f"{name}_memory": replace(kind, inner=getattr(design, f"{name}_memory"))
        for name, kind in kinds.items()
    }
    return replace(design, **found)


def tilings(design: Any, layer: Any) -> Iterator[Tiling]:
    """The automatic one, and one of many tiles."""
    whole = plan_tiling(design, layer, None)
    yield whole
    channels = -(-design.numerics.problem(layer).channels // 2)
    small = Tiling(pixel_rows=2, pixel_columns=2, filters=4, channels=channels)
    yield small
    yield replace(small, order="filters_outer")


@pytest.mark.parametrize("name", DESIGNS)
def test_the_way_through_memories_changes_nothing(name: str) -> None:
    """Of memories that might be wrong and are not, every value and word is the same."""
    design = DESIGNS[name]
    never = Flip(row=1 << 20)
    through = with_memory(design, ifmap=never, weight=never)
    assert design.exact and not through.exact
    narrow = replace(CONV, channels=26, filters=26, groups=13)
    for layer in (CONV, narrow, replace(CONV, dilation_height=2, pad_top=4)):
        operands = design.numerics.synthetic(layer, Drawing(seed=3))
        for tiling in tilings(design, layer):
            ours = layer_output(through, layer, operands, tiling)
            np.testing.assert_array_equal(ours, layer_output(design, layer, operands, tiling))
            one, other = (answer(each, layer, tiling, operands) for each in (design, through))
            for port, crossed in one.transfers.items():
                np.testing.assert_array_equal(other.transfers[port].payload, crossed.payload)


PRODUCT = MatMul(name="p", m=3, n=4, k=8, bias=True)
"""One tile of every design."""

WHOLE = Tiling(pixel_rows=1, pixel_columns=3, filters=4, channels=8)


def by_hand(design: Any, operand: str, memory: Any, operands: Any) -> Any:
    """The ofmap of operands that were read once, as a whole, through a memory."""
    numerics = design.numerics
    taken = numerics.take(PRODUCT, operands)
    words = answer(design, PRODUCT, WHOLE, operands).transfers[operand].payload
    seen = memory.read_back(
        design.use(operand), memory.stored(design.use(operand), words), len(words)
    )
    assert (seen != words).any()
    each = seen.shape[1] // {"ifmap": numerics.word_lanes.ifmap, "weight": 4}[operand]
    if operand == "ifmap":  # densely, pixels with their channels
        read = seen.reshape(-1, each)[: 3 * 8 // (4 if each > 1 else 1)].reshape(3, -1, each)
        values, scales = read[..., : min(4, each)], read[..., 4:]
        changed = {"ifmap": values.reshape(1, 3, 8)}
        if each > 1:
            changed["ifmap_scales"] = scales.reshape(1, 3, -1)
    elif design.kind == "systolic" and design.dataflow == "input_stationary":
        read = seen.reshape(-1, 4, 4).transpose(0, 2, 1).reshape(8, 4)  # chunks, filters, elements
        changed = {"weight": read[None]}
    else:  # channels, then filters
        read = seen.reshape(-1, 4, each)
        changed = {"weight": read[..., : min(4, each)].transpose(0, 2, 1).reshape(1, 8, 4)}
        if each > 1:
            changed["weight_scales"] = read[..., 4].reshape(1, -1, 4)
    kept = {name: array.astype(getattr(taken, name).dtype) for name, array in changed.items()}
    return layer_output(design, PRODUCT, replace(taken, **kept), WHOLE)


@pytest.mark.parametrize("operand", ["ifmap", "weight"])
@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("bit", [6, 14, 19])
def test_one_bit_changes_what_it_should(name: str, operand: str, bit: int) -> None:
    """Also a scale's: bit 19 of a vector's word is one."""
    design = DESIGNS[name]
    operands = design.numerics.synthetic(PRODUCT, Drawing(seed=1))
    flip = Flip(row=1, bit=bit % design.word_bits(operand))
    through = with_memory(design, **{operand: flip})
    found = layer_output(through, PRODUCT, operands, WHOLE)
    memory = getattr(through, f"{operand}_memory")
    np.testing.assert_array_equal(found, by_hand(design, operand, memory, operands))
    seen = (found != layer_output(design, PRODUCT, operands, WHOLE)).any()
    assert seen or (bit == 19 and name != "vectors"), "a low bit, lost to rounding"


@pytest.mark.parametrize("operand", ["ifmap", "weight"])
@pytest.mark.parametrize("sram", ["rows", "directory"])
def test_containers_and_widths_of_a_compressed_memory(operand: str, sram: str) -> None:
    """A container's bit is one value's; a width's garbles those behind it."""
    inner = Boveda(capacity_bytes=512, group=4, unit_words=4)
    design = replace(DESIGNS["weight_stationary"], **{f"{operand}_memory": inner})
    operands = design.numerics.synthetic(PRODUCT, Drawing(seed=1))
    bit = 2 if sram == "rows" else inner.entry_bits(32, 8) - 12
    flip = Flip(sram=sram, bit=bit)
    through = with_memory(design, **{operand: flip})
    found = layer_output(through, PRODUCT, operands, WHOLE)
    memory = getattr(through, f"{operand}_memory")
    np.testing.assert_array_equal(found, by_hand(design, operand, memory, operands))


def test_faults_and_protection_of_a_core_s_memory() -> None:
    """Three copies of every word outvote a fault below them, and not one around them."""
    design = replace(DESIGNS["output_stationary"], weight_memory=Plain(capacity_bytes=4096))
    operands = design.numerics.synthetic(CONV, Drawing(seed=2))
    tiling = list(tilings(design, CONV))[1]

    def seen(memory: Any) -> Any:
        return layer_output(replace(design, weight_memory=memory), CONV, operands, tiling)

    plain = design.weight_memory
    right = seen(plain)
    np.testing.assert_array_equal(seen(Voted(inner=Stuck(inner=plain))), right)
    assert (seen(Stuck(inner=plain)) != right).any()
    assert Late(inner=plain).exact and not Late(inner=Stuck(inner=plain)).exact


@pytest.mark.parametrize(
    ("name", "cases"),
    [("weight_stationary", 1), ("vectors", 2)]
    + [pytest.param(name, 4, marks=pytest.mark.slow) for name in DESIGNS],
)
def test_hardware_with_the_fault_is_its_model(name: str, cases: int) -> None:
    """The weights' fault in one half; the ifmap's in every lane, each of which has its own SRAM."""
    lanes = name != "vectors"  # a word of theirs is a lane to the hardware
    ifmap, weight = Flip(row=1, bit=1, every_lane=lanes, half=1), Flip(row=2, bit=2)
    design = with_memory(DESIGNS[name], ifmap=ifmap, weight=weight)
    assert design_from_record(design_record(design), "it") == design
    simulator, differs = runner(design, "amaranth"), 0
    for number in range(cases):
        case = random_case(11, number, design)
        assert check(case, simulator).equal
        exact = random_case(11, number, DESIGNS[name]).answer().transfers["ofmap"].payload
        differs += (case.answer().transfers["ofmap"].payload != exact).any()
    assert differs


@pytest.mark.parametrize(
    ("name", "number"),
    [("weight_stationary", 2)]
    + [
        pytest.param(name, number, marks=pytest.mark.slow)
        for name, number in [
            ("weight_stationary", 3),
            ("output_stationary", 1),
            ("input_stationary", 2),
            ("floats", 3),
            ("vectors", 2),
        ]
    ],
)
def test_hardware_with_a_fault_of_its_sums_is_its_model(name: str, number: int) -> None:
    """Every read turns the bit: where rows are read an even number of times, most are right."""
    design = with_memory(DESIGNS[name], accumulator=Flip(row=0, bit=18, half=-1))
    case = random_case(11, number, design)
    assert check(case, runner(design, "amaranth")).equal
    exact = random_case(11, number, DESIGNS[name]).answer().transfers["ofmap"].payload
    assert (case.answer().transfers["ofmap"].payload != exact).any()
