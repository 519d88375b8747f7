"""The accumulators of a core of floats: rows of partial sums, added up by pipelined adders."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring

from archsim.arithmetic.float_datapath import FloatRules
from archsim.arithmetic.float_sum import accumulate_latency_cycles, adder
from archsim.arithmetic.formats import FloatFormat
from rtl.core.accumulators import accumulator_ports, token_layout
from rtl.core.delay import Delay
from rtl.core.dot_product import FloatDotProduct
from rtl.core.memory import PLAIN_BANKS, Banks
from rtl.hierarchy import place


class FloatAccumulators(wiring.Component):
    """half[token.half][token.address] ← sums if token.overwrite else what it held + sums.

    The sum is that of `archsim.arithmetic.float_sum.adder`; an overwrite keeps the pattern of sums.
    The token comes one cycle before its sums.  Latency: `accumulate_latency_cycles` (3) from the
    token to the write; `done` is given in the cycle of the last write.  Throughput: one row a
    cycle.  Never stalls.

    Required, since a row under way is not forwarded: successive tokens for one row of one half are
    at least that latency apart; tokens of other rows may come between.  The core guarantees it: it
    gives out a row once a block and channel tile, and a block takes longer.

    read_data[t + 1] = half[read_half[t]][read_address[t]] for the output stage, which reads one
    half while the other is added to; a token's read goes before, if they are of the same half.

    Members
    -------
    token: where the row of sums goes; sums: the row, a cycle later; done: the last row of an output
    tile is written in this cycle; read_half, read_address, read_data: of the output stage;
    count_write, count_read: a row is written, and what it held was added to, in this cycle.
    """

    token: data.View
    sums: Signal
    done: Signal
    read_half: Signal
    read_address: Signal
    read_data: Signal
    count_write: Signal
    count_read: Signal

    def __init__(
        self,
        *,
        columns: int,
        accumulator: FloatFormat,
        rules: FloatRules,
        depth: int,
        banks: Banks = PLAIN_BANKS,
    ) -> None:
        self.columns = columns
        self.unit = adder(accumulator, rules)
        self.bits = accumulator.bits
        self.depth = depth
        self.banks = banks
        super().__init__({**accumulator_ports(columns * self.bits, depth), **banks.port(depth)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        token, writing = self.token, Signal(token_layout(self.depth))
        held = [Signal(self.columns * self.bits, name=f"held_{half}") for half in range(2)]
        adding, selected = Signal(), Signal()
        m.d.sync += [adding.eq(token.half), selected.eq(self.read_half)]
        total = self._total(m, Mux(adding, held[1], held[0]), writing.overwrite)
        for half in range(2):
            shape = {"bits": self.columns * self.bits, "depth": self.depth}
            store = self.banks.place(m, self, f"half_{half}", half, transparent=True, **shape)
            m.d.comb += [
                store.read_address.eq(
                    Mux(token.valid & (token.half == half), token.address, self.read_address)
                ),
                store.write.eq(writing.valid & (writing.half == half)),
                store.write_address.eq(writing.address),
                store.write_data.eq(total),
                held[half].eq(store.read_data),
            ]
        latency = accumulate_latency_cycles(self.unit)
        line = place(m, "token_delay", Delay, bits=len(token.as_value()), cycles=latency)
        m.d.comb += [
            line.i.eq(token),
            writing.eq(line.o),
            self.read_data.eq(Mux(selected, held[1], held[0])),
            self.done.eq(writing.valid & writing.last),
            self.count_write.eq(writing.valid),
            self.count_read.eq(writing.valid & ~writing.overwrite),
        ]
        return m

    def _total(self, m: Module, held: Value, overwrite: Signal) -> Signal:
        """What was held plus the sums, or the sums alone: of a row, the adder's latency later."""
        total = Signal(self.columns * self.bits)
        line = place(m, "sums_delay", Delay, bits=len(self.sums), cycles=self.unit.latency_cycles)
        m.d.comb += line.i.eq(self.sums)
        for column in range(self.columns):
            unit = place(m, f"adder_{column}", FloatDotProduct, design=self.unit, by_one=True)
            m.d.comb += [
                unit.a.eq(self.sums.word_select(column, self.bits)),
                unit.c.eq(held.word_select(column, self.bits)),
                total.word_select(column, self.bits).eq(
                    Mux(overwrite, line.o.word_select(column, self.bits), unit.o)
                ),
            ]
        return total
