"""Which kinds of memories go with which rules of a sparse core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archsim.errors import InputError, require
from archsim.memory import PlainStream

if TYPE_CHECKING:
    from archsim.machines.scnn.design import Scnn

SUMS = "a sum that is read otherwise does not commute with the additions behind it"
"""Why banks must give back what was written."""

MOST_PLACES = 1 << 20
"""Of the FIFOs of all PEs: of more the draws of one would be another's."""


def check_memories(design: Scnn) -> None:
    """Raise `InputError` for kinds that do not hold what a memory is for, for memories that
    DNNsim's count has not, for lists with zeros in cells that fail, and for FIFOs whose cells fail
    as neither model nor hardware follows."""
    _check_kinds(design)
    _check_rules(design)


def _check_kinds(design: Scnn) -> None:
    """Each memory by itself."""
    design.activation_memory.check(design.stream_use("iaram"))
    sums = design.accumulator_memory
    require(sums.exact, f"accumulator_memory must be exact, not {sums.kind}: {SUMS}")
    for memory in ("weight", "accumulator"):
        use = design.use(memory)
        try:
            design.bank(memory).check(use)
        except InputError as error:
            raise InputError(f"{use.field}: {error}") from error


def _check_rules(design: Scnn) -> None:
    """Memories, and what the design does with them."""
    kind = design.weight_memory
    if design.counts_as_dnnsim:
        where = "where cycles are counted as DNNsim does"
        both = design.sparsity == "both"
        require(both, f"sparsity must be both {where}, not {design.sparsity}")
        plain = design.activation_memory == PlainStream()
        require(plain, f"activation_memory must be plain {where}")
        require(kind.exact, f"weight_memory must be exact {where}")
    require(
        design.lists_as_meant or design.sparsity == "both",
        f"sparsity must be both where cells of lists fail, not {design.sparsity}",
    )
    if kind.exact:
        return
    places = design.weight_fifo_rows
    require(
        places <= MOST_PLACES,
        f"weight_memory: the FIFOs of all PEs must have at most {MOST_PLACES} places to fail, in "
        f"powers of two each, not {places}",
    )
    require(
        not design.activation_memory.by_value,
        "activation_memory must not compress values where cells of weights fail, not be "
        f"{design.activation_memory.kind}: lists of the ofmap may then be longer than an OARAM",
    )


__all__ = ["check_memories"]
