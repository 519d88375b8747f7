"""A PE of the sparse training machine: a queue of needed outputs, a window, multipliers, sums."""

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.sparsetrain.design import SparseTrain
from rtl.core.adder_tree import sum_of
from rtl.core.memory import Banks
from rtl.core.one_hot import chosen
from rtl.core.sram import address_bits
from rtl.core.train_float_totals import TrainFloatTotals
from rtl.core.train_queue import TrainQueue
from rtl.core.train_totals import TrainTotals
from rtl.core.train_window import TrainWindow, pairs_of, source
from rtl.hierarchy import place

Onward = Callable[[int, Value, Value], Value]
"""Of a bank, the line where its vector begins, and the line it shows: the one it shows next."""


def operand_ports(design: SparseTrain, vectors: int) -> dict[str, Any]:
    """What a loader writes into a buffer of so many vectors."""
    return {
        "write": In(1),
        "bank": In(range(max(design.window_rows, 2))),
        "address": In(address_bits(2 * vectors * design.bank_rows)),
        "data": In(design.lanes * design.operand_bits),
    }


class TrainPe(wiring.Component):
    """accumulator[output] = (first: 0 else accumulator[output]) + Σ row · column, over a block.

    Outputs are taken from the queue in order.  Each takes as many cycles as its operands take to
    pass the window, from the second cycle behind the one in which it is taken on; the next is taken
    in its last one.  Its sum is written two cycles behind that.  Throughput: up to a step for each
    row of the window in a cycle.  Never stalls.

    With segments, those of neighbouring columns in a row are taken together where `split` is 1, an
    output in each segment; where it is 0, one whose sum is kept in the banks of its segment.

    Members
    -------
    start: takes a queue of `outputs` [row · own columns + column], 1 where it is needed.
    steps, half, first, sums: of the block, from the cycle behind `start` on: its steps, the half of
    the operand buffers, whether sums begin anew, the half of the accumulators; and `split`.
    row_*, column_*: what the loaders write.
    drain, drain_half, drain_address: what is read of the accumulators, in `drain_data` a cycle
    later.  idle: nothing is queued, nor under way but the last sum's writing.
    stepped: operands are taken.  products, fetched: how many, and rows that leave the window.
    finished: an output is done.
    """

    start: Signal
    outputs: Signal
    steps: Signal
    half: Signal
    first: Signal
    sums: Signal
    split: Signal
    drain: Signal
    drain_half: Signal
    drain_address: Signal
    drain_data: Signal
    idle: Signal
    stepped: Signal
    finished: Signal
    products: Signal
    fetched: Signal

    def __init__(self, *, design: SparseTrain) -> None:
        self.design = design
        outputs = design.own_outputs
        row, column = (
            {f"{name}_{port}": kind for port, kind in operand_ports(design, vectors).items()}
            for name, vectors in (("row", design.rows), ("column", design.own_columns))
        )
        super().__init__(
            {
                "start": In(1),
                "outputs": In(outputs),
                "steps": In(range(design.depth + 1)),
                "half": In(1),
                "first": In(1),
                "sums": In(1),
                **row,
                **column,
                "drain": In(1),
                "drain_half": In(1),
                "drain_address": In(address_bits(outputs)),
                "drain_data": Out(design.accumulator_bits),
                "idle": Out(1),
                "stepped": Out(1),
                "finished": Out(range(design.segments + 1)),
                **({"split": In(1)} if design.segments > 1 else {}),
                "products": Out(range(design.lanes + 1)),
                "fetched": Out(range(design.window_rows + 1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m, design = Module(), self.design
        self.busy, self.ends, self.takes = Signal(), Signal(), Signal()
        self.output = Signal(address_bits(design.segment_outputs))
        self.parts = Signal(design.segments, name="parts") if design.segments > 1 else C(1, 1)
        queue = self._queue(m)
        window = place(m, "window", TrainWindow, design=design)
        operands = self._operands(m, window, queue.number)
        self._multiply(m, window, operands)
        with m.If(self.takes):
            m.d.sync += [self.busy.eq(1), self.output.eq(queue.number[self._within :])]
            if design.segments > 1:
                m.d.sync += self.parts.eq(queue.parts)
        with m.Elif(self.ends):
            m.d.sync += self.busy.eq(0)
        m.d.comb += [
            self.stepped.eq(self.busy),
            self.finished.eq(Mux(self.ends, sum_of([*self.parts]), 0)),
        ]
        return m

    @property
    def _within(self) -> int:
        """Bits of an output's number that say its segment."""
        return (self.design.segments - 1).bit_length()

    def _queue(self, m: Module) -> TrainQueue:
        """The outputs that are left, of which the next are taken when those before end."""
        queue = place(m, "queue", TrainQueue, design=self.design)
        m.d.comb += [
            queue.start.eq(self.start),
            queue.outputs.eq(self.outputs),
            queue.take.eq(self.takes),
            self.takes.eq(queue.waiting & (~self.busy | self.ends)),
        ]
        if self.design.segments > 1:
            m.d.comb += queue.split.eq(self.split)
        self.waiting = queue.waiting
        return queue

    def _operands(self, m: Module, window: TrainWindow, taken: Signal) -> list[list[Value]]:
        """Of the window's rows both operands; it moves on by as many rows as are done."""
        design, rows = self.design, self.design.window_rows
        moves = [Signal(name=f"moves_{bank}") for bank in range(rows)]

        def onward(bank: int, begin: Value, line: Value) -> Value:
            return Mux(self.takes, begin, line + moves[bank])

        found = [
            self._buffer(m, name, vectors, getattr(self, f"{name}_data"), onward)
            for name, vectors in self._vectors(taken)
        ]
        pairs = [pairs_of(both, design.operand_bits) for both in zip(*found, strict=True)]
        if design.segments > 1:
            lanes = [part.replicate(design.segment_lanes) for part in self.parts]
            pairs = [one & (Cat(*lanes) | (~self.split).replicate(design.lanes)) for one in pairs]
            m.d.comb += window.split.eq(self.split)
        left = Signal(range(design.depth + 1))
        m.d.comb += [
            self.ends.eq(self.busy & (left <= window.done)),
            self.fetched.eq(Mux(self.busy, Mux(self.ends, left, window.done), 0)),
        ]
        m.d.sync += left.eq(Mux(self.takes, self.steps, left - window.done))
        if rows == 1:
            m.d.comb += [window.pairs_0.eq(pairs[0] & (left != 0).replicate(design.lanes))]
            m.d.comb += moves[0].eq(1)
            return found
        return self._rotated(m, window, (left, pairs, moves), found)

    def _rotated(
        self,
        m: Module,
        window: TrainWindow,
        state: tuple[Signal, list[Value], list[Signal]],
        found: list[list[Value]],
    ) -> list[list[Value]]:
        """The operands of each row of the window, which begins in any of the banks.

        state: steps that are left; of each bank its pairs, and whether it moves on.
        """
        (left, pairs, moves), lanes = state, self.design.lanes
        rows = len(pairs)
        head = Signal(range(rows))
        spent = [Signal(lanes, name=f"spent_{bank}") for bank in range(rows)]
        seen: list[list[Value]] = [
            [Signal(len(found[0][0]), name=f"{name}_{row}") for row in range(rows)]
            for name in ("left", "right")
        ]
        with m.Switch(head):
            for first in range(rows):
                with m.Case(first):
                    for row in range(rows):
                        bank = (first + row) % rows
                        now = getattr(window, f"pairs_{row}")
                        rest = getattr(window, f"left_{row}")
                        within = left > row if row < self.design.depth else C(0, 1)
                        m.d.comb += [
                            now.eq(pairs[bank] & ~spent[bank] & within.replicate(lanes)),
                            moves[bank].eq(window.done > row),
                            *(
                                side[row].eq(one[bank])
                                for side, one in zip(seen, found, strict=True)
                            ),
                        ]
                        m.d.sync += spent[bank].eq(Mux(moves[bank], 0, spent[bank] | (now & ~rest)))
        onward = Signal(range(2 * rows))
        m.d.comb += onward.eq(head + window.done)
        m.d.sync += head.eq(Mux(onward < rows, onward, onward - rows))
        with m.If(self.takes):
            m.d.sync += [head.eq(0), *(one.eq(0) for one in spent)]
        return seen

    def _vectors(self, number: Value) -> list[tuple[str, tuple[int, Value]]]:
        """Of an output's number by buffer how many vectors there are, and which one."""
        design = self.design
        columns = address_bits(design.own_columns) if design.own_columns > 1 else 0
        own: Value = number[:columns]
        if design.segments > 1:
            own = Mux(self.split, own[self._within :], own)
        return [("row", (design.rows, number[columns:])), ("column", (design.own_columns, own))]

    def _buffer(
        self, m: Module, name: str, vectors: tuple[int, Value], data: Value, onward: Onward
    ) -> list[Value]:
        """The words that the banks show, a bank for each row of the window; `data` is written."""
        most, vector = vectors
        lines = self.design.bank_rows
        depth = 2 * most * lines
        begin = Signal(address_bits(depth), name=f"{name}_begin")
        m.d.comb += begin.eq(Mux(self.half, most * lines, 0) + vector * lines)
        shown: list[Value] = []
        for bank in range(self.design.window_rows):
            line, now = (Signal.like(begin, name=f"{name}_{what}_{bank}") for what in ("at", "to"))
            m.d.comb += now.eq(onward(bank, begin, line))
            m.d.sync += line.eq(now)
            shown.append(self._bank(m, name, bank, (now, line), data, depth))
        return shown

    def _bank(
        self, m: Module, name: str, bank: int, lines: tuple[Value, Value], data: Value, depth: int
    ) -> Value:
        """What a bank shows; lines: the one that it shows next, and the one that it shows."""
        banks = Banks(memory=self.design.bank(name), use=self.design.use(name))
        words = banks.place(m, self, f"{name}_{bank}", 0, bits=len(data), depth=depth)
        m.d.comb += words.read_address.eq(lines[0])
        self._write(m, name, bank, words, data)
        return words.read_data

    def _write(self, m: Module, name: str, bank: int, words: Any, data: Value) -> None:
        """What the loaders write into a bank."""
        write, bank_in, address = (
            getattr(self, f"{name}_{port}") for port in ("write", "bank", "address")
        )
        m.d.comb += [
            words.write.eq(write & (bank_in == bank)),
            words.write_address.eq(address),
            words.write_data.eq(data),
        ]

    def _multiply(self, m: Module, window: TrainWindow, seen: list[list[Value]]) -> None:
        """The pairs that lanes chose, multiplied and summed; at an output's end, its sum."""
        design = self.design
        places = self._places(m, window)
        pairs = [
            [self._chosen(places, seen[side], lane) for side in (0, 1)]
            for lane in range(design.lanes)
        ]
        products = self._products(m, pairs)
        self._count(m, [reduce(or_, (one[lane] for one in places)) for lane in range(design.lanes)])
        given, under_way = self._behind_products(m)
        kind = TrainFloatTotals if design.floating else TrainTotals
        totals = place(m, "totals", kind, design=design)
        m.d.comb += [
            *(getattr(totals, name).eq(value) for name, value in given.items()),
            totals.products.eq(Cat(*products)),
            totals.first.eq(self.first),
            totals.half.eq(self.sums),
            *(
                getattr(totals, name).eq(getattr(self, name))
                for name in ("drain", "drain_half", "drain_address")
            ),
            self.drain_data.eq(totals.drain_data),
            self.idle.eq(~self.busy & ~self.waiting & ~under_way),
        ]
        if design.segments > 1:
            m.d.comb += totals.split.eq(self.split)

    def _places(self, m: Module, window: TrainWindow) -> list[Value]:
        """Of each place the lanes that take it."""
        return [getattr(window, f"chosen_{at}") for at in range(len(self.design.window))]

    def _products(self, m: Module, pairs: list[list[Value]]) -> list[Value]:
        """What the totals take of each lane, of what it chose in the cycle before."""
        bits, products = self.design.operand_bits, list[Value]()
        for lane, pair in enumerate(pairs):
            taken: list[Signal] = []
            for side, value in enumerate(pair):
                operand = Signal(bits, name=f"operand_{side}_{lane}", reset_less=True)
                m.d.sync += operand.eq(value)
                taken.append(operand)
            left, right = taken
            both = Cat(left, right)
            products.append(both if self.design.floating else left.as_signed() * right.as_signed())
        return products

    def _count(self, m: Module, any_lane: list[Value]) -> None:
        """How many lanes took a pair."""
        m.d.comb += self.products.eq(Mux(self.busy, sum_of(any_lane), 0))

    def _behind_products(self, m: Module) -> tuple[dict[str, Value], Value]:
        """What the totals take beside the products; whether a step is on its way there."""
        step, last, output = Signal(), Signal(), Signal.like(self.output)
        m.d.sync += [step.eq(self.busy), last.eq(self.ends), output.eq(self.output)]
        parts: Value = self.parts
        if self.design.segments > 1:
            parts = Signal.like(self.parts, name="parts_now")
            m.d.sync += parts.eq(self.parts)
        return {"step": step, "last": last, "parts": parts, "output": output}, step

    def _chosen(self, places: list[Value], seen: list[Value], lane: int) -> Value:
        """An operand of a lane; 0 where the lane takes none."""
        bits = self.design.operand_bits
        ways: list[tuple[Value, Value]] = []
        for takes, one in zip(places, self.design.window, strict=True):
            values = [
                seen[one.ahead].word_select(source(self.design, lane, one.aside, split), bits)
                for split in (False, True)
            ]
            apart = len({source(self.design, lane, one.aside, split) for split in (False, True)})
            value = values[0] if apart == 1 else Mux(self.split, values[1], values[0])
            ways.append((takes[lane], value))
        return chosen(ways)


__all__ = ["TrainPe"]
