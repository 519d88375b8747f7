"""A PE of SCNN with `pipelined_pes`: pairs are issued ahead of being sent."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import Out

from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.pipeline import OUTPUT_REGISTERS
from archsim.machines.scnn.widths import pointer_bits
from rtl.core.delay import Delay
from rtl.core.pipelined_output import PipelinedRequantize
from rtl.core.scnn_fetched import FetchedActivations
from rtl.core.scnn_halo import HaloPort, PipelinedHaloPort
from rtl.core.scnn_pe import ScnnPe
from rtl.core.scnn_pool import WindowMaximum
from rtl.core.scnn_sending import SendingStage
from rtl.hierarchy import place

VALUE_CYCLES = 4 + OUTPUT_REGISTERS
"""From a sum to its value, in a register."""


class PipelinedScnnPe(ScnnPe):
    """As a `ScnnPe`, with registers between its steps: docs/contracts/scnn.md, *Registers*.

    Activations are decoded ahead (`FetchedActivations`).  A pair, or a block that is skipped, is
    issued as soon as both its vectors are here and there is room: FIFO and activations go on, and
    `SendingStage` sends its products when the pair before has ended.  The PE waits for `go` when
    all that it issued has ended.

    Members
    -------
    as there, but for room; released: of the FIFO (`WeightRoom`).
    """

    released: Signal

    def room_members(self, design: Scnn) -> dict[str, Any]:
        return {"released": Out(pointer_bits(design))}

    def _tell_room(self, m: Module) -> None:
        """Where what the FIFO holds begins: `WeightRoom` says the rest."""
        fifo: Any = self.fifo
        m.d.comb += self.released.eq(fifo.released)

    def _place_operands(self, m: Module) -> None:
        self.activations = place(m, "activations", FetchedActivations, design=self.design)
        self.sending = place(m, "sending", SendingStage, design=self.design)

    def _walk(self, m: Module) -> None:
        """Where the PE stands in its group's blocks, as they are issued."""
        fifo: Any = self.fifo
        activations, sending = self.activations, self.sending
        running, left = Signal(), Signal(len(self.layer.lists))
        issued, skip, paired, list_ends, block_ends, last = (
            Signal(name=name)
            for name in ("issued", "skip", "paired", "list_ends", "block_ends", "last")
        )
        m.d.comb += [
            activations.go.eq(self.go & self.enable),
            sending.i.valid.eq(
                activations.valid & Mux(activations.empty, fifo.complete, fifo.arrived)
            ),
            issued.eq(sending.i.valid & sending.i.ready),
            skip.eq(issued & activations.empty),
            paired.eq(issued & ~activations.empty),
            list_ends.eq(paired & self.word.last),
            block_ends.eq(skip | (list_ends & activations.o.last)),
            last.eq(left == 1),
            fifo.step.eq(paired),
            fifo.again.eq(self.word.last & ~activations.o.last),
            fifo.release.eq(activations.o.last),
            fifo.skip.eq(skip),
            fifo.block_end.eq(block_ends),
            activations.step.eq(skip | list_ends),
            sending.i.payload.weight.eq(self.word),
            sending.i.payload.activation.eq(activations.o),
            sending.i.payload.skip.eq(activations.empty),
            sending.i.payload.last.eq(
                last & (activations.empty | (self.word.last & activations.o.last))
            ),
            self.done.eq(~running),
            self.events.weight_read.eq(fifo.step),
            self.events.iaram_read.eq(activations.step),
            self.events.pair.eq(sending.ended & ~sending.skip),
            self.events.skip.eq(sending.ended & sending.skip),
            self.events.conflict_cycle.eq(sending.active & ~sending.ended),
        ]
        with m.If(block_ends):
            m.d.sync += left.eq(left - 1)
        with m.If(sending.ended & sending.last):
            m.d.sync += running.eq(0)
        with m.If(~running):
            m.d.sync += left.eq(self.layer.lists)
        with m.If(self.go & self.enable):
            m.d.sync += running.eq(1)

    def _multiply(self, m: Module) -> None:
        sending, banks = self.sending, self.banks
        self._banked(m, sending)
        m.d.comb += [
            banks.i.activations.eq(sending.activations),
            banks.i.weights.eq(sending.weights),
        ]

    def _used(self, m: Module) -> Value:
        """In a register of its own, near the banks."""
        used = Signal(name="used")
        m.d.sync += used.eq(self.enable)
        return used

    def _give_out(self, m: Module, vector: data.View) -> None:
        """In a register, while the memory stands at the one behind it."""
        with m.If(self.unload):
            m.d.sync += self.ofmap.eq(vector)

    def _halo(self, m: Module) -> HaloPort:
        return place(m, "halo", PipelinedHaloPort, design=self.design)

    def _output(self, m: Module, sum_: Value, compress: Any, flags: tuple[Value, ...]) -> None:
        """With registers for the sum, in and behind the product, for the value and the maximum."""
        requantize = place(
            m, "requantize", PipelinedRequantize, **self._widths(), registers=OUTPUT_REGISTERS
        )
        maximum = place(m, "maximum", WindowMaximum, design=self.design)
        line = place(m, "output_delay", Delay, bits=len(flags), cycles=VALUE_CYCLES)
        kept = Signal(len(sum_), reset_less=True)
        value, given = (Signal.like(requantize.o, name=name) for name in ("value", "given"))
        valid, ends, blank = (Signal(name=name) for name in ("valid", "ends", "blank"))
        m.d.sync += kept.eq(sum_)
        self._scale(m, requantize, kept)
        m.d.comb += [
            line.i.eq(Cat(*flags)),
            Cat(valid, ends, blank, maximum.first, maximum.counts).eq(line.o),
            maximum.value.eq(value),
            compress.value.eq(given),
        ]
        m.d.sync += [
            value.eq(requantize.o),
            given.eq(Mux(blank, 0, maximum.o)),
            compress.valid.eq(valid),
            compress.ends.eq(ends),
        ]


def pe_of(design: Scnn) -> type[ScnnPe]:
    """The PE of a design."""
    return PipelinedScnnPe if design.pipelined_pes else ScnnPe


__all__ = ["PipelinedScnnPe", "pe_of"]
