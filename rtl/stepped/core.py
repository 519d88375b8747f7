"""A core that is walked by tiles and its off-chip memory, stepped from the contract.

Slow and plain: queues are lists, folds and words go one by one, the channel serves the transfers
of `program` in their order.
"""

from __future__ import annotations

from collections import deque
from itertools import accumulate, chain

from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled.commands import commands_of
from archsim.tiled.design import CoreDesign
from archsim.tiled.machine_vector import machine_record
from rtl.stepped.array import Array
from rtl.stepped.channel import (
    OPERANDS,
    TICKS,
    Channel,
    channels,
    loaded_words,
    program,
    word_ticks,
)
from rtl.stepped.output_rows import completed

NEVER = 1 << 60
MOST_CYCLES = 2_000_000


class Stepped:
    """The run of one layer; afterwards `crossed` has the cycle of every word of every port."""

    def __init__(self, design: CoreDesign, tiles: IntArray) -> None:
        """tiles: [tiles, WALK_COLUMNS], the commands of the layer's tiles."""
        self.machine, self.memory = machine_record(design.machine), design.off_chip
        self.tiles = commands_of(tiles)
        self.crossed: dict[str, list[int]] = {port: [] for port in (*OPERANDS, "ofmap")}
        self.written = 0
        bits = {port: design.word_bits(port) for port in self.crossed}
        self._bytes = {port: -(-each // 8) for port, each in bits.items()}
        self._ticks = {port: word_ticks(self.memory, port, each) for port, each in bits.items()}
        by_port = channels(self.memory, program(self.machine, self.tiles))
        self._ways = list({id(way): way for way in by_port.values()}.values())
        self._offers: dict[str, deque[int]] = {port: deque() for port in OPERANDS}
        self._dispatched: list[int] = []
        self._made = self.machine.tile_interval
        self._queues: dict[str, deque[tuple[int, int]]] = {
            name: deque() for name in (*OPERANDS, "load", "stream", "drain")
        }
        self._loading: dict[str, tuple[int, int] | None] = dict.fromkeys(OPERANDS)
        self._idle: dict[str, int] = dict.fromkeys(OPERANDS, 0)
        self._number = {port: self._loads_until(port) for port in OPERANDS}
        """By port and tile, the number of the load that the tile uses."""
        self._half_free: dict[str, list[int]] = {
            port: [0, 0] + [NEVER] * len(tiles) for port in (*OPERANDS, "ofmap")
        }
        one = self.machine
        latencies = one.ifmap_write_latency, one.weight_write_latency, one.bias_write_latency
        self._write_latency = dict(zip(OPERANDS, latencies, strict=True))
        self._loaded: dict[str, dict[int, int]] = {port: {} for port in OPERANDS}
        self._outputs = [0, *accumulate(bool(row.last_k) for row in self.tiles)]
        """By tile, outputs before it."""
        self._complete: dict[int, int] = {}
        self._array = Array(self)
        self._draining: tuple[int, int, int] | None = None
        self._completes = {
            at: list(chain(*rows)) for at, rows in completed(self.machine, self.tiles)
        }
        self._out_idle = 0
        self._leaving: dict[int, list[int]] = {}

    def _loads_until(self, port: str) -> list[int]:
        """By tile, the number of its load, or of the one before that it uses; -1 before all."""
        begun = (loaded_words(row, port) is not None for row in self.tiles)
        return [count - 1 for count in accumulate(begun)]

    def run(self, most: int = MOST_CYCLES) -> int | None:
        """Step until all outputs are sent; the cycles until the off-chip memory has them.

        None where some are left after `most` cycles.
        """
        cycle = 0
        while cycle < most and any(way.queue for way in self._ways):
            for way in self._ways:
                while way.queue and self._serve(way, cycle):
                    pass
            self._dispatch(cycle)
            for port in OPERANDS:
                self._load(port, cycle)
            self._array.step(cycle)
            self._drain(cycle)
            cycle += 1
        return None if any(way.queue for way in self._ways) else self.written

    def _serve(self, way: Channel, cycle: int) -> bool:
        """Let the transfer at the head begin if it can in this cycle."""
        head = way.queue[0]
        ticks = self._ticks[head.port]
        if head.port == "ofmap":
            crossed = self._leaving.get(head.tile, [])
            if len(crossed) < head.words or crossed[-1] >= cycle:
                return False
            ready = ((at + 1) * TICKS - k * ticks for k, at in enumerate(crossed))
            way.free = max(way.free, *ready) + head.words * ticks
            self.written = -(-way.free // TICKS)
            way.queue.popleft()
            return True
        start = way.free
        if head.first:
            free = self._half_free[head.port][self._number[head.port][head.tile]]
            start = max(start, free * TICKS, self.memory.latency_cycles * TICKS)
        if start >= (cycle + 1) * TICKS:
            return False
        burst = max(1, self.memory.burst_bytes // self._bytes[head.port])
        for index in range(head.words):
            whole = min(head.words, (index // burst + 1) * burst)
            self._offers[head.port].append(-(-(start + whole * ticks) // TICKS))
        way.free = start + head.words * ticks
        way.queue.popleft()
        return True

    def _dispatch(self, cycle: int) -> None:
        """The walker's next tile command goes to all queues that it concerns."""
        tile = len(self._dispatched)
        if tile == len(self.tiles) or cycle < self._made:
            return
        depth = self.machine.command_queue
        if any(len(queue) >= depth for queue in self._queues.values()):
            return
        row = self.tiles[tile]
        wanted = [port for port in OPERANDS if loaded_words(row, port) is not None] + ["stream"]
        wanted += ["load"] if self.machine.dataflow != mc.OUTPUT_STATIONARY else []
        wanted += ["drain"] if row.last_k else []
        for name in wanted:
            self._queues[name].append((tile, cycle + 1))
        self._dispatched.append(cycle)
        self._made = cycle + self.machine.tile_interval

    def take(self, name: str, cycle: int) -> int | None:
        """The command that a unit takes in this cycle, if there is one to be seen."""
        queue = self._queues[name]
        if not queue or queue[0][1] > cycle:
            return None
        return queue.popleft()[0]

    def _load(self, port: str, cycle: int) -> None:
        """A loader takes a command, then, from the next cycle on, a word a cycle."""
        under_way = self._loading[port]
        if under_way is None:
            if cycle >= self._idle[port]:
                tile = self.take(port, cycle)
                if tile is not None:
                    self._loading[port] = tile, loaded_words(self.tiles[tile], port) or 0
            return
        tile, left = under_way
        number = self._number[port][tile]
        if self._half_free[port][number] > cycle:
            return
        if not self._offers[port] or self._offers[port][0] > cycle:
            return
        self._offers[port].popleft()
        self.crossed[port].append(cycle)
        self._loading[port] = tile, left - 1
        if left == 1:
            self._loading[port] = None
            self._idle[port] = cycle + 1
            self._loaded[port][number] = cycle + 1 + self._write_latency[port]

    def loaded(self, port: str, tile: int) -> int:
        """When the operand tile that a tile uses can be read."""
        number = self._number[port][tile]
        return self._loaded[port].get(number, NEVER)

    def free_half(self, port: str, tile: int, cycle: int) -> None:
        """The half which a tile used is free for the load after the next."""
        number = self._number[port][tile]
        self._half_free[port][number + 2] = cycle

    def accumulators_free(self, tile: int) -> int:
        """When a tile that begins new sums may do so."""
        return self._half_free["ofmap"][self._outputs[tile]]

    def complete(self, tile: int, cycle: int) -> None:
        """All sums of an output tile are there from a cycle on."""
        self._complete[tile] = cycle

    def _drain(self, cycle: int) -> None:
        """The output stage takes a command, then reads a row a cycle; the port never waits.

        Rows complete words; what is left of one at the layer's end leaves as if a row followed.
        """
        if self._draining is None:
            if cycle >= self._out_idle:
                tile = self.take("drain", cycle)
                if tile is not None:
                    self._draining = tile, self.tiles[tile].output_rows, cycle
            return
        tile, left, taken = self._draining
        if cycle <= taken or self._complete.get(tile, NEVER) > cycle:
            return
        biased = bool(self.tiles[tile].has_bias)
        if biased and self.loaded("bias", tile) > cycle:
            return
        leaves = cycle + self.machine.output_latency
        rows = self._completes[tile]
        number = self.tiles[tile].output_rows - left
        words = [leaves] if rows[number] else []
        if left == 1 and len(rows) > number + 1:
            words.append(leaves + 1)
        self.crossed["ofmap"] += words
        self._leaving.setdefault(tile, []).extend(words)
        self._draining = tile, left - 1, taken
        if left == 1:
            self._draining = None
            self._out_idle = cycle + 1
            self._half_free["ofmap"][self._outputs[tile] + 2] = cycle + 1
            if biased:
                self.free_half("bias", tile, cycle + 1)


__all__ = ["Stepped"]
