"""Cases of the sparse core: layers that follow one another, pass by pass."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from archsim.errors import InputError
from archsim.machines.scnn.answer import SparseAnswer, sparse_answer
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.words import LayerRun, PassWords, pass_words, word_counts
from archsim.numbers import IntArray
from rtl.conformance import Case
from rtl.coverage.shrink import cut_gaps, smaller_gaps, smaller_pieces
from rtl.scnn import counts_of
from rtl.sparse_paths import figures_apart

SETTLING_CYCLES = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseCase(Case):
    """Layers with their operands on a design, one after the other from a reset on.

    idle: by port, idle cycles of the memory side before each word of all passes, [words]
    (`archsim.machines.scnn.answer.sparse_answer`); ports left out never wait; None: the design's
    own off-chip memory serves them.
    """

    design: Scnn
    runs: tuple[LayerRun, ...]
    idle: Mapping[str, IntArray] | None = None
    label: str = ""

    @cached_property
    def passes(self) -> list[PassWords]:
        """All passes; raises `InputError` as `archsim.machines.scnn.words.pass_words`."""
        return pass_words(self.design, self.runs)

    @property
    def name(self) -> str:
        return ", ".join(run.layer.name for run in self.runs)

    @property
    def macs(self) -> int:
        return sum(run.layer.macs for run in self.runs)

    @property
    def counters(self) -> tuple[str, ...]:
        return counts_of(self.design)

    @property
    def ends_at_ports(self) -> bool:
        return self.idle is not None or not self.design.off_chip.bytes_per_cycle

    @property
    def tail_cycles(self) -> int:
        return SETTLING_CYCLES

    def answer(self) -> SparseAnswer:
        """What the model says; raises `InputError` as `sparse_answer`."""
        # After a reset the core clears its banks, an entry of each in a cycle.
        ready = self.design.bank_entries
        return sparse_answer(self.design, self.passes, self.idle, ready_cycle=ready)

    def gaps(self, expected: Any) -> Mapping[str, IntArray]:
        return expected.gaps

    def waits(self, expected: Any) -> Mapping[str, IntArray]:
        none = {port: np.zeros(len(one), np.int64) for port, one in expected.transfers.items()}
        return {**none, **(self.idle or {})}

    @property
    def layers_in_row(self) -> int:
        return len(self.runs)

    def waiting(self, gaps: Mapping[str, IntArray]) -> "SparseCase":
        return replace(self, idle=gaps)

    def smaller(self) -> "list[Case]":
        """One of the layers; fewer stalls; half of a layer, or without its pooling."""
        runs, count = self.runs, len(self.runs)
        fewer: list[tuple[LayerRun, ...]] = []
        if count > 1:
            fewer = [runs[n : n + 1] for n in range(count)]
            fewer += [runs[: count // 2], runs[count // 2 :]] if count > 2 else []
            fewer += [runs[:n] + runs[n + 1 :] for n in range(count)] if count > 2 else []
        for n, run in enumerate(runs if count <= 3 else ()):
            pieces = [
                replace(run, layer=layer, operands=operands)
                for layer, operands in smaller_pieces(run.layer, run.operands)
            ]
            pieces += [replace(run, pool=None)] if run.pool is not None else []
            fewer += [(*runs[:n], one, *runs[n + 1 :]) for one in pieces]
        gaps = dict(self.waits(self.answer()))
        stalls = [self.waiting(one) for one in smaller_gaps(gaps)]
        return [*stalls, *(self._cut(some, gaps) for some in fewer)]

    def _cut(self, runs: tuple[LayerRun, ...], gaps: Mapping[str, IntArray]) -> "SparseCase":
        """Other layers, behind which none stays, with as many of the idle cycles as they have words
        for; none where the layers do not fit, which running the case says."""
        ends = (*runs[:-1], replace(runs[-1], keep_ofmap=False))
        case = replace(self, runs=ends, idle={})
        try:
            words = word_counts(case.passes)
        except InputError:
            return case
        return replace(case, idle={port: cut_gaps(gaps[port], words[port]) for port in gaps})

    def figures_apart(self) -> Mapping[str, tuple[int, int]]:
        return figures_apart(self.design, self.runs)

    def details(self) -> dict[str, str]:
        densities = [
            f"{np.mean(tensor != 0):.2f}"
            for run in self.runs
            for tensor in (run.operands.ifmap, run.operands.weight)
        ]
        return {
            "layer": ", ".join(
                f"{run.layer!r}{f' with {run.pool!r}' if run.pool else ''}"
                f"{' (ofmap stays)' if run.keep_ofmap else ''}"
                for run in self.runs
            ),
            "densities": ", ".join(densities),
        }
