"""Aims that every kind of design has: cases drawn for bins that chance seldom finds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np

from archsim.errors import InputError
from archsim.numbers import IntArray
from archsim.ports import Port
from rtl.conformance import Case
from rtl.coverage.port_bins import (
    BLOCKED,
    LONG_STALL,
    RESETS,
    STALLS,
    STEADY,
    last_cycle,
    reset_aim,
    results_of,
    thirds,
)
from rtl.draw import Draw

Aim = Callable[[Draw, Any, int], Case]
"""Draws a case of a design, of at most so many words.  Raises `InputError` where none fits."""


def aimed_case(
    aims: Mapping[str, Aim], aim: str, seed: int, number: int, design: Any, longest_words: int
) -> Case:
    """Case `number` of a seed, drawn for an aim.  The same numbers give the same case.

    Raises `InputError` for an aim that the kind has not, and where no case fits the design.
    """
    if aim not in aims:
        raise InputError(f"no aim {aim!r} for this design; known: {', '.join(aims)}")
    draw = Draw(seed, number, crc32(aim.encode()))
    case: Any = aims[aim](draw, design, longest_words)
    return replace(case, label=f"seed {seed} case {number} for {aim!r}")


@dataclass(frozen=True, kw_only=True, eq=False)
class ResetCase(Case):
    """A case behind a reset that comes in the middle of another: it knows nothing of it.

    cycles: that the other one runs.
    """

    case: Case
    interrupted: Case
    cycles: int
    label: str = ""

    @property
    def design(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Of both."""
        return self.case.design

    @property
    def before(self) -> tuple[Case, int]:
        return self.interrupted, self.cycles

    @property
    def name(self) -> str:
        return self.case.name

    @property
    def macs(self) -> int:
        return self.case.macs

    @property
    def ports(self) -> tuple[Port, ...]:
        return self.case.ports

    @property
    def counters(self) -> tuple[str, ...]:
        return self.case.counters

    @property
    def tail_cycles(self) -> int:
        return self.case.tail_cycles

    @property
    def layers_in_row(self) -> int:
        return self.case.layers_in_row

    @property
    def timed(self) -> bool:
        return self.case.timed

    def answer(self) -> Any:
        return self.case.answer()

    def gaps(self, expected: Any) -> Mapping[str, IntArray]:
        return self.case.gaps(expected)

    def waits(self, expected: Any) -> Mapping[str, IntArray]:
        return self.case.waits(expected)

    def figures_apart(self) -> Mapping[str, tuple[int, int]]:
        return self.case.figures_apart()

    def smaller(self) -> "list[Case]":
        """Without the reset; a smaller case behind it; a smaller run before it."""
        shorter = sorted({self.cycles // 2, self.cycles - 1} - {0, self.cycles})
        return [
            self.case,
            *(replace(self, case=one) for one in self.case.smaller()),
            *(replace(self, cycles=cycles) for cycles in shorter),
        ]

    def details(self) -> dict[str, str]:
        return {
            **self.case.details(),
            "reset": f"after {self.cycles} cycles of {self.interrupted.details()}",
        }


def general_aims(plain: Callable[[Draw, Any, int], Case]) -> dict[str, Aim]:
    """The aims that need no more of a kind than its plain random cases.

    plain: draws one.
    """

    def reset(draw: Draw, design: Any, longest_words: int, *, when: str) -> Case:
        interrupted = plain(draw, design, longest_words // 2)
        cycles = thirds(interrupted)[when] or range(1, 2)
        case = plain(draw, design, longest_words // 2)
        at = draw.whole(cycles[0], cycles[-1])
        return ResetCase(case=case, interrupted=interrupted, cycles=at, label="reset")

    def stalls(draw: Draw, design: Any, longest_words: int) -> Case:
        case = plain(draw, design, longest_words // 2)
        gaps = {name: own.copy() for name, own in case.waits(case.answer()).items()}
        for own in gaps.values():
            if len(own):
                own[min(draw.whole(1, len(own)), len(own) - 1)] += LONG_STALL
        return case.waiting(gaps)

    def steady(draw: Draw, design: Any, longest_words: int) -> Case:
        return never_waiting(plain(draw, design, longest_words))

    resets = {reset_aim(when): partial(reset, when=when) for when in RESETS}
    return {**resets, BLOCKED: blocked(plain, plain), STALLS: stalls, STEADY: steady}


def blocked(first: Aim, behind: Aim) -> Aim:
    """A reset when all of the first case is done that can be before its first result leaves."""

    def drawn(draw: Draw, design: Any, longest_words: int) -> Case:
        free = never_waiting(first(draw, design, longest_words // 2))
        cycles = last_cycle(free) + draw.whole(1, 40)
        gaps = {name: own.copy() for name, own in free.waits(free.answer()).items()}
        for name in results_of(free):
            gaps[name][:1] += cycles + 1
        case = behind(draw, design, longest_words // 2)
        interrupted = free.waiting(gaps)
        return ResetCase(case=case, interrupted=interrupted, cycles=cycles, label="reset")

    return drawn


def never_waiting(case: Case) -> Case:
    """The case with ports that never wait."""
    return case.waiting(
        {name: np.zeros_like(own) for name, own in case.waits(case.answer()).items()}
    )


__all__ = [
    "Aim",
    "ResetCase",
    "aimed_case",
    "blocked",
    "general_aims",
    "last_cycle",
    "never_waiting",
]
