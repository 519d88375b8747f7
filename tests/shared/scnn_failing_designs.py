"""Small sparse cores whose cells fail, drawn, and cases of them."""

from dataclasses import replace
from typing import Any

from archsim.machines.scnn.design import Scnn
from archsim.memories.faulty.bank import FaultyBank
from archsim.memories.protected.bank import ParityBank, SecdedBank
from archsim.memory import StreamMemory
from rtl.cases import Draw, random_case
from rtl.sparse_conformance import SparseCase

EVERYTHING: dict[str, Any] = {
    "column_shape": 0.5, "persistent": 0.4, "draw": 3, "zero_to_one": 0.2, "one_to_zero": 0.5,
}  # fmt: skip
KINDS: tuple[dict[str, Any], ...] = ({}, {}, EVERYTHING, {"one_to_zero": 1.0})


def drawn(number: int, design: Scnn) -> SparseCase:
    """A case of a design."""
    case = random_case(7, number, design)
    assert isinstance(case, SparseCase)
    return case


def failing_bank(draw: Draw, data_bits: int) -> Any:
    """A bank whose cells fail, a third of them behind check bits of words of so many."""
    memory = FaultyBank(
        rate=(0.02, 0.3, 1.0)[draw.whole(0, 2)], chip=draw.whole(0, 9), **KINDS[draw.whole(0, 3)]
    )
    if not draw.chance(0.33):
        return memory
    return (ParityBank, SecdedBank)[draw.whole(0, 1)](data_bits=data_bits, inner=memory)


def small_core(draw: Draw) -> Scnn:
    """Up to four PEs, with sound cells."""
    return Scnn(
        grid_rows=draw.whole(1, 2),
        grid_columns=draw.whole(1, 2),
        weight_lanes=draw.whole(1, 3),
        ifmap_lanes=draw.whole(1, 2),
        banks=draw.one_of(1, 2, 4),
        bank_entries=draw.one_of(16, 33),
        weight_fifo_vectors=draw.one_of(1, 2, 13, 16),
        filter_group=draw.whole(1, 4),
        iaram_bytes=draw.one_of(40, 100),
        oaram_bytes=draw.one_of(20, 100),
        index_bits=draw.one_of(1, 2, 4),
        operand_bits=draw.one_of(4, 8, 16),
        accumulator_bits=draw.one_of(12, 24, 37),
        bank_queue=draw.whole(1, 4),
    )


def read_differently(case: SparseCase, sound: StreamMemory) -> bool:
    """Whether a case's values hang on the cells of its lists, which were sound in `sound`."""
    other = replace(case, design=replace(case.design, activation_memory=sound))
    ofmaps = [one.answer().transfers["ofmap"].payload for one in (case, other)]
    return ofmaps[0].shape != ofmaps[1].shape or bool((ofmaps[0] != ofmaps[1]).any())
