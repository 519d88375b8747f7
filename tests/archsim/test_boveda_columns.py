"""Groups in columns of containers: the kernels are the definition, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from archsim.codecs import boveda_columns as columns
from archsim.codecs.boveda_format import BovedaFormat, Bytes
from archsim.numbers import IntArray


def _code(value: int, width: int, signed: bool) -> list[int]:
    """Lowest bit first; a sign above the magnitude."""
    magnitude = width - signed
    bits = [abs(value) >> place & 1 for place in range(magnitude)]
    return [*bits, int(value < 0)][:width] if signed else bits


def _value(code: list[int], form: BovedaFormat) -> int:
    """Of as many bits as the width; minus zero is the least value."""
    if not form.signed or not code:
        return sum(bit << place for place, bit in enumerate(code))
    magnitude = sum(bit << place for place, bit in enumerate(code[:-1]))
    if not code[-1]:
        return magnitude
    return -magnitude if magnitude else -1 << (form.container_bits - 1)


def _stream(rows: Bytes, lane: int) -> list[int]:
    """A column's bits of a container, row behind row, and zeros where no row is."""
    return [*rows[:, lane].reshape(-1).tolist(), *[0] * 64]


def _drawn(form: BovedaFormat, groups: int) -> IntArray:
    draws = np.random.default_rng(groups)
    low = -(1 << (form.container_bits - 1)) if form.signed else 0
    high = 1 << (form.container_bits - form.signed)
    values = draws.integers(low, high, (groups, form.group))
    return values >> draws.integers(0, form.container_bits, (groups, 1))


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("container_bits", [4, 8, 16])
@pytest.mark.parametrize("zero_width", [False, True])
def test_groups_are_written_and_read_bit_by_bit(
    container_bits: int, signed: bool, zero_width: bool
) -> None:
    form = BovedaFormat(
        group=3, container_bits=container_bits, signed=signed, zero_width=zero_width
    )
    values = _drawn(form, 40)
    widths = columns.widths_needed(values, form)
    starts = np.cumsum(widths + 1) - widths  # a bit is left between two
    rows = np.zeros(
        (int(starts[-1] + widths[-1]) // container_bits + 1, 3, container_bits), np.uint8
    )
    columns.write(starts, values, widths, rows, form)
    for lane in range(3):
        stream = [0] * (len(rows) * container_bits + 64)
        for start, width, value in zip(starts, widths, values[:, lane], strict=True):
            stream[start : start + width] = _code(int(value), int(width), signed)
        assert stream == _stream(rows, lane)
    assert (columns.read(starts, widths, rows, form) == values).all()


@pytest.mark.parametrize("signed", [True, False])
def test_whatever_the_bits_and_places_are_values_are_read(signed: bool) -> None:
    form, draws = BovedaFormat(group=3, container_bits=8, signed=signed), np.random.default_rng(1)
    rows = draws.integers(0, 2, (10, 3, 8), dtype=np.uint8)
    starts, widths = draws.integers(0, 90, 200), draws.integers(1, 9, 200)
    found = columns.read(starts, widths, rows, form)
    for lane in range(3):
        stream = _stream(rows, lane)
        for start, width, value in zip(starts, widths, found[:, lane], strict=True):
            assert value == _value(stream[start : start + width], form)
    assert (starts >= 80).any()
