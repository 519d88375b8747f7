"""The drain of a group of sums: which of them every PE sends, receives or gives out, and when."""

from collections.abc import Callable, Sequence
from typing import Any

from amaranth.hdl import Array, C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.scnn.command import COORDINATE_BITS
from archsim.machines.scnn.design import Scnn
from rtl.core.scnn_cells import sums_may_fail
from rtl.core.scnn_layouts import layer_layout
from rtl.core.scnn_pool import OFFSET_BITS, WindowWalk
from rtl.hierarchy import place

SIDES = ("left", "right", "up", "down")
"""To which neighbour the sums of a halo go, in the order in which they do; copies alike."""

MOVES = tuple(f"{kind}_{side}" for kind in ("halo", "copy") for side in SIDES)
ACROSS = ("region_rows", "out_columns", "copy_rows", "copy_columns")
"""How far moves go along the border: of two sides each."""

ROWS, PITCH = "out_rows", "out_pitch"
"""How far the output goes."""

OUTPUT, CLEAR = len(MOVES), len(MOVES) + 1
"""Phases of a drain: a field of the command for each move, then the output and the clear."""


def step_layout() -> data.StructLayout:
    """What all PEs do in a cycle of the drain; all 0 outside of it.

    active: it has its half.  A halo sum is read and sent in one cycle and received in the `second`,
    at place `along` of the border, `depth` sums into the halo; a copy alike.  output: of row
    `along` and column `depth`, the place of its window that is `row` and `column` from the first
    window's first; first, last: of the window.  ends: the list of the filter ends; clears: an entry
    of all banks.
    """
    return data.StructLayout(
        {
            "active": 1,
            "half": 1,
            **dict.fromkeys(SIDES, 1),
            "copy": 1,
            "second": 1,
            "output": 1,
            "first": 1,
            "last": 1,
            "ends": 1,
            "clears": 1,
            "filter": 10,
            "along": COORDINATE_BITS,
            "depth": COORDINATE_BITS,
            "row": OFFSET_BITS,
            "column": OFFSET_BITS,
        }
    )


def next_layout() -> data.StructLayout:
    """What follows: a phase, how far it goes, and whether that is 1, of `along` and of `depth`."""
    return data.StructLayout(
        {
            "phase": range(CLEAR + 1),
            "along": COORDINATE_BITS,
            "depth": COORDINATE_BITS,
            "ones": 2,
        }
    )


class DrainSequencer(wiring.Component):
    """for side: for filter: for along: for depth: 2 cycles, halos first, then copies; then for
    filter: for row: for column: for place of the window: output, and one cycle to end the filter's
    list; then, in a pooled layer, for entry: clear.

    HALO = 2 · Kc · (Hacc · (left + right) + (up + down) · Qt), COPY alike, and OUT = Kc · (rows ·
    pitch · window + 1) cycles, and `bank_entries` to clear, all PEs in step.  Sides without a halo
    or copies take no cycle.
    Latency: the first step is in the cycle after `start`; a drain follows another without a gap.
    Never stalls.

    Members
    -------
    layer: the command; begin, where cells of sums may fail: a layer does, with the first half;
    start, with filters: a group is to be drained; ready: start may be given;
    step: to all PEs; entry: that it clears; ended: this is the drain's last cycle.
    """

    layer: data.View
    start: Signal
    filters: Signal
    ready: Signal
    step: data.View
    entry: Signal
    ended: Signal

    def __init__(self, *, design: Scnn) -> None:
        self.design = design
        super().__init__(
            {
                "layer": In(layer_layout()),
                "start": In(1),
                **({"begin": In(1)} if sums_may_fail(design) else {}),
                "filters": In(10),
                "ready": Out(1),
                "step": Out(step_layout()),
                "entry": Out(range(design.bank_entries)),
                "ended": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        step = self.step
        active, half, count = Signal(), Signal(), Signal(10)
        self.phase = phase = Signal(range(CLEAR + 1))
        output, moves = Signal(), Signal()
        m.d.comb += [
            output.eq(phase == OUTPUT),
            moves.eq(active & (phase < OUTPUT)),
            step.active.eq(active),
            step.half.eq(half),
            step.copy.eq(moves & (phase >= len(SIDES))),
            *(step[side].eq(moves & (phase[:2] == n)) for n, side in enumerate(SIDES)),
        ]
        self.extents = self._extents(m, output)
        phase_ends = self._count(m, active, output, count)
        cleared = self._clear(m, active)
        m.d.comb += [
            self.ended.eq((phase_ends & output & ~self.layer.pooled) | cleared),
            self.ready.eq(~active | self.ended),
        ]
        after, first = self._follow(m, phase_ends, count)
        with m.If(phase_ends):
            m.d.sync += phase.eq(Mux(output & self.layer.pooled, CLEAR, after))
        with m.If(self.ended):
            m.d.sync += [active.eq(0), half.eq(~half)]
        if sums_may_fail(self.design):
            own: Any = self
            with m.If(own.begin):
                m.d.sync += half.eq(0)
        with m.If(self.start):
            m.d.sync += [active.eq(1), count.eq(self.filters), phase.eq(first)]
        return m

    def _follow(self, m: Module, phase_ends: Value, count: Value) -> tuple[Value, Value]:
        """The phases that begin when one ends, and when a drain starts.

        phase_ends: it does; count: filters of this drain.
        """
        return self._phase_from(m, "after", self.phase + 1), self._phase_from(m, "first", C(0))

    def _phase_from(self, m: Module, name: str, first: Value) -> Signal:
        """The first phase from `first` on that has anything to do."""
        found = Signal.like(self.phase, name=f"phase_{name}")
        m.d.comb += found.eq(OUTPUT)
        for number in reversed(range(OUTPUT)):
            with m.If((first <= number) & (self.layer[MOVES[number]] != 0)):
                m.d.comb += found.eq(number)
        return found

    def _clear(self, m: Module, active: Signal) -> Signal:
        """Walk the entries; returns "the last one"."""
        ended = Signal()
        m.d.comb += [
            self.step.clears.eq(active & (self.phase == CLEAR)),
            ended.eq(self.step.clears & (self.entry == self.design.bank_entries - 1)),
        ]
        with m.If(self.step.clears):
            m.d.sync += self.entry.eq(Mux(ended, 0, self.entry + 1))
        return ended

    def _count(self, m: Module, active: Signal, output: Signal, count: Signal) -> Signal:
        """The loops of a phase; returns "its last cycle"."""
        step = self.step
        walk = place(m, "windows", WindowWalk, ahead=self.design.pipelined_pes)
        second, ending = Signal(), Signal()
        goes_on, last, phase_ends = Signal(), Signal(), Signal()
        self.places = filter_, along, depth = [
            Signal.like(step[name], name=f"{name}_now") for name in ("filter", "along", "depth")
        ]
        last_filter, restart, turn = self._lasts(m, [count, *self.extents])
        self.steps, self.filter_ends = Signal(name="steps"), Signal(name="filter_ends")
        m.d.comb += [
            step.second.eq(second),
            step.output.eq(active & output & ~ending),
            step.ends.eq(active & ending),
            step.filter.eq(filter_),
            step.along.eq(along),
            step.depth.eq(depth),
            goes_on.eq(active & (second | (output & ~ending))),
            walk.layer.eq(self.layer),
            walk.step.eq(step.output),
            walk.next.eq(step.output & walk.last),
            walk.turn.eq(turn),
            walk.restart.eq(restart),
            *(step[name].eq(getattr(walk, name)) for name in ("row", "column", "first", "last")),
            last.eq(walk.turn & walk.restart & (walk.last | ~output)),
            self.filter_ends.eq(ending | (second & last)),
            phase_ends.eq(active & last_filter & self.filter_ends),
            self.steps.eq(goes_on & (walk.last | ~output)),
        ]
        m.d.sync += second.eq(active & (self.phase < OUTPUT) & ~second)
        m.d.sync += ending.eq(goes_on & output & last)
        with m.If(self.steps):
            m.d.sync += depth.eq(Mux(walk.turn, 0, depth + 1))
            with m.If(walk.turn):
                m.d.sync += along.eq(Mux(last, 0, along + 1))
        with m.If(phase_ends):
            m.d.sync += filter_.eq(0)
        with m.Elif(self.filter_ends):
            m.d.sync += filter_.eq(filter_ + 1)
        return phase_ends

    def _lasts(self, m: Module, counts: Sequence[Value]) -> Sequence[Value]:
        """Whether the filter, `along` and `depth` are the last ones of so many."""
        return [at + 1 == count for at, count in zip(self.places, counts, strict=True)]

    def _extents(self, m: Module, output: Signal) -> tuple[Signal, Signal]:
        """How far `along` and `depth` go in this phase."""
        along, depth = (
            Signal(COORDINATE_BITS, name=f"{name}_count") for name in ("along", "depth")
        )
        m.d.comb += Cat(along, depth).eq(Cat(*self._extents_of(self.phase, output)))
        return along, depth

    def _extents_of(self, phase: Value, output: Value) -> tuple[Value, Value]:
        """The same of any phase."""
        return self._of_phase(phase, output, lambda name: self.layer[name])

    def _of_phase(
        self, phase: Value, output: Value, of: Callable[[str], Value]
    ) -> tuple[Value, Value]:
        """What is known of the fields that say how far `along` and `depth` go in a phase."""
        moves = Array([of(name) for name in MOVES])
        across = Array([of(name) for name in ACROSS])
        return (
            Mux(output, of(ROWS), across[phase[1:3]]),
            Mux(output, of(PITCH), moves[phase[:3]]),
        )


class PipelinedDrainSequencer(DrainSequencer):
    """The same in the same cycles: what follows a phase and a start, how far it goes, and which
    filter, `along`, `depth` and place of a window is the last, lie in registers.

    A phase takes two cycles at least, so what follows it is known in the second one.
    """

    def _extents(self, m: Module, output: Signal) -> tuple[Signal, Signal]:
        along, depth = (
            Signal(COORDINATE_BITS, name=f"{name}_count") for name in ("along", "depth")
        )
        return along, depth

    def _lasts(self, m: Module, counts: Sequence[Value]) -> Sequence[Value]:
        self.lasts = [Signal(name=f"last_{name}") for name in ("filter", "along", "depth")]
        return self.lasts

    def _follow(self, m: Module, phase_ends: Value, count: Value) -> tuple[Value, Value]:
        fields = (*MOVES, *ACROSS, ROWS, PITCH)
        self.ones = {name: Signal(name=f"{name}_is_1") for name in fields}
        m.d.sync += [signal.eq(self.layer[name] == 1) for name, signal in self.ones.items()]
        found = super()._follow(m, phase_ends, count)
        after, first = (self._kept(m, phase) for phase in found)
        last_filter, last_along, last_depth = self.lasts
        filter_, along, depth = self.places
        along_count, depth_count = self.extents
        with m.If(self.steps):
            m.d.sync += last_depth.eq(Mux(last_depth, depth_count == 1, depth + 2 == depth_count))
            with m.If(last_depth):
                m.d.sync += last_along.eq(
                    Mux(last_along, along_count == 1, along + 2 == along_count)
                )
        with m.If(self.filter_ends):
            m.d.sync += last_filter.eq(filter_ + 2 == count)
        with m.If(phase_ends):
            m.d.sync += last_filter.eq(count == 1)
        with m.If(self.start):
            m.d.sync += last_filter.eq(self.filters == 1)
        for begins, phase in ((phase_ends, after), (self.start, first)):
            with m.If(begins):
                m.d.sync += [
                    along_count.eq(phase.along),
                    depth_count.eq(phase.depth),
                    Cat(last_along, last_depth).eq(phase.ones),
                ]
        return after.phase, first.phase

    def _kept(self, m: Module, phase: Any) -> data.View:
        """What follows (`next_layout`), a cycle later."""
        output = phase == OUTPUT
        kept: data.View = Signal(next_layout(), name=f"{phase.name}_kept")
        ones = self._of_phase(phase, output, lambda name: self.ones[name])
        along, depth = self._extents_of(phase, output)
        m.d.sync += [
            kept.phase.eq(phase),
            kept.along.eq(along),
            kept.depth.eq(depth),
            kept.ones.eq(Cat(ones)),
        ]
        return kept
