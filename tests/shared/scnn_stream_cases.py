"""Cores with compressed activations, layers for them, and what must be true of their contents."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scnn_cases import Case, designs, differences, layers, operands_of
from scnn_oracle import Oracle
from scnn_passes import BiasedOracle, Shape, chained
from scnn_streams import Content, contents_of

from archsim.machines.scnn import timing
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.words import pass_words
from archsim.memories.boveda_stream.stream import BovedaStream
from archsim.memory import PlainStream
from workloads.layers import Conv2d
from workloads.operands import Operands

COMPRESSED = Scnn(
    grid_rows=2, grid_columns=2, activation_memory=BovedaStream(group=2), bank_entries=16,
    iaram_bytes=400, oaram_bytes=400,
)  # fmt: skip


def plainly(design: Scnn) -> Scnn:
    return replace(design, activation_memory=PlainStream())


@st.composite
def compressed_designs(draw: st.DrawFn) -> Scnn:
    group = draw(st.integers(1, 3))
    memory = BovedaStream(group=group, expansion=draw(st.integers(1, 4)))
    return replace(
        draw(designs()),
        operand_bits=draw(st.sampled_from([4, 8, 16])),
        ifmap_lanes=group * draw(st.integers(1, 3)),
        iaram_bytes=draw(st.sampled_from([80, 200, 2000])),
        oaram_bytes=draw(st.sampled_from([80, 200, 2000])),
        activation_memory=memory,
    )


@st.composite
def compressed_cases(draw: st.DrawFn) -> Case:
    design, layer, seed = draw(compressed_designs()), draw(layers()), draw(st.integers(0, 10**6))
    density = st.sampled_from([0.0, 0.1, 0.3, 0.8, 1.0])
    bits = min(design.intake.source_bits, 6)
    operands = operands_of(layer, (draw(density), draw(density)), seed, bits)
    narrow = operands.ifmap >> draw(st.integers(0, bits - 1))
    return Case(
        design=design,
        layer=layer,
        operands=replace(operands, ifmap=narrow, shift=max(0, operands.shift - 3)),
        seed=seed,
        gap=draw(st.sampled_from([0, 0, 3])),
    )


def check_content(design: Scnn, one: Any, oracle: Oracle) -> None:
    """What the model counts is what lies in every PE's memories, and fits."""
    assert one.stored
    rows = (design.iaram_vectors, design.oaram_vectors)
    entries = (design.iaram_entries, design.oaram_entries)
    for found, contents, most, room in zip(
        one.stored, contents_of(oracle), rows, entries, strict=True
    ):
        assert found.rows.tolist() == [[len(column) for column in own.rows] for own in contents]
        assert found.vectors.tolist() == [len(own.entries) for own in contents]
        assert found.rows.max() <= most
        assert found.vectors.max() <= room
        assert found.stored_bits == sum(_bits(design, own) for own in contents)


def _bits(design: Scnn, content: Content) -> int:
    field = design.operand_bits.bit_length() - 1
    rows = sum(len(row) for column in content.rows for row in column) * design.operand_bits
    return rows + sum(
        field * len(widths) + design.index_bits * len(indices) + 1
        for widths, indices, _ in content.entries
    )


POINT = Conv2d(name="p", channels=24, filters=1, ifmap_height=1, ifmap_width=1, kernel_height=1,
               kernel_width=1)  # fmt: skip
"""One PE, a vector a channel, of one value."""
SINGLE = Scnn(
    grid_rows=1, grid_columns=1, operand_bits=8, ifmap_lanes=2, oaram_bytes=64,
    activation_memory=BovedaStream(group=2),
)  # fmt: skip


def point_operands(values: list[int]) -> Operands:
    drawn = operands_of(POINT, (1.0, 1.0), 1)
    return replace(drawn, ifmap=np.array(values, np.int16).reshape(1, -1, 1, 1))


def with_rows(rows: int, expansion: int = 2) -> Scnn:
    """24 bits a vector: 3 bytes a row."""
    plain: Any = SINGLE.activation_memory
    memory = replace(plain, expansion=expansion)
    return replace(SINGLE, iaram_bytes=3 * rows, activation_memory=memory)


FIRST = Shape(plane=(3, 5), channels=2, filters=3, kernel=(2, 3), pad=(1, 1), has_bias=True)
SECOND = Shape(plane=(4, 5), channels=3, filters=4, kernel=(3, 3), pad=(1, 1), has_bias=True)
THIRD = Shape(plane=(4, 5), channels=4, filters=2, relu=True)
CHAIN = (FIRST, SECOND, THIRD)


def chain_agrees(module: ModuleType = timing) -> bool:
    """Model and oracle of a chain whose first ofmap stays."""
    for one in pass_words(COMPRESSED, chained(COMPRESSED, CHAIN, (True, False), seed=6)):
        oracle = BiasedOracle(COMPRESSED, one, {})
        found = module.pass_timing(COMPRESSED, one.strip.mapping, one.strip.operands)
        if differences(found, oracle.run()):
            return False
        check_content(COMPRESSED, found, oracle)
    return True
