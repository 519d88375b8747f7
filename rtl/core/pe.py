"""The processing elements of a systolic array."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

CAPTURE = data.StructLayout({"valid": 1, "bank": 1})
"""The token behind which stationary operands are captured; it passes a PE in two cycles."""


class StationaryPE(wiring.Component):
    """psum_o[t + 1] = psum_i[t] + moving_i[t] · held[bank_i[t]][t].

    The stationary operand passes a PE in one cycle and the capture token in two, so that the j-th
    word of a load is captured by the j-th PE of the chain.  Two banks: one is used while the
    other is filled.
    Latency: 1 cycle (psum, moving), 2 (capture).  Throughput: one product a cycle.  Never stalls.

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

    def __init__(self, *, operand_bits: int, accumulator_bits: int) -> None:
        self.operand_bits = operand_bits
        self.accumulator_bits = accumulator_bits
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
        held = [Signal(signed(self.operand_bits), name=f"held_{bank}") for bank in range(2)]
        waiting = Signal(CAPTURE)
        capture = data.View(CAPTURE, self.capture_i)
        for bank in range(2):
            with m.If(capture.valid & (capture.bank == bank)):
                m.d.sync += held[bank].eq(self.stationary_i)
        m.d.sync += [
            self.moving_o.eq(self.moving_i),
            self.bank_o.eq(self.bank_i),
            self.stationary_o.eq(self.stationary_i),
            waiting.eq(self.capture_i),
            self.capture_o.eq(waiting),
            self.psum_o.eq(self.psum_i + self.moving_i * Mux(self.bank_i, held[1], held[0])),
        ]
        return m


class AccumulatingPE(wiring.Component):
    """sum ← (0 if first_i else sum) + ifmap_i · weight_i; kept for the way out at last_i.

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

    def __init__(self, *, operand_bits: int, accumulator_bits: int) -> None:
        self.operand_bits = operand_bits
        self.accumulator_bits = accumulator_bits
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
        total = Signal(signed(self.accumulator_bits))
        kept, following = Signal.like(total), Signal.like(total)
        waiting = Signal()
        first, last = self.flags_i[0], self.flags_i[1]
        m.d.comb += following.eq(Mux(first, 0, total) + self.ifmap_i * self.weight_i)
        m.d.sync += [
            total.eq(following),
            self.ifmap_o.eq(self.ifmap_i),
            self.flags_o.eq(self.flags_i),
            self.weight_o.eq(self.weight_i),
            waiting.eq(self.drain_i),
            self.drain_o.eq(waiting),
            self.pipe_o.eq(Mux(self.drain_i, kept, self.pipe_i)),
        ]
        with m.If(last):
            m.d.sync += kept.eq(following)
        return m
