"""Cases of the sparse core: layers that follow one another, pass by pass."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from archsim.machines.scnn.answer import SparseAnswer, sparse_answer
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.words import LayerRun, PassWords, pass_words
from archsim.numbers import IntArray
from rtl.conformance import Case
from rtl.scnn import counts_of

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
    def tail_cycles(self) -> int:
        return SETTLING_CYCLES

    def answer(self) -> SparseAnswer:
        """What the model says; raises `InputError` as `sparse_answer`."""
        # After a reset the core clears its banks, an entry of each in a cycle.
        ready = self.design.bank_entries
        return sparse_answer(self.design, self.passes, self.idle, ready_cycle=ready)

    def gaps(self, expected: Any) -> Mapping[str, IntArray]:
        return expected.gaps

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
