"""The output stage with per-vector scales between streams, and a recurrence for its cycles."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from component_verilog import verilog_of

from archsim.codecs.vector_output import VectorOutput
from archsim.numbers import IntArray, pack_lanes
from archsim.tiled.commands import COMMAND_FIELDS
from archsim.timing import crossings
from rtl.benches.amaranth_bench import run_amaranth
from rtl.benches.bench import Bench, Outcome, Stimulus, StreamPort
from rtl.benches.verilated import Verilated
from rtl.core.commands import OUTPUT_FIELDS, command_layout
from rtl.core.credits import Credits
from rtl.core.sram import Sram
from rtl.core.vector_output_stage import VectorOutputStage
from rtl.hierarchy import place

PACK_CYCLES = 1
"""Of the packer."""

ROWS, STEPS = 64, 16
"""Rows of an accumulator half, and words of a bias half."""


def _filling(bits: int) -> data.StructLayout:
    return data.StructLayout({"last": 1, "address": 6, "word": bits})


class Harness(wiring.Component):
    """The stage with accumulators and bias memory that are filled by streams, a half a tile."""

    def __init__(self, output: VectorOutput, queue_depth: int) -> None:
        self.output = output
        self.queue_depth = queue_depth
        super().__init__(
            {
                "command": In(stream.Signature(command_layout(*OUTPUT_FIELDS))),
                "sums": In(stream.Signature(_filling(output.lanes * output.sum_bits))),
                "bias": In(stream.Signature(_filling(output.bias_bits))),
                "ofmap": Out(stream.Signature(output.word_bits)),
                "reads": Out(16),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ports: Any = self
        sizes = {"depths": (ROWS, STEPS), "queue_depth": self.queue_depth}
        stage = place(m, "stage", VectorOutputStage, output=self.output, **sizes)
        wiring.connect(m, wiring.flipped(ports.command), stage.command)
        wiring.connect(m, stage.ofmap, wiring.flipped(ports.ofmap))
        half, write, word = self._filled(m, "sums", stage.released, stage.summed)
        m.d.comb += self._filled_bias(m, stage)
        reads: list[Signal] = []
        for number in range(2):
            bits = self.output.lanes * self.output.sum_bits
            store = place(m, f"half_{number}", Sram, bits=bits, depth=ROWS)
            m.d.comb += [
                store.write.eq(write & (half == number)),
                store.write_address.eq(word.address),
                store.write_data.eq(word.word),
                store.read_address.eq(stage.read_address),
            ]
            reads.append(store.read_data)
        selected = Signal()
        m.d.sync += [selected.eq(stage.read_half), ports.reads.eq(ports.reads + stage.count_read)]
        m.d.comb += stage.read_data.eq(Mux(selected, reads[1], reads[0]))
        return m

    def _filled(self, m: Module, name: str, free: Value, full: Value) -> tuple[Signal, Value, Any]:
        """The half that is written, whether a word is, and the word; `full` with the last."""
        port = getattr(self, name)
        starting, half = Signal(init=1, name=f"{name}_starts"), Signal(name=f"{name}_half")
        halves = place(m, f"{name}_halves", Credits, initial=2, limit=2)
        crosses = port.valid & port.ready
        m.d.comb += [
            port.ready.eq(~starting | halves.available),
            halves.give.eq(free),
            halves.take.eq(crosses & starting),
            full.eq(crosses & port.payload.last),
        ]
        with m.If(crosses):
            m.d.sync += [starting.eq(port.payload.last), half.eq(half ^ port.payload.last)]
        return half, crosses, port.payload

    def _filled_bias(self, m: Module, stage: Any) -> list[Any]:
        half, write, word = self._filled(m, "bias", stage.bias_released, stage.bias_loaded)
        return [
            stage.bias_write.eq(write),
            stage.bias_write_half.eq(half),
            stage.bias_write_address.eq(word.address),
            stage.bias_write_data.eq(word.word),
        ]


@dataclass(frozen=True, kw_only=True)
class Tile:
    """An output tile: sums [pixels, steps · lanes], bias and multiplier, or None without.

    lanes: channels of the last step, behind which sums and biases are 0; ends: the layer's last.
    """

    sums: IntArray
    bias: tuple[IntArray, IntArray] | None
    shift: int
    relu: bool
    lanes: int
    ends: bool


def random_tiles(output: VectorOutput, count: int, seed: int) -> list[Tile]:
    """Tiles of any shape, whose z are of all sizes: zeros, small, and beyond the limits."""
    rng = np.random.default_rng(seed)
    half, most = 1 << (output.sum_bits - 1), 1 << output.multiplier_bits
    tiles: list[Tile] = []
    for number in range(count):
        pixels, steps = int(rng.integers(1, 5)), int(rng.integers(1, 12))
        channels = steps * output.lanes
        tops = half >> rng.integers(0, output.sum_bits, (pixels, steps))
        tops = np.repeat(tops, output.lanes, axis=1)
        sums = np.clip(rng.integers(-half, half, (pixels, channels)), -tops, tops - 1)
        sums[rng.random(sums.shape) < 0.2] = 0
        bias = rng.integers(-half, half, channels) >> rng.integers(0, output.sum_bits, channels)
        lanes = output.lanes if rng.random() < 0.4 else int(rng.integers(1, output.lanes + 1))
        missing = channels - output.lanes + lanes
        sums[:, missing:] = bias[missing:] = 0
        factors = (bias, rng.integers(0, most, channels))
        used = factors if rng.random() < 0.7 else None
        wide = output.sum_bits + (output.multiplier_bits if used else 0)
        shift = wide - output.high.bit_length() - int(rng.integers(-1, 4))
        shift = int(rng.integers(0, 64)) if rng.random() < 0.1 else max(min(shift, 63), 0)
        relu, ends = bool(rng.random() < 0.3), number + 1 == count or bool(rng.random() < 0.3)
        tile = Tile(sums=sums, bias=used, shift=shift, relu=relu, lanes=lanes, ends=ends)
        tiles.append(tile)
    return tiles


def _steps(output: VectorOutput, tile: Tile) -> int:
    return tile.sums.shape[1] // output.lanes


def rows_of(output: VectorOutput, tile: Tile) -> list[list[tuple[int, int, int]]]:
    """Of every vector in the order in which they leave, its rows: (pixel, step, its channels)."""
    pixels, steps = len(tile.sums), _steps(output, tile)
    return [
        [
            (pixel, step, output.lanes if step + 1 < steps else tile.lanes)
            for step in range(first, min(first + output.rows_per_vector, steps))
        ]
        for first in range(0, steps, output.rows_per_vector)
        for pixel in range(pixels)
    ]


def _parts(output: VectorOutput, tile: Tile) -> list[list[list[tuple[int, int]]]]:
    """The same, as what leaves: (number, bits) of scales and values, by the model."""
    one = np.ones(tile.sums.shape[1], np.int64)
    bias, multiplier = tile.bias or (0 * one, one)
    q, scales = output.compute(tile.sums, bias, multiplier, tile.shift, tile.relu)
    vector, bits = output.form.vector or 0, output.form.bits
    answer: list[list[list[tuple[int, int]]]] = []
    for rows in rows_of(output, tile):
        answer.append([])
        for pixel, step, lanes in rows:
            parts: list[tuple[int, int]] = []
            for channel in range(step * output.lanes, step * output.lanes + lanes):
                if output.scaled and channel % vector == 0:
                    scale = int(scales[pixel, channel // vector])
                    parts.append((scale, output.form.scale_bits or 0))
                parts.append((int(q[pixel, channel]) % (1 << bits), bits))
            answer[-1].append(parts)
    return answer


def ofmap_words(output: VectorOutput, tiles: list[Tile]) -> tuple[list[int], list[list[list[int]]]]:
    """The words of all tiles, packed bit by bit; how many each row of each vector completes.

    The counts are [tiles][vectors][rows]; a word that ends a layer is a last vector of its own.
    """
    words: list[int] = []
    counts: list[list[list[int]]] = []
    begun = filled = 0
    for tile in tiles:
        counts.append([])
        for rows in _parts(output, tile):
            counts[-1].append([])
            for parts in rows:
                for number, bits in parts:
                    begun |= number << filled
                    filled += bits
                full = filled >= output.word_bits
                counts[-1][-1].append(int(full))
                if full:
                    words.append(begun & ((1 << output.word_bits) - 1))
                    begun, filled = begun >> output.word_bits, filled - output.word_bits
        if tile.ends and filled:
            words.append(begun)
            counts[-1].append([1])
            begun = filled = 0
    return words, counts


Gaps = dict[str, IntArray]


def reference(
    output: VectorOutput, queue_depth: int, tiles: list[Tile], gaps: Gaps
) -> dict[str, list[int]]:
    """The cycles in which words cross every port, of a recurrence over vectors."""
    crossed: dict[str, list[int]] = {name: [] for name in gaps}

    def cross(port: str, earliest: int) -> int:
        known = crossed[port]
        gap = int(gaps[port][len(known)])
        known.append(max(earliest, (known[-1] if known else -1) + 1 + gap))
        return known[-1]

    def fill(port: str, words: int, released: list[int]) -> int:
        tile = len(released)
        earliest = released[tile - 2] + 1 if tile >= 2 else 0
        return [cross(port, earliest) for _ in range(words)][-1]

    ready: list[int] = []
    released: list[int] = []
    bias_released: list[int] = []
    ended = 0
    for tile, vectors in zip(tiles, ofmap_words(output, tiles)[1], strict=True):
        pixels, steps = len(tile.sums), _steps(output, tile)
        at = fill("sums", pixels * steps, released) + 1
        if tile.bias is not None:
            at = max(at, fill("bias", steps, bias_released) + 1)
        at = max(at, cross("command", ended) + 1)
        reads, ended = pixels * steps, 0
        for completes in vectors:
            leaving = len(ready) + sum(completes) - 1 - queue_depth
            if sum(completes) and leaving >= 0:
                at = max(at, crossed["ofmap"][leaving] + 1)
            for word in completes:
                if word:
                    ready.append(at + output.latency_cycles + PACK_CYCLES)
                    cross("ofmap", ready[-1])
                at, reads = at + 1, reads - 1
                ended = at if reads == 0 else ended
        released.append(ended - 1)
        if tile.bias is not None:
            bias_released.append(ended - 1)
        ended = at
    by_identity = crossings(np.array(ready), np.cumsum(gaps["ofmap"] + 1))
    assert by_identity.tolist() == crossed["ofmap"]
    return crossed


def _filling_words(rows: IntArray, bits: tuple[int, ...]) -> np.ndarray[Any, Any]:
    place_columns = np.column_stack([np.arange(len(rows)) == len(rows) - 1, np.arange(len(rows))])
    return pack_lanes(np.hstack([place_columns, rows]).astype(np.int64), (1, 6, *bits))


def stimulus_words(output: VectorOutput, tiles: list[Tile]) -> dict[str, np.ndarray[Any, Any]]:
    """The words of the ports sums, bias and command."""
    lanes, bits = output.lanes, (output.sum_bits,) * output.lanes
    factors = (output.multiplier_bits,) * lanes
    found: dict[str, list[np.ndarray[Any, Any]]] = {
        "sums": [],
        "bias": [np.zeros((0, (7 + output.bias_bits + 7) // 8), np.uint8)],
        "command": [],
    }
    for tile in tiles:
        pixels, steps = len(tile.sums), _steps(output, tile)
        by_step = tile.sums.reshape(pixels, steps, lanes).swapaxes(0, 1)
        found["sums"].append(_filling_words(by_step.reshape(-1, lanes), bits))
        if tile.bias is not None:
            word = np.hstack([part.reshape(steps, lanes) for part in tile.bias])
            found["bias"].append(_filling_words(word, bits + factors))
        values = {"has_bias": tile.bias is not None, "relu": tile.relu, "shift": tile.shift}
        values |= {"output_rows": pixels * steps, "pixels": pixels, "filter_steps": steps}
        values |= {"step_lanes": tile.lanes, "ends_layer": tile.ends}
        values["multiplier"] = 0xAAAA  # of no use here
        fields = [field for field in COMMAND_FIELDS if field.name in OUTPUT_FIELDS]
        command = np.array([[int(values[field.name]) for field in fields]])
        found["command"].append(pack_lanes(command, tuple(field.bits for field in fields)))
    return {name: np.vstack(words) for name, words in found.items()}


Run = Callable[[Bench], Outcome]


def simulated(output: VectorOutput, queue_depth: int) -> Run:
    return lambda bench: run_amaranth(Harness(output, queue_depth), bench)


def compiled(output: VectorOutput, queue_depth: int) -> Run:
    """What is emitted, compiled by Verilator."""
    return Verilated(verilog_of(Harness(output, queue_depth))).run


def differences(
    output: VectorOutput, tiles: list[Tile], queue_depth: int, gaps: int, run: Run | None = None
) -> list[str]:
    """Where RTL and reference differ: ports whose cycles do, and the ofmap's words."""
    words = stimulus_words(output, tiles)
    wanted, _ = ofmap_words(output, tiles)
    rng = np.random.default_rng(len(wanted))
    counts = {**{name: len(each) for name, each in words.items()}, "ofmap": len(wanted)}
    waits = {
        name: rng.integers(0, gaps + 1, n) * rng.integers(0, 2, n) for name, n in counts.items()
    }
    cycles = reference(output, queue_depth, tiles, waits)
    widths = {
        "command": command_layout(*OUTPUT_FIELDS).size,
        "ofmap": output.word_bits,
        "bias": 7 + output.bias_bits,
    }
    widths["sums"] = 7 + output.lanes * output.sum_bits
    stimuli = {n: Stimulus.offer(each, gaps=waits[n]) for n, each in words.items()}
    bench = Bench(
        ports=tuple(
            StreamPort(name=n, direction="o" if n == "ofmap" else "i", bits=widths[n])
            for n in ("command", "sums", "bias", "ofmap")
        ),
        probes=(("reads", 16),),
        stimuli={**stimuli, "ofmap": Stimulus.accept(len(wanted), gaps=waits["ofmap"])},
        max_cycles=max(cycles["ofmap"]) + 100,
        tail_cycles=30,
    )
    outcome = (run or simulated(output, queue_depth))(bench)
    found = [n for n in counts if outcome.crossings[n].cycles.tolist() != cycles[n]]
    octets = (output.word_bits + 7) // 8
    packed = [list(word.to_bytes(octets, "little")) for word in wanted]
    if outcome.crossings["ofmap"].words.tolist() != packed:
        found.append("words")
    if outcome.probes["reads"] != len(words["sums"]):
        found.append("reads")
    return found
