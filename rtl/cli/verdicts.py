"""What `archsim verify` runs, and what it says of it: cases, coverage, the smallest that fails."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from archsim.cli.output import phase, progress_bar
from archsim.files import new_folder
from archsim.machine.design import Design
from archsim.machine.registry import design_name

if TYPE_CHECKING:
    from rtl.cases import Drawn
    from rtl.conformance import Case, Verdict
    from rtl.coverage.bins import Coverage
    from rtl.time_limit import TimeLimit

Simulator = Literal["amaranth", "verilator", "cocotb"]

MOST_CYCLES = {"amaranth": 3_000, "cocotb": 10_000}
"""Of a case drawn for an aim, on simulators that take a second for so many."""


@dataclass(frozen=True)
class Request:
    """What is verified, and how.

    only: just this case, drawn for `aim` ("": plainly random), at the end of the way `smaller`.
    repeat: the command, up to a case's own options.
    """

    design: Design
    simulator: Simulator
    seed: int
    cases: int
    only: int | None
    aim: str
    smaller: tuple[int, ...]
    repeat: str
    waves: Path | None
    wave_format: str


@dataclass(frozen=True)
class _Judged:
    """A case by its number and aim, which draw it again, and how it compared."""

    number: int
    aim: str
    verdict: "Verdict"


def verified(request: Request, *, quiet: bool) -> tuple[dict[str, Any], "Coverage"]:
    """What was compared, as plain data, and the coverage.

    Raises `InputError` for a design of which no case can be drawn, before anything is built.
    """
    from rtl.time_limit import TimeLimit

    with TimeLimit() as limit:
        return _verified(request, limit, quiet=quiet)


def _verified(
    request: Request, limit: "TimeLimit", *, quiet: bool
) -> "tuple[dict[str, Any], Coverage]":
    from rtl.coverage.bins import Coverage, Seen
    from rtl.registry import verification_of

    drawn = _told(iter(_cases(request)), request, limit)
    first = next(drawn)
    coverage = Coverage(
        one for one in verification_of(request.design).bins(request.design)
        if not one.inside or request.simulator == "verilator"
    )  # fmt: skip
    verdicts: list[_Judged] = []
    total = 1 if request.only is not None else request.cases
    smallest: dict[str, Any] = {}
    building = f"building for {request.simulator}"
    with progress_bar(building, quiet=quiet) as bar, _checker(request) as check:
        if request.simulator != "cocotb":  # which builds when it first runs
            phase(bar, "verifying")
        for one in chain([first], drawn):
            verdict = check(one.case, one.expected)
            verdicts.append(_Judged(one.number, one.aim, verdict))
            seen = Seen(case=one.case, expected=one.expected, inside=verdict.seen)
            coverage.add(seen)
            bar.update(
                bar.task_ids[0],
                description="verifying",
                completed=len(verdicts),
                total=total,
            )
        failing = next((one for one in verdicts if not one.verdict.equal), None)
        if failing is not None and request.waves is None and request.simulator != "cocotb":
            smallest = _smallest(request, failing, check)
    summary = _summary(request, verdicts, coverage)
    return {**summary, **({"smallest": smallest} if smallest else {})}, coverage


def _told(drawn: "Iterator[Drawn]", request: Request, limit: "TimeLimit") -> "Iterator[Drawn]":
    """The cases.  Each is to be drawn in time, and, where a simulator is quick, judged."""
    for number in count(request.only or 0):
        limit.case(f"case {number} of seed {request.seed}")
        one = next(drawn, None)
        if one is None:
            break
        if request.simulator != "verilator":
            limit.rest()
        yield one
    limit.rest()


def _cases(request: Request) -> "Iterator[Drawn]":
    from rtl.cases import Drawn, drawn_case, steered_cases
    from rtl.coverage.shrink import follow

    if request.only is None:
        most = MOST_CYCLES.get(request.simulator)
        yield from steered_cases(request.seed, request.cases, request.design, most_cycles=most)
        return
    case = drawn_case(request.seed, request.only, request.design, request.aim)
    case = follow(case, request.smaller)
    yield Drawn(number=request.only, aim=request.aim, case=case, expected=case.answer())


@contextmanager
def _checker(request: Request) -> "Generator[Callable[[Case, Any], Verdict]]":
    """What checks a case; while it is open, waves are made ready under their folder's name."""
    if request.waves is None:
        from rtl.conformance import check
        from rtl.simulators import runner

        run = runner(request.design, request.simulator)
        yield lambda case, expected: check(case, run, expected)
    else:
        from rtl.case_waves import check_with_waves

        suffix = f".{request.wave_format}"
        with new_folder(request.waves) as folder:
            yield lambda case, _: check_with_waves(case, folder, suffix=suffix)


def _repeat(request: Request, one: _Judged, way: tuple[int, ...]) -> str:
    aim = f" --aim '{one.aim}'" if one.aim else ""
    steps = f" --smaller {'.'.join(map(str, way))}" if way else ""
    return f"{request.repeat} --case {one.number}{aim}{steps}"


def _smallest(
    request: Request, one: _Judged, check: "Callable[[Case, Any], Verdict]"
) -> dict[str, Any]:
    """The smallest case found that still fails, and the command that runs it."""
    from rtl.coverage.shrink import shrink

    case, way = shrink(one.verdict.case, lambda case: not check(case, case.answer()).equal)
    found = check(case, case.answer()) if way else one.verdict
    way = (*request.smaller, *way)
    return {**found.record(), "repeat": _repeat(request, one, way)}


def _summary(request: Request, verdicts: "list[_Judged]", coverage: "Coverage") -> dict[str, Any]:
    from rtl.conformance import LAST

    ran = [one.verdict for one in verdicts]
    return {
        "design": design_name(request.design),
        "simulator": request.simulator,
        "seed": request.seed,
        "cases": len(ran),
        "transfers": sum(verdict.transfers for verdict in ran),
        "cycles": sum(verdict.cycles for verdict in ran),
        "cycle_differences": sum(
            max(verdict.cycle_differences, LAST in verdict.counts) for verdict in ran
        ),
        "value_differences": sum(verdict.value_differences for verdict in ran),
        "action_differences": sum(len(verdict.counts.keys() - {LAST}) for verdict in ran),
        "coverage": coverage.record(),
        "differences": [
            {**one.verdict.record(), "repeat": _repeat(request, one, request.smaller)}
            for one in verdicts
            if not one.verdict.equal
        ],
    }


__all__ = ["Request", "Simulator", "verified"]
