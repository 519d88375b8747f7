"""What is proved of window addresses: the element of every lane of every issue, by its indices."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from amaranth.hdl import Assume, Cat, Module, Mux, Shape, Signal, Value, signed
from unit_proofs import Proof, made

from rtl.formal import claim, named

FIELDS: dict[str, Shape | int] = {
    "pixel_rows": 2, "pixel_columns": 2, "column_step": 2, "row_step": 3, "row_stride": 2,
    "pitch": 3, "height": 2, "image_step": 3, "element_start": signed(3), "row_start": signed(3),
    "address_start": signed(4), "tap_rows": 2, "tap_step": 3, "run_step": 2,
}  # fmt: skip
"""Of a command, in fewer bits than it has; any number of these bits is tried."""
PLACES = ("column", "row", "image")
FLAGS = (
    "take", "issue", "slot_in_block", "slot_counts", "last_slot", "chunk_last", "run_last",
    "tap_last", "block_last", "tile_last",
)  # fmt: skip
MOST = 3
"""The largest index of an image, a tap, a run and a chunk."""


class WindowProof(Proof):
    """Lane j of an issue is the element that the indices of its pixel, tap, run and chunk say.

    The account counts these, and multiplies: column c of pixels begins at element_start +
    c · column_step, and so on.  A lane counts where its element is one of the chunk, in the ifmap's
    row and this row in the ifmap, and the slot is of a pixel.
    """

    def __init__(self, unit: Any, *, rows: int, lanes: int, trailing: bool) -> None:
        self.sizes = {"rows": rows, "lanes": lanes, "trailing": trailing}
        self.rows, self.lanes, self.trailing = rows, lanes, trailing
        super().__init__(unit, **FIELDS, **dict.fromkeys(FLAGS, 1), elements=range(rows + 1))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self.window = window = made(m, "window", self._made())
        free = self.free
        self.held = {name: Signal(shape, name=f"held_{name}") for name, shape in FIELDS.items()}
        for name, held in self.held.items():
            m.d.comb += [
                window.fresh[name].eq(getattr(free, name)), window.current[name].eq(held)
            ]  # fmt: skip
            with m.If(free.take):
                m.d.sync += held.eq(getattr(free, name))
        m.d.comb += [
            getattr(window, name).eq(getattr(free, name)) for name in (*FLAGS, "elements")
        ]  # fmt: skip
        self._order(m)
        now, block = self._pixels(m)
        taps = self._kernel(m)
        for inside, at, name in ((window.pixel, now, "now"), (window.block, block, "block")):
            m.d.comb += [
                claim(m, f"{name}_{key}", inside[key] == value)
                for key, value in self._values(at).items()
            ]
        self._outputs(m, self._values(now), taps)
        return m

    def _made(self) -> Any:
        return self.unit.Window(**self.sizes)

    def _order(self, m: Module) -> None:
        """As a sequencer gives it: the last of a tile is the last of its block, and so on."""
        free, self.running = self.free, Signal(name="running")
        order = ("tile_last", "block_last", "tap_last", "run_last", "chunk_last")
        m.d.comb += [
            *(
                Assume(~getattr(free, outer) | getattr(free, inner), outer)
                for outer, inner in pairwise(order)
            ),
            Assume(~free.take | ~self.running, "taken"),
            Assume(~free.issue | self.running, "issued"),
            Assume((free.pixel_rows != 0) & (free.pixel_columns != 0), "pixels"),
            Assume((free.elements != 0) & (free.elements <= self.rows), "elements"),
        ]
        self.fold = named(m, "fold", free.issue & free.last_slot)
        with m.If(free.take):
            m.d.sync += self.running.eq(1)
        with m.Elif(self.fold & free.tile_last):
            m.d.sync += self.running.eq(0)

    def _pixels(self, m: Module) -> tuple[Any, Any]:
        """The indices of the pixel, and of the block's first."""
        free, held = self.free, self.held
        now, block, after = (
            {name: Signal(2, name=f"{of}_{name}") for name in PLACES}
            for of in ("at", "first", "next")
        )
        row_ends = now["column"] + 1 == held["pixel_columns"]
        image_ends = row_ends & (now["row"] + 1 == held["pixel_rows"])
        moves = free.slot_in_block
        begins = free.take | (self.fold & free.block_last)
        m.d.comb += [
            after["column"].eq(Mux(moves & row_ends, 0, now["column"] + moves)),
            after["row"].eq(Mux(moves & image_ends, 0, now["row"] + (moves & row_ends))),
            after["image"].eq(now["image"] + (moves & image_ends)),
            Assume(~free.issue | ~moves | ~image_ends | (now["image"] < MOST), "images"),
        ]
        for name in PLACES:
            with m.If(begins):
                m.d.sync += [now[name].eq(0), block[name].eq(0)]
            with m.Elif(self.fold & free.tap_last):
                m.d.sync += [now[name].eq(after[name]), block[name].eq(after[name])]
            with m.Elif(free.issue):
                m.d.sync += now[name].eq(Mux(free.last_slot, block[name], after[name]))
        for at, of in ((now, "now"), (block, "block")):
            within = (at["column"] < held["pixel_columns"]) & (at["row"] < held["pixel_rows"])
            m.d.comb += claim(m, f"{of}_within", ~self.running | within)
        return now, block

    def _values(self, at: Any) -> dict[str, Value]:
        """What a walk over pixels holds there."""
        held = self.held
        image = held["address_start"] + at["image"] * held["image_step"]
        return {
            "element": held["element_start"] + at["column"] * held["column_step"],
            "row": held["row_start"] + at["row"] * held["row_stride"],
            "base": image + at["row"] * held["row_step"],
            "image": image,
            "columns_left": held["pixel_columns"] - at["column"],
            "rows_left": held["pixel_rows"] - at["row"],
        }

    def _kernel(self, m: Module) -> tuple[Value, Value, Value]:
        """Row and address of the tap, and the chunk's first element, from its indices."""
        free, held = self.free, self.held
        tap, run, chunk = (Signal(2, name=name) for name in ("tap", "run", "chunk"))
        counted = (
            (chunk, self.fold, free.chunk_last),
            (run, self.fold & free.chunk_last, free.run_last),
            (tap, self.fold & free.run_last, free.tap_last),
        )
        for index, goes, last in counted:
            with m.If(goes):
                m.d.sync += index.eq(Mux(last, 0, index + 1))
            m.d.comb += [
                Assume(~goes | last | (index < MOST), index.name),
                claim(m, f"{index.name}_begins", self.running | (index == 0)),
            ]
        at_row, at_base, at_run, at_chunk = self.window.kernel
        offset = run * held["run_step"] + chunk * self.rows
        m.d.comb += [
            claim(m, "tap_row", at_row == tap * held["tap_rows"]),
            claim(m, "tap_base", at_base == tap * held["tap_step"]),
            claim(m, "run_at", at_run == run * held["run_step"]),
            claim(m, "chunk_at", at_chunk == offset),
        ]
        self._beside(m, tap, run, chunk)
        return tap * held["tap_rows"], tap * held["tap_step"], offset

    def _beside(self, m: Module, tap: Signal, run: Signal, chunk: Signal) -> None:
        """What is kept beside these."""

    def _outputs(self, m: Module, at: dict[str, Value], taps: tuple[Value, Value, Value]) -> None:
        """One cycle later."""
        free, held, window = self.free, self.held, self.window
        tap_row, tap_base, offset = taps
        first = self.rows - free.elements if self.trailing else 0
        row = at["row"] + tap_row
        row_inside = (row >= 0) & (row < held["height"]) & free.slot_counts
        counts: list[Value] = []
        for lane in range(self.lanes):
            number = lane - first
            column = at["element"] + offset + number
            there = (number >= 0) & (number < free.elements)
            counts.append(there & (column >= 0) & (column < held["pitch"]) & row_inside)
        begun, expected = Signal(name="begun"), Signal(signed(28), name="expected")
        wanted = Signal(self.lanes, name="wanted")
        m.d.sync += [
            begun.eq(self.running),
            expected.eq(at["base"] + tap_base + at["element"] + offset - first),
            wanted.eq(Cat(counts)),
        ]
        m.d.comb += claim(m, "address", ~begun | (window.address == expected))
        for lane in range(self.lanes):
            counted = (window.low <= lane) & (lane < window.high)
            m.d.comb += claim(m, f"lane_{lane}", ~begun | (counted == wanted[lane]))


class PipelinedWindowProof(WindowProof):
    """And what is compared with them is kept beside the offset, the row and the pixels left."""

    def _made(self) -> Any:
        return self.unit.PipelinedWindow(**self.sizes)

    def _beside(self, m: Module, tap: Signal, run: Signal, chunk: Signal) -> None:
        held, window, running = self.held, self.window, self.running
        at_run = run * held["run_step"]
        offset = at_run + chunk * self.rows
        most = self.rows if self.trailing else 0
        begins: dict[str, tuple[Value | int, int]] = {
            "far": (self.lanes, 1),
            "left": (held["pitch"] + most, -1),
            "full": (held["pitch"] - self.rows, -1),
        }
        for name, (begin, sign) in begins.items():
            for kept, passed in zip(window.kept[name], (offset, at_run), strict=True):
                claimed = kept == (begin + passed if sign > 0 else begin - passed)
                m.d.comb += claim(m, kept.name, ~running | claimed)
        m.d.comb += claim(
            m, "under", ~running | (window.under == held["height"] - tap * held["tap_rows"])
        )
        for axis, (_, single) in window.single.items():
            left = axis.replace("last", "left")
            one = held[f"pixel_{axis.removesuffix('_last')}"] == 1
            m.d.comb += [
                claim(m, f"single_{axis}", ~running | (single == one)),
                *(
                    claim(m, f"{of}_{axis}", ~running | (at[axis] == (at[left] == 1)))
                    for of, at in (("now", window.pixel), ("block", window.block))
                ),
            ]
