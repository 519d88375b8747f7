"""The systolic core in Amaranth: the twin of `archsim.designs.systolic`."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from archsim.core.actions import ACTIONS
from archsim.designs.systolic import Systolic
from rtl.core.accumulators import Accumulators
from rtl.core.align import AlignedBanks
from rtl.core.array import AccumulatingArray, StationaryArray
from rtl.core.commands import layer_layout
from rtl.core.credits import Credits
from rtl.core.delay import Delay
from rtl.core.dispatcher import Dispatcher
from rtl.core.loader import Loader
from rtl.core.output_stage import OutputStage
from rtl.core.sequencer import Sequencer
from rtl.core.tile_walker import TileWalker
from rtl.core.tokens import MovingTokens, RowTokens
from rtl.core.weights import WeightReader
from rtl.core.window import Window
from rtl.hierarchy import place

COUNTER_BITS = 48


class SystolicCore(wiring.Component):
    """ofmap = requantize(ifmap ∗ weight + bias), a layer a command.

    Latencies, throughput and back-pressure: `docs/contracts/systolic.md`; every latency is a
    property of the design.

    Members
    -------
    command, ifmap, weight, bias, ofmap: `design.ports`; count_<action>: performance counters.
    """

    command: stream.Interface
    ifmap: stream.Interface
    weight: stream.Interface
    bias: stream.Interface
    ofmap: stream.Interface

    def __init__(self, design: Systolic) -> None:
        self.design = design
        ports = {
            port.name: (In if port.direction == "i" else Out)(
                stream.Signature(layer_layout() if port.name == "command" else port.bits)
            )
            for port in design.ports
        }
        super().__init__({**ports, **{f"count_{name}": Out(COUNTER_BITS) for name in ACTIONS}})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design = self.design
        self.moving_weights = design.dataflow == "input_stationary"
        self.decoupled = design.dataflow != "output_stationary"
        queues = {"queue_depth": design.command_queue_depth, "decoupled": self.decoupled}
        self.dispatcher = place(m, "dispatcher", Dispatcher, **queues)
        walker = place(m, "tile_walker", TileWalker, lanes=design.ifmap_lanes)
        wiring.connect(m, wiring.flipped(self.command), walker.layer)
        wiring.connect(m, walker.tile, self.dispatcher.command)
        self.loaders = {name: self._loader(m, name) for name in ("ifmap", "weight", "bias")}
        self._sequencers(m)
        self._operands(m)
        self._array(m)
        self._results(m)
        self._gates(m)
        self._counters(m)
        return m

    def _loader(self, m: Module, name: str) -> Any:
        """A loader between the port and the scratchpad of that name."""
        sizes = {"word_bits": self.design.word_bits(name), "depth": self.design.depth(name)}
        loader = place(m, f"{name}_loader", Loader, **sizes)
        wiring.connect(m, getattr(self.dispatcher, name), loader.command)
        wiring.connect(m, wiring.flipped(getattr(self, name)), loader.word)
        return loader

    def _sequencers(self, m: Module) -> None:
        """The walks over folds: one for the stream, one for stationary loads where there are."""
        rows, columns = self.design.rows, self.design.columns
        shapes: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
            "weight_stationary": (
                {"slots": "pixels", "steps": True, "block": None},
                {"slots": "run", "steps": True, "block": None},
            ),
            "input_stationary": (
                {"slots": "filters", "steps": False, "block": columns},
                {"slots": columns, "steps": False, "block": columns},
            ),
            "output_stationary": ({"slots": rows, "steps": True, "block": rows}, None),
        }
        stream_shape, load_shape = shapes[self.design.dataflow]
        self.pixel_block = (load_shape if self.moving_weights and load_shape else stream_shape)[
            "block"
        ]
        self.stream_walk = place(m, "stream_sequencer", Sequencer, rows=rows, **stream_shape)
        wiring.connect(m, self.dispatcher.stream, self.stream_walk.command)
        self.load_walk = self.stream_walk
        if load_shape is not None:
            self.load_walk = place(m, "load_sequencer", Sequencer, rows=rows, **load_shape)
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
        lanes = {"rows": design.rows, "lanes": design.ifmap_lanes}
        window = place(m, "window", Window, trailing=not self.decoupled, **lanes)
        names = "issue last_slot chunk_last run_last tap_last block_last tile_last current elements"
        for name in names.split():
            m.d.comb += getattr(window, name).eq(getattr(pixel_walk, name))
        self.slot_counts = Signal()
        m.d.comb += [
            window.fresh.eq(pixel_walk.command.payload),
            window.take.eq(pixel_walk.command.valid & pixel_walk.command.ready),
            self.slot_counts.eq(
                1 if self.pixel_block is None else pixel_walk.slot < pixel_walk.slot_pixels
            ),
            window.slot_counts.eq(self.slot_counts),
        ]
        self.banks = banks = place(
            m,
            "ifmap_banks",
            AlignedBanks,
            memory=design.ifmap_memory,
            lanes=design.ifmap_lanes,
            bits=design.operand_bits,
            depth=design.depth("ifmap"),
        )
        m.d.sync += banks.read_half.eq(self._half(m, "ifmap", pixel_walk))
        m.d.comb += [
            banks.address.eq(window.address),
            banks.low.eq(window.low),
            banks.high.eq(window.high),
        ]
        self.weights = place(
            m,
            "weight_reader",
            WeightReader,
            memory=design.weight_memory,
            bits=design.word_bits("weight"),
            depth=design.depth("weight"),
        )
        self._connect_writes(m)
        self._walk_weights(m)

    def _connect_writes(self, m: Module) -> None:
        for name, memory in (("ifmap", self.banks), ("weight", self.weights)):
            loader = self.loaders[name]
            m.d.comb += [
                memory.write.eq(loader.write),
                memory.write_half.eq(loader.write_half),
                memory.write_address.eq(loader.write_address),
                memory.write_data.eq(loader.write_data),
            ]

    def _walk_weights(self, m: Module) -> None:
        walk, weights = self.weight_walk, self.weights
        group_end = walk.issue & walk.last_slot & walk.group_last
        m.d.comb += [
            weights.read_half.eq(self._half(m, "weight", walk)),
            weights.tile_end.eq(walk.issue & walk.last_slot & walk.tile_last),
            weights.read.eq(walk.issue),
        ]
        if self.moving_weights:
            m.d.comb += weights.restart.eq(group_end)
        elif not self.decoupled:
            m.d.comb += [
                weights.read.eq(walk.issue & (walk.slot >= self.design.rows - walk.elements)),
                weights.restart.eq(group_end & ~walk.block_last),
                weights.keep.eq(group_end & walk.block_last),
            ]

    def _delayed(self, m: Module, name: str, value: Value, cycles: int) -> Value:
        line = place(m, name, Delay, bits=len(value), cycles=cycles)
        m.d.comb += line.i.eq(value)
        return line.o

    def _array(self, m: Module) -> None:
        if self.decoupled:
            self._stationary_array(m)
        else:
            self._accumulating_array(m)

    def _stationary_array(self, m: Module) -> None:
        design, stream_walk, load_walk = self.design, self.stream_walk, self.load_walk
        latency = design.operand_latency_cycles
        load_bank, stream_bank = Signal(), Signal()
        m.d.sync += [
            load_bank.eq(load_bank ^ (load_walk.issue & load_walk.last_slot)),
            stream_bank.eq(stream_bank ^ (stream_walk.issue & stream_walk.last_slot)),
        ]
        array = place(
            m,
            "array",
            StationaryArray,
            rows=design.rows,
            columns=design.columns,
            operand_bits=design.operand_bits,
            accumulator_bits=design.accumulator_bits,
            across=self.moving_weights,
        )
        pixels, weights = self.banks.o, self.weights.o
        capture = Cat(load_walk.issue & load_walk.first_slot, load_bank)
        m.d.comb += [
            array.moving.eq(weights if self.moving_weights else pixels),
            array.stationary.eq(pixels if self.moving_weights else weights),
            array.bank.eq(self._delayed(m, "bank_delay", stream_bank, latency)),
            array.capture.eq(self._delayed(m, "capture_delay", capture, latency)),
        ]
        self.sums = array.sums

    def _accumulating_array(self, m: Module) -> None:
        design, walk = self.design, self.stream_walk
        latency = design.operand_latency_cycles
        array = place(
            m,
            "array",
            AccumulatingArray,
            rows=design.rows,
            columns=design.columns,
            operand_bits=design.operand_bits,
            accumulator_bits=design.accumulator_bits,
        )
        group_first = self._group_first(m, walk)
        begin = walk.issue & walk.first_slot
        flags = Cat(begin & group_first, walk.issue & walk.last_slot & walk.group_last)
        m.d.comb += [
            array.begin.eq(self._delayed(m, "begin_delay", begin, latency - 1)),
            Cat(array.first, array.last).eq(self._delayed(m, "flag_delay", flags, latency)),
            array.ifmap.eq(self.banks.o),
            array.weight.eq(self._delayed(m, "weight_delay", self.weights.o, 1)),
        ]
        self.sums = array.sums

    def _group_first(self, m: Module, walk: Any) -> Signal:
        """The first fold of those that add to the same sums."""
        group_first = Signal(init=1)
        with m.If(walk.issue & walk.last_slot):
            m.d.sync += group_first.eq(walk.group_last)
        return group_first

    def _results(self, m: Module) -> None:
        """Accumulators and output stage."""
        design = self.design
        self.accumulators = accumulators = place(
            m,
            "accumulators",
            Accumulators,
            columns=design.columns,
            bits=design.accumulator_bits,
            depth=design.depth("accumulator"),
        )
        m.d.comb += accumulators.sums.eq(self.sums)
        wait = design.result_latency_cycles - (1 if self.decoupled else 2)
        m.d.comb += accumulators.token.eq(self._delayed(m, "token_delay", self._tokens(m), wait))
        self.output = output = place(
            m,
            "output_stage",
            OutputStage,
            columns=design.columns,
            accumulator_bits=design.accumulator_bits,
            operand_bits=design.operand_bits,
            depths=(design.depth("accumulator"), design.depth("bias")),
            queue_depth=design.output_queue_depth,
            scalar_bias=self.moving_weights,
        )
        wiring.connect(m, self.dispatcher.output, output.command)
        wiring.connect(m, output.ofmap, wiring.flipped(self.ofmap))
        bias = self.loaders["bias"]
        m.d.comb += [
            output.summed.eq(accumulators.done),
            output.bias_loaded.eq(bias.loaded),
            bias.free.eq(output.bias_released),
            output.bias_write.eq(bias.write),
            output.bias_write_half.eq(bias.write_half),
            output.bias_write_address.eq(bias.write_address),
            output.bias_write_data.eq(bias.write_data),
            accumulators.read_half.eq(output.read_half),
            accumulators.read_address.eq(output.read_address),
            output.read_data.eq(accumulators.read_data),
        ]

    def _tokens(self, m: Module) -> Value:
        """Where the sums of this cycle's issue (or the rows of an ended group) go."""
        walk, depth = self.stream_walk, self.design.depth("accumulator")
        if self.decoupled:
            tokens = place(m, "tokens", MovingTokens, depth=depth)
        else:
            tokens = place(m, "tokens", RowTokens, rows=self.design.rows, depth=depth)
            m.d.comb += tokens.pixels.eq(walk.slot_pixels)
        m.d.comb += [
            tokens.issue.eq(walk.issue),
            tokens.last_slot.eq(walk.last_slot),
            tokens.group_last.eq(walk.group_last),
            tokens.tile_last.eq(walk.tile_last),
            tokens.first_k.eq(walk.current.first_k),
            tokens.last_k.eq(walk.current.last_k),
        ]
        return Value.cast(tokens.token)

    def _gates(self, m: Module) -> None:
        """Who may start: credits for operand tiles, banks and halves of the accumulators."""
        stream_walk, load_walk = self.stream_walk, self.load_walk
        walks = {"ifmap": self.pixel_walk, "weight": self.weight_walk}
        allowed = {"stream": Value.cast(1), "load": Value.cast(1)}
        for name, walk in walks.items():
            tiles = place(m, f"{name}_tiles", Credits, initial=0, limit=2)
            takes = walk.starting & walk.first_fold & walk.current[f"load_{name}"]
            ends = walk.issue & walk.last_slot & walk.tile_last & walk.current[f"free_{name}"]
            m.d.comb += [
                tiles.give.eq(self.loaders[name].loaded),
                tiles.take.eq(takes & walk.issue),
                self.loaders[name].free.eq(ends),
            ]
            role = "stream" if walk is stream_walk else "load"
            allowed[role] = allowed[role] & (~takes | tiles.available)
        free = place(m, "free_accumulators", Credits, initial=2, limit=2)
        fresh = stream_walk.starting & stream_walk.first_fold & stream_walk.current.first_k
        m.d.comb += [
            free.give.eq(self.output.released),
            free.take.eq(fresh & stream_walk.issue),
        ]
        allowed["stream"] = allowed["stream"] & (~fresh | free.available)
        if self.decoupled:
            free_banks = place(m, "free_banks", Credits, initial=2, limit=2)
            filled_banks = place(m, "filled_banks", Credits, initial=0, limit=2)
            m.d.comb += [
                free_banks.take.eq(load_walk.issue & load_walk.first_slot),
                free_banks.give.eq(stream_walk.issue & stream_walk.last_slot),
                filled_banks.give.eq(load_walk.issue & load_walk.last_slot),
                filled_banks.take.eq(stream_walk.issue & stream_walk.first_slot),
                load_walk.go.eq(allowed["load"] & free_banks.available),
            ]
            allowed["stream"] = allowed["stream"] & filled_banks.available
        m.d.comb += stream_walk.go.eq(allowed["stream"])

    def _counters(self, m: Module) -> None:
        events = {
            "ifmap_write": self.loaders["ifmap"].write,
            "weight_write": self.loaders["weight"].write,
            "bias_write": self.loaders["bias"].write,
            "ifmap_read": self.pixel_walk.issue & self.slot_counts,
            "weight_read": self.weights.read,
            "accumulator_read": self.accumulators.count_read + self.output.count_read,
            "accumulator_write": self.accumulators.count_write,
            "array_step": self.stream_walk.issue,
            "stationary_step": self.load_walk.issue if self.decoupled else 0,
            "ofmap_write": self.ofmap.valid & self.ofmap.ready,
        }
        for name, event in events.items():
            counter = getattr(self, f"count_{name}")
            m.d.sync += counter.eq(counter + event)
