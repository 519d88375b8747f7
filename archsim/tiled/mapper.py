"""How a layer's mapping is found: roughly, near the best or exactly the best, and best by what.

    Mapper(search="exact", objective="energy", technology="45nm").find("conv1", problem, design)

All search tilings, orders of the loops, images in a tile and groups side by side; the mapping is
a `Tiling`.  `docs/mapping.md` says what is searched, and proves that nothing better is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from archsim.errors import InputError, nearest
from archsim.kernels import Kernel
from archsim.layer import problem as pb
from archsim.layer.problem import Problem, Tiling
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled.mapper_options import DEFAULT_TECHNOLOGY
from archsim.tiled.objective import BY_CYCLES, NO_PRICES, FloatArray, objective_number, prices_of

if TYPE_CHECKING:
    from archsim.tiled.design import CoreDesign

Search = Literal["rough", "fast", "exact"]
SEARCHES: tuple[Search, ...] = ("rough", "fast", "exact")

Aim = tuple[FloatArray, int]
"""Prices and objective, as `archsim.tiled.objective.keys_of` takes them."""

MOST_STEPS = 1 << 28
"""Of the exact search, a layer: some minutes."""

LONGEST_AXIS = 1 << 20
"""Sizes of a tile along an axis that the exact search goes through."""


@dataclass(frozen=True, kw_only=True)
class Mapper:
    """What finds mappings.

    search: "fast", within 0.5 % of the best of very many, and of those the fewest bytes
    (`archsim.tiled.near`); "rough", the fewest bytes of halves and even parts, a guess that costs a
    tenth of it (`archsim.tiled.choice`); or "exact", the best of all legal mappings.  objective:
    "cycles", "energy", "edp" or "bytes" (`archsim.tiled.objective`).  technology: name or TOML file
    of what prices energy.
    Raises `InputError` for other names.
    """

    search: str = "fast"
    objective: str = "cycles"
    technology: str = DEFAULT_TECHNOLOGY

    def __post_init__(self) -> None:
        known: tuple[str, ...] = SEARCHES
        if self.search not in known:
            raise InputError(f"there is no mapper {self.search!r}; {nearest(self.search, known)}")
        objective_number(self.objective)

    @property
    def needs_prices(self) -> bool:
        """Whether energy decides."""
        return self.objective in ("energy", "edp")

    @property
    def kernels(self) -> tuple[Kernel[..., Any], ...]:
        """The kernels of which the search of every layer is made."""
        from archsim.tiled.choice import choose_alone
        from archsim.tiled.downhill import best_of_few
        from archsim.tiled.exact import best_of_all
        from archsim.tiled.near import near_tiling

        first = choose_alone if self.search == "rough" else near_tiling
        few = (best_of_few,) if self.objective != "cycles" else ()
        return first, *few, *((best_of_all,) if self.search == "exact" else ())

    def find(
        self,
        name: str,
        problem: Problem,
        design: CoreDesign,
        *,
        machine: IntArray | None = None,
        share: bool = True,
    ) -> Tiling | None:
        """The mapping of a layer; None if none fits.

        machine: of the design, with memories of other depths.  share: groups may lie side by side.
        Raises `InputError` for an energy that the technology cannot price, and where the exact
        search takes too long.
        """
        from archsim.tiled.choice import find_tiling

        machine = design.machine if machine is None else machine
        first = None if self.search == "rough" else find_near(problem, machine, share=share)
        first = first or find_tiling(problem, machine, share=share)
        if self.search != "exact" and self.objective == "cycles":
            return first
        prices = prices_of(design, self.technology) if self.needs_prices else NO_PRICES
        aim = prices, objective_number(self.objective)
        find = find_exact if self.search == "exact" else find_downhill
        return find(name, problem, machine, aim, first, share=share)


FAST = Mapper()
"""The mapper that is meant where none is named."""


def _group_counts(problem: Problem, machine: IntArray, *, share: bool) -> range:
    """How many groups may lie side by side."""
    together = mc.machine_record(machine).output_vector
    shared = share and problem.groups > 1 and problem.filters % together == 0
    return range(1, problem.groups + 1 if shared else 2)


def _first_keys(
    problem: Problem, machine: IntArray, aim: Aim, first: Tiling | None
) -> npt.NDArray[np.float64]:
    """The keys of what is known already, infinite of nothing: [2]."""
    from archsim.tiled.measured import keys_of_tiling

    best = np.full(2, np.inf)
    if first is not None:
        block = problem.side_by_side(first.groups).vector()
        best[:] = keys_of_tiling(block, machine, aim, first.vector())
    return best


def find_near(problem: Problem, machine: IntArray, *, share: bool) -> Tiling | None:
    """A mapping of about the fewest cycles; None if none fits in less than a million tiles."""
    from archsim.tiled.near import EFFORT_COLUMNS, near_tiling
    from archsim.tiled.near_layer import new_lists
    from archsim.tiled.near_memo import ROOM, new_memo

    best, tilings = np.full(2, np.inf), np.zeros((2, pb.TILING_COLUMNS), np.int64)
    effort, memo = np.zeros(EFFORT_COLUMNS, np.int64), new_memo(ROOM)
    vector, lists = problem.vector(), new_lists()
    near_tiling(vector, machine, share, best, tilings, effort, memo, lists, 0)
    return Tiling.from_vector(tilings[0]) if np.isfinite(best[0]) else None


def find_downhill(
    name: str, problem: Problem, machine: IntArray, aim: Aim, first: Tiling | None, *, share: bool
) -> Tiling | None:
    """The best of some mappings, `first` among them; None if none fits."""
    del name, share  # groups side by side are those of `first`
    from archsim.tiled.downhill import best_of_few

    best, chosen = _first_keys(problem, machine, aim, first), first
    tiling, before = np.zeros(pb.TILING_COLUMNS, np.int64), tuple(best)
    best_of_few(problem.vector(), machine, (*aim, best, tiling))
    if tuple(best) < before:
        chosen = replace(Tiling.from_vector(tiling), groups=1)
    return chosen


def find_exact(
    name: str, problem: Problem, machine: IntArray, aim: Aim, first: Tiling | None, *, share: bool
) -> Tiling | None:
    """The best of all legal mappings; of equals the first that is found, `first` before all.

    Raises `InputError` for a search of more steps than MOST_STEPS.
    """
    from archsim.tiled.exact import best_of_all
    from archsim.tiled.measured import STEPS

    axes = problem.out_height, problem.out_width, problem.images, problem.filters, problem.channels
    chosen, steps = first, 0
    if aim[1] != BY_CYCLES:
        chosen = find_downhill(name, problem, machine, aim, first, share=share)
    best = _first_keys(problem, machine, aim, chosen)
    for groups in _group_counts(problem, machine, share=share):
        tiling, before = np.zeros(pb.TILING_COLUMNS, np.int64), tuple(best)
        block = problem.side_by_side(groups).vector()
        if max(axes) <= LONGEST_AXIS:
            goal = *aim, best, tiling
            found = best_of_all(block, machine, goal, MOST_STEPS - steps, groups > 1)
            steps += int(found[STEPS])
        if max(axes) > LONGEST_AXIS or steps > MOST_STEPS:
            raise InputError(
                f"{name}: the exact mapper gives up after {MOST_STEPS:,} steps, or an axis of "
                f"{LONGEST_AXIS:,}; take the fast one"
            )
        if tuple(best) < before:
            chosen = replace(Tiling.from_vector(tiling), groups=groups)
    return chosen


__all__ = ["FAST", "SEARCHES", "Mapper"]
