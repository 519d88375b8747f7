"""Window addresses, compared with what is kept beside the offset of a chunk."""

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.utils import bits_for

from rtl.core.window import ELEMENT, Window


class PipelinedWindow(Window):
    """As a `Window`, in the same cycles.

    A pixel's element meets one chain of carries before a comparison is known: what it is compared
    with is kept, and goes on with the offset of the chunk or the row of the tap.  Which pixels are
    the last of a column or a row is compared a pixel ahead.
    """

    compared_ahead = ("columns", "rows")

    def _columns(
        self, m: Module, element: Signal, offset: Signal, bounds: tuple[Signal, Signal]
    ) -> Value:
        low, high = bounds
        rows, lanes, elements = self.rows, self.lanes, self.elements
        first, end = self._chunk()
        skipped, most = (elements, 2 * rows) if self.trailing else (Value.cast(0), rows)
        fresh, current = self.fresh.pitch, self.current.pitch
        begins = {
            "far": (Value.cast(lanes), Value.cast(lanes)),
            "left": (fresh + (most - rows), current + (most - rows)),
            "full": (fresh - rows, current - rows),
        }
        self.kept = {
            name: self._kept(m, name, begin, up=name == "far") for name, begin in begins.items()
        }
        far, left, full = (kept for kept, _ in self.kept.values())

        before, room = element + offset, left - element
        low_lane = first - before[: bits_for(lanes) + 1].as_signed()
        none = element + far < 0
        if self.trailing:
            none |= low_lane > lanes
        with m.If(before < 0):
            m.d.comb += low.eq(Mux(none, lanes, low_lane))
        count = room[: bits_for(most)] - skipped
        with m.If((room < 0) | ((element > full) & (count < 0))):
            m.d.comb += high.eq(0)
        with m.Elif((element > full) & (count < end)):
            m.d.comb += high.eq(count)
        return before - first

    def _kept(
        self, m: Module, name: str, begin: tuple[Value, Value], *, up: bool
    ) -> tuple[Signal, Signal]:
        """A number that goes up or down with a chunk's offset, and what it was at its run's first.

        begin: of the command that comes, and of this one.
        """
        fresh, again = begin
        kept = Signal(signed(ELEMENT), name=name)
        at_run = Signal(signed(ELEMENT), name=f"run_{name}")

        def onward(number: Value, step: Value | int) -> Value:
            return number + step if up else number - step

        next_run = Mux(self.run_last, again, onward(at_run, self.current.run_step))
        with m.If(self.take):
            m.d.sync += [kept.eq(fresh), at_run.eq(fresh)]
        with m.Elif(self.issue & self.last_slot):
            m.d.sync += kept.eq(Mux(self.chunk_last, next_run, onward(kept, self.rows)))
            with m.If(self.chunk_last):
                m.d.sync += at_run.eq(next_run)
        return kept, at_run

    def _outside(self, m: Module, row: Signal, tap_row: Signal) -> Value:
        self.under = under = Signal(signed(20))
        with m.If(self.take):
            m.d.sync += under.eq(self.fresh.height)
        with m.Elif(self.issue & self.last_slot & self.run_last):
            above = under - self.current.tap_rows
            m.d.sync += under.eq(Mux(self.tap_last, self.current.height, above))
        return (row + tap_row < 0) | (row >= under)

    def _single(self, m: Module) -> dict[str, tuple[Value, Value]]:
        """Whether a tile has one column, one row: of the command that comes, and of this one."""
        self.single: dict[str, tuple[Value, Value]] = {}
        for axis in self.compared_ahead:
            one, kept = self.fresh[f"pixel_{axis}"] == 1, Signal(name=f"single_{axis}")
            with m.If(self.take):
                m.d.sync += kept.eq(one)
            self.single[f"{axis}_last"] = one, kept
        return self.single

    def _turn(
        self, m: Module, axis: str, now: dict[str, Signal], after: dict[str, Signal]
    ) -> Value:
        name, left = f"{axis}_last", now[f"{axis}_left"]
        m.d.comb += after[name].eq(Mux(now[name], self.single[name][1], left == 2))
        return now[name]
