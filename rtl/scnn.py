"""The SCNN core in Amaranth: the twin of `archsim.machines.scnn.design`."""

from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any, cast

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from archsim.errors import require
from archsim.machines.scnn.command import AXIS_FIELDS, LAYER_FIELDS, scnn_ports
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.pipeline import DECODE_CYCLES, DRAIN_CYCLES, STEP_CYCLES
from archsim.ports import Port
from rtl.core.adder_tree import sum_of
from rtl.core.delay import Delay
from rtl.core.memory import Settings, stream_settings
from rtl.core.scnn_bias import BiasQueue
from rtl.core.scnn_cells import pe_inputs, sum_settings, sums_may_fail, weight_settings
from rtl.core.scnn_control import GroupControl
from rtl.core.scnn_drain import SIDES, DrainSequencer, PipelinedDrainSequencer
from rtl.core.scnn_fifo import WeightRoom
from rtl.core.scnn_layouts import command_layout, vector_layout
from rtl.core.scnn_lists import ListWalk
from rtl.core.scnn_pe import row_fields
from rtl.core.scnn_pipelined_pe import pe_of
from rtl.core.scnn_weights import PipelinedWeightDecoder, WeightDecoder
from rtl.core.settings import SETTINGS_PORTS, SettingsChain
from rtl.hierarchy import place

if TYPE_CHECKING:
    from rtl.verification import Verification

COUNTER_BITS = 48
COUNTS = (
    "pair",
    "product",
    "conflict_cycle",
    "skip",
    "iaram_read",
    "halo_sum",
    "copy_sum",
    "window_read",
    "fifo_write",
    "weight_read",
    "accumulator_update",
    "iaram_write",
    "oaram_write",
    "output",
    "zeroed",
    "cleared",
    "weight_write",
    "oaram_read",
)
NEIGHBOURS = {"left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0)}


def settings_of_memories(design: Scnn) -> dict[str, Settings]:
    """What memories take from registers, by memory, in the order of their chain."""
    found = {
        "activation": stream_settings(design),
        "weight": weight_settings(design),
        "accumulator": sum_settings(design),
    }
    return {name: one for name, one in found.items() if one is not None}


def counts_of(design: Scnn) -> tuple[str, ...]:
    """Events that the core counts."""
    return (*COUNTS, *row_fields(design))


def core_members(design: Scnn) -> dict[str, Any]:
    """Streams and counters of the core.

    Raises `InputError` for variants of the design that only the model has.
    """
    for name, only in (
        ("bank_hash", "linear"),
        ("barrier", "group"),
        ("group_rule", "accumulators"),
        ("sparsity", "both"),
    ):
        value = getattr(design, name)
        require(value == only, f"{name} must be {only} in the RTL of scnn, not {value}")
    activations = vector_layout(design, design.ifmap_lanes)
    return {
        "command": In(stream.Signature(command_layout(design))),
        "ifmap": In(stream.Signature(activations)),
        "weight": In(stream.Signature(vector_layout(design, design.weight_lanes))),
        "bias": In(stream.Signature(design.accumulator_bits)),
        "ofmap": Out(stream.Signature(activations)),
        **{f"count_{name}": Out(COUNTER_BITS) for name in counts_of(design)},
        **(SETTINGS_PORTS if settings_of_memories(design) else {}),
    }


class ScnnCore(wiring.Component):
    """ofmap = requantize(ifmap ∗ weight + bias), a layer pass a command, on compressed operands.

    Ifmap lists go to the PEs one after the other; weights are decoded once and broadcast, as fast
    as every used PE has a place for them; after each group of filters all PEs wait for each other,
    and the sums are drained while the next group is computed.  After the last drain the OARAMs
    leave PE by PE; or they stay, and change places with the IARAMs as the next command is taken.
    Latencies, throughput and back-pressure: `docs/contracts/scnn.md`.
    Raises `InputError` for variants of the design that only the model has.

    Members
    -------
    command: `archsim.machines.scnn.command`; ifmap, weight, ofmap: vectors of compressed lists;
    bias: one word a filter; count_<event>: performance counters, summed over the PEs;
    settings_shift, settings_in, settings_out: of memories that take settings (`rtl.core.settings`).
    """

    command: stream.Interface
    ifmap: stream.Interface
    weight: stream.Interface
    bias: stream.Interface
    ofmap: stream.Interface

    @staticmethod
    def verification() -> "Verification":
        """How it is proved (`rtl.verification`)."""
        from rtl.sparse_verification import SparseVerification

        return SparseVerification()

    def __init__(self, design: Scnn) -> None:
        self.design = design
        super().__init__(core_members(design))

    @property
    def ports(self) -> tuple[Port, ...]:
        """The streams, with what their lanes hold."""
        return scnn_ports(self.design)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design = {"design": self.design}
        self.layer = Signal(command_layout(self.design), name="current")
        self.start = Signal()
        most = max(self.design.grid_rows, self.design.grid_columns)
        lists = {"most": most, "lists_bits": len(self.layer.lists)}
        self.load = place(m, "load", ListWalk, **lists)
        cycles = self.design.exchange_cycles - 1
        self.exchange = place(m, "exchange_delay", Delay, bits=1, cycles=cycles)
        pipelined = self.design.pipelined_pes
        ahead = pipelined and not self.design.weights_as_crossed
        decoder = PipelinedWeightDecoder if ahead else WeightDecoder
        self.decoder = place(m, "weight_decoder", decoder, **design)
        self.control = place(m, "control", GroupControl, **design)
        sequencer = PipelinedDrainSequencer if pipelined else DrainSequencer
        self.sequencer = place(m, "drain", sequencer, **design)
        self.biases = place(m, "bias_queue", BiasQueue, **design)
        self.pes = {
            (row, column): place(m, f"pe_{row}_{column}", pe_of(self.design), **design)
            for row in range(self.design.grid_rows)
            for column in range(self.design.grid_columns)
        }
        self.unload = place(m, "unload", ListWalk, **lists)
        self.settings = self._settings(m)
        self._commands(m)
        self._inputs(m)
        self._broadcast(m)
        self._groups(m)
        self._drain(m)
        for place_, pe in self.pes.items():
            self._pe(m, place_, pe)
        self._outputs(m)
        self._counters(m)
        return m

    def _settings(self, m: Module) -> dict[str, Any]:
        """Registers of all PEs' memories, between the core's ports."""
        own: Any = self
        chains: dict[str, Any] = {}
        last = None
        for name, found in settings_of_memories(self.design).items():
            chain = place(m, f"{name}_settings", SettingsChain, bits=found.bits, init=found.init)
            m.d.comb += [
                chain.shift.eq(own.settings_shift),
                chain.i.eq(own.settings_in if last is None else last),
            ]
            chains[name], last = chain, chain.last
        if last is not None:
            m.d.comb += own.settings_out.eq(last)
        return chains

    def _commands(self, m: Module) -> None:
        """Take a command when the layer before has left, or stays; clear the banks after reset."""
        self.exchanged = Signal()
        kept, stays = self.command.payload.ifmap_kept, Signal()
        entry = Signal(range(self.design.bank_entries + 1))
        self.clearing, cleared = Signal(), Signal()
        self.entry = entry
        m.d.comb += [
            self.clearing.eq(entry != self.design.bank_entries),
            cleared.eq(entry == self.design.bank_entries - 1),
            self.start.eq(self.command.valid & self.command.ready),
            self.load.start.eq(self.start & ~kept),
            self.exchange.i.eq(self.start & kept),
            stays.eq(self.control.finished & self.layer.keep_ofmap),
        ]
        m.d.sync += entry.eq(entry + self.clearing)
        with m.If(self.start):
            m.d.sync += [self.command.ready.eq(0), self.layer.eq(self.command.payload)]
            m.d.sync += self.exchanged.eq(kept & ~self.exchanged)
        with m.Elif(self.unload.ended | stays | cleared):
            m.d.sync += self.command.ready.eq(1)
        for unit in (self.decoder, self.control, self.sequencer, self.biases):
            self._layer(m, unit)
        for unit in (self.decoder, self.control, self.biases):
            m.d.comb += unit.start.eq(self.start)

    def _layer(self, m: Module, unit: Any) -> None:
        m.d.comb += [unit.layer[field.name].eq(self.layer[field.name]) for field in LAYER_FIELDS]

    def _inputs(self, m: Module) -> None:
        """Ifmap vectors to their PEs, weight vectors to all."""
        layer, load, decoder = self.layer, self.load, self.decoder
        m.d.comb += [
            load.rows.eq(layer.rows_used),
            load.columns.eq(layer.columns_used),
            load.lists.eq(Mux(self.start, self.command.payload.lists, layer.lists)),
            self.ifmap.ready.eq(load.open),
            load.cross.eq(self.ifmap.valid & self.ifmap.ready),
            load.last.eq(self.ifmap.payload.last),
            self.weight.ready.eq(decoder.open & self._room(m)),
            decoder.cross.eq(self.weight.valid & self.weight.ready),
            decoder.i.eq(self.weight.payload),
        ]
        wiring.connect(m, wiring.flipped(self.bias), self.biases.word)

    def _room(self, m: Module) -> Value:
        """Whether every PE that is used has a place for a vector of weights.  A layer ends with
        empty FIFOs, so that room of one that is not used any more is seen in time."""
        if not self.design.pipelined_pes:
            return _all(pe.room for pe in self.pes.values())
        room: Any = place(m, "weight_room", WeightRoom, design=self.design)
        m.d.comb += room.reserve.eq(self.decoder.cross)
        for number, (at, pe) in enumerate(self.pes.items()):
            m.d.comb += [
                room.used[number].eq(self._uses(*at)),
                room.released[number].eq(pe.released),
            ]
        if self.design.weights_as_crossed:
            m.d.comb += room.start.eq(self.start)
        return room.room

    def _uses(self, row: int, column: int) -> Value:
        """Whether the layer uses a PE."""
        return (row < self.layer.rows_used) & (column < self.layer.columns_used)

    def _broadcast(self, m: Module) -> None:
        """What goes into the FIFOs, and when: as it crosses, or behind the decoder's registers."""
        design, decoder = self.design, cast("Any", self.decoder)
        word = self.weight.payload if design.weights_as_crossed else decoder.o
        self.write, self.word = Signal(), Signal.like(word)
        if not design.pipelined_pes:
            m.d.comb += [self.write.eq(decoder.cross), self.word.eq(word)]
        elif not design.weights_as_crossed:
            m.d.comb += [self.write.eq(decoder.write), self.word.eq(word)]
        else:
            crosses = Cat(decoder.cross, word.as_value())
            line = place(m, "weight_delay", Delay, bits=len(crosses), cycles=DECODE_CYCLES)
            m.d.comb += [line.i.eq(crosses), Cat(self.write, self.word.as_value()).eq(line.o)]

    def _drain(self, m: Module) -> None:
        """What the PEs see of the drain, and when: as it is, or behind registers."""
        sequencer, biases, pipelined = self.sequencer, self.biases, self.design.pipelined_pes
        step, entry = sequencer.step, sequencer.entry
        self.step, self.drained_entry = Signal.like(step), Signal.like(entry)
        self.bias_word = Signal.like(biases.o)
        late = DRAIN_CYCLES if pipelined else 0
        for name, of, to, cycles in (
            ("step", step.as_value(), self.step, STEP_CYCLES if pipelined else 0),
            ("entry", entry, self.drained_entry, late),
            ("bias", biases.o, self.bias_word, late + pipelined),
        ):
            line = place(m, f"{name}_delay", Delay, bits=len(of), cycles=cycles)
            m.d.comb += [line.i.eq(of), Value.cast(to).eq(line.o)]

    def _loaded(self, m: Module) -> Value:
        """Whether the PEs have their ifmap: as it is loaded, or, where its values are compressed,
        when the last rows are written and read."""
        if not self.design.activation_memory.stepped:
            cycles = self.design.load_latency_cycles
            line = place(m, "loaded_delay", Delay, bits=1, cycles=cycles)
            m.d.comb += line.i.eq(self.load.ended)
            return line.o
        before = self.design.load_latency_cycles - 1
        flush = place(m, "flush_delay", Delay, bits=1, cycles=before)
        loaded = place(m, "loaded_delay", Delay, bits=1, cycles=1)
        m.d.comb += [flush.i.eq(self.load.ended), loaded.i.eq(flush.o)]
        for pe in self.pes.values():
            m.d.comb += pe.flush.eq(flush.o | self.control.flush)
        return loaded.o

    def _groups(self, m: Module) -> None:
        control, sequencer, biases = self.control, self.sequencer, self.biases
        m.d.comb += [
            control.loaded.eq(self._loaded(m) | self.exchange.o),
            control.done.eq(_all(pe.done for pe in self.pes.values())),
            control.biased.eq(biases.biased),
            control.drain_ready.eq(sequencer.ready),
            control.drain_ended.eq(sequencer.ended),
            sequencer.start.eq(control.drain),
            sequencer.filters.eq(control.filters),
            *([sequencer.begin.eq(self.start)] if sums_may_fail(self.design) else []),
            biases.filters.eq(control.filters),
            biases.step.eq(sequencer.step),
        ]

    def _pe(self, m: Module, at: tuple[int, int], pe: Any) -> None:
        row, column = at
        layer, load, design = self.layer, self.load, self.design
        self._layer(m, pe)
        for axis, number in (("row", row), ("column", column)):
            m.d.comb += [
                getattr(pe, axis)[field.name].eq(layer[f"{axis}_{number}_{field.name}"])
                for field in AXIS_FIELDS
            ]
        m.d.comb += [
            pe.enable.eq(self._uses(row, column)),
            pe.start.eq(self.start),
            pe.exchanged.eq(self.exchanged),
            pe.ifmap_write.eq(load.cross & (load.row == row) & (load.column == column)),
            pe.ifmap.eq(self.ifmap.payload),
            pe.weight_write.eq(self.write),
            pe.weight.eq(self.word),
            pe.go.eq(self.control.go),
            pe.half.eq(self.control.half),
            pe.step.eq(self.step),
            pe.bias.eq(self.bias_word),
            pe.clear.valid.eq(self.clearing),
            pe.clear.entry.eq(Mux(self.clearing, self.entry, self.drained_entry)),
            pe.unload.eq(self._unloads(m, row, column)),
        ]
        if "number" in pe_inputs(design):
            m.d.comb += pe.number.eq(row * design.grid_columns + column)
        for name, chain in self.settings.items():
            port = "settings" if name == "activation" else f"{name}_settings"
            m.d.comb += getattr(pe, port).eq(chain.o)
        for side in SIDES:
            down, right = NEIGHBOURS[side]
            neighbour = self.pes.get((row + down, column + right))
            if neighbour is not None:
                m.d.comb += getattr(pe, f"from_{side}").eq(neighbour.link)

    def _unloads(self, m: Module, row: int, column: int) -> Value:
        """Whether a PE's list goes on: its vector crosses, or, where the next one is read ahead
        into a register, all PEs begin that own outputs, which they know since the layer began."""
        unload = self.unload
        here = (unload.row == row) & (unload.column == column)
        if not self.design.pipelined_pes:
            return unload.cross & here
        owns = Signal(name=f"owns_{row}_{column}")
        m.d.sync += owns.eq((row < self.layer.owning_rows) & (column < self.layer.owning_columns))
        crosses = unload.cross & here
        if self.design.activation_memory.stepped:  # its rows are counted
            crosses &= ~unload.pe_ends
        return (unload.start & owns) | crosses

    def _outputs(self, m: Module) -> None:
        layer, unload = self.layer, self.unload
        m.d.comb += [
            unload.start.eq(self.control.finished & ~layer.keep_ofmap),
            unload.rows.eq(layer.owning_rows),
            unload.columns.eq(layer.owning_columns),
            unload.lists.eq(layer.ofmap_lists),
            self.ofmap.valid.eq(unload.open),
            unload.cross.eq(self.ofmap.valid & self.ofmap.ready),
            unload.last.eq(self.ofmap.payload.last),
        ]
        words: list[Value] = [
            Mux((unload.row == row) & (unload.column == column), Value.cast(pe.ofmap), 0)
            for (row, column), pe in self.pes.items()
        ]
        m.d.comb += Value.cast(self.ofmap.payload).eq(reduce(or_, words))

    def _counters(self, m: Module) -> None:
        own = {"weight_write": self.decoder.cross, "oaram_read": self.unload.cross}
        for name in counts_of(self.design):
            each = [own[name]] if name in own else [pe.events[name] for pe in self.pes.values()]
            counter = getattr(self, f"count_{name}")
            m.d.sync += counter.eq(counter + self._together(m, name, each))

    def _together(self, m: Module, name: str, each: list[Value]) -> Value:
        """Events of a cycle; with `pipelined_pes`, of the cycle before."""
        events = sum_of(each)
        if not self.design.pipelined_pes:
            return events
        kept = Signal(range((len(each) << len(each[0])) - len(each) + 1), name=f"events_{name}")
        m.d.sync += kept.eq(events)
        return kept


def _all(flags: Any) -> Value:
    return reduce(and_, flags)
