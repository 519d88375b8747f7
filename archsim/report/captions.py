"""What each figure tells the reader of this result, in one or two sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from archsim.plots.component_bars import MemoryTraffic
from archsim.plots.palette import cause_text
from archsim.plots.roofline import bound_by, channels
from archsim.plots.units import byte_text, energy_unit

if TYPE_CHECKING:
    from archsim.core.design import Design
    from archsim.energy import EnergyAccount
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


def roofline(result: NetworkResult, design: Design) -> str:
    """What bounds the layers."""
    ways = channels(design)
    taken: dict[str, int] = {}
    for layer in _busy(result):
        name, _ = bound_by(layer, ways)
        taken[name] = taken.get(name, 0) + layer.cycles
    ranked = sorted(taken.items(), key=lambda item: -item[1])
    parts = [f"{_percent(count, result.cycles)} by the {name}" for name, count in ranked]
    first = parts[0].replace(" by", " are in layers bound by", 1) if parts else "none is bound"
    limit = (
        " The design sets no limit of off-chip bandwidth: every port moves a word a cycle."
        if not design.off_chip.bytes_per_cycle and design.off_chip.weight_bytes_per_cycle is None
        else ""
    )
    return (
        "To the right of the ridge a layer could keep the array busy; to the left its bytes take "
        f"longer than its MACs. Of the cycles, {', '.join([first, *parts[1:]])}.{limit} The "
        "distance to the roof is what all other causes cost. Behind a name, + 2 stands for two "
        "more layers at the same place."
    )


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
