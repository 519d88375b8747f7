"""A compressed scratchpad alone: tiles written and read back to back, every word checked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from amaranth.sim import Simulator
from compressed_counts import Tile, expected_counts

from archsim.memories.boveda.scratchpad import Boveda
from archsim.memories.faulty.scratchpad import Faulty
from archsim.memory import Use
from rtl.cases import Draw
from rtl.core.memory import Words as RtlWords
from rtl.core.memory import rtl_of
from rtl.memories.boveda.scratchpad import COUNTED

Words = npt.NDArray[np.int64]
SETTLING = 8
"""Cycles behind the last step in which reads and writes are still counted."""


@dataclass(frozen=True, kw_only=True)
class Store:
    """A scratchpad of words of `lanes` values."""

    memory: Boveda
    lanes: int
    bits: int
    signed: bool
    straddles: bool
    faulty: Faulty | None = None

    @property
    def use(self) -> Use:
        """As a core has it."""
        lanes = {"lane_bits": (self.bits,) * self.lanes, "lane_signed": (self.signed,) * self.lanes}
        return Use(name="ifmap", field="ifmap_memory", by_lane=self.straddles, **lanes)

    def seen(self, words: Words, half: int) -> Words:
        """What is read of a tile in a half."""
        if self.faulty is None:
            return words
        use = replace(self.use, half=half)
        return self.faulty.read_back(use, self.faulty.stored(use, words), len(words))

    def hardware(self) -> tuple[Any, int]:
        """The scratchpad, and its settings."""
        words = RtlWords(
            lanes=self.lanes, bits=self.bits, signed=self.signed, depth=self.rows, use=self.use
        )
        rtl = rtl_of(self.faulty or self.memory)
        unit, parameters = rtl.unit(words, by_lane=self.straddles)
        settings = rtl.settings(words) if self.faulty else None
        return unit(**parameters), settings.init if settings else 0

    @property
    def rows(self) -> int:
        """In each half."""
        return self.memory.rows(self.lanes * self.bits)

    def fits(self, words: Words) -> bool:
        """Whether a tile of these words does."""
        deep = len(words) <= self.memory.depth(self.lanes * self.bits)
        return deep and max(Tile(words.tolist(), self).written) <= self.rows

    def pack(self, word: Sequence[int]) -> int:
        """Lanes as one integer."""
        mask = (1 << self.bits) - 1
        return sum((int(value) & mask) << (lane * self.bits) for lane, value in enumerate(word))


def random_store(draw: Draw) -> Store:
    """Any shape of word, group and unit, and few rows."""
    bits, group = draw.one_of(4, 8, 16), draw.whole(1, 5)
    lanes, rows = group * draw.whole(1, 3), draw.one_of(2, 3, 4, 5, 7, 8, 12)
    return Store(
        memory=Boveda(
            capacity_bytes=-(-2 * rows * lanes * bits // 8),
            group=group,
            unit_words=draw.one_of(1, 2, 4, 8, 16),
            expansion=draw.one_of(1, 2, 3, 8),
        ),
        lanes=lanes,
        bits=bits,
        signed=draw.chance(0.6),
        straddles=draw.chance(0.6),
    )


def failing(draw: Draw, store: Store) -> Store:
    """The same scratchpad with cells that fail, one way or another."""
    ways: tuple[Any, ...] = (
        {},
        {"zero_to_one": 0.5, "one_to_zero": 0.3},
        {"persistent": 0.4, "draw": 3, "column_shape": 0.5},
    )
    how, rate = ways[draw.whole(0, 2)], draw.one_of(1, 5, 20) / 100
    return replace(store, faulty=Faulty(inner=store.memory, rate=rate, chip=5, **how))


def measured_failing(draw: Draw, store: Store, folder: Path) -> Store:
    """The same scratchpad with the faults of files: in few of its cells, or in most; a row or an
    entry in a line, or two."""
    share, paths = draw.one_of(2, 25, 80) / 100, dict[str, Any]()
    for field, (depth, bits) in zip(
        ("map", "directory_map"), store.memory.srams(store.use).values(), strict=True
    ):
        side = 1 if depth % 2 else draw.whole(1, 2)
        shape = 2 * depth // side, bits * side
        kinds = draw.rng.integers(1, 4, shape) * (draw.rng.random(shape) < share)
        paths[field] = str(folder / f"{field}.npz")
        np.savez(paths[field], faults=kinds)
    faulty = Faulty(inner=store.memory, **paths)
    faulty.check(store.use)
    return replace(store, faulty=faulty)


def random_tile(draw: Draw, store: Store) -> Words:
    """Words of values that fit, as many as do where the draw has it so."""
    low, high = (-(1 << store.bits - 1), 0) if store.signed else (0, 0)
    high = (1 << store.bits - store.signed) - 1
    most = store.memory.depth(store.lanes * store.bits)
    while True:
        words = draw.rng.integers(low, high + 1, (draw.whole(1, most), store.lanes))
        words >>= draw.rng.integers(0, store.bits + 1, (len(words), 1))
        words[draw.rng.random(words.shape) < draw.rng.random()] = 0
        while len(words) and not store.fits(words):
            words = words[:-1]
        if len(words):
            return words


@dataclass
class Step:
    """The inputs of a cycle, and what must be at the output of it, where `mask` has ones."""

    inputs: dict[str, int]
    expected: int = 0
    mask: int = 0


def steps_of(draw: Draw, store: Store, tiles: int) -> list[Step]:
    """Tiles into one half or the other, each read as soon as it may and overwritten at once.

    The first word of a tile crosses in the cycle in which the last address of its half's former
    tile is presented.
    """
    steps: dict[int, Step] = {}

    def at(cycle: int) -> Step:
        return steps.setdefault(cycle, Step({}))

    free, now = [-1, -1], 0
    for _ in range(tiles):
        words, half = random_tile(draw, store), draw.whole(0, 1)
        now = max(now, free[half])
        for number, word in enumerate(words):
            now += draw.whole(0, 2) if number and draw.chance(0.2) else 0
            at(now).inputs.update(
                write=1,
                write_half=half,
                write_address=number,
                write_last=int(number == len(words) - 1),
                write_data=store.pack(word),
            )
            now += 1
        seen_words = store.seen(words, half)
        cycle = max(now + store.memory.write_latency_cycles - 1, *free)
        for number in _order(draw, len(words)):
            cycle += 1
            while draw.chance(0.1):
                at(cycle).inputs.update(_idle(draw, store, len(words)))
                cycle += 1
            inputs, expected, mask = _read(draw, store, seen_words, number)
            at(cycle).inputs.update(inputs, read_half=half)
            seen = at(cycle + store.memory.read_latency_cycles)
            seen.expected, seen.mask = expected, mask
        # the last address is presented in this cycle, in which a write may come already
        free[half] = cycle
        if draw.chance(0.7):
            now = max(now, free[half])
    return [steps.get(cycle, Step({})) for cycle in range(max(steps) + 1)]


def _order(draw: Draw, words: int) -> list[int]:
    """Numbers of words to read: any, or rising."""
    reads = [draw.whole(0, words - 1) for _ in range(draw.whole(1, 2 * words))]
    return sorted(reads) if draw.chance(0.5) else reads


def _read(draw: Draw, store: Store, words: Words, number: int) -> tuple[dict[str, int], int, int]:
    """The inputs that read a word in some lanes, what is to be seen, and where."""
    later, wanted = _later(draw, store, number, len(words)), _wanted(draw, store)
    inputs = {"read": 1, "read_address": number}
    if store.straddles:
        inputs["read"] = sum(bit << lane for lane, bit in enumerate(wanted))
        inputs["read_next"] = sum(bit << lane for lane, bit in enumerate(later))
    picked = [words[number + bit, lane] for lane, bit in enumerate(later)]
    return inputs, store.pack(picked), store.pack([-bit for bit in wanted])


def _later(draw: Draw, store: Store, number: int, words: int) -> list[int]:
    """Which lanes take the word behind: as a rotation has it, those below some lane."""
    if not store.straddles or number + 1 == words:
        return [0] * store.lanes
    offset = draw.whole(0, store.lanes - 1)
    return [int(lane < offset) for lane in range(store.lanes)]


def _wanted(draw: Draw, store: Store) -> list[int]:
    """Which lanes are read: all, or some of a vector's."""
    if not store.straddles or draw.chance(0.5):
        return [1] * store.lanes
    return [int(draw.chance(0.5)) for _ in range(store.lanes)]


def _idle(draw: Draw, store: Store, words: int) -> dict[str, int]:
    """Addresses that nobody reads."""
    idle = {"read": 0, "read_half": draw.whole(0, 1), "read_address": draw.whole(0, words - 1)}
    return idle | ({"read_next": draw.whole(0, 1)} if store.straddles else {})


def differences(store: Store, steps: list[Step]) -> int:
    """Cycles in which the scratchpad's word is not the expected one, and counts that are wrong."""
    dut, settings = store.hardware()
    names = [
        "write",
        "write_half",
        "write_address",
        "write_last",
        "write_data",
        "read",
        "read_half",
    ]
    names += ["read_address", *(["read_next"] if store.straddles else [])]
    wrong = 0
    counted = dict.fromkeys(COUNTED, 0)

    async def bench(ctx: Any) -> None:
        nonlocal wrong
        if store.faulty is not None and store.faulty.map is None:
            ctx.set(dut.settings, settings)
        for step in [*steps, *[Step({})] * SETTLING]:
            for name in names:
                ctx.set(getattr(dut, name), step.inputs.get(name, 0))
            _, _, seen, *counts = await ctx.tick().sample(dut.read_data, *counters)
            wrong += (seen & step.mask) != (step.expected & step.mask)
            for name, count in zip(COUNTED, counts, strict=True):
                counted[name] += count

    counters = [getattr(dut, name) for name in COUNTED]
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    expected = expected_counts(store, [step.inputs for step in steps])
    return wrong + sum(counted[name] != expected[name] for name in COUNTED)
