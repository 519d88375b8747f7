"""The model of the sparse training machine: a layer in full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from archsim.errors import InputError
from archsim.free_memory import require_free
from archsim.kernels import Kernel
from archsim.machine.layer_machine import LayerAnswer, LayerMachine
from archsim.machine.model import MatrixLayer
from archsim.machine.option import Options
from archsim.machines.sparsetrain import timing
from archsim.machines.sparsetrain.block_work import (
    OUTPUTS,
    PRODUCTS,
    STEPPED,
    TAKEN_ROWS,
    block_work,
)
from archsim.machines.sparsetrain.design import SIDES, SparseTrain
from archsim.machines.sparsetrain.float_kernels import block_sums, patterns
from archsim.machines.sparsetrain.float_values import float_sums
from archsim.machines.sparsetrain.tiling import FIRST
from archsim.machines.sparsetrain.timing import block_scan, block_times
from archsim.machines.sparsetrain.vectors import dot_products, ofmap_of
from archsim.machines.sparsetrain.words import ofmap_words, ones_of, stream_words, word_counts
from archsim.machines.sparsetrain.work import LayerWork
from archsim.numbers import IntArray, wrap
from archsim.result import LayerResult

if TYPE_CHECKING:
    from archsim.machines.sparsetrain.timing import Waits

SCANNED: tuple[str, ...] = (
    "command",
    "row_mask",
    "row",
    "column_mask",
    "column",
    "needed",
    "ofmap",
)


class SparseTrainAnswer(LayerAnswer):
    """A layer with its operands."""

    design: SparseTrain
    does = "multiply"

    @cached_property
    def work(self) -> LayerWork:
        """Its blocks, and what PEs do for them.  Raises `InputError` where its windows, laid out,
        are more than memory holds."""
        work = LayerWork(design=self.design, layer=self.layer, operands=self.taken)
        require_free(self.layer.name, work.held_bytes)
        return work

    @property
    def counts(self) -> Mapping[str, int]:
        return self._counts

    @cached_property
    def _counts(self) -> Mapping[str, int]:
        return word_counts(self.work)

    @cached_property
    def crossed(self) -> Mapping[str, IntArray]:
        return self._scanned[1]

    @cached_property
    def times(self) -> IntArray:
        """Cycles of each block (`archsim.machines.sparsetrain.timing`)."""
        if any(own.any() for own in self.gaps.values()):
            return self._scanned[0]
        return block_times(self.work.loads, self.design.pipeline_cycles)

    @cached_property
    def _scanned(self) -> tuple[IntArray, Mapping[str, IntArray]]:
        """The cycles of blocks, and of every word."""
        waits = [
            self.waits(port).copy() if port in self.counts else np.zeros(0, np.int64)
            for port in SCANNED
        ]
        given = cast("Waits", tuple(waits))
        times = block_scan(
            self.work.loads,
            ones_of(self.work),
            (self.design.lanes, self.design.pipeline_cycles),
            given,
        )
        found = dict(zip(SCANNED, waits, strict=True))
        return times, {port: found[port] for port in self.counts}

    @cached_property
    def words(self) -> Mapping[str, IntArray]:
        found = stream_words(self.work)
        return {**found, "ofmap": ofmap_words(self.work, self.sums)}

    @cached_property
    def sums(self) -> IntArray:
        """[groups, rows, columns], 0 where nothing is computed; of floats patterns."""
        if self.design.floating:
            return float_sums(self.work)
        whole = dot_products(*self.work.vectors, self.design.operand_bits)
        found = wrap(whole, self.design.accumulator_bits)
        return found if self.work.needed is None else found * self.work.needed

    @property
    def ofmap(self) -> Any:
        """Sums without bias, as they leave; floats as numbers."""
        sums = self.sums.transpose(0, 2, 1) if self.work.cut.turned else self.sums
        found = ofmap_of(self.layer, self.work.problem, sums)
        return found.astype("<u4").view("<f4") if self.design.floating else found

    @property
    def cycles(self) -> int:
        """To the last word of the ofmap."""
        if not len(self.times):
            return 0
        if any(own.any() for own in self.gaps.values()):
            return int(self.crossed["ofmap"][-1]) + 1
        return int(self.times[-1, timing.DONE] + self.work.loads[-1, timing.WORDS]) + 2

    @property
    def steps(self) -> int:
        """Blocks."""
        return len(self.work.blocks)

    @property
    def where(self) -> Mapping[str, int]:
        """Of the PEs' cycles the mean."""
        if not self.cycles:
            return {"computing": 0}
        loads, times = self.work.loads, self.times
        longest = int(loads[:, timing.WORK].sum())
        computing = int(self.work.work[:, STEPPED].sum()) // self.design.pes
        waited = times[:, timing.START] - times[:, timing.FREE]
        columns = loads[:, timing.LOAD_COLUMNS] > loads[:, timing.LOAD_ROWS]
        ended = times[:, timing.START] + self.design.pipeline_cycles + loads[:, timing.WORK]
        by_columns = int(waited[columns].sum())
        by_rows = int(waited[~columns].sum())
        turned = self.work.cut.turned
        return {
            "computing": computing,
            "barrier": longest - computing,
            "wait_ifmap": by_columns if turned else by_rows,
            "wait_weight": by_rows if turned else by_columns,
            "wait_output": int((times[:, timing.DONE] - ended).sum()),
            "control": self.design.pipeline_cycles * len(times),
            "draining": self.cycles - int(times[-1, timing.DONE]),
        }

    @property
    def actions(self) -> Mapping[str, int]:
        total = self.work.work.sum(axis=0).tolist()
        counts = self.counts
        return {
            "step": total[STEPPED],
            "product": total[PRODUCTS],
            "output": total[OUTPUTS],
            "fetch": total[TAKEN_ROWS],
            "row_load": int(self.work.loads[:, timing.LOAD_ROWS].sum()),
            "column_load": int(self.work.loads[:, timing.LOAD_COLUMNS].sum()),
            "row_word": counts["row"],
            "column_word": counts["column"],
            "word": counts["ofmap"],
            "block": counts["command"],
            "tile": int((self.work.blocks[:, FIRST] == 1).sum()),
            "needed_word": counts.get("needed", 0),
            **{
                f"{name}_{what}": steps
                for name, kept in zip(SIDES, self.work.kept, strict=True)
                if self.design.kept_steps(name)
                for what, steps in (("keep", kept.kept_steps), ("again", kept.again_steps))
            },
        }

    @property
    def result(self) -> LayerResult:
        return replace(
            super().result,
            products=int(self.work.work[:, PRODUCTS].sum()),
            bytes_moved=self._bytes,
        )

    @property
    def _bytes(self) -> Mapping[str, int]:
        """Masks among them; that of the outputs counts as ofmap."""
        bits = {port.name: self.counts[port.name] * port.bits for port in self.design.ports}
        rows, columns = bits["row"] + bits["row_mask"], bits["column"] + bits["column_mask"]
        ifmap, weight = (columns, rows) if self.work.cut.turned else (rows, columns)
        ofmap = bits["ofmap"] + bits.get("needed", 0)
        return {
            "ifmap": -(-ifmap // 8),
            "weight": -(-weight // 8),
            "bias": 0,
            "ofmap": -(-ofmap // 8),
        }


class SparseTrainModel(LayerMachine):
    """The model of a sparse training machine."""

    design: SparseTrain
    answers = SparseTrainAnswer
    timed_by_values = True
    steps_are = "blocks"

    def kernels(self, options: Options, *, many: bool = False) -> tuple[Kernel[..., Any], ...]:
        del options, many
        values = (block_sums, patterns) if self.design.floating else ()
        return (block_work, block_times, *values)

    def answer(self, layer: MatrixLayer, operands: Any, options: Options) -> SparseTrainAnswer:
        if operands is None:
            why = f"cycles of {self.design.kind} machines depend on values; give operands"
            raise InputError(f"{layer.name}: {why}")
        return SparseTrainAnswer(
            design=self.design, layer=layer, operands=operands, options=options
        )


__all__ = ["SparseTrainAnswer", "SparseTrainModel"]
