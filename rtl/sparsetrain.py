"""The sparse training machine in hardware."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream

from archsim.machines.sparsetrain.design import (
    COUNTED,
    SIDES,
    SparseTrain,
    counted_of,
    events_at_once,
)
from rtl.core.adder_tree import sum_of
from rtl.core.one_hot import any_of
from rtl.core.pipelined_train_pe import pe_of
from rtl.core.train_drain import TrainDrain
from rtl.core.train_loader import TrainLoader
from rtl.core.train_pe import TrainPe
from rtl.design_component import DesignComponent
from rtl.hierarchy import place
from rtl.verification import Verification

MOST_BLOCKS = 2
"""Of which the core has the command: one is computed, one is loaded or waits."""


class SparseTrainCore(DesignComponent):
    """ofmap = Σ row · column of all blocks of a tile, where it is needed.

    Latency and throughput: docs/contracts/sparsetrain.md.  Back-pressure: a tile ends when the
    ofmap of the one before has left; a block is loaded while the one before is computed.
    """

    design: SparseTrain
    command: stream.Interface
    row_mask: stream.Interface
    row: stream.Interface
    column_mask: stream.Interface
    column: stream.Interface
    needed: stream.Interface
    ofmap: stream.Interface

    def __init__(self, design: SparseTrain) -> None:
        self.counters = counted_of(design)
        super().__init__(design)

    @staticmethod
    def verification() -> Verification:
        from rtl.sparsetrain_verification import SparseTrainVerification

        return SparseTrainVerification(counters=COUNTED, tail_cycles=8)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._state()
        loaders = self._loaders(m)
        pes = self._pes(m, loaders)
        self._drain(m, pes)
        self._control(m, loaders, pes)
        self._count(m, loaders, pes)
        return m

    def _state(self) -> None:
        """Blocks: one that is loaded, one that waits, one that is computed."""
        fields = data.StructLayout({one.name: one.bits for one in self.design.block_fields})
        self.load, self.wait, self.now = (
            Signal(fields, name=name) for name in ("load", "wait", "now")
        )
        whole = data.StructLayout({one.name: one.bits for one in self.design.command_fields})
        self.given = data.View(whole, self.command.payload)
        self.loading, self.waiting, self.computing = (
            Signal(name=name) for name in ("loading", "waiting", "computing")
        )
        self.load_half, self.sums = (Signal(name=name) for name in ("load_half", "sums"))
        self.now_half = Signal(init=1, name="now_half")
        self.accept, self.start, self.done = (
            Signal(name=name) for name in ("accept", "start", "done")
        )
        outputs = self.design.rows * self.design.columns
        self.incoming, self.tile, self.outputs = (
            Signal(outputs, name=name) for name in ("incoming", "tile", "outputs")
        )

    def _loaders(self, m: Module) -> dict[str, TrainLoader]:
        """Of rows, which go into every PE, and of columns, which go to PEs by turns."""
        found: dict[str, TrainLoader] = {}
        given = self.given
        for name, most, spread in (
            ("row", self.design.rows, 1),
            ("column", self.design.columns, self.design.pes),
        ):
            kept = self.design.kept_steps(name)
            sizes = {"vectors": most, "spread": spread, **({"kept": kept} if kept else {})}
            loader = place(m, f"{name}_loader", TrainLoader, design=self.design, **sizes)
            for port, source in (("mask", f"{name}_mask"), ("value", name)):
                outer, inner = getattr(self, source), getattr(loader, port)
                m.d.comb += [
                    inner.payload.eq(outer.payload),
                    inner.valid.eq(outer.valid),
                    outer.ready.eq(inner.ready),
                ]
            m.d.comb += [
                loader.start.eq(self.accept),
                loader.vectors.eq(given.rows if name == "row" else self._vectors(given)),
                loader.steps.eq(given.depth),
                loader.half.eq(self.load_half),
                *(
                    getattr(loader, what).eq(given[f"{name}_{what}"])
                    for what in (("place", "keep", "again") if kept else ())
                ),
            ]
            found[name] = loader
        return found

    def _vectors(self, given: Any) -> Value:
        """Column vectors of a block: of its columns those of a PE together that are split."""
        if self.design.segments == 1:
            return given.columns
        within = (self.design.pes * self.design.segments - 1).bit_length()
        left, sets = given.columns[:within], given.columns[within:]
        pes = self.design.pes
        together = sets * pes + Mux(left < pes, left, pes)
        return Mux(given.split, together, given.columns)

    def _row_data(self, loader: TrainLoader) -> Value:
        """A step of a row; the same values in every segment of one that is split."""
        design = self.design
        if design.segments == 1:
            return loader.data
        own = loader.data[: design.segment_lanes * design.operand_bits]
        return Mux(self.load.split, own.replicate(design.segments), loader.data)

    def _pes(self, m: Module, loaders: dict[str, TrainLoader]) -> list[TrainPe]:
        found: list[TrainPe] = []
        row_data = Signal(self.design.lanes * self.design.operand_bits)
        m.d.comb += row_data.eq(self._row_data(loaders["row"]))
        for number in range(self.design.pes):
            pe = place(m, f"pe_{number}", pe_of(self.design), design=self.design)
            for name, loader in loaders.items():
                here = loader.write if name == "row" else loader.write & (loader.pe == number)
                m.d.comb += [
                    getattr(pe, f"{name}_write").eq(here),
                    *(
                        getattr(pe, f"{name}_{port}").eq(getattr(loader, port))
                        for port in ("bank", "address")
                    ),
                ]
            m.d.comb += [
                pe.row_data.eq(row_data),
                pe.column_data.eq(loaders["column"].data),
                pe.start.eq(self.start),
                pe.outputs.eq(Cat(self.outputs[at] for at in self._outputs_of(number))),
                pe.steps.eq(self.now.depth),
                pe.half.eq(self.now_half),
                pe.first.eq(self.now.first),
                pe.sums.eq(self.sums),
            ]
            if self.design.segments > 1:
                m.d.comb += pe.split.eq(self.now.split)
            found.append(pe)
        return found

    def _outputs_of(self, pe: int) -> list[int]:
        """The outputs [row · columns + column] of a PE, in the order of its queue."""
        columns = range(pe, self.design.columns, self.design.pes)
        return [
            row * self.design.columns + column
            for row in range(self.design.rows)
            for column in columns
        ]

    def _drain(self, m: Module, pes: list[TrainPe]) -> None:
        drain = place(m, "drain", TrainDrain, design=self.design)
        order = [at for pe in range(len(pes)) for at in self._outputs_of(pe)]
        m.d.comb += [
            drain.start.eq(self.done & self.now.last),
            drain.needed.eq(Cat(self.tile[at] for at in order)),
            drain.of.eq(self.sums),
            drain.sums.eq(Cat(pe.drain_data for pe in pes)),
            self.ofmap.valid.eq(drain.ofmap.valid),
            self.ofmap.payload.eq(drain.ofmap.payload),
            drain.ofmap.ready.eq(self.ofmap.ready),
        ]
        for pe in pes:
            m.d.comb += [
                pe.drain.eq(drain.active),
                pe.drain_half.eq(drain.half),
                pe.drain_address.eq(drain.address),
            ]
        self.draining = drain.active

    def _control(self, m: Module, loaders: dict[str, TrainLoader], pes: list[TrainPe]) -> None:
        """Commands in, blocks begun and ended."""
        held = Signal(range(MOST_BLOCKS + 1))
        asking = self._needed(m)
        loaded = Signal()
        m.d.comb += [
            self.command.ready.eq(~self.loading & (held < MOST_BLOCKS)),
            self.accept.eq(self.command.valid & self.command.ready),
            loaded.eq(self.loading & ~asking & ~any_of([one.active for one in loaders.values()])),
            self.done.eq(
                self.computing
                & ~any_of([~pe.idle for pe in pes])
                & ~(self.now.last & self.draining)
            ),
            self.start.eq(self.waiting & (~self.computing | self.done)),
        ]
        m.d.sync += held.eq(held + self.accept - self.done)
        with m.If(self.done):
            m.d.sync += self.computing.eq(0)
        with m.If(self.start):
            m.d.sync += [
                self.now.eq(self.wait),
                self.computing.eq(1),
                self.waiting.eq(0),
                self.now_half.eq(~self.now_half),
            ]
            with m.If(self.wait.first):
                m.d.sync += [self.tile.eq(self.outputs), self.sums.eq(~self.sums)]
        with m.If(loaded):
            m.d.sync += [self.wait.eq(self.load), self.waiting.eq(1), self.loading.eq(0)]
            m.d.sync += self.load_half.eq(~self.load_half)
        with m.If(self.accept):
            m.d.sync += [self.load.eq(self.command.payload), self.loading.eq(1)]

    def _needed(self, m: Module) -> Value:
        """Takes the mask of a tile's outputs, a row a word; whether words are still to come."""
        design = self.design
        within = Cat(
            (self.wait.rows > row) & (self.wait.columns > column)
            for row in range(design.rows)
            for column in range(design.columns)
        )
        if not design.skip_outputs:
            m.d.comb += self.outputs.eq(Mux(self.wait.first, within, self.tile))
            self.asked = Signal(name="never")
            return Signal(name="none")
        left, at = Signal(range(design.rows + 1)), Signal(range(max(design.rows, 2)))
        given = self.given
        self.asked = takes = self.needed.valid & self.needed.ready
        masked = self.incoming | (~self.wait.masked).replicate(len(self.incoming))
        m.d.comb += [
            self.needed.ready.eq((left != 0) & ~self.waiting),
            self.outputs.eq(Mux(self.wait.first, within & masked, self.tile)),
        ]
        with m.If(takes):
            m.d.sync += [left.eq(left - 1), at.eq(at + 1)]
            m.d.sync += self.incoming.word_select(at, design.columns).eq(self.needed.payload)
        with m.If(self.accept):
            m.d.sync += [left.eq(Mux(given.first & given.masked, given.rows, 0)), at.eq(0)]
        return left != 0

    def _count(self, m: Module, loaders: dict[str, TrainLoader], pes: list[TrainPe]) -> None:
        sums = {
            "step": [pe.stepped for pe in pes],
            "product": [pe.products for pe in pes],
            "output": [pe.finished for pe in pes],
            "fetch": [pe.fetched for pe in pes],
        }
        most = events_at_once(self.design)
        for name, values in sums.items():
            counter: Signal = getattr(self, f"count_{name}")
            now = Signal(range(most[name] + 1), name=f"now_{name}")
            m.d.sync += [now.eq(sum_of([*values])), counter.eq(counter + now)]
        self.counted(
            m,
            row_load=loaders["row"].write,
            column_load=loaders["column"].write,
            row_word=self.row.valid & self.row.ready,
            column_word=self.column.valid & self.column.ready,
            word=self.ofmap.valid & self.ofmap.ready,
            block=self.accept,
            tile=self.start & self.wait.first,
            needed_word=self.asked,
        )
        for name in SIDES:
            if self.design.kept_steps(name):
                now = {f"{name}_keep": "kept_now", f"{name}_again": "again_now"}
                self.counted(
                    m, **{action: getattr(loaders[name], one) for action, one in now.items()}
                )


__all__ = ["SparseTrainCore"]
