# pyright: reportAttributeAccessIssue=false, reportInvalidTypeForm=false
"""Small cores whose crossing cycles can be told by a recurrence, and three that are broken."""

from amaranth.hdl import Array, Cat, Module, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out


class Wire(wiring.Component):
    """`o = i`, combinational in both directions, without a clock."""

    def __init__(self, bits):
        super().__init__({"i": In(stream.Signature(bits)), "o": Out(stream.Signature(bits))})

    def elaborate(self, platform):
        m = Module()
        wiring.connect(m, wiring.flipped(self.i), wiring.flipped(self.o))
        return m


class PipeStage(wiring.Component):
    """A one-word FIFO that can be filled while it is emptied: ready to ready is combinational."""

    def __init__(self, bits):
        super().__init__({"i": In(stream.Signature(bits)), "o": Out(stream.Signature(bits))})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.i.ready.eq(~self.o.valid | self.o.ready)
        with m.If(self.i.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.eq(self.i.payload)]
        return m


class SkidBuffer(wiring.Component):
    """Latency 0; ready is a register: valid to valid is combinational. The payload is signed."""

    def __init__(self, bits):
        shape = signed(bits)
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        full = Signal()
        kept = Signal.like(self.i.payload)
        m.d.comb += [
            self.i.ready.eq(~full),
            self.o.valid.eq(full | self.i.valid),
            self.o.payload.eq(self.i.payload),
        ]
        with m.If(full):
            m.d.comb += self.o.payload.eq(kept)
        with m.Else():
            m.d.sync += kept.eq(self.i.payload)
        m.d.sync += full.eq(self.o.valid & ~self.o.ready)
        return m


class LaneSum(wiring.Component):
    """Sums `group` words lane by lane, modulo 2**bits, and offers the sums in the cycle after."""

    def __init__(self, lanes, bits, group):
        self.group = group
        layout = data.ArrayLayout(signed(bits), lanes)
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "o": Out(stream.Signature(layout)),
                "words": Out(16),
            }
        )

    def elaborate(self, platform):
        m = Module()
        count = Signal(range(self.group + 1))
        m.d.comb += [self.o.valid.eq(count == self.group), self.i.ready.eq(~self.o.valid)]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [count.eq(count + 1), self.words.eq(self.words + 1)]
            for total, term in zip(self.o.payload, self.i.payload, strict=True):
                m.d.sync += total.eq(total + term)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += count.eq(0)
            m.d.sync += [total.eq(0) for total in self.o.payload]
        return m


class Join(wiring.Component):
    """`o = {b, a}`: one of each crosses in the same cycle. `joined` counts words, `stalls` cycles
    in which both are there and `o` is not ready."""

    def __init__(self, a_bits, b_bits):
        super().__init__(
            {
                "a": In(stream.Signature(a_bits)),
                "b": In(stream.Signature(b_bits)),
                "o": Out(stream.Signature(a_bits + b_bits)),
                "joined": Out(40),
                "stalls": Out(7),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.o.payload.eq(Cat(self.a.payload, self.b.payload)),
            self.o.valid.eq(self.a.valid & self.b.valid),
            self.a.ready.eq(self.o.valid & self.o.ready),
            self.b.ready.eq(self.o.valid & self.o.ready),
        ]
        with m.If(self.o.valid):
            with m.If(self.o.ready):
                m.d.sync += self.joined.eq(self.joined + 1)
            with m.Else():
                m.d.sync += self.stalls.eq(self.stalls + 1)
        return m


class Impatient(wiring.Component):
    """Broken: offers a new count every cycle, whether the last was taken or not."""

    o: Out(stream.Signature(8))

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.valid.eq(1)
        m.d.sync += self.o.payload.eq(self.o.payload + 1)
        return m


class Fickle(wiring.Component):
    """Broken: after the second cycle of waiting it takes its word back."""

    o: Out(stream.Signature(100))

    def elaborate(self, platform):
        m = Module()
        waited = Signal(2)
        m.d.comb += [self.o.valid.eq(waited != 2), self.o.payload.eq(5)]
        m.d.sync += waited.eq(Array([1, 2, 0, 0])[waited])
        with m.If(self.o.ready):
            m.d.sync += waited.eq(0)
        return m


class OneTooMany(wiring.Component):
    """Broken: emits the last word of every four twice."""

    def __init__(self, bits):
        super().__init__({"i": In(stream.Signature(bits)), "o": Out(stream.Signature(bits))})

    def elaborate(self, platform):
        m = Module()
        count = Signal(2)
        again = Signal()
        kept = Signal.like(self.i.payload)
        m.d.comb += [
            self.i.ready.eq(self.o.ready & ~again),
            self.o.valid.eq(self.i.valid | again),
            self.o.payload.eq(self.i.payload),
        ]
        with m.If(again):
            m.d.comb += self.o.payload.eq(kept)
            m.d.sync += again.eq(~self.o.ready)
        with m.Elif(self.i.valid & self.i.ready):
            m.d.sync += [count.eq(count + 1), again.eq(count == 3), kept.eq(self.i.payload)]
        return m


class Peeker(wiring.Component):
    """Broken: `peeked` collects the payload of cycles in which there is none."""

    def __init__(self, bits):
        super().__init__({"i": In(stream.Signature(bits)), "peeked": Out(bits)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.i.ready.eq(1)
        with m.If(~self.i.valid):
            m.d.sync += self.peeked.eq(self.peeked ^ self.i.payload)
        return m
