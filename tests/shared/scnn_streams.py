"""What memories hold that compress activations, bit by bit, as the contract tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scnn_lists import Vector
from scnn_oracle import Oracle

from archsim.codecs.boveda import BovedaFormat, encode
from archsim.machines.scnn.design import Scnn


@dataclass(frozen=True, kw_only=True)
class Content:
    """rows: of each column, lanes of every row; entries: of each vector (width fields, indices,
    last)."""

    rows: list[list[list[int]]]
    entries: list[tuple[list[int], list[int], bool]]


def width_of(values: list[int], bits: int) -> int:
    """0 for zeros, else what the largest magnitude needs and a bit for the sign."""
    width = 0
    while any(abs(value) >> width for value in values):
        width += 1
    return min(width + 1, bits) if width else 0


def code_of(value: int, width: int, bits: int) -> list[int]:
    """Sign and magnitude, bits from the lowest; the least value is minus zero."""
    magnitude = abs(value) if value != -(2 ** (bits - 1)) else 0
    return [magnitude >> bit & 1 for bit in range(width - 1)] + [int(value < 0)] * (width > 0)


def content_of(design: Scnn, lists: list[list[Vector]]) -> Content:
    """Of the lists of a PE."""
    memory: Any = design.activation_memory
    bits = design.operand_bits
    assert memory
    columns = range(0, design.ifmap_lanes, memory.group)
    lines: list[list[list[int]]] = [[[] for _ in range(memory.group)] for _ in columns]
    entries: list[tuple[list[int], list[int], bool]] = []
    for one in lists:
        for vector in one:
            values = [value for value, _, _ in vector]
            fields: list[int] = []
            for lane, line in zip(columns, lines, strict=True):
                group = values[lane : lane + memory.group]
                width = width_of(group, bits)
                fields.append(width - 1 if width else 0)
                for value, column in zip(group, line, strict=True):
                    column.extend(code_of(value, width, bits))
            entries.append((fields, [index for _, index, _ in vector], vector is one[-1]))
    return Content(rows=[_cut(line, bits) for line in lines], entries=entries)


def _cut(line: list[list[int]], bits: int) -> list[list[int]]:
    """Rows of containers, the last one filled up with zeros."""
    return [
        [sum(bit << at for at, bit in enumerate(column[first : first + bits])) for column in line]
        for first in range(0, len(line[0]), bits)
    ]


def contents_of(oracle: Oracle) -> tuple[list[Content], list[Content]]:
    """Of IARAM and OARAM: of every PE, and of those with outputs."""
    design = oracle.design
    outputs, filters = oracle.output_lists(), oracle.problem.filters
    return (
        [content_of(design, list(pe.lists.values())) for pe in oracle.pes],
        [
            content_of(design, outputs[first : first + filters])
            for first in range(0, len(outputs), filters)
        ],
    )


def codec_rows(design: Scnn, lists: list[list[Vector]]) -> list[list[list[int]]]:
    """Rows of each column as `archsim.codecs.boveda` makes them."""
    memory: Any = design.activation_memory
    assert memory
    values = np.array([[lane[0] for lane in vector] for one in lists for vector in one], np.int64)
    form = BovedaFormat(
        group=memory.group, container_bits=design.operand_bits, zero_width=True, signed=True
    )
    found: list[Any] = []
    for lane in range(0, design.ifmap_lanes, memory.group):
        column = np.ascontiguousarray(values[:, lane : lane + memory.group])
        found.append(encode(column, form, aligned_axes=0).rows.tolist())
    return found
