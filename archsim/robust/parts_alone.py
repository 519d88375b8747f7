"""Where errors of a machine's memories hurt: each memory failing in one layer alone, and in one
bit of every value alone (`archsim.robust.where`), at a supply at which it errs and still works."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from archsim.errors import InputError
from archsim.machine.design import Design
from archsim.robust.low_voltage import CHANCE_PERCENT, MachineAtLowVoltage, Series
from archsim.robust.machine_points import MachinePoints
from archsim.robust.placed import At
from archsim.robust.where import layers_of


@dataclass(frozen=True, kw_only=True)
class PartsAlone:
    """A plain memory at a voltage: errors in per cent by chip, of all of it (`whole`), by layer, in
    order, and by bit of a value, the lowest first."""

    at: At
    whole: tuple[float, ...]
    by_layer: Mapping[str, tuple[float, ...]]
    by_bit: Sequence[tuple[float, ...]]


def parts_alone(found: MachineAtLowVoltage, points: MachinePoints) -> Iterator[PartsAlone]:
    """Of every memory that was looked at and may fail as it is.

    Its voltage is the lowest at which no more than CHANCE_PERCENT are wrong, or the highest.
    """
    for series in found.series:
        if series.form == "plain" and series.points:
            yield _of(found.design, points, series)


def _of(design: Design, points: MachinePoints, series: Series) -> PartsAlone:
    working = [one for one in series.points if one.error <= CHANCE_PERCENT]
    point = (working or series.points[:1])[-1]
    at = point.at[0]
    return PartsAlone(
        at=at,
        whole=point.errors,
        by_layer={
            name: tuple(points.errors_in_layer(design, at, name))
            for name in layers_of(points.model)
        },
        by_bit=[tuple(points.errors_in_bit(design, at, bit)) for bit in range(_bits(design, at))],
    )


def _bits(design: Design, at: At) -> int:
    """Of its values; none where a machine's words have no lanes of bits."""
    try:
        return design.lane_bits(at.memory)
    except InputError:
        return 0


def mean(errors: Sequence[float]) -> float:
    """Over chips."""
    return sum(errors) / len(errors)


__all__ = ["PartsAlone", "mean", "parts_alone"]
