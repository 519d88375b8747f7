"""The sequencer of folds: nested counters that walk a tile, one issue a cycle."""

from typing import Literal

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.core.commands import FOLD_FIELDS, PIXEL_FIELDS, command_layout

Slots = Literal["run", "pixels", "filters", "block"] | int


class Sequencer(wiring.Component):
    """for step: for block: for tap: for run: for chunk: for slot: issue

    steps: filter_steps, or 1; a block: `block` pixels, or all; a chunk: up to `rows` elements of a
    run; slots of a fold: the chunk's elements ("run"), "pixels", "filters", the pixels of the block
    ("block"), or a constant, which may be more than the block.
    Latency: a command is taken one cycle before its first issue.  Throughput: one issue a cycle
    inside a fold; `go` is asked for at the first issue of each fold.

    Members
    -------
    command: the tiles; current: the tile being walked; starting: the next issue is the first of a
    fold; go: it may be done; issue: it is done in this cycle; first_fold, first_slot, last_slot,
    chunk_last, run_last, tap_last, block_last, tile_last: where the issue stands; group_last: the
    last fold that adds to the same sums; elements: of this chunk; slot: number of the slot;
    slot_pixels: pixels left from this block on; slot_in_block, slot_counts: the slot is one of the
    block's, and stands for a pixel of the tile.
    """

    command: stream.Interface
    go: Signal
    issue: Signal
    starting: Signal
    current: data.View
    group_last: Signal
    elements: Signal
    slot: Signal
    slot_pixels: Signal
    slot_in_block: Signal
    slot_counts: Signal
    first_fold: Signal
    first_slot: Signal
    last_slot: Signal
    chunk_last: Signal
    run_last: Signal
    tap_last: Signal
    block_last: Signal
    tile_last: Signal

    def __init__(self, *, rows: int, slots: Slots, steps: bool, block: int | None) -> None:
        self.rows = rows
        self.slots: Slots = slots
        self.steps = steps
        self.block = block
        layout = command_layout(*FOLD_FIELDS, *PIXEL_FIELDS)
        flags = "first_fold first_slot last_slot chunk_last run_last tap_last block_last tile_last"
        super().__init__(
            {
                "command": In(stream.Signature(layout)),
                "go": In(1),
                "issue": Out(1),
                "starting": Out(1),
                "current": Out(layout),
                "group_last": Out(1),
                "elements": Out(range(rows + 1)),
                "slot": Out(24),
                "slot_pixels": Out(24),
                "slot_in_block": Out(1),
                "slot_counts": Out(1),
                **{flag: Out(1) for flag in flags.split()},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._run(m)
        self._count_folds(m)
        self._count_slots(m)
        return m

    def _run(self, m: Module) -> None:
        running = Signal()
        m.d.comb += [
            self.starting.eq(running & self.first_slot),
            self.issue.eq(running & (~self.first_slot | self.go)),
            self.command.ready.eq(~running),
        ]
        with m.If(self.command.ready & self.command.valid):
            m.d.sync += [running.eq(1), self.current.eq(self.command.payload)]
            m.d.sync += self.first_fold.eq(1)
        with m.If(self.issue & self.last_slot):
            m.d.sync += self.first_fold.eq(0)
            with m.If(self.tile_last):
                m.d.sync += running.eq(0)

    def _count_slots(self, m: Module) -> None:
        slots = self._slots()
        counted = 1 if self.block is None else self.slot < self.slot_pixels
        within = 1
        if isinstance(self.slots, int) and self.block is not None and self.slots > self.block:
            within = self.slot < self.block
        m.d.comb += [
            self.slot_in_block.eq(within),
            self.slot_counts.eq(self.slot_in_block & counted),
        ]
        self._slot_flags(m, slots)
        with m.If(self.issue):
            m.d.sync += self.slot.eq(Mux(self.last_slot, 0, self.slot + 1))

    def _slot_flags(self, m: Module, slots: Value | int) -> None:
        """The first and the last slot of a fold of so many."""
        m.d.comb += [
            self.first_slot.eq(self.slot == 0),
            self.last_slot.eq(self.slot == slots - 1),
        ]

    def _slots(self) -> Value | int:
        """Slots of this fold."""
        if isinstance(self.slots, int):
            return self.slots
        return {
            "run": self.elements,
            "pixels": self.current.pixels,
            "filters": self.current.filter_steps,
            "block": self._block_pixels(),
        }[self.slots]

    def _block_pixels(self) -> Value:
        """Pixels of this block."""
        if self.block is None:
            return self.current.pixels
        return Mux(self.slot_pixels < self.block, self.slot_pixels, self.block)

    def _count_folds(self, m: Module) -> None:
        length_left, runs_left, taps_left = Signal(24), Signal(8), Signal(8)
        steps_left = Signal(24)
        fresh, current = self.command.payload, self.current
        self._fold_flags(m, (length_left, runs_left, taps_left, steps_left))
        with m.If(self.command.ready & self.command.valid):
            m.d.sync += [
                length_left.eq(fresh.run_length),
                runs_left.eq(fresh.runs),
                taps_left.eq(fresh.taps),
                self.slot_pixels.eq(fresh.pixels),
                steps_left.eq(fresh.filter_steps if self.steps else 1),
            ]
        with m.If(self.issue & self.last_slot):
            m.d.sync += length_left.eq(
                Mux(self.chunk_last, current.run_length, length_left - self.rows)
            )
            with m.If(self.chunk_last):
                m.d.sync += runs_left.eq(Mux(self.run_last, current.runs, runs_left - 1))
            with m.If(self.run_last):
                m.d.sync += taps_left.eq(Mux(self.tap_last, current.taps, taps_left - 1))
            with m.If(self.tap_last):
                m.d.sync += self.slot_pixels.eq(
                    Mux(self.block_last, current.pixels, self.slot_pixels - (self.block or 0))
                )
            with m.If(self.block_last):
                m.d.sync += steps_left.eq(steps_left - 1)

    def _fold_flags(self, m: Module, left: tuple[Signal, Signal, Signal, Signal]) -> None:
        """Which loops are at their last turn; left: elements of the run, runs, taps, steps."""
        length_left, runs_left, taps_left, steps_left = left
        m.d.comb += [
            self.chunk_last.eq(length_left <= self.rows),
            self.elements.eq(Mux(self.chunk_last, length_left, self.rows)),
            self.run_last.eq(self.chunk_last & (runs_left == 1)),
            self.tap_last.eq(self.run_last & (taps_left == 1)),
            self.group_last.eq(self.tap_last),
            self.block_last.eq(
                self.tap_last & (1 if self.block is None else self.slot_pixels <= self.block)
            ),
            self.tile_last.eq(self.block_last & (steps_left == 1)),
        ]
