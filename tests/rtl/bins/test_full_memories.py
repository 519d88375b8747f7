"""A case can fill memories of operands, also of a depth that is no power of two."""

from dataclasses import replace
from typing import Any

import pytest

from archsim.machine.registry import load_design, with_settings
from archsim.machines.systolic.design import DATAFLOWS, Dataflow, Systolic
from archsim.memory import Plain
from archsim.numbers import ceil_div
from archsim.tiled.timing import plan_tiling
from archsim.tiled.walk import walk_layer
from rtl.full_memories import MEMORIES, full_layer, whole


def _deep(design: Any, memory: str, words: int) -> Any:
    """With so many words in a half of a memory."""
    field = f"{memory}_memory"
    capacity = ceil_div(2 * words * design.word_bits(memory), 8)
    changed = replace(design, **{field: Plain(capacity_bytes=capacity)})
    assert changed.depth(memory) == words
    return changed


@pytest.mark.parametrize("dataflow", DATAFLOWS)
@pytest.mark.parametrize("words", (16, 17, 33, 36, 65))
@pytest.mark.parametrize("memory", ("ifmap", "weight"))
def test_a_product_fills_it(memory: str, words: int, dataflow: Dataflow) -> None:
    _fills(_deep(Systolic(rows=4, columns=3, dataflow=dataflow), memory, words), memory, words)


@pytest.mark.parametrize(
    "name, sizes",
    [
        ("volta", ["octets=1", "rows=4"]),
        ("volta", ["octets=1", "rows=4", "operand=int8", "accumulator=int32"]),
        ("vsq-16", ["lanes=2", "vector=4"]),
    ],
)
@pytest.mark.parametrize("words", (17, 33, 129))
@pytest.mark.parametrize("memory", ("ifmap", "weight"))
def test_of_other_kinds_too(memory: str, words: int, name: str, sizes: list[str]) -> None:
    _fills(_deep(with_settings(load_design(name), sizes), memory, words), memory, words)


def _fills(design: Any, memory: str, words: int) -> None:
    layer = full_layer(design, memory)
    assert layer is not None
    tiling = plan_tiling(design, layer, whole(design, layer))
    tiles = walk_layer(design.numerics.problem(layer), tiling, design.machine)
    assert tiles[:, MEMORIES[memory]].max() == words
