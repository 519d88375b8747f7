"""What every unit of the core did in a layer, and when: intervals with the tile they work on.

Units, and what they do (`docs/timeline.md` says from when to when):

layers                      one interval a layer, named after it
ifmap, weight, bias loader  request: a tile is asked for, no word yet; load: its words cross
array                       stream: a tile's moving words, with the bubbles between its folds
array waits                 the cycles between streams, by cause (`archsim.core.causes`)
output stage                drain: a tile's accumulators are read
ofmap port                  leave: the tile's words cross

Array and array waits together cover every cycle once.  Their causes are those of the run itself:
`wait_ifmap` includes the wait for a slow off-chip memory.  `LayerResult.where` tells these apart:
there a cause counts what ports that never wait would cost, `memory` the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from archsim.core import commands as cmd
from archsim.core import machine as mc
from archsim.core import schedule as sc
from archsim.core.commands import check_commands
from archsim.core.core_design import CoreDesign
from archsim.core.problem import Tiling
from archsim.core.traffic import service_objects, services_of
from archsim.core.walk import walk
from archsim.numbers import IntArray
from archsim.simulate import (
    check_tiling_names,
    plan_tiling,
)
from workloads.layers import Conv2d, MatMul, Network

LAYERS = "layers"
LOADERS = ("ifmap loader", "weight loader", "bias loader")
ARRAY, ARRAY_WAITS = "array", "array waits"
OUTPUT_STAGE, OFMAP_PORT = "output stage", "ofmap port"
UNITS = (LAYERS, *LOADERS, ARRAY, ARRAY_WAITS, OUTPUT_STAGE, OFMAP_PORT)

WAITS = ("control", "wait_ifmap", "wait_weight", "filling", "wait_output")
"""The causes of the plan's columns WAIT_CONTROL to WAIT_OUTPUT, in the order of those columns."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """Which part of its layer a tile computes, and with how many MACs (padding included).

    Pixels are rows and columns of the ofmap; of a matrix product M × N × K the pixel columns are
    M, the filters N, the channels K.  Filters and channels are counted within the group.
    """

    number: int
    group: int
    image: int
    pixel_rows: range
    pixel_columns: range
    filters: range
    channels: range
    macs: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """One unit doing one thing from `start_cycle` to before `end_cycle`, in cycles of the run.

    bytes_moved: what crosses the unit's port; bubble_cycles: those of a stream in which no moving
    word enters the array, because the next stationary load is the longer.
    """

    unit: str
    what: str
    layer: str
    start_cycle: int
    end_cycle: int
    tile: Tile | None = None
    bytes_moved: int = 0
    bubble_cycles: int = 0

    @property
    def cycles(self) -> int:
        """How long it takes."""
        return self.end_cycle - self.start_cycle


def _span(start: int, size: int) -> range:
    return range(start, start + size)


def _tile(number: int, row: list[int]) -> Tile:
    """The part of the layer that a tile's command row names."""
    columns = row[cmd.PIXEL_COLUMNS]
    window = row[cmd.TAPS] * row[cmd.RUNS] * row[cmd.RUN_LENGTH]
    return Tile(
        number=number,
        group=row[cmd.TILE_GROUP],
        image=row[cmd.TILE_IMAGE],
        pixel_rows=_span(row[cmd.TILE_ROW], row[cmd.PIXELS] // columns),
        pixel_columns=_span(row[cmd.TILE_COLUMN], columns),
        filters=_span(row[cmd.TILE_FILTER], row[cmd.TILE_FILTERS]),
        channels=_span(row[cmd.TILE_CHANNEL], row[cmd.TILE_CHANNELS]),
        macs=row[cmd.PIXELS] * row[cmd.TILE_FILTERS] * window,
    )


def _first_words(tiles: IntArray, plan: IntArray, services: IntArray) -> IntArray:
    """The cycle in which the first word of each tile's loads crosses: [tiles, 3], else −1."""
    first = np.full((len(tiles), 3), -1, np.int64)
    flags = (cmd.LOAD_IFMAP, cmd.LOAD_WEIGHT, cmd.HAS_BIAS)
    for at, (flag, service) in enumerate(zip(flags, service_objects(services)[1:4], strict=True)):
        loads = tiles[:, flag] == 1
        words = tiles[loads, cmd.IFMAP_WORDS + at]
        after = np.cumsum(words)
        finish = service.finish_times(int(words.sum()))
        last = plan[loads, sc.IFMAP_LOADED + 2 * at] - 1
        first[loads, at] = last - (finish[after - 1] - finish[after - words])
    return first


@dataclass(frozen=True, kw_only=True)
class Activity:
    """The run of one layer; iterating gives its intervals, those of each unit in order of time.

    tiles, plan: command rows and cycles of the tiles (`archsim.core.commands`, `.schedule`), the
    cycles counted from the layer's start; first_words: [tiles, 3], see `Interval`'s loads.
    """

    layer: str
    start_cycle: int
    machine: IntArray
    tiles: IntArray
    plan: IntArray
    first_words: IntArray

    @property
    def cycles(self) -> int:
        """From the layer's command to its last ofmap word."""
        return int(self.plan[-1, sc.LAST_OUT]) + 1

    def plan_without_memory(self) -> IntArray:
        """The plan if every port moved a word a cycle (`LayerResult.where` compares with it)."""
        services = np.zeros((sc.OFMAP + 1, 4), np.int64)
        return sc.schedule(self.tiles, self.machine, services, sc.NO_GAPS)

    def __iter__(self) -> Iterator[Interval]:
        ended = 0
        rows = zip(self.tiles, self.plan, self.first_words, strict=True)
        for number, (row, plan, first) in enumerate(rows):
            command, times = row.tolist(), plan.tolist()
            tile = _tile(number, command)
            yield from self._loads(tile, command, times, first.tolist())
            yield from self._waits(tile, ended, times)
            ended = times[sc.STREAM_END]
            yield self._interval(
                ARRAY, "stream", (times[sc.STREAM_START], ended), tile, bubbles=times[sc.BUBBLE]
            )
            if command[cmd.LAST_K]:
                yield from self._drain(tile, command, times)
        yield self._interval(ARRAY_WAITS, "draining", (ended, self.cycles))

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
        self, tile: Tile, command: list[int], times: list[int], first: list[int]
    ) -> Iterator[Interval]:
        for at, unit in enumerate(LOADERS):
            ready, loaded = times[sc.IFMAP_READY + 2 * at], times[sc.IFMAP_LOADED + 2 * at]
            if ready < 0:
                continue
            if first[at] > ready:
                yield self._interval(unit, "request", (ready, first[at]), tile)
            moved = command[cmd.IFMAP_WORDS + at] * int(self.machine[mc.IFMAP_WORD_BYTES + at])
            yield self._interval(unit, "load", (first[at], loaded), tile, moved=moved)

    def _waits(self, tile: Tile, ended: int, times: list[int]) -> Iterator[Interval]:
        for column, cause in enumerate(WAITS, sc.WAIT_CONTROL):
            if times[column]:
                yield self._interval(ARRAY_WAITS, cause, (ended, ended + times[column]), tile)
            ended += times[column]

    def _drain(self, tile: Tile, command: list[int], times: list[int]) -> Iterator[Interval]:
        moved = command[cmd.OUTPUT_WORDS] * int(self.machine[mc.OFMAP_WORD_BYTES])
        read = times[sc.DRAIN_START], times[sc.DRAIN_END]
        left = times[sc.FIRST_OUT], times[sc.LAST_OUT] + 1
        yield self._interval(OUTPUT_STAGE, "drain", read, tile)
        yield self._interval(OFMAP_PORT, "leave", left, tile, moved=moved)


def layer_activity(
    design: CoreDesign, layer: Conv2d | MatMul, tiling: Tiling | None = None, start_cycle: int = 0
) -> Activity:
    """Plan a layer, in the tiling given or the automatic one, as `archsim.simulate` does.

    Raises `InputError` for a tiling that does not fit, and for a layer that fits in none.
    """
    machine = design.machine
    tiling = plan_tiling(design, layer, tiling)
    tiles = walk(design.numerics.problem(layer).vector(), tiling.vector(), machine)
    check_commands(layer.name, tiles)
    services = services_of(tiles, machine)
    plan = sc.schedule(tiles, machine, services, sc.NO_GAPS)
    return Activity(
        layer=layer.name,
        start_cycle=start_cycle,
        machine=machine,
        tiles=tiles,
        plan=plan,
        first_words=_first_words(tiles, plan, services),
    )


def activities(
    design: CoreDesign, network: Network, tilings: Mapping[str, Tiling] | None = None
) -> Iterator[Activity]:
    """The run of each matrix layer, one behind the other; a layer is planned when it is its turn.

    Vector work takes no cycles of the array and is left out.  Raises `InputError` as
    `layer_activity`, and for tilings of layers that the network does not have.
    """
    check_tiling_names(network, tilings or {})
    start = 0
    for layer in network.matrix_layers:
        activity = layer_activity(design, layer, (tilings or {}).get(layer.name), start)
        yield activity
        start += activity.cycles
