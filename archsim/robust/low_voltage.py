"""What a model bears of a machine's memories: series over voltages, and the best voltages.

A *series* is one memory in one form at falling voltages, all others at V_min.  *Best* are the
forms and voltages of all memories together that cost least energy where the error, at most, grows
by a bound; beside them, one voltage for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from archsim.errors import InputError
from archsim.machine.design import Design
from archsim.robust.machine_points import Energy, MachinePoints
from archsim.robust.placed import (
    FORMS,
    VOLTAGES,
    At,
    able,
    memories_of,
    no_memory,
    of_operands,
    refusal,
)

CHANCE_PERCENT = 75.0
"""A series ends behind the first point that is worse: from there on it is at chance."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """Memories at voltages: errors in per cent by chip, and energy of a picture."""

    at: tuple[At, ...]
    errors: tuple[float, ...]
    energy: Energy

    @property
    def error(self) -> float:
        """The mean over chips."""
        return sum(self.errors) / len(self.errors)

    @property
    def deviation(self) -> float:
        """Over chips, of the population."""
        return (sum((one - self.error) ** 2 for one in self.errors) / len(self.errors)) ** 0.5


@dataclass(frozen=True, kw_only=True)
class Series:
    """A memory in a form at falling voltages; refused: why there is none."""

    memory: str
    form: str
    points: tuple[Point, ...] = ()
    refused: str = ""

    def lowest(self, most_percent: float) -> float | None:
        """The lowest voltage down to which all errors are at most so large; None if none is."""
        found = None
        for point in self.points:
            if point.error > most_percent:
                break
            found = point.at[0].voltage
        return found


@dataclass(frozen=True, kw_only=True)
class MachineAtLowVoltage:
    """A machine: at V_min, its series, and the best of them within `loss` per cent more errors.

    best, one_voltage: None where nothing below V_min is borne.
    """

    design: Design
    nominal: Point
    series: tuple[Series, ...]
    loss: float
    best: Point | None
    one_voltage: Point | None

    @property
    def weak(self) -> str:
        """The memory that, as it is, needs the highest voltage: of several, that with the larger
        error there or below; "" where none may fail."""
        plain = [one for one in self.series if one.form == "plain" and one.points]
        bound = self.nominal.error + self.loss

        def errors(one: Series) -> float:
            """Of all voltages, where those behind the last one tried have nothing right."""
            missing = len(VOLTAGES) - len(one.points)
            return sum(point.error for point in one.points) + 100 * missing

        ranked = sorted(plain, key=lambda one: (one.lowest(bound) or 1.0, errors(one)))
        return ranked[-1].memory if ranked else ""


def at_low_voltage(
    design: Design, points: MachinePoints, loss: float = 1.0, memories: Sequence[str] = ()
) -> MachineAtLowVoltage:
    """Of a machine the memories that are named, those of operands where none is.

    Raises InputError where it cannot hold the model's codes, for memories that it has not, and
    where none of them may fail.
    """
    for name in memories:
        if name not in memories_of(design):
            raise no_memory(design, name)
    looked_at = tuple(dict.fromkeys(memories)) or of_operands(design)
    _require_able(design, looked_at)
    nominal = point(design, points, ())
    series = tuple(all_series(design, points, looked_at))
    return MachineAtLowVoltage(
        design=design,
        nominal=nominal,
        series=series,
        loss=loss,
        best=_best(design, points, series, nominal.error + loss),
        one_voltage=_one_voltage(design, points, series, nominal.error + loss),
    )


def _require_able(design: Design, memories: Sequence[str]) -> None:
    """Refuse memories of which none may fail in any form, for what each meets as it is."""
    failing = able(design)
    if not any(name in failing for name in memories):
        why = dict.fromkeys(refusal(design, name, "plain") for name in memories)
        names = ", ".join(memories)
        raise InputError(f"{design.kind}: no cells may fail of {names}: {'; '.join(why)}")


def point(design: Design, points: MachinePoints, at: Sequence[At]) -> Point:
    """Memories at voltages, measured or known."""
    errors = tuple(points.errors(design, at))
    return Point(at=tuple(at), errors=errors, energy=points.energy(design, at))


def all_series(design: Design, points: MachinePoints, memories: Sequence[str]) -> Iterator[Series]:
    """Of such memories in every form."""
    for memory, form in product(memories, FORMS):
        refused = refusal(design, memory, form)
        found: list[Point] = []
        for voltage in () if refused else sorted(VOLTAGES, reverse=True):
            found.append(point(design, points, [At(memory, form, voltage)]))
            if found[-1].error > CHANCE_PERCENT:
                break
        yield Series(memory=memory, form=form, points=tuple(found), refused=refused)


def _best(
    design: Design, points: MachinePoints, series: Sequence[Series], most_percent: float
) -> Point | None:
    """The cheapest together, tried from the cheapest on.

    What a memory saves alone orders the trials; a point that is lower in one memory than one that
    was too bad, and nowhere higher, is not tried: faults of the former are among the latter's.
    """
    nominal = points.energy(design).total_pj
    choices: list[list[tuple[float, At | None]]] = []
    for memory in dict.fromkeys(one.memory for one in series if one.points):
        own: list[tuple[float, At | None]] = [(0.0, None)]
        for one in series:
            if one.memory == memory:
                own += [
                    (found.energy.total_pj - nominal, found.at[0])
                    for found in one.points
                    if found.error <= most_percent and found.energy.total_pj < nominal
                ]
        choices.append(own)
    combined = sorted(product(*choices), key=lambda some: sum(energy for energy, _ in some))
    failed: list[tuple[At | None, ...]] = []
    for some in combined:
        chosen = tuple(at for _, at in some)
        if not any(chosen) or any(_below(chosen, other) for other in failed):
            continue
        found = point(design, points, [one for one in chosen if one is not None])
        if found.error <= most_percent:
            return found
        failed.append(chosen)
    return None


def _below(some: Sequence[At | None], other: Sequence[At | None]) -> bool:
    """Whether every memory is as in the other, or in its form at a voltage that is no higher."""
    return all(
        one == two
        or two is None
        or (one is not None and one.form == two.form and one.voltage <= two.voltage)
        for one, two in zip(some, other, strict=True)
    )


def _one_voltage(
    design: Design, points: MachinePoints, series: Sequence[Series], most_percent: float
) -> Point | None:
    """All memories as they are, at the lowest common voltage that is borne."""
    best = None
    memories = [one.memory for one in series if one.form == "plain" and one.points]
    for voltage in sorted(VOLTAGES, reverse=True) if memories else ():
        found = point(design, points, [At(one, "plain", voltage) for one in memories])
        if found.error > most_percent:
            break
        best = found
    return best


__all__ = [
    "MachineAtLowVoltage",
    "Point",
    "Series",
    "at_low_voltage",
    "point",
]
