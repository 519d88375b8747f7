"""A PE's compressed memories alone: contents written as they come, a vector read a cycle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from amaranth.sim import Simulator
from scnn_lists import Vector
from scnn_streams import Content, content_of

from archsim.machines.scnn.design import Scnn
from rtl.memories.boveda_stream.memories import StreamMemories

FLUSH_CYCLES, READ_CYCLES = 3, 5
"""From a content's last write to the strobe, and to its first vector."""


@dataclass(kw_only=True)
class StreamBench:
    """Counts what is wrong; `stored` is what was written to the SRAMs, by memory and kind."""

    design: Scnn
    seed: int
    exchanged: int = 0
    wrong: list[str] = field(default_factory=list[str])
    stored: dict[tuple[str, str], dict[int, int]] = field(
        default_factory=dict[tuple[str, str], dict[int, int]]
    )

    def run(self, contents: list[tuple[str, list[list[Vector]], float]]) -> list[str]:
        """Contents of "ifmap" or "ofmap", each written, and read for some walks.

        The third: how often a vector is stepped to.
        """
        memory: Any = self.design.activation_memory
        self.unit = StreamMemories(design=self.design, memory=memory)
        self.rng = np.random.default_rng(self.seed)

        async def process(ctx: Any) -> None:
            ctx.set(self.unit.exchanged, self.exchanged)
            for name, lists, often in contents:
                await self._strobe(ctx, "start" if name == "ifmap" else "go")
                self.stored = {}
                await self._write(ctx, name, lists)
                await self._read(ctx, name, lists, often)

        simulator = Simulator(self.unit)
        simulator.add_clock(1e-6)
        simulator.add_testbench(process)
        simulator.run()
        return self.wrong

    async def _tick(self, ctx: Any) -> None:
        for name, stores in self.unit.stores.items():
            for kind, store in stores.items():
                if ctx.get(store.write):
                    place = self.stored.setdefault((name, kind), {})
                    place[ctx.get(store.write_address)] = ctx.get(store.write_data)
        await ctx.tick()

    async def _strobe(self, ctx: Any, name: str) -> None:
        ctx.set(getattr(self.unit, name), 1)
        await self._tick(ctx)
        ctx.set(getattr(self.unit, name), 0)

    async def _write(self, ctx: Any, name: str, lists: list[list[Vector]]) -> None:
        port = getattr(self.unit, name)
        vectors = sum(map(len, lists))
        for at, word, append in writes_of(self.design, lists, self.rng, name == "ofmap"):
            while self.rng.random() < 0.2:
                await self._tick(ctx)
            ctx.set(port.write, 1)
            ctx.set(port.append, append)
            ctx.set(port.write_address, at)
            ctx.set(port.write_data, word)
            await self._tick(ctx)
            ctx.set(port.write, 0)
        ctx.set(port.count, vectors)
        for _ in range(FLUSH_CYCLES - 1):
            await self._tick(ctx)
        await self._strobe(ctx, "flush")
        for _ in range(READ_CYCLES - FLUSH_CYCLES - 1):
            await self._tick(ctx)

    async def _read(self, ctx: Any, name: str, lists: list[list[Vector]], often: float) -> None:
        """Three walks; with `often` 1 a vector in every cycle, across the ends."""
        port = getattr(self.unit, name)
        words = [word_of(self.design, vector, last) for vector, last in _marked(lists)]
        at = 0
        while at < 3 * len(words) + 1:
            found = ctx.get(port.read_data)
            if found != words[at % len(words)]:
                self.wrong.append(f"{name} vector {at}: {found:x} not {words[at % len(words)]:x}")
            step = int(self.rng.random() < often)
            ctx.set(port.step, step)
            await self._tick(ctx)
            at += step
        ctx.set(port.step, 0)
        expected = srams_of(self.design, content_of(self.design, lists))
        memory = {"ifmap": "iaram", "ofmap": "oaram"}[name]
        if self.exchanged:
            memory = {"iaram": "oaram", "oaram": "iaram"}[memory]
        for kind, words_ in expected.items():
            there = self.stored.get((memory, kind), {})
            if [there.get(at) for at in range(len(words_))] != words_:
                self.wrong.append(f"{memory} {kind}: {there} not {words_}")


def _marked(lists: list[list[Vector]]) -> Iterator[tuple[Vector, bool]]:
    for one in lists:
        for vector in one:
            yield vector, vector is one[-1]


def word_of(design: Scnn, vector: Vector, last: bool) -> int:
    """A vector with its flag as it crosses a port."""
    word, at = 0, 0
    for value, index, _ in vector:
        word |= (value % 2**design.operand_bits) << at
        word |= index << (at + design.operand_bits)
        at += design.element_bits
    return word | int(last) << at


def writes_of(
    design: Scnn, lists: list[list[Vector]], rng: np.random.Generator, taken_back: bool
) -> Iterator[tuple[int, int, bool]]:
    """Address, word, and whether its values are a vector more.

    taken_back: as a zero-run compressor writes; now and then the last vector comes full first,
    placeholders behind it, and is then written again as the last.
    """
    first = 0
    holder = [(0, 2**design.index_bits - 1, None)] * design.ifmap_lanes
    for one in lists:
        for at, vector in enumerate(one[:-1], first):
            yield at, word_of(design, vector, False), True
        at, own = first + len(one) - 1, one[-1]
        full = taken_back and rng.random() < 0.5
        if full:
            values = [(value, index or 1, None) for value, index, _ in own]
            yield at, word_of(design, values, False), True
            for more in range(int(rng.integers(0, 3))):
                if at + 1 + more < design.oaram_entries:
                    yield at + 1 + more, word_of(design, holder, False), True
        yield at, word_of(design, own, True), not full
        first += len(one)


def srams_of(design: Scnn, content: Content) -> dict[str, list[int]]:
    """The words of every SRAM, from address 0 on."""
    memory, bits = design.activation_memory, design.operand_bits
    assert memory
    field_bits = bits.bit_length() - 1
    found: dict[str, list[int]] = {"widths": [], "marks": []}
    for widths, indices, last in content.entries:
        found["widths"].append(_joined(widths, field_bits))
        marks = _joined(indices, design.index_bits)
        found["marks"].append(marks | int(last) << len(indices) * design.index_bits)
    for column, rows in enumerate(content.rows):
        words = [_joined(row, bits) for row in rows]
        found |= {f"rows_{column}_{bank}": words[bank::2] for bank in (0, 1)}
    return found


def _joined(parts: list[int], bits: int) -> int:
    return sum(part << at * bits for at, part in enumerate(parts))


def random_lists(
    design: Scnn, rng: np.random.Generator, vectors: int, width: int
) -> list[list[Vector]]:
    """So many vectors in lists, of values of up to `width` bits, zeros and the least value."""
    lists: list[list[Vector]] = [[]]
    for _ in range(vectors):
        limit = 2 ** int(rng.integers(0, width))
        own: Vector = []
        for _ in range(design.ifmap_lanes):
            value = int(rng.integers(-limit, limit))
            if width == design.operand_bits and rng.random() < 0.2:
                value = -(2 ** (width - 1))
            index = int(rng.integers(2**design.index_bits))
            own.append((value * (rng.random() < 0.7), index, None))
        lists[-1].append(own)
        if rng.random() < 0.4:
            lists.append([])
    return [one for one in lists if one]
