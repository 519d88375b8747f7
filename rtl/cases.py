"""Random cases for the conformance suite, of whatever kind the design is."""

from collections.abc import Iterator
from dataclasses import dataclass

from archsim.errors import InputError
from archsim.machine.design import Design
from archsim.ports import PortAnswer
from rtl.conformance import Case
from rtl.coverage.aims import aimed_case, last_cycle
from rtl.coverage.bins import Coverage, Seen
from rtl.draw import Draw
from rtl.registry import verification_of

__all__ = ["LONGEST_WORDS", "Draw", "Drawn", "drawn_case", "random_case", "steered_cases"]

LONGEST_WORDS = 20_000
"""At all ports of a case."""


def random_case(
    seed: int, number: int, design: Design, *, longest_words: int = LONGEST_WORDS
) -> Case:
    """Case `number` of a seed, on a design: a layer of awkward shape, and stalls on every port.

    Raises `InputError` for designs of a kind without RTL, and where no layer fits the design.
    """
    return verification_of(design).random_case(seed, number, design, longest_words)


def drawn_case(
    seed: int, number: int, design: Design, aim: str, *, longest_words: int = LONGEST_WORDS
) -> Case:
    """Case `number` of a seed, drawn for an aim; without one ("") as `random_case`.

    Raises `InputError` as that, and for an aim that the design's kind has not.
    """
    kind = verification_of(design)
    if not aim:
        return kind.random_case(seed, number, design, longest_words)
    return aimed_case(kind.aims(design), aim, seed, number, design, longest_words)


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn:
    """A case, and what the model says of it; (number, aim) draw it again."""

    number: int
    aim: str
    case: Case
    expected: PortAnswer


def steered_cases(
    seed: int, count: int, design: Design, *, most_cycles: int | None = None
) -> Iterator[Drawn]:
    """The first cases of a seed: every other one plainly random, those between for an aim.

    The aim is the one that most bins still ask for which no case before was in, those tried before
    counting less each time; where no bin asks, the case is plainly random too.  Bins of what goes
    on inside the RTL have no say, so the cases are those of seed and design alone.
    most_cycles: of a case drawn for an aim, for simulators that are slow; longer ones are not run.
    Raises `InputError` as `random_case`.
    """
    kind = verification_of(design)
    aims = kind.aims(design)
    coverage = Coverage(one for one in kind.bins(design) if not one.inside)
    tried = dict.fromkeys(aims, 0)
    for number in range(count):
        aim = _wanted(coverage, tried) if number % 2 else ""
        case = None
        if aim:
            tried[aim] += 1
            try:
                case = aimed_case(aims, aim, seed, number, design, LONGEST_WORDS)
                if most_cycles is not None and last_cycle(case) > most_cycles:
                    case = None
            except InputError:  # no such case fits the design
                pass
        if case is None:
            aim, case = "", kind.random_case(seed, number, design, LONGEST_WORDS)
        expected = case.answer()
        coverage.add(Seen(case=case, expected=expected))
        yield Drawn(number=number, aim=aim, case=case, expected=expected)


MOST_TRIES = 4
"""Of an aim whose bins stay empty."""


def _wanted(coverage: Coverage, tried: dict[str, int]) -> str:
    """The aim of most empty bins, by how often it was tried; "" if there is none."""
    asked = dict.fromkeys(tried, 0)
    for one in coverage.missing:
        if one.aim in asked and tried[one.aim] < MOST_TRIES:
            asked[one.aim] += 1
    best = max(asked, key=lambda aim: asked[aim] / (1 + tried[aim]), default="")
    return best if best and asked[best] else ""
