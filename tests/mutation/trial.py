"""One mutant against the cases of `archsim verify`, in a process of its own.

What does not change is made once, before the processes fork: the imports, and for faults in the
RTL the model's answers and the benches of all cases.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import resource
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from tests.mutation.emission import Emission, Faulty
from tests.mutation.operators import Mutant
from tests.mutation.quick_build import QuickBuilder
from tests.mutation.sources import mutants_of, within

Outcome = Literal["caught", "caught by tests", "survived", "same", "equal", "stillborn", "hung"]
"""caught: verify says that model and RTL differ, or that the RTL breaks a stream's rule or never
settles.  caught by tests: verify lets it through, a fast test of the unit does not.  same: the
fault changes no letter of the Verilog.  equal: the solver shows that it changes nothing that the
hardware does.  stillborn: no hardware, or no case, can be made with it.  hung: the time ran out."""

MUTANT_VARIABLE = "ARCHSIM_MUTANT"
"""Environment variable with the fault, as JSON, that `tests.mutation.plugin` puts in."""

HOUSE = ("archsim", "rtl", "workloads", "energy_models")
MEMORY_BYTES = 6 << 30


class MutatedModule(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module with a fault in it."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> Any:
        if fullname != self.mutant.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        assert spec is not None and spec.origin is not None
        self.file = spec.origin
        return importlib.util.spec_from_file_location(
            fullname, spec.origin, loader=self,
            submodule_search_locations=spec.submodule_search_locations,
        )  # fmt: skip

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        text = self.mutant.apply(Path(self.file).read_text(encoding="utf-8"))
        exec(compile(text, self.file, "exec"), module.__dict__)


def put_in(mutant: Mutant, rooms: tuple[str, ...]) -> None:
    """From now on imports of the rooms' modules are fresh, and one has the fault."""
    sys.meta_path.insert(0, MutatedModule(mutant))
    for name in list(sys.modules):
        if name.partition(".")[0] in rooms:
            del sys.modules[name]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A design that is verified, and how: as `archsim verify DESIGN --set … --cases … --seed …`."""

    design: str
    settings: tuple[str, ...]
    cases: int = 60
    seed: int = 0

    def load(self) -> Any:
        from archsim.machine.registry import load_design, with_settings

        return with_settings(load_design(self.design), list(self.settings))

    def draw(self, design: Any) -> Any:
        """The cases, one after the other, each with the model's answer (`rtl.cases.Drawn`)."""
        from rtl.cases import steered_cases

        return steered_cases(self.seed, self.cases, design)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A subject, as it is before a fault is put in: its modules, and its cases with answers."""

    subject: Subject
    emission: Emission
    asked: list[Any]

    @property
    def by_length(self) -> list[int]:
        """Numbers of the cases, that of the fewest cycles first."""
        return sorted(range(len(self.asked)), key=lambda number: self.asked[number][1].cycles)


class RtlTrials:
    """Trials of faults in the RTL of some subjects, of those units (modules) alone."""

    def __init__(self, subjects: Sequence[Subject], units: tuple[str, ...] = ("*",)) -> None:
        from rtl.benches import verilated
        from rtl.benches.bench import ProtocolError
        from rtl.conformance import judge

        # of these, the ones before the fault is put in: their classes are those of the benches
        self.judge, self.protocol_error = judge, ProtocolError
        self.verilated: Any = verilated
        self.units = units
        self.folder = tempfile.TemporaryDirectory()
        self.builder = QuickBuilder()
        self.prepared = [self._prepared(subject) for subject in subjects]

    def _prepared(self, subject: Subject) -> Prepared:
        from rtl.conformance import bench_of

        design = subject.load()
        asked = [
            (one.case, one.expected, bench_of(one.case, one.expected))
            for one in subject.draw(design)
        ]
        emission = Emission(design)
        emission.verilog()  # is kept, before processes fork
        return Prepared(subject=subject, emission=emission, asked=asked)

    def require_sound(self) -> None:
        """Raise unless every subject without a fault is built, and equal in its shortest case: what
        ails all would pass for faults that make no hardware."""
        for one in self.prepared:
            found = self.compared(one, self.built(one.emission.verilog()), 1)
            if found is not None:
                raise AssertionError(f"without any fault: {found[1]}")

    def mutants(self) -> list[Mutant]:
        """Of the lines that make the subjects' hardware."""
        lines: dict[str, set[int]] = {}
        for one in self.prepared:
            for module, ran in one.emission.lines.items():
                lines.setdefault(module, set()).update(ran)
        return mutants_of({module: own for module, own in lines.items()
                           if within(module, self.units)})  # fmt: skip

    def run(self, mutant: Mutant) -> tuple[Outcome, str]:
        """In a process of its own: the outcome, and what was seen."""
        put_in(mutant, ("rtl",))
        changed: list[tuple[Prepared, Faulty]] = []
        for one in self.prepared:
            try:
                faulty = one.emission.with_fault(mutant)
            except Exception as error:
                return "stillborn", f"{type(error).__name__}: {error}"
            if faulty is not None:
                changed.append((one, faulty))
                found = self.judged(one, faulty)
                if found is not None:
                    return found
        if not changed:
            return "same", ""
        if all(one.emission.shown_equal(faulty) for one, faulty in changed):
            return "equal", f"shown by induction: {', '.join(sorted(changed[0][1].changed))}"
        return "survived", ""

    def judged(self, one: Prepared, faulty: Faulty) -> tuple[Outcome, str] | None:
        """What becomes of a faulty design on the cases of the sound one; None if all are equal."""
        try:
            core = self.built(one.emission.verilog(faulty))
        except Exception as error:
            return "stillborn", f"{type(error).__name__}: {str(error)[-300:]}"
        return self.compared(one, core)

    def built(self, verilog: str, choice: str = "", *, fast: bool = False) -> Any:
        """A simulator (`rtl.benches.verilated.Verilated`); choice, fast: as of
        `QuickBuilder.build`."""
        with tempfile.TemporaryDirectory(dir=self.folder.name) as work:
            usual = self.verilated.build_library
            build = partial(self.builder.build, Path(work), choice=choice, fast=fast)
            self.verilated.build_library = build
            try:
                return self.verilated.Verilated(verilog, top="top")
            finally:  # who comes behind in this process builds as ever
                self.verilated.build_library = usual

    def compared(
        self, one: Prepared, core: Any, cases: int | None = None
    ) -> tuple[Outcome, str] | None:
        """The first case in which a simulator does something else; None if there is none.

        cases: how many are tried, the shortest first; all by default.
        """
        where = f"design {self.prepared.index(one) + 1},"
        for number in one.by_length[:cases]:
            case, expected, bench = one.asked[number]
            try:
                verdict = self.judge(case, expected, core.run(bench))
            except (self.protocol_error, RuntimeError) as error:
                return "caught", f"{where} case {number}: {error}"
            if not verdict.equal:
                hung = f": {verdict.hung}" if verdict.starved else ""
                return "caught", f"{where} case {number}{hung}"
        return None


def limit_memory() -> None:
    """A mutant that eats memory ends itself, not the machine."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
