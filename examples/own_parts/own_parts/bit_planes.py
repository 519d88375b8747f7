"""A codec: the bits of one weight of G values side by side; planes of zeros are left out.

Of a group of up to G values along the last axis, B flags say which planes are stored, then those
follow, a bit for each value.  Signed values are folded first (0, −1, 1, −2, … become 0, 1, 2, 3,
…), so that small magnitudes have zeros in their upper planes.  Nothing is lost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.codecs.boveda_format import BovedaFormat
from archsim.codecs.reference_codecs import Codec

Bits = npt.NDArray[np.uint8]
Form = tuple[int, bool, int]
"""Bits of a value, whether it has a sign, values in a group."""


def encode(values: npt.NDArray[Any], form: Form) -> Bits:
    """The code as bits, one an element.  Raises `InputError` for values that do not fit."""
    planes, sizes = _planes(values, form)
    parts: list[Bits] = []
    for group, size in zip(planes, sizes, strict=True):
        stored = group.any(axis=1)
        parts += [stored.astype(np.uint8), group[stored, :size].reshape(-1)]
    return np.concatenate(parts)


def decode(code: Bits, shape: tuple[int, ...], form: Form) -> npt.NDArray[np.int64]:
    """The values of a code, [shape]."""
    bits, signed, group = form
    found = np.zeros(shape, np.int64).reshape(-1, shape[-1])
    at = 0
    for line in found:
        for first in range(0, shape[-1], group):
            part = line[first : first + group]
            stored = np.flatnonzero(code[at : at + bits])
            at += bits
            for plane in stored:
                part += code[at : at + len(part)].astype(np.int64) << int(plane)
                at += len(part)
    return ((found >> 1) ^ -(found & 1) if signed else found).reshape(shape)


def count(
    values: npt.NDArray[Any], container_bits: int, signed: bool, aligned_axes: int, group: int
) -> int:
    """Bits of the code, without making it; units need not be aligned."""
    planes, sizes = _planes(values, (container_bits, signed, group))
    stored = planes.any(axis=2).sum(axis=1)
    return int(container_bits * len(sizes) + (stored * sizes).sum())


def _planes(values: npt.NDArray[Any], form: Form) -> tuple[Bits, npt.NDArray[np.int64]]:
    """The bits [groups, planes, G], short groups filled with zeros, and values in each group."""
    bits, signed, group = form
    fits = BovedaFormat(group=group, container_bits=bits, signed=signed)
    taken = fits.fitting(values).astype(np.int64)
    folded = (taken << 1) ^ (taken >> 63) if signed else taken
    lines = folded.reshape(-1, values.shape[-1])
    padded = np.pad(lines, ((0, 0), (0, -lines.shape[1] % group))).reshape(-1, group)
    in_line = np.full(-(-lines.shape[1] // group), group)
    in_line[-1] -= -lines.shape[1] % group
    planes = (padded[:, None, :] >> np.arange(bits)[:, None]) & 1
    return planes.astype(np.uint8), np.tile(in_line, len(lines))


BIT_PLANES = Codec(
    bits=count,
    title="bits of one weight side by side, planes of zeros left out",
    source="examples/own_parts",
)
