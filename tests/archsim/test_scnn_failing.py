"""Lists of the sparse core in cells that fail: what PEs see, compute and give out.

A plain walk over every vector of every PE is laid beside it; RTL: `tests/rtl/test_scnn_failing.py`.
"""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scnn_failing_layers import CONV, POOL, PRODUCT, SEEN, assert_alike

from archsim.errors import InputError
from archsim.layer.values import requantize
from archsim.machine.registry import with_settings
from archsim.machines.scnn.chain import chain_timing
from archsim.machines.scnn.design import SCNN_ISCA17, Scnn
from archsim.machines.scnn.exact import best_choice
from archsim.machines.scnn.layer import Layer, layer_passes, layer_timing, plan_layer
from archsim.machines.scnn.lists import ofmap_lists
from archsim.machines.scnn.strips import (
    Strip,
    _every_list_fits,  # pyright: ignore[reportPrivateUsage]
)
from archsim.machines.scnn.words import LayerRun, pass_words
from archsim.memories.boveda_stream.stream import BovedaStream
from archsim.memories.faulty.cell_faults import HALF_BIT
from archsim.memories.faulty.stream import FaultyStream
from archsim.memories.protected.stream import SecdedStream
from archsim.numbers import wrap
from workloads.operands import Operands, synthetic
from workloads.pooling import MaxPool

SMALL = Scnn(
    grid_rows=2, grid_columns=2, weight_lanes=2, ifmap_lanes=2, banks=8, operand_bits=8,
    index_bits=2, iaram_bytes=400, oaram_bytes=300,
)  # fmt: skip


def failing(design: Scnn = SMALL, rate: float = 0.05, **more: Any) -> Scnn:
    return replace(design, activation_memory=FaultyStream(rate=rate, chip=3, **more))


def operands_of(layer: Layer, density: float = 0.5) -> Operands:
    return synthetic(layer, bits=8, density=density, seed=2)


@pytest.mark.parametrize(
    ("layer", "pool"),
    [
        (CONV, None),
        (replace(CONV, ifmap_height=100, relu=True), None),
        (replace(CONV, stride_height=1, groups=1, batch=2), POOL),
        (replace(CONV, stride_height=1), MaxPool(window=(1, 1), stride=(2, 3))),
        (PRODUCT, None),
        (replace(PRODUCT, k=300, n=150), None),
    ],
    ids=["strided", "strips", "pooled", "sampled", "product", "folded"],
)
def test_where_no_cell_fails_nothing_is_another(layer: Layer, pool: MaxPool | None) -> None:
    """By the tables of addresses and the sums of elements that may be anywhere."""
    operands = operands_of(layer)
    right = layer_timing(SMALL, layer, operands, pool=pool)
    found = layer_timing(failing(rate=SEEN), layer, operands, pool=pool)
    assert not failing(rate=SEEN).activation_memory.exact
    assert_alike(found, right)


@pytest.mark.parametrize("pool", [None, POOL], ids=["whole", "pooled"])
def test_strips_are_cut_as_those_of_sound_cells(pool: MaxPool | None) -> None:
    """Whether lists of the ofmap that is meant were made, since not all that there may be fit, or
    were not, which takes as long as all others."""
    layer = replace(CONV, stride_height=1, ifmap_height=24, ifmap_width=5, relu=True)
    operands, made, numbers, odd = operands_of(layer), set[bool](), set[int](), 0
    for size in range(12, 400, 5):
        sound = replace(SMALL, oaram_bytes=size)
        try:
            expected = layer_passes(sound, layer, operands, pool)
        except InputError as error:
            with pytest.raises(InputError, match=re.escape(str(error))):
                layer_passes(failing(sound, rate=SEEN), layer, operands, pool)
            continue
        found = layer_passes(failing(sound, rate=SEEN), layer, operands, pool)
        cut, wanted = (
            [[(strip.rows, strip.columns) for strip in each] for each in some]
            for some in (found, expected)
        )
        assert cut == wanted
        numbers.add(len(cut[0]))
        mapping = found[0][0].mapping
        made.add(_every_list_fits(sound, mapping))
        places = mapping.rows.give * mapping.columns.give
        odd += places % 2
        vectors = mapping.filters * -(-places // 2)
        assert _every_list_fits(sound, mapping) == (vectors <= sound.oaram_vectors)
    assert pool or made == {True, False}
    assert len(numbers) > 2
    assert odd or pool


def walked(design: Scnn, strip: Strip, weight: Any) -> Any:
    """The sums [P, Q, K] of a strip, vector by vector and product by product."""
    mapping, lists = strip.mapping, strip.operands.ifmap
    use, memory = design.stream_use("iaram"), design.activation_memory
    assert isinstance(memory, FaultyStream)
    faults = memory.words_map(use.words)
    sums = np.zeros((mapping.rows.outputs, mapping.columns.outputs, mapping.filters), np.int64)
    for pe in range(mapping.used_pes):
        row, column = mapping.place(pe)
        regions = mapping.rows.region(row), mapping.columns.region(column)
        first = int(lists.starts[pe * mapping.lists])
        address = (row * design.grid_columns + column) << use.row_bits
        for number in range(mapping.lists):
            channel, phase = divmod(number, len(mapping.phases))
            begin, end = lists.starts[pe * mapping.lists + number :][:2]
            position = -1
            for n in range(begin, end):
                word = 0
                for lane in range(lists.lanes):
                    element = int(lists.values[n, lane]) & 255 | int(lists.indices[n, lane]) << 8
                    word |= element << 10 * lane
                masks = faults.masks((use.half << HALF_BIT) + address + n - first, 1)
                zero, one = (int.from_bytes(mask.tobytes(), "little") for mask in masks)
                word ^= word & one | ~word & zero
                for lane in range(lists.lanes):
                    element = word >> 10 * lane & 1023
                    position += 1 + (element >> 8)
                    value = (element & 255 ^ 128) - 128
                    place = divmod(position, mapping.input_pitch)
                    _add(mapping, sums, (value, place), (regions, (row, column)),
                         weight[..., channel], mapping.phases[phase])  # fmt: skip
    return sums


def _add(
    mapping: Any, sums: Any, element: Any, where: Any, weight: Any, phase: tuple[int, int]
) -> None:
    """All products of an element that have an output in the region."""
    value, place = element
    axes, (regions, pe) = (mapping.rows, mapping.columns), where
    for k in range(len(weight)):
        for r in range(phase[0], weight.shape[1], axes[0].stride):
            for s in range(phase[1], weight.shape[2], axes[1].stride):
                output = [0, 0]
                for axis, tap in ((0, r), (1, s)):
                    base = axes[axis].base(pe[axis])
                    base -= phase[axis] >= axes[axis].threshold(pe[axis])
                    at = place[axis] + base - tap // axes[axis].stride
                    output[axis] = regions[axis].start + at
                if output[0] in regions[0] and output[1] in regions[1]:
                    sums[output[0], output[1], k] += value * int(weight[k, r, s])


def test_sums_are_those_of_a_plain_walk() -> None:
    design, operands = failing(rate=0.03), operands_of(CONV)
    ((strip,),) = layer_passes(design, CONV, operands)
    weight = operands.weight.transpose(0, 2, 3, 1)
    sums = wrap(walked(design, strip, weight), design.accumulator_bits)
    assert operands.bias is not None
    scaling = operands.multiplier, operands.shift
    bias = operands.bias.astype(np.int64)
    right = requantize(sums, bias, scaling, CONV.relu, design.operand_bits)
    sound = replace(design, activation_memory=FaultyStream(rate=0.0))
    assert (right != layer_passes(failing(rate=SEEN), CONV, operands)[0][0].given).any()
    assert sound.activation_memory.exact
    assert strip.operands.written is not None
    widths = [len(mapped.given(pe)) for mapped in (strip.mapping.columns,) for pe in (0, 1)]
    assert sum(widths) == right.shape[1]
    written = ofmap_lists(design, strip.mapping, right)
    assert np.array_equal(strip.operands.written.values, written.values)
    assert np.array_equal(strip.operands.written.indices, written.indices)


def test_what_leaves_is_what_is_given_out() -> None:
    """Each value at its place, or where a wrong index says; none beyond the last place."""
    design, operands = failing(rate=0.05), operands_of(CONV)
    plan = plan_layer(design, CONV, operands)
    ((strip,),) = plan.passes
    left, mapping = strip.operands.ofmap, strip.mapping
    found = np.zeros_like(strip.given)
    for number in range(len(left)):
        pe, k = divmod(number, mapping.filters)
        rows = mapping.rows.given(pe // mapping.columns.givers)
        columns = mapping.columns.given(pe % mapping.columns.givers)
        position = -1
        for n in range(left.starts[number], left.starts[number + 1]):
            for value, index in zip(left.values[n], left.indices[n], strict=True):
                position += 1 + int(index)
                if value and position < len(rows) * len(columns):
                    row, column = divmod(position, len(columns))
                    found[rows[row], columns[column], k] = value
    assert np.array_equal(found, strip.given)
    assert np.array_equal(plan.ofmap[0], strip.given.transpose(2, 0, 1))


def test_protected_indices_keep_every_value_at_its_place() -> None:
    operands = operands_of(CONV)
    for protected, kept in (((8, 9), "indices"), (tuple(range(8)), "values")):
        ((strip,),) = layer_passes(failing(protected_bits=protected), CONV, operands)
        meant, read = strip.operands.ifmap, strip.operands.computed
        other = {"indices": "values", "values": "indices"}[kept]
        assert np.array_equal(getattr(read, kept), getattr(meant, kept))
        assert not np.array_equal(getattr(read, other), getattr(meant, other))


def test_indices_cost_more_than_values() -> None:
    """Of 10 bits 2 are the index's; what stands behind a wrong one is elsewhere."""
    layer = replace(CONV, channels=16, ifmap_height=16, ifmap_width=16, stride_height=1)
    operands, design = operands_of(layer), replace(SMALL, iaram_bytes=4000, oaram_bytes=4000)
    wrong: dict[str, int] = {}
    for name, protected in (("values", (8, 9)), ("indices", tuple(range(8)))):
        wrong[name] = 0
        for chip in range(4):
            memory = FaultyStream(rate=0.002, chip=chip, protected_bits=protected)
            ((strip,),) = layer_passes(replace(design, activation_memory=memory), layer, operands)
            meant, read = strip.operands.ifmap, strip.operands.computed
            moved = (read.positions != meant.positions) & (meant.values != 0)
            wrong[name] += int((moved | (read.values != meant.values)).sum())
    assert wrong["indices"] > 2 * wrong["values"] > 0


def test_rates_nest_and_chips_differ() -> None:
    operands = operands_of(CONV)

    def read(rate: float, chip: int = 3) -> Any:
        memory = FaultyStream(rate=rate, chip=chip, zero_to_one=1.0)
        design = replace(SMALL, activation_memory=memory)
        return layer_passes(design, CONV, operands)[0][0].operands.computed.indices

    low, high = read(0.02), read(0.2)
    assert ((low & ~high) == 0).all() and (low != high).any()  # cells that read 1 alone
    assert (read(0.02, chip=4) != low).any()


def test_the_supply_prices_both_memories() -> None:
    settings = ["activation_memory.kind=faulty", "activation_memory.voltage=0.85"]
    design = with_settings(SCNN_ISCA17, settings)
    priced = {one.name: one.relative_voltage for one in design.components if one.kind == "sram"}
    assert {name for name, volts in priced.items() if volts == 0.85} == {
        "iaram.words", "oaram.words"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sparsity": "weights"}, "sparsity must be both where cells fail, not weights"),
        (
            {"activation_memory": FaultyStream(rate=0.1, inner=SecdedStream(data_bits=10))},
            "activation_memory: inner must keep vectors without check bits, not secded: ",
        ),
        (
            {
                "activation_memory": FaultyStream(
                    rate=0.1, protected_bits=(8,), inner=BovedaStream(group=1)
                )
            },
            "activation_memory: protected_bits must be below the 8 bits of a lane, not 8",
        ),
        (
            {"activation_memory": FaultyStream(rate=0.1, protected_bits=(10,))},
            "activation_memory: protected_bits must be below the 10 bits of a lane, not 10",
        ),
        (
            {"iaram_bytes": 1 << 20},
            "activation_memory: the memories of all PEs must have at most 1048576 vectors to fail",
        ),
    ],
)
def test_what_cannot_fail_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=f"^{says}"):
        replace(failing(), **change)


def test_ofmaps_do_not_stay_and_nothing_is_searched() -> None:
    design, operands = failing(), operands_of(CONV)
    run = LayerRun(layer=CONV, operands=operands, keep_ofmap=True)
    with pytest.raises(InputError, match=r"^conv: activation_memory must be exact for an ofmap"):
        pass_words(design, [run, run])
    with pytest.raises(InputError, match=r"^conv: nothing is searched where cells fail"):
        best_choice(design, CONV, operands)
    layer = replace(CONV, channels=5, ifmap_height=4, ifmap_width=7)
    ofmap = plan_layer(design, CONV, operands).ofmap
    layer = replace(layer, ifmap_height=ofmap.shape[2], ifmap_width=ofmap.shape[3])
    following = replace(operands_of(layer), ifmap=ofmap.astype(np.int16))
    chained = chain_timing(design, [CONV, layer], [operands, following])
    assert not any(one.mapping.ifmap_kept for timing in chained for one in timing.passes)
