"""Choices by strobes of which at most one is 1, and SCNN's queues, which OR what they choose."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]
from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.sim import Simulator
from cell_libraries import needs_library
from faulty_module import faulty_module
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.machines.scnn import one_hot_components
from archsim.machines.scnn.design import Scnn
from rtl.core import one_hot, scnn_queue
from rtl.synthesis.buffers import add_buffers
from rtl.synthesis.cells import Buffer
from rtl.synthesis.liberty import CellLibrary, read_library

Case = tuple[int, list[int], list[int]]
"""Bits, the values, and the strobes of each cycle."""


@st.composite
def cases(draw: st.DrawFn) -> Case:
    bits, ways = draw(st.integers(1, 9)), draw(st.integers(1, 19))
    values = draw(st.lists(st.integers(0, (1 << bits) - 1), min_size=ways, max_size=ways))
    one = st.one_of(st.just(0), st.integers(0, ways - 1).map(lambda lane: 1 << lane))
    return bits, values, draw(st.lists(one, min_size=1, max_size=6))


def check(kind: Any, case: Case) -> None:
    """The value of the lane whose strobe is 1; 0 if there is none."""
    bits, values, strobes = case
    m, strobe = Module(), Signal(len(values))
    words = [Signal(bits, init=value, name=f"value_{n}") for n, value in enumerate(values)]
    o = Signal(bits)
    m.d.comb += o.eq(kind.chosen([(strobe[n], word) for n, word in enumerate(words)]))
    found: list[int] = []

    async def bench(ctx: Any) -> None:
        for strobed in strobes:
            ctx.set(strobe, strobed)
            await ctx.delay(1e-9)
            found.append(ctx.get(o))

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
    assert found == [values[one.bit_length() - 1] if one else 0 for one in strobes]


@settings(deadline=None, max_examples=60)
@given(case=cases())
def test_the_value_whose_strobe_is_one(case: Case) -> None:
    check(one_hot, case)


@pytest.mark.parametrize("ways", range(1, 18))
def test_every_way_of_any_number(ways: int) -> None:
    check(one_hot, (5, list(range(1, ways + 1)), [0, *(1 << lane for lane in range(ways))]))


@pytest.mark.parametrize(
    "fault",
    [
        (" & strobe.replicate(len(value))", ""),
        ("strobe.replicate(len(value))", "strobe"),
        ("range(0, len(level), 2)", "range(0, len(level) - 1, 2)"),
        ("level[at : at + 2]", "level[at : at + 1]"),
    ],
)
def test_a_wrong_choice_is_caught(fault: tuple[str, str], tmp_path: Path) -> None:
    wrong = faulty_module(one_hot, tmp_path, fault)
    with pytest.raises(AssertionError):
        check(wrong, (5, [31, 30, 29], [1, 2, 4, 0]))


def test_the_lowest_bit_is_written_out_once_for_each_group() -> None:
    """Of 512 outputs that wait, twice the text of 256: what each group reads stands in a signal."""
    lines: list[int] = []
    for bits in (256, 512, 1024):
        m, word, o = Module(), Signal(bits), Signal(bits)
        m.d.comb += o.eq(one_hot.lowest_of(m, word))
        lines.append(len(rtlil.convert(m, ports=[word, o]).splitlines()))
    assert lines[1] < 2.5 * lines[0]
    assert lines[2] < 2.5 * lines[1]


@pytest.mark.parametrize("group", [2, 3, 8, 16])
def test_the_lowest_bit_that_is_one(group: int) -> None:
    """Of all words of eight bits, in groups that do and do not divide them."""
    m, word, o = Module(), Signal(8), Signal(8)
    m.d.comb += o.eq(one_hot.lowest_of(m, word, group))

    async def look(context: Any) -> None:
        for value in range(256):
            context.set(word, value)
            assert context.get(o) == value & -value

    simulator = Simulator(m)
    simulator.add_testbench(look)
    simulator.run()


def check_queue_after_a_reset(kind: Any, places: int) -> None:
    """A full queue is reset for a cycle; what comes next leaves as it came."""
    design = Scnn(bank_queue=places, banks=2)
    queue: Any = kind.ProductQueue(design=design)
    m, reset = Module(), Signal()
    m.submodules.queue = ResetInserter(reset)(queue)
    size = queue.o.shape().size

    async def bench(ctx: Any) -> None:
        for number in range(places):
            ctx.set(queue.i[number].as_value(), (1 << size) - 1)
        await ctx.tick()
        for number in range(places):
            ctx.set(queue.i[number].as_value(), 0)
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        for value in range(2, 2 + places):
            ctx.set(queue.i[0].valid, 1)
            ctx.set(queue.i[0].value, value)
            assert (ctx.get(queue.o.value), ctx.get(queue.o.half)) == (value, 0)
            assert ctx.get(queue.occupied) == 0
            await ctx.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("places", [2, 3, 5])
def test_a_reset_empties_a_queue_in_a_cycle(places: int) -> None:
    """Data of a queue are not reset: what waited must not be ORed to what comes."""
    check_queue_after_a_reset(scnn_queue, places)


def test_what_waited_before_a_reset_would_be_seen(tmp_path: Path) -> None:
    wrong = faulty_module(scnn_queue, tmp_path, (" & held[number].replicate(layout.size)", ""))
    with pytest.raises(AssertionError):
        check_queue_after_a_reset(wrong, 3)


@cache
def osu() -> CellLibrary:
    return read_library()


@needs_library
@settings(deadline=None, max_examples=40)
@given(pins=st.integers(1, 5000))
def test_buffers_are_those_of_the_synthesis(pins: int) -> None:
    cells = {str(n): {"type": "INVX1", "connections": {"A": [2]}} for n in range(pins)}
    top = {"ports": {"i": {"direction": "input", "bits": [2]}}, "netnames": {}, "cells": cells}
    add_buffers({"top": top}, osu(), Buffer(cell="BUFX2", i="A", o="Y"), "top")
    assert len(cells) - pins == one_hot_components.buffers(pins)
