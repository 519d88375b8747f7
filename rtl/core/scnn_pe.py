"""A PE of SCNN: compressed activations times broadcast weights, into banked accumulators."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.scnn.design import Scnn
from rtl.core.adder_tree import sum_of
from rtl.core.delay import Delay
from rtl.core.memory import rtl_of, stream_inputs
from rtl.core.requantize import Requantize
from rtl.core.scnn_activations import Activations
from rtl.core.scnn_arbiter import Arbiter
from rtl.core.scnn_banks import AccumulatorBanks, cell_inputs
from rtl.core.scnn_cells import pe_inputs
from rtl.core.scnn_compress import Compressor
from rtl.core.scnn_drain import SIDES, step_layout
from rtl.core.scnn_fifo import WeightFifo, stored_layout
from rtl.core.scnn_halo import HaloPort, link_layout
from rtl.core.scnn_layouts import axis_layout, layer_layout, vector_layout
from rtl.core.scnn_pool import WindowMaximum
from rtl.core.scnn_weights import PeWeightDecoder
from rtl.hierarchy import place

REQUANTIZE_CYCLES = 2


def clear_layout(design: Scnn) -> data.StructLayout:
    """An entry of all banks to be cleared; valid: in both halves."""
    return data.StructLayout({"valid": 1, "entry": max((design.bank_entries - 1).bit_length(), 1)})


def events_layout(design: Scnn) -> data.StructLayout:
    """What happens in a PE in a cycle, to be counted."""
    products = design.ifmap_lanes * design.weight_lanes
    return data.StructLayout(
        {
            "pair": 1,
            "conflict_cycle": 1,
            "skip": 1,
            "iaram_read": 1,
            "halo_sum": 1,
            "copy_sum": 1,
            "window_read": 1,
            "product": products.bit_length(),
            "fifo_write": 1,
            "weight_read": 1,
            "accumulator_update": design.banks.bit_length(),
            "iaram_write": 1,
            "oaram_write": 1,
            "output": 1,
            "zeroed": 1,
            "cleared": design.banks.bit_length(),
            **row_fields(design),
        }
    )


def row_fields(design: Scnn) -> dict[str, int]:
    """What the memories of the activations count."""
    return rtl_of(design.activation_memory).events(design)


class ScnnPe(wiring.Component):
    """for block of the group: for activation vector: for weight vector: all products, to banks.

    A pair of vectors occupies the operand stage for `Arbiter`'s cost and starts when the pair
    before has ended and its weights are here.  A block without activations takes one cycle, when
    all its weights are here.  After the group's last block the PE waits for `go`.
    Meanwhile the other half of the accumulators is drained: `HaloPort`, requantise (2 cycles),
    `WindowMaximum`, `Compressor`, which rests in a PE that gives no outputs out; and cleared, in a
    pooled layer.  Vectors of both ends are in
    memories of the kind that the design says (`rtl.core.memory.StreamRtl`).  Latencies:
    `docs/contracts/scnn.md`.

    Members
    -------
    layer, row, column: the command; enable: the PE is used; start: a layer begins; exchanged: IARAM
    and OARAM are in each other's place; ifmap_write, ifmap: a vector of its lists; weight_write,
    weight, room: of the broadcast; go, half: begin a group, with these accumulators, in the next
    cycle; done: the PE waits; step, bias, clear: of the drain, bias a cycle after its step; flush:
    of memories that are stepped; link, from_<side>: to and from the neighbours; unload,
    ofmap: to the next vector of its outputs, and the one that it stands at; events: for counters;
    number, settings: of memories that take some (`rtl.core.memory.stream_inputs`).
    """

    layer: data.View
    row: data.View
    column: data.View
    enable: Signal
    start: Signal
    exchanged: Signal
    ifmap_write: Signal
    ifmap: data.View
    weight_write: Signal
    weight: data.View
    room: Signal
    go: Signal
    half: Signal
    done: Signal
    step: data.View
    bias: Signal
    clear: data.View
    link: data.View
    unload: Signal
    flush: Signal
    ofmap: data.View
    number: Signal
    settings: Signal
    events: data.View

    def __init__(self, *, design: Scnn) -> None:
        self.design = design
        strobes = ("enable", "start", "exchanged", "ifmap_write", "weight_write", "go", "half")
        link, vector = link_layout(design), vector_layout(design, design.ifmap_lanes)
        super().__init__(
            {
                "layer": In(layer_layout()),
                "row": In(axis_layout()),
                "column": In(axis_layout()),
                **{name: In(1) for name in (*strobes, "unload")},
                **{name: In(bits) for name, bits in pe_inputs(design).items()},
                **({"flush": In(1)} if design.activation_memory.stepped else {}),
                "ifmap": In(vector),
                "weight": In(stored_layout(design)),
                **self.room_members(design),
                "done": Out(1),
                "step": In(step_layout()),
                "bias": In(design.accumulator_bits),
                "clear": In(clear_layout(design)),
                "link": Out(link),
                **{f"from_{side}": In(link) for side in SIDES},
                "ofmap": Out(vector),
                "events": Out(events_layout(design)),
            }
        )

    def room_members(self, design: Scnn) -> dict[str, Any]:
        """What tells whether a vector of weights may cross."""
        return {"room": Out(1)}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design = {"design": self.design}
        self.fifo = place(m, "fifo", WeightFifo, **design)
        memories, parameters = rtl_of(self.design.activation_memory).unit(self.design)
        self.memories = place(m, "memories", memories, **parameters)
        self._place_operands(m)
        self.banks = place(m, "banks", AccumulatorBanks, **design)
        self._operands(m)
        self._tell_room(m)
        self.word = self._weights(m)
        self._walk(m)
        self._multiply(m)
        self._drain(m)
        return m

    def _place_operands(self, m: Module) -> None:
        """What decodes activations, and what sends products."""
        self.activations = place(m, "activations", Activations, design=self.design)
        self.arbiter = place(m, "arbiter", Arbiter, design=self.design)

    def _operands(self, m: Module) -> None:
        fifo, activations = self.fifo, self.activations
        wiring.connect(m, activations.store, self.memories.ifmap)
        m.d.comb += [
            self.memories.exchanged.eq(self.exchanged),
            *(
                getattr(self.memories, name).eq(getattr(self, name))
                for name in stream_inputs(self.design)
            ),
            fifo.write.eq(self.weight_write & self.enable),
            fifo.i.eq(self.weight),
            activations.layer.eq(self.layer),
            activations.row.eq(self.row),
            activations.column.eq(self.column),
            activations.clear.eq(self.start),
            activations.write.eq(self.ifmap_write),
            activations.i.eq(self.ifmap),
            self.events.fifo_write.eq(fifo.write),
            self.events.iaram_write.eq(self.memories.ifmap.write),
        ]
        if self.design.activation_memory.stepped:
            m.d.comb += [
                self.memories.start.eq(self.start),
                self.memories.go.eq(self.go),
                self.memories.flush.eq(self.flush),
                *(self.events[name].eq(count) for name, count in self._rows(self.memories)),
            ]

    def _tell_room(self, m: Module) -> None:
        """Whether the FIFO has a place; it always has in a PE that is not used."""
        m.d.comb += self.room.eq(self.fifo.room | ~self.enable)

    def _weights(self, m: Module) -> data.View:
        """The vector of weights that the PE stands at, decoded."""
        fifo: Any = self.fifo
        if not self.design.weights_as_crossed:
            return fifo.word
        own: Any = self
        decoder = place(m, "weight_decoder", PeWeightDecoder, design=self.design)
        m.d.comb += [
            fifo.start.eq(self.start),
            *(
                getattr(fifo, name).eq(getattr(own, port))
                for name, port in (("number", "number"), ("settings", "weight_settings"))
                if name in fifo.signature.members
            ),
            decoder.layer.eq(self.layer),
            decoder.start.eq(self.start),
            decoder.i.eq(fifo.word),
            decoder.cross.eq(fifo.step),
            decoder.ends.eq(fifo.block_end),
        ]
        return decoder.o

    def _rows(self, memories: Any) -> Any:
        """What the memories count."""
        return ((name, memories.events[name]) for name in row_fields(self.design))

    def _walk(self, m: Module) -> None:
        """Where the PE stands in its group's blocks."""
        fifo, activations, arbiter = self.fifo, self.activations, self.arbiter
        running, left = Signal(), Signal(len(self.layer.lists))
        skip, ended, list_ends, block_ends, group_ends = (
            Signal(name=name) for name in ("skip", "ended", "list_ends", "block_ends", "group_ends")
        )
        m.d.comb += [
            arbiter.active.eq(running & ~activations.empty & fifo.arrived),
            skip.eq(running & activations.empty & fifo.complete),
            ended.eq(arbiter.ended),
            list_ends.eq(ended & fifo.word.last),
            block_ends.eq(skip | (list_ends & activations.o.last)),
            group_ends.eq(block_ends & (left == 1)),
            self.done.eq(~running),
            fifo.step.eq(ended),
            self.events.weight_read.eq(fifo.step),
            fifo.again.eq(fifo.word.last & ~activations.o.last),
            fifo.release.eq(activations.o.last),
            fifo.skip.eq(skip),
            fifo.block_end.eq(block_ends),
            activations.step.eq(skip | list_ends),
            activations.restart.eq(group_ends),
            self.events.pair.eq(ended),
            self.events.conflict_cycle.eq(arbiter.active & ~ended),
            self.events.skip.eq(skip),
            self.events.iaram_read.eq(activations.step),
        ]
        with m.If(block_ends):
            m.d.sync += left.eq(left - 1)
        with m.If(group_ends):
            m.d.sync += running.eq(0)
        with m.If(self.go & self.enable):
            m.d.sync += [running.eq(1), left.eq(self.layer.lists)]

    def _multiply(self, m: Module) -> None:
        activations, arbiter, banks = self.activations, self.arbiter, self.banks
        m.d.comb += [
            arbiter.weight.eq(self.word),
            arbiter.activation.eq(activations.o),
        ]
        self._banked(m, arbiter)
        if self.design.bank_queue > 1:
            m.d.comb += arbiter.occupied.eq(banks.occupied)
        for lane in range(self.design.ifmap_lanes):
            m.d.comb += banks.i.activations[lane].eq(activations.o.lanes[lane].value)
        for lane in range(self.design.weight_lanes):
            m.d.comb += banks.i.weights[lane].eq(self.word.lanes[lane].value)

    def _banked(self, m: Module, sender: Any) -> None:
        """From what sends products to the banks."""
        banks, half = self.banks, Signal()
        with m.If(self.go):
            m.d.sync += half.eq(self.half)
        m.d.comb += [
            sender.rows.eq(self.row.reach),
            sender.columns.eq(self.column.reach),
            banks.i.places.eq(sender.places),
            banks.i.addresses.eq(sender.addresses),
            banks.i.half.eq(half),
            *(getattr(banks, name).eq(getattr(self, own)) for name, own in self._cells()),
            self.events.product.eq(sum_of([*sender.selected])),
            self.events.accumulator_update.eq(sum_of([*banks.updates])),
        ]

    def _cells(self) -> list[tuple[str, str]]:
        """Ports of the banks whose cells may fail, and what they are of the PE's."""
        names = {"pe": "number", "settings": "accumulator_settings"}
        return [(name, names[name]) for name in cell_inputs(self.design)]

    def _drain(self, m: Module) -> None:
        design, banks = self.design, self.banks
        halo: Any = self._halo(m)
        compress = place(m, "compress", Compressor, design=design)
        wiring.connect(m, compress.store, self.memories.ofmap)
        step = halo.late if design.pipelined_pes else self.step
        ends, first, owns = Signal(), Signal(), Signal()
        m.d.comb += owns.eq((self.row.give_count != 0) & (self.column.give_count != 0))
        m.d.sync += [ends.eq(step.ends & owns), first.eq(step.first)]
        for side in SIDES:
            m.d.comb += getattr(halo, f"from_{side}").eq(getattr(self, f"from_{side}"))
        m.d.comb += [
            halo.layer.eq(self.layer),
            halo.row.eq(self.row),
            halo.column.eq(self.column),
            halo.step.eq(self.step),
            banks.drain.eq(halo.drain),
            halo.read_data.eq(banks.read_data),
            self.link.eq(halo.link),
            self.events.halo_sum.eq(halo.count_halo),
            self.events.copy_sum.eq(halo.count_copy),
            self.events.window_read.eq(halo.count_window),
            self.events.output.eq(halo.gives),
            self.events.zeroed.eq(halo.count_zeroed),
            self.events.oaram_write.eq(self.memories.ofmap.write),
            compress.clear.eq(self.start),
            compress.step.eq(self.unload),
        ]
        self._give_out(m, compress.o)
        valid = (halo.gives | halo.blank) & owns
        self._output(m, halo.sum, compress, (valid, ends, halo.blank, first, halo.valid_o))
        self._clear(m, step)

    def _give_out(self, m: Module, vector: data.View) -> None:
        """The vector of its lists that leaves."""
        m.d.comb += self.ofmap.eq(vector)

    def _halo(self, m: Module) -> HaloPort:
        """The PE's part of the drain."""
        return place(m, "halo", HaloPort, design=self.design)

    def _output(self, m: Module, sum_: Value, compress: Any, flags: tuple[Value, ...]) -> None:
        """From a sum to the list; flags: valid, ends, blank, first and counts of it."""
        sizes = self._widths()
        requantize = place(m, "requantize", Requantize, **sizes)
        maximum = place(m, "maximum", WindowMaximum, design=self.design)
        line = place(m, "output_delay", Delay, bits=len(flags), cycles=REQUANTIZE_CYCLES)
        blank = Signal()
        self._scale(m, requantize, sum_)
        m.d.comb += [
            line.i.eq(Cat(*flags)),
            Cat(compress.valid, compress.ends, blank, maximum.first, maximum.counts).eq(line.o),
            maximum.value.eq(requantize.o),
            compress.value.eq(Mux(blank, 0, maximum.o)),
        ]

    def _widths(self) -> dict[str, int]:
        design = self.design
        return {"accumulator_bits": design.accumulator_bits, "operand_bits": design.operand_bits}

    def _scale(self, m: Module, requantize: Any, sum_: Value) -> None:
        """What a sum is rescaled with."""
        m.d.comb += [
            requantize.acc.eq(sum_),
            requantize.bias.eq(self.bias),
            requantize.multiplier.eq(self.layer.multiplier),
            requantize.shift.eq(self.layer.shift),
            requantize.relu.eq(self.layer.relu),
        ]

    def _used(self, m: Module) -> Value:
        """Whether the PE takes part in the layer that is drained."""
        return self.enable

    def _clear(self, m: Module, step: data.View) -> None:
        """An entry of all banks: after a reset of both halves, behind a drain of its half."""
        banks, clear = self.banks, self.clear
        erased = Signal()
        m.d.comb += [
            erased.eq(step.clears & self._used(m)),
            self.events.cleared.eq(Mux(erased, self.design.banks, 0)),
        ]
        with m.If(clear.valid | erased):
            low = (self.design.banks - 1).bit_length()
            m.d.comb += [
                banks.drain.clear.eq(clear.valid),
                banks.drain.erase.eq(erased),
                banks.drain.write_address.eq(clear.entry << low),
            ]
