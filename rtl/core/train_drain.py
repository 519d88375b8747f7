"""What leaves a tile's accumulators: words in which an output is needed, in order."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.sparsetrain.design import SparseTrain
from rtl.core.one_hot import any_of, index_of
from rtl.core.sram import address_bits


class TrainDrain(wiring.Component):
    """ofmap = of each PE the sum at an address, 0 where it is not needed; for each such address.

    Latency: 2 cycles from `start` to the first word.  Throughput: a word a cycle.  Back-pressure: a
    word is read when the one before leaves, or has left.

    Members
    -------
    start: begins with `needed` (of each PE its outputs, address by address) in the half `of`.
    active: words are left.  half, address: what the PEs are to show in the next cycle; sums: what
    they show.
    """

    ofmap: stream.Interface
    start: Signal
    needed: Signal
    of: Signal
    active: Signal
    half: Signal
    address: Signal
    sums: Signal

    def __init__(self, *, design: SparseTrain) -> None:
        self.design = design
        word = design.pes * design.accumulator_bits
        super().__init__(
            {
                "start": In(1),
                "needed": In(design.pes * design.own_outputs),
                "of": In(1),
                "active": Out(1),
                "half": Out(1),
                "address": Out(address_bits(design.own_outputs)),
                "sums": In(word),
                "ofmap": Out(stream.Signature(word)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m, pes, outputs = Module(), self.design.pes, self.design.own_outputs
        needed, words = Signal.like(self.needed), Signal(outputs)
        lowest, shown = Signal(outputs), Signal.like(self.address)
        full, lanes, reads = Signal(), Signal(pes), Signal()
        of_pe = [needed.word_select(pe, outputs) for pe in range(pes)]
        m.d.comb += [
            lowest.eq(words & (~words + 1)),
            reads.eq(words.any() & (~full | self.ofmap.ready)),
            self.address.eq(Mux(reads, index_of(lowest), shown)),
            self.active.eq(words.any() | full),
            self.ofmap.valid.eq(full),
            self.ofmap.payload.eq(
                Cat(
                    self.sums.word_select(pe, self.design.accumulator_bits)
                    & lanes[pe].replicate(self.design.accumulator_bits)
                    for pe in range(pes)
                )
            ),
        ]
        m.d.sync += shown.eq(self.address)
        with m.If(self.ofmap.ready):
            m.d.sync += full.eq(0)
        with m.If(reads):
            m.d.sync += [
                full.eq(1),
                words.eq(words & ~lowest),
                lanes.eq(Cat((one & lowest).any() for one in of_pe)),
            ]
        with m.If(self.start):
            start = [self.needed.word_select(pe, outputs) for pe in range(pes)]
            m.d.sync += [needed.eq(self.needed), words.eq(any_of(start)), self.half.eq(self.of)]
        return m


__all__ = ["TrainDrain"]
