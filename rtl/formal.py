"""Proofs that the assertions of a component hold, for all inputs and, by induction, for ever.

A proof is a component whose ports are free inputs and whose `Assert`s are what is to be shown.
Yosys (as pyosys) makes one netlist of it and its SAT solver answers; nothing else is installed.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

# The stubs leave rtlil out.
from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]
from amaranth.hdl import Assert, Module, Signal, Value
from amaranth.lib import wiring

from archsim.errors import require
from archsim.files import scratch_folder
from rtl.toolchain import ToolchainError, run_yosys

__all__ = [
    "Proof",
    "Verdict",
    "claim",
    "named",
    "opened",
    "prove_always",
    "prove_combinational",
    "prove_for_cycles",
]

_ANSWERS: dict[str, Literal["proved", "refuted", "open"]] = {
    "Induction step proven: SUCCESS!": "proved",
    "SAT proof finished - no model found: SUCCESS!": "proved",
    "SAT proof finished - model found: FAIL!": "refuted",
    "SAT temporal induction proof finished - model found for base case: FAIL!": "refuted",
    "Reached maximum number of time steps -> proof failed.": "open",
}
"""What yosys prints when it has come to an end."""

_RESET = re.compile(r"^ *wire .*input \d+ +\\rst$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a proof came to.

    answer: "proved"; "refuted": some inputs break an assertion; "open": no induction step of up to
    the allowed length succeeds, although no such inputs were found.
    cycles: from reset, in which the assertions were looked at; None for all.
    """

    answer: Literal["proved", "refuted", "open"]
    cycles: int | None

    @property
    def proved(self) -> bool:
        return self.answer == "proved"


@dataclass(frozen=True, kw_only=True)
class Proof:
    """A proof that can be run, as a part brings it.

    name: among those of the part; says: what is shown, in a sentence, and of which sizes; prove:
    asks the solver; slow: it takes longer than some 10 s.
    """

    name: str
    says: str
    prove: Callable[[], Verdict]
    slow: bool = False


def prove_combinational(proof: wiring.Component) -> Verdict:
    """The assertions of a proof without registers, over all inputs."""
    return Verdict(answer=_solve(proof, ""), cycles=None)


def prove_for_cycles(proof: wiring.Component, cycles: int) -> Verdict:
    """The assertions in the first `cycles` cycles after reset, over all inputs of each.

    Bounded: later cycles are not looked at.
    """
    require(cycles > 0, f"cycles must be positive, not {cycles}")
    bound = f"-seq {cycles}"
    return Verdict(answer=_solve(proof, bound), cycles=cycles)


def prove_always(proof: wiring.Component, longest_step: int = 1) -> Verdict:
    """The assertions in every cycle after reset, over all inputs, by k-induction.

    They hold in the first k cycles after reset (base case); and wherever they hold in k successive
    cycles, from any state of the registers, they hold in the next (step).  k = 1, 2, … up to
    `longest_step` is tried.  Assertions about registers that rule out unreachable states make a
    short step succeed.
    """
    require(longest_step > 0, f"longest_step must be positive, not {longest_step}")
    answer = _solve(proof, f"-tempinduct -maxsteps {longest_step}")
    return Verdict(answer=answer, cycles=None)


def _solve(proof: wiring.Component, options: str) -> Literal["proved", "refuted", "open"]:
    """Run yosys; the answer that it prints.  Raises `ToolchainError` if it prints none."""
    text: str = rtlil.convert(proof, name="top", emit_src=False)
    require("$check" in text or "$assert" in text, "a proof needs an assertion")
    reset = "-set rst 0" if _RESET.search(text) else ""
    answers: list[Literal["proved", "refuted", "open"]] = []

    def watch(line: str) -> None:
        answers.extend(answer for said, answer in _ANSWERS.items() if said in line)

    with scratch_folder("archsim-formal") as folder:
        (folder / "top.il").write_text(text, encoding="utf-8")
        passes = [
            "read_rtlil top.il",
            "chformal -lower",
            "prep -flatten -top top",
            "memory_map",
            "opt -full",
            f"sat -set-assumes -prove-asserts {reset} {options} top",
        ]
        run_yosys(passes, folder, watch)
    if len(answers) != 1:
        raise ToolchainError(f"yosys sat gave {len(answers)} answers")
    return answers[0]


def named(m: Module, name: str, value: Value) -> Signal:
    """The value as a signal of that name."""
    signal = Signal(len(value), name=name)
    m.d.comb += signal.eq(value)
    return signal


def claim(m: Module, name: str, holds: Any) -> Any:
    """An assertion with a name, `holds_<name>` in a counterexample's wave."""
    signal = Signal(name=f"holds_{name}")
    m.d.comb += signal.eq(holds)
    return Assert(signal, name)


def opened(component: Any) -> Module:
    """What a component is made of, so that a proof can look inside; made once, and placed so."""
    made = vars(component).get("_opened")
    if made is None:
        made = component._opened = component.elaborate(None)
        component.elaborate = lambda platform: made
    return made
