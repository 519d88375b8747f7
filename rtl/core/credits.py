"""A counter of credits: how many tiles, halves or banks one unit may take from another."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Credits(wiring.Component):
    """count[t + 1] = count[t] + give[t] − take[t], from `initial`; never above `limit`.

    A credit given in cycle t can be taken from cycle t + 1 on.  With `ahead`, `available` is a
    register of its own, compared when the count is written; in the same cycles.

    Members
    -------
    give, take: a credit comes, goes in this cycle; available: count is not 0; soon: with `ahead`,
    it will not be in the next cycle.
    """

    give: Signal
    take: Signal
    available: Signal
    soon: Signal

    def __init__(self, *, initial: int, limit: int, ahead: bool = False) -> None:
        self.initial = initial
        self.ahead = ahead
        self.limit = limit
        self.count = Signal(range(limit + 1), init=initial)
        soon = {"soon": Out(1)} if ahead else {}
        super().__init__({"give": In(1), "take": In(1), "available": Out(1), **soon})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = self.count
        more, less = self.give & ~self.take, self.take & ~self.give
        with m.If(more):
            m.d.sync += count.eq(count + 1)
        with m.Elif(less):
            m.d.sync += count.eq(count - 1)
        available: Value = count != 0
        if self.ahead:
            available = Signal(init=self.initial != 0, name="ahead")
            m.d.comb += self.soon.eq(Mux(more, 1, Mux(less, count != 1, available)))
            m.d.sync += available.eq(self.soon)
        m.d.comb += self.available.eq(available)
        return m
