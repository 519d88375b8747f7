"""What `archsim trace` does for a machine whose cycles depend on its values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.progress import Progress

from archsim.activity import LAYERS, LOADERS, OFMAP_PORT, OUTPUT_STAGE, Interval
from archsim.cli.traced_run import file_record, summarized
from archsim.designs.scnn import Scnn
from archsim.files import new_file
from archsim.simulate import Source, operands_of
from archsim.sparse.words import LayerRun
from archsim.sparse_activity import GROUPS, SparseActivity, sparse_activity, sparse_units
from archsim.waves import Waves
from workloads.layers import Network
from workloads.operands import Operands


@dataclass(kw_only=True)
class _Totals:
    """Counts what goes by, but for the tracks of single PEs.  tiles: passes of the core."""

    tiles: int = 0
    cycles: int = 0
    layers: int = 0

    def __post_init__(self) -> None:
        self.activity: dict[str, dict[str, int]] = {
            **{unit: {"load": 0} for unit in LOADERS[:2]},
            GROUPS: {"group": 0},
            OUTPUT_STAGE: {"halo": 0, "drain": 0},
            OFMAP_PORT: {"leave": 0},
        }

    def add(self, interval: Interval) -> None:
        """Count an interval."""
        if interval.unit == LAYERS:
            self.layers += 1
            self.cycles = interval.end_cycle
        elif interval.unit in self.activity:
            self.activity[interval.unit][interval.what.split()[0]] += interval.cycles


@dataclass(frozen=True, kw_only=True)
class SparseTracedRun:
    """What is traced: the layers of a network on a sparse core, with their operands."""

    design: Scnn
    network: Network
    operands: Source | Mapping[str, Operands]

    def _activities(self, bar: Progress) -> Iterator[SparseActivity]:
        start, layers = 0, self.network.matrix_layers
        for done, layer in enumerate(layers, 1):
            run = LayerRun(layer=layer, operands=operands_of(self.operands, layer))
            found = sparse_activity(self.design, run, start)
            start += found.cycles
            yield found
            bar.update(bar.task_ids[0], completed=done, total=len(layers))

    def _intervals(self, bar: Progress, totals: _Totals) -> Iterator[Interval]:
        for activity in self._activities(bar):
            totals.tiles += len(activity.passes)
            for interval in activity:
                totals.add(interval)
                yield interval

    def summarize(self, bar: Progress, perfetto: Path | None) -> dict[str, Any]:
        """Run the timeline to its end, through the file if there is to be one."""
        totals = _Totals()
        intervals = self._intervals(bar, totals)
        return summarized(self, intervals, totals, perfetto, sparse_units(self.design))

    def write_vcd(self, bar: Progress, path: Path, *, lanes: bool) -> dict[str, Any]:
        """Write the words of every layer."""
        count = 0
        with new_file(path) as file, Waves(self.design, file, lanes=lanes) as waves:
            for activity in self._activities(bar):
                crossed = activity.answer.transfers
                waves.add_layer(activity.run.layer.name, crossed, activity.cycles)
                count += sum(len(one) for one in crossed.values())
        return {**file_record(path), "transfers": count}
