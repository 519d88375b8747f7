"""The choice of a PE's lanes among the operands in its window."""

from amaranth.hdl import C, Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.sparsetrain.design import SparseTrain


class TrainWindow(wiring.Component):
    """chosen[p] = those lanes that take their place p; done = how many rows are empty behind that.

    A place that a lane chooses from is so many rows ahead and so many lanes aside, in a ring
    (`archsim.machines.sparsetrain.window`).  Places are gone through in order, all lanes at once: a
    lane that is still free takes the pair of operands there, if it is left.  Combinational; a level
    of logic for each place.

    Members
    -------
    pairs_<row>: pairs that are left, by lane.  chosen_<place>: by lane.  left_<row>: pairs that are
    left behind this cycle.  done: 1 to all rows.
    """

    pairs_0: Signal
    done: Signal

    def __init__(self, *, design: SparseTrain) -> None:
        self.design = design
        lanes, rows = design.lanes, range(design.window_rows)
        super().__init__(
            {
                **{f"pairs_{row}": In(lanes) for row in rows},
                **{f"left_{row}": Out(lanes) for row in rows},
                **{f"chosen_{at}": Out(lanes) for at in range(len(design.window))},
                "done": Out(range(design.window_rows + 1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m, lanes, rows = Module(), self.design.lanes, self.design.window_rows
        left: list[Value] = [getattr(self, f"pairs_{row}") for row in range(rows)]
        free: Value = C((1 << lanes) - 1, lanes)
        for at, place in enumerate(self.design.window):
            chosen: Signal = getattr(self, f"chosen_{at}")
            m.d.comb += chosen.eq(turned(left[place.ahead], place.aside) & free)
            still = Signal(lanes, name=f"free_{at}")
            rest = Signal(lanes, name=f"rest_{at}")
            m.d.comb += [
                still.eq(free & ~chosen),
                rest.eq(left[place.ahead] & ~turned(chosen, -place.aside)),
            ]
            free, left[place.ahead] = still, rest
        for row in range(rows):
            m.d.comb += getattr(self, f"left_{row}").eq(left[row])
        m.d.comb += self.done.eq(rows)
        for row in range(rows - 1, 0, -1):
            with m.If(left[row].any()):
                m.d.comb += self.done.eq(row)
        return m


def turned(word: Value, by: int) -> Value:
    """Lane i of the answer is lane i + by of the word, lanes in a ring."""
    lanes = len(word)
    return Cat(word[(lane + by) % lanes] for lane in range(lanes))


__all__ = ["TrainWindow", "turned"]
