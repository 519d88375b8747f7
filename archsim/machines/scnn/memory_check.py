"""Which kinds of memories go with which rules of a sparse core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archsim.errors import InputError, require
from archsim.memory import PlainStream

if TYPE_CHECKING:
    from archsim.machines.scnn.design import Scnn

MOST_PLACES = 1 << 20
"""Of the FIFOs, or of a half of the banks, of all PEs: of more the draws of one would be
another's."""


def check_memories(design: Scnn) -> None:
    """Raise `InputError` for kinds that do not hold what a memory is for, for memories that
    DNNsim's count has not, for lists with zeros where cells fail, and for FIFOs and banks whose
    cells fail as neither model nor hardware follows."""
    _check_kinds(design)
    _check_rules(design)


def _check_kinds(design: Scnn) -> None:
    """Each memory by itself."""
    design.activation_memory.check(design.stream_use("iaram"))
    for memory in ("weight", "accumulator"):
        use = design.use(memory)
        try:
            design.bank(memory).check(use)
        except InputError as error:
            raise InputError(f"{use.field}: {error}") from error


def _check_rules(design: Scnn) -> None:
    """Memories, and what the design does with them."""
    kind, sums = design.weight_memory, design.accumulator_memory
    if design.counts_as_dnnsim:
        where = "where cycles are counted as DNNsim does"
        both = design.sparsity == "both"
        require(both, f"sparsity must be both {where}, not {design.sparsity}")
        plain: bool = design.activation_memory == PlainStream()
        require(plain, f"activation_memory must be plain {where}")
        require(kind.exact, f"weight_memory must be exact {where}")
        require(sums.exact, f"accumulator_memory must be exact {where}")
    require(
        design.values_as_meant or design.sparsity == "both",
        f"sparsity must be both where cells fail, not {design.sparsity}",
    )
    require(
        sums.exact or design.bank_hash == "linear",
        f"bank_hash must be linear where cells of sums fail, not {design.bank_hash}: of others it "
        "is not known where in a bank a sum lies",
    )
    for name, memory, places, what in (
        ("weight", kind, design.weight_fifo_rows, "the FIFOs"),
        ("accumulator", sums, design.bank_words, "a half of the banks"),
    ):
        if memory.exact:
            continue
        require(
            places <= MOST_PLACES,
            f"{name}_memory: {what} of all PEs must have at most {MOST_PLACES} places to fail, in "
            f"powers of two each, not {places}",
        )


__all__ = ["check_memories"]
