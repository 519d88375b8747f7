"""What every core is built of: everything but the array between scratchpads and accumulators."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from archsim.ports import Port
from rtl.core.accumulators import Accumulators
from rtl.core.align import AlignedBanks
from rtl.core.commands import layer_layout
from rtl.core.counters import counters
from rtl.core.delay import Delay
from rtl.core.dispatcher import Dispatcher
from rtl.core.gates import gates
from rtl.core.gathering_loader import GatheringLoader
from rtl.core.loader import Loader
from rtl.core.memory import made_of, rtl_of
from rtl.core.operand_words import memory_settings, operand_words
from rtl.core.output_stage import OutputStage
from rtl.core.pipelined_sequencer import PipelinedSequencer
from rtl.core.pipelined_walker import PipelinedTileWalker
from rtl.core.pipelined_window import PipelinedWindow
from rtl.core.sequencer import Sequencer
from rtl.core.settings import SETTINGS_PORTS, settings_chains
from rtl.core.tile_walker import TileWalker
from rtl.core.tokens import RowTokens
from rtl.core.weights import WeightReader
from rtl.core.window import Window
from rtl.hierarchy import place

if TYPE_CHECKING:
    from rtl.verification import Verification

COUNTER_BITS = 48


class Core(wiring.Component):
    """ofmap = output(ifmap ∗ weight, bias), a layer a command: the twin of a `CoreDesign`.

    Data flow from the loaders through scratchpads, array and accumulators to the output stage;
    the tile walker and the sequencers say when.  A kind of core says how its array is walked and
    what it is; it may bring accumulators, tokens and an output stage of its own.
    Latencies, throughput and back-pressure: `docs/contracts/systolic.md`; every latency is a
    property of the design.

    Members
    -------
    command, ifmap, weight, bias, ofmap: `design.ports`; count_<action>: performance counters.
    settings_shift, settings_in, settings_out: of memories that take settings (`rtl.core.settings`).
    """

    command: stream.Interface
    ifmap: stream.Interface
    weight: stream.Interface
    bias: stream.Interface
    ofmap: stream.Interface

    load_shape: dict[str, Any] | None = None
    """Of the sequencer of stationary loads, where the array has them."""
    moving_weights = False
    """Weights move through the array, and the ifmap is what it holds."""
    trailing = False
    """A short chunk stands in the last rows, not in the first (`Window`)."""

    @staticmethod
    def verification() -> "Verification":
        """How it is proved (`rtl.verification`)."""
        from rtl.tile_verification import TileVerification

        return TileVerification()

    def __init__(self, design: Any) -> None:
        self.design = design
        ports = {
            port.name: (In if port.direction == "i" else Out)(
                stream.Signature(self._layer_layout() if port.name == "command" else port.bits)
            )
            for port in design.ports
        }
        counts = {f"count_{name}": Out(COUNTER_BITS) for name in design.actions}
        self.settings = memory_settings(design)
        super().__init__({**ports, **counts, **(SETTINGS_PORTS if self.settings else {})})

    def _layer_layout(self) -> data.StructLayout:
        return layer_layout(gathers=self.design.gather is not None)

    @property
    def ports(self) -> tuple[Port, ...]:
        """The streams, with what their lanes hold."""
        return self.design.ports

    @property
    @abstractmethod
    def stream_shape(self) -> dict[str, Any]:
        """Parameters of the sequencer of the stream (`Sequencer`)."""

    @property
    @abstractmethod
    def chunk(self) -> int:
        """Elements of a run that a fold takes."""

    @abstractmethod
    def array(self, m: Module) -> Value:
        """Place the array behind the scratchpads; returns its row of sums."""

    @property
    def decoupled(self) -> bool:
        """Whether stationary operands are loaded beside the stream."""
        return self.load_shape is not None

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design = self.design
        queues = {"queue_depth": design.command_queue_depth, "decoupled": self.decoupled}
        gathers = {"gathers": True} if design.gather else {}
        ahead = {"ahead": True} if design.pipelined_control else {}
        self.dispatcher = place(m, "dispatcher", Dispatcher, **queues, **gathers, **ahead)
        moving = {"blocks": self.moving_weights, **gathers}
        kind = PipelinedTileWalker if design.pipelined_control else TileWalker
        walker = place(m, "tile_walker", kind, lanes=design.ifmap_lanes, **moving)
        wiring.connect(m, wiring.flipped(self.command), walker.layer)
        wiring.connect(m, walker.tile, self.dispatcher.command)
        self.loaders = {name: self._loader(m, name) for name in ("ifmap", "weight", "bias")}
        self._sequencers(m)
        self._operands(m)
        self.sums = self.array(m)
        self._results(m)
        gates(m, self)
        counters(m, self)
        units = {"ifmap": self.banks, "weight": self.weights}
        units |= {"accumulator": self.accumulated, "bias": self.output}
        settings_chains(m, self, self.settings, units)
        return m

    def _loader(self, m: Module, name: str) -> Any:
        """A loader between the port and the scratchpad of that name."""
        sizes: dict[str, Any] = {"depth": self.design.depth(name)}
        sizes |= {"ahead": True} if self.design.pipelined_control else {}
        if name == "ifmap" and self.design.gather:
            sizes["unit"] = self.design.gather
            loader = place(m, f"{name}_loader", GatheringLoader, **sizes)
        else:
            sizes["word_bits"] = self.design.word_bits(name)
            loader = place(m, f"{name}_loader", Loader, **sizes)
        wiring.connect(m, getattr(self.dispatcher, name), loader.command)
        wiring.connect(m, wiring.flipped(getattr(self, name)), loader.word)
        return loader

    def _sequencers(self, m: Module) -> None:
        """The walks over folds: one for the stream, one for stationary loads where there are."""
        sizes = {"rows": self.chunk}
        kind = PipelinedSequencer if self.design.pipelined_control else Sequencer
        self.stream_walk = place(m, "stream_sequencer", kind, **sizes, **self.stream_shape)
        wiring.connect(m, self.dispatcher.stream, self.stream_walk.command)
        self.load_walk = self.stream_walk
        if self.load_shape is not None:
            self.load_walk = place(m, "load_sequencer", kind, **sizes, **self.load_shape)
            wiring.connect(m, self.dispatcher.load, self.load_walk.command)
        self.pixel_walk = self.load_walk if self.moving_weights else self.stream_walk
        self.weight_walk = self.stream_walk if self.moving_weights else self.load_walk

    def _half(self, m: Module, name: str, walk: Any) -> Value:
        """The half that the walk reads; it changes at the first issue of a newly loaded tile."""
        half, now = Signal(init=1, name=f"{name}_half"), Signal(name=f"{name}_half_now")
        takes = walk.issue & walk.starting & walk.first_fold & walk.current[f"load_{name}"]
        m.d.comb += now.eq(half ^ takes)
        m.d.sync += half.eq(now)
        return now

    def _operands(self, m: Module) -> None:
        """Addresses, scratchpads: operand words `operand_latency_cycles` behind their issue."""
        design, pixel_walk = self.design, self.pixel_walk
        words = operand_words(design)
        lanes = {"rows": self.chunk, "lanes": design.ifmap_lanes}
        kind = PipelinedWindow if design.pipelined_control else Window
        window = place(m, "window", kind, trailing=self.trailing, **lanes)
        names = "issue last_slot chunk_last run_last tap_last block_last tile_last current elements"
        for name in names.split():
            m.d.comb += getattr(window, name).eq(getattr(pixel_walk, name))
        m.d.comb += [
            window.fresh.eq(pixel_walk.command.payload),
            window.take.eq(pixel_walk.command.valid & pixel_walk.command.ready),
            window.slot_in_block.eq(pixel_walk.slot_in_block),
            window.slot_counts.eq(pixel_walk.slot_counts),
        ]
        kept = {"registers": design.ifmap_registers} if design.ifmap_registers else {}
        self.banks = banks = place(
            m,
            "ifmap_banks",
            AlignedBanks,
            memory=design.ifmap_memory,
            words=words["ifmap"],
            **kept,
        )
        half = Signal(name="ifmap_read_half")
        m.d.sync += half.eq(self._half(m, "ifmap", pixel_walk))
        asked = Cat(half, window.address, window.low, window.high)
        m.d.comb += [
            Cat(banks.read_half, banks.address, banks.low, banks.high).eq(
                self.waiting(m, "ifmap", "address", asked)
            )
        ]
        self.weights = place(
            m,
            "weight_reader",
            WeightReader,
            memory=design.weight_memory,
            words=words["weight"],
        )
        self._connect_writes(m)
        self._walk_weights(m)

    def _connect_writes(self, m: Module) -> None:
        """Loaders to scratchpads; and those of whole words are told when they are read."""
        if rtl_of(self.design.ifmap_memory).whole_words:
            reads = Signal(name="ifmap_reads")
            m.d.sync += reads.eq(self.pixel_walk.issue)
            m.d.comb += self.banks.read.eq(self.waiting(m, "ifmap", "read", reads))
        for name, memory in (("ifmap", self.banks), ("weight", self.weights)):
            loader = self.loaders[name]
            m.d.comb += [
                memory.write.eq(loader.write),
                memory.write_half.eq(loader.write_half),
                memory.write_address.eq(loader.write_address),
                memory.write_last.eq(loader.loaded),
                memory.write_data.eq(loader.write_data),
            ]

    def weight_reads(self) -> Value:
        """Which issues of the weight walk read a word: of a coupled array, one an element."""
        walk = self.weight_walk
        return Value.cast(1) if self.decoupled else walk.slot < walk.elements

    def _walk_weights(self, m: Module) -> None:
        walk, weights = self.weight_walk, self.weights
        group_end = walk.issue & walk.last_slot & walk.group_last
        again, keep = Value.cast(0), Value.cast(0)
        if self.moving_weights:
            again = group_end
        elif not self.decoupled:
            again, keep = group_end & ~walk.block_last, group_end & walk.block_last
        asked = Cat(
            self._half(m, "weight", walk),
            walk.issue & walk.last_slot & walk.tile_last,
            walk.issue & self.weight_reads(),
            again,
            keep,
        )
        m.d.comb += Cat(
            weights.read_half, weights.tile_end, weights.read, weights.restart, weights.keep
        ).eq(self.waiting(m, "weight", "walk", asked))

    def waiting(self, m: Module, name: str, what: str, value: Value) -> Value:
        """What asks the scratchpad of an operand, so late that both operands arrive together."""
        cycles = self.design.read_wait_cycles(name)
        return self.delayed(m, f"{name}_{what}_delay", value, cycles) if cycles else value

    def delayed(self, m: Module, name: str, value: Value, cycles: int) -> Value:
        line = place(m, name, Delay, bits=len(value), cycles=cycles)
        m.d.comb += line.i.eq(value)
        return line.o

    def group_first(self, m: Module, walk: Any) -> Signal:
        """The first fold of those that add to the same sums."""
        group_first = Signal(init=1)
        with m.If(walk.issue & walk.last_slot):
            m.d.sync += group_first.eq(walk.group_last)
        return group_first

    def accumulator_shape(self) -> dict[str, Any]:
        """Parameters of the accumulators."""
        design = self.design
        return {
            "columns": design.columns,
            "bits": design.accumulator_bits,
            "depth": design.depth("accumulator"),
            **made_of(design.accumulator_memory, design.use("accumulator")),
        }

    def accumulators(self, m: Module) -> Any:
        """Place the accumulators."""
        return place(m, "accumulators", Accumulators, **self.accumulator_shape())

    def output_shape(self) -> dict[str, Any]:
        """Parameters of the output stage."""
        design = self.design
        return {
            "columns": design.columns,
            "accumulator_bits": design.accumulator_bits,
            "operand_bits": design.operand_bits,
            "depths": (design.depth("accumulator"), design.depth("bias")),
            "queue_depth": design.output_queue_depth,
            "scalar_bias": self.moving_weights,
            **made_of(design.bias_memory, design.use("bias")),
        }

    def output_stage(self, m: Module) -> Any:
        """Place the output stage."""
        return place(m, "output_stage", OutputStage, **self.output_shape())

    def _results(self, m: Module) -> None:
        """Accumulators and output stage."""
        self.accumulated = accumulated = self.accumulators(m)
        tokens, latency = self._tokens(m)
        design = self.design
        wait = design.result_latency_cycles - design.accumulate_latency_cycles - latency
        m.d.comb += [
            accumulated.sums.eq(self.sums),
            accumulated.token.eq(self.delayed(m, "token_delay", tokens, wait)),
        ]
        self.output = output = self.output_stage(m)
        wiring.connect(m, self.dispatcher.output, output.command)
        wiring.connect(m, output.ofmap, wiring.flipped(self.ofmap))
        bias = self.loaders["bias"]
        m.d.comb += [
            output.summed.eq(accumulated.done),
            output.bias_loaded.eq(bias.loaded),
            bias.free.eq(output.bias_released),
            output.bias_write.eq(bias.write),
            output.bias_write_half.eq(bias.write_half),
            output.bias_write_address.eq(bias.write_address),
            output.bias_write_data.eq(bias.write_data),
            accumulated.read_half.eq(output.read_half),
            accumulated.read_address.eq(output.read_address),
            output.read_data.eq(accumulated.read_data),
        ]

    def place_tokens(self, m: Module) -> tuple[Any, int]:
        """What sends off the rows of sums, and its latency: of a coupled array, `RowTokens`."""
        sizes = {"rows": self.stream_shape["block"], "depth": self.design.depth("accumulator")}
        tokens = place(m, "tokens", RowTokens, **sizes)
        m.d.comb += tokens.pixels.eq(self.stream_walk.slot_pixels)
        return tokens, 1

    def _tokens(self, m: Module) -> tuple[Value, int]:
        """Where the sums of this cycle's issue (or the rows of an ended group) go."""
        walk = self.stream_walk
        tokens, latency = self.place_tokens(m)
        m.d.comb += [
            tokens.issue.eq(walk.issue),
            tokens.last_slot.eq(walk.last_slot),
            tokens.group_last.eq(walk.group_last),
            tokens.tile_last.eq(walk.tile_last),
            tokens.first_k.eq(walk.current.first_k),
            tokens.last_k.eq(walk.current.last_k),
        ]
        return Value.cast(tokens.token), latency
