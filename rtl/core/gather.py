"""The gather unit: kept lanes of rows of words, packed.  Contract: `docs/contracts/gather.md`."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from archsim.gather import ROW_BITS, GatherUnit
from rtl.core.adder_tree import sum_of


class Gather(wiring.Component):
    """o = the lanes of i whose flag is set, in order, packed into words, row by row.

    A command says the words of a row and how many rows; behind it come as many words of flags, then
    the rows.  Latency: 1 cycle; throughput: a word of i a cycle, but for a row that ends with more
    than a word of lanes, whose last word takes a cycle of its own.  Back-pressure: i waits while a
    word of o is not taken; o.ready reaches i.ready in the same cycle.

    Members
    -------
    command: words (of a row) and rows; flags: a flag a lane; i, o: lanes.
    """

    command: stream.Interface
    flags: stream.Interface
    i: stream.Interface
    o: stream.Interface

    def __init__(self, unit: GatherUnit) -> None:
        self.unit = unit
        self.word_bits = unit.lanes * unit.lane_bits
        self.layout = data.StructLayout({"words": unit.depth.bit_length(), "rows": ROW_BITS})
        super().__init__(
            {
                "command": In(stream.Signature(self.layout)),
                "flags": In(stream.Signature(unit.lanes)),
                "i": In(stream.Signature(self.word_bits)),
                "o": Out(stream.Signature(self.word_bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = self.unit.depth
        self.load, self.run, self.spill = Signal(), Signal(), Signal()
        self.words = Signal(range(depth + 1))
        at, rows = Signal(range(depth)), Signal(ROW_BITS)
        m.submodules.list = store = Memory(shape=self.unit.lanes, depth=depth, init=[])
        write = store.write_port()
        read = store.read_port(transparent_for=(write,))
        self.mask = Signal(self.unit.lanes)
        slot, take, last = Signal(), Signal(), Signal()
        m.d.comb += [
            self.command.ready.eq(~self.load & ~self.run & ~self.spill),
            self.flags.ready.eq(self.load),
            slot.eq(~self.o.valid | self.o.ready),
            self.i.ready.eq(self.run & ~self.spill & slot),
            take.eq(self.i.valid & self.i.ready),
            last.eq(at + 1 == self.words),
            write.addr.eq(at),
            write.data.eq(self.flags.payload),
            write.en.eq(self.load & self.flags.valid),
            read.addr.eq(at),
            self.mask.eq(read.data),
        ]
        emits, remains = self._packed(m, slot, take, last)
        with m.If(self.command.valid & self.command.ready):
            command = data.View(self.layout, self.command.payload)
            m.d.sync += [self.load.eq(1), self.words.eq(command["words"]), at.eq(0)]
            m.d.sync += rows.eq(command["rows"])
        following = Mux(last, 0, at + 1)
        with m.If(write.en):
            m.d.sync += [at.eq(following), self.load.eq(~last), self.run.eq(last)]
            m.d.comb += read.addr.eq(following)
        with m.If(take):
            m.d.sync += at.eq(following)
            m.d.comb += read.addr.eq(following)
            with m.If(last):
                m.d.sync += [rows.eq(rows - 1), self.run.eq(rows != 1)]
        with m.If(slot):
            m.d.sync += self.o.valid.eq(emits)
        with m.If(take):
            m.d.sync += self.spill.eq(remains)
        with m.Elif(self.spill & slot):
            m.d.sync += self.spill.eq(0)
        return m

    def _packed(self, m: Module, slot: Signal, take: Signal, last: Signal) -> tuple[Value, Value]:
        """The lanes held, and what they become: whether a word leaves, and whether one is left."""
        lanes, bits = self.unit.lanes, self.unit.lane_bits
        held, count = Signal(self.word_bits), Signal(range(lanes))
        added, total = Signal(range(lanes + 1)), Signal(range(2 * lanes))
        appended = Signal(2 * self.word_bits)
        m.d.comb += [
            added.eq(sum_of(list(self.mask))),
            total.eq(count + added),
            appended.eq(Cat(held, Const(0, self.word_bits)) | _shifted(m, self._compacted(m),
                                                                      count, bits, lanes)),
        ]  # fmt: skip
        full = Signal()
        remains = Signal()
        m.d.comb += [full.eq(total >= lanes), remains.eq(last & (total > lanes))]
        emits = (take & (full | (last & total.any()))) | self.spill
        over = Mux(full, total - lanes, Mux(last, 0, total))
        with m.If(take):
            low, high = appended[: self.word_bits], appended[self.word_bits :]
            m.d.sync += [
                self.o.payload.eq(low),
                held.eq(Mux(full, high, Mux(last, 0, low))),
                count.eq(over),
            ]
        with m.Elif(self.spill & slot):
            m.d.sync += [self.o.payload.eq(held), held.eq(0), count.eq(0)]
        return emits, remains

    def _compacted(self, m: Module) -> list[Value]:
        """The lanes whose flags are set, from lane 0 on, 0 behind them.

        A lane moves down by the number of lanes before it that are not kept, bit by bit of that
        number from its lowest: two never meet.
        """
        lanes, bits = self.unit.lanes, self.unit.lane_bits
        stages = max((lanes - 1).bit_length(), 1)
        absent: Value = Const(0, stages)
        row: list[tuple[Value, Value, Value]] = []
        for lane in range(lanes):
            kept = self.mask[lane]
            value = Mux(kept, self.i.payload.word_select(lane, bits), 0)
            row.append((kept, absent, value))
            before = Signal(stages, name=f"absent_{lane}")
            m.d.comb += before.eq(absent + ~kept)
            absent = before
        for stage in range(stages):
            step, moved = 1 << stage, list[tuple[Value, Value, Value]]()
            for lane in range(lanes):
                moved.append(_step(m, row, lane, step, stage))
            row = moved
        return [value for _, _, value in row]


Lane = tuple[Value, Value, Value]
"""Whether it is kept, by how much it moves, its value."""


def _step(m: Module, row: list[Lane], lane: int, step: int, stage: int) -> Lane:
    """What a lane holds behind a stage: itself if it stays, or the one `step` above."""
    kept, absent, value = row[lane]
    stays = kept & ~absent[stage]
    found = [Signal(1, name=f"kept_{stage}_{lane}"), Signal.like(absent, name=f"by_{stage}_{lane}"),
             Signal(len(value), name=f"lane_{stage}_{lane}")]  # fmt: skip
    if lane + step < len(row):
        above, by, other = row[lane + step]
        comes = above & by[stage]
        m.d.comb += [
            found[0].eq(stays | comes),
            found[1].eq(Mux(comes, by, absent)),
            found[2].eq(Mux(comes, other, Mux(stays, value, 0))),
        ]
    else:
        m.d.comb += [found[0].eq(stays), found[1].eq(absent), found[2].eq(Mux(stays, value, 0))]
    return found[0], found[1], found[2]


def _shifted(m: Module, values: list[Value], count: Signal, bits: int, lanes: int) -> Value:
    """Lanes moved up by `count`, as two words."""
    row: list[Value] = [*values, *(Const(0, bits) for _ in range(lanes))]
    for stage in range(len(count)):
        step, moved = 1 << stage, list[Value]()
        for lane in range(2 * lanes):
            lower = row[lane - step] if lane >= step else Const(0, bits)
            one = Signal(bits, name=f"up_{stage}_{lane}")
            m.d.comb += one.eq(Mux(count[stage], lower, row[lane]))
            moved.append(one)
        row = moved
    return Cat(*row)


__all__ = ["Gather"]
