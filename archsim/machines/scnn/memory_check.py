"""Which kinds of memories go with which rules of a sparse core."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from archsim.errors import InputError, require
from archsim.memory import PlainStream, Use

if TYPE_CHECKING:
    from archsim.machines.scnn.design import Scnn

SUMS = "a sum that is read otherwise does not commute with the additions behind it"
"""Why banks must give back what was written."""

DECODED = "its FIFO holds vectors that are decoded, and no check bits beside"
"""Why a FIFO's words lie there as they are."""

BY_LANE = "each bit of the FIFOs of all PEs fares by itself: no measured map, 2^20 bits at most"


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
    words = design.use("weight")
    bit = replace(words, lane_bits=(1,), lane_signed=(False,))
    _require_words_as_they_are(design, bit)  # which code words of any width hold
    for memory in ("weight", "accumulator"):
        use = design.use(memory)
        try:
            design.bank(memory).check(use)
        except InputError as error:
            raise InputError(f"{use.field}: {error}") from error
    _require_words_as_they_are(design, words)


def _require_words_as_they_are(design: Scnn, use: Use) -> None:
    """Of a FIFO's words as `use` has them; what the kind itself refuses is said by its check."""
    kind = design.weight_memory
    try:
        cells = kind.stored(use, np.zeros((1, use.lanes), np.int64))
    except InputError:
        return
    require(
        [bits.shape[-1] for bits in cells.values()] == [use.word_bits],
        f"{use.field} must keep words as they are, not {kind.kind}: {DECODED}",
    )


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
    known = kind.masks(design.use("weight"), design.weight_fifo_rows) is not None
    require(known, f"weight_memory must be such that {BY_LANE}")
    require(
        not design.activation_memory.by_value,
        "activation_memory must not compress values where cells of weights fail, not be "
        f"{design.activation_memory.kind}: lists of the ofmap may then be longer than an OARAM",
    )


__all__ = ["check_memories"]
