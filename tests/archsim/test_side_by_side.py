"""Groups side by side: their words and values against blocks made by hand, and the choice."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from compressed_designs import random_design as compressed_design
from grouped_layers import as_convolution, blocks, grouped_layers
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim import simulate
from archsim.arithmetic.dot_product import DotProduct
from archsim.arithmetic.float_datapath import FloatRules
from archsim.arithmetic.formats import BF16, FP16, FloatFormat
from archsim.errors import InputError
from archsim.layer import layout
from archsim.layer.intake import Drawing
from archsim.layer.problem import Problem, Tiling, problem_of
from archsim.machine.registry import load_design
from archsim.machines.systolic.design import DATAFLOWS, Systolic
from archsim.machines.tensorcore.design import TensorCore
from archsim.machines.tensorcore.float_values import float_sums
from archsim.machines.vsq.design import VSQ_16, Vsq
from archsim.memories.boveda.scratchpad import Boveda
from archsim.memory import OffChip, Plain
from archsim.simulate import simulate_many
from archsim.tiled.choice import find_tiling
from archsim.tiled.design import CoreDesign
from archsim.tiled.near_tiers import TOLERANCE
from archsim.tiled.side_by_side import MOST_COUNTS, group_counts
from archsim.tiled.timing import layer_output, plan_tiling, time_layer
from archsim.tiled.trace import PORTS, Answer, answer
from archsim.timing import Service
from rtl.cases import Draw
from workloads import reference
from workloads.builtin import builtin
from workloads.layers import Conv2d, MatMul, Network

FREE = tuple(Service() for _ in PORTS)
LARGE = Plain(capacity_bytes=1 << 16)


def tiling_of(data: st.DataObject, problem: Problem, groups: int) -> Tiling:
    """Any pixels, all of a block."""
    return Tiling(
        pixel_rows=data.draw(st.integers(1, problem.out_height)),
        pixel_columns=data.draw(st.integers(1, problem.out_width)),
        filters=groups * problem.filters,
        channels=groups * problem.channels,
        groups=groups,
    )


def assert_same(ours: Answer, other: Answer) -> None:
    for name in PORTS:
        np.testing.assert_array_equal(ours.transfers[name].payload, other.transfers[name].payload)
        np.testing.assert_array_equal(ours.transfers[name].cycle, other.transfers[name].cycle)
    assert ours.actions == other.actions


def check_blocks(
    data: st.DataObject, design: CoreDesign, layer: Conv2d | MatMul, operands: Any, vector: int = 1
) -> None:
    """A layer in a tiling of blocks is the layer of the blocks, word for word."""
    problem = design.numerics.problem(layer)
    groups = data.draw(st.integers(2, problem.groups))
    tiling = tiling_of(data, problem, groups)
    try:
        plan_tiling(design, layer, tiling, operands)
    except InputError as error:
        assert "do not fit" in str(error) or "does not fit" in str(error)
        return
    block, its_operands = blocks(*as_convolution(layer, operands), groups, vector)
    alone = replace(tiling, groups=1)
    assert_same(
        answer(design, layer, tiling, operands, FREE),
        answer(design, block, alone, its_operands, FREE),
    )


@settings(max_examples=80)
@given(st.data(), grouped_layers(), st.integers(0, 10**6))
def test_words_of_integers(data: st.DataObject, layer: Conv2d | MatMul, seed: int) -> None:
    draw = Draw(seed, 0)
    design: CoreDesign = Systolic(
        rows=draw.whole(1, 9), columns=draw.whole(1, 9), dataflow=DATAFLOWS[draw.whole(0, 2)],
        ifmap_memory=LARGE, weight_memory=LARGE, accumulator_memory=LARGE,
    )  # fmt: skip
    if draw.chance(0.3):
        design = compressed_design(draw, 8)
    operands = design.numerics.synthetic(layer, Drawing(seed=seed))
    check_blocks(data, design, layer, operands)


@settings(max_examples=30)
@given(st.data(), grouped_layers(12, 6), st.integers(0, 10**6))
def test_words_of_floats(data: st.DataObject, layer: Conv2d | MatMul, seed: int) -> None:
    """All chunks of a block, zeros and all, and only those that matter: the same sums."""
    draw = Draw(seed, 0)
    design = TensorCore(
        octets=1, group_columns=draw.whole(1, 2), rows=4, length=draw.one_of(1, 2, 4),
        operand="fp16" if draw.chance(0.5) else "bf16", ifmap_memory=LARGE, weight_memory=LARGE,
        accumulator_memory=LARGE,
    )  # fmt: skip
    operands = design.numerics.take(layer, design.numerics.synthetic(layer, Drawing(seed=seed)))
    if draw.chance(0.3):  # infinities among the weights stay in their own filters
        some = draw.rng.random(operands.weight.shape) < 0.1
        operands = replace(operands, weight=np.where(some, FP16.infinity, operands.weight))
    if design.numerics.may_share(operands):
        check_blocks(data, design, layer, operands)


@settings(max_examples=60)
@given(
    grouped_layers(6, 4), st.integers(2, 6), st.sampled_from([FP16, BF16]), st.integers(0, 45),
    st.tuples(*[st.booleans()] * 4), st.integers(0, 10**6),
)  # fmt: skip
def test_sums_of_floats_by_any_rules(
    layer: Conv2d | MatMul,
    groups: int,
    form: FloatFormat,
    aligned: int,
    rules: tuple[bool, bool, bool, bool],
    seed: int,
) -> None:
    """Of chunks of zeros one matters: it may round a sum once more, or make it 0."""
    nearest, joins, inputs, outputs = rules
    dot = DotProduct(
        length=2, operand=form, accumulator=FP16,
        rules=FloatRules(
            aligned_fraction_bits=aligned, rounding="nearest_even" if nearest else "truncate",
            accumulator_joins=joins, subnormal_inputs=inputs, subnormal_outputs=outputs,
        ),
    )  # fmt: skip
    problem, rng = problem_of(layer), np.random.default_rng(seed)
    groups = min(groups, problem.groups)
    sizes = (problem.images, problem.groups, problem.height, problem.width, problem.channels)
    kernel = (problem.kernel_height, problem.kernel_width, problem.channels)
    ifmap, weight = (
        form.encode(rng.normal(size=size) * 2.0 ** rng.integers(-9, 3, size))
        for size in (sizes, (problem.groups, problem.filters, *kernel))
    )
    block = problem.side_by_side(groups)
    whole = layout.side_by_side(ifmap, groups, (1, 4)), layout.block_diagonal(weight, groups)
    sums = float_sums(problem, ifmap, weight, dot, block.channels, groups)
    np.testing.assert_array_equal(
        layout.side_by_side(sums, groups, (1, 4)),
        float_sums(block, *whole, dot, block.channels),
    )


@settings(max_examples=30)
@given(st.data(), grouped_layers(12, 9), st.integers(0, 10**6))
def test_words_of_vectors(data: st.DataObject, layer: Conv2d | MatMul, seed: int) -> None:
    """Vectors do not mix groups: short ones stay short; scales of outputs too."""
    draw = Draw(seed, 0)
    scaled = draw.chance(0.5)
    bits = draw.one_of(4, 6) if scaled else 0
    design = Vsq(
        lanes=2, vector=2, hold_cycles=4, weight_scale_bits=bits, activation_scale_bits=bits,
        collector_bits=24, ifmap_memory=LARGE, weight_memory=LARGE, accumulator_memory=LARGE,
    )  # fmt: skip
    operands = design.numerics.take(layer, design.numerics.synthetic(layer, Drawing(seed=seed)))
    problem = design.numerics.problem(layer)
    if scaled and problem.filters % 2:
        with pytest.raises(InputError, match="outputs share a scale, which groups of"):
            plan_tiling(design, layer, tiling_of(data, problem, 2))
        return
    check_blocks(data, design, layer, operands, vector=2)


@settings(max_examples=60)
@given(grouped_layers(), st.sampled_from(DATAFLOWS), st.integers(0, 10**6))
def test_values_are_those_of_the_reference(
    layer: Conv2d | MatMul, dataflow: Any, seed: int
) -> None:
    design = Systolic(rows=8, columns=8, dataflow=dataflow)
    operands = design.numerics.synthetic(layer, Drawing(seed=seed))
    result = simulate(design, Network(name="n", layers=(layer,), source="s"),
                      operands={layer.name: operands}).layers[0]  # fmt: skip
    assert result.tiling is not None
    np.testing.assert_array_equal(result.ofmap, reference.compute(layer, operands))
    alone = find_tiling(problem_of(layer), design.machine, share=False)
    np.testing.assert_array_equal(layer_output(design, layer, operands, alone), result.ofmap)


@settings(max_examples=20)
@given(st.data(), grouped_layers(9, 9), st.integers(0, 10**6))
def test_vectors_have_the_values_of_single_groups(
    data: st.DataObject, layer: Conv2d | MatMul, seed: int
) -> None:
    """Also where collectors saturate: vectors of other groups add 0 to them."""
    design = Vsq(
        lanes=4, vector=4, hold_cycles=4, collector_bits=14, weight_scale_bits=0,
        activation_scale_bits=0, weight_bits=6, activation_bits=6, ifmap_memory=LARGE,
    )  # fmt: skip
    problem = design.numerics.problem(layer)
    operands = design.numerics.take(layer, design.numerics.synthetic(layer, Drawing(seed=seed)))
    alone = Tiling(
        pixel_rows=1, pixel_columns=1, filters=problem.filters, channels=problem.channels
    )
    tiling = tiling_of(data, problem, data.draw(st.integers(2, problem.groups)))
    one, other = (layer_output(design, layer, operands, each) for each in (alone, tiling))
    np.testing.assert_array_equal(one, other)


@settings(max_examples=150)
@given(grouped_layers(), st.data())
def test_never_slower_than_groups_alone(layer: Conv2d | MatMul, data: st.DataObject) -> None:
    """By the exact schedule, over dataflows, arrays, bandwidths and latencies; but by what the fast
    mapper gives for fewer bytes."""
    whole = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    small = lambda low, high: Plain(capacity_bytes=whole(low, high))  # noqa: E731
    design = Systolic(
        rows=whole(1, 20), columns=whole(1, 20), dataflow=data.draw(st.sampled_from(DATAFLOWS)),
        ifmap_memory=small(200, 8000), weight_memory=small(800, 8000),
        accumulator_memory=small(800, 20000), bias_words=whole(2, 64),
        off_chip=OffChip(
            bytes_per_cycle=data.draw(st.sampled_from([0.0, 0.7, 4.0, 64.0])),
            latency_cycles=whole(0, 100),
        ),
    )  # fmt: skip
    problem = problem_of(layer)
    alone = find_tiling(problem, design.machine, share=False)
    best = find_tiling(problem, design.machine)
    assert (alone is None) <= (best is None or best.groups > 1)
    if best is None:
        return
    timed = time_layer(design, layer)
    network = Network(name="n", layers=(layer,), source="s")
    assert simulate_many([design], network)[0].tolist() == [[timed.cycles]]
    assert timed.macs == layer.macs
    assert timed.utilization <= 1
    if alone is not None:
        assert timed.cycles <= (1 + TOLERANCE) * time_layer(design, layer, alone).cycles


@settings(max_examples=60)
@given(grouped_layers(), st.integers(2, 9), st.data())
def test_a_batch_costs_no_image_more(
    layer: Conv2d | MatMul, images: int, data: st.DataObject
) -> None:
    """Whatever lies side by side for one image and for several."""
    if isinstance(layer, MatMul):
        return
    whole = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    design = Systolic(
        rows=whole(2, 20), columns=whole(2, 20), dataflow=data.draw(st.sampled_from(DATAFLOWS)),
        off_chip=OffChip(bytes_per_cycle=data.draw(st.sampled_from([0.0, 4.0, 64.0]))),
    )  # fmt: skip
    one = time_layer(design, replace(layer, batch=1))
    several = time_layer(design, replace(layer, batch=images))
    assert several.cycles <= images * one.cycles
    assert several.total_bytes <= images * one.total_bytes


@settings(max_examples=100)
@given(grouped_layers(most_groups=200), st.data())
def test_numbers_of_groups_that_are_tried(layer: Conv2d | MatMul, data: st.DataObject) -> None:
    """Falling to 1, at most those of the layer; the fullest block is among them, padded or not."""
    whole = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    flow = data.draw(st.sampled_from(DATAFLOWS))
    design = Systolic(rows=whole(1, 64), columns=whole(1, 64), dataflow=flow)
    problem, counts = problem_of(layer), np.zeros(MOST_COUNTS, np.int64)
    count = group_counts(problem.vector(), design.machine, counts)
    tried = counts[:count].tolist()
    assert tried == sorted(set(tried), reverse=True)
    assert tried[-1] == 1
    assert tried[0] <= problem.groups
    fill = min(design.columns // problem.filters, problem.groups)
    if fill > 1:
        fewest = -(-problem.groups // fill)
        assert fewest in {-(-problem.groups // one) for one in tried}
    assert count <= 20


def depthwise(groups: int, size: int = 14) -> Conv2d:
    return Conv2d(
        name="d", channels=groups, filters=groups, groups=groups, ifmap_height=size,
        ifmap_width=size, kernel_height=3, kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1,
        pad_right=1, bias=True,
    )  # fmt: skip


@pytest.mark.parametrize("groups", [128, 127, 131, 257])
def test_depthwise_layers_fill_the_columns(groups: int) -> None:
    """Nine folds of the pixels for 128 groups, no longer three for each; primes do as well."""
    design = load_design("cloud-128")
    assert isinstance(design, CoreDesign)
    alone = find_tiling(problem_of(depthwise(groups)), design.machine, share=False)
    before = time_layer(design, depthwise(groups), alone)
    after = time_layer(design, depthwise(groups))
    assert before.folds == 3 * groups
    assert after.folds <= 12 * -(-groups // 128)
    assert 15 * after.cycles < before.cycles
    computed = groups * 14 * 14
    assert computed <= after.bytes_moved["ofmap"] < 1.06 * computed
    assert after.bytes_moved["weight"] < 1.06 * before.bytes_moved["weight"]


@pytest.mark.parametrize(("dataflow", "gain"), [
    ("weight_stationary", 4.9), ("input_stationary", 4), ("output_stationary", 4),
])  # fmt: skip
def test_what_each_dataflow_gains(dataflow: Any, gain: float) -> None:
    """Filters fill columns, runs of more channels fill rows, or the slots of a chunk."""
    design = Systolic(rows=16, columns=16, dataflow=dataflow)
    layer = depthwise(48)
    alone = find_tiling(problem_of(layer), design.machine, share=False)
    assert time_layer(design, layer, alone).cycles > gain * time_layer(design, layer).cycles


def test_the_block_that_is_walked() -> None:
    """Seven groups of 2 × 3 in blocks of 4: two blocks of 8 channels and 12 filters."""
    layer = replace(depthwise(7), channels=14, filters=21)
    problem = problem_of(layer).side_by_side(4)
    assert (problem.groups, problem.channels, problem.filters) == (2, 8, 12)
    assert problem.macs == 8 * 4 * problem_of(layer).macs // 7
    weight = np.arange(1, 7 * 3 * 9 * 2 + 1).reshape(7, 3, 3, 3, 2)
    whole = layout.block_diagonal(weight, 4)
    assert whole.shape == (2, 12, 3, 3, 8)
    assert np.count_nonzero(whole) == weight.size
    for group, k, c in np.ndindex(7, 3, 2):
        block, at = divmod(group, 4)
        np.testing.assert_array_equal(
            whole[block, 3 * at + k, :, :, 2 * at + c], weight[group, k, :, :, c]
        )


@pytest.mark.parametrize(("changes", "message"), [
    ({"groups": 9}, "d: groups must be at most 8, those of the layer, not 9"),
    ({"groups": 4, "filters": 2}, "d: filters must be 4, all of the 4 groups side by side, not 2"),
    ({"groups": 4, "channels": 1}, "d: channels must be 4, all of the 4 groups side by side"),
])  # fmt: skip
def test_tilings_that_are_refused(changes: dict[str, int], message: str) -> None:
    given = {"pixel_rows": 2, "pixel_columns": 14, "filters": 4, "channels": 4} | changes
    with pytest.raises(InputError, match=message):
        plan_tiling(load_design("edge-16"), depthwise(8), Tiling(**given))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="groups must be positive, not 0"):
        Tiling(pixel_rows=1, pixel_columns=1, filters=1, channels=1, groups=0)


def test_a_block_that_a_compressed_memory_does_not_hold() -> None:
    """The error names the first group of the block."""
    memory = Boveda(capacity_bytes=256, group=4, unit_words=2, expansion=4)
    design = Systolic(rows=4, columns=4, weight_memory=memory)
    layer = depthwise(12)
    operands = design.numerics.synthetic(layer, Drawing())
    weight = operands.weight.copy()
    weight[:4] = 0
    tiling = Tiling(pixel_rows=14, pixel_columns=14, filters=4, channels=4, groups=4)
    with pytest.raises(InputError, match=r"d: the weight tile at group [48], filter 0, channel 0"):
        plan_tiling(design, layer, tiling, replace(operands, weight=weight))


def test_outputs_that_share_a_scale_keep_groups_apart() -> None:
    """Sixteen filters share a scale on `vsq-16`: of one filter a group, none lie side by side."""
    layer = depthwise(32, 2)
    assert plan_tiling(VSQ_16, layer, None).groups == 1
    free = replace(VSQ_16, weight_scale_bits=0, activation_scale_bits=0)
    assert plan_tiling(free, layer, None).groups > 1
    result = simulate(VSQ_16, Network(name="n", layers=(layer,), source="s"))
    assert result.layers[0].tiling == plan_tiling(VSQ_16, layer, None)


def test_infinities_keep_groups_apart() -> None:
    """0 · ∞ is a NaN: where the ifmap has an infinity, groups are computed alone."""
    design = load_design("volta")
    assert isinstance(design, TensorCore)
    layer = depthwise(32, 28)
    operands = design.numerics.take(layer, design.numerics.synthetic(layer, Drawing()))
    together = plan_tiling(design, layer, None, operands)
    assert together.groups > 1
    ifmap = operands.ifmap.copy()
    ifmap[0, 5, 3, 3] = FP16.infinity
    spoilt = replace(operands, ifmap=ifmap)
    assert plan_tiling(design, layer, None, spoilt).groups == 1
    network = Network(name="n", layers=(layer,), source="s")
    result = simulate(design, network, operands={"d": spoilt}).layers[0]
    assert result.tiling is not None
    assert result.tiling.groups == 1
    assert result.ofmap is not None
    strange = ~np.isfinite(result.ofmap)
    assert strange[:, 5].any()
    assert not np.delete(strange, 5, axis=1).any()
    message = r"groups must be 1, not \d+: the ifmap has infinities"
    with pytest.raises(InputError, match=message):
        layer_output(design, layer, spoilt, together)
    with pytest.raises(InputError, match=message):
        answer(design, layer, together, spoilt, FREE)


def test_mobilenet_fills_the_columns() -> None:
    """7,441,227 cycles and 303.9 MB of ofmap were measured with groups alone, words unpacked."""
    design = load_design("cloud-128")
    assert isinstance(design, CoreDesign)
    result = simulate(design, builtin("mobilenetv2"))
    assert result.cycles < 450_000
    assert result.bytes_moved["ofmap"] < 7e6
