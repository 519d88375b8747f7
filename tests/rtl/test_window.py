"""Windows behind a sequencer, in tiles larger than any case has: of each, the first issues."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from rtl.core.commands import FOLD_FIELDS, PIXEL_FIELDS, command_layout
from rtl.core.sequencer import Sequencer
from rtl.core.window import Window

LANES = 4
FLAGS = (
    "issue last_slot chunk_last run_last tap_last block_last tile_last slot_in_block slot_counts"
)


MOST_ISSUES = 2_000
"""Of a tile that are looked at."""


class _Walk(wiring.Component):
    """A core's walk over the pixels of a tile: a fold has a slot for each."""

    command: Any
    issue: Signal
    address: Signal
    low: Signal
    high: Signal

    def __init__(self) -> None:
        self.window = Window(rows=LANES, lanes=LANES, trailing=False)
        members = self.window.signature.members
        super().__init__(
            {
                "command": In(stream.Signature(command_layout(*FOLD_FIELDS, *PIXEL_FIELDS))),
                "issue": Out(1),
                **{name: members[name] for name in ("address", "low", "high")},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.walk = walk = Sequencer(rows=LANES, slots="pixels", steps=True, block=None)
        m.submodules.window = window = self.window
        wiring.connect(m, wiring.flipped(self.command), walk.command)
        for name in (*FLAGS.split(), "issue", "current", "elements"):
            m.d.comb += getattr(window, name).eq(getattr(walk, name))
        m.d.comb += [
            walk.go.eq(1),
            window.fresh.eq(walk.command.payload),
            window.take.eq(walk.command.valid & walk.command.ready),
            *(getattr(self, name).eq(getattr(window, name)) for name in ("address", "low", "high")),
        ]
        m.d.sync += self.issue.eq(walk.issue)
        return m


@dataclass(frozen=True, kw_only=True)
class Tile:
    """fields: of its command, others than 0 and 1."""

    images: int = 1
    fields: dict[str, int] = field(default_factory=dict[str, int])

    def __getitem__(self, name: str) -> int:
        of_one = "pixel_rows pixel_columns row_stride taps runs filter_steps run_length height"
        return self.fields.get(name, int(name in of_one.split()))

    def command(self) -> dict[str, int]:
        """All fields that the walk takes."""
        return {name: self[name] for name in (*FOLD_FIELDS, *PIXEL_FIELDS)}

    def issues(self) -> Iterator[tuple[int, ...]]:
        """The elements that each issue reads, of those that lie in the ifmap."""
        for _ in range(self["filter_steps"]):
            for tap, run in product(range(self["taps"]), range(self["runs"])):
                for chunk in range(0, self["run_length"], LANES):
                    offset = run * self["run_step"] + chunk
                    lanes = min(LANES, self["run_length"] - chunk)
                    for pixel in islice(self._pixels(), self["pixels"]):
                        yield self._read(pixel, tap, offset, lanes)

    def _read(
        self, pixel: tuple[int, int, int], tap: int, offset: int, lanes: int
    ) -> tuple[int, ...]:
        image, row, column = pixel
        at_row = self["row_start"] + row * self["row_stride"] + tap * self["tap_rows"]
        first = self["element_start"] + column * self["column_step"] + offset
        base = self["address_start"] + image * self["image_step"] + row * self["row_step"]
        return tuple(
            base + tap * self["tap_step"] + element
            for element in range(first, first + lanes)
            if 0 <= element < self["pitch"] and 0 <= at_row < self["height"]
        )

    def _pixels(self) -> Iterator[tuple[int, int, int]]:
        counts = (self.images, self["pixel_rows"], self["pixel_columns"])
        return ((image, row, column) for image in range(counts[0]) for row in range(counts[1])
                for column in range(counts[2]))  # fmt: skip


TILES = {
    "a small one": Tile(images=2, fields={
        "pixels": 12, "pixel_rows": 2, "pixel_columns": 3, "column_step": 3, "pitch": 7,
        "row_step": 14, "row_stride": 2, "height": 4, "image_step": 28, "element_start": -2,
        "row_start": -1, "address_start": -7, "taps": 2, "tap_rows": 1, "tap_step": 7,
        "runs": 2, "run_step": 2, "run_length": 6, "filter_steps": 2,
    }),
    "2^23 + 1 steps": Tile(fields={
        "pixels": 2, "pixel_columns": 2, "column_step": 2, "pitch": 9, "run_length": 3,
        "filter_steps": (1 << 23) + 1,
    }),
    "runs of 2^23 + 1 elements": Tile(fields={
        "pixels": 1, "pitch": (1 << 24) - 1, "run_length": (1 << 23) + 1,
    }),
    "runs 2^23 elements apart": Tile(fields={
        "pixels": 2, "pixel_columns": 2, "column_step": 5, "pitch": (1 << 24) - 1, "runs": 2,
        "run_step": 1 << 23, "run_length": 3,
    }),
    "taps 2^25 elements apart": Tile(fields={
        "pixels": 1, "pitch": 9, "height": 5, "taps": 3, "tap_rows": 1, "tap_step": 1 << 25,
        "run_length": 4,
    }),
    "a tile that begins at -2^27": Tile(fields={
        "pixels": 3, "pixel_rows": 3, "row_step": (1 << 26) - 1, "pitch": 9, "height": 9,
        "address_start": -(1 << 27), "run_length": 2,
    }),
    "columns beyond 2^27 elements": Tile(fields={
        "pixels": 10, "pixel_columns": 10, "column_step": (1 << 24) - 1, "pitch": (1 << 24) - 1,
        "run_length": 2,
    }),
    "rows up to 2^19": Tile(fields={
        "pixels": 2_000, "pixel_rows": 2_000, "row_start": 65_534, "row_stride": 255, "pitch": 9,
        "height": 65_535, "run_length": 1,
    }),
    "2^23 + 1 columns": Tile(fields={
        "pixels": 3, "pixel_rows": 2, "pixel_columns": (1 << 23) + 1, "column_step": 2, "pitch": 99,
        "row_step": 40, "height": 9, "run_length": 2,
    }),
    "2^23 + 1 rows": Tile(images=2, fields={
        "pixels": 3, "pixel_rows": (1 << 23) + 1, "row_step": 11, "pitch": 9, "height": 9,
        "image_step": 33, "run_length": 2,
    }),
    "images 2^25 elements apart": Tile(images=3, fields={
        "pixels": 3, "image_step": 1 << 25, "pitch": 9, "run_length": 2,
    }),
}  # fmt: skip


@pytest.mark.parametrize("name", TILES)
def test_elements_of_every_issue(name: str) -> None:
    tile, unit = TILES[name], _Walk()
    issues = tile.issues()
    expected = list(islice(issues, MOST_ISSUES))
    ends = next(issues, None) is None
    seen: list[tuple[int, ...]] = []

    async def bench(ctx: Any) -> None:
        for one, value in tile.command().items():
            ctx.set(unit.command.payload[one], value)
        ctx.set(unit.command.valid, 1)
        for _ in range(len(expected) + 2):
            await ctx.tick()
            ctx.set(unit.command.valid, 0)
            if ctx.get(unit.issue):
                first = int(ctx.get(unit.address))
                lanes = range(int(ctx.get(unit.low)), int(ctx.get(unit.high)))
                seen.append(tuple(first + lane for lane in lanes))
        assert ctx.get(unit.command.ready) == ends

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert seen[: len(expected)] == expected
    assert any(expected)
