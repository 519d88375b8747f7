"""The loader of one operand: masks and packed values in, steps of lanes out."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.sparsetrain.design import SparseTrain
from rtl.core.adder_tree import sum_of
from rtl.core.memory import Banks
from rtl.core.sram import address_bits


class TrainLoader(wiring.Component):
    """Writes a step a cycle: values where the mask is 1, taken one behind the other, 0 elsewhere.

    A ring holds two words of values.  A step is written when its mask is offered and its values
    are in the ring; a word is taken when the ring has place for it behind the step of the same
    cycle.  Latency: a value can be written in the cycle behind its word.  Throughput: a step a
    cycle.  Back-pressure: none of what it writes; it rests when `active` is 0.

    With `kept` above 0 a scratchpad of so many steps: what is written is written there too, or is
    read there, a step a cycle, and no port is asked.

    Members
    -------
    start: begins with `vectors` vectors of `steps` steps in the half `half`, in the next cycle.
    active: steps are left to write.  write, bank, address, data: what is written; pe: where, of
    `spread` PEs, to which vectors go by turns.
    place, keep, again: of a block, with `start`: where its steps lie in the scratchpad, whether
    they are written there, and whether they are read there.  kept_now, again_now: a step is.
    """

    mask: stream.Interface
    value: stream.Interface
    start: Signal
    vectors: Signal
    steps: Signal
    half: Signal
    active: Signal
    write: Signal
    pe: Signal
    bank: Signal
    address: Signal
    data: Signal
    place: Signal
    keep: Signal
    again: Signal
    kept_now: Signal
    again_now: Signal

    def __init__(self, *, design: SparseTrain, vectors: int, spread: int, kept: int = 0) -> None:
        self.design, self.spread, self.kept = design, spread, kept
        bits, lanes = design.operand_bits, design.lanes
        self.depth = 2 * vectors // spread * design.bank_rows
        super().__init__(
            {
                "mask": In(stream.Signature(lanes)),
                "value": In(stream.Signature(lanes * bits)),
                "start": In(1),
                "vectors": In(range(vectors + 1)),
                "steps": In(range(design.depth + 1)),
                "half": In(1),
                "active": Out(1),
                "write": Out(1),
                "pe": Out(range(max(spread, 2))),
                "bank": Out(range(max(design.window_rows, 2))),
                "address": Out(address_bits(self.depth)),
                "data": Out(lanes * bits),
                **(scratchpad_ports(kept) if kept else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m, lanes, bits = Module(), self.design.lanes, self.design.operand_bits
        ring = [Signal(lanes * bits, name=f"ring_{half}", reset_less=True) for half in (0, 1)]
        held, at, place = Signal(range(2 * lanes + 1)), Signal(range(2 * lanes)), Signal()
        ones = Signal(range(lanes + 1))
        left = Signal(range(2 * lanes + 1))
        mask, value = self.mask, self.value
        asks, takes, comes = self.active, self.write, self.data
        if self.kept:
            asks, takes, comes = self._scratchpad(m)
        m.d.comb += [
            ones.eq(sum_of([mask.payload[lane] for lane in range(lanes)])),
            takes.eq(asks & mask.valid & (held >= ones)),
            mask.ready.eq(takes),
            left.eq(held - Mux(takes, ones, 0)),
            value.ready.eq(left <= lanes),
            comes.eq(self._spread(m, Cat(*ring), at)),
        ]
        taken = value.valid & value.ready
        m.d.sync += held.eq(left + Mux(taken, lanes, 0))
        with m.If(takes):
            m.d.sync += at.eq(at + ones)
        with m.If(taken):
            m.d.sync += place.eq(~place)
            for half in (0, 1):
                with m.If(place == half):
                    m.d.sync += ring[half].eq(value.payload)
        self._walk(m)
        return m

    def _scratchpad(self, m: Module) -> tuple[Signal, Signal, Signal]:
        """Writes a step that comes, or one that was kept.  Whether a step is to come; whether one
        does; and that step."""
        asks, takes = Signal(name="asks"), Signal(name="takes")
        comes = Signal.like(self.data, name="comes")
        place, keep, again = (
            Signal.like(one, name=f"{one.name}_now") for one in (self.place, self.keep, self.again)
        )
        banks = Banks(memory=self.design.scratchpad_memory, use=self.design.use("scratchpad"))
        words = banks.place(m, self, "scratchpad", 0, bits=len(self.data), depth=self.kept)
        m.d.comb += [
            asks.eq(self.active & ~again),
            self.again_now.eq(self.active & again),
            self.kept_now.eq(takes & keep),
            self.write.eq(takes | self.again_now),
            words.read_address.eq(Mux(self.start, self.place, place + 1)),
            words.write.eq(self.kept_now),
            words.write_address.eq(place),
            words.write_data.eq(comes),
            self.data.eq(Mux(again, words.read_data, comes)),
        ]
        with m.If(self.write):
            m.d.sync += place.eq(place + 1)
        with m.If(self.start):
            m.d.sync += [place.eq(self.place), keep.eq(self.keep), again.eq(self.again)]
        return asks, takes, comes

    def _spread(self, m: Module, ring: Cat, at: Signal) -> Cat:
        """Each lane's value: behind those of the lanes below it."""
        lanes, bits = self.design.lanes, self.design.operand_bits
        values = Array(ring.word_select(number, bits) for number in range(2 * lanes))
        found: list[Signal] = []
        for lane in range(lanes):
            index = Signal(range(2 * lanes), name=f"index_{lane}")
            below = sum_of([self.mask.payload[one] for one in range(lane)]) if lane else 0
            own = Signal(bits, name=f"lane_{lane}")
            m.d.comb += index.eq(at + below)
            with m.If(self.mask.payload[lane]):
                m.d.comb += own.eq(values[index])
            found.append(own)
        return Cat(*found)

    def _walk(self, m: Module) -> None:
        """Which step of which vector is next, and where it lies."""
        rows, bank_rows = self.design.window_rows, self.design.bank_rows
        vectors, steps = Signal.like(self.vectors), Signal.like(self.steps)
        vector, step = Signal.like(self.vectors), Signal.like(self.steps)
        base, line = Signal.like(self.address), Signal(range(max(bank_rows, 2)))
        last_step = step == steps - 1
        m.d.comb += self.address.eq(base + line)
        with m.If(self.write):
            m.d.sync += step.eq(step + 1)
            with m.If(last_step):
                m.d.sync += [Cat(step, self.bank, line).eq(0), vector.eq(vector + 1)]
                with m.If(vector == vectors - 1):
                    m.d.sync += self.active.eq(0)
                self._next_vector(m, base)
            if rows > 1:
                with m.Elif(self.bank != rows - 1):
                    m.d.sync += self.bank.eq(self.bank + 1)
            if bank_rows > 1:
                with m.Else():
                    m.d.sync += [self.bank.eq(0), line.eq(line + 1)]
        with m.If(self.start):
            m.d.sync += [
                self.active.eq(1),
                Cat(vectors, steps).eq(Cat(self.vectors, self.steps)),
                Cat(vector, step, line, self.bank, self.pe).eq(0),
                base.eq(Mux(self.half, self.depth // 2, 0)),
            ]

    def _next_vector(self, m: Module, base: Signal) -> None:
        """The next PE; behind the last one, the next place."""
        on = base.eq(base + self.design.bank_rows)
        if self.spread == 1:
            m.d.sync += on
            return
        m.d.sync += self.pe.eq(self.pe + 1)
        with m.If(self.pe == self.spread - 1):
            m.d.sync += [self.pe.eq(0), on]


def scratchpad_ports(kept: int) -> dict[str, Any]:
    """Where steps of a block are kept, among so many; and what is done in a cycle."""
    return {
        "place": In(address_bits(kept)),
        "keep": In(1),
        "again": In(1),
        "kept_now": Out(1),
        "again_now": Out(1),
    }


__all__ = ["TrainLoader"]
