"""A counter of credits: how many tiles, halves or banks one unit may take from another."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Credits(wiring.Component):
    """count[t + 1] = count[t] + give[t] − take[t], from `initial`; never above `limit`.

    A credit given in cycle t can be taken from cycle t + 1 on.  With `ahead`, `available` is a
    register of its own, compared when the count is written; in the same cycles.

    Members
    -------
    give, take: a credit comes, goes in this cycle; available: count is not 0.
    """

    give: Signal
    take: Signal
    available: Signal

    def __init__(self, *, initial: int, limit: int, ahead: bool = False) -> None:
        self.initial = initial
        self.ahead = ahead
        self.limit = limit
        self.count = Signal(range(limit + 1), init=initial)
        super().__init__({"give": In(1), "take": In(1), "available": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = self.count
        one_more, one_less = [count.eq(count + 1)], [count.eq(count - 1)]
        available: Value = count != 0
        if self.ahead:
            available = Signal(init=self.initial != 0, name="ahead")
            one_more.append(available.eq(1))
            one_less.append(available.eq(count != 1))
        with m.If(self.give & ~self.take):
            m.d.sync += one_more
        with m.Elif(self.take & ~self.give):
            m.d.sync += one_less
        m.d.comb += self.available.eq(available)
        return m
