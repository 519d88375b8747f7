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
from archsim.core.commands import COMMAND_FIELDS
from archsim.numbers import IntArray, pack_lanes
from archsim.timing import crossings
from rtl.benches.amaranth_bench import run_amaranth
from rtl.benches.bench import Bench, Outcome, Stimulus, StreamPort
from rtl.benches.verilated import Verilated
from rtl.core.commands import OUTPUT_FIELDS, command_layout
from rtl.core.credits import Credits
from rtl.core.sram import Sram
from rtl.core.vector_output_stage import VectorOutputStage
from rtl.hierarchy import place

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
    """An output tile: sums [pixels, steps · lanes], bias and multiplier, or None without."""

    sums: IntArray
    bias: tuple[IntArray, IntArray] | None
    shift: int
    relu: bool


def random_tiles(output: VectorOutput, count: int, seed: int) -> list[Tile]:
    """Tiles of any shape, whose z are of all sizes: zeros, small, and beyond the limits."""
    rng = np.random.default_rng(seed)
    half, most = 1 << (output.sum_bits - 1), 1 << output.multiplier_bits
    tiles: list[Tile] = []
    for _ in range(count):
        pixels, steps = int(rng.integers(1, 5)), int(rng.integers(1, 12))
        channels = steps * output.lanes
        tops = half >> rng.integers(0, output.sum_bits, (pixels, steps))
        tops = np.repeat(tops, output.lanes, axis=1)
        sums = np.clip(rng.integers(-half, half, (pixels, channels)), -tops, tops - 1)
        sums[rng.random(sums.shape) < 0.2] = 0
        bias = rng.integers(-half, half, channels) >> rng.integers(0, output.sum_bits, channels)
        factors = (bias, rng.integers(0, most, channels))
        used = factors if rng.random() < 0.7 else None
        wide = output.sum_bits + (output.multiplier_bits if used else 0)
        shift = wide - output.high.bit_length() - int(rng.integers(-1, 4))
        shift = int(rng.integers(0, 64)) if rng.random() < 0.1 else max(min(shift, 63), 0)
        tiles.append(Tile(sums=sums, bias=used, shift=shift, relu=bool(rng.random() < 0.3)))
    return tiles


def _steps(output: VectorOutput, tile: Tile) -> int:
    return tile.sums.shape[1] // output.lanes


def ofmap_words(output: VectorOutput, tile: Tile) -> IntArray:
    """The words of a tile as lanes [rows, lanes + vectors a row], by the model."""
    pixels, channels = tile.sums.shape
    one = np.ones(channels, np.int64)
    bias, multiplier = tile.bias or (0 * one, one)
    q, scales = output.compute(tile.sums, bias, multiplier, tile.shift, tile.relu)
    steps = _steps(output, tile)
    order = output.row_order(pixels, steps)
    step, pixel = np.divmod(order, pixels)
    values = q.reshape(pixels, steps, output.lanes)[pixel, step]
    if not output.scaled:
        return values
    first = step * output.lanes // (output.form.vector or 1)
    own = first[:, None] + np.arange(output.vectors_per_row)
    return np.hstack([values, scales[pixel[:, None], own]])


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

    read: list[int] = []
    released: list[int] = []
    bias_released: list[int] = []
    for tile in tiles:
        pixels, steps = len(tile.sums), _steps(output, tile)
        at = fill("sums", pixels * steps, released) + 1
        if tile.bias is not None:
            at = max(at, fill("bias", steps, bias_released) + 1)
        at = max(at, cross("command", released[-1] + 1 if released else 0) + 1)
        for rows in output.vector_rows(pixels, steps).tolist():
            leaving = len(read) + rows - 1 - queue_depth
            at = max(at, crossed["ofmap"][leaving] + 1 if leaving >= 0 else 0)
            for _ in range(rows):
                read.append(at)
                cross("ofmap", at + output.latency_cycles)
                at += 1
        released.append(at - 1)
        if tile.bias is not None:
            bias_released.append(at - 1)
    ready = np.array(read) + output.latency_cycles
    by_identity = crossings(ready, np.cumsum(gaps["ofmap"] + 1))
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
        values |= {"output_words": pixels * steps, "pixels": pixels, "filter_steps": steps}
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
    wanted = np.vstack([ofmap_words(output, tile) for tile in tiles])
    rng = np.random.default_rng(len(wanted))
    counts = {**{name: len(each) for name, each in words.items()}, "ofmap": len(wanted)}
    waits = {
        name: rng.integers(0, gaps + 1, n) * rng.integers(0, 2, n) for name, n in counts.items()
    }
    cycles = reference(output, queue_depth, tiles, waits)
    widths = {"command": 96, "ofmap": output.word_bits, "bias": 7 + output.bias_bits}
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
    lane_bits = (output.form.bits,) * output.lanes
    lane_bits += (output.form.scale_bits or 0,) * (output.vectors_per_row if output.scaled else 0)
    if not np.array_equal(outcome.crossings["ofmap"].words, pack_lanes(wanted, lane_bits)):
        found.append("words")
    if outcome.probes["reads"] != len(wanted):
        found.append("reads")
    return found
