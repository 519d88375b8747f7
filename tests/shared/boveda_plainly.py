"""Boveda's layout bit by bit in plain Python, cases for it, and what `encode` must do of each."""

from __future__ import annotations

from math import ceil, log2, prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from archsim.codecs.boveda import BovedaFormat, Encoded, decode, decode_unit, encode


@st.composite
def formats(draw: st.DrawFn) -> BovedaFormat:
    return BovedaFormat(
        group=draw(st.integers(1, 33)),
        container_bits=draw(st.sampled_from([4, 8, 16])),
        signed=draw(st.booleans()),
        metadata=draw(st.sampled_from(["plain", "same"])),
        zero_width=draw(st.booleans()),
    )


@st.composite
def tensors(draw: st.DrawFn) -> tuple[Any, BovedaFormat, int]:
    """Values of all magnitudes, with zeros and the least value; format; aligned axes."""
    form = draw(formats())
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=0, max_size=3)))
    shape += (draw(st.integers(1, 70)),)
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    least, largest = form.limits
    wide = random.integers(least, largest, shape, endpoint=True)
    values = (wide / 2.0 ** random.integers(0, form.container_bits, (*shape[:-1], 1))).astype(int)
    values[random.random(shape) < draw(st.sampled_from([0.0, 0.3, 0.95]))] = 0
    if draw(st.booleans()):
        values.flat[random.integers(values.size)] = least
    return values, form, draw(st.integers(0, len(shape) - 1))


def plain_width(magnitudes: list[int], form: BovedaFormat) -> int:
    width = 0
    while any(magnitude >> width for magnitude in magnitudes):
        width += 1
    if not width and form.zero_width:
        return 0
    width = max(width, 1) + form.signed
    if form.zero_width:
        width = max(width, 2)
    return min(width, form.container_bits)


def plain_code(value: int, width: int, form: BovedaFormat) -> list[int]:
    """Bits from the lowest."""
    if not form.signed:
        return [value >> bit & 1 for bit in range(width)]
    if value == -(2 ** (form.container_bits - 1)):
        return [0] * (width - 1) + [1]
    return [abs(value) >> bit & 1 for bit in range(width - 1)] + [int(value < 0)]


def plain_stream(values: Any, form: BovedaFormat, axes: int) -> dict[str, Any]:
    """The stream, bit by bit; `columns` are those of all rows one after another."""
    units = values.reshape(prod(values.shape[:axes]), -1, values.shape[-1]).tolist()
    columns: list[list[int]] = [[] for _ in range(form.group)]
    widths, metadata, rows, places = [], [], [], []
    counted = {"payload_bits": 0, "tail_bits": 0, "padding_bits": 0}
    for unit in units:
        rows.append(len(columns[0]) // form.container_bits)
        places.append(len(metadata))
        before = -1
        for line in unit:
            for at in range(0, len(line), form.group):
                group = line[at : at + form.group]
                width = plain_width([abs(value) for value in group], form)
                field = [max(width - 1, 0) >> bit & 1 for bit in range(form.field_bits)]
                if form.metadata == "same":
                    field = [1] if width == before else [0, *field]
                metadata += field
                widths.append(before := width)
                short = form.group - len(group)
                for column, value in zip(columns, [*group, *[0] * short], strict=True):
                    column += plain_code(value, width, form) if width else []
                counted["payload_bits"] += width * len(group)
                counted["tail_bits"] += width * short
        while len(columns[0]) % form.container_bits:
            for column in columns:
                column.append(0)
            counted["padding_bits"] += form.group
    each = ceil(log2(len(columns[0]) // form.container_bits + 1))
    each += ceil(log2(len(metadata) + 1)) if form.metadata == "same" else 0
    return {
        "columns": columns,
        "widths": widths,
        "metadata": metadata,
        "row_pointers": rows,
        "metadata_pointers": places if form.metadata == "same" else [],
        **counted,
        "metadata_bits": len(metadata),
        "pointer_bits": each * len(units),
    }


def stream(encoded: Encoded) -> dict[str, Any]:
    """What `plain_stream` gives, from what `encode` gave."""
    bits = encoded.format.container_bits
    containers = (encoded.rows[:, :, None] >> np.arange(bits)) & 1
    assert int(encoded.rows.max(initial=0)) < 2**bits
    metadata = np.unpackbits(encoded.metadata, bitorder="little").tolist()
    assert not any(metadata[encoded.metadata_bits :])
    names = ("payload_bits", "tail_bits", "padding_bits", "metadata_bits", "pointer_bits")
    return {
        "columns": containers.transpose(1, 0, 2).reshape(encoded.format.group, -1).tolist(),
        "widths": encoded.widths.tolist(),
        "metadata": metadata[: encoded.metadata_bits],
        "row_pointers": encoded.row_pointers.tolist(),
        "metadata_pointers": encoded.metadata_pointers.tolist(),
        **{name: getattr(encoded, name) for name in names},
    }


def check(values: Any, form: BovedaFormat, axes: int) -> None:
    """Stream, values and units are right."""
    encoded = encode(values, form, aligned_axes=axes)
    assert stream(encoded) == plain_stream(values, form, axes)
    back = decode(encoded)
    assert back.dtype == form.value_type
    assert (back == values).all()
    assert back.shape == values.shape
    for number, unit in enumerate(values.reshape(-1, *values.shape[axes:])):
        assert (decode_unit(encoded, number) == unit).all()
