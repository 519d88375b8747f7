"""What `archsim trace` does: count a timeline while it is written, and write the waves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rich.progress import Progress

from archsim.activity import (
    ARRAY,
    ARRAY_WAITS,
    LAYERS,
    LOADERS,
    OFMAP_PORT,
    OUTPUT_STAGE,
    UNITS,
    WAITS,
    Interval,
)
from archsim.chrome_trace import write_chrome_trace
from archsim.core.core_design import CoreDesign
from archsim.core.design import Design
from archsim.core.problem import Tiling
from archsim.designs.registry import design_name
from archsim.files import new_file
from archsim.simulate import (
    Source,
    check_tiling_names,
    operands_of,
)
from archsim.timeline import timeline
from archsim.waves import Waves, layer_answer
from workloads.layers import Network
from workloads.operands import Operands

DOES = {
    **dict.fromkeys(LOADERS, ("request", "load")),
    ARRAY: ("computing", "bubble"),
    ARRAY_WAITS: (*WAITS, "draining"),
    OUTPUT_STAGE: ("drain",),
    OFMAP_PORT: ("leave",),
}
"""What the summary counts of each unit; a stream is computing but for its bubbles."""


class _Totals:
    """Counts what goes by."""

    def __init__(self) -> None:
        self.cycles = 0
        self.layers = 0
        self.tiles = 0
        self.activity = {unit: dict.fromkeys(what, 0) for unit, what in DOES.items()}

    def add(self, interval: Interval) -> None:
        """Count an interval."""
        if interval.unit == LAYERS:
            self.layers += 1
            self.cycles = interval.end_cycle
            return
        counts = self.activity[interval.unit]
        if interval.unit == ARRAY:
            self.tiles += 1
            counts["computing"] += interval.cycles - interval.bubble_cycles
            counts["bubble"] += interval.bubble_cycles
        else:
            counts[interval.what] += interval.cycles


@dataclass(frozen=True, kw_only=True)
class TracedRun:
    """What is traced: the layers of a network on a design, in tilings given for some.

    `network` is the whole network or a part of it; `all_tilings` may name layers of all of it.
    operands: where words are wanted.
    Raises `InputError` for tilings of layers that the whole network does not have.
    """

    design: CoreDesign
    whole_network: Network
    network: Network
    all_tilings: Mapping[str, Tiling]
    operands: Source | Mapping[str, Operands] | None = None

    def __post_init__(self) -> None:
        check_tiling_names(self.whole_network, self.all_tilings)

    @property
    def tilings(self) -> dict[str, Tiling]:
        """Those of the traced layers."""
        names = [layer.name for layer in self.network.matrix_layers]
        return {name: self.all_tilings[name] for name in names if name in self.all_tilings}

    def intervals(self, bar: Progress, totals: _Totals) -> Iterator[Interval]:
        """The timeline, counted while it goes by."""
        count = len(self.network.matrix_layers)
        for interval in timeline(self.design, self.network, self.tilings):
            totals.add(interval)
            if interval.unit == LAYERS:
                bar.update(bar.task_ids[0], completed=totals.layers, total=count)
            yield interval

    def summarize(self, bar: Progress, perfetto: Path | None) -> dict[str, Any]:
        """Run the timeline to its end, through the file if there is to be one."""
        totals = _Totals()
        intervals = self.intervals(bar, totals)
        return summarized(self, intervals, totals, perfetto)

    def write_vcd(self, bar: Progress, path: Path, *, lanes: bool) -> dict[str, Any]:
        """Write the words of every layer; `operands` must be given."""
        count = 0
        assert self.operands is not None
        layers, tilings = self.network.matrix_layers, self.tilings
        with new_file(path) as file, Waves(self.design, file, lanes=lanes) as waves:
            for done, layer in enumerate(layers, 1):
                values = operands_of(self.operands, layer)
                found = layer_answer(self.design, layer, values, tilings.get(layer.name))
                waves.add_layer(layer.name, found.transfers, found.cycles)
                count += sum(len(one) for one in found.transfers.values())
                bar.update(bar.task_ids[0], completed=done, total=len(layers))
        return {**file_record(path), "transfers": count}


def file_record(path: Path) -> dict[str, Any]:
    """A written file and its size."""
    return {"file": str(path), "bytes": path.stat().st_size}


class Run(Protocol):
    """What is traced."""

    @property
    def design(self) -> Design: ...

    @property
    def network(self) -> Network: ...


class Totals(Protocol):
    """What a kind of machine's intervals were counted to."""

    layers: int
    tiles: int
    cycles: int
    activity: dict[str, dict[str, int]]


def summarized(
    run: Run,
    intervals: Iterable[Interval],
    totals: Totals,
    perfetto: Path | None,
    units: Sequence[str] = UNITS,
) -> dict[str, Any]:
    """The record of a run whose intervals, which count themselves to `totals`, are gone through.

    They go through the file if there is to be one; units: its tracks.
    """
    written: dict[str, Any] = {}
    if perfetto is None:
        for _ in intervals:
            pass
    else:
        with new_file(perfetto) as file:
            design, network = run.design, run.network.name
            events = write_chrome_trace(
                intervals, file, design=design, network=network, units=units
            )
        written["perfetto"] = {**file_record(perfetto), "events": events}
    return {
        "design": design_name(run.design),
        "network": run.network.name,
        "clock_hz": run.design.clock_hz,
        "layers": totals.layers,
        "tiles": totals.tiles,
        "cycles": totals.cycles,
        "activity": totals.activity,
        **written,
    }
