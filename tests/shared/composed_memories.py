"""Kinds of memory around others, as another package would bring them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from amaranth.hdl import Module, Mux
from amaranth.lib import wiring

from archsim import plugins
from archsim.blocks import Components, registers
from archsim.memory import Cells, Use, kinds
from archsim.memory.around import Around
from archsim.numbers import IntArray
from rtl.core.memory import Placed, Words, bank_for, rtl_of
from rtl.hierarchy import place


@dataclass(frozen=True, kw_only=True)
class Late(Around):
    """A register behind the output: a cycle more."""

    kind: ClassVar[str] = "late"

    @property
    def read_latency_cycles(self) -> int:
        return self.inner.read_latency_cycles + 1

    def components(self, use: Use) -> Components:
        """The inner one, and the register."""
        read = {f"{use.name}_read": 1.0}
        return (*super().components(use), *registers(f"{use.name}.late", use.word_bits, 1, read))


class LateScratchpad(wiring.Component):
    """The inner one's data, a cycle later."""

    read_data: Any

    def __init__(self, *, unit: Any, parameters: tuple[tuple[str, Any], ...]) -> None:
        self.unit, self.parameters = unit, dict(parameters)
        inner = unit(**self.parameters)
        inner._MustUse__silence = True  # made for its ports only
        super().__init__(inner.signature)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        inner = place(m, "inner", self.unit, **self.parameters)
        for name, member in self.signature.members.items():
            own, other = getattr(self, name), getattr(inner, name)
            if name == "read_data":
                m.d.sync += own.eq(other)
            else:
                m.d.comb += own.eq(other) if member.flow == wiring.Out else other.eq(own)
        return m


class LateRtl:
    """`LateScratchpad` around what the inner kind places."""

    def __init__(self, memory: Late) -> None:
        self.inner = rtl_of(memory.inner)
        self.whole_words = self.inner.whole_words

    def unit(self, words: Words, *, by_lane: bool) -> Placed:
        unit, parameters = self.inner.unit(words, by_lane=by_lane)
        return LateScratchpad, {"unit": unit, "parameters": tuple(sorted(parameters.items()))}

    def events(self, words: Words, *, by_lane: bool) -> dict[str, Any]:
        return self.inner.events(words, by_lane=by_lane)

    def bank(self, *, bits: int, depth: int, transparent: bool) -> Placed:
        return self.inner.bank(bits=bits, depth=depth, transparent=transparent)


@dataclass(frozen=True, kw_only=True)
class Stuck(Around):
    """The lowest bit of every row is stuck at one."""

    kind: ClassVar[str] = "stuck"

    def stored(self, use: Use, words: IntArray) -> Cells:
        """A fault in the cells, whatever they hold."""
        cells = {name: bits.copy() for name, bits in super().stored(use, words).items()}
        for bits in cells.values():
            bits[..., 0] = 1
        return cells


@dataclass(frozen=True, kw_only=True)
class Flip(Around):
    """A bit of one row of an SRAM comes out as the other one.

    sram: of the inner kind (`Cells`).  row, bit: where; column: of a compressed one's group
    columns.  every_lane: that bit of every lane.  half: in which half; −1: in both.
    """

    kind: ClassVar[str] = "flip"

    sram: str = "words"
    row: int = 0
    bit: int = 0
    column: int = 0
    half: int = 0
    every_lane: bool = False

    def stored(self, use: Use, words: IntArray) -> Cells:
        cells = {name: bits.copy() for name, bits in super().stored(use, words).items()}
        bits = cells[self.sram][self.column] if self.sram != "words" else cells[self.sram]
        if self.half in (use.half, -1) and self.row < len(bits):
            lanes = range(0, use.word_bits, use.lane_bits[0]) if self.every_lane else (0,)
            bits[self.row, [lane + self.bit for lane in lanes]] ^= 1
        return cells


class FlipScratchpad(wiring.Component):
    """The inner one, written with the fault."""

    write_data: Any

    def __init__(self, *, unit: Any, parameters: Any, row: int, mask: int, half: int) -> None:
        self.unit, self.parameters = unit, dict(parameters)
        self.row, self.mask, self.half = row, mask, half
        inner = unit(**self.parameters)
        inner._MustUse__silence = True  # made for its ports only
        super().__init__(inner.signature)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        inner: Any = place(m, "inner", self.unit, **self.parameters)
        own: Any = self
        here = own.write_address == self.row
        if self.half >= 0:
            here &= own.write_half == self.half
        for name, member in self.signature.members.items():
            mine, other = getattr(self, name), getattr(inner, name)
            if name == "write_data":
                m.d.comb += other.eq(mine ^ Mux(here, self.mask, 0))
            else:
                m.d.comb += mine.eq(other) if member.flow == wiring.Out else other.eq(mine)
        return m


class FlipBank(wiring.Component):
    """The inner one of a half, written with the fault, whether it is read from cells or passes."""

    write_data: Any

    def __init__(self, *, unit: Any, parameters: Any, row: int, mask: int) -> None:
        self.unit, self.parameters = unit, dict(parameters)
        self.row, self.mask = row, mask
        inner = unit(**self.parameters)
        inner._MustUse__silence = True  # made for its ports only
        super().__init__(inner.signature)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        inner: Any = place(m, "inner", self.unit, **self.parameters)
        own: Any = self
        for name, member in self.signature.members.items():
            mine, other = getattr(self, name), getattr(inner, name)
            if name == "write_data":
                here = own.write_address == self.row
                m.d.comb += other.eq(mine ^ Mux(here, self.mask, 0))
            else:
                m.d.comb += mine.eq(other) if member.flow == wiring.Out else other.eq(mine)
        return m


class FlipRtl:
    """`FlipScratchpad` around what the inner kind places, of words as they are."""

    def __init__(self, memory: Flip) -> None:
        self.memory, self.inner = memory, rtl_of(memory.inner)
        self.whole_words = self.inner.whole_words

    def unit(self, words: Words, *, by_lane: bool) -> Placed:
        unit, parameters = self.inner.unit(words, by_lane=by_lane)
        memory, lanes = self.memory, range(words.lanes if self.memory.every_lane else 1)
        return FlipScratchpad, {
            "unit": unit,
            "parameters": tuple(sorted(parameters.items())),
            "row": memory.row,
            "mask": sum(1 << (lane * words.bits + memory.bit) for lane in lanes),
            "half": memory.half,
        }

    def events(self, words: Words, *, by_lane: bool) -> dict[str, Any]:
        return self.inner.events(words, by_lane=by_lane)

    def bank(self, *, bits: int, depth: int, transparent: bool) -> Placed:
        """The inner one's, for a core to see that it has to ask `bank_for`."""
        return self.inner.bank(bits=bits, depth=depth, transparent=transparent)

    def bank_for(self, words: Words, *, transparent: bool) -> Placed:
        """Of a half: the inner one's, behind the fault if that is in this half."""
        unit, parameters = bank_for(self.memory.inner, words, transparent=transparent)
        assert words.use is not None
        memory, use = self.memory, words.use
        if memory.half not in (use.half, -1):
            return unit, parameters
        lanes = range(0, use.word_bits, use.lane_bits[0]) if memory.every_lane else (0,)
        return FlipBank, {
            "unit": unit,
            "parameters": tuple(sorted(parameters.items())),
            "row": memory.row,
            "mask": sum(1 << (lane + memory.bit) for lane in lanes),
        }


@dataclass(frozen=True, kw_only=True)
class Voted(Around):
    """Every word three times, side by side; the majority of its bits counts."""

    kind: ClassVar[str] = "voted"

    def _thrice(self, use: Use) -> Use:
        return replace(use, lane_bits=use.lane_bits * 3, lane_signed=use.lane_signed * 3)

    def depth(self, word_bits: int) -> int:
        return self.inner.depth(3 * word_bits)

    def sure_depth(self, word_bits: int) -> int:
        return self.inner.sure_depth(3 * word_bits)

    def check(self, use: Use) -> None:
        self.inner.check(self._thrice(use))

    def stored(self, use: Use, words: IntArray) -> Cells:
        return self.inner.stored(self._thrice(use), np.tile(words, 3))

    def read_back(self, use: Use, cells: Cells, words: int) -> IntArray:
        found = self.inner.read_back(self._thrice(use), cells, words)
        a, b, c = np.split(found, 3, axis=1)
        return (a & b) | (a & c) | (b & c)


ENTRIES = """
[archsim.memories]
scratchpad.late = composed_memories:Late
scratchpad.stuck = composed_memories:Stuck
scratchpad.voted = composed_memories:Voted
scratchpad.flip = composed_memories:Flip
[archsim.memory_rtl]
scratchpad.late = composed_memories:LateRtl
scratchpad.flip = composed_memories:FlipRtl
"""


@contextmanager
def installed(folder: Path, entries: str = ENTRIES, package: str = "composed") -> Iterator[None]:
    """A package with these entry points, found as any other that is installed."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        forget()
        yield
    forget()


def forget() -> None:
    """Look for packages anew."""
    plugins.plugins.cache_clear()
    kinds.forget()
