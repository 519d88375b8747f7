"""The packer of outputs: any rows become the words of one stream; faults are caught."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Array, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from faults import Patch, after, placed
from hypothesis import given, settings
from hypothesis import strategies as st

from rtl.core import output_packer
from rtl.core.output_packer import OutputPacker, PackingPlace, RotateUp
from rtl.hierarchy import place

Row = tuple[int, list[int]] | None
"""Units of a row that count, and all its units; None: the layer ends."""


class Chain(wiring.Component):
    """A row, and in the same cycle its place."""

    def __init__(self, units: int, unit_bits: int) -> None:
        self.size = units, unit_bits
        bits = units * unit_bits
        super().__init__(
            {
                "units": In(range(units + 1)),
                "row": In(bits),
                "take": In(1),
                "flush": In(1),
                "complete": Out(1),
                "begun": Out(1),
                "write": Out(1),
                "word": Out(bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        units, unit_bits = self.size
        ports: Any = self
        at = place(m, "packing", PackingPlace, word=units)
        packer = place(m, "packer", OutputPacker, units=units, unit_bits=unit_bits)
        m.d.comb += [
            at.units.eq(ports.units),
            at.take.eq(ports.take),
            at.flush.eq(ports.flush),
            ports.complete.eq(at.complete),
            ports.begun.eq(at.begun),
            packer.place.eq(at.o),
            packer.row.eq(ports.row),
            ports.write.eq(packer.write),
            ports.word.eq(packer.word),
        ]
        return m


def packed(size: tuple[int, int], rows: list[Row]) -> tuple[list[int], list[bool], list[bool]]:
    """The words, as lists do it; whether each row completes one; whether something is left."""
    units, bits = size
    words: list[int] = []
    completes: list[bool] = []
    left: list[bool] = []
    begun: list[int] = []
    for row in rows:
        begun += row[1][: row[0]] if row else [0] * (units - len(begun))
        completes.append(len(begun) >= units)
        if completes[-1]:
            words.append(sum(unit << bits * n for n, unit in enumerate(begun[:units])))
            begun = begun[units:]
        left.append(bool(begun))
    return words, completes, left


def run(size: tuple[int, int], rows: list[Row], waits: list[int]) -> tuple[Any, ...]:
    """The same of the RTL; every word a cycle behind the row that completes it."""
    chain, (_, bits) = Chain(*size), size
    words: list[int] = []
    completes: list[bool] = []
    left: list[bool] = []
    rng = np.random.default_rng(len(rows))

    async def bench(ctx: Any) -> None:
        ports: Any = chain
        for row, wait in zip(rows, waits, strict=True):
            for idle in range(wait, -1, -1):
                if idle:
                    ctx.set(ports.take, 0)
                    ctx.set(ports.flush, 0)
                    ctx.set(ports.row, int(rng.integers(0, 2)) * ((1 << len(ports.row)) - 1))
                else:
                    count, lanes = row or (int(rng.integers(0, size[0] + 1)), [1] * size[0])
                    ctx.set(ports.take, int(row is not None))
                    ctx.set(ports.flush, int(row is None))
                    ctx.set(ports.units, count)
                    ctx.set(ports.row, sum(unit << bits * n for n, unit in enumerate(lanes)))
                    completes.append(row is None or bool(ctx.get(ports.complete)))
                    left.append(row is not None and bool(ctx.get(ports.begun)))
                await ctx.tick()
                assert ctx.get(ports.write) == (idle == 0 and completes[-1])
                if ctx.get(ports.write):
                    words.append(ctx.get(ports.word))

    simulator = Simulator(chain)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return words, completes, left


@st.composite
def streams(draw: st.DrawFn) -> tuple[tuple[int, int], list[Row], list[int]]:
    """Rows of any length, layers that end within a word, idle cycles."""
    units, bits = draw(st.integers(1, 9)), draw(st.integers(1, 5))
    lanes = st.lists(st.integers(0, (1 << bits) - 1), min_size=units, max_size=units)
    row = st.tuples(st.one_of(st.just(units), st.just(1), st.integers(0, units)), lanes)
    rows: list[Row] = []
    for layer in draw(st.lists(st.lists(row, min_size=1, max_size=12), min_size=1, max_size=4)):
        rows += layer
        if packed((units, bits), rows)[2][-1]:
            rows.append(None)
    return (
        (units, bits),
        rows,
        draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows))),
    )


@settings(max_examples=60, deadline=None)
@given(streams())
def test_any_rows_become_whole_words(
    stream: tuple[tuple[int, int], list[Row], list[int]],
) -> None:
    size, rows, waits = stream
    assert run(size, rows, waits) == packed(size, rows)


def _rows(size: tuple[int, int], seed: int) -> list[Row]:
    units, bits = size
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    for _ in range(40):
        lanes = [int(unit) for unit in rng.integers(0, 1 << bits, units)]
        rows.append((int(rng.integers(0, units + 1)), lanes))
        if rng.random() < 0.15 and packed(size, rows)[2][-1]:
            rows.append(None)
    return rows


@pytest.mark.parametrize("units", [1, 2, 3, 5, 8, 16])
def test_every_width(units: int) -> None:
    size = units, 3
    rows = _rows(size, units)
    assert run(size, rows, [0] * len(rows)) == packed(size, rows)


def _sees(kind: type, change: Callable[[Any], Any], *path: str) -> Patch:
    """An output of a component that differs."""

    def mutated(self: Any, m: Module) -> None:
        target = self
        for name in path:
            target = getattr(target, name)
        m.d.comb += target.eq(change(self))

    return after(kind, mutated)


FAULTS: dict[str, Patch] = {
    "complete one unit late": _sees(
        PackingPlace, lambda self: self.o.position + self.units > self.word, "complete"
    ),
    "a flush completes nothing": _sees(
        PackingPlace, lambda self: self.take & self.complete, "o", "complete"
    ),
    "something is always left": _sees(PackingPlace, lambda self: 1, "begun"),
    "a flush like a row": _sees(PackingPlace, lambda self: 0, "o", "flush"),
    "rows are not kept": _sees(PackingPlace, lambda self: self.o.complete, "o", "valid"),
    "one place too high": _sees(PackingPlace, lambda self: 1, "o", "position"),
    "never turned": _sees(RotateUp, lambda self: self.i, "o"),
    "turned down": _sees(
        RotateUp,
        lambda self: Array(
            self.i.rotate_right(n * self.unit_bits) for n in range(1 << len(self.by))
        )[self.by],
        "o",
    ),
    "turned in a longer word": placed(output_packer, name="turn", units=lambda units: units + 1),
    "a word for every row": _sees(OutputPacker, lambda self: 1, "write"),
    "a unit dropped": _sees(OutputPacker, lambda self: 0, "word"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 5, 3
    rows = _rows(size, 3)
    FAULTS[name](monkeypatch)
    try:
        found: Any = run(size, rows, [0] * len(rows))
    except AssertionError:
        return
    assert found != packed(size, rows)
