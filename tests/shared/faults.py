"""Faults put into RTL, and whether random cases of the conformance suite show them.

A fault may override only what its component drives itself: a signal driven twice would make
Amaranth's simulator oscillate.
"""

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from types import ModuleType
from typing import Any

import pytest
from amaranth.hdl import Module, Signal, Value
from amaranth.lib import wiring

from archsim.tiled import machine_vector
from archsim.tiled.design import CoreDesign
from rtl.benches.bench import ProtocolError
from rtl.cases import random_case
from rtl.conformance import check
from rtl.core.credits import Credits
from rtl.core.machine import Core
from rtl.hierarchy import place
from rtl.simulators import runner

CASES = 12

Patch = Callable[[pytest.MonkeyPatch], None]


few_or_all_cases = pytest.mark.parametrize(
    "cases", [3, pytest.param(CASES, marks=pytest.mark.slow)], ids=["few", "all"]
)
"""How many of the cases that show faults the untouched design must pass: none ends early there."""


def some_faults(faults: Iterable[str], each: int = 3) -> list[Any]:
    """The names of faults as parameters: one in so many in the fast suite, the others marked slow.

    Each costs a core built anew and simulated, some two seconds; together they were a seventh of
    the suite.
    """
    return [
        pytest.param(name, marks=() if place % each == 0 else pytest.mark.slow)
        for place, name in enumerate(faults)
    ]


def caught(design: CoreDesign, cases: int = CASES) -> bool:
    """Whether any of the first random cases shows a difference, or breaks the run.

    The shortest run first: most faults are seen in any case.
    """
    drawn = (random_case(11, number, design, longest_words=3000) for number in range(cases))
    asked = sorted(((case, case.answer()) for case in drawn), key=lambda pair: pair[1].cycles)
    run = runner(design, "amaranth")
    for case, expected in asked:
        try:
            if not check(case, run, expected).equal:
                return True
        except ProtocolError:
            return True
    return False


def delay(name: str, change: int) -> Patch:
    """The named delay line of the core takes some cycles more."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = Core.delayed

        def mutated(self: Any, m: Module, line: str, value: Value, cycles: int) -> Value:
            return plain(self, m, line, value, cycles + change * (line == name))

        monkeypatch.setattr(Core, "delayed", mutated)

    return patch


def model_column(kind: type[CoreDesign], column: str, change: int) -> Patch:
    """The model believes in so many cycles (places, or slots) more of a column of the vector of a
    machine (`archsim.tiled.machine_vector`)."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        design: Any = kind
        plain = design.machine.func

        def mutated(self: CoreDesign) -> Any:
            vector = plain(self).copy()
            vector[getattr(machine_vector, column)] += change
            return vector

        monkeypatch.setattr(kind, "machine", property(mutated))

    return patch


def after(kind: type, change: Callable[[Any, Module], None]) -> Patch:
    """`change` overrides assignments at the end of a component's elaboration."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = kind.elaborate

        def mutated(self: Any, platform: object) -> Module:
            m = plain(self, platform)
            change(self, m)
            return m

        monkeypatch.setattr(kind, "elaborate", mutated)

    return patch


def seen_input(kind: type, port: str, change: Callable[[Any, Any], Any]) -> Patch:
    """The component sees, at a port, what `change` makes of the component and what is there."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = kind.elaborate

        def mutated(self: Any, platform: object) -> Module:
            there = getattr(self, port)
            seen: Any = Signal(there.shape(), name=f"{port}_seen")
            setattr(self, port, seen)
            m = plain(self, platform)
            m.d.comb += seen.eq(change(self, there))
            return m

        monkeypatch.setattr(kind, "elaborate", mutated)

    return patch


def late_input(kind: type, port: str) -> Patch:
    """The component sees a port one cycle late."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = kind.elaborate

        def mutated(self: Any, platform: object) -> Module:
            there: Any = getattr(self, port)
            seen: Any = Signal.like(there, name=f"{port}_late")
            setattr(self, port, seen)
            m = plain(self, platform)
            m.d.sync += seen.eq(there)
            return m

        monkeypatch.setattr(kind, "elaborate", mutated)

    return patch


def ignored_credit(initial: int, limit: int) -> Patch:
    """Credits of that size are always available."""

    def change(self: Any, m: Module) -> None:
        if (self.initial, self.limit) == (initial, limit):
            m.d.comb += self.available.eq(1)

    return after(Credits, change)


def drive(m: Module, target: Any, value: Any) -> None:
    """Another value on a signal, from wherever the assignment is put."""
    m.d.comb += target.eq(value)


def placed(*modules: ModuleType, name: str, **changes: Callable[[Any], Any]) -> Patch:
    """What the modules place under a name (`adder_*`: under all that begin so), with some of its
    parameters changed."""
    return placed_all(modules, {name: changes})


def placed_all(
    modules: Iterable[ModuleType], changes: Mapping[str, Mapping[str, Callable[[Any], Any]]]
) -> Patch:
    """The same of several names."""

    def mutated(
        m: Module, own: str, kind: type[wiring.Component], given: Any = None, /, **parameters: Any
    ) -> Any:
        for name, some in changes.items():
            if fnmatchcase(own, name):
                parameters |= {key: change(parameters[key]) for key, change in some.items()}
        return place(m, own, kind, given, **parameters)

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        for module in modules:
            monkeypatch.setattr(module, "place", mutated)

    return patch
