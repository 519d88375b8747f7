"""Kept lanes of words, packed into words again.  Contract: `docs/contracts/gather.md`."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.core.adder_tree import sum_of


class LanePacker(wiring.Component):
    """data = the lanes of words whose flag is set, in order, packed, until a last word.

    Latency: 1 cycle; what is left over behind the last word comes 1 cycle later, and no word may be
    taken in the cycle behind a last one.  Throughput: a word a cycle.  Nothing waits.

    Members
    -------
    take: a word comes, with its flags in mask; last: it ends what is packed together.
    write, data: a word of packed lanes; behind the last kept lane they are 0.
    """

    take: Signal
    last: Signal
    mask: Signal
    word: Signal
    write: Signal
    data: Signal

    def __init__(self, *, lanes: int, bits: int) -> None:
        self.lanes, self.bits = lanes, bits
        super().__init__(
            {
                "take": In(1),
                "last": In(1),
                "mask": In(lanes),
                "word": In(lanes * bits),
                "write": Out(1),
                "data": Out(lanes * bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes, width = self.lanes, self.lanes * self.bits
        held, count = Signal(width), Signal(range(lanes))
        total, full, spill = Signal(range(2 * lanes)), Signal(), Signal()
        appended = Signal(2 * width)
        moved = _shifted(m, self._compacted(m), count, self.bits, lanes)
        m.d.comb += [
            total.eq(count + sum_of(list(self.mask))),
            full.eq(total >= lanes),
            appended.eq(Cat(held, Const(0, width)) | moved),
        ]
        low, high = appended[:width], appended[width:]
        m.d.sync += [self.write.eq(spill), spill.eq(0)]
        with m.If(self.take):
            m.d.sync += [
                self.write.eq(full | (self.last & total.any())),
                self.data.eq(low),
                spill.eq(self.last & (total > lanes)),
                held.eq(Mux(full, high, Mux(self.last, 0, low))),
                count.eq(Mux(self.last, 0, Mux(full, total - lanes, total))),
            ]
        with m.Elif(spill):
            m.d.sync += [self.data.eq(held), held.eq(0)]
        return m

    def _compacted(self, m: Module) -> list[Value]:
        """The lanes whose flags are set, from lane 0 on, 0 behind them.

        A lane moves down by the number of lanes before it that are not kept, bit by bit of that
        number from its lowest: two never meet.
        """
        lanes = self.lanes
        stages = max((lanes - 1).bit_length(), 1)
        absent: Value = Const(0, stages)
        row: list[Lane] = []
        for lane in range(lanes):
            kept = self.mask[lane]
            value = Mux(kept, self.word.word_select(lane, self.bits), 0)
            row.append((kept, absent, value))
            before = Signal(stages, name=f"absent_{lane}")
            m.d.comb += before.eq(absent + ~kept)
            absent = before
        for stage in range(stages):
            step, moved = 1 << stage, list[Lane]()
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


__all__ = ["LanePacker"]
