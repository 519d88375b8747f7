"""What a user chooses of how layers are mapped, on cores that are walked by tiles.

Every such core's record has these options: the searches themselves are imported when one is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archsim.errors import require
from archsim.machine.option import Option, Options
from archsim.tiled.mapping_file import MAPPINGS

if TYPE_CHECKING:
    from archsim.tiled.mapper import Mapper

DEFAULT_TECHNOLOGY = "45nm"
"""That of `archsim.energy`."""


def _search(text: str) -> str:
    from archsim.tiled.mapper import Mapper

    return Mapper(search=text).search


def _objective(text: str) -> str:
    from archsim.tiled.mapper import Mapper

    return Mapper(objective=text).objective


MAPPER = Option(
    name="mapper",
    says="how mappings are found",
    more="fast (the default: within 0.5 % of the best of very many), rough or exact",
    value="NAME",
    read=_search,
)

OBJECTIVE = Option(
    name="objective",
    says="what mappings are the best by",
    more="cycles (the default), energy, edp (energy times cycles), or bytes",
    value="NAME",
    read=_objective,
)

OBJECTIVE_TECHNOLOGY = Option(
    name="objective_technology",
    says="whose energy the objective means",
    more=f"a technology, or a file of one; {DEFAULT_TECHNOLOGY} by default",
    value="NAME",
    read=str,
)

MAPPER_OPTIONS = (MAPPINGS, MAPPER, OBJECTIVE, OBJECTIVE_TECHNOLOGY)


def mapper_of(options: Options) -> Mapper:
    """The mapper of options.  Raises `InputError` for unknown names."""
    from archsim.tiled.mapper import Mapper

    mapper = Mapper(
        search=str(options.get("mapper", "fast")),
        objective=str(options.get("objective", "cycles")),
        technology=str(options.get("objective_technology", DEFAULT_TECHNOLOGY)),
    )
    require(
        mapper.needs_prices or "objective_technology" not in options,
        f"objective_technology is of energy and edp; the objective is {mapper.objective}",
    )
    return mapper


__all__ = ["MAPPER_OPTIONS", "mapper_of"]
