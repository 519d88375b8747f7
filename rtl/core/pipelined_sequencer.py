"""The sequencer of folds, its comparisons made a turn ahead and kept in registers."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data

from rtl.core.one_more import one_more
from rtl.core.sequencer import Sequencer

_LOOPS = ("chunk", "run", "tap", "block", "step")
"""From the inside."""


class PipelinedSequencer(Sequencer):
    """As a `Sequencer`, in the same cycles.

    Beside each counter stands a register that says whether it is at its last turn, compared when
    the counter is written, and another that says whether all loops inside of it are too.  So every
    flag is a register, where a `Sequencer` compares 24 bits and hands the answer from loop to loop.
    """

    def _slot_flags(self, m: Module, slots: Value | int) -> None:
        first, last = Signal(init=1, name="at_first_slot"), Signal(name="at_last_slot")
        m.d.comb += [self.first_slot.eq(first), self.last_slot.eq(last)]
        with m.If(self.command.ready & self.command.valid):
            m.d.sync += last.eq(self._one_slot(self.command.payload))
        with m.Elif(self.issue):
            m.d.sync += [
                first.eq(last),
                last.eq(Mux(last, self._next_one_slot(), self._two_left(slots))),
            ]

    def _two_left(self, slots: Value | int) -> Value:
        """Whether the slot is the last but one."""
        if isinstance(slots, int):
            return self.slot == slots - 2
        slots = Value.cast(slots)
        slot = self.slot[: len(slots)]
        same = (slot[0] == slots[0]) & (self.slot[len(slots) :] == 0)
        return same & one_more(slots[1:], slot[1:])

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
        fresh, current, rows, block = self.command.payload, self.current, self.rows, self.block
        alone = {name: Signal(name=f"at_last_{name}") for name in _LOOPS}
        together = {name: Signal(name=f"{name}_and_inner_last") for name in _LOOPS}
        m.d.comb += [
            self.elements.eq(Mux(alone["chunk"], self._left, rows)),
            self.chunk_last.eq(together["chunk"]),
            self.run_last.eq(together["run"]),
            self.tap_last.eq(together["tap"]),
            self.group_last.eq(together["tap"]),
            self.block_last.eq(together["block"]),
            self.tile_last.eq(together["step"]),
        ]
        begun: dict[str, Value] = {
            "chunk": fresh.run_length <= rows,
            "run": fresh.runs == 1,
            "tap": fresh.taps == 1,
            "block": Value.cast(1) if block is None else fresh.pixels <= block,
            "step": fresh.filter_steps == 1 if self.steps else Value.cast(1),
        }
        single = {name: Signal(name=f"single_{name}") for name in ("chunk", "run", "tap")}
        with m.If(self.command.ready & self.command.valid):
            m.d.sync += [one.eq(begun[name]) for name, one in single.items()]
        turned: dict[str, tuple[Value, Value]] = {  # of the first turn again; of the next one
            "chunk": (single["chunk"], self._left <= 2 * rows),
            "run": (single["run"], runs_left == 2),
            "tap": (single["tap"], taps_left == 2),
            "block": (begun["block"], begun["block"]),
            "step": (steps_left == 2, steps_left == 2),
        }
        if block is not None:
            turned["block"] = (current.pixels <= block, self.slot_pixels <= 2 * block)
        following: dict[str, Value] = {}
        inner = Value.cast(1)
        for name in _LOOPS:
            turn = Mux(alone[name], *turned[name])
            following[name] = Mux(inner, turn, alone[name])
            inner = together[name]
        with m.If(self.command.ready & self.command.valid):
            self._kept(m, alone, together, begun)
        with m.Elif(self.issue & self.last_slot):
            self._kept(m, alone, together, following)

    def _kept(
        self,
        m: Module,
        alone: dict[str, Signal],
        together: dict[str, Signal],
        values: dict[str, Value],
    ) -> None:
        """Whether each loop is at its last turn, and it and all inside of it."""
        inner = Value.cast(1)
        for name in _LOOPS:
            inner = inner & values[name]
            m.d.sync += [alone[name].eq(values[name]), together[name].eq(inner)]
