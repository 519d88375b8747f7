"""The stationary loads and the streams of a tile's folds, word by word."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from archsim.tiled import machine_vector as mc
from archsim.tiled.commands import TileCommand
from archsim.tiled.machine_vector import MachineRecord

if TYPE_CHECKING:
    from rtl.stepped.core import Stepped


def folds_of(machine: MachineRecord, row: TileCommand[int]) -> list[tuple[int, int]]:
    """(stationary words, moving words) of every fold of a tile, in order, one by one.

    row: the tile's command.
    """
    pixels, steps = row.pixels, row.filter_steps
    chunks = _chunks(machine, row)
    if machine.dataflow == mc.WEIGHT_STATIONARY:
        return [(elements, pixels) for _ in range(steps) for elements in chunks]
    if machine.dataflow == mc.INPUT_STATIONARY:
        blocks = range(0, pixels, machine.columns)
        return [(machine.columns, steps) for _ in blocks for _ in chunks]
    blocks = [min(machine.rows, pixels - first) for first in range(0, pixels, machine.rows)]
    return [(0, len(chunks) * (machine.slots or block)) for _ in range(steps) for block in blocks]


def _chunks(machine: MachineRecord, row: TileCommand[int]) -> list[int]:
    """Elements of every part of a run that a fold takes, of all runs of the kernel."""
    found: list[int] = []
    for _ in range(row.taps * row.runs):
        left = row.run_length
        while left > 0:
            found.append(min(left, machine.chunk))
            left -= machine.chunk
    return found


class Array:
    """What takes the sequencers' commands; afterwards sums are complete, and operands free."""

    def __init__(self, core: Stepped) -> None:
        self.core, self.machine = core, core.machine
        self.moves_weights = self.machine.dataflow == mc.INPUT_STATIONARY
        self.has_loads = self.machine.dataflow != mc.OUTPUT_STATIONARY
        self.loads: deque[tuple[int, int]] = deque()  # (tile, words) of the folds taken
        self.streams: deque[tuple[int, int]] = deque()
        self.load_left = self.stream_left = 0
        self.load_taken = self.stream_taken = -1
        self.fresh = False
        self.folds_loaded = self.folds_begun = self.folds_ended = 0
        self.loads_begun = 0

    def step(self, cycle: int) -> None:
        """A cycle of both."""
        # a stream that ended in the cycle before has made room for a load, and the other way round
        if self.has_loads:
            self._step_load(cycle)
        self._step_stream(cycle)
        self._finish(cycle)

    def _step_load(self, cycle: int) -> None:
        if self.load_left == 0 and not self.loads:
            tile = self.core.take("load", cycle)
            if tile is not None:
                row = self.core.tiles[tile]
                self.loads.extend((tile, words) for words, _ in folds_of(self.machine, row))
                self.load_taken = cycle
            return
        if self.load_left == 0:
            tile, words = self.loads[0]
            operand = "ifmap" if self.moves_weights else "weight"
            both_banks_used = self.loads_begun - self.folds_ended >= 2
            if cycle <= self.load_taken or both_banks_used:
                return
            if self.core.loaded(operand, tile) > cycle:
                return
            self.load_left, self.loads_begun = words, self.loads_begun + 1

    def _step_stream(self, cycle: int) -> None:
        if self.stream_left == 0 and not self.streams:
            tile = self.core.take("stream", cycle)
            if tile is not None:
                row = self.core.tiles[tile]
                self.streams.extend((tile, words) for _, words in folds_of(self.machine, row))
                self.stream_taken = cycle
                self.fresh = bool(row.first_k)
            return
        if self.stream_left == 0:
            tile, words = self.streams[0]
            filled = not self.has_loads or self.folds_loaded > self.folds_begun
            there = max(self.core.loaded("ifmap", tile), self.core.loaded("weight", tile))
            if self.fresh:
                there = max(there, self.core.accumulators_free(tile))
            if cycle <= self.stream_taken or not filled or there > cycle:
                return
            self.stream_left, self.folds_begun = words, self.folds_begun + 1

    def _finish(self, cycle: int) -> None:
        """A word of each goes in this cycle."""
        if self.load_left:
            self.load_left -= 1
            if self.load_left == 0:
                tile, _ = self.loads.popleft()
                self.folds_loaded += 1
                if not self.loads:
                    self._free(tile, stationary=True, cycle=cycle + 1)
        if self.stream_left:
            self.stream_left -= 1
            if self.stream_left == 0:
                tile, _ = self.streams.popleft()
                self.folds_ended += 1
                if not self.streams:
                    self._free(tile, stationary=False, cycle=cycle + 1)
                    self._sum(tile, cycle + 1)

    def _free(self, tile: int, *, stationary: bool, cycle: int) -> None:
        """Halves of operands that no later tile needs; what is read later is free later."""
        row = self.core.tiles[tile]
        held = ("ifmap" if self.moves_weights else "weight") if self.has_loads else None
        waits = self.machine.ifmap_read_wait, self.machine.weight_read_wait
        frees = ("ifmap", row.free_ifmap), ("weight", row.free_weight)
        for (port, free), wait in zip(frees, waits, strict=True):
            if free and (port == held) == stationary:
                self.core.free_half(port, tile, cycle + wait)

    def _sum(self, tile: int, cycle: int) -> None:
        row = self.core.tiles[tile]
        if row.last_k:
            skewed = not self.has_loads and self.machine.slots
            tail = (row.pixels - 1) % self.machine.rows if skewed else 0
            self.core.complete(tile, cycle + self.machine.result_latency + tail)


__all__ = ["Array", "folds_of"]
