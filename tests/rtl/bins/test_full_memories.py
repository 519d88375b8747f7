"""A case can fill memories of operands, also of a depth that is no power of two."""

from dataclasses import replace

import pytest

from archsim.machines.systolic.design import DATAFLOWS, Dataflow, Systolic
from archsim.memory import Plain
from archsim.tiled.timing import plan_tiling
from archsim.tiled.walk import walk_layer
from rtl.full_memories import MEMORIES, full_layer, whole


def _deep(design: Systolic, memory: str, words: int) -> Systolic:
    """With so many words in a half of a memory."""
    field = f"{memory}_memory"
    bytes_a_word = getattr(design, field).capacity_bytes // design.depth(memory)
    changed = replace(design, **{field: Plain(capacity_bytes=words * bytes_a_word)})
    assert changed.depth(memory) == words
    return changed


@pytest.mark.parametrize("dataflow", DATAFLOWS)
@pytest.mark.parametrize("words", (16, 17, 33, 36, 65))
@pytest.mark.parametrize("memory", ("ifmap", "weight"))
def test_a_product_fills_it(memory: str, words: int, dataflow: Dataflow) -> None:
    design = _deep(Systolic(rows=4, columns=3, dataflow=dataflow), memory, words)
    layer = full_layer(design, memory)
    assert layer is not None
    tiling = plan_tiling(design, layer, whole(design, layer))
    tiles = walk_layer(design.numerics.problem(layer), tiling, design.machine)
    assert tiles[:, MEMORIES[memory]].max() == words
