"""Floating accumulators with their output stage between streams, compared with the models."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from component_verilog import verilog_of
from float_sum_bench import NEAREST, Sizes

from archsim.arithmetic.cases import random_operands
from archsim.arithmetic.float_sum import FloatOutput, add_floats, adder
from archsim.arithmetic.formats import FP16, FP32
from archsim.numbers import IntArray, pack_lanes, unpack_lanes
from rtl.benches.amaranth_bench import run_amaranth
from rtl.benches.bench import Bench, Outcome, Stimulus, StreamPort
from rtl.benches.verilated import Verilated
from rtl.core.commands import OUTPUT_FIELDS, command_layout
from rtl.core.credits import Credits
from rtl.core.float_accumulators import FloatAccumulators
from rtl.core.float_output import FloatOutputStage
from rtl.core.sram import address_bits
from rtl.hierarchy import place


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """A core of accumulators and output stage alone."""

    sizes: Sizes
    output: FloatOutput
    scalar_bias: bool = False
    bias_depth: int = 4
    queue_depth: int = 8

    @property
    def bias_lanes(self) -> int:
        return 1 if self.scalar_bias else self.sizes.columns

    @property
    def port_bits(self) -> dict[str, int]:
        """Of what `Chain` takes and gives."""
        sizes, bits = self.sizes, self.sizes.accumulator.bits
        return {
            "rows": sizes.columns * bits + address_bits(sizes.depth) + 4,
            "bias": self.bias_lanes * bits + address_bits(self.bias_depth) + 3,
            "command": command_layout(*OUTPUT_FIELDS).size,
            "ofmap": sizes.columns * self.output.ofmap.bits,
        }


class Chain(wiring.Component):
    """Rows of sums in, words of the ofmap out, a command an output tile.

    Members
    -------
    rows: {sums, address, last, overwrite, half, first of a tile}; bias: {word, address, half, first
    of a tile, last}; command, ofmap: of the output stage.
    """

    def __init__(self, tiles: Tiles) -> None:
        self.tiles = tiles
        bits = tiles.port_bits
        super().__init__(
            {
                "rows": In(stream.Signature(bits["rows"])),
                "bias": In(stream.Signature(bits["bias"])),
                "command": In(stream.Signature(command_layout(*OUTPUT_FIELDS))),
                "ofmap": Out(stream.Signature(bits["ofmap"])),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        tiles, sizes = self.tiles, self.tiles.sizes
        accumulators = place(
            m, "accumulators", FloatAccumulators, columns=sizes.columns, depth=sizes.depth,
            accumulator=sizes.accumulator, rules=sizes.rules,
        )  # fmt: skip
        stage = place(
            m, "output_stage", FloatOutputStage, columns=sizes.columns, output=tiles.output,
            depths=(sizes.depth, tiles.bias_depth), queue_depth=tiles.queue_depth,
            scalar_bias=tiles.scalar_bias,
        )  # fmt: skip
        ports: Any = self
        wiring.connect(m, wiring.flipped(ports.command), stage.command)
        wiring.connect(m, stage.ofmap, wiring.flipped(ports.ofmap))
        half, overwrite, last, address, sums, crosses = self._taken(m, "rows", stage.released)
        token, late = accumulators.token, Signal(len(sums))
        m.d.sync += late.eq(sums)
        m.d.comb += [
            token.valid.eq(crosses),
            token.half.eq(half),
            token.overwrite.eq(overwrite),
            token.last.eq(last),
            token.address.eq(address),
            accumulators.sums.eq(late),
            stage.summed.eq(accumulators.done),
            accumulators.read_half.eq(stage.read_half),
            accumulators.read_address.eq(stage.read_address),
            stage.read_data.eq(accumulators.read_data),
        ]
        half, last, address, word, crosses = self._taken(m, "bias", stage.bias_released)
        loaded = Signal()
        m.d.sync += loaded.eq(crosses & last)
        m.d.comb += [
            stage.bias_loaded.eq(loaded),
            stage.bias_write.eq(crosses),
            stage.bias_write_half.eq(half),
            stage.bias_write_address.eq(address),
            stage.bias_write_data.eq(word),
        ]
        return m

    def _taken(self, m: Module, name: str, released: Any) -> list[Any]:
        """The fields of a word but the first, which waits for a free half; whether it crosses."""
        port = getattr(self, name)
        flags, depth = (4, self.tiles.sizes.depth) if name == "rows" else (3, self.tiles.bias_depth)
        at = flags + address_bits(depth)
        word = port.payload
        free = place(m, f"{name}_free", Credits, initial=2, limit=2)
        crosses = port.valid & port.ready
        m.d.comb += [
            port.ready.eq(~word[0] | free.available),
            free.give.eq(released),
            free.take.eq(crosses & word[0]),
        ]
        return [*(word[n] for n in range(1, flags)), word[flags:at], word[at:], crosses]


@dataclass(frozen=True, kw_only=True)
class Tile:
    """A command, the bias words [steps, lanes] and the rows of sums, twice over [2, n, columns].

    lanes: that have an output in the rows of the last step, or with a scalar bias of the last
    block, of which `pixels` is the number; ends: it is a layer's last tile.
    """

    steps: int
    pixels: int
    relu: int
    bias: IntArray | None
    sums: IntArray
    lanes: int = 1
    ends: int = 1


def _aimed(output: FloatOutput, count: int, rng: np.random.Generator) -> IntArray:
    """Sums at, between and beside numbers of the ofmap, a half of them subnormal there."""
    form = output.ofmap
    patterns = rng.integers(0, form.infinity, count)
    patterns[::2] &= (1 << form.fraction_bits) - 1
    low, high = form.decode(patterns), form.decode(patterns + rng.integers(0, 2, count))
    with np.errstate(invalid="ignore"):
        sums = output.accumulator.encode(rng.choice([-1, 1], count) * (low + high) / 2)
    return sums ^ rng.integers(0, 2, count)


def random_tiles(tiles: Tiles, count: int, seed: int) -> list[Tile]:
    """Any tiles; some rows add nothing to the sums, and some biases are 0."""
    rng = np.random.default_rng(seed)
    sizes = tiles.sizes
    made: list[Tile] = []
    for n in range(count):
        steps = int(rng.integers(1, min(tiles.bias_depth, sizes.depth) + 1))
        pixels = int(rng.integers(1, sizes.depth // steps + 1))
        any_ = random_operands(adder(sizes.accumulator, sizes.rules), 30, seed + n)
        pool = np.concatenate([any_.a[:, 0], any_.c, _aimed(tiles.output, 400, rng)])
        sums = rng.choice(pool, (2, steps * pixels, sizes.columns))
        sums[1] *= rng.integers(0, 2, sums[1].shape)
        bias = rng.choice(pool, (steps, tiles.bias_lanes))
        bias *= rng.integers(0, 2, bias.shape)
        made.append(
            Tile(
                steps=steps, pixels=pixels, relu=int(rng.integers(0, 2)), sums=sums,
                bias=bias if rng.random() < 0.7 else None,
                lanes=int(rng.integers(1, sizes.columns + 1)),
                ends=int(n + 1 == count or rng.random() < 0.3),
            )
        )  # fmt: skip
    return made


def words_of(tiles: Tiles, tile: Tile) -> IntArray:
    """The ofmap of a tile, [n, columns]: all rows overwritten once, and added to once."""
    sizes = tiles.sizes
    total = add_floats(adder(sizes.accumulator, sizes.rules), *tile.sums)
    if tile.bias is None:
        return tiles.output.compute(total, 0, bool(tile.relu))
    n = np.arange(len(total))
    step = n % tile.steps if tiles.scalar_bias else n // tile.pixels
    return tiles.output.compute(total, tile.bias[step], bool(tile.relu))


def packed(tiles: Tiles, all_tiles: list[Tile]) -> IntArray:
    """The ofmap of layers of tiles: the lanes that have outputs, in whole words [n, columns]."""
    columns, found = tiles.sizes.columns, list[int]()
    for tile in all_tiles:
        rows = words_of(tiles, tile)
        of_last = tile.steps if tiles.scalar_bias else tile.pixels
        for n, row in enumerate(rows.tolist()):
            found += row[: tile.lanes if n >= len(rows) - of_last else columns]
        if tile.ends:
            found += [0] * (-len(found) % columns)
    return np.array(found).reshape(-1, columns)


def _words(lanes: list[list[int]], widths: tuple[int, ...]) -> Any:
    return pack_lanes(np.array(lanes, np.int64).reshape(-1, len(widths)), widths)


def stimuli(tiles: Tiles, all_tiles: list[Tile], gaps: int) -> dict[str, Any]:
    """The words of every input port."""
    sizes, bits = tiles.sizes, tiles.sizes.accumulator.bits
    rows: list[list[int]] = []
    bias: list[list[int]] = []
    commands: list[list[int]] = []
    halves = 0
    for number, tile in enumerate(all_tiles):
        passes = [(p, n) for p in range(2) for n in range(tile.sums.shape[1])]
        for p, n in passes:
            flags = [(p, n) == passes[0], number % 2, 1 - p, (p, n) == passes[-1]]
            rows.append([*map(int, flags), n, *tile.sums[p, n].tolist()])
            if p == 0 and tile.sums.shape[1] < sizes.latency:
                idle = sizes.latency if n + 1 == tile.sums.shape[1] else 0
                rows[-1].append(idle)
            else:
                rows[-1].append(0)
        if tile.bias is not None:
            for n, word in enumerate(tile.bias.tolist()):
                bias.append([int(n == 0), halves % 2, int(n + 1 == tile.steps), n, *word])
            halves += 1
        words = tile.sums.shape[1]
        fields = {"has_bias": tile.bias is not None, "relu": tile.relu, "output_rows": words}
        fields |= {"pixels": tile.pixels, "filter_steps": tile.steps, "step_lanes": tile.lanes}
        if tiles.scalar_bias:
            blocks = {"pixels": (tile.pixels - 1) * sizes.columns + tile.lanes, "step_lanes": 1}
            fields |= blocks
        fields |= {"ends_layer": tile.ends}
        fields |= {"multiplier": 0xFFFF, "shift": 63}
        commands.append([int(fields[name]) for name, _ in command_layout(*OUTPUT_FIELDS)])
    waits = np.array([row.pop() for row in rows])
    rng = np.random.default_rng(len(rows))
    late = np.concatenate([[0], waits[:-1]]) + rng.integers(0, gaps + 1, len(rows))
    row_widths = (1, 1, 1, 1, address_bits(sizes.depth), *[bits] * sizes.columns)
    bias_widths = (1, 1, 1, address_bits(tiles.bias_depth), *[bits] * tiles.bias_lanes)
    command_widths = tuple(field.width for _, field in command_layout(*OUTPUT_FIELDS))
    return {
        "rows": Stimulus.offer(_words(rows, row_widths), gaps=late),
        "bias": Stimulus.offer(_words(bias, bias_widths)),
        "command": Stimulus.offer(_words(commands, command_widths)),
    }


Run = Callable[[Bench], Outcome]


def simulated(tiles: Tiles) -> Run:
    return lambda bench: run_amaranth(Chain(tiles), bench)


def compiled(tiles: Tiles) -> Run:
    """What is emitted, compiled by Verilator."""
    return Verilated(verilog_of(Chain(tiles))).run


def run_tiles(tiles: Tiles, all_tiles: list[Tile], run: Run, gaps: int = 0) -> Outcome:
    given_ = stimuli(tiles, all_tiles, gaps)
    words = len(packed(tiles, all_tiles))
    rows = sum(tile.sums.shape[1] for tile in all_tiles)
    waits = np.random.default_rng(words).integers(0, gaps + 1, words)
    bits = tiles.port_bits
    ports = [StreamPort(name=name, direction="i", bits=bits[name]) for name in given_]
    bench = Bench(
        ports=(*ports, StreamPort(name="ofmap", direction="o", bits=bits["ofmap"])),
        stimuli={**given_, "ofmap": Stimulus.accept(words, gaps=waits)},
        max_cycles=(4 * rows + 60) * (gaps + 3),
        tail_cycles=12,
    )
    return run(bench)


def tile_differences(tiles: Tiles, all_tiles: list[Tile], run: Run, gaps: int = 0) -> bool:
    """Whether words of the ofmap differ, or are missing."""
    out = run_tiles(tiles, all_tiles, run, gaps).crossings["ofmap"]
    lanes, bits = tiles.sizes.columns, tiles.output.ofmap.bits
    ours = unpack_lanes(out.words, (bits,) * lanes, (False,) * lanes)
    return not np.array_equal(ours, packed(tiles, all_tiles))


MIXED = Tiles(sizes=Sizes(depth=12), output=FloatOutput(accumulator=FP32, ofmap=FP16))


HALF = Tiles(
    sizes=Sizes(depth=6, accumulator=FP16, rules=NEAREST, columns=3),
    output=FloatOutput(accumulator=FP16, ofmap=FP16),
    scalar_bias=True,
)
