"""The choice of a PE's lanes among the operands in its window."""

from collections.abc import Sequence
from functools import reduce
from operator import and_

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.sparsetrain.design import SparseTrain


class TrainWindow(wiring.Component):
    """chosen[p] = those lanes that take their place p; done = how many rows are empty behind that.

    A place that a lane chooses from is so many rows ahead and so many lanes aside, in a ring
    (`archsim.machines.sparsetrain.window`).  Places are gone through in order, all lanes at once: a
    lane that is still free takes the pair of operands there, if it is left.  Combinational; a level
    of logic for each place.

    With segments, `split` makes a ring of each.

    Members
    -------
    pairs_<row>: pairs that are left, by lane.  chosen_<place>: by lane.  left_<row>: pairs that are
    left behind this cycle.  done: 1 to all rows.
    """

    pairs_0: Signal
    split: Signal
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
                **({"split": In(1)} if design.segments > 1 else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m, lanes, rows = Module(), self.design.lanes, self.design.window_rows
        left: list[Value] = [getattr(self, f"pairs_{row}") for row in range(rows)]
        free: Value = C((1 << lanes) - 1, lanes)
        for at, place in enumerate(self.design.window):
            chosen: Signal = getattr(self, f"chosen_{at}")
            there = self._turned(left[place.ahead], place.aside)
            still = Signal(lanes, name=f"free_{at}")
            rest = Signal(lanes, name=f"rest_{at}")
            m.d.comb += [
                chosen.eq(there & free),
                still.eq(free & ~there),
                rest.eq(left[place.ahead] & ~self._turned(free, -place.aside)),
            ]
            free, left[place.ahead] = still, rest
        for row in range(rows):
            m.d.comb += getattr(self, f"left_{row}").eq(left[row])
        m.d.comb += self.done.eq(rows)
        for row in range(rows - 1, 0, -1):
            with m.If(left[row].any()):
                m.d.comb += self.done.eq(row)
        return m

    def _turned(self, word: Value, by: int) -> Value:
        """Lane i of the answer is lane i + by of the word."""
        design = self.design
        sources = [
            [source(design, lane, by, split) for lane in range(design.lanes)]
            for split in (False, True)
        ]
        whole, split = (Cat(word[one] for one in lanes) for lanes in sources)
        return whole if sources[0] == sources[1] else Mux(self.split, split, whole)


def pairs_of(operands: Sequence[Value], bits: int) -> Value:
    """By lane, whether none of the operands is zero."""
    lanes = range(0, len(operands[0]), bits)
    return Cat(reduce(and_, (one[lane : lane + bits].any() for one in operands)) for lane in lanes)


def source(design: SparseTrain, lane: int, by: int, split: bool) -> int:
    """Lane + by, in a ring of all lanes or of those of its segment."""
    ring = design.segment_lanes if split else design.lanes
    return lane // ring * ring + (lane + by) % ring


__all__ = ["TrainWindow", "pairs_of", "source"]
