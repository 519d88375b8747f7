"""A systolic core and its off-chip memory, stepped from the contract: no closed form.

Slow and plain, for `tests/archsim/test_channel.py`: queues are lists, folds and words go one by
one, the channel serves the transfers of `program` in their order.
"""

from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from math import ceil

import numpy as np
from output_rows import completed

from archsim.machines.systolic.design import Systolic
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd

NEVER = 1 << 60
OPERANDS: tuple[str, ...] = ("ifmap", "weight", "bias")
FLAGS = {"ifmap": cmd.LOAD_IFMAP, "weight": cmd.LOAD_WEIGHT, "bias": cmd.HAS_BIAS}
WORDS = {
    "ifmap": cmd.IFMAP_WORDS, "weight": cmd.WEIGHT_WORDS, "bias": cmd.BIAS_WORDS,
    "ofmap": cmd.OUTPUT_WORDS,
}  # fmt: skip


@dataclass
class Transfer:
    """Words of a port's load (or output) of a tile, which the channel moves in one go."""

    port: str
    tile: int
    words: int
    first: bool = True  # of the load


def program(design: Systolic, tiles: IntArray) -> list[Transfer]:
    """The order of the transfers: the program that host and memory side know."""
    slots: list[dict[str, Transfer]] = [{} for _ in range(len(tiles) + 3)]
    for port in ("ifmap", "weight"):
        used = -1
        for tile in np.flatnonzero(tiles[:, FLAGS[port]]).tolist():
            spread = range(used + 1, tile + 1)
            words, sent = int(tiles[tile, WORDS[port]]), 0
            for number, slot in enumerate(spread):
                until = words * (number + 1) // len(spread)
                slots[slot][port] = Transfer(port, tile, until - sent, first=sent == 0)
                sent = until
            used = tile
    found: list[Transfer] = []
    for slot, row in enumerate(slots):
        if slot < len(tiles):
            ports = ["ifmap", "weight"]
            if design.dataflow != "input_stationary":
                ports.reverse()  # the stationary one first, of equals
            lag = {port: int(tiles[slot, WORDS[port]]) for port in ports}
            lag[ports[0]] += folds_of(design, tiles[slot].tolist())[0][0]  # filling the array
            ports.sort(key=lambda port: -lag[port])
            found += [row[port] for port in ports if port in row]
        if 0 <= slot - 1 < len(tiles) and tiles[slot - 1, cmd.HAS_BIAS]:
            found.append(Transfer("bias", slot - 1, int(tiles[slot - 1, cmd.BIAS_WORDS])))
        if slot >= 3 and tiles[slot - 3, cmd.LAST_K]:
            found.append(Transfer("ofmap", slot - 3, int(tiles[slot - 3, cmd.OUTPUT_WORDS])))
    return [one for one in found if one.words]


@dataclass
class Channel:
    """A way to the off-chip memory."""

    queue: deque[Transfer] = field(default_factory=deque)
    free: Fraction = Fraction(0)


def _word_time(design: Systolic, port: str) -> Fraction:
    """Cycles that a word takes of its channel, in 1/65,536, rounded up."""
    memory = design.off_chip
    rate = memory.bytes_per_cycle
    if port == "weight" and memory.weight_bytes_per_cycle is not None:
        rate = memory.weight_bytes_per_cycle
    if rate == 0:
        return Fraction(0)
    bytes_a_word = -(-design.word_bits(port) // 8)
    return Fraction(ceil(bytes_a_word * 65536 / Fraction(round(rate * 1024), 1024)), 65536)


def folds_of(design: Systolic, row: list[int]) -> list[tuple[int, int]]:
    """(stationary words, moving words) of every fold of a tile, in order, one by one."""
    folds: list[tuple[int, int]] = []
    pixels, steps = row[cmd.PIXELS], row[cmd.FILTER_STEPS]
    chunks: list[int] = []
    for _ in range(row[cmd.TAPS] * row[cmd.RUNS]):
        left = row[cmd.RUN_LENGTH]
        while left > 0:
            chunks.append(min(left, design.rows))
            left -= design.rows
    if design.dataflow == "weight_stationary":
        for _ in range(steps):
            folds += [(elements, pixels) for elements in chunks]
    elif design.dataflow == "input_stationary":
        for _ in range(0, pixels, design.columns):
            folds += [(design.columns, steps) for _ in chunks]
    else:
        for _ in range(steps):
            folds += [(0, len(chunks) * design.rows) for _ in range(0, pixels, design.rows)]
    return folds


class Stepped:
    """The run of one layer; afterwards `crossed` has the cycle of every word of every port."""

    def __init__(self, design: Systolic, tiles: IntArray) -> None:
        self.design, self.tiles = design, tiles.tolist()
        self.crossed: dict[str, list[int]] = {port: [] for port in (*OPERANDS, "ofmap")}
        self.written = 0
        self._word_time = {port: _word_time(design, port) for port in self.crossed}
        self._channels = self._make_channels(program(design, tiles))
        self._offers: dict[str, deque[int]] = {port: deque() for port in OPERANDS}
        self._dispatched: list[int] = []
        self._made = design.tile_interval_cycles
        self._queues: dict[str, deque[tuple[int, int]]] = {
            name: deque() for name in (*OPERANDS, "load", "stream", "drain")
        }
        self._loading: dict[str, tuple[int, int] | None] = dict.fromkeys(OPERANDS)
        self._idle: dict[str, int] = dict.fromkeys(OPERANDS, 0)
        self._loads: dict[str, list[int]] = {
            port: [t for t, row in enumerate(self.tiles) if row[FLAGS[port]]] for port in OPERANDS
        }
        self._half_free: dict[str, list[int]] = {
            port: [0, 0] + [NEVER] * len(tiles) for port in (*OPERANDS, "ofmap")
        }
        self._loaded: dict[str, dict[int, int]] = {port: {} for port in OPERANDS}
        self._outputs = [t for t, row in enumerate(self.tiles) if row[cmd.LAST_K]]
        self._complete: dict[int, int] = {}
        self._array = _Array(self)
        self._draining: tuple[int, int, int] | None = None
        self._completes = {at: list(chain(*rows)) for at, rows in completed(design, tiles)}
        self._out_idle = 0
        self._leaving: dict[int, list[int]] = {}

    def _make_channels(self, transfers: list[Transfer]) -> dict[str, Channel]:
        """By port; ports that share one have the same."""
        memory = self.design.off_chip
        one = Channel()
        ways = {
            port: one if memory.shared and memory.bytes_per_cycle else Channel()
            for port in self.crossed
        }
        if memory.weight_bytes_per_cycle is not None:
            ways["weight"] = Channel()
        for transfer in transfers:
            ways[transfer.port].queue.append(transfer)
        return ways

    def run(self) -> int:
        """Step until all outputs are written; how many cycles that takes."""
        cycle = 0
        while any(way.queue for way in self._channels.values()):
            for way in self._channels.values():
                while way.queue and self._serve(way, cycle):
                    pass
            self._dispatch(cycle)
            for port in OPERANDS:
                self._load(port, cycle)
            self._array.step(cycle)
            self._drain(cycle)
            cycle += 1
            assert cycle < 2_000_000, "nothing goes on"
        return self.written

    def _serve(self, way: Channel, cycle: int) -> bool:
        """Let the transfer at the head begin if it can in this cycle."""
        head = way.queue[0]
        word = self._word_time[head.port]
        if head.port == "ofmap":
            crossed = self._leaving.get(head.tile, [])
            if len(crossed) < head.words or crossed[-1] >= cycle:
                return False
            start = max(way.free, *(at + 1 - k * word for k, at in enumerate(crossed)))
            way.free = start + head.words * word
            self.written = ceil(way.free)
            way.queue.popleft()
            return True
        start = way.free
        if head.first:
            number = self._loads[head.port].index(head.tile)
            known = self._half_free[head.port][number], self.design.off_chip.latency_cycles
            start = max(start, *map(Fraction, known))
        if start >= cycle + 1:
            return False
        burst = max(
            1, self.design.off_chip.burst_bytes // -(-self.design.word_bits(head.port) // 8)
        )
        for index in range(head.words):
            whole = min(head.words, (index // burst + 1) * burst)
            self._offers[head.port].append(ceil(start + whole * word))
        way.free = start + head.words * word
        way.queue.popleft()
        return True

    def _dispatch(self, cycle: int) -> None:
        """The walker's next tile command goes to all queues that it concerns."""
        tile = len(self._dispatched)
        if tile == len(self.tiles) or cycle < self._made:
            return
        depth = self.design.command_queue_depth
        if any(len(queue) >= depth for queue in self._queues.values()):
            return
        row = self.tiles[tile]
        wanted = [port for port in OPERANDS if row[FLAGS[port]]] + ["stream"]
        wanted += ["load"] if self.design.dataflow != "output_stationary" else []
        wanted += ["drain"] if row[cmd.LAST_K] else []
        for name in wanted:
            self._queues[name].append((tile, cycle + 1))
        self._dispatched.append(cycle)
        self._made = cycle + self.design.tile_interval_cycles

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
                    self._loading[port] = tile, self.tiles[tile][WORDS[port]]
            return
        tile, left = under_way
        number = self._loads[port].index(tile)
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
            self._loaded[port][number] = cycle + 1

    def loaded(self, port: str, tile: int) -> int:
        """When the operand tile that a tile uses can be read."""
        number = sum(other <= tile for other in self._loads[port]) - 1
        return self._loaded[port].get(number, NEVER)

    def free_half(self, port: str, tile: int, cycle: int) -> None:
        """The half which a tile used is free for the load after the next."""
        number = sum(other <= tile for other in self._loads[port]) - 1
        self._half_free[port][number + 2] = cycle

    def accumulators_free(self, tile: int) -> int:
        """When a tile that begins new sums may do so."""
        return self._half_free["ofmap"][sum(other < tile for other in self._outputs)]

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
                    self._draining = tile, self.tiles[tile][cmd.OUTPUT_ROWS], cycle
            return
        tile, left, taken = self._draining
        if cycle <= taken or self._complete.get(tile, NEVER) > cycle:
            return
        biased = bool(self.tiles[tile][cmd.HAS_BIAS])
        if biased and self.loaded("bias", tile) > cycle:
            return
        leaves = cycle + self.design.output_latency_cycles
        rows = self._completes[tile]
        number = self.tiles[tile][cmd.OUTPUT_ROWS] - left
        words = [leaves] if rows[number] else []
        if left == 1 and len(rows) > number + 1:
            words.append(leaves + 1)
        self.crossed["ofmap"] += words
        self._leaving.setdefault(tile, []).extend(words)
        self._draining = tile, left - 1, taken
        if left == 1:
            self._draining = None
            self._out_idle = cycle + 1
            self._half_free["ofmap"][self._outputs.index(tile) + 2] = cycle + 1
            if biased:
                self.free_half("bias", tile, cycle + 1)


class _Array:
    """The stationary loads and the streams of the folds, word by word."""

    def __init__(self, core: Stepped) -> None:
        self.core, self.design = core, core.design
        self.moves_weights = self.design.dataflow == "input_stationary"
        self.has_loads = self.design.dataflow != "output_stationary"
        self.loads: deque[tuple[int, int]] = deque()  # (tile, words) of the folds taken
        self.streams: deque[tuple[int, int]] = deque()
        self.load_left = self.stream_left = 0
        self.load_taken = self.stream_taken = -1
        self.fresh = False
        self.folds_loaded = self.folds_begun = self.folds_ended = 0
        self.loads_begun = 0

    def step(self, cycle: int) -> None:
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
                self.loads.extend((tile, words) for words, _ in folds_of(self.design, row))
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
                self.streams.extend((tile, words) for _, words in folds_of(self.design, row))
                self.stream_taken = cycle
                self.fresh = bool(row[cmd.FIRST_K])
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
        row = self.core.tiles[tile]
        held = ("ifmap" if self.moves_weights else "weight") if self.has_loads else None
        for port, flag in (("ifmap", cmd.FREE_IFMAP), ("weight", cmd.FREE_WEIGHT)):
            if row[flag] and (port == held) == stationary:
                self.core.free_half(port, tile, cycle)

    def _sum(self, tile: int, cycle: int) -> None:
        row = self.core.tiles[tile]
        if row[cmd.LAST_K]:
            tail = 0 if self.has_loads else (row[cmd.PIXELS] - 1) % self.design.rows
            self.core.complete(tile, cycle + self.design.result_latency_cycles + tail)
