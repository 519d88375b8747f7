"""Faults in the model of some designs: their RTL is sound, or made by the same faulty functions.

Where a fault changes neither a case nor its answer, the RTL, which is equal to the sound model, is
equal to the faulty one too; only where one of them changes does it run.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from tests.mutation.emission import function_of
from tests.mutation.live import compiled_anew, put_in_live, remember_caches
from tests.mutation.operators import Mutant
from tests.mutation.quick_build import QuickBuilder
from tests.mutation.sources import (
    lines_run,
    module_of,
    mutants_run_by,
    mutated_side,
    within,
)
from tests.mutation.trial import HOUSE, Outcome, Subject, put_in

TRACED = 20
"""Cases whose lines faults are put into: as Python, kernels take their time."""


@dataclass(frozen=True, kw_only=True)
class Sound:
    """A subject without a fault.

    prints: of every case with its answer.  makes: by module, lines that run to make the Verilog.
    run: the RTL.
    """

    subject: Subject
    prints: list[bytes]
    verilog: str
    makes: dict[str, set[int]]
    run: Any


class ModelTrials:
    """Trials of faults in the model of some subjects, of those units (modules) alone; kernels that
    have them run as Python."""

    def __init__(self, subjects: Sequence[Subject], units: tuple[str, ...] = ("*",)) -> None:
        self.units = units
        self.folder = tempfile.TemporaryDirectory()
        self.builder = QuickBuilder()
        self.subjects = subjects
        self.sound: list[Sound] = []

    def prepare(self) -> None:
        """What all trials need of the sound designs."""
        from rtl.emit import emit

        for subject in self.subjects:
            design = subject.load()
            prints = [print_of(one.case, one.expected) for one in subject.draw(design)]
            remember_caches(clear=True)
            with lines_run(lambda file: mutated_side(module_of(file), "model")) as lines:
                verilog = emit(design).verilog
            makes = {module_of(file): numbers for file, numbers in lines.items()}
            run = self._simulator(verilog, kept=True)
            sound = Sound(subject=subject, prints=prints, verilog=verilog, makes=makes, run=run)
            self.sound.append(sound)

    def mutants(self) -> list[Mutant]:
        """Of the lines that the first cases run through, not those of definitions."""
        self._answer(1)  # whatever is imported is so already, then

        def mutated(module: str) -> bool:
            return mutated_side(module, "model") and within(module, self.units)

        return mutants_run_by(lambda: self._answer(TRACED), mutated)

    def _answer(self, cases: int) -> None:
        for subject in self.subjects:
            for one in islice(subject.draw(subject.load()), cases):
                one.case.figures_apart()

    def run(self, mutant: Mutant) -> tuple[Outcome, str]:
        """In a process of its own: the outcome, and what was seen."""
        try:
            live = put_in_live(mutant)
            if not live:
                put_in(mutant, HOUSE)
                sys.modules.pop(QuickBuilder.__module__)
            _without_compilation()
            designs = [one.subject.load() for one in self.sound]
        except Exception as error:
            return "stillborn", f"{type(error).__name__}: {error}"
        first, last = function_of(mutant)
        for sound, design in zip(self.sound, designs, strict=True):
            made_anew = not live or any(
                first <= line <= last for line in sound.makes.get(mutant.module, ())
            )
            try:
                found = self._first_difference(sound, design, made_anew=made_anew, live=live)
            except _StillbornError as error:
                return "stillborn", str(error)
            if found:
                return "caught", f"design {self.sound.index(sound) + 1}, {found}"
        return "survived", ""

    def _first_difference(
        self, sound: Sound, design: Any, *, made_anew: bool, live: bool
    ) -> str | None:
        from rtl.conformance import check

        run: Any = sound.run if live else None
        changed = False
        if made_anew:
            verilog = _emitted(design)
            changed = verilog != sound.verilog
            if changed or not live:
                run = self._simulator(verilog, kept=not changed)
        number = -1
        try:
            for number, one in enumerate(sound.subject.draw(design)):
                same = print_of(one.case, one.expected) == sound.prints[number]
                if (changed or not same) and not check(one.case, run, one.expected).equal:
                    return f"case {number}"
                if same and one.case.figures_apart():
                    return f"case {number}, of the model with itself"
        except Exception as error:  # `verify` ends with it: nobody takes that for an equality
            return f"case {number + 1}: {type(error).__name__}: {error}"
        return None

    def _simulator(self, verilog: str, *, kept: bool) -> Any:
        from rtl.benches import verilated

        kind = importlib.import_module(QuickBuilder.__module__).QuickBuilder
        builder = object.__new__(kind)  # of the modules that are imported now
        vars(builder).update(vars(self.builder))
        with tempfile.TemporaryDirectory(dir=self.folder.name) as work:
            patched: Any = verilated
            patched.build_library = partial(builder.build, Path(work), kept=kept)
            return verilated.Verilated(verilog, top="top").run


class _StillbornError(Exception):
    """No hardware can be made."""


def _emitted(design: Any) -> str:
    from rtl.emit import emit

    try:
        return emit(design).verilog
    except Exception as error:
        raise _StillbornError(f"{type(error).__name__}: {error}") from error


def _without_compilation() -> None:
    """Kernels that are not compiled yet run as Python, but those of the mapper."""
    from archsim.kernels import Kernel

    every = [one for one in gc.get_objects() if isinstance(one, Kernel)]
    anew = {id(one) for kernel in every for one in compiled_anew(kernel)}

    class NotKeptError(Exception):
        pass

    kind: Any = Kernel
    compiled: Callable[..., Any] = kind._compiled
    made: Callable[..., Any] = kind._build

    def build(kernel: Any, given: Any) -> Callable[[], bytes]:
        if id(kernel) in anew:
            return made(kernel, given)

        def never() -> bytes:
            raise NotKeptError

        return never

    def run(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return compiled(kernel, *args, **kwargs)
        except NotKeptError:
            kernel._run = kernel.part.function
            return kernel._run(*args, **kwargs)

    kind._build, kind._compiled = build, run
    for kernel in every:
        plain: Any = kernel
        if plain._run == plain.part.function:
            continue
        plain._run = partial(run, plain)


def print_of(case: Any, expected: Any) -> bytes:
    """Of all that a verdict is made of, the RTL aside: what the bench does, and the answer."""
    from rtl.conformance import bench_of

    digest = hashlib.blake2b(digest_size=16)
    for part in (*_of_bench(bench_of(case, expected)), *_of_answer(case, expected)):
        digest.update(repr(part).encode() if not hasattr(part, "tobytes") else part.tobytes())
        digest.update(b"|")
    return digest.digest()


def _of_bench(bench: Any) -> Iterator[Any]:
    yield bench.max_cycles, bench.tail_cycles, bench.probes
    for name, stimulus in sorted(bench.stimuli.items()):
        yield name
        yield from (each for each in (stimulus.words, stimulus.gaps, stimulus.earliest))
    if bench.before is not None:
        yield from _of_bench(bench.before)


def _of_answer(case: Any, expected: Any) -> Iterator[Any]:
    yield case.timed, case.ends_at_ports, expected.cycles
    yield [(name, expected.actions.get(name)) for name in case.counters]
    for port in case.ports:
        yield port.name, port.bits
        yield expected.transfers[port.name].cycle
        yield expected.transfers[port.name].payload


__all__ = ["ModelTrials", "print_of"]
