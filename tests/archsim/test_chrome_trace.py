"""The Chrome trace: valid JSON of the published format, exact cycles, nothing overlapping."""

import io
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.chrome_trace import RATES, UTILISATION, write_chrome_trace
from archsim.machines.systolic.design import EDGE_16, TPU_V1, Systolic
from archsim.simulate import simulate
from archsim.tiled.activity import ARRAY, LAYERS, UNITS, Interval
from archsim.tiled.timeline import timeline
from archsim.version import VERSION
from workloads.builtin import builtin
from workloads.layers import MatMul, Network

PRODUCT = MatMul(name="größe", m=70, n=40, k=200, bias=True)
NETWORK = Network(name="mine", layers=(PRODUCT, replace(PRODUCT, name="second")), source="here")


def trace(design: Systolic, network: Network = NETWORK) -> tuple[dict[str, Any], int]:
    """The parsed file, and the number of events said to be in it."""
    file = io.StringIO()
    count = write_chrome_trace(timeline(design, network), file, design=design, network=network.name)
    return json.loads(file.getvalue()), count


def nanoseconds(microseconds: float) -> int:
    """As Perfetto's JSON importer reads a time: times 1000, cut off to a whole number."""
    return int(microseconds * 1000)


def test_the_file_has_the_published_form() -> None:
    read, count = trace(EDGE_16)
    assert read["displayTimeUnit"] == "ns"
    assert read["otherData"]["archsim"] == VERSION
    assert read["otherData"]["clock_hz"] == EDGE_16.clock_hz
    assert read["otherData"]["design"]["rows"] == 16
    events = read["traceEvents"]
    assert len(events) == count
    for event in events:
        assert event["ph"] in "MXC"
        assert (event["pid"], isinstance(event["name"], str)) == (1, True)
        assert isinstance(event["args"], dict)
        if event["ph"] != "M":
            assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] > 0
            assert event["cat"] == UNITS[event["tid"] - 1]
        if event["ph"] == "C":
            assert all(isinstance(value, int | float) for value in event["args"].values())


def test_threads_are_named_and_sorted() -> None:
    events = trace(EDGE_16)[0]["traceEvents"]
    named = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    order = {e["tid"]: e["args"]["sort_index"] for e in events if e["name"] == "thread_sort_index"}
    assert [named[tid] for tid in sorted(named, key=order.__getitem__)] == list(UNITS)
    (process,) = (e for e in events if e["name"] == "process_name")
    assert process["args"] == {"name": "mine on edge-16"}


def test_events_are_the_intervals() -> None:
    events = [event for event in trace(EDGE_16)[0]["traceEvents"] if event["ph"] == "X"]
    intervals = list(timeline(EDGE_16, NETWORK))
    for event, one in zip(events, intervals, strict=True):
        assert event["cat"] == one.unit
        assert event["name"] == (one.what if one.tile is None else f"{one.what} {one.tile.number}")
        assert (event["args"]["cycle"], event["args"]["cycles"]) == (one.start_cycle, one.cycles)
        assert event["args"].get("bytes", 0) == one.bytes_moved
        assert event["args"].get("layer", one.layer) == one.layer
        assert event["ts"] == pytest.approx(one.start_cycle * 1e6 / EDGE_16.clock_hz, abs=1e-3)
        assert event["dur"] == pytest.approx(one.cycles * 1e6 / EDGE_16.clock_hz, abs=1e-3)
    heads = [event["name"] for event in events if event["cat"] == LAYERS]
    assert heads == ["größe", "second"]
    product = Network(name="one", layers=(MatMul(name="product", m=3, n=4, k=1),), source="here")
    (stream,) = (e for e in trace(EDGE_16, product)[0]["traceEvents"] if e.get("cat") == ARRAY)
    ranges = ("groups", "images", "pixel_rows", "pixel_columns", "filters", "channels")
    shown = ["0 to 0", "0 to 0", "0 to 0", "0 to 2", "0 to 3", "0 to 0"]
    assert [stream["args"][name] for name in ranges] == shown
    macs = [event["args"]["macs"] for event in events if event["cat"] == ARRAY]
    assert sum(macs) == 2 * PRODUCT.macs


@pytest.mark.parametrize("clock_hz", [1e6, 333e6, 700e6, 1e9, 1.7e9])
def test_events_of_a_unit_touch_but_never_overlap(clock_hz: float) -> None:
    """Viewers drop what overlaps, and keep whole nanoseconds: a cycle may be a fraction of one."""
    read, _ = trace(replace(TPU_V1, clock_hz=clock_hz), builtin("alexnet"))
    units = defaultdict(list)
    for event in read["traceEvents"]:
        if event["ph"] == "X":
            start = nanoseconds(event["ts"])
            units[event["tid"]].append((start, start + nanoseconds(event["dur"]), event["args"]))
    for spans in units.values():
        for (_, end, before), (start, _, after) in pairwise(spans):
            assert end <= start
            if before["cycle"] + before["cycles"] == after["cycle"]:
                assert end == start


@given(st.integers(0, 10**12))
def test_every_nanosecond_survives_its_way(time: int) -> None:
    from archsim import chrome_trace

    assert nanoseconds(chrome_trace._microseconds(time)) == time
    assert chrome_trace._microseconds(time) == pytest.approx(time / 1000)


def test_counters_show_the_means_of_the_intervals() -> None:
    events = trace(EDGE_16)[0]["traceEvents"]
    shown: dict[str, list[float]] = defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            shown[event["name"]] += event["args"].values()
    assert set(shown) == {UTILISATION, *RATES.values()}
    result = simulate(EDGE_16, NETWORK)
    intervals = list(timeline(EDGE_16, NETWORK))
    streams = [one for one in intervals if one.unit == ARRAY]
    assert all(value == 0 for values in shown.values() for value in values[1::2])
    macs = [
        percent / 100 * one.cycles * EDGE_16.macs_per_cycle
        for percent, one in zip(shown[UTILISATION][::2], streams, strict=True)
    ]
    assert sum(macs) == pytest.approx(result.macs, rel=1e-4)
    for unit, name in RATES.items():
        moved = [one for one in intervals if one.unit == unit and one.bytes_moved]
        total = sum(v * one.cycles for v, one in zip(shown[name][::2], moved, strict=True))
        assert total == pytest.approx(result.bytes_moved[name.split()[0]], rel=1e-3)


def test_events_are_written_as_they_come() -> None:
    file = io.StringIO()
    sizes: list[int] = []

    def watched() -> Iterator[Interval]:
        for interval in timeline(EDGE_16, NETWORK):
            sizes.append(len(file.getvalue()))
            yield interval

    write_chrome_trace(watched(), file, design=EDGE_16, network="mine")
    assert all(a < b for a, b in pairwise(sizes))
