"""Boveda's layout: bit for bit that of a plain loop, and found through its pointers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from boveda_plainly import check, tensors
from hypothesis import given, settings

from archsim.codecs.boveda import (
    BovedaFormat,
    decode,
    decode_unit,
    encode,
    footprint,
    group_widths,
)
from archsim.errors import InputError

PLAIN = BovedaFormat(group=2, container_bits=8, signed=True)


@settings(max_examples=400)
@given(tensors())
def test_the_stream_is_that_of_a_plain_loop(case: tuple[Any, BovedaFormat, int]) -> None:
    check(*case)


@settings(max_examples=200)
@given(tensors())
def test_a_footprint_is_that_of_the_stream(case: tuple[Any, BovedaFormat, int]) -> None:
    values, form, axes = case
    encoded = encode(values, form, aligned_axes=axes)
    found = footprint(values, form, aligned_axes=axes)
    assert found == encoded.footprint
    rows = found.payload_bits + found.tail_bits + found.padding_bits
    assert rows == encoded.rows.size * form.container_bits
    assert found.total_bits == encoded.total_bits == rows + found.metadata_bits + found.pointer_bits
    assert found.values == values.size
    assert (found + found).total_bits == 2 * found.total_bits
    assert found.bits_per_value == found.total_bits / values.size
    assert (group_widths(values, form) == encoded.widths).all()


@pytest.mark.parametrize("bits", [4, 8, 16])
@pytest.mark.parametrize("signed", [True, False])
def test_every_value_of_a_container(bits: int, signed: bool) -> None:
    """Alone in its group, in all places of a column."""
    form = BovedaFormat(group=1, container_bits=bits, signed=signed)
    least, largest = form.limits
    step = 1 if bits < 16 else 257
    values = np.append(np.arange(least, largest + 1, step), [largest, 0])
    check(np.stack([values, values[::-1]]), form, 0)


def test_many_values_are_shared_by_threads() -> None:
    random = np.random.default_rng(0)
    values = np.rint(random.normal(0, 9, (300, 7, 500))).clip(-128, 127).astype(np.int8)
    form = BovedaFormat(metadata="same")
    encoded = encode(values, form, aligned_axes=1)
    assert (decode(encoded) == values).all()
    assert encoded.footprint == footprint(values, form, aligned_axes=1)
    for unit in (0, 1, 150, 299):
        alone = encode(values[unit], form, aligned_axes=0)
        first = encoded.row_pointers[unit]
        assert (encoded.rows[first : first + len(alone.rows)] == alone.rows).all()


def test_arrays_of_any_integers_and_order() -> None:
    values = np.arange(-60, 60).reshape(4, 5, 6)
    form = BovedaFormat(group=4)
    for given_values in (values.astype(np.int8), values.astype(np.int64), values.astype(">i4")):
        turned = np.asfortranarray(given_values)
        assert (decode(encode(turned, form, aligned_axes=2)) == values).all()


def test_minus_zero_is_the_least_value() -> None:
    encoded = encode(np.array([-128, 5]), PLAIN, aligned_axes=0)
    assert encoded.rows.tolist() == [[0x80, 5]]
    assert decode(encoded).tolist() == [-128, 5]


def test_units_without_bits_have_no_rows() -> None:
    form = replace(PLAIN, zero_width=True)
    encoded = encode(np.array([[0, 0], [1, 0], [0, 0]]), form, aligned_axes=1)
    assert encoded.widths.tolist() == [0, 2, 0]
    assert encoded.row_pointers.tolist() == [0, 0, 1]
    assert len(encoded.rows) == 1
    assert decode_unit(encoded, 2).tolist() == [0, 0]
    nothing = encode(np.zeros((3, 5), np.int8), form, aligned_axes=1)
    assert nothing.pointer_bits == 0
    assert not decode(nothing).any()


@pytest.mark.parametrize(
    ("values", "form", "axes", "message"),
    [
        ([[1.0]], PLAIN, 0, "values must be integers, not float64"),
        (np.zeros((2, 0), int), PLAIN, 0, "values must not be empty, as shape (2, 0) is"),
        (7, PLAIN, 0, "values must have at least one axis, not none"),
        ([[1, 2]], PLAIN, 2, "aligned_axes must be at most 1 of shape (1, 2), not 2"),
        ([[1, 2]], PLAIN, -1, "aligned_axes must not be negative, not -1"),
        (
            [[1, 2], [3, 128]],
            PLAIN,
            0,
            "values[1, 1] must fit signed containers of 8 bits, which 128 does not; "
            "signed containers of 16 bits would",
        ),
        (
            [-1],
            replace(PLAIN, signed=False),
            0,
            "values[0] must fit unsigned containers of 8 bits, which -1 does not; "
            "signed containers of 4 bits would",
        ),
        (
            [0, 16],
            replace(PLAIN, signed=False, container_bits=4),
            0,
            "values[1] must fit unsigned containers of 4 bits, which 16 does not; "
            "unsigned containers of 8 bits would",
        ),
        (
            [2**40],
            PLAIN,
            0,
            "values[0] must fit signed containers of 8 bits, which 1099511627776 does not; "
            "no container would",
        ),
    ],
)
def test_values_that_are_refused(values: Any, form: BovedaFormat, axes: int, message: str) -> None:
    for call in (encode, footprint):
        with pytest.raises(InputError) as refused:
            call(np.array(values), form, aligned_axes=axes)
        assert str(refused.value) == message


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"group": 0}, "group must be positive, not 0"),
        ({"container_bits": 5}, "container_bits must be 4, 8 or 16, not 5"),
        ({"container_bits": 3}, "container_bits must be 4, 8 or 16, not 3"),
        ({"metadata": "none"}, "metadata must be plain or same, not 'none'"),
    ],
)
def test_formats_that_are_refused(settings_: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        BovedaFormat(**settings_)
    assert str(refused.value) == message
