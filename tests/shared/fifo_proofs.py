"""What is proved of a PE's weight FIFO: the vectors of the blocks, again and again, in order."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Assume, Cat, Const, Module, Mux, Signal, Value
from unit_proofs import Proof, made, registers, together

from archsim.machines.scnn.design import Scnn
from rtl.formal import claim, named
from rtl.memories.read_back import sram_cells


class WeightFifoProof(Proof):
    """A block is read from its first vector on, as often as is asked, or is given back unread.

    The account is a line of the vectors that are held, and how many of them lie before the one
    that is read.  A pass is `final` as the PE says it: each vector's place is given back when it is
    done with.  Beside what is seen, the FIFO's memories hold the line and where its blocks end.

    With registers (`ahead`), places are taken before vectors come, and given back a cycle later:
    with the `WeightRoom` that stands beside.
    """

    def __init__(self, unit: Any, *, depth: int, ahead: bool = False) -> None:
        self.depth, self.ahead = depth, ahead
        self.design = Scnn(
            grid_rows=1, grid_columns=1, weight_lanes=1, ifmap_lanes=1, banks=1, bank_entries=1,
            operand_bits=2, accumulator_bits=4, weight_fifo_vectors=depth, pipelined_pes=ahead,
        )  # fmt: skip
        more = ("reserve",) if ahead else ()
        orders = dict.fromkeys(("write", "step", "final", "skip", *more), 1)
        super().__init__(unit, last=1, number=2, **orders)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fifo = made(m, "fifo", self.unit.WeightFifo(design=self.design))
        inside = fifo.elaborate(None)
        self.cells = {
            name: sram_cells(getattr(inside.submodules, name)) for name in ("store", "ends")
        }
        if self.ahead:
            flags = sram_cells(inside.submodules.flags)
            self.cells["store"] = [
                Cat(*pair) for pair in zip(self.cells["store"], flags, strict=True)
            ]
            self.blocks = inside.submodules.blocks.count
        self.pointers = registers(inside)
        self.room = self._room_beside(m, fifo) if self.ahead else fifo.room
        size = len(fifo.i.as_value())
        line = [Signal(size, name=f"vector_{n}") for n in range(self.depth)]
        count, at = Signal(8, name="vectors"), Signal(8, name="read")
        lasts = [named(m, f"last_{n}", (count > n) & word[-1]) for n, word in enumerate(line)]
        first_end = named(m, "first_end", self._first(lasts))
        self._drive(m, fifo, line, (count, at))
        free = self.free
        ended = free.step & Mux(fifo.arrived, Array(line)[at][-1], 0)
        gives = free.step & free.final
        dropped = named(m, "dropped", Mux(free.skip, first_end + 1, gives))
        came = Mux(free.write, fifo.i.as_value(), 0)
        m.d.sync += [
            count.eq(count - dropped + free.write),
            at.eq(Mux(free.skip | (free.step & (free.final | ended)), 0, at + free.step)),
        ]
        for n, word in enumerate(line):
            moved = Array([*line, *[Const(0, size)] * self.depth])[n + dropped]
            m.d.sync += word.eq(Mux(free.write & (count - dropped == n), came, moved))
        taken = self._reserved(m, fifo, count, dropped) if self.ahead else count
        m.d.comb += [
            claim(m, "room", self.room == (taken < self.depth)),
            claim(m, "arrived", fifo.arrived == (at < count)),
            claim(m, "word", ~fifo.arrived | (fifo.word.as_value() == Array(line)[at])),
            claim(m, "complete", fifo.complete == Cat(lasts).any()),
            claim(m, "count", count <= self.depth),
            claim(m, "at", (at <= count) & (at <= first_end)),
        ]
        self._held(m, line, lasts, (count, at))
        return m

    def _room_beside(self, m: Module, fifo: Any) -> Value:
        """What the `WeightRoom` that stands beside says."""
        unit = made(m, "weight_room", self.unit.WeightRoom(design=self.design))
        m.d.comb += [
            unit.used.eq(1),
            unit.reserve.eq(self.free.reserve),
            unit.released[0].eq(fifo.released),
        ]
        self.pointers |= registers(unit.elaborate(None))
        room: Value = unit.room
        return room

    def _reserved(self, m: Module, fifo: Any, count: Signal, dropped: Signal) -> Value:
        """Places that are taken: of vectors that are held, or come, or were given up just now."""
        come, given = Signal(8, name="come"), Signal(8, name="given")
        m.d.sync += [come.eq(come + self.free.reserve - self.free.write), given.eq(dropped)]
        reserved = self._behind(self.pointers["released"], count + come)
        m.d.comb += [
            Assume(~self.free.reserve | self.room, "reserved"),
            Assume(~self.free.write | (come != 0), "comes"),
            claim(m, "come", count + come + given <= self.depth),
            claim(m, "reserved", self.pointers["reserved_0"] == reserved),
        ]
        return count + come + given

    def _drive(self, m: Module, fifo: Any, line: list[Signal], places: tuple[Any, Any]) -> None:
        """The orders as a PE gives them."""
        free, (_, at) = self.free, places
        last = fifo.word.last
        m.d.comb += [
            fifo.i.as_value().eq(Cat(free.number, Const(0, len(fifo.i.as_value()) - 3), free.last)),
            fifo.write.eq(free.write),
            fifo.step.eq(free.step),
            fifo.again.eq(last & ~free.final),
            fifo.release.eq(free.final),
            fifo.skip.eq(free.skip),
            fifo.block_end.eq(free.skip | (free.step & last & free.final)),
            *([] if self.ahead else [Assume(~free.write | self.room, "written")]),
            Assume(~free.step | (fifo.arrived & ~free.skip), "stepped"),
            Assume(~free.step | ~free.final | (at == 0), "final"),
            Assume(~free.skip | fifo.complete, "skipped"),
        ]

    def _first(self, lasts: list[Signal]) -> Value:
        """The first vector that ends a block; behind all where none does."""
        found: Value = Const(self.depth, 8)
        for n, here in reversed(list(enumerate(lasts))):
            found = Mux(here, n, found)
        return found

    def _held(
        self, m: Module, line: list[Signal], lasts: list[Signal], places: tuple[Any, Any]
    ) -> None:
        """Pointers stand where the account says; so do the words of both memories."""
        count, at = places
        released, head = self.pointers["released"], self.pointers["head"]
        blocks = together(m, "blocks", lasts)
        if self.ahead:
            m.d.comb += claim(m, "whole_blocks", self.blocks == blocks)
        for name, first, number in (
            ("written", released, count), ("reading", released, at), ("tail", head, blocks),
        ):  # fmt: skip
            m.d.comb += claim(m, name, self.pointers[name] == self._behind(first, number))
        m.d.comb += [
            claim(m, f"{name}_within", pointer[:-1] < self.depth)
            for name, pointer in (("released", released), ("head", head))
        ]
        store, ends = Array(self.cells["store"]), Array(self.cells["ends"])
        for n, word in enumerate(line):
            held = store[self._place(self._behind(released, n))]
            before = together(m, f"blocks_before_{n}", lasts[:n])
            end = ends[self._place(self._behind(head, before))]
            m.d.comb += [
                claim(m, f"held_{n}", (count <= n) | (held == word)),
                claim(m, f"end_{n}", ~lasts[n] | (end == self._behind(released, n + 1))),
            ]
        block_after = self._behind(released, self._first(lasts) + 1)
        m.d.comb += claim(m, "block", (blocks == 0) | (self.pointers["block_after"] == block_after))

    def _behind(self, pointer: Value, number: Any) -> Value:
        """A pointer to so many places on, at most as many as there are."""
        place = pointer[:-1] + number
        around = place >= self.depth
        inside = Mux(around, place - self.depth, place)
        return Cat(inside[: len(pointer) - 1], pointer[-1] ^ around)

    def _place(self, pointer: Value) -> Value:
        return Cat(pointer[:-1], Const(0, 1))
