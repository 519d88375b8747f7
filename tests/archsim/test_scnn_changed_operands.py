"""Operands of the sparse core that fail: what is added to sound sums, and what the scan is given,
against all products one by one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from scnn_failing_layers import any_layer, assert_alike

from archsim.errors import InputError
from archsim.machines.scnn import failing as failing_passes
from archsim.machines.scnn.addresses import (
    _tables as tables_of,  # pyright: ignore[reportPrivateUsage]
)
from archsim.machines.scnn.addresses import activation_operand, decoded
from archsim.machines.scnn.changed_lists import sums_changed, sums_of_seen
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.layer import layer_passes, layer_timing
from archsim.memories.faulty.bank import FaultyBank
from archsim.memories.faulty.stream import FaultyStream
from archsim.memories.protected.bank import ParityBank
from archsim.memory.around import AroundBank
from workloads.layers import Conv2d
from workloads.operands import synthetic

KINDS: tuple[dict[str, Any], ...] = (
    {"rate": 0.002},
    {"rate": 0.05, "zero_to_one": 0.5, "one_to_zero": 0.2},
    {"rate": 0.1, "one_to_zero": 1.0},
    {"rate": 0.3, "stuck": 0.5, "column_shape": 0.5},
    {"rate": 1.0, "protected_bits": (0, 5)},
    {"rate": 0.5, "protected_bits": (8, 9)},
)


@st.composite
def any_design(draw: st.DrawFn) -> Scnn:
    """Of some lanes, grids and FIFOs; activations, weights or both fail, also behind parity."""
    one, kinds = st.sampled_from, st.sampled_from(KINDS)
    rows, columns = draw(one([(1, 1), (2, 2), (3, 2), (1, 4)]))
    lanes = draw(one([(1, 3), (2, 2), (4, 1)]))
    which, chip = draw(one(["activation", "weight", "both"])), draw(one([1, 2]))
    weight: Any = FaultyBank(chip=chip, **draw(kinds))
    if draw(one([False, False, True])) and not weight.protected_bits:
        weight = ParityBank(data_bits=10, inner=weight)
    memories = {
        "activation_memory": FaultyStream(chip=chip, **draw(kinds)), "weight_memory": weight,
    }  # fmt: skip
    if which != "both":
        memories = {f"{which}_memory": memories[f"{which}_memory"]}
    return Scnn(
        grid_rows=rows, grid_columns=columns, weight_lanes=lanes[0], ifmap_lanes=lanes[1], banks=8,
        operand_bits=8, index_bits=2, weight_fifo_vectors=draw(one([13, 40])),
        filter_group=draw(one([1, 3, 4])), iaram_bytes=4000, oaram_bytes=4000, **memories,
    )  # fmt: skip


def one_by_one(strip: Any) -> tuple[Any, Any, Any]:
    """The sums [P, Q, K], the products of each PE, and weights that are not zero of each list, of
    what PEs read."""
    mapping, lists, seen = strip.mapping, strip.operands.computed, strip.operands.seen
    rows, columns = mapping.rows, mapping.columns
    sums = np.zeros((rows.outputs, columns.outputs, mapping.filters), np.int64)
    products = np.zeros(mapping.used_pes, np.int64)
    values = np.zeros((mapping.used_pes, mapping.lists), np.int64)
    for group in range(mapping.groups):
        read, starts = seen.read(group), seen.starts(group)
        for pe in range(mapping.used_pes):
            row, column = mapping.place(pe)
            regions = rows.region(row), columns.region(column)
            for number in range(mapping.lists):
                phase = mapping.phases[number % len(mapping.phases)]
                own = pe * mapping.lists + number
                vectors = slice(lists.starts[own], lists.starts[own + 1])
                y, x = decoded(mapping, lists.positions[vectors].reshape(-1))
                y = y + rows.first_output(row, phase[0])
                x = x + columns.first_output(column, phase[1])
                activations = lists.values[vectors].reshape(-1)
                at = slice(starts[number], starts[number + 1])
                weights = [field[pe, at].reshape(-1) for field in read]
                values[pe, number] += np.count_nonzero(weights[0])
                for weight, k, r, s in zip(*weights, strict=True):
                    p, q = y - r, x - s
                    inside = (p >= 0) & (p < len(regions[0])) & (q >= 0) & (q < len(regions[1]))
                    inside &= (activations != 0) & (weight != 0)
                    filter_ = group * mapping.group_size + k
                    place = p[inside] + regions[0].start, q[inside] + regions[1].start
                    if inside.any():
                        np.add.at(sums[:, :, filter_], place, activations[inside] * weight)
                    products[pe] += inside.sum()
    return sums, products, values


def scanned(strip: Any, group: int) -> tuple[Any, Any]:
    """How many lanes of each vector of each PE the scan takes, and the addresses of all of them."""
    mapping, seen = strip.mapping, strip.operands.seen
    rows, columns, read = mapping.rows, mapping.columns, seen.read(group)
    taken = (read.values != 0) & (read.rows <= rows.last_tap) & (read.columns <= columns.last_tap)
    away = (read.rows * columns.addressed_extent + read.columns) * mapping.filter_pitch
    return taken.sum(axis=2).reshape(-1), ((read.filters - away) * 3)[taken]


@settings(max_examples=80, deadline=None)
@given(layer=any_layer(), design=any_design(), density=st.sampled_from([0.1, 0.5, 1.0]))
def test_changes_on_sound_sums_are_all_products(
    layer: Conv2d, design: Scnn, density: float
) -> None:
    operands = synthetic(layer, bits=8, density=density, seed=2)
    try:
        passes = layer_passes(design, layer, operands)
    except InputError:
        reject()
    for strip in (strip for strips in passes for strip in strips):
        mapping, meant = strip.mapping, strip.operands
        sums = failing_passes.sums_of(mapping, meant.computed, meant.weight)
        if meant.read is not None:
            whole = failing_passes.sums_of(mapping, meant.ifmap, meant.weight)
            both = meant.ifmap, meant.read
            assert np.array_equal(sums_changed(mapping, both, meant.weight, whole), sums)
        if meant.seen is None:
            continue
        found, met = sums_of_seen(mapping, meant.computed, meant.seen, sums)
        right = one_by_one(strip)
        for own, other in zip((found, met.products, met.values), right, strict=True):
            assert np.array_equal(own, other)
        for group in range(mapping.groups):
            counts, addresses = meant.seen.for_scan(group, 10**5, 3)[1]
            held, taken = scanned(strip, group)
            assert np.array_equal(counts, held)
            kept = np.arange(addresses.shape[1]) < counts[:, None]
            assert np.array_equal(addresses[kept], taken)
            assert (addresses[~kept] == 3 * 10**5).all()


@settings(max_examples=60, deadline=None)
@given(layer=any_layer(), design=any_design(), density=st.sampled_from([0.1, 0.5, 1.0]))
def test_sums_that_are_not_known_are_multiplied_out(
    layer: Conv2d, design: Scnn, density: float
) -> None:
    """As of pooled layers and folded ones; elements by bits, where masks are not kept."""
    operands = synthetic(layer, bits=8, density=density, seed=2)
    try:
        found = layer_timing(design, layer, operands)
    except InputError:
        reject()
    with pytest.MonkeyPatch.context() as patch:
        whole: Any = failing_passes.seen_strip

        def without(by_layer: Any, strip: Any, *rest: Any, relu: bool) -> Any:
            *before, sound = rest
            return whole(by_layer, strip, *before, sound._replace(sums=None), relu=relu)

        patch.setattr("archsim.machines.scnn.layer.seen_strip", without)
        patch.setattr("archsim.memories.faulty.stream.MOST_KEPT_BITS", 0)
        patch.setattr(FaultyBank, "masks", AroundBank.masks)
        assert_alike(layer_timing(design, layer, operands), found)


def test_sums_wrap_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where what is added crosses the ends of an accumulator's range."""
    layer = Conv2d(
        name="one", channels=20, filters=3, ifmap_height=4, ifmap_width=4, kernel_height=3,
        kernel_width=3,
    )  # fmt: skip
    design = Scnn(
        grid_rows=2, grid_columns=2, operand_bits=8, accumulator_bits=14,
        activation_memory=FaultyStream(rate=0.05), weight_memory=FaultyBank(rate=0.05),
    )  # fmt: skip
    operands = replace(synthetic(layer, bits=8, density=1.0, seed=2), multiplier=1, shift=0)
    found = layer_timing(design, layer, operands)
    monkeypatch.setattr(
        failing_passes, "sums_changed",
        lambda mapping, lists, weight, _: failing_passes.sums_of(mapping, lists[1], weight),
    )  # fmt: skip
    assert_alike(layer_timing(design, layer, operands), found)


@settings(max_examples=60, deadline=None)
@given(layer=any_layer(), design=any_design(), density=st.sampled_from([0.5, 1.0]))
def test_elements_that_may_be_anywhere_have_places(
    layer: Conv2d, design: Scnn, density: float
) -> None:
    """Those from which a tap could lead to an output; all others have none."""
    operands = synthetic(layer, bits=8, density=density, seed=2)
    try:
        passes = layer_passes(design, layer, operands)
    except InputError:
        reject()
    for strip in (strip for strips in passes for strip in strips):
        mapping, lists = strip.mapping, strip.operands.computed
        rows, columns = mapping.rows, mapping.columns
        found, tables = activation_operand(mapping, lists), tables_of(mapping)[1]
        to = 0
        for block in range(mapping.lists):
            phase = mapping.phases[block % len(mapping.phases)]
            for pe in range(mapping.used_pes):
                row, column = mapping.place(pe)
                number, own = block * mapping.used_pes + pe, pe * mapping.lists + block
                vectors = slice(lists.starts[own], lists.starts[own + 1])
                y, x = decoded(mapping, lists.positions[vectors])
                y = y + rows.first_address(row, phase[0])
                x = x + columns.first_address(column, phase[1])
                near = (y >= rows.last_tap) & (y < len(rows.addressed(row)))
                near &= (x >= columns.last_tap) & (x < len(columns.addressed(column)))
                near &= lists.values[vectors] != 0
                place = tables[pe] * rows.addressed_extent * columns.addressed_extent
                place = place + y * columns.addressed_extent + x
                at = slice(to, to + len(near))
                to += len(near)
                assert (found.starts[number], found.starts[number + 1]) == (at.start, at.stop)
                held = (lists.positions[vectors] >= 0).sum(axis=1)
                assert np.array_equal(found.held[at], held)
                assert np.array_equal(found.valued[at], lists.values[vectors] != 0)
                assert np.array_equal(found.near[at], near)
                assert np.array_equal(found.place[at], np.where(near, place, 0))
