"""What the units did: intervals against the plan, the port words and the result; causes in bins."""

import tracemalloc
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.causes import CAUSES
from archsim.errors import InputError
from archsim.layer.problem import Tiling
from archsim.machines.systolic.design import CLOUD_128, DATAFLOWS, EDGE_16, Systolic
from archsim.memory import OffChip, Plain
from archsim.simulate import simulate
from archsim.tiled import activity as activity_module
from archsim.tiled import commands as cmd
from archsim.tiled import plan as pn
from archsim.tiled.activity import (
    ARRAY,
    ARRAY_WAITS,
    LAYERS,
    LOADERS,
    OFMAP_PORT,
    OUTPUT_STAGE,
    UNITS,
    WRITES,
    Activity,
    Interval,
    layer_activity,
)
from archsim.tiled.commands import commands_of
from archsim.tiled.machine_vector import machine_record
from archsim.tiled.timeline import _as_late_as_possible, binned, timeline
from archsim.tiled.timing import plan_tiling, time_layer
from archsim.tiled.trace import Answer, answer
from rtl.stepped.output_rows import completed
from workloads.builtin import builtin
from workloads.layers import Conv2d, MatMul, Network, VectorWork
from workloads.operands import synthetic

SMALL = Plain(capacity_bytes=1024)

designs = st.builds(
    Systolic,
    rows=st.integers(1, 9),
    columns=st.integers(1, 9),
    dataflow=st.sampled_from(DATAFLOWS),
    ifmap_memory=st.just(SMALL),
    weight_memory=st.just(SMALL),
    accumulator_memory=st.just(SMALL),
    off_chip=st.builds(
        OffChip,
        bytes_per_cycle=st.sampled_from([0.0, 0.7, 5.3, 40.0]),
        latency_cycles=st.sampled_from([0, 3, 120]),
        burst_bytes=st.sampled_from([1, 64]),
    ),
)
products = st.builds(
    MatMul,
    name=st.just("product"),
    m=st.integers(1, 40),
    n=st.integers(1, 40),
    k=st.integers(1, 40),
    bias=st.booleans(),
)
convolutions = st.builds(
    Conv2d,
    name=st.just("convolution"),
    channels=st.sampled_from([2, 6, 16]),
    filters=st.sampled_from([2, 8, 20]),
    ifmap_height=st.integers(3, 9),
    ifmap_width=st.integers(3, 9),
    kernel_height=st.integers(1, 3),
    kernel_width=st.integers(1, 3),
    dilation_width=st.just(1),
    pad_left=st.integers(0, 1),
    groups=st.sampled_from([1, 2]),
    batch=st.integers(1, 2),
    bias=st.booleans(),
)
layers = products | convolutions


def tile_answer(design: Systolic, layer: Conv2d | MatMul) -> Answer:
    return answer(design, layer, plan_tiling(design, layer, None), synthetic(layer))


def by_unit(activity: Activity) -> dict[str, list[Interval]]:
    """The intervals of each unit, in the order in which they come."""
    found: dict[str, list[Interval]] = defaultdict(list)
    for interval in activity:
        found[interval.unit].append(interval)
    return found


def network_of(*chosen: Conv2d | MatMul | VectorWork) -> Network:
    return Network(name="mine", layers=chosen, source="here")


@settings(max_examples=150)
@given(designs, layers, st.sampled_from([0, 1000]))
def test_intervals_keep_the_layers_figures(
    design: Systolic, layer: Conv2d | MatMul, start: int
) -> None:
    result = time_layer(design, layer)
    activity = layer_activity(design, layer, start_cycle=start)
    assert activity.cycles == result.cycles
    units = by_unit(activity)
    assert set(units) <= set(UNITS) - {LAYERS}
    for intervals in units.values():
        assert all(one.cycles > 0 for one in intervals)
        assert all(a.end_cycle <= b.start_cycle for a, b in pairwise(intervals))
        assert intervals[0].start_cycle >= start
        assert intervals[-1].end_cycle <= start + result.cycles
    assert units[ARRAY_WAITS][-1].end_cycle == start + result.cycles
    last = WRITES if design.off_chip.bytes_per_cycle else OFMAP_PORT
    assert units[last][-1].end_cycle == start + result.cycles
    streams = units[ARRAY]
    assert sum(s.cycles - s.bubble_cycles for s in streams) == result.where["computing"]
    assert [s.tile.number for s in streams if s.tile] == list(range(result.tiles))
    assert sum(s.tile.macs for s in streams if s.tile) == layer.macs
    ports = dict(zip((*LOADERS, OFMAP_PORT), ("ifmap", "weight", "bias", "ofmap"), strict=True))
    for unit, port in ports.items():
        assert sum(one.bytes_moved for one in units[unit]) == result.bytes_moved[port]


@settings(max_examples=100)
@given(designs, layers)
def test_the_array_is_accounted_for_in_every_cycle(
    design: Systolic, layer: Conv2d | MatMul
) -> None:
    units = by_unit(layer_activity(design, layer))
    both = sorted(units[ARRAY] + units[ARRAY_WAITS], key=lambda one: one.start_cycle)
    result = time_layer(design, layer)
    assert both[0].start_cycle == 0
    assert all(a.end_cycle == b.start_cycle for a, b in pairwise(both))
    assert both[-1].end_cycle == result.cycles
    assert both[-1].what == "draining"


@settings(max_examples=80)
@given(designs, layers)
def test_waits_have_the_causes_of_the_result_where_no_memory_slows(
    design: Systolic, layer: Conv2d | MatMul
) -> None:
    free = replace(design, off_chip=OffChip())
    where = time_layer(free, layer).where
    spent: dict[str, int] = dict.fromkeys(CAUSES, 0)
    for interval in layer_activity(free, layer):
        if interval.unit == ARRAY_WAITS:
            spent[interval.what] += interval.cycles
        elif interval.unit == ARRAY:
            spent["computing"] += interval.cycles - interval.bubble_cycles
            spent["filling"] += interval.bubble_cycles
    assert spent == dict(where)


@settings(max_examples=60)
@given(designs, layers)
def test_loads_and_drains_lie_where_their_words_cross(
    design: Systolic, layer: Conv2d | MatMul
) -> None:
    """Against the cycles of every word, which the trace computes for each by itself."""
    found = tile_answer(design, layer)
    units = by_unit(layer_activity(design, layer))
    tiles = found.tiles
    given = [
        tiles[:, cmd.IFMAP_WORDS] * tiles[:, cmd.LOAD_IFMAP],
        tiles[:, cmd.WEIGHT_WORDS] * tiles[:, cmd.LOAD_WEIGHT],
        tiles[:, cmd.BIAS_WORDS],
        tiles[:, cmd.OUTPUT_WORDS],
    ]
    for at, (unit, words) in enumerate(zip((*LOADERS, OFMAP_PORT), given, strict=True)):
        port = ("ifmap", "weight", "bias", "ofmap")[at]
        cycles = found.transfers[port].cycle
        counts = words[words > 0]
        ends = np.cumsum(counts)
        spans = [(cycles[e - n], cycles[e - 1] + 1) for e, n in zip(ends, counts, strict=True)]
        moving = [one for one in units[unit] if one.what in ("load", "leave")]
        assert [(one.start_cycle, one.end_cycle) for one in moving] == spans
        numbers = [one.tile.number for one in moving if one.tile]
        assert numbers == np.flatnonzero(words).tolist()


@settings(max_examples=60)
@given(designs, layers)
def test_requests_last_from_a_free_half_to_the_first_word(
    design: Systolic, layer: Conv2d | MatMul
) -> None:
    activity = layer_activity(design, layer)
    units = by_unit(activity)
    for at, unit in enumerate(LOADERS):
        ready = activity.plan[:, pn.IFMAP_READY + 2 * at]
        spans: dict[int, list[int]] = defaultdict(list)
        for one in units[unit]:
            assert one.tile
            spans[one.tile.number] += [one.start_cycle, one.end_cycle]
        loads = np.flatnonzero(ready >= 0).tolist()
        assert {number: span[0] for number, span in spans.items()} == {
            number: ready[number] for number in loads
        }
        assert all(span[1] == span[2] for span in spans.values() if len(span) == 4)


@settings(max_examples=60)
@given(designs, layers)
def test_the_output_stage_reads_as_the_contract_says(
    design: Systolic, layer: Conv2d | MatMul
) -> None:
    """A read is a cycle behind the one before; one that completes word n is behind the crossing of
    word n − 8."""
    found = tile_answer(design, layer)
    crossed = found.transfers["ofmap"].cycle.tolist()
    depth, word = design.output_queue_depth, 0
    for drain, (at, vectors) in zip(
        by_unit(layer_activity(design, layer))[OUTPUT_STAGE],
        completed(machine_record(design.machine), commands_of(found.tiles)),
        strict=True,
    ):
        read, ended = drain.start_cycle - 1, 0
        for number, (completes,) in enumerate(vectors):
            read += 1
            if completes:
                read = max(read, crossed[word - depth] + 1 if word >= depth else 0)
                assert crossed[word] >= read + design.output_latency_cycles
                word += 1
            ended = read + 1 if number < found.tiles[at, cmd.OUTPUT_ROWS] else ended
        assert drain.end_cycle == ended
    assert word == len(crossed)


def test_tiles_name_their_part_of_the_layer() -> None:
    layer = MatMul(name="product", m=6, n=5, k=10)
    tiling = Tiling(pixel_rows=1, pixel_columns=4, filters=3, channels=10)
    activity = layer_activity(EDGE_16, layer, tiling)
    tiles = [one.tile for one in activity if one.unit == ARRAY and one.tile]
    assert [(t.pixel_columns, t.filters) for t in tiles] == [
        (range(4), range(3)),
        (range(4), range(3, 5)),
        (range(4, 6), range(3)),
        (range(4, 6), range(3, 5)),
    ]
    assert {t.channels for t in tiles} == {range(10)}
    assert [t.macs for t in tiles] == [120, 80, 60, 40]
    image = Conv2d(
        name="c", channels=4, filters=6, ifmap_height=5, ifmap_width=4,
        kernel_height=2, kernel_width=1, groups=2, batch=2,
    )  # fmt: skip
    tiling = Tiling(pixel_rows=3, pixel_columns=4, filters=3, channels=2)
    tiles = [one.tile for one in layer_activity(EDGE_16, image, tiling) if one.unit == ARRAY]
    assert [(t.groups, t.images, t.pixel_rows, t.filters) for t in tiles if t] == [
        (range(group, group + 1), range(number, number + 1), rows, range(3))
        for group in (0, 1)
        for number in (0, 1)
        for rows in (range(3), range(3, 4))
    ]
    both = replace(tiling, images=2)
    tiles = [one.tile for one in layer_activity(EDGE_16, image, both) if one.unit == ARRAY]
    assert [(t.groups, t.images, t.pixel_rows) for t in tiles if t] == [
        (range(group, group + 1), range(2), rows)
        for group in (0, 1)
        for rows in (range(3), range(3, 4))
    ]
    three = replace(image, channels=6, filters=9, groups=3)
    tiling = Tiling(pixel_rows=4, pixel_columns=4, filters=6, channels=4, groups=2)
    tiles = [one.tile for one in layer_activity(EDGE_16, three, tiling) if one.unit == ARRAY]
    assert [(t.groups, t.images, t.filters, t.channels) for t in tiles if t] == [
        (groups, range(number, number + 1), range(3), range(2))
        for groups in (range(2), range(2, 3))
        for number in (0, 1)
    ]
    assert sum(t.macs for t in tiles if t) == three.macs


# Whole networks


def test_a_network_is_its_layers_one_behind_the_other() -> None:
    network = builtin("resnet18")
    result = simulate(CLOUD_128, network)
    intervals = list(timeline(CLOUD_128, network))
    heads = [one for one in intervals if one.unit == LAYERS]
    assert [(one.what, one.cycles) for one in heads] == [
        (layer.name, layer.cycles) for layer in result.layers if layer.cycles
    ]
    assert heads[0].start_cycle == 0
    assert all(a.end_cycle == b.start_cycle for a, b in pairwise(heads))
    assert heads[-1].end_cycle == result.cycles
    within = {one.what: one for one in heads}
    for interval in intervals:
        layer = within[interval.layer]
        assert layer.start_cycle <= interval.start_cycle <= interval.end_cycle <= layer.end_cycle


def test_layers_are_planned_when_it_is_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[str] = []
    honest = activity_module.layer_activity

    def counted(*words: object) -> Activity:
        planned.append(words[1].name)  # type: ignore[attr-defined]
        return honest(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(activity_module, "layer_activity", counted)
    intervals = timeline(EDGE_16, builtin("resnet50"))
    assert planned == []
    assert next(intervals).what == planned[0]
    assert next(intervals).unit == LOADERS[0]
    assert len(planned) == 1


def test_memory_does_not_grow_with_the_layers() -> None:
    def peak(copies: int) -> int:
        layer = MatMul(name="", m=3000, n=64, k=64)
        network = network_of(*(replace(layer, name=f"layer {n}") for n in range(copies)))
        tilings = {
            one.name: Tiling(pixel_rows=1, pixel_columns=16, filters=16, channels=64)
            for one in network.matrix_layers
        }
        tracemalloc.start()
        try:
            assert sum(one.unit == ARRAY for one in timeline(EDGE_16, network, tilings)) > copies
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1)
    assert peak(12) < 1.5 * peak(2)


def test_tilings_must_be_of_the_networks_layers() -> None:
    tiling = Tiling(pixel_rows=1, pixel_columns=1, filters=1, channels=1)
    with pytest.raises(InputError) as refused:
        list(timeline(EDGE_16, builtin("alexnet"), {"conv9": tiling}))
    assert str(refused.value).startswith(
        "mappings: alexnet has no matrix layer 'conv9'; did you mean conv"
    )


# Bins


@settings(max_examples=80)
@given(designs, st.lists(layers, min_size=1, max_size=3), st.integers(1, 70))
def test_bins_sum_to_the_result(design: Systolic, chosen: list[Conv2d | MatMul], bins: int) -> None:
    named = [replace(layer, name=f"layer {n}") for n, layer in enumerate(chosen)]
    network = network_of(*named)
    result = simulate(design, network)
    over_time = binned(design, network, bins)
    assert over_time.shares.shape == (bins, len(CAUSES))
    assert over_time.edges_cycles[0] == 0
    assert over_time.edges_cycles[-1] == result.cycles
    assert over_time.shares.min() > -1e-9
    np.testing.assert_allclose(over_time.shares.sum(axis=1), 1)
    where = [result.where[cause] for cause in CAUSES]
    np.testing.assert_allclose(over_time.cycles.sum(axis=0), where, atol=1e-6)


@settings(max_examples=60)
@given(designs, layers)
def test_bins_of_a_cycle_show_streams_and_waits(design: Systolic, layer: Conv2d | MatMul) -> None:
    activity = layer_activity(design, layer)
    over_time = binned(design, network_of(layer), activity.cycles)
    computing = over_time.shares[:, CAUSES.index("computing")]
    for interval in activity:
        inside = slice(interval.start_cycle, interval.end_cycle)
        if interval.unit == ARRAY:
            share = 1 - interval.bubble_cycles / interval.cycles
            np.testing.assert_allclose(computing[inside], share, atol=1e-6)
        elif interval.unit == ARRAY_WAITS:
            np.testing.assert_allclose(computing[inside], 0, atol=1e-6)


def _memory_by_tile(activity: Activity) -> list[int]:
    """Cycle by cycle: the idle cycles that nothing but the memory explains, before each end."""

    def idle(plan: np.ndarray) -> list[int]:
        waits = plan[:, pn.WAIT_CONTROL : pn.BUBBLE + 1].sum(axis=1).tolist()
        return [*waits, int(plan[-1, pn.WRITTEN]) - int(plan[-1, pn.STREAM_END])]

    rooms, dues = idle(activity.plan), idle(activity.plan_without_memory())
    for place, due in enumerate(dues):
        for _ in range(due):
            at = place
            while rooms[at] == 0:
                at -= 1
                assert at >= 0, "a memory cannot hurry the array"
            rooms[at] -= 1
    return rooms


@settings(max_examples=80)
@given(designs, layers)
def test_memory_takes_what_nothing_else_explains(design: Systolic, layer: Conv2d | MatMul) -> None:
    """Until a tile's end: its own idle cycles are set first, then those of later tiles behind it.

    The loop sets them tile by tile, `binned` all at once; both leave the same to the memory.
    """
    activity = layer_activity(design, layer)
    over_time = binned(design, network_of(layer), activity.cycles)
    memory = np.append(0, np.cumsum(over_time.cycles[:, CAUSES.index("memory")]))
    ends = [*activity.plan[:, pn.STREAM_END].tolist(), activity.cycles]
    np.testing.assert_allclose(memory[ends], np.cumsum(_memory_by_tile(activity)), atol=1e-6)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_as_late_as_possible(pairs: list[tuple[int, int]]) -> None:
    """Against setting them one by one; the room is widened until all that is due has some."""
    dues, rooms = [due for due, _ in pairs], [room for _, room in pairs]
    for place in range(len(pairs)):
        rooms[place] += max(0, sum(dues[: place + 1]) - sum(rooms[: place + 1]))
    left = rooms.copy()
    for place in reversed(range(len(pairs))):
        for _ in range(dues[place]):
            left[max(at for at in range(place + 1) if left[at])] -= 1
    placed = _as_late_as_possible(np.array(dues), np.array(rooms))
    assert placed.tolist() == [room - rest for room, rest in zip(rooms, left, strict=True)]


def test_bins_refuse() -> None:
    with pytest.raises(InputError, match=r"^bins must be positive, not 0$"):
        binned(EDGE_16, builtin("alexnet"), 0)
    pool = VectorWork(
        name="pool", operator="MaxPool", input_elements=4, output_elements=1, operations=3
    )
    with pytest.raises(InputError, match=r"^mine has no layer that the array computes$"):
        binned(EDGE_16, network_of(pool))
