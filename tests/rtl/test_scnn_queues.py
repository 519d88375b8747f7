"""Operand stage and banks of an SCNN PE: when pairs end, and which sums there are at LP."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

# The stubs leave rtlil out.
from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.machines.scnn.design import Scnn
from rtl.core.scnn_arbiter import Arbiter
from rtl.core.scnn_banks import AccumulatorBanks

Lane = tuple[int, int]
"""(value, part of the address)."""
Pair = tuple[int, int, list[Lane], list[Lane]]
"""Idle cycles before it, half, activations, weights."""
BITS = 12


class Stage(wiring.Component):
    """The two together."""

    def __init__(self, design: Scnn) -> None:
        self.arbiter, self.banks = Arbiter(design=design), AccumulatorBanks(design=design)
        self.queued, self.half = design.bank_queue > 1, Signal()
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        arbiter: Any = self.arbiter
        banks: Any = self.banks
        m.submodules.arbiter, m.submodules.banks = arbiter, banks
        m.d.comb += [
            banks.i.places.eq(arbiter.places),
            banks.i.addresses.eq(arbiter.addresses),
            banks.i.half.eq(self.half),
            arbiter.rows.eq(1),
            arbiter.columns.eq(1),
        ]
        for lanes, operand in ((banks.i.activations, arbiter.activation),
                               (banks.i.weights, arbiter.weight)):  # fmt: skip
            m.d.comb += [lanes[n].eq(operand.lanes[n].value) for n in range(len(lanes))]
        if self.queued:
            m.d.comb += arbiter.occupied.eq(banks.occupied)
        return m


def products(design: Scnn, pair: Pair) -> list[tuple[int, int]]:
    """(address, value) of the products that count, activation lanes outside."""
    _, _, activations, weights = pair
    size = design.banks * design.bank_entries
    return [((a + w) % size, x * y) for x, a in activations for y, w in weights if x and y]


def by_the_contract(design: Scnn, pairs: list[Pair]) -> list[int]:
    """The end of every pair: `f` is the cycle after the last in which a bank is busy."""
    f: Counter[int] = Counter()
    ends: list[int] = []
    end = 0
    for pair in pairs:
        t = end + pair[0]
        banks = [address % design.banks for address, _ in products(design, pair)]
        for bank in banks:
            f[bank] = max(f[bank], t) + 1
        over = (f[bank] - t - design.bank_queue + 1 for bank in banks)
        end = t + max(1, *over, 1)
        ends.append(end)
    return ends


def sums_of(design: Scnn, pairs: list[Pair]) -> dict[Lane, int]:
    """By (half, address), as words of BITS."""
    sums: Counter[Lane] = Counter()
    for pair in pairs:
        for address, value in products(design, pair):
            sums[pair[1], address] += value
    return {where: total % (1 << BITS) for where, total in sums.items()}


def simulated(design: Scnn, pairs: list[Pair]) -> tuple[list[int], list[int], dict[Lane, int]]:
    """Ends of pairs; how many products each sends; all sums, read from LP after the last on."""
    stage = Stage(design)
    arbiter: Any = stage.arbiter
    banks: Any = stage.banks
    ends: list[int] = []
    sent: list[int] = []
    found: dict[Lane, int] = {}

    async def bench(ctx: Any) -> None:
        cycle = 0
        for idle, half, activations, weights in pairs:
            ctx.set(arbiter.active, 0)
            await ctx.tick().repeat(idle) if idle else None
            for operand, lanes in ((arbiter.activation, activations), (arbiter.weight, weights)):
                for lane, (value, address) in enumerate(lanes):
                    ctx.set(operand.lanes[lane].value, value)
                    ctx.set(operand.lanes[lane].address, address)
            ctx.set(stage.half, half)
            ctx.set(arbiter.active, 1)
            cycle += idle
            sent.append(0)
            ended = False
            while not ended:
                ended = bool(ctx.get(arbiter.ended))
                sent[-1] += ctx.get(arbiter.selected).bit_count()
                await ctx.tick()
                cycle += 1
            ends.append(cycle)
        ctx.set(arbiter.active, 0)
        await ctx.tick().repeat(design.pipeline_latency_cycles)
        ctx.set(banks.drain.reads, 1)
        for half in range(2):
            ctx.set(banks.drain.half, half)
            for address in _addresses(design, pairs):
                ctx.set(banks.drain.read_address, address)
                await ctx.tick()
                found[half, address] = ctx.get(banks.read_data)

    simulator = Simulator(stage)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return ends, sent, found


def _addresses(design: Scnn, pairs: list[Pair]) -> Iterator[int]:
    """All sums, those that were added last before the others."""
    late = [address for pair in reversed(pairs) for address, _ in products(design, pair)]
    yield from dict.fromkeys([*late, *range(design.banks * design.bank_entries)])


@st.composite
def designs(draw: st.DrawFn) -> Scnn:
    return Scnn(
        grid_rows=1, grid_columns=1, operand_bits=4, accumulator_bits=BITS,
        weight_lanes=draw(st.integers(1, 3)), ifmap_lanes=draw(st.integers(1, 3)),
        banks=draw(st.sampled_from([1, 2, 8])), bank_entries=draw(st.sampled_from([1, 4])),
        bank_queue=draw(st.integers(1, 5)),
    )  # fmt: skip


@st.composite
def pairs_for(draw: st.DrawFn, design: Scnn) -> list[Pair]:
    """Dense pairs, so that queues fill; a gap now and then, so that they empty."""
    address = st.integers(0, design.banks * design.bank_entries - 1)
    lane = st.tuples(st.sampled_from([0, 1, 3, 7, -8, -1]), address)
    lanes = [
        st.lists(lane, min_size=n, max_size=n) for n in (design.ifmap_lanes, design.weight_lanes)
    ]
    pair = st.tuples(st.sampled_from([0, 0, 0, 1, 3]), st.integers(0, 1), *lanes)
    return draw(st.lists(pair, min_size=1, max_size=12))


def check(design: Scnn, pairs: list[Pair]) -> None:
    ends, sent, sums = simulated(design, pairs)
    assert ends == by_the_contract(design, pairs)
    assert sent == [len(products(design, pair)) for pair in pairs]
    right = sums_of(design, pairs)
    assert {where: value for where, value in sums.items() if value != right.get(where, 0)} == {}


@settings(max_examples=20, deadline=None)
@given(design=designs(), data=st.data())
def test_pairs_end_and_sums_are_there_as_the_contract_says(
    design: Scnn, data: st.DataObject
) -> None:
    check(design, data.draw(pairs_for(design)))


@pytest.mark.parametrize("queue", [1, 2, 3, 5, 8])
def test_a_bank_that_all_products_are_for(queue: int) -> None:
    """Six products a pair for one bank: the queue fills, a gap empties it, halves follow another.

    The first pair ends when all but Q − 1 of its products have been added, each later one after
    six cycles more; behind the gap of nine it is as at first.
    """
    design = Scnn(
        grid_rows=1, grid_columns=1, weight_lanes=2, ifmap_lanes=3, banks=1, bank_entries=4,
        operand_bits=4, accumulator_bits=BITS, bank_queue=queue,
    )  # fmt: skip
    pair = [(1, 0), (2, 1), (3, 2)], [(1, 0), (-1, 1)]
    pairs: list[Pair] = [(idle, half, *pair) for idle, half in ((0, 0), (0, 1), (9, 1), (0, 0))]
    first = max(1, 7 - queue)
    ends = simulated(design, pairs)[0]
    assert ends[0] == first
    assert ends[2] - ends[1] == 9 + first
    check(design, pairs)


@pytest.mark.parametrize("queue", [1, 2])
def test_without_a_queue_nothing_waits(queue: int) -> None:
    design = Scnn(weight_lanes=1, ifmap_lanes=1, banks=2, bank_queue=queue)
    text = rtlil.convert(AccumulatorBanks(design=design), name="top", emit_src=False)
    assert ("waits_0" in text) == ("occupied" in text) == (queue > 1)
