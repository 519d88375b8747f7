"""The best of all choices of a layer on a sparse core, for given values.

Cycles hang on the values, so a choice is timed to be judged; one whose least cycles and bytes
(`archsim.machines.scnn.bound`) are no better than what was found is not.  `docs/mapping.md` says
what is searched; `tests/archsim/test_scnn_exact.py` compares it with timing every choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from archsim.errors import InputError, require
from archsim.machines.scnn.accounting import bytes_of
from archsim.machines.scnn.bound import Least, least_of_shape, least_of_strips
from archsim.machines.scnn.choice import Choice, shapes
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.layer import (
    Layer,
    LayerPlan,
    chosen_plan,
    layer_tensors,
    plan_layer,
    planned_timing,
)
from archsim.machines.scnn.lists import stored_before
from archsim.machines.scnn.mapper_options import Objective, objective_named
from archsim.machines.scnn.strips import Strip, that_fit, with_groups
from archsim.machines.scnn.timed_layer import ScnnTiming
from archsim.numbers import IntArray
from workloads.operands import Operands

Key = tuple[int, int]
"""What a choice is judged by: the objective, then the other one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Chosen:
    """The best choice of a layer, None if it is what the core does by itself, and its timing;
    timed: how many choices were."""

    choice: Choice | None
    timing: ScnnTiming
    timed: int


def best_choice(
    design: Scnn, layer: Layer, operands: Operands, objective: Objective = "cycles"
) -> Chosen:
    """The choice of the fewest cycles, and of those the fewest bytes; objective bytes: the other
    way round.  Of equals what the core does by itself, then the largest strips, then the largest
    groups.

    Raises InputError as `plan_layer`, for an unknown objective, and of a design whose cycles are
    DNNsim's, which chooses nothing.
    """
    require(
        not design.counts_as_dnnsim,
        f"{layer.name}: nothing is chosen where cycles are counted as DNNsim does",
    )
    require(
        design.values_as_meant,
        f"{layer.name}: nothing is searched where cells fail: bounds are of lists as they were "
        "meant",
    )
    search = _Search(design, layer, operands, objective_named(objective))
    for shape in shapes(design, layer):
        search.try_shape(shape)
    return search.best


class _Search:
    """The best choice so far.  judged: plans that were, so that none is twice."""

    def __init__(
        self, design: Scnn, layer: Layer, operands: Operands, objective: Objective
    ) -> None:
        self._design, self._of = design, (layer, operands)
        self._objective: Objective = objective
        self._tensors = layer_tensors(design, layer, operands)
        plan = plan_layer(design, layer, operands)
        self.best = Chosen(choice=None, timing=planned_timing(design, plan), timed=1)
        self._judged = {_cuts(_strips(plan))}

    def try_shape(self, shape: Choice) -> None:
        """With every size of groups, the largest first."""
        if not self._may_win(least_of_shape(self._design, *self._of, shape)):
            return
        try:
            plan = chosen_plan(self._design, *self._of, self._tensors, shape)
        except InputError:
            return
        strips = _strips(plan)
        before = _before(self._design, strips)
        for size in range(max(one.mapping.group_size for one in strips), 0, -1):
            smaller = [with_groups(self._design, one, size) for one in strips]
            if self._may_win(least_of_strips(self._design, smaller, before)):
                self._time(plan, smaller, replace(shape, filter_group=size))

    def _may_win(self, least: Least) -> bool:
        key = _ordered(least.cycles, least.bytes_moved, self._objective)
        return key < self._key(self.best.timing)

    def _time(self, plan: LayerPlan, strips: Sequence[Strip], choice: Choice) -> None:
        fitting = that_fit(self._design, strips)
        cuts = _cuts(fitting)
        if cuts in self._judged:
            return
        self._judged.add(cuts)
        timing = planned_timing(self._design, _with_strips(plan, fitting))
        timed = self.best.timed + 1
        if self._key(timing) < self._key(self.best.timing):
            self.best = Chosen(choice=choice, timing=timing, timed=timed)
        self.best = replace(self.best, timed=timed)

    def _key(self, timing: ScnnTiming) -> Key:
        return _ordered(timing.cycles, sum(bytes_of(timing).values()), self._objective)


def _strips(plan: LayerPlan) -> list[Strip]:
    return [strip for some in plan.passes for strip in some]


def _before(design: Scnn, strips: Sequence[Strip]) -> list[IntArray]:
    """`stored_before` of each pass, made once for passes of the same weights."""
    made: dict[tuple[int, ...], IntArray] = {}
    found: list[IntArray] = []
    for strip in strips:
        weight, rows, columns = strip.operands.weight, strip.mapping.rows, strip.mapping.columns
        lies = int(weight.__array_interface__["data"][0])
        key = lies, *weight.shape, rows.stride, columns.stride
        if key not in made:
            made[key] = stored_before(design, strip.mapping, weight)
        found.append(made[key])
    return found


def _with_strips(plan: LayerPlan, strips: Sequence[Strip]) -> LayerPlan:
    """The plan with others in place of its strips, in order."""
    rest = iter(strips)
    return replace(plan, passes=tuple(tuple(next(rest) for _ in some) for some in plan.passes))


def _cuts(strips: Sequence[Strip]) -> tuple[object, ...]:
    """What tells plans of one layer apart."""
    return tuple((one.problem, one.rows, one.columns, one.mapping.group_size) for one in strips)


def _ordered(cycles: int, moved: int, objective: Objective) -> Key:
    return (cycles, moved) if objective == "cycles" else (moved, cycles)


__all__ = ["Chosen", "best_choice"]
