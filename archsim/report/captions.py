"""What each figure tells the reader of this result, in one or two sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archsim.machine.interval import ARRAY, ARRAY_WAITS
from archsim.plots.component_bars import MemoryTraffic
from archsim.plots.palette import cause_text
from archsim.plots.units import byte_text, energy_unit, significant

if TYPE_CHECKING:
    from archsim.energy_account import EnergyAccount
    from archsim.machine.design import Design
    from archsim.occupancy import Occupancy
    from archsim.plots.breakdown import Parts
    from archsim.plots.gantt import LayerRun
    from archsim.plots.roofline import Point, Roofline
    from archsim.result import LayerResult, NetworkResult

_POINT = "Pointing at a mark shows its exact figure."


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole if whole else 0.0:.1f} %"


def _largest(shares: Mapping[str, float], most: int = 3) -> str:
    """The largest parts with their per cent: "conv1 (12.3 %), conv2 (8.0 %)"."""
    whole = sum(shares.values())
    ranked = sorted((name for name in shares if shares[name]), key=lambda name: -shares[name])
    return ", ".join(f"{name} ({_percent(shares[name], whole)})" for name in ranked[:most])


def _busy(result: NetworkResult) -> list[LayerResult]:
    return [layer for layer in result.layers if layer.cycles]


def cycles(result: NetworkResult) -> str:
    """Which layers take the time, and what is lost to what."""
    where = result.where
    lost = {cause_text(name): count for name, count in where.items() if name != "computing"}
    losses = ", ".join(
        f"{name} ({_percent(count, result.cycles)})"
        for name, count in sorted(lost.items(), key=lambda item: -item[1])[:2]
        if count
    )
    text = f"The most cycles are in {_largest({o.name: o.cycles for o in _busy(result)})}. "
    text += f"Moving words enter the array in {_percent(where['computing'], result.cycles)} "
    text += f"of the cycles; the most is lost to {losses}." if losses else "of the cycles."
    return f"{text} {_POINT}"


def activity(result: NetworkResult, *, binned: bool) -> str:
    """How to read shares over time."""
    grain = (
        "Each step is an equal part of the run"
        if binned
        else "Each step is one layer, as wide as its cycles"
    )
    return (
        f"{grain}; its colours say what the cycles of that part went to. The line is the useful "
        "share of the array's MACs in each layer: where it stays below computing, part of the "
        "array is empty."
    )


def utilization(result: NetworkResult) -> str:
    """Which layers hold the mean down."""
    layers = _busy(result)
    waste = {one.name: float(one.cycles * one.macs_per_cycle - one.multiplied) for one in layers}
    return (
        "A layer of many cycles weighs more in the mean than a layer of few. Of all the MACs that "
        f"the array could have done and did not, most are in {_largest(waste)}."
    )


def pes(result: NetworkResult) -> str:
    """Which layers leave the PEs most unequal."""
    unequal: dict[str, float] = {}
    for layer in result.layers:
        if layer.per_pe:
            busy = layer.per_pe["load"] + layer.per_pe["conflict"]
            unequal[layer.name] = float(busy.max() * busy.size - busy.sum())
    return (
        "Per cent of the cycles from a layer's first group of filters to its last sum. A PE idles "
        "while it waits for weights, for the others at a barrier, for the output behind it, or "
        "because the plane does not reach it. Of the cycles in which PEs wait for the one that "
        f"has most to do, most are in {_largest(unequal)}. {_POINT}"
    )


def occupancy(found: Occupancy) -> str:
    """How unequal the PEs are: which are busiest, which least."""
    shares = 100 * found.shares
    mean = f"On average a PE is busy in {shares.mean():.1f} % of the cycles"
    if shares.max() == shares.min():
        return f"{mean}, every one alike. {_POINT}"
    most = np.unravel_index(np.argmax(shares), shares.shape)
    least = np.unravel_index(np.argmin(shares), shares.shape)
    full, empty = int((shares == shares.max()).sum()), int((shares == 0).sum())
    text = (
        f"{mean}; most of all, in {shares.max():.1f} %, {_pe(found, most)}"
        f"{f' and {full - 1:,} like it' if full > 1 else ''}, least, in {shares.min():.1f} %, "
        f"{_pe(found, least)}."
    )
    never = f" {empty:,} of {shares.size:,} do nothing at all." if empty else ""
    return (
        f"{text}{never} Only the layers' own MACs count, padding of the ifmap among them. {_POINT}"
    )


def _pe(found: Occupancy, place: Sequence[Any]) -> str:
    return f"that of {found.row} {int(place[0])}, {found.column} {int(place[1])}"


def over_time(found: Occupancy) -> str:
    """How to read lines of PEs over time, and how long they were all idle."""
    spans = np.diff(found.edges_cycles)
    idle = int(spans[found.lines[0].counts.sum(axis=1) == 0].sum())
    text = (
        "Each span is one layer, as wide as its cycles; each line is a PE, row by row. A PE is "
        "busy while pairs of vectors enter its banks."
    )
    if len(found.lines) > 1:
        text = (
            f"Each span is {int(spans.max()):,} cycles, each line a {found.row} or a "
            f"{found.column} of the array; a product counts when its moving word enters the array."
        )
    none = f" In spans of {idle:,} cycles nothing is computed." if idle else ""
    return f"{text} The stronger the colour, the more of the line's PEs are busy.{none}"


def gantt(run: LayerRun, shown: range) -> str:
    """Which layer and tiles are shown, what is left out, and what the array waits for in them."""
    count = run.steps
    drawn = list(run.answer.of_steps(shown))
    waits: dict[str, float] = {}
    for one in drawn:
        if one.unit == ARRAY_WAITS:
            waits[cause_text(one.what)] = waits.get(cause_text(one.what), 0.0) + one.cycles
    computing = sum(one.cycles - one.bubble_cycles for one in drawn if one.unit == ARRAY)
    left = count - len(shown)
    which = "All its tiles are" if not left else f"{left:,} of its {count:,} tiles are not"
    text = f"The layer of most cycles, {run.name}. {which} shown. "
    text += f"In those shown words enter the array in {computing:,} cycles"
    text += f"; between tiles the array is idle by: {_largest(waits)}." if waits else "."
    return f"{text} Thin bars: asked for, no word yet. Every second tile is fainter. {_POINT}"


def breakdown(parts: Parts, what: str) -> str:
    """How to read the areas, and which three components take most."""
    shares: dict[str, float] = {}
    for group, found in parts.items():
        for name, value in found.items():
            key = f"leakage of {name}" if group == "leakage" else name
            shares[key] = shares.get(key, 0.0) + value
    whole = sum(shares.values()) or 1.0
    three = sum(sorted(shares.values(), reverse=True)[:3])
    return (
        f"The whole rectangle is all of the {what}, each row a group, each field a component, as "
        f"large as its share. The largest: {_largest(shares)}; these are "
        f"{_percent(three, whole)} of it."
    )


def roofline(shown: Roofline, design: Design) -> str:
    """What the plotted points say: on which side of the ridge, bound by what, how near the roof."""
    if not shown.points:
        return "No layer both multiplies and moves bytes."
    whole = sum(point.layer.cycles for point in shown.points)
    count, what = len(shown.points), shown.products
    right = [point for point in shown.points if point.intensity >= shown.ridge]
    sides = (
        f"The roofs meet at {significant(shown.ridge)} {what} a byte: {len(right)} of {count} "
        f"layers lie to the right, with {_share_of(right, whole)} of the cycles."
    )
    parts = [
        f"the {name} {len(points)} with {_share_of(points, whole)} of the cycles"
        for name, points in shown.bound().items()
    ]
    text = f"{sides} What alone would take a layer longest is, in layers: {', '.join(parts)}."
    apart = [point for point in shown.points if (point in right) != (point.bound == "array")]
    if apart:
        text += (
            f" {len(apart)} of these are not what their side of the ridge says: ports have "
            "channels of their own, and one may be full while others are not."
        )
    reached = [100 * point.rate / point.roof for point in shown.points]
    text += f" The points reach {min(reached):.1f} to {max(reached):.1f} % of the roof above them."
    if not design.off_chip.bytes_per_cycle and design.off_chip.weight_bytes_per_cycle is None:
        text += " The design sets no limit of off-chip bandwidth: every port moves a word a cycle."
    if shown.named_together:
        text += " Behind a name, + 2 stands for two more layers at the same place."
    return text


def _share_of(points: Sequence[Point], whole: int) -> str:
    return _percent(sum(point.layer.cycles for point in points), whole)


def energy(account: EnergyAccount) -> str:
    """Which groups and layers take the energy."""
    return (
        f"By group: {_largest(account.by_group, 4)}. By layer: {_largest(account.by_layer)}. "
        f"{_POINT}"
    )


def energy_by_component(account: EnergyAccount) -> str:
    """Where to look first."""
    static = account.by_component["leakage"]
    text = f"The largest: {_largest(account.by_component)}. "
    if not static:
        return f"{text}No leakage is in the sum."
    unit = energy_unit(account, static)
    return f"{text}Leakage over the whole run, {unit.text(static, 3)}, is a bar of its own."


def area(account: EnergyAccount) -> str:
    """What takes the chip."""
    areas = account.area_by_component or {}
    return (
        f"The largest: {_largest(areas)}. Sums of cells and memories: what placing and routing "
        "add is not in it, and off-chip memory is not on the chip."
    )


def traffic(result: NetworkResult) -> str:
    """Which port and which layers move the bytes."""
    moved = {name: float(count) for name, count in result.bytes_moved.items()}
    layers = {layer.name: float(layer.total_bytes) for layer in _busy(result)}
    return f"By port: {_largest(moved, 4)}. By layer: {_largest(layers)}. {_POINT}"


def memory_bytes(moved: tuple[MemoryTraffic, ...]) -> str:
    """How often a byte from off-chip memory is used again, where scratchpads hold operands."""
    text = "Whole words of every memory, in the order in which data flow"
    inside = sum(one.read_bytes for one in moved if one.name in ("ifmap.memory", "weight.memory"))
    if not inside:
        return f"{text}; what many PEs store counts in each of them."
    text += (
        ": what is written into a scratchpad is read from off-chip memory, what is read from it "
        "enters the array."
    )
    outside = [one for one in moved if one.name == "off_chip.dram"]
    if outside and outside[0].read_bytes:
        ratio = inside / outside[0].read_bytes
        text += (
            f" Off-chip memory gives {byte_text(outside[0].read_bytes)}, the operand scratchpads "
            f"{ratio:.1f} times as many bytes."
        )
    return text
