"""Trees of adders: combinational, and pipelined."""

from amaranth.hdl import Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


def sum_of(values: list[Value]) -> Value:
    """Their sum as a balanced tree."""
    while len(values) > 1:
        pairs = [a + b for a, b in zip(values[::2], values[1::2], strict=False)]
        values = pairs + values[2 * len(pairs) :]
    return values[0]


class AdderTree(wiring.Component):
    """o[t + ⌈log2 lanes⌉] = Σ i[t], signed and without overflow: a bit more a level.

    Neighbours are added; a lane left over goes on to the next level.  Latency: ⌈log2 lanes⌉
    cycles, a register after every level (none for one lane).  Throughput: one sum a cycle.  Never
    stalls.

    Members
    -------
    i: lanes of `bits`, lane 0 lowest; o: the sum.
    """

    i: Signal
    o: Signal

    def __init__(self, *, lanes: int, bits: int) -> None:
        self.lanes = lanes
        self.bits = bits
        self.levels = (lanes - 1).bit_length()
        super().__init__({"i": In(lanes * bits), "o": Out(signed(bits + self.levels))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes: list[Value] = [
            self.i.word_select(lane, self.bits).as_signed() for lane in range(self.lanes)
        ]
        for level in range(self.levels):
            added = [a + b for a, b in zip(lanes[::2], lanes[1::2], strict=False)]
            left_over = lanes[len(added) * 2 :]
            lanes = []
            for number, value in enumerate([*added, *left_over]):
                name = f"level_{level}_{number}"
                stage = Signal(signed(self.bits + level + 1), name=name, reset_less=True)
                m.d.sync += stage.eq(value)
                lanes.append(stage)
        m.d.comb += self.o.eq(lanes[0])
        return m
