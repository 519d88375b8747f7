"""Floating accumulators and their output stage in RTL: equal to the models; faults are caught."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

# The stubs leave rtlil out.
from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]
from amaranth.back.verilog import (
    _convert_rtlil_text as rtlil_to_verilog,  # pyright: ignore[reportAttributeAccessIssue]
)
from amaranth.hdl import Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from faults import Patch, after
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.arithmetic.cases import RULES, random_operands
from archsim.arithmetic.float_datapath import VOLTA_RULES, FloatRules
from archsim.arithmetic.float_sum import FloatOutput, accumulate_latency_cycles, add_floats, adder
from archsim.arithmetic.formats import BF16, FP16, FP32, FloatFormat
from archsim.numbers import IntArray, pack_lanes, unpack_lanes
from rtl.benches.amaranth_bench import run_amaranth
from rtl.benches.bench import Bench, Outcome, Stimulus, StreamPort
from rtl.benches.verilated import Verilated
from rtl.core import float_accumulators, float_output
from rtl.core.commands import OUTPUT_FIELDS, command_layout
from rtl.core.credits import Credits
from rtl.core.float_accumulators import FloatAccumulators
from rtl.core.float_align import Align
from rtl.core.float_output import FloatOutputStage, FloatRequantize
from rtl.core.output_stage import OutputStage
from rtl.core.sram import Sram, address_bits
from rtl.hierarchy import place, sharing

E3M2 = FloatFormat(exponent_bits=3, fraction_bits=2)
NEAREST = FloatRules(rounding="nearest_even", aligned_fraction_bits=12)


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What the accumulators are made with."""

    columns: int = 2
    accumulator: FloatFormat = FP32
    rules: FloatRules = VOLTA_RULES
    depth: int = 5

    @property
    def latency(self) -> int:
        return accumulate_latency_cycles(adder(self.accumulator, self.rules))


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Tokens in their order and, for each, its cycle and its row of sums [n, columns]."""

    cycle: IntArray
    half: IntArray
    address: IntArray
    overwrite: IntArray
    last: IntArray
    sums: IntArray


def random_rows(sizes: Sizes, count: int, seed: int, gaps: int = 1) -> Rows:
    """Tokens for any rows, as close together as they may be; sums that meet what cancels them."""
    rng = np.random.default_rng(seed)
    unit = adder(sizes.accumulator, sizes.rules)
    made = random_operands(unit, count, seed)
    chosen = rng.integers(0, len(made.c), (count, sizes.columns))
    partner: dict[tuple[int, int], IntArray] = {}
    free: dict[tuple[int, int], int] = {}
    cycle, tokens, sums = 2, [], []
    for row in chosen:
        place_ = (int(rng.integers(0, 2)), int(rng.integers(0, sizes.depth)))
        cycle = max(cycle + int(rng.integers(0, gaps + 1)), free.get(place_, 0))
        overwrite = place_ not in partner or rng.random() < 0.4
        sums.append(made.c[row] if overwrite else made.a[partner[place_], 0])
        partner[place_] = row
        tokens.append((cycle, *place_, int(overwrite), int(rng.random() < 0.2)))
        free[place_] = cycle + sizes.latency
        cycle += 1
    names = ("cycle", "half", "address", "overwrite", "last")
    columns = np.array(tokens, np.int64).T
    return Rows(**dict(zip(names, columns, strict=True)), sums=np.array(sums, np.int64))


SHOWN = ("read_data", "done", "count_write", "count_read")


def wanted(sizes: Sizes, rows: Rows, reads: IntArray) -> dict[str, IntArray]:
    """Every output in every cycle; read_data is -1 where a token's read goes before."""
    unit, cycles = adder(sizes.accumulator, sizes.rules), len(reads)
    memory = np.zeros((2, sizes.depth, sizes.columns), np.int64)
    shown = {name: np.zeros(cycles, np.int64) for name in SHOWN[1:]}
    data = np.zeros((cycles, sizes.columns), np.int64)
    tokens = {int(cycle): n for n, cycle in enumerate(rows.cycle)}
    for cycle in range(cycles):
        n = tokens.get(cycle - sizes.latency)
        if n is not None:
            at = rows.half[n], rows.address[n]
            over = rows.overwrite[n]
            memory[at] = rows.sums[n] if over else add_floats(unit, memory[at], rows.sums[n])
            shown["done"][cycle] = rows.last[n]
            shown["count_write"][cycle] = 1
            shown["count_read"][cycle] = not over
        if cycle + 1 < cycles:
            half, address = reads[cycle]
            taken = tokens.get(cycle)
            busy = taken is not None and rows.half[taken] == half
            data[cycle + 1] = -1 if busy else memory[half, address]
    return {"read_data": data, **shown}


def shown(sizes: Sizes, rows: Rows, reads: IntArray) -> dict[str, IntArray]:
    """What the RTL shows, while inputs that do not matter are all ones."""
    unit = FloatAccumulators(
        columns=sizes.columns, accumulator=sizes.accumulator, rules=sizes.rules, depth=sizes.depth
    )
    seen: dict[str, list[int]] = {name: [] for name in SHOWN}
    tokens = {int(cycle): n for n, cycle in enumerate(rows.cycle)}
    names = ("half", "address", "overwrite", "last")

    async def bench(context: Any) -> None:
        for cycle, (half, address) in enumerate(reads.tolist()):
            n, before = tokens.get(cycle), tokens.get(cycle - 1)
            context.set(unit.token.valid, n is not None)
            for name in names:
                field = getattr(unit.token, name)
                ones = (1 << len(field)) - 1
                context.set(field, ones if n is None else int(getattr(rows, name)[n]))
            word = -1 if before is None else packed(rows.sums[before], sizes.accumulator.bits)
            context.set(unit.sums, word)
            context.set(unit.read_half, half)
            context.set(unit.read_address, address)
            for name in SHOWN:
                seen[name].append(context.get(getattr(unit, name)))
            await context.tick()

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    mask, bits = (1 << sizes.accumulator.bits) - 1, sizes.accumulator.bits
    data = [[word >> bits * n & mask for n in range(sizes.columns)] for word in seen["read_data"]]
    return {name: np.array(data if name == "read_data" else seen[name]) for name in SHOWN}


def packed(lanes: IntArray, bits: int) -> int:
    return sum(int(lane) << bits * n for n, lane in enumerate(lanes))


def differences(sizes: Sizes, rows: Rows, seed: int = 0) -> list[str]:
    """The outputs that are not what the model says in some cycle, reading rows at random."""
    rng = np.random.default_rng(seed)
    cycles = int(rows.cycle[-1]) + sizes.latency + 4 * sizes.depth
    reads = np.stack([rng.integers(0, 2, cycles), rng.integers(0, sizes.depth, cycles)], axis=1)
    every = np.stack(np.divmod(np.arange(2 * sizes.depth), sizes.depth), axis=1)
    reads[-2 * sizes.depth :] = every
    model, ours = wanted(sizes, rows, reads), shown(sizes, rows, reads)
    ours["read_data"] = np.where(model["read_data"] < 0, -1, ours["read_data"])
    ours["read_data"][0] = 0
    return [name for name in SHOWN if not np.array_equal(model[name], ours[name])]


SIZES = [
    Sizes(),
    Sizes(accumulator=FP16, rules=NEAREST, columns=3, depth=1),
    Sizes(accumulator=BF16, rules=replace(NEAREST, accumulator_joins=False), columns=1, depth=7),
]


@pytest.mark.parametrize("sizes", SIZES)
def test_rows_are_added_up(sizes: Sizes) -> None:
    for gaps in (0, 3):
        rows = random_rows(sizes, 120, seed=gaps, gaps=gaps)
        assert differences(sizes, rows) == []


@settings(max_examples=15)
@given(
    sizes=st.builds(
        Sizes,
        columns=st.integers(1, 3),
        accumulator=st.builds(
            FloatFormat, exponent_bits=st.integers(2, 8), fraction_bits=st.integers(1, 23)
        ),
        rules=st.sampled_from(RULES),
        depth=st.integers(1, 9),
    ),
    seed=st.integers(0, 1000),
)
def test_any_accumulators(sizes: Sizes, seed: int) -> None:
    assert differences(sizes, random_rows(sizes, 25, seed), seed) == []


def test_a_row_may_come_again_after_the_latency_and_no_cycle_before() -> None:
    sizes = Sizes(columns=1, depth=1)
    ones = FP32.encode(np.ones((6, 1)))
    for apart, right in ((sizes.latency, True), (sizes.latency - 1, False)):
        flags = np.zeros(6, np.int64)
        rows = Rows(
            cycle=2 + apart * np.arange(6), half=flags, address=flags, sums=ones,
            overwrite=np.array([1, 0, 0, 0, 0, 0]), last=flags,
        )  # fmt: skip
        assert (differences(sizes, rows) == []) == right


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
    """A command, the bias words [steps, lanes] and the rows of sums, twice over [2, n, columns]."""

    steps: int
    pixels: int
    relu: int
    bias: IntArray | None
    sums: IntArray


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
        fields = {"has_bias": tile.bias is not None, "relu": tile.relu, "output_words": words}
        fields |= {"pixels": tile.pixels, "filter_steps": tile.steps}
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
    """What is emitted: each repeated module once."""
    with sharing() as library:
        top = rtlil.convert(Chain(tiles), name="top", emit_src=False)
    modules = rtlil_to_verilog("\n".join([top, *library.texts.values()]))
    return Verilated("\n".join([modules, *library.sources.values()])).run


def run_tiles(tiles: Tiles, all_tiles: list[Tile], run: Run, gaps: int = 0) -> Outcome:
    given_ = stimuli(tiles, all_tiles, gaps)
    words = sum(tile.sums.shape[1] for tile in all_tiles)
    waits = np.random.default_rng(words).integers(0, gaps + 1, words)
    bits = tiles.port_bits
    ports = [StreamPort(name=name, direction="i", bits=bits[name]) for name in given_]
    bench = Bench(
        ports=(*ports, StreamPort(name="ofmap", direction="o", bits=bits["ofmap"])),
        stimuli={**given_, "ofmap": Stimulus.accept(words, gaps=waits)},
        max_cycles=(4 * words + 60) * (gaps + 3),
        tail_cycles=12,
    )
    return run(bench)


def tile_differences(tiles: Tiles, all_tiles: list[Tile], run: Run, gaps: int = 0) -> bool:
    """Whether words of the ofmap differ, or are missing."""
    out = run_tiles(tiles, all_tiles, run, gaps).crossings["ofmap"]
    lanes, bits = tiles.sizes.columns, tiles.output.ofmap.bits
    ours = unpack_lanes(out.words, (bits,) * lanes, (False,) * lanes)
    return not np.array_equal(ours, np.concatenate([words_of(tiles, each) for each in all_tiles]))


MIXED = Tiles(sizes=Sizes(depth=12), output=FloatOutput(accumulator=FP32, ofmap=FP16))
HALF = Tiles(
    sizes=Sizes(depth=6, accumulator=FP16, rules=NEAREST, columns=3),
    output=FloatOutput(accumulator=FP16, ofmap=FP16),
    scalar_bias=True,
)


@pytest.mark.parametrize("tiles", [MIXED, HALF, replace(MIXED, scalar_bias=True, queue_depth=2)])
def test_tiles_leave_as_the_model_says(tiles: Tiles) -> None:
    for gaps in (0, 3):
        all_tiles = random_tiles(tiles, 8, seed=gaps)
        assert not tile_differences(tiles, all_tiles, simulated(tiles), gaps)


@settings(max_examples=8)
@given(
    columns=st.integers(1, 3), depth=st.integers(1, 9), scalar=st.booleans(),
    accumulator=st.sampled_from([FP16, FP32, E3M2]), ofmap=st.sampled_from([FP16, BF16, E3M2]),
    seed=st.integers(0, 1000),
)  # fmt: skip
def test_any_tiles(columns: int, depth: int, scalar: bool, seed: int, **formats: Any) -> None:
    sizes = Sizes(columns=columns, depth=depth, accumulator=formats["accumulator"])
    tiles = Tiles(sizes=sizes, output=FloatOutput(**formats), scalar_bias=scalar)
    assert not tile_differences(tiles, random_tiles(tiles, 3, seed), simulated(tiles), 1)


@pytest.mark.parametrize("tiles", [MIXED, pytest.param(HALF, marks=pytest.mark.slow)])
def test_many_tiles_in_the_emitted_verilog(tiles: Tiles) -> None:
    run = compiled(tiles)
    for gaps in (0, 2):
        assert not tile_differences(tiles, random_tiles(tiles, 300, seed=9), run, gaps)


def test_words_leave_at_their_latency_one_a_cycle() -> None:
    """Read a cycle after `done`, at the port 5 cycles later; six places for words suffice."""
    assert MIXED.output.latency_cycles == 3
    for queue_depth, interval in ((8, 1), (6, 1), (5, 2)):
        tiles = replace(MIXED, sizes=Sizes(depth=12, columns=1), queue_depth=queue_depth)
        ones = np.full((2, 12, 1), 0x3F800000)
        tile = Tile(steps=1, pixels=12, relu=0, bias=np.array([[0]]), sums=ones)
        crossings = run_tiles(tiles, [tile], simulated(tiles)).crossings
        read = int(crossings["rows"].cycles[-1]) + tiles.sizes.latency + 1
        assert crossings["ofmap"].cycles[:5].tolist() == [read + 5 + n for n in range(5)]
        steps = np.diff(crossings["ofmap"].cycles)
        assert int(steps.max()) == interval


def _placed(module: Any, name: str, **changes: Callable[[Any], Any]) -> Patch:
    """The components whose name begins so, with some of their parameters changed."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        def mutated(m: Module, own: str, kind: type[wiring.Component], **parameters: Any) -> Any:
            if own.startswith(name):
                parameters |= {key: change(parameters[key]) for key, change in changes.items()}
            return place(m, own, kind, **parameters)

        monkeypatch.setattr(module, "place", mutated)

    return patch


def _total(flags: Callable[[Any], Any], held: Callable[[Any, Any], Any]) -> Patch:
    """Other operands of the adders: whether to overwrite, and what was held."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = FloatAccumulators._total
        monkeypatch.setattr(
            FloatAccumulators,
            "_total",
            lambda self, m, before, overwrite: plain(self, m, held(m, before), flags(overwrite)),
        )

    return patch


def _same(*values: Any) -> Any:
    return values[-1]


def _held_late(m: Module, before: Any) -> Any:
    late = Signal(len(before))
    m.d.sync += late.eq(before)
    return late


def _by(cycles: int) -> Callable[[int], int]:
    return lambda plain: plain + cycles


def _with_rules(**changes: Any) -> Callable[[Any], Any]:
    return lambda design: replace(design, rules=replace(design.rules, **changes))


def _set(m: Module, target: Any, value: Any) -> None:
    m.d.comb += target.eq(value)


ACCUMULATOR_FAULTS: dict[str, Patch] = {
    "the token one cycle late": _placed(float_accumulators, "token_delay", cycles=_by(1)),
    "the token one cycle early": _placed(float_accumulators, "token_delay", cycles=_by(-1)),
    "overwriting sums one cycle late": _placed(float_accumulators, "sums_delay", cycles=_by(1)),
    "overwriting sums one cycle early": _placed(float_accumulators, "sums_delay", cycles=_by(-1)),
    "what was held one cycle late": _total(_same, _held_late),
    "a bit of what was held dropped": _total(_same, lambda m, before: before & ~1),
    "overwriting rows are added": _total(lambda overwrite: Const(0), _same),
    "added rows overwrite": _total(lambda overwrite: Const(1), _same),
    "forwarding ignored": _placed(float_accumulators, "half_", transparent=lambda _: False),
    "rounding": _placed(float_accumulators, "adder_", design=_with_rules(rounding="nearest_even")),
    "an aligned bit more": _placed(
        float_accumulators, "adder_", design=_with_rules(aligned_fraction_bits=24)
    ),
    "a bit dropped in the alignment": after(Align, lambda self, m: _set(m, self.o[0], 0)),
    "all rows are last": after(
        FloatAccumulators, lambda self, m: _set(m, self.done, self.count_write)
    ),
    "overwrites counted as reads": after(
        FloatAccumulators, lambda self, m: _set(m, self.count_read, self.count_write)
    ),
    "only one half is read": after(
        FloatAccumulators,
        lambda self, m: _set(m, self.read_data, m.submodules["half_0"].read_data),
    ),
}


def _accumulators_caught() -> bool:
    sizes = Sizes()
    return differences(sizes, random_rows(sizes, 120, seed=3)) != []


@pytest.mark.parametrize("name", ACCUMULATOR_FAULTS)
def test_a_fault_in_the_accumulators_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ACCUMULATOR_FAULTS[name](monkeypatch)
    assert _accumulators_caught()


def _latency(cycles: int) -> Patch:
    """The stage believes in another latency of its columns."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(FloatOutputStage, "column_latency_cycles", 3 + cycles)

    return patch


def _relu(change: Callable[[Module, list[Any]], Any]) -> Patch:
    """ReLU as another stage of the pipeline has it."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = FloatOutputStage._column
        monkeypatch.setattr(
            FloatOutputStage,
            "_column",
            lambda self, m, column, stages: plain(self, m, column, [change(m, stages)]),
        )

    return patch


def _late_stage(m: Module, stages: list[Any]) -> Any:
    late = Signal.like(stages[-1])
    m.d.sync += late.eq(stages[-1])
    return late


def _late_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = OutputStage._bias

    def mutated(self: Any, m: Module, *given_: Any) -> Any:
        return _held_late(m, plain(self, m, *given_))

    monkeypatch.setattr(OutputStage, "_bias", mutated)


# One cycle early ReLU is still that of the word: a command is taken between two tiles.
OUTPUT_FAULTS: dict[str, Patch] = {
    "words taken one cycle late": _latency(1),
    "words taken one cycle early": _latency(-1),
    "ReLU one cycle late": _relu(_late_stage),
    "ReLU two cycles early": _relu(lambda m, stages: stages[-3]),
    "no ReLU": after(FloatRequantize, lambda self, m: _set(m, self.o, m.submodules["sum"].o)),
    "ReLU of every sign": after(FloatRequantize, lambda self, m: _set(m, self.o[-1], 0)),
    "bias one cycle late": _late_bias,
    "no bias": after(
        FloatRequantize,
        lambda self, m: _set(m, m.submodules["sum"].a[len(self.acc) :], 0),
    ),
    "fewer aligned bits": _placed(
        float_output, "sum", design=_with_rules(aligned_fraction_bits=11)
    ),
    "truncated": _placed(float_output, "sum", design=_with_rules(rounding="truncate")),
    "subnormal words dropped": _placed(
        float_output, "sum", design=_with_rules(subnormal_outputs=False)
    ),
    "a bit dropped in every memory": after(Sram, lambda self, m: _set(m, self.read_data[0], 0)),
}


def _output_caught() -> bool:
    all_tiles = random_tiles(MIXED, 14, seed=2)
    return tile_differences(MIXED, all_tiles, simulated(MIXED))


@pytest.mark.parametrize("name", OUTPUT_FAULTS)
def test_a_fault_in_the_output_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    OUTPUT_FAULTS[name](monkeypatch)
    assert _output_caught()


def test_the_untouched_units_pass() -> None:
    """The same stimuli show no difference without a fault, so the tests above mean something."""
    assert not _accumulators_caught()
    assert not _output_caught()
