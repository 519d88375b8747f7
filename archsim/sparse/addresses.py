"""Where products go: rows, columns and addresses of sums, from positions in lists.

    address = ((p − first row) · Wacc + (q − first column)) · Kp + k

A product's row p, column q and address are those of its activation and its weight, put together:
p = y − r', q = x − s', address = a + w with w = k − (r' · Wacc + s') · Kp.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archsim.codecs import zero_run
from archsim.designs.scnn import Scnn
from archsim.numbers import IntArray
from archsim.sparse.kernels import ROW, Lists, SmallArray
from archsim.sparse.mapping import Mapping


@dataclass(frozen=True, kw_only=True, eq=False)
class Operand:
    """Lists for the kernel: lanes that are not zero (`archsim.sparse.kernels`).

    starts [lists + 1]: first vectors.  first [vectors + 1]: first lanes.  place, address [lanes].
    """

    starts: IntArray
    first: IntArray
    place: IntArray
    address: SmallArray

    @property
    def arrays(self) -> Lists:
        return self.starts, (self.first, self.place, self.address)

    def values_by_list(self) -> IntArray:
        """Values that are not zero in each list."""
        return np.diff(self.first[self.starts])


def activation_operand(mapping: Mapping, lists: zero_run.Lists) -> Operand:
    """y and x are outputs of the plane, as phase 0's first tap would make them."""
    rows, columns = mapping.rows, mapping.columns
    origins = np.zeros((mapping.used_pes, mapping.channels, len(mapping.phases), 4), np.int64)
    for pe in range(mapping.used_pes):
        row, column = mapping.place(pe)
        for number, (row_phase, column_phase) in enumerate(mapping.phases):
            origins[pe, :, number] = (
                rows.first_output(row, row_phase),
                columns.first_output(column, column_phase),
                rows.region(row).start,
                columns.region(column).start,
            )
    origin = np.repeat(origins.reshape(-1, 4), lists.lengths, axis=0)[:, None, :]
    y, x = np.divmod(lists.positions, mapping.input_pitch)
    y, x = y + origin[..., 0], x + origin[..., 1]
    number = (y - origin[..., 2]) * columns.extent + x - origin[..., 3]
    return _operand(lists, y * ROW + x, number * mapping.filter_pitch)


def weight_operand(mapping: Mapping, lists: zero_run.Lists) -> Operand:
    """The weights of a group."""
    pitches = [mapping.tap_pitch(column) for _, column in mapping.phases] * mapping.channels
    pitch = np.repeat(np.array(pitches, np.int64), lists.lengths)[:, None]
    tap, filter_ = np.divmod(lists.positions, mapping.filter_pitch)
    r, s = tap // pitch, tap % pitch
    address = filter_ - (r * mapping.columns.extent + s) * mapping.filter_pitch
    return _operand(lists, r * ROW + s, address)


def _operand(lists: zero_run.Lists, place: IntArray, address: IntArray) -> Operand:
    kept = lists.values != 0
    return Operand(
        starts=lists.starts,
        first=np.concatenate([[0], np.cumsum(kept.sum(axis=1))]),
        place=place[kept],
        address=address[kept].astype(np.int32),
    )


def bank_of_address(design: Scnn, mapping: Mapping) -> SmallArray:
    """The bank of every address of a pass, [Hacc · Wacc · Kp].

    linear: address mod A.  dnnsim: ((4·(k₂) ⊕ 8·(x₁) ⊕ 8·(y₁)) + 8·x₀ + 4·y₀ + k₁₀) mod A, as
    that simulator has it: ((((k & 4) << 2) ^ ((x & 2) << 3) ^ ((y & 2) << 3)) + ((x & 1) << 3) +
    ((y & 1) << 2) + (k & 3)) mod A.
    """
    address = np.arange(mapping.accumulators)
    if design.bank_hash == "linear":
        return (address % design.banks).astype(np.int32)
    place, k = np.divmod(address, mapping.filter_pitch)
    y, x = np.divmod(place, mapping.columns.extent)
    upper = ((k & 4) << 2) ^ ((x & 2) << 3) ^ ((y & 2) << 3)
    lower = ((x & 1) << 3) + ((y & 1) << 2) + (k & 3)
    return ((upper + lower) % design.banks).astype(np.int32)
