"""What `archsim trace` does: count a run over time while it is written, and write the waves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.progress import Progress

from archsim.chrome_trace import write_chrome_trace
from archsim.files import new_file
from archsim.machine.interval import LAYERS, Interval, Track
from archsim.machine.model import Answer, MachineModel, MatrixLayer, Options
from archsim.machine.registry import design_name
from archsim.simulate import Source, operands_of
from archsim.waves import Waves
from workloads.layers import Network
from workloads.steps import one_step, step_operands, steps_in

BUBBLE = "bubble"


class _Totals:
    """Counts what goes by: cycles by unit and by what the unit did, where it says what it does."""

    def __init__(self, tracks: tuple[Track, ...]) -> None:
        self.cycles = 0
        self.steps = 0
        self.activity = {one.unit: dict.fromkeys(one.does, 0) for one in tracks if one.does}
        self._called = {one.unit: one.called for one in tracks}

    def add(self, interval: Interval) -> None:
        """Count an interval."""
        if interval.unit == LAYERS:
            self.cycles = interval.end_cycle
        elif interval.unit in self.activity:
            counts = self.activity[interval.unit]
            word = interval.what.split()[0]
            counts[self._called[interval.unit].get(word, word)] += (
                interval.cycles - interval.bubble_cycles
            )
            if interval.bubble_cycles:
                counts[BUBBLE] += interval.bubble_cycles


@dataclass(frozen=True, kw_only=True)
class TracedRun:
    """What is traced: the layers of a network on a machine.

    `network` is the whole network or a part of it; options may be of layers of all of it.
    operands: where words are wanted, or cycles depend on them.
    Raises `InputError` for options that do not fit the whole network.
    """

    model: MachineModel
    whole_network: Network
    network: Network
    options: Options
    operands: Source | Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        self.model.run(self.whole_network, self._values, self.options)

    def _values(self, layer: MatrixLayer) -> Any:
        return None if self.operands is None else operands_of(self.operands, layer)

    def _answers(self, bar: Progress) -> Iterator[tuple[MatrixLayer, Answer]]:
        layers = self.network.matrix_layers
        for done, layer in enumerate(layers, 1):
            values = self._values(layer)
            for number in range(steps_in(layer)):
                step = one_step(layer, number)
                part = None if values is None else step_operands(layer, values, number)
                options = self.model.options_of_step(self.options, layer, step)
                yield step, self.model.answer(step, part, options)
            bar.update(bar.task_ids[0], completed=done, total=len(layers))

    def _intervals(self, bar: Progress, totals: _Totals) -> Iterator[Interval]:
        """The run, counted while it goes by."""
        for _, answer in self._answers(bar):
            for interval in answer.intervals(totals.cycles):
                totals.add(interval)
                yield interval
            totals.steps += answer.steps

    def summarize(self, bar: Progress, perfetto: Path | None) -> dict[str, Any]:
        """How long each unit did what; what it did when, as a file if there is to be one."""
        design, tracks = self.model.design, self.model.tracks
        totals = _Totals(tracks)
        intervals = self._intervals(bar, totals)
        written: dict[str, Any] = {}
        if perfetto is None:
            for _ in intervals:
                pass
        else:
            with new_file(perfetto) as file:
                events = write_chrome_trace(
                    intervals, file, design=design, network=self.network.name
                )
            written["perfetto"] = {**_file_record(perfetto), "events": events}
        return {
            "design": design_name(design),
            "network": self.network.name,
            "clock_hz": design.clock_hz,
            "layers": len(self.network.matrix_layers),
            "tiles": totals.steps,
            "cycles": totals.cycles,
            "activity": totals.activity,
            **written,
        }

    def write_vcd(self, bar: Progress, path: Path, *, lanes: bool) -> dict[str, Any]:
        """Write the words of every layer; `operands` must be given."""
        count = 0
        with new_file(path) as file, Waves(self.model.design, file, lanes=lanes) as waves:
            for layer, answer in self._answers(bar):
                waves.add_layer(layer.name, answer.transfers, answer.cycles)
                count += sum(len(one) for one in answer.transfers.values())
        return {**_file_record(path), "transfers": count}


def _file_record(path: Path) -> dict[str, Any]:
    """A written file and its size."""
    return {"file": str(path), "bytes": path.stat().st_size}
