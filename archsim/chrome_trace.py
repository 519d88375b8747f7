"""A timeline as a file that Perfetto (ui.perfetto.dev) and chrome://tracing open.

The format is the "Trace Event Format" in its JSON object form.  The mapping: the run is a process,
a unit a thread of it, an interval a complete event ("X"); three kinds of counters ("C") show the
array's utilisation and the bytes per cycle of each port.  `ts` and `dur` are microseconds at the
design's clock, so a cycle is 1 / clock; `args` give the exact cycles.

Viewers keep whole nanoseconds: a boundary between two intervals is rounded once, so that what
touches in cycles touches in time, and no event of a unit overlaps the next.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

from archsim.machine.design import Design
from archsim.machine.interval import ARRAY, LAYERS, LOADERS, OFMAP_PORT, Interval, Tile
from archsim.machine.registry import design_name, design_record
from archsim.version import VERSION

PROCESS = 1
UTILISATION = "array utilisation"
RATES = {unit: f"{unit.split()[0]} port" for unit in (*LOADERS, OFMAP_PORT)}
"""The counters of the ports, by the unit whose intervals carry their bytes."""

Event = dict[str, Any]


def write_chrome_trace(
    intervals: Iterable[Interval],
    file: TextIO,
    *,
    design: Design,
    network: str,
) -> int:
    """Write intervals as they come, one event a line; returns how many events were written.

    `network` names the run beside the design, whose machine says which units there are.
    """
    units = [track.unit for track in design.machine_model().tracks]
    header = {
        "displayTimeUnit": "ns",
        "otherData": {
            "archsim": VERSION,
            "design": design_record(design),
            "network": network,
            "clock_hz": design.clock_hz,
        },
    }
    file.write(f'{_json(header)[:-1]},"traceEvents":[\n')
    count = 0
    for event in _events(intervals, design, network, units):
        file.write(",\n" if count else "")
        file.write(_json(event))
        count += 1
    file.write("\n]}\n")
    return count


def _json(value: Any) -> str:
    """Compact, and text as it is: not every viewer knows escaped characters."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _events(
    intervals: Iterable[Interval], design: Design, network: str, units: Sequence[str]
) -> Iterator[Event]:
    yield from _names(f"{network} on {design_name(design)}", units)
    threads = {unit: thread for thread, unit in enumerate(units, 1)}
    for interval in intervals:
        yield _complete(interval, design, threads[interval.unit])
        if _of_tile(interval) or interval.bytes_moved:
            yield from _counters(interval, design)


def _names(process: str, units: Sequence[str]) -> Iterator[Event]:
    """The metadata that name the process and its threads, and put the threads in order."""
    yield {"ph": "M", "pid": PROCESS, "name": "process_name", "args": {"name": process}}
    for thread, unit in enumerate(units, 1):
        place = {"ph": "M", "pid": PROCESS, "tid": thread}
        yield place | {"name": "thread_name", "args": {"name": unit}}
        yield place | {"name": "thread_sort_index", "args": {"sort_index": thread}}


def _nanoseconds(cycle: int, design: Design) -> int:
    return round(cycle * 1e9 / design.clock_hz)


def _microseconds(nanoseconds: int) -> float:
    """As a viewer reads it, times 1000 and cut off, it is `nanoseconds` again."""
    value = nanoseconds / 1000
    return value if int(value * 1000) == nanoseconds else math.nextafter(value, math.inf)


def _complete(interval: Interval, design: Design, thread: int) -> Event:
    start = _nanoseconds(interval.start_cycle, design)
    end = _nanoseconds(interval.end_cycle, design)
    what, tile = interval.what, interval.tile
    return {
        "ph": "X",
        "pid": PROCESS,
        "tid": thread,
        "ts": _microseconds(start),
        "dur": _microseconds(end - start),
        "cat": interval.unit,
        "name": what if tile is None else f"{what} {tile.number}",
        "args": _details(interval),
    }


def _details(interval: Interval) -> dict[str, Any]:
    """The cycles, and what the interval carries; a stream tells its tile's part of the layer."""
    details: dict[str, Any] = {"cycle": interval.start_cycle, "cycles": interval.cycles}
    if interval.unit != LAYERS:
        details["layer"] = interval.layer
    if interval.bytes_moved:
        details["bytes"] = interval.bytes_moved
    if interval.unit == ARRAY and interval.tile is not None:
        details |= {"bubble_cycles": interval.bubble_cycles, **_part(interval.tile)}
    return details


def _part(tile: Tile) -> dict[str, Any]:
    """Which part of its layer a tile computes; ranges as first and last, both included."""
    ranges = {
        "groups": tile.groups,
        "images": tile.images,
        "pixel_rows": tile.pixel_rows,
        "pixel_columns": tile.pixel_columns,
        "filters": tile.filters,
        "channels": tile.channels,
    }
    return {
        "tile": tile.number,
        **{name: f"{span[0]} to {span[-1]}" for name, span in ranges.items()},
        "macs": tile.macs,
    }


def _of_tile(interval: Interval) -> bool:
    """Whether the array streams a tile, which says how many MACs it is."""
    return interval.unit == ARRAY and interval.tile is not None


def _counters(interval: Interval, design: Design) -> Iterator[Event]:
    """A counter that has its mean value during the interval, and 0 from its end."""
    if _of_tile(interval) and interval.tile is not None:
        name, unit = UTILISATION, "percent"
        value = 100 * interval.tile.macs / (interval.cycles * design.macs_per_cycle)
    else:
        name, unit = RATES.get(interval.unit, interval.unit), "bytes per cycle"
        value = interval.bytes_moved / interval.cycles
    for cycle, shown in ((interval.start_cycle, round(value, 3)), (interval.end_cycle, 0)):
        time = _microseconds(_nanoseconds(cycle, design))
        yield {"ph": "C", "pid": PROCESS, "ts": time, "name": name, "args": {unit: shown}}
