"""A network over time: the intervals of its whole run, and where the cycles went, in bins.

for interval in timeline(EDGE_16, builtin("resnet50")):
    print(interval.unit, interval.what, interval.start_cycle, interval.end_cycle)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from archsim.causes import CAUSES
from archsim.errors import require, require_positive
from archsim.layer.problem import Tiling
from archsim.machine.interval import LAYERS, Interval
from archsim.machine.over_time import FloatArray, OverTime
from archsim.numbers import IntArray
from archsim.tiled.activity import WAITS, Activity, activities
from archsim.tiled.design import CoreDesign
from archsim.tiled.plan import plan_columns, plan_row
from archsim.tiled.timing import TileRun, check_tiling_names
from workloads.layers import Network


def timeline(
    design: CoreDesign, network: Network, tilings: Mapping[str, Tiling] | None = None
) -> Iterator[Interval]:
    """The intervals of a whole run, layer after layer; never more than a layer is in memory.

    Each layer begins with the interval of its own; raises `InputError` as `activities`.
    """
    for activity in activities(design, network, tilings):
        yield Interval(
            unit=LAYERS,
            what=activity.layer,
            layer=activity.layer,
            start_cycle=activity.start_cycle,
            end_cycle=activity.start_cycle + activity.cycles,
        )
        yield from activity


def binned(
    design: CoreDesign,
    network: Network,
    bins: int = 200,
    tilings: Mapping[str, Tiling] | None = None,
) -> OverTime:
    """The run cut into `bins` equal spans, and where the cycles of each went.

    Streams and the waits between them are where the plan has them; the bubbles inside a tile's
    stream are spread evenly over it.  A cycle is `memory`'s if it is more than ports that never
    wait would cost: since an idle cycle which the array would have had anyway may hide behind an
    earlier wait for memory, each is set as late as it fits, and memory takes what is left.
    Raises `InputError` as `activities`, and for a network of which the array computes nothing.
    """
    require_positive(bins=bins)
    require(bool(network.matrix_layers), f"{network.name} has no layer that the array computes")
    check_tiling_names(network, tilings or {})
    run = TileRun(design, lambda _: None, tilings or {})
    cycles = sum(run.result(layer).cycles for layer in network.matrix_layers)
    edges = np.linspace(0, cycles, bins + 1)
    spent = np.zeros((bins + 1, len(CAUSES)))
    for activity in activities(design, network, tilings):
        local = np.clip(edges - activity.start_cycle, 0, activity.cycles)
        spent += _spent_until(activity)(local)
    return OverTime(edges_cycles=edges, shares=np.diff(spent, axis=0) * (bins / cycles))


def _spent_until(activity: Activity) -> Callable[[FloatArray], FloatArray]:
    """Cycles by cause before a time of the layer: a function from [n] to [n, causes].

    Time tells how many idle cycles there were; these, how many of them were memory's; the others
    come in the order of the plan without a memory, which knows their causes.
    """
    plan, ideal = activity.plan, activity.plan_without_memory()
    idle, anyway = _idle(plan), _idle(ideal)
    explained = _as_late_as_possible(anyway.sum(axis=1), idle.sum(axis=1))
    memory = idle.sum(axis=1) - explained
    columns = plan_columns(plan)
    times = _interleaved(columns.stream_start, columns.stream_end)
    times = np.concatenate([[0], times, [activity.cycles]])
    idle_then = _sums(idle.ravel())[:-1]  # nothing follows within the last, the draining
    memory_ends = _sums(_interleaved(memory, explained))
    memory_then = _sums(_interleaved(memory, np.zeros_like(memory)))
    ends, causes = _causes_in_order(ideal)

    def spent(until: FloatArray) -> FloatArray:
        idle_until = np.interp(until, times, idle_then)
        memory_until = np.interp(idle_until, memory_ends, memory_then)
        known = {
            name: np.interp(idle_until - memory_until, ends, sums) for name, sums in causes.items()
        }
        known |= {"computing": until - idle_until, "memory": memory_until}
        nothing = np.zeros_like(until)
        return np.stack([known.get(name, nothing) for name in CAUSES], axis=1)

    return spent


def _idle(plan: IntArray) -> IntArray:
    """The array's idle cycles before and within each stream, then the draining: [tiles + 1, 2]."""
    columns, last = plan_columns(plan), plan_row(plan, -1)
    before = columns.stream_start - np.append(0, columns.stream_end[:-1])
    draining = last.written - last.stream_end
    return np.stack([np.append(before, draining), np.append(columns.bubble, 0)], axis=1)


def _as_late_as_possible(due: IntArray, room: IntArray) -> IntArray:
    """Put all of `due` into `room`, each no later than its own place: how much where, [n].

    What does not fit moves to the place before (a queue, from the last place to the first).
    Up to each place there is room for all that is due until then: a memory hurries nothing.
    """
    excess = np.cumsum((due - room)[::-1])
    moved = (excess - np.minimum(np.minimum.accumulate(excess), 0))[::-1]  # out of each place
    return due + np.append(moved[1:], 0) - moved


def _causes_in_order(plan: IntArray) -> tuple[IntArray, dict[str, IntArray]]:
    """The idle cycles of a plan, one behind the other: ends of its parts, and sums by cause.

    [parts + 1] each: idle cycles until the end of a part, and how many of these are of a cause.
    """
    columns, last = plan_columns(plan), plan_row(plan, -1)
    waits = np.stack([*columns.waits, columns.bubble], axis=1)
    draining = last.written - last.stream_end
    parts = np.append(waits.ravel(), draining)
    names = np.append(np.tile([*WAITS, "filling"], len(plan)), "draining")
    return _sums(parts), {
        name: _sums(np.where(names == name, parts, 0)) for name in (*WAITS, "draining")
    }


def _interleaved(first: IntArray, second: IntArray) -> IntArray:
    """first[0], second[0], first[1], second[1], ..."""
    return np.stack([first, second], axis=1).ravel()


def _sums(values: IntArray) -> IntArray:
    """Of the values before each, and of all: [n + 1]."""
    return np.append(0, np.cumsum(values))
