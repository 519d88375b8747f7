"""The columns of a layer's plan, of the ports' services, and of the state of the scan.

A plan is [tiles, PLAN_COLUMNS]: when each unit of the core did what for each tile
(`archsim.tiled.schedule`).  `PlanRecord` names its columns; the constants are for kernels.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import numpy as np

from archsim.numbers import IntArray

T = TypeVar("T")

PORTS = ("command", "ifmap", "weight", "bias", "ofmap")


COMMAND, IFMAP, WEIGHT, BIAS, OFMAP = range(5)
"""Ports, as rows of the service tables."""

CHANNEL, WORD_TICKS, BURST_WORDS, LATENCY, SERVICE_COLUMNS = range(5)
"""Services: which channel of the off-chip memory a port's words take, for how many ticks each (0:
none, a word a cycle), how many arrive at a time, and the cycles from a request to the channel."""

(
    DISPATCH,  # the walker's command of the tile is taken by the units' queues
    IFMAP_READY,  # the first cycle in which a word of this tile's load may cross; -1: no load
    IFMAP_LOADED,  # visible to the walkers
    WEIGHT_READY,
    WEIGHT_LOADED,
    BIAS_READY,
    BIAS_LOADED,
    STATIONARY_START,  # first word of the tile's first stationary load
    POPPED,  # the stream sequencer has taken the command
    STREAM_START,  # first moving word of the tile's first fold
    STREAM_END,  # the cycle after its last moving word
    SUMMED,  # the accumulators are complete, visible to the output stage
    DRAIN_START,  # the output stage may read its first word
    DRAIN_END,  # the cycle after its last read
    FIRST_OUT,  # the first and last ofmap word cross; -1 where the tile completes none
    LAST_OUT,
    WRITTEN,  # the cycle after the last of them has left the off-chip channel, or -1
    WAIT_CONTROL,  # idle cycles of the array before STREAM_START, by what bound them
    WAIT_IFMAP,
    WAIT_WEIGHT,
    WAIT_FILL,
    WAIT_OUTPUT,
    BUBBLE,  # idle cycles between the folds of the tile: the stationary load is the longer
    IFMAP_FIRST,  # the first word of this tile's load crosses; -1: no load
    WEIGHT_FIRST,
    BIAS_FIRST,
    IFMAP_SENT,  # ticks: the channel begins with the piece of a load that goes with this tile
    WEIGHT_SENT,
    BIAS_SENT,
    IFMAP_PIECE,  # words of that piece
    WEIGHT_PIECE,
    BIAS_PIECE,
    PLAN_COLUMNS,
) = range(33)

DRAIN_QUEUE, IFMAP_QUEUE, WEIGHT_QUEUE, BIAS_QUEUE, STREAM_QUEUE, LOAD_QUEUE = range(6)
"""Command queues behind the dispatcher; those of the loaders are numbered as their ports."""

(
    CHANNEL_FREE,  # + channel, ticks: when it has sent what is behind
    ALLOWED,  # + port, ticks before which the channel does not begin with the load under way
    CROSSED,  # + port: cycle of the last crossing
    IDLE,  # + port: when the unit behind the port is idle again
    LOADED,  # + port: when the operand tile in use was loaded
    FREE,  # + port: when the half of the load under way is free; OFMAP: of the next sums
    FREE_NEXT,  # + port: of the load behind it
    FIRST_ARRIVAL,  # + port: the cycle in which the first burst of the load under way has come
    ARRIVAL,  # + port: by how much its words come later than one a cycle from cycle 0 on
) = range(0, 45, 5)
"""The state of the scan, one array: ticks, then cycles.  First those of every port or channel."""

(
    STREAM_ENDED,  # ends of the last fold's stream, of the one before it, of the stationary loads
    EARLIER_ENDED,
    STATIONARY_ENDED,
    ASKED,  # the cycle in which the memory side asks for all loads: that of the layer's command
    VISIBLE,  # the units see the tile's command; that of the tile before
    VISIBLE_BEFORE,
    SUMS_DONE,  # the accumulators of the tile are complete; of the tile before
    SUMS_DONE_BEFORE,
    FIRST_OUT_1,  # first ofmap words of the tiles 1, 2 and 3 before cross
    FIRST_OUT_2,
    FIRST_OUT_3,
    LAST_OUT_1,
    LAST_OUT_2,
    LAST_OUT_3,
    POPS,  # + queue · depth: when it gave up its last entries, in a ring
) = range(45, 60)

QUEUES = 6

(
    HEAD,  # + queue: where the oldest of those entries lies
    LAG,  # + queue: entries that are pushed and not yet given up
) = range(0, 2 * QUEUES, QUEUES)
WAITS = 2 * QUEUES  # + cause: idle cycles of the array before the tile's stream
BUBBLES = WAITS + 5
WORDS = BUBBLES + 1  # + port: words so far, where they have gaps
FIRST_SLOT = WORDS + 5  # + port: with which the load under way begins
PLACES_COLUMNS = FIRST_SLOT + 5
"""What the scan keeps beside times: one array of places, counts and of figures of the last tile."""


class PlanRecord(NamedTuple, Generic[T]):
    """The columns of a plan, by name and in order.

    T: `int` of one tile, an array [tiles] of all tiles of a layer.
    """

    dispatch: T
    ifmap_ready: T
    ifmap_loaded: T
    weight_ready: T
    weight_loaded: T
    bias_ready: T
    bias_loaded: T
    stationary_start: T
    popped: T
    stream_start: T
    stream_end: T
    summed: T
    drain_start: T
    drain_end: T
    first_out: T
    last_out: T
    written: T
    wait_control: T
    wait_ifmap: T
    wait_weight: T
    wait_fill: T
    wait_output: T
    bubble: T
    ifmap_first: T
    weight_first: T
    bias_first: T
    ifmap_sent: T
    weight_sent: T
    bias_sent: T
    ifmap_piece: T
    weight_piece: T
    bias_piece: T

    @property
    def ready(self) -> tuple[T, T, T]:
        """Of ifmap, weights and biases, as all that follow: when words may cross; -1: no load."""
        return self.ifmap_ready, self.weight_ready, self.bias_ready

    @property
    def loaded(self) -> tuple[T, T, T]:
        """When they are visible to the walkers."""
        return self.ifmap_loaded, self.weight_loaded, self.bias_loaded

    @property
    def first(self) -> tuple[T, T, T]:
        """When the first word crosses."""
        return self.ifmap_first, self.weight_first, self.bias_first

    @property
    def sent(self) -> tuple[T, T, T]:
        """Ticks at which the channel begins with a piece."""
        return self.ifmap_sent, self.weight_sent, self.bias_sent

    @property
    def piece(self) -> tuple[T, T, T]:
        """Words of that piece."""
        return self.ifmap_piece, self.weight_piece, self.bias_piece

    @property
    def waits(self) -> tuple[T, T, T, T, T]:
        """Idle cycles before the stream: control, ifmap, weight, filling, output."""
        return (
            self.wait_control,
            self.wait_ifmap,
            self.wait_weight,
            self.wait_fill,
            self.wait_output,
        )


class ServiceRecord(NamedTuple):
    """A row of the service tables."""

    channel: int
    word_ticks: int
    burst_words: int
    latency: int


def plan_columns(plan: IntArray) -> PlanRecord[IntArray]:
    """The columns of a plan, which they share: [tiles] each."""
    return PlanRecord(*plan.T)


def plan_row(plan: IntArray, tile: int) -> PlanRecord[int]:
    """Of one tile; -1 for the last."""
    return PlanRecord(*plan[tile].tolist())


def service_records(services: IntArray) -> dict[str, ServiceRecord]:
    """Rows of the service tables, by port."""
    rows = services.tolist()
    return {name: ServiceRecord(*row) for name, row in zip(PORTS, rows, strict=True)}


def service_table(services: dict[str, ServiceRecord]) -> IntArray:
    """The inverse; ports that are not given have no channel and no latency."""
    none = ServiceRecord(channel=0, word_ticks=0, burst_words=0, latency=0)
    return np.array([services.get(name, none) for name in PORTS], np.int64)
