"""Boveda's layout with a fault in its kernels, and streams that cannot be: each is found."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from boveda_plainly import check, plain_stream, stream, tensors
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.codecs import boveda, boveda_kernels
from archsim.codecs.boveda import BovedaFormat, Encoded, decode, decode_unit, encode
from archsim.errors import InputError

PLAIN = BovedaFormat(group=2, container_bits=8, signed=True)

PACK = {
    "alignment forgotten": ("= pointers[unit], 0", "= pointers[unit], column if unit else 0"),
    "spill one bit late": ("column + width > form[1]:", "column + width > form[1] + 1:"),
    "spilled bits dropped": ("rows[at + 1, lane] |=", "rows[at, lane] |= 0 *"),
    "sign in the wrong bit": ("<< sign)", "<< max(sign - 1, 0))"),
    "sign dropped": ("wide(value < 0) << sign", "0"),
    "row one bit early": ("column >= form[1]", "column >= form[1] - 1"),
    "pointer stays": ("column += width", "column += width - 1"),
    "tail ignored": ("(run + 1) * line[0] - begin", "form[0]"),
}
WIDTHS = {
    "width of the last value": ("union |=", "union ="),
    "sign counted as a value": ("abs(wide(values[at]))", "wide(values[at]) & 0xFFFF"),
}
METADATA = {
    "as before across units": ("if place and width", "if width"),
    "width itself": ("max(width - 1, 0)", "width"),
}
KERNELS = {"pack": PACK, "measure": WIDTHS, "write_widths": METADATA}
FAULTS = [(kernel, fault) for kernel, faults in KERNELS.items() for fault in faults.values()]


def faulty(name: str, right: str, wrong: str) -> Any:
    """A kernel of `boveda_kernels` with a fault, in plain Python."""
    source = inspect.getsource(getattr(boveda_kernels, name).py_func)
    assert source.count(right) >= 1
    space = dict(vars(boveda_kernels))
    exec(source.replace(right, wrong), space)
    return space[name].py_func


CASES = [
    (np.array([[7, -7, 3, 3, 1, -1]]), PLAIN, 0),
    (np.array([[5, -6, 0], [1, 1, -1], [-128, 3, 2], [0, 0, 0], [9, 9, 9]]), PLAIN, 1),
    (np.array([[7, -7, -15, 0, 3, 1], [7, 7, -7, 7, 1, 1]]), PLAIN, 1),
    (np.array([[5, -6, 0, 7], [1, 1, -1, 0]] * 4), replace(PLAIN, metadata="same"), 1),
    (np.array([[[90, 17, 3, 60, 70]] * 3] * 2), replace(PLAIN, metadata="same", group=3), 1),
]


def check_all() -> None:
    for case in CASES:
        check(*case)


def test_the_cases_of_the_faults_pass_without_one() -> None:
    check_all()


@pytest.mark.parametrize(("name", "fault"), FAULTS)
def test_a_fault_is_caught(
    monkeypatch: pytest.MonkeyPatch, name: str, fault: tuple[str, str]
) -> None:
    monkeypatch.setattr(boveda.kernels, name, faulty(name, *fault))
    with pytest.raises((AssertionError, ValueError, IndexError)):  # InputError is a ValueError
        check_all()


def test_a_kernel_in_plain_python_without_a_fault_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pack", "measure", "write_widths"):
        monkeypatch.setattr(boveda.kernels, name, faulty(name, "width", "width"))
    check_all()


@pytest.mark.parametrize("name", ["row_pointers", "metadata_pointers", "widths"])
def test_a_pointer_one_late_is_caught(name: str) -> None:
    encoded = encode(*CASES[3][:2], aligned_axes=1)
    late = replace(encoded, **{name: getattr(encoded, name) + 1})
    assert stream(late) != plain_stream(*CASES[3])
    with pytest.raises(InputError, match=rf"^{name}\[0\] must be \d+, not \d+$"):
        decode(late)


@settings(max_examples=400)
@given(tensors(), st.sampled_from(["rows", "metadata"]), st.integers(0, 10**9))
def test_a_flipped_bit_is_refused_or_another_stream(
    case: tuple[Any, BovedaFormat, int], name: str, at: int
) -> None:
    values, form, axes = case
    encoded = encode(values, form, aligned_axes=axes)
    array = getattr(encoded, name).copy()
    if not array.size:
        return
    bits = 8 * array.itemsize
    array.flat[at // bits % array.size] ^= array.dtype.type(1 << at % bits)
    flipped = replace(encoded, **{name: array})
    for unit in range(encoded.places.units):
        try:
            decode_unit(flipped, unit)
        except InputError as error:
            assert str(error)
    try:
        others = decode(flipped)
    except InputError as error:
        assert str(error)
        return
    assert (others != values).any()
    again = encode(others, form, aligned_axes=axes)
    for kept in ("rows", "metadata", "widths", "row_pointers", "metadata_pointers"):
        assert (getattr(again, kept) == getattr(flipped, kept)).all()


SMALL = encode(np.array([[3, -3, 3], [0, 1, -1]]), PLAIN, aligned_axes=1)
SAME = encode(np.array([[3, -3, 3], [0, 1, -1]]), replace(PLAIN, metadata="same"), aligned_axes=1)


def changed(row: int, lane: int, bits: int) -> Encoded:
    """SMALL with some bits of a container turned."""
    rows = SMALL.rows.copy()
    rows[row, lane] ^= bits
    return replace(SMALL, rows=rows)


def told(of: Encoded, metadata: int) -> Encoded:
    """A stream with other metadata."""
    data = metadata.to_bytes(of.metadata.size, "little")
    return replace(of, metadata=np.frombuffer(data, np.uint8))


def test_the_stream_that_is_changed() -> None:
    assert SMALL.widths.tolist() == [3, 3, 2, 2]
    assert SMALL.rows.tolist() == [[0b011_011, 0b111], [0b11_00, 0b01]]
    assert SAME.metadata.tolist() == [0b0101_0100, 0b10]
    assert decode(told(SAME, 0b10_0101_0100)).tolist() == [[3, -3, 3], [0, 1, -1]]


FOUR = encode(np.array([1, 0]), replace(PLAIN, container_bits=4), aligned_axes=0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (changed(0, 0, 0b111), "group 0, column 0: minus zero must have width 8, not 3"),
        (changed(0, 1, 8), "group 1, column 1: the tail behind the last channel must be zero"),
        (changed(0, 1, 64), "unit 0, column 1: padding must be zero"),
        (changed(1, 0, 128), "unit 1, column 0: padding must be zero"),
        (changed(0, 0, 16), "group 1: its width must be 2, as its values, not 3"),
        (replace(SMALL, rows=SMALL.rows[:1]), "rows must go on to 2, but run out at 1"),
        (
            replace(SMALL, rows=np.tile(SMALL.rows, (2, 1))),
            "rows must end at 2, but 2 are left",
        ),
        (
            told(SMALL, 0),
            "group 0, metadata bit 3: a width of a signed tensor must be at least 2, not 1",
        ),
        (told(SMALL, 0b1001_0010_0010 | 1 << 15), "metadata must be zero behind their last bit"),
        (replace(SMALL, metadata_bits=13), "metadata must end at bit 12, not at 13"),
        (
            told(SAME, 1),
            "group 0, metadata bit 1: the first group of a unit must have a width, not that before",
        ),
        (
            told(SAME, 0b0100_0100),
            "group 1, metadata bit 8: a width as that before must be said by one bit, "
            "not written out",
        ),
        (told(SAME, 0b0010_0100), "group 2, metadata bit 8: metadata must go on, but run out"),
        (
            replace(FOUR, rows=np.array([[1, 16]], np.uint8)),
            "rows[0, 1] must be at most 15, not 16",
        ),
    ],
)
def test_a_stream_that_cannot_be(wrong: Encoded, message: str) -> None:
    with pytest.raises(InputError) as refused:
        decode(wrong)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("wrong", "unit", "message"),
    [
        (SMALL, 2, "unit must be from 0 to 1, not 2"),
        (SMALL, -1, "unit must be from 0 to 1, not -1"),
        (
            replace(SMALL, row_pointers=SMALL.row_pointers + 1),
            1,
            "unit 1 must lie within 2 rows, which 1 from row 2 do not",
        ),
        (
            replace(SAME, metadata_pointers=SAME.metadata_pointers + 11),
            0,
            "unit 0 must have metadata within 10 bits, not at 11",
        ),
        (changed(1, 0, 128), 1, "unit 1, column 0: padding must be zero"),
        (changed(1, 0, 4), 1, "group 3, column 0: minus zero must have width 8, not 2"),
        (
            told(SAME, 0b11_0111_0100),
            1,
            "group 2, metadata bit 6: the first group of a unit must have a width, not that before",
        ),
    ],
)
def test_a_unit_that_cannot_be(wrong: Encoded, unit: int, message: str) -> None:
    with pytest.raises(InputError) as refused:
        decode_unit(wrong, unit)
    assert str(refused.value) == message


def test_arrays_of_another_kind_are_refused() -> None:
    with pytest.raises(InputError, match=r"^rows must be uint8 of shape \(2, 2\), not int64 of"):
        replace(SMALL, rows=SMALL.rows.astype(np.int64))
    with pytest.raises(InputError, match=r"^row_pointers must be int64 of shape \(2,\), not"):
        replace(SMALL, row_pointers=SMALL.row_pointers[:1])
