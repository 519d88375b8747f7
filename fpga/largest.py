"""The largest design of a family that a board's chip holds and that meets its clock."""

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
from fpga.fit import LUTS_OF_A_LUT_RAM, check_design

__all__ = ["Mapped", "Point", "Search", "excess", "family_of", "largest_that_fits", "map_design"]

MOST = 256
"""Of each field that grows."""


@dataclass(frozen=True, kw_only=True)
class Mapped:
    """What a design takes behind its link, and how fast it may be before it is placed."""

    cells: Cells
    clock: Estimate


@dataclass(frozen=True, kw_only=True)
class Point:
    """A design that was looked at: size, what is too much of it by kind, the clock's estimate.

    cells: None of one that was not mapped, for it cannot fit whatever the tools do, or there is no
    such design; why says so.
    """

    size: int
    design: Design | None
    excess: Mapping[str, int]
    cells: Cells | None = None
    estimated_hz: float = 0.0
    why: str = ""
    wanted_hz: float = 0.0

    @property
    def fits(self) -> bool:
        """By its cells and by its clock's estimate."""
        return not self.why and not self.excess and self.estimated_hz >= self.wanted_hz

    @property
    def verdict(self) -> str:
        """In words."""
        if self.why:
            return self.why
        if self.excess:
            return ", ".join(f"{count:,} {what} too many" for what, count in self.excess.items())
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
    luts = cells.lut4
    if device.family == "ecp5":
        luts += cells.carry + LUTS_OF_A_LUT_RAM * cells.lut_rams
    needs = {
        "look-up tables": (luts, device.luts),
        "flip-flops": (cells.flip_flops, device.luts),
        "block RAMs": (cells.block_rams, device.block_rams),
        "multipliers": (cells.dsps, device.dsps),
    }
    return {what: used - has for what, (used, has) in needs.items() if used > has}


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
    """By bisection: what fits is taken to fit at every smaller size too.

    Sizes of which `check_design` says that they cannot fit are not mapped.  told: each point.
    """
    points: dict[int, Point] = {}

    def look(size: int) -> bool:
        points[size] = point = _point(size, sized, board, clock_hz, mapped)
        told(point)
        return point.fits

    fits, too_large = 0, 1
    while too_large <= MOST and look(too_large):
        fits, too_large = too_large, 2 * too_large
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        if look(middle):
            fits = middle
        else:
            too_large = middle
    return Search(points=tuple(points[size] for size in sorted(points)))


def _point(
    size: int,
    sized: Callable[[int], Design],
    board: Board,
    clock_hz: float,
    mapped: Callable[[Design], Mapped],
) -> Point:
    try:
        design = sized(size)
    except InputError as error:
        return Point(size=size, design=None, excess={}, why=str(error))
    try:
        check_design(design, board.chip)
    except InputError as error:
        why = str(error).partition("it needs at least ")[2].partition(";")[0]
        return Point(size=size, design=design, excess={}, why=f"needs at least {why}")
    found = mapped(design)
    return Point(
        size=size,
        design=design,
        excess=excess(found.cells, board.chip),
        cells=found.cells,
        estimated_hz=found.clock.fmax_hz,
        wanted_hz=clock_hz,
    )
