"""The largest design of a family that a board's chip holds and that meets its clock.

To map a core takes yosys a minute or more, to count its components milliseconds.  So the smallest
core is mapped, what larger ones take more is estimated (`fpga.part_costs`), and the largest that
should fit is mapped; that corrects the estimate, and so on until nothing between is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from archsim.errors import InputError, nearest, require
from archsim.machine.design import Design
from fpga.boards import Board
from fpga.cells import Cells, cells_of
from fpga.devices import Device
from fpga.estimate import Estimate, estimate_clock
from fpga.fit import check_design, taken
from fpga.part_costs import cells_beside

__all__ = ["Mapped", "Point", "Search", "excess", "family_of", "largest_that_fits", "map_design"]

MOST = 256
"""Of each field that grows."""
NEAR = 0.05
"""A design that is estimated to be too large by no more of the chip than this is mapped."""


@dataclass(frozen=True, kw_only=True)
class Mapped:
    """What a design takes behind its link, and how fast it may be before it is placed."""

    cells: Cells
    clock: Estimate


@dataclass(frozen=True, kw_only=True)
class Point:
    """A design that was looked at: size, what is too much of it by kind, the clock's estimate.

    cells: None of one that cannot fit whatever the tools do, or there is no such design; why says
    so.  mapped: cells are yosys' own, and there is an estimate of the clock.
    """

    size: int
    design: Design | None
    excess: Mapping[str, int]
    cells: Cells | None = None
    estimated_hz: float = 0.0
    why: str = ""
    wanted_hz: float = 0.0
    mapped: bool = False

    @property
    def fits(self) -> bool:
        """By its cells and by its clock's estimate."""
        return self.mapped and not self.excess and self.estimated_hz >= self.wanted_hz

    @property
    def verdict(self) -> str:
        """In words."""
        if self.why:
            return self.why
        if self.excess:
            said = ", ".join(f"{count:,} {what} too many" for what, count in self.excess.items())
            return said if self.mapped else f"by estimate {said}"
        return "fits" if self.fits else f"too slow for {self.wanted_hz / 1e6:g} MHz"

    def record(self) -> dict[str, Any]:
        """As plain data."""
        cells = None if self.cells is None else asdict(self.cells)
        return {
            "size": self.size,
            "design": None if self.design is None else self.design.summary,
            "fits": self.fits,
            "verdict": self.verdict,
            "excess": dict(self.excess),
            "mapped": self.mapped,
            "cells": cells,
            "estimated_mhz": round(self.estimated_hz / 1e6, 1),
        }


@dataclass(frozen=True, kw_only=True)
class Search:
    """Every design that was looked at, by size, and the largest that fits."""

    points: tuple[Point, ...]

    @property
    def largest(self) -> Point | None:
        """None if not even the smallest fits."""
        return max((one for one in self.points if one.fits), key=lambda one: one.size, default=None)


def excess(cells: Cells, device: Device) -> dict[str, int]:
    """By how much a netlist is too large for a chip, by what there is too much of."""
    needs = taken(cells, device).items()
    return {what: used - has for what, (used, has) in needs if used > has}


def family_of(design: Design, grow: Sequence[str]) -> Callable[[int], Design]:
    """Designs like this one, by size: that many in each of the fields that grow.

    grow: names of fields; without any those that the design's kind says.  Raises `InputError` for
    a field that is none, and for a kind that says none.
    """
    names = tuple(grow) or design.growing
    require(
        len(names) > 0,
        f"{design.kind} machines do not say what makes them larger; say it: --grow FIELD,FIELD",
    )
    for name in names:
        value = getattr(design, name, None)
        if type(value) is not int:
            known = [key for key, one in vars(design).items() if type(one) is int]
            raise InputError(
                f"--grow must name whole numbers of the design; {nearest(name, known)}"
            )

    def sized(size: int) -> Design:
        changed: Any = dict.fromkeys(names, size)
        return replace(design, **changed)  # pyright: ignore[reportArgumentType, reportUnknownVariableType]

    return sized


def map_design(design: Design, board: Board, progress: Callable[[str], object]) -> Mapped:
    """By yosys, as `archsim fpga build` does it, which finds the answer again."""
    from fpga.build import map_for_board

    netlist = map_for_board(design, board, progress=progress)
    return Mapped(cells=cells_of(netlist), clock=estimate_clock(netlist, board.chip.family))


def largest_that_fits(
    sized: Callable[[int], Design],
    board: Board,
    *,
    clock_hz: float,
    mapped: Callable[[Design], Mapped],
    told: Callable[[Point], object] = lambda point: None,
) -> Search:
    """What fits is taken to fit at every smaller size too.

    told: each point that is looked at.  Sizes of which `check_design` says that they cannot fit
    are not mapped, nor are those that are estimated to be too large by more than `NEAR`.
    """
    look = _Looking(sized, board, clock_hz, mapped, told)
    fits, beyond = 1, MOST + 1
    if not look.at(1).fits:
        return look.search
    while beyond - fits > 1:
        size = look.guess(fits, beyond)
        point = look.at(size) if size > fits else look.just_beyond(fits + 1)
        if point.fits:
            fits = point.size
        else:
            beyond = point.size
    return look.search


class _Looking:
    """At sizes of a family, and what is known of them."""

    def __init__(
        self,
        sized: Callable[[int], Design],
        board: Board,
        clock_hz: float,
        mapped: Callable[[Design], Mapped],
        told: Callable[[Point], object],
    ) -> None:
        self._sized, self._board, self._clock_hz = sized, board, clock_hz
        self._mapped, self._told = mapped, told
        self._points: dict[int, Point] = {}

    @property
    def search(self) -> Search:
        return Search(points=tuple(self._points[size] for size in sorted(self._points)))

    def at(self, size: int) -> Point:
        """Mapped, if it is a design that may fit."""
        point = self._refused(size)
        if point is None:
            design = self._sized(size)
            found = self._mapped(design)
            point = Point(
                size=size,
                design=design,
                excess=excess(found.cells, self._board.chip),
                cells=found.cells,
                estimated_hz=found.clock.fmax_hz,
                wanted_hz=self._clock_hz,
                mapped=True,
            )
        return self._kept(point)

    def just_beyond(self, size: int) -> Point:
        """The smallest that is estimated to be too large: mapped if that is not sure."""
        point = self._refused(size) or self._estimated(size)
        chip = self._board.chip
        has = {"block RAMs": chip.block_rams, "multipliers": chip.dsps}
        near = all(count <= NEAR * has.get(what, chip.luts) for what, count in point.excess.items())
        return self.at(size) if near and not point.why else self._kept(point)

    def guess(self, fits: int, beyond: int) -> int:
        """The largest size between that is estimated to fit, or the one that does.

        Where one is known to be too slow, at most the middle.
        """
        slow = beyond in self._points and self._points[beyond].mapped
        most = (fits + beyond) // 2 if slow and not self._points[beyond].excess else beyond - 1
        size = fits
        while size < most and self._refused(size + 1) is None:
            if self._estimated(size + 1).excess:
                break
            size += 1
        return size

    def _kept(self, point: Point) -> Point:
        self._points[point.size] = point
        self._told(point)
        return point

    def _refused(self, size: int) -> Point | None:
        try:
            design = self._sized(size)
        except InputError as error:
            return Point(size=size, design=None, excess={}, why=str(error))
        try:
            check_design(design, self._board.chip)
        except InputError as error:
            why = str(error).partition("it needs at least ")[2].partition(";")[0]
            return Point(size=size, design=design, excess={}, why=f"needs at least {why}")
        return None

    def _estimated(self, size: int) -> Point:
        """By the nearest that was mapped."""
        known = [one for one in self._points.values() if one.mapped]
        near = min(known, key=lambda one: abs(one.size - size))
        assert near.cells is not None
        assert near.design is not None
        design, chip = self._sized(size), self._board.chip
        cells = cells_beside(design.components, near.cells, near.design.components, chip)
        return Point(size=size, design=design, excess=excess(cells, chip), cells=cells)
