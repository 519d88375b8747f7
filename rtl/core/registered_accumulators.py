"""The accumulators with a register between their memory and the adder."""

from amaranth.hdl import Module, Mux, Signal

from rtl.core.accumulators import Accumulators, token_layout


class RegisteredAccumulators(Accumulators):
    """As `Accumulators`; the token comes two cycles before its sums.

    What is read lies in a register before it is added to: an FPGA's block RAM gives a word late in
    its cycle.  A row that is written while it lies there is taken from the adder, so that the same
    row in successive cycles is right.
    Latency: 2 cycles from the token to the write; `done` is given in the cycle of the last write.
    Throughput: one row a cycle, the same row in successive cycles included.  Never stalls.
    read_data[t + 2] = half[read_half[t]][read_address[t]] for the output stage, which reads a half
    of which nothing is on its way.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        token, layout = self.token, token_layout(self.depth)
        reading, adding = Signal(layout), Signal(layout)
        selected = Signal(2)
        follows = reading.valid & (token.address == reading.address)
        m.d.sync += [
            reading.eq(token),
            adding.eq(reading),
            selected.eq((selected << 1) | self.read_half),
        ]
        shape = {"bits": self.columns * self.bits, "depth": self.depth}
        held = [Signal(self.columns * self.bits, name=f"held_{half}") for half in range(2)]
        for half in range(2):
            store = self.banks.place(m, self, f"half_{half}", half, transparent=True, **shape)
            total = Signal(self.columns * self.bits, name=f"total_{half}")
            forward = Signal(name=f"forward_{half}")
            for column in range(self.columns):
                before = held[half].word_select(column, self.bits)
                m.d.comb += total.word_select(column, self.bits).eq(
                    self.sums.word_select(column, self.bits) + Mux(adding.overwrite, 0, before)
                )
            m.d.sync += [
                forward.eq(follows & (reading.half == half)),
                held[half].eq(Mux(forward, total, store.read_data)),
            ]
            m.d.comb += [
                store.read_address.eq(
                    Mux(token.valid & (token.half == half), token.address, self.read_address)
                ),
                store.write.eq(adding.valid & (adding.half == half)),
                store.write_address.eq(adding.address),
                store.write_data.eq(total),
            ]
        m.d.comb += [
            self.read_data.eq(Mux(selected[1], held[1], held[0])),
            self.done.eq(adding.valid & adding.last),
            self.count_write.eq(adding.valid),
            self.count_read.eq(adding.valid & ~adding.overwrite),
        ]
        return m
