"""What every unit of the core did in a layer, and when: intervals with the tile they work on.

Units, and what they do (`docs/timeline.md` says from when to when):

layers                      one interval a layer, named after it
ifmap, weight, bias loader  request: a tile is asked for, no word yet; load: its words cross
array                       stream: a tile's moving words, with the bubbles between its folds
array waits                 the cycles between streams, by cause (`archsim.causes`)
output stage                drain: a tile's accumulators are read
ofmap port                  leave: the tile's words cross
off-chip writes             write: they go through the off-chip memory's channel

Array and array waits together cover every cycle once.  Their causes are those of the run itself:
`wait_ifmap` includes the wait for a slow off-chip memory.  `LayerResult.where` tells these apart:
there a cause counts what ports that never wait would cost, `memory` the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from archsim.layer.problem import Tiling
from archsim.machine.interval import (
    ARRAY,
    ARRAY_WAITS,
    LAYERS,
    LOADERS,
    OFMAP_PORT,
    OUTPUT_STAGE,
    WRITES,
    Interval,
    Tile,
    Track,
)
from archsim.memory.ticks import TICK_BITS
from archsim.numbers import IntArray
from archsim.tiled.commands import TileCommand
from archsim.tiled.design import CoreDesign
from archsim.tiled.gaps import NO_GAPS
from archsim.tiled.layer_tiles import layer_tiles
from archsim.tiled.machine_vector import machine_record
from archsim.tiled.plan import (
    PlanRecord,
    plan_columns,
    plan_row,
    service_records,
    service_table,
)
from archsim.tiled.schedule import schedule
from archsim.tiled.timing import check_tiling_names, plan_tiling
from archsim.tiled.traffic import services_of
from workloads.layers import Conv2d, MatMul, Network
from workloads.steps import one_step, steps_in

WAITS = ("control", "wait_ifmap", "wait_weight", "filling", "wait_output")
"""The causes of the waits of a plan, in the order of `PlanRecord.waits`."""

TRACKS = (
    Track(unit=LAYERS),
    *(Track(unit=unit, does=("request", "load")) for unit in LOADERS),
    Track(unit=ARRAY, does=("computing", "bubble"), called={"stream": "computing"}),
    Track(unit=ARRAY_WAITS, does=(*WAITS, "draining")),
    Track(unit=OUTPUT_STAGE, does=("drain",)),
    Track(unit=OFMAP_PORT, does=("leave",)),
    Track(unit=WRITES, does=("write",)),
)
UNITS = tuple(track.unit for track in TRACKS)


def _span(start: int, size: int) -> range:
    return range(start, start + size)


def _tile(number: int, row: TileCommand[int], blocks: tuple[int, int]) -> Tile:
    """The part of the layer that a tile's command row names.

    blocks: the layer's groups, and how many lie side by side.
    """
    groups, together = blocks
    first = row.tile_group * together
    last = min(first + together, groups)
    filters = row.tile_filters // together
    window = row.taps * row.runs * row.run_length // together
    return Tile(
        number=number,
        groups=range(first, last),
        images=_span(row.tile_image, row.tile_images),
        pixel_rows=_span(row.tile_row, row.pixel_rows),
        pixel_columns=_span(row.tile_column, row.pixel_columns),
        filters=_span(row.tile_filter, filters),
        channels=_span(row.tile_channel, row.tile_channels // together),
        macs=(last - first) * row.pixels * filters * window,
    )


@dataclass(frozen=True, kw_only=True)
class Activity:
    """The run of one layer; iterating gives its intervals, those of each unit in order of time.

    tiles, plan: command rows and cycles of the tiles (`archsim.tiled.commands`, `.schedule`), the
    cycles counted from the layer's start.  blocks: the layer's groups, and how many lie side by
    side.
    """

    layer: str
    start_cycle: int
    machine: IntArray
    tiles: IntArray
    plan: IntArray
    blocks: tuple[int, int]

    @property
    def cycles(self) -> int:
        """From the layer's command to its last ofmap word, written off-chip."""
        return plan_row(self.plan, -1).written

    def plan_without_memory(self) -> IntArray:
        """The plan if every port moved a word a cycle (`LayerResult.where` compares with it)."""
        return schedule(self.tiles, self.machine, service_table({}), NO_GAPS)

    def __iter__(self) -> Iterator[Interval]:
        return self.of_tiles(range(len(self.tiles)))

    def of_tiles(self, numbers: range) -> Iterator[Interval]:
        """The intervals of some tiles, one behind the other; the draining is the last one's."""
        before = plan_columns(self.plan[: numbers.start])
        ended = int(before.stream_end[-1]) if numbers.start else 0
        written = int(before.written.max(initial=0))
        ticks = service_records(services_of(self.machine))["ofmap"].word_ticks
        for number in numbers:
            command = TileCommand(*self.tiles[number].tolist())
            times = plan_row(self.plan, number)
            tile = _tile(number, command, self.blocks)
            yield from self._loads(tile, command, times)
            yield from self._waits(tile, ended, times)
            ended = times.stream_end
            yield self._interval(
                ARRAY, "stream", (times.stream_start, ended), tile, bubbles=times.bubble
            )
            if command.last_k:
                yield from self._drain(tile, command, times)
            if ticks and command.output_words:
                cycles = -(-command.output_words * ticks >> TICK_BITS)
                through = max(times.written - cycles, written), times.written
                if through[0] < through[1]:
                    yield self._interval(WRITES, "write", through, tile)
                written = max(written, through[1])
        if numbers.stop == len(self.tiles):
            yield self._interval(ARRAY_WAITS, "draining", (ended, self.cycles))

    def tiles_within(self, first_cycle: int, end_cycle: int) -> range:
        """The tiles of which something happens from one cycle of the layer to before another."""
        plan = plan_columns(self.plan)
        loads = np.stack([*plan.ready, plan.stream_start], axis=1)
        starts = np.where(loads < 0, self.cycles, loads).min(axis=1)
        ends = np.stack([plan.stream_end, plan.written, plan.drain_end]).max(axis=0)
        # the latest end until a tile, and the first start from a tile on
        latest = np.maximum.accumulate(ends)
        earliest = np.minimum.accumulate(starts[::-1])[::-1]
        first = int(np.searchsorted(latest, first_cycle, side="right"))
        return range(first, max(first, int(np.searchsorted(earliest, end_cycle, side="left"))))

    def _interval(
        self,
        unit: str,
        what: str,
        cycles: tuple[int, int],
        tile: Tile | None = None,
        *,
        moved: int = 0,
        bubbles: int = 0,
    ) -> Interval:
        return Interval(
            unit=unit,
            what=what,
            layer=self.layer,
            start_cycle=self.start_cycle + cycles[0],
            end_cycle=self.start_cycle + cycles[1],
            tile=tile,
            bytes_moved=moved,
            bubble_cycles=bubbles,
        )

    def _loads(
        self, tile: Tile, command: TileCommand[int], times: PlanRecord[int]
    ) -> Iterator[Interval]:
        word_bytes = machine_record(self.machine).word_bytes
        loads = zip(times.first, times.ready, times.loaded, strict=True)
        for at, (unit, (first, ready, loaded)) in enumerate(zip(LOADERS, loads, strict=True)):
            if ready < 0:
                continue
            if first > ready:
                yield self._interval(unit, "request", (ready, first), tile)
            moved = command.words[at] * word_bytes[at]
            yield self._interval(unit, "load", (first, loaded), tile, moved=moved)

    def _waits(self, tile: Tile, ended: int, times: PlanRecord[int]) -> Iterator[Interval]:
        for cycles, cause in zip(times.waits, WAITS, strict=True):
            if cycles:
                yield self._interval(ARRAY_WAITS, cause, (ended, ended + cycles), tile)
            ended += cycles

    def _drain(
        self, tile: Tile, command: TileCommand[int], times: PlanRecord[int]
    ) -> Iterator[Interval]:
        moved = command.output_words * machine_record(self.machine).ofmap_word_bytes
        read = times.drain_start, times.drain_end
        left = times.first_out, times.last_out + 1
        yield self._interval(OUTPUT_STAGE, "drain", read, tile)
        if moved:
            yield self._interval(OFMAP_PORT, "leave", left, tile, moved=moved)


def layer_activity(
    design: CoreDesign, layer: Conv2d | MatMul, tiling: Tiling | None = None, start_cycle: int = 0
) -> Activity:
    """Plan a layer, in the tiling given or the automatic one, as `archsim.simulate` does.

    Raises `InputError` for a tiling that does not fit, and for a layer that fits in none.
    """
    machine = design.machine
    tiling = plan_tiling(design, layer, tiling)
    problem = design.numerics.problem(layer)
    tiles = layer_tiles(layer.name, problem, tiling, machine)
    plan = schedule(tiles, machine, services_of(machine), NO_GAPS)
    return Activity(
        layer=layer.name,
        start_cycle=start_cycle,
        machine=machine,
        tiles=tiles,
        plan=plan,
        blocks=(problem.groups, tiling.groups),
    )


def activities(
    design: CoreDesign, network: Network, tilings: Mapping[str, Tiling] | None = None
) -> Iterator[Activity]:
    """The run of each matrix layer, one behind the other; a layer is planned when it is its turn,
    one of several steps once for all of them.

    Vector work takes no cycles of the array and is left out.  Raises `InputError` as
    `layer_activity`, and for tilings of layers that the network does not have.
    """
    check_tiling_names(network, tilings or {})
    start = 0
    for layer in network.matrix_layers:
        activity = layer_activity(design, one_step(layer), (tilings or {}).get(layer.name), start)
        for number in range(steps_in(layer)):
            yield replace(activity, layer=one_step(layer, number).name, start_cycle=start)
            start += activity.cycles
