"""Faults in the RTL, many in one simulator (`tests.mutation.schemata`): seconds a fault.

What cannot be merged, and what disturbs the others, has a simulator of its own as before.
"""

from __future__ import annotations

import gc
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.mutation.emission import Faulty
from tests.mutation.live import put_in_live, remember_caches
from tests.mutation.netlist import netlists, outputs_of, yosys
from tests.mutation.operators import Mutant
from tests.mutation.pool import Pool
from tests.mutation.quick_build import choose
from tests.mutation.schemata import CHOICE, SOUND, CannotMergeError
from tests.mutation.trial import Outcome, Prepared, RtlTrials, put_in
from tests.mutation.variants import Schema, Variant

Result = tuple[Mutant, Outcome, str, float]
"""Of a fault: outcome, what was seen, seconds."""

LARGEST, LEAST = 30, 3
"""Faults in one simulator: what all of them do runs in every cycle."""

QUICK = 24
"""Cases, the shortest ones, that most faults do not pass.  Those that do share another simulator,
which takes longer to be compiled and runs faster.  The sound design is seen to be undisturbed by
the faults around it on these cases too."""

Changed = dict[str, str]
"""RTLIL of the modules that a fault changes, by name."""

Core = tuple[Any, dict[Mutant, int]]
"""A simulator, None if it cannot be made, and the number of each fault in it."""

MOST_SECONDS = 60
"""Until a faulty module is made: some never are."""


class Batches:
    """Trials of many faults, design by design; of the next one those that are not caught."""

    def __init__(self, trials: RtlTrials, processes: int, seconds: float) -> None:
        self.trials, self.processes, self.seconds = trials, processes, seconds

    def run(self, mutants: Sequence[Mutant]) -> Iterator[Result]:
        """What becomes of each: of all designs a few cases first, which catch most of them."""
        remember_caches()
        self.trials.require_sound()
        waiting = dict.fromkeys(mutants)
        made: list[dict[Mutant, Faulty]] = []
        spent = dict.fromkeys(mutants, 0.0)
        for fast in (False, True):
            for number, one in enumerate(self.trials.prepared):
                if not fast:
                    made.append({})
                    yield from _ended(self._made(one, list(waiting), made[number]), waiting, spent)
                left = {mutant: each for mutant, each in made[number].items() if mutant in waiting}
                yield from _ended(self.judged(one, left, fast=fast), waiting, spent)
        for mutant in waiting:
            changed = any(mutant in faulty for faulty in made)
            yield mutant, "survived" if changed else "same", "", spent[mutant]

    def _made(
        self, one: Prepared, mutants: Sequence[Mutant], made: dict[Mutant, Faulty]
    ) -> Iterator[Result]:
        """Puts what each changes of a design into `made`; yields those of which none can be."""
        touching = [mutant for mutant in mutants if one.emission.touched(mutant)]
        making = Pool(Emitter(one), self.processes, min(self.seconds, MOST_SECONDS))
        for mutant, answer, seconds in making.each(touching):
            if isinstance(answer, Faulty):
                made[mutant] = answer
            elif answer is not None:
                yield mutant, "stillborn", str(answer), seconds

    def ask_solver(self, mutants: Sequence[Mutant]) -> Iterator[Result]:
        """Of faults that survived, whether the solver shows that they change nothing."""
        for mutant, equal, seconds in self._pool(self._shown_equal).each(mutants):
            if isinstance(equal, str) and equal not in ("ended", "late"):
                yield mutant, "equal", f"shown by induction: {equal}", seconds

    def _shown_equal(self, mutant: Mutant) -> str | None:
        """The modules that differ, if they do the same."""
        names: set[str] = set()
        for one in self.trials.prepared:
            faulty = Emitter(one)(mutant)
            if isinstance(faulty, Faulty):
                names |= faulty.changed.keys()
                if not one.emission.shown_equal(faulty):
                    return None
        return ", ".join(sorted(names))

    def _pool(self, run: Any) -> Pool:
        return Pool(run, self.processes, self.seconds)

    def judged(
        self, one: Prepared, faulty: Mapping[Mutant, Faulty], *, fast: bool
    ) -> Iterator[Result]:
        """Those that a case tells from the sound design, or of which no design can be made.

        fast: all cases are tried, and alone what shares no simulator; else a few.
        """
        alone = dict(faulty)
        merging = [mutant for mutant, each in faulty.items() if each.same_sources]
        for part in _parts(merging, LARGEST):
            changed = {mutant: faulty[mutant].changed for mutant in part}
            for core, numbers in self._cores(one, changed, fast=fast):
                judging = self._pool(_Chosen(self.trials, one, core, numbers, fast=fast))
                for mutant, answer, seconds in judging.each(numbers):
                    del alone[mutant]
                    if answer is not None:
                        yield _result(mutant, answer, seconds)
        single = self._pool(lambda mutant: self.trials.judged(one, faulty[mutant]))
        for mutant, answer, seconds in single.each(list(alone) if fast else ()):
            if answer is not None:
                yield _result(mutant, answer, seconds)

    def _cores(
        self, one: Prepared, changed: dict[Mutant, Changed], *, fast: bool
    ) -> Iterator[Core]:
        """Simulators of all that can be merged, and the number of each fault in its simulator.

        A fault that disturbs the others, one that never settles, say, is looked for by halves.
        """
        if len(changed) < LEAST:
            return
        core, numbers = self._merged(one, changed, fast=fast)
        if core is not None:
            choose(core, SOUND)
            if self.trials.compared(one, core, QUICK) is None:
                yield core, numbers
                return
        for half in _parts(list(numbers), -(-len(numbers) // 2)):
            if len(half) < len(changed):
                part = {mutant: changed[mutant] for mutant in half}
                yield from self._cores(one, part, fast=fast)

    def _merged(self, one: Prepared, changed: dict[Mutant, Changed], *, fast: bool) -> Core:
        base, *others = netlists([one.emission.texts, *changed.values()])
        schema = Schema(base, outputs_of("\n".join(one.emission.sources.values())))
        numbers: dict[Mutant, int] = {}
        for mutant, modules in zip(changed, others, strict=True):
            try:
                schema.add(Variant(number=len(numbers) + 1, changed=modules))
            except CannotMergeError:
                continue
            numbers[mutant] = len(numbers) + 1
        return self._built(one, schema, fast=fast), numbers

    def _built(self, one: Prepared, schema: Schema, *, fast: bool) -> Any:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            text = json.dumps({"creator": "", "modules": schema.modules()})
            (folder / "all.json").write_text(text, encoding="utf-8")
            yosys(["read_json all.json", "opt_clean", "write_verilog -norename all.v"], folder)
            verilog = (folder / "all.v").read_text(encoding="utf-8")
        sources = "\n".join(one.emission.sources.values())
        try:
            return self.trials.built(f"{sources}\n{verilog}", choice=CHOICE, fast=fast)
        except Exception:
            return None


class Emitter:
    """In a process of its own: what a fault changes of a design; None for nothing."""

    def __init__(self, one: Prepared) -> None:
        self.one = one

    def __call__(self, mutant: Mutant) -> Faulty | str | None:
        gc.disable()  # the process is soon over, and shares what it would look through
        try:
            if not put_in_live(mutant):
                put_in(mutant, ("rtl",))
            return self.one.emission.with_fault(mutant)
        except Exception as error:
            return f"{type(error).__name__}: {error}"


class _Chosen:
    """In a process of its own: what a simulator's variant does on the cases; on all if `fast`."""

    def __init__(self, trials: RtlTrials, one: Prepared, core: Any,
                 numbers: dict[Mutant, int], *, fast: bool) -> None:  # fmt: skip
        self.trials, self.one, self.core, self.numbers = trials, one, core, numbers
        self.cases = None if fast else QUICK

    def __call__(self, mutant: Mutant) -> tuple[Outcome, str] | None:
        choose(self.core, self.numbers[mutant])
        return self.trials.compared(self.one, self.core, self.cases)


def _parts(mutants: list[Mutant], size: int) -> list[list[Mutant]]:
    return [mutants[first : first + size] for first in range(0, len(mutants), size)]


def _ended(
    results: Iterator[Result], waiting: dict[Mutant, None], spent: dict[Mutant, float]
) -> Iterator[Result]:
    """The results, with all the seconds that a fault took; what has one waits no more."""
    for mutant, outcome, seen, seconds in results:
        spent[mutant] += seconds
        del waiting[mutant]
        yield mutant, outcome, seen, spent[mutant]


def _result(mutant: Mutant, answer: Any, seconds: float) -> Result:
    if answer == "ended":
        return mutant, "caught", "the simulator's process ended", seconds
    return (mutant, "hung", "", seconds) if answer == "late" else (mutant, *answer, seconds)


__all__ = ["Batches", "Emitter", "Result"]
