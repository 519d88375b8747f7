"""Window addresses: where in the ifmap tile the elements of an issue lie.  im2col, not stored."""

from collections.abc import Sequence
from typing import ClassVar

from amaranth.hdl import Module, Mux, Shape, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.core.commands import FOLD_FIELDS, PIXEL_FIELDS, command_layout

ELEMENT = 28
"""Bits of a signed element address; the fields of a command leave one bit to spare."""


class Window(wiring.Component):
    """The element address of lane 0, and which lanes lie inside the ifmap, of every issue.

    Lane j is element  address + j  of the tile; it counts if low ≤ j < high, which leaves out
    padding and the lanes beyond the chunk.  With `trailing`, a chunk of e elements stands in the
    last e of `rows` lanes, else in the first.
    Latency: 1 cycle.  Throughput: one issue a cycle.  Never stalls.

    Members
    -------
    current, elements, issue, last_slot, chunk_last, run_last, tap_last, block_last, tile_last: the
    outputs of a `Sequencer`; fresh, take: the command that it takes, and that it does so in this
    cycle; slot_in_block, slot_counts: the slot is one of the block's, and stands for a pixel;
    address, low, high: to `AlignedBanks`.
    """

    compared_ahead: ClassVar[Sequence[str]] = ()
    """Axes whose last pixel is known a pixel before."""

    current: data.View
    fresh: data.View
    take: Signal
    elements: Signal
    issue: Signal
    last_slot: Signal
    chunk_last: Signal
    run_last: Signal
    tap_last: Signal
    block_last: Signal
    tile_last: Signal
    slot_in_block: Signal
    slot_counts: Signal
    address: Signal
    low: Signal
    high: Signal

    def __init__(self, *, rows: int, lanes: int, trailing: bool) -> None:
        self.rows = rows
        self.lanes = lanes
        self.trailing = trailing
        flags = (
            "issue last_slot chunk_last run_last tap_last block_last tile_last "
            "slot_in_block slot_counts"
        )
        super().__init__(
            {
                "current": In(command_layout(*FOLD_FIELDS, *PIXEL_FIELDS)),
                "fresh": In(command_layout(*FOLD_FIELDS, *PIXEL_FIELDS)),
                "take": In(1),
                "elements": In(range(rows + 1)),
                **{flag: In(1) for flag in flags.split()},
                "address": Out(signed(ELEMENT)),
                "low": Out(range(lanes + 1)),
                "high": Out(range(lanes + 1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        element, row, base = self._walk_pixels(m)
        tap_row, tap_base, offset = self._walk_kernel(m)
        first, end = self._chunk()
        low, high = Signal(range(self.lanes + 1)), Signal(range(self.lanes + 1))
        m.d.comb += [
            low.eq(first),
            high.eq(end),
        ]
        inside = self._columns(m, element, offset, (low, high))
        with m.If(self._outside(m, row, tap_row) | ~self.slot_counts):
            m.d.comb += high.eq(0)
        m.d.sync += [
            self.address.eq(base + tap_base + inside),
            self.low.eq(low),
            self.high.eq(high),
        ]
        return m

    def _chunk(self) -> tuple[Value | int, Value | int]:
        """The lane of its first element, and that behind its last."""
        first = self.rows - self.elements if self.trailing else 0
        end = self.rows if self.trailing else self.elements
        return first, end

    def _columns(
        self, m: Module, element: Signal, offset: Signal, bounds: tuple[Signal, Signal]
    ) -> Value:
        """Bounds without the lanes beside the ifmap's row; returns the element of lane 0."""
        low, high = bounds
        first, end = self._chunk()
        inside = Signal(signed(ELEMENT))
        room = Signal(signed(ELEMENT))
        m.d.comb += [
            inside.eq(element + offset - first),
            room.eq(self.current.pitch - inside),
        ]
        with m.If(inside < -first):
            m.d.comb += low.eq(Mux(inside < -self.lanes, self.lanes, -inside))
        with m.If(room < end):
            m.d.comb += high.eq(Mux(room < 0, 0, room))
        return inside

    def _outside(self, m: Module, row: Signal, tap_row: Signal) -> Value:
        """Whether the tap's row is none of the ifmap's."""
        at_row = Signal(signed(20))
        m.d.comb += at_row.eq(row + tap_row)
        return (at_row < 0) | (at_row >= self.current.height)

    def _walk_pixels(self, m: Module) -> tuple[Signal, Signal, Signal]:
        """Element, row and row address of the current pixel; returns to the block's first pixel.

        Columns, rows, images: behind an image's last pixel all but the image begins anew.
        """
        names: dict[str, Shape] = {
            "element": signed(ELEMENT),
            "row": signed(20),
            "base": signed(ELEMENT),
            "columns_left": Shape(24),
            "rows_left": Shape(24),
            "image": signed(ELEMENT),
            **{f"{axis}_last": Shape(1) for axis in self.compared_ahead},
        }
        now = {name: Signal(shape, name=f"pixel_{name}") for name, shape in names.items()}
        after = {name: Signal(shape, name=f"next_{name}") for name, shape in names.items()}
        block = {name: Signal(shape, name=f"block_{name}") for name, shape in names.items()}
        self.pixel, self.block = now, block
        current, fresh = self.current, self.fresh
        m.d.comb += [after[name].eq(now[name]) for name in names]
        single = self._single(m)
        with m.If(self.slot_in_block):
            self._next_pixel(m, now, after)
        starts = {
            "element": "element_start",
            "row": "row_start",
            "base": "address_start",
            "columns_left": "pixel_columns",
            "rows_left": "pixel_rows",
            "image": "address_start",
        }
        begun: dict[str, tuple[Value, Value]] = {
            **{name: (fresh[field], current[field]) for name, field in starts.items()},
            **single,
        }
        turns = self.last_slot & self.tap_last  # to the next block, or to the first one again
        for name, (first, again) in begun.items():
            onward = Mux(self.block_last, again, after[name])
            # what comes next is chosen before it is known whether there is an issue
            with m.If(self.take):
                m.d.sync += [now[name].eq(first), block[name].eq(first)]
            with m.Elif(self.issue):
                with m.If(turns):
                    m.d.sync += [now[name].eq(onward), block[name].eq(onward)]
                with m.Elif(self.last_slot):
                    m.d.sync += now[name].eq(block[name])
                with m.Else():
                    m.d.sync += now[name].eq(after[name])
        return now["element"], now["row"], now["base"]

    def _single(self, m: Module) -> dict[str, tuple[Value, Value]]:
        """What is kept of a turn begins so: of the command that comes, and of this one."""
        return {}

    def _turn(
        self, m: Module, axis: str, now: dict[str, Signal], after: dict[str, Signal]
    ) -> Value:
        """Whether the pixel is the last of an axis, along which the next one goes on."""
        return now[f"{axis}_left"] == 1

    def _next_pixel(self, m: Module, now: dict[str, Signal], after: dict[str, Signal]) -> None:
        """The pixel behind this one: columns, rows, images turn."""
        current = self.current
        with m.If(~self._turn(m, "columns", now, after)):
            m.d.comb += [
                after["element"].eq(now["element"] + current.column_step),
                after["columns_left"].eq(now["columns_left"] - 1),
            ]
        with m.Else():
            m.d.comb += [
                after["element"].eq(current.element_start),
                after["columns_left"].eq(current.pixel_columns),
            ]
            with m.If(~self._turn(m, "rows", now, after)):
                m.d.comb += [
                    after["row"].eq(now["row"] + current.row_stride),
                    after["base"].eq(now["base"] + current.row_step),
                    after["rows_left"].eq(now["rows_left"] - 1),
                ]
            with m.Else():
                next_image = now["image"] + current.image_step
                m.d.comb += [
                    after["row"].eq(current.row_start),
                    after["base"].eq(next_image),
                    after["rows_left"].eq(current.pixel_rows),
                    after["image"].eq(next_image),
                ]

    def _walk_kernel(self, m: Module) -> tuple[Signal, Signal, Signal]:
        """Row and address offset of the tap, element offset of the chunk."""
        tap_row, tap_base = Signal(16), Signal(ELEMENT)
        run, offset = Signal(24), Signal(24)
        self.kernel = tap_row, tap_base, run, offset
        next_run = Mux(self.run_last, 0, run + self.current.run_step)
        with m.If(self.issue & self.last_slot):
            m.d.sync += offset.eq(Mux(self.chunk_last, next_run, offset + self.rows))
            with m.If(self.chunk_last):
                m.d.sync += run.eq(next_run)
            with m.If(self.run_last):
                m.d.sync += [
                    tap_row.eq(Mux(self.tap_last, 0, tap_row + self.current.tap_rows)),
                    tap_base.eq(Mux(self.tap_last, 0, tap_base + self.current.tap_step)),
                ]
        return tap_row, tap_base, offset
