"""The processing elements of a systolic array."""

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from rtl.core.accumulator import Accumulator
from rtl.core.product import product_of
from rtl.hierarchy import place

CAPTURE = data.StructLayout({"valid": 1, "bank": 1})
"""The token behind which stationary operands are captured; it passes a PE in two cycles."""


class StationaryPE(wiring.Component):
    """psum_o[t + 1] = psum_i[t] + moving_i[t − p] · held[bank_i[t − p]][t − p].

    p: `product_registers`.
    The stationary operand passes a PE in one cycle and the capture token in two, so that the j-th
    word of a load is captured by the j-th PE of the chain.  Two banks: one is used while the
    other is filled.
    Latency: 1 cycle (psum, moving), 2 (capture), 1 + p from an operand to the sum.
    Throughput: one product a cycle.  Never stalls.

    Members
    -------
    moving: the operand that passes the PE, and bank: which stationary operand it meets; stationary:
    operands on their way to where they are held; capture: a `CAPTURE` token; psum: the partial
    sum.  Each as input (…_i) and, for the next PE, as output (…_o).
    """

    moving_i: Signal
    moving_o: Signal
    bank_i: Signal
    bank_o: Signal
    stationary_i: Signal
    stationary_o: Signal
    capture_i: Signal
    capture_o: Signal
    psum_i: Signal
    psum_o: Signal

    def __init__(
        self,
        *,
        operand_bits: int,
        accumulator_bits: int,
        product_registers: int = 0,
        in_luts: bool = False,
    ) -> None:
        self.operand_bits = operand_bits
        self.accumulator_bits = accumulator_bits
        self.product_registers = product_registers
        self.in_luts = in_luts
        operand, total = signed(operand_bits), signed(accumulator_bits)
        super().__init__(
            {
                "moving_i": In(operand),
                "moving_o": Out(operand),
                "bank_i": In(1),
                "bank_o": Out(1),
                "stationary_i": In(operand),
                "stationary_o": Out(operand),
                "capture_i": In(2),
                "capture_o": Out(2),
                "psum_i": In(total),
                "psum_o": Out(total),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        waiting = Signal(CAPTURE)
        sizes = {"bits": self.operand_bits, "registers": self.product_registers}
        product = product_of(m, self.moving_i, self._held(m), **sizes, in_luts=self.in_luts)
        m.d.sync += [
            self.moving_o.eq(self.moving_i),
            self.bank_o.eq(self.bank_i),
            self.stationary_o.eq(self.stationary_i),
            waiting.eq(self.capture_i),
            self.capture_o.eq(waiting),
            self.psum_o.eq(self.psum_i + product),
        ]
        return m

    def _held(self, m: Module) -> Value:
        """The stationary operand of this cycle: of two registers, or of a memory of two words.

        A memory, which an FPGA's look-up tables are, where the product has registers: the way from
        it to the product is then a whole cycle.
        """
        capture = data.View(CAPTURE, self.capture_i)
        operand = signed(self.operand_bits)
        if self.product_registers == 2:
            m.submodules.held = held = memory.Memory(shape=operand, depth=2, init=[])
            write, read = held.write_port(), held.read_port(domain="comb")
            m.d.comb += [
                write.en.eq(capture.valid),
                write.addr.eq(capture.bank),
                write.data.eq(self.stationary_i),
                read.addr.eq(self.bank_i),
            ]
            return read.data
        banks = [Signal(operand, name=f"held_{bank}") for bank in range(2)]
        for bank in range(2):
            with m.If(capture.valid & (capture.bank == bank)):
                m.d.sync += banks[bank].eq(self.stationary_i)
        return Mux(self.bank_i, banks[1], banks[0])


class AccumulatingPE(wiring.Component):
    """sum ← (0 if first_i else sum) + ifmap_i · weight_i; kept for the way out at last_i.

    Flags and drain belong to the sum: they come `product_registers` cycles behind the operands.
    With them a sum is kept a cycle later, from its register and not from the adder, whose result
    then has one place to go to; the drain token comes a cycle later too.
    The kept sum joins the column's pipe when the drain token passes (two cycles a PE, against one
    of the pipe), so that the rows of a fold leave the column one after the other.
    Latency: 1 cycle (operands, pipe), 2 (drain).  Throughput: one product a cycle.  Never stalls.

    Members
    -------
    ifmap, weight: the operands; flags: first (bit 0) and last (bit 1) step of a sum; drain: the
    token that takes the kept sum along; pipe: the column's way out.  Each as input (…_i) and, for
    the next PE, as output (…_o).
    """

    ifmap_i: Signal
    ifmap_o: Signal
    flags_i: Signal
    flags_o: Signal
    weight_i: Signal
    weight_o: Signal
    drain_i: Signal
    drain_o: Signal
    pipe_i: Signal
    pipe_o: Signal

    def __init__(
        self,
        *,
        operand_bits: int,
        accumulator_bits: int,
        product_registers: int = 0,
        in_luts: bool = False,
    ) -> None:
        self.operand_bits = operand_bits
        self.accumulator_bits = accumulator_bits
        self.product_registers = product_registers
        self.in_luts = in_luts
        operand, total = signed(operand_bits), signed(accumulator_bits)
        super().__init__(
            {
                "ifmap_i": In(operand),
                "ifmap_o": Out(operand),
                "flags_i": In(2),
                "flags_o": Out(2),
                "weight_i": In(operand),
                "weight_o": Out(operand),
                "drain_i": In(1),
                "drain_o": Out(1),
                "pipe_i": In(total),
                "pipe_o": Out(total),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        kept = Signal(signed(self.accumulator_bits))
        waiting = Signal()
        done, total = self._summed(m)
        m.d.sync += [
            self.ifmap_o.eq(self.ifmap_i),
            self.flags_o.eq(self.flags_i),
            self.weight_o.eq(self.weight_i),
            waiting.eq(self.drain_i),
            self.drain_o.eq(waiting),
            self.pipe_o.eq(Mux(self.drain_i, kept, self.pipe_i)),
        ]
        with m.If(done):
            m.d.sync += kept.eq(total)
        return m

    def _summed(self, m: Module) -> tuple[Value, Value]:
        """Whether a sum is done, and which: of the adder, or of its register."""
        first, last = self.flags_i[0], self.flags_i[1]
        sizes = {"bits": self.operand_bits, "registers": self.product_registers}
        product = product_of(m, self.ifmap_i, self.weight_i, **sizes, in_luts=self.in_luts)
        if self.product_registers:
            sums = place(m, "accumulator", Accumulator, bits=self.accumulator_bits)
            m.d.comb += [sums.first.eq(first), sums.i.eq(product)]
            return self.flags_o[1], sums.o
        total = Signal(signed(self.accumulator_bits))
        following = Signal.like(total)
        m.d.comb += following.eq(Mux(first, 0, total) + product)
        m.d.sync += total.eq(following)
        return last, following
