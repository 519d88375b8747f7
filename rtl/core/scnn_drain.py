"""The drain of a group of sums: which of them every PE sends, receives or gives out, and when."""

from amaranth.hdl import Array, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from archsim.designs.scnn import Scnn
from archsim.sparse.scnn_command import COORDINATE_BITS
from rtl.core.scnn_layouts import layer_layout

SIDES = ("left", "right", "up", "down")
"""To which neighbour the sums of a halo go, in the order in which they do."""


def step_layout() -> data.StructLayout:
    """What all PEs do in a cycle of the drain; all 0 outside of it.

    active: it has its half.  A halo sum is read and sent in one cycle and received in the `second`,
    at place `along` of the border, `depth` sums into the halo.  output: the own output of row
    `along` and column `depth`; ends: the list of the filter ends.
    """
    return data.StructLayout(
        {
            "active": 1,
            "half": 1,
            **dict.fromkeys(SIDES, 1),
            "second": 1,
            "output": 1,
            "ends": 1,
            "filter": 10,
            "along": COORDINATE_BITS,
            "depth": COORDINATE_BITS,
        }
    )


class DrainSequencer(wiring.Component):
    """for side: for filter: for along: for depth: 2 cycles; then for filter: for row: for column:
    output, and one cycle to end the filter's list.

    HALO = 2 · Kc · (Hacc · (left + right) + (up + down) · Qt) and OUT = Kc · (Pt · pitch + 1)
    cycles, all PEs in step.  Sides without a halo take no cycle.
    Latency: the first step is in the cycle after `start`; a drain follows another without a gap.
    Never stalls.

    Members
    -------
    layer: the command; start, with filters: a group is to be drained; ready: start may be given;
    step: to all PEs; ended: this is the drain's last cycle.
    """

    layer: data.View
    start: Signal
    filters: Signal
    ready: Signal
    step: data.View
    ended: Signal

    def __init__(self, *, design: Scnn) -> None:
        self.design = design
        super().__init__(
            {
                "layer": In(layer_layout()),
                "start": In(1),
                "filters": In(10),
                "ready": Out(1),
                "step": Out(step_layout()),
                "ended": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        step = self.step
        active, half, count = Signal(), Signal(), Signal(10)
        self.phase = phase = Signal(range(len(SIDES) + 1))
        output = Signal()
        m.d.comb += [
            output.eq(phase == len(SIDES)),
            step.active.eq(active),
            step.half.eq(half),
            *(step[side].eq(active & (phase == n)) for n, side in enumerate(SIDES)),
        ]
        phase_ends = self._count(m, active, output, count)
        m.d.comb += [
            self.ended.eq(phase_ends & output),
            self.ready.eq(~active | self.ended),
        ]
        with m.If(phase_ends):
            m.d.sync += phase.eq(self._phase_from(m, "after", phase + 1))
        with m.If(self.ended):
            m.d.sync += [active.eq(0), half.eq(~half)]
        with m.If(self.start):
            m.d.sync += [active.eq(1), count.eq(self.filters)]
            m.d.sync += phase.eq(self._phase_from(m, "first", Value.cast(0)))
        return m

    def _phase_from(self, m: Module, name: str, first: Value) -> Signal:
        """The first phase from `first` on that has anything to do."""
        found = Signal.like(self.phase, name=f"phase_{name}")
        m.d.comb += found.eq(len(SIDES))
        for number in reversed(range(len(SIDES))):
            with m.If((first <= number) & (self.layer[f"halo_{SIDES[number]}"] != 0)):
                m.d.comb += found.eq(number)
        return found

    def _count(self, m: Module, active: Signal, output: Signal, count: Signal) -> Signal:
        """The loops of a phase; returns "its last cycle"."""
        step = self.step
        along_count, depth_count = self._extents(m, output)
        second, ending = Signal(), Signal()
        goes_on, last, phase_ends = Signal(), Signal(), Signal()
        filter_, along, depth = (Signal.like(step[name]) for name in ("filter", "along", "depth"))
        m.d.comb += [
            step.second.eq(second),
            step.output.eq(active & output & ~ending),
            step.ends.eq(active & ending),
            step.filter.eq(filter_),
            step.along.eq(along),
            step.depth.eq(depth),
            goes_on.eq(active & (second | (output & ~ending))),
            last.eq((along + 1 == along_count) & (depth + 1 == depth_count)),
            phase_ends.eq(active & (filter_ + 1 == count) & (ending | (second & last))),
        ]
        m.d.sync += second.eq(active & ~output & ~second)
        m.d.sync += ending.eq(goes_on & output & last)
        with m.If(goes_on):
            turn = depth + 1 == depth_count
            m.d.sync += depth.eq(Mux(turn, 0, depth + 1))
            with m.If(turn):
                m.d.sync += along.eq(Mux(last, 0, along + 1))
        with m.If(phase_ends):
            m.d.sync += filter_.eq(0)
        with m.Elif((goes_on & last & ~output) | ending):
            m.d.sync += filter_.eq(filter_ + 1)
        return phase_ends

    def _extents(self, m: Module, output: Signal) -> tuple[Signal, Signal]:
        """How far `along` and `depth` go in this phase."""
        layer = self.layer
        along, depth = (
            Signal(COORDINATE_BITS, name=f"{name}_count") for name in ("along", "depth")
        )
        halos = Array([layer[f"halo_{side}"] for side in SIDES])
        across = Mux(self.phase < 2, layer.region_rows, layer.out_columns)
        m.d.comb += [
            along.eq(Mux(output, layer.out_rows, across)),
            depth.eq(Mux(output, layer.out_pitch, halos[self.phase[:2]])),
        ]
        return along, depth
