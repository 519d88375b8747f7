"""Whether groups of a layer may lie side by side as a tiling says; mappings that are illegal."""

from __future__ import annotations

from archsim.errors import InputError
from archsim.layer.problem import Problem, Tiling


class MappingError(InputError):
    """A mapping by hand that a design cannot take."""


def checked_block(name: str, problem: Problem, together: int, tiling: Tiling) -> Problem:
    """The problem of the tiling's blocks of groups (`Problem.side_by_side`).

    together: filters whose outputs share a scale.  Raises `MappingError` for more groups than
    there are, for groups whose outputs would share a scale, and for a tile of a part of a block.
    """
    groups = tiling.groups
    if groups == 1:
        return problem
    if groups > problem.groups:
        raise MappingError(
            f"{name}: groups must be at most {problem.groups}, those of the layer, not {groups}"
        )
    if problem.filters % together:
        raise MappingError(
            f"{name}: groups must be 1, not {groups}: {together} outputs share a scale, which "
            f"groups of {problem.filters} filters side by side would mix"
        )
    block = problem.side_by_side(groups)
    for what, given, wanted in (
        ("filters", tiling.filters, block.filters),
        ("channels", tiling.channels, block.channels),
    ):
        if given != wanted:
            raise MappingError(
                f"{name}: {what} must be {wanted}, all of the {groups} groups side by side, "
                f"not {given}"
            )
    return block
