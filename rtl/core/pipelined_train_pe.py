"""A PE of the sparse training machine whose window stands in registers, in front of its banks."""

from collections.abc import Sequence

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value

from archsim.machines.sparsetrain.design import SparseTrain
from rtl.core.adder_tree import sum_of
from rtl.core.delay import Delay
from rtl.core.one_hot import any_of, chosen
from rtl.core.pipelined_train_queue import PipelinedTrainQueue
from rtl.core.product import Product
from rtl.core.sram import Sram, address_bits
from rtl.core.train_pe import TrainPe
from rtl.core.train_window import TrainWindow
from rtl.hierarchy import place


class PipelinedTrainPe(TrainPe):
    """As a `TrainPe`, in as many cycles of steps, each `SparseTrain.pipeline_cycles` later.

    Banks show the rows behind the window, or, where no more of the output are left outside, the
    first rows of the next output (*coming*): so which pairs there are is read in registers, and an
    output still begins in the cycle behind the last of the one before.

    What is left of the pairs stands in a register for each row, and both operands a cycle later;
    integers are multiplied between registers (`Product`).
    """

    def elaborate(self, platform: object) -> Module:
        m, design = Module(), self.design
        self.busy, self.ends, self.takes = Signal(), Signal(), Signal()
        self.fetches, self.coming = Signal(), Signal()
        self.output = Signal(address_bits(design.segment_outputs))
        self.next_output = Signal.like(self.output)
        self.parts = Signal(design.segments, name="parts") if design.segments > 1 else C(1, 1)
        self.next_parts = (
            Signal(design.segments, name="next_parts") if design.segments > 1 else C(1, 1)
        )
        self.left = Signal(range(design.depth + 1))
        queue = self._next(m)
        window = place(m, "window", TrainWindow, design=design)
        if design.segments > 1:
            m.d.comb += window.split.eq(self.split)
        self._walk(m, window)
        self._moves(m)
        operands = self._window(m, window, self._shown(m, queue.number))
        self._multiply(m, window, operands)
        m.d.comb += [
            self.stepped.eq(self.busy),
            self.finished.eq(Mux(self.ends, sum_of([*self.parts]), 0)),
            self.fetched.eq(Mux(self.busy, Mux(self.ends, self.left, window.done), 0)),
        ]
        return m

    def _next(self, m: Module) -> PipelinedTrainQueue:
        """The output of which the first rows are read, and then that in the window."""
        design = self.design
        queue = place(m, "queue", PipelinedTrainQueue, design=design)
        m.d.comb += [
            queue.start.eq(self.start),
            queue.outputs.eq(self.outputs),
            queue.take.eq(self.fetches),
        ]
        self.queued = queue.waiting
        self.waiting = queue.left | self.coming
        with m.If(self.fetches):
            m.d.sync += [self.coming.eq(1), self.next_output.eq(queue.number[self._within :])]
        with m.Elif(self.takes):
            m.d.sync += self.coming.eq(0)
        with m.If(self.takes):
            m.d.sync += [self.busy.eq(1), self.output.eq(self.next_output)]
        with m.Elif(self.ends):
            m.d.sync += self.busy.eq(0)
        if design.segments > 1:
            m.d.comb += queue.split.eq(self.split)
            with m.If(self.fetches):
                m.d.sync += self.next_parts.eq(queue.parts)
            with m.If(self.takes):
                m.d.sync += self.parts.eq(self.next_parts)
        return queue

    def _walk(self, m: Module, window: TrainWindow) -> None:
        """Steps that are left; the output ends with the window empty and none left behind it."""
        rows, left = self.design.window_rows, self.left
        every = range(1, rows + 1)
        self.some_left = [getattr(window, f"left_{row}").any() for row in range(1, rows)]
        whole = Mux(self.coming, self.steps, Mux(left <= rows, 0, left - rows))
        self.short = [left <= rows + done for done in every]
        fetches = [self.queued & ~self.coming & short for short in self.short]
        fetches[-1] = self.queued & Mux(self.coming, self.steps <= rows, self.short[-1])
        self.fetch = fetches
        empty = self._by_done([C(done == rows, 1) for done in every])
        m.d.comb += [
            self.fetches.eq(self._by_done(fetches)),
            self.takes.eq(self.coming & empty),
            self.ends.eq(self.busy & (left <= rows) & empty),
        ]
        m.d.sync += left.eq(
            self._by_done([*((left - done)[: len(left)] for done in every[:-1]), whole])
        )

    def _by_done(self, ways: Sequence[Value]) -> Value:
        """The first way if one row is done, the second if two are, and so on.

        Ways hang on registers; what is late is which row is empty, and that comes last.
        """
        found = ways[-1]
        for way, some in zip(reversed(ways[:-1]), reversed(self.some_left), strict=True):
            found = Mux(some, way, found)
        return found

    def _shown(self, m: Module, number: Signal) -> list[list[tuple[Value, Value]]]:
        """What the banks show, of rows and of columns."""
        return [self._ahead(m, name, vectors) for name, vectors in self._vectors(number)]

    def _lanes(self) -> Value:
        """Those of segments of which outputs are shown."""
        design = self.design
        if design.segments == 1:
            return C((1 << design.lanes) - 1, design.lanes)
        parts = Mux(self.coming, self.next_parts, self.parts)
        lanes = Cat(part.replicate(design.segment_lanes) for part in parts)
        return lanes | (~self.split).replicate(design.lanes)

    def _moves(self, m: Module) -> None:
        """Which banks go on: those of rows that come into the window; the first is in `head`.

        Of each bank a way for each number of rows that are done.
        """
        rows = self.design.window_rows
        every = range(1, rows + 1)
        self.head = head = Signal(rows, init=1)
        self.moves = [
            [
                Mux(
                    self.coming,
                    C(done == rows, 1),
                    any_of([head[first] for first in range(rows) if done > (bank - first) % rows]),
                )
                for done in every
            ]
            for bank in range(rows)
        ]
        ways = [
            Mux(short, 1, head.rotate_left(done))[:rows]
            for done, short in zip(every, self.short, strict=True)
        ]
        m.d.sync += head.eq(self._by_done(ways))

    def _ahead(self, m: Module, name: str, vectors: tuple[int, Value]) -> list[tuple[Value, Value]]:
        """What each bank shows, of the rows behind the window: which values of a step are not zero,
        and a cycle later the step."""

        def onward(bank: int, begin: Value, line: Value) -> Value:
            ways = [
                Mux(fetch, begin, Mux(moves, line + 1, line)[: len(line)])
                for fetch, moves in zip(self.fetch, self.moves[bank], strict=True)
            ]
            return self._by_done(ways)

        lanes, data = self.design.lanes, getattr(self, f"{name}_data")
        values = [data.word_select(lane, self.design.operand_bits) for lane in range(lanes)]
        flagged = Cat(*(value.any() for value in values), data)
        shown = self._buffer(m, name, vectors, flagged, onward)
        return [(word[lanes:], word[:lanes]) for word in shown]

    def _bank(
        self, m: Module, name: str, bank: int, lines: tuple[Value, Value], data: Value, depth: int
    ) -> Value:
        """Which values are not zero, in a memory of their own, and behind them the values.

        What is read next hangs on these flags: so their address comes late, and that of the values
        out of a register.
        """
        lanes, (now, line) = self.design.lanes, lines
        flags = place(m, f"{name}_flags_{bank}", Sram, bits=lanes, depth=depth, apart=True)
        m.d.comb += flags.read_address.eq(now)
        self._write(m, name, bank, flags, data[:lanes])
        values = super()._bank(m, name, bank, (line, line), data[lanes:], depth)
        return Cat(flags.read_data, values)

    def _come(self, m: Module) -> list[Value]:
        """For each row of the window from which bank a row comes in, if one does.

        Of the next output none comes in before the window is empty.
        """
        rows, depth = self.design.window_rows, self.design.depth
        come: list[Value] = []
        here = [self.left > rows + row if rows + row < depth else C(0, 1) for row in range(rows)]
        first = [self.steps > row if row < depth else C(0, 1) for row in range(rows)]
        new = [Mux(self.coming, one, other) for one, other in zip(first, here, strict=True)]
        for row in range(rows):
            ways: list[Value] = [C(0, rows)] * (rows - row - 1)
            for behind in range(row + 1):
                within = (new if behind == row else here)[behind]
                ways.append(self.head.rotate_left(behind) & within.replicate(rows))
            chosen_bank = Signal(rows, name=f"come_{row}")
            m.d.comb += chosen_bank.eq(self._by_done(ways))
            come.append(chosen_bank)
        return come

    def _window(
        self, m: Module, window: TrainWindow, shown: list[list[tuple[Value, Value]]]
    ) -> list[list[Value]]:
        """The operands of each row of the window, which go on by as many rows as are done.

        Operands go on a cycle behind their pairs.
        """
        design, rows = self.design, self.design.window_rows
        come, lanes = self._come(m), self._lanes()
        shows = [left[1] & right[1] & lanes for left, right in zip(*shown, strict=True)]
        pairs = [Signal(design.lanes, name=f"pairs_{row}") for row in range(rows)]
        left = [getattr(window, f"left_{row}") for row in range(rows)]
        m.d.comb += [getattr(window, f"pairs_{row}").eq(one) for row, one in enumerate(pairs)]
        for row, pair in enumerate(pairs):
            on: list[Value] = [*left[row + 1 :], *[C(0, design.lanes)] * (row + 1)]
            m.d.sync += pair.eq(self._by_done(on) | self._coming(come[row], shows))
        late, late_come = Signal.like(window.done), [Signal.like(one) for one in come]
        m.d.sync += [late.eq(window.done), *(a.eq(b) for a, b in zip(late_come, come, strict=True))]
        found: list[list[Value]] = []
        for name, both in zip(("left", "right"), shown, strict=True):
            words = [word for word, _ in both]
            wide = len(words[0])
            seen = [Signal(wide, name=f"{name}_{row}", reset_less=True) for row in range(rows)]
            for row, one in enumerate(seen):
                ways = [(late == done, seen[row + done]) for done in range(1, rows - row)]
                comes = self._coming(late_come[row], words)
                m.d.sync += one.eq(comes | chosen(ways) if ways else comes)
            found.append([*seen])
        return found

    def _coming(self, bank: Value, words: Sequence[Value]) -> Value:
        """The word of the bank that a row comes from; 0 if none comes."""
        return chosen([(bank[number], word) for number, word in enumerate(words)])

    def _places(self, m: Module, window: TrainWindow) -> list[Value]:
        """As they were chosen in the cycle before."""
        found: list[Value] = []
        for at, now in enumerate(super()._places(m, window)):
            took = Signal.like(now, name=f"took_{at}")
            m.d.sync += took.eq(now)
            found.append(took)
        return found

    def _products(self, m: Module, pairs: list[list[Value]]) -> list[Value]:
        if self.design.floating:
            return super()._products(m, pairs)
        products: list[Value] = []
        bits = self.design.operand_bits
        for lane, (left, right) in enumerate(pairs):
            product = place(m, f"product_{lane}", Product, bits=(bits, bits), registers=2)
            m.d.comb += [product.a.eq(left.as_signed()), product.b.eq(right.as_signed())]
            products.append(product.o)
        return products

    def _count(self, m: Module, any_lane: list[Value]) -> None:
        m.d.comb += self.products.eq(sum_of(any_lane))

    def _behind_products(self, m: Module) -> tuple[dict[str, Value], Value]:
        given, under_way = super()._behind_products(m)
        parts = {"parts": given.pop("parts")} if self.design.segments == 1 else {}
        for name in ("beside_operands", "beside_products")[: 1 if self.design.floating else 2]:
            line = place(m, name, Delay, bits=sum(map(len, given.values())), cycles=1)
            m.d.comb += line.i.eq(Cat(given.values()))
            at, late = 0, dict[str, Value]()
            for what, value in given.items():
                late[what] = line.o[at : at + len(value)]
                at += len(value)
            given, under_way = late, under_way | late["step"]
        return {**given, **parts}, under_way


def pe_of(design: SparseTrain) -> type[TrainPe]:
    """The PE that the design asks for."""
    return PipelinedTrainPe if design.pipelined_pes else TrainPe


__all__ = ["PipelinedTrainPe", "pe_of"]
