"""Which kinds of memories go with which rules of a sparse core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archsim.errors import require
from archsim.memory import PlainStream

if TYPE_CHECKING:
    from archsim.machines.scnn.design import Scnn

BY_LANE = "each bit of the FIFOs of all PEs fares by itself: no measured map, 2^20 bits at most"


def check_memories(design: Scnn) -> None:
    """Raise `InputError` for memories that DNNsim's count has not, for lists with zeros in cells
    that fail, and for FIFOs whose cells fail as neither model nor hardware follows."""
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
    known = kind.masks(design.use("weight"), design.weight_fifo_rows) is not None
    require(known, f"weight_memory must be such that {BY_LANE}")
    require(
        not design.activation_memory.by_value,
        "activation_memory must not compress values where cells of weights fail, not be "
        f"{design.activation_memory.kind}: lists of the ofmap may then be longer than an OARAM",
    )


__all__ = ["check_memories"]
