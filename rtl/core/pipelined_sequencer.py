"""The sequencer of folds, its comparisons made a turn ahead and kept in registers."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data

from rtl.core.sequencer import Sequencer


class PipelinedSequencer(Sequencer):
    """As a `Sequencer`, in the same cycles.

    Beside each counter stands a register that says whether it is at its last turn, compared when
    the counter is written.  So a flag is at most five registers and an AND, where a `Sequencer`
    compares 24 bits and hands the answer from loop to loop.
    """

    def _slot_flags(self, m: Module, slots: Value | int) -> None:
        first, last = Signal(init=1, name="at_first_slot"), Signal(name="at_last_slot")
        m.d.comb += [self.first_slot.eq(first), self.last_slot.eq(last)]
        with m.If(self.command.ready & self.command.valid):
            m.d.sync += last.eq(self._one_slot(self.command.payload))
        with m.Elif(self.issue):
            m.d.sync += [
                first.eq(last),
                last.eq(Mux(last, self._next_one_slot(), self.slot == slots - 2)),
            ]

    def _one_slot(self, tile: data.View) -> Value:
        """Whether the first fold of a tile has one slot."""
        if isinstance(self.slots, int):
            return Value.cast(self.slots == 1)
        if self.slots == "run":
            return (tile.run_length == 1) | (self.rows == 1)
        if self.slots == "filters":
            return tile.filter_steps == 1
        return (tile.pixels == 1) | (self.slots == "block" and self.block == 1)

    def _next_one_slot(self) -> Value:
        """Whether the fold behind this one, of the same tile, has one slot."""
        if self.slots == "run":
            one = Mux(self.chunk_last, self.current.run_length == 1, self._left == self.rows + 1)
            return one | (self.rows == 1)
        if self.slots == "block" and self.block is not None:
            behind = Mux(self.tap_last, self.block + 1, 1)
            again = self.tap_last & self.block_last
            one = Mux(again, self.current.pixels == 1, self.slot_pixels == behind)
            return one | (self.block == 1)
        return self._one_slot(self.current)

    def _fold_flags(self, m: Module, left: tuple[Signal, Signal, Signal, Signal]) -> None:
        self._left, runs_left, taps_left, steps_left = left
        run, tap = Signal(name="at_last_run"), Signal(name="at_last_tap")
        chunk, step = Signal(name="at_last_chunk"), Signal(name="at_last_step")
        block = Signal(init=1, name="at_last_block")
        fresh, current = self.command.payload, self.current
        m.d.comb += [
            self.chunk_last.eq(chunk),
            self.elements.eq(Mux(chunk, self._left, self.rows)),
            self.run_last.eq(chunk & run),
            self.tap_last.eq(chunk & run & tap),
            self.group_last.eq(self.tap_last),
            self.block_last.eq(chunk & run & tap & block),
            self.tile_last.eq(chunk & run & tap & block & step),
        ]
        with m.If(self.command.ready & self.command.valid):
            m.d.sync += [
                chunk.eq(fresh.run_length <= self.rows),
                run.eq(fresh.runs == 1),
                tap.eq(fresh.taps == 1),
                step.eq((fresh.filter_steps == 1) if self.steps else 1),
            ]
            if self.block is not None:
                m.d.sync += block.eq(fresh.pixels <= self.block)
        with m.If(self.issue & self.last_slot):
            among = current.run_length <= self.rows
            m.d.sync += chunk.eq(Mux(chunk, among, self._left <= 2 * self.rows))
            with m.If(self.chunk_last):
                m.d.sync += run.eq(Mux(run, current.runs == 1, runs_left == 2))
            with m.If(self.run_last):
                m.d.sync += tap.eq(Mux(tap, current.taps == 1, taps_left == 2))
            with m.If(self.block_last):
                m.d.sync += step.eq(steps_left == 2)
            if self.block is not None:
                fits = Mux(block, current.pixels, self.slot_pixels) <= Mux(
                    block, self.block, 2 * self.block
                )
                with m.If(self.tap_last):
                    m.d.sync += block.eq(fits)
