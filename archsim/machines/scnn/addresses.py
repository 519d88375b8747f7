"""Where products go: the bank of each, from positions in lists.

The sum of a product is that of an output in its PE's region,

    sum = ((p − first row) · Wacc + (q − first column)) · Kp + k

and which bank holds it is asked of a table.  Its addresses are those of all outputs that inputs of
a PE could reach in a plane without a border (`Axis.span`), counted likewise,

    address = ((p − first row) · Wspan + (q − first column)) · Kp + k

so that outputs beside the plane have one too.  A product's address is those of its activation and
its weight, put together: p = y − r', q = x − s', address = a + w with
w = k − (r' · Wspan + s') · Kp.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archsim.codecs import zero_run
from archsim.machines.scnn.axis import Axis
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.kernels import BankArray, BoolArray, Lists, SmallArray
from archsim.machines.scnn.mapping import Mapping
from archsim.numbers import IntArray

NOWHERE = -1
"""The place of an output beside the plane."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Operand:
    """Lists for the kernel: lanes that are not zero (`archsim.machines.scnn.kernels`).

    starts [lists + 1]: first vectors.  first [vectors + 1]: first lanes.  address [lanes].
    """

    starts: IntArray
    first: IntArray
    address: SmallArray

    @property
    def arrays(self) -> Lists:
        return self.starts, (self.first, self.address)

    def values_by_list(self) -> IntArray:
        """Values that are not zero in each list."""
        return np.diff(self.first[self.starts])


def activation_operand(mapping: Mapping, lists: zero_run.Lists) -> Operand:
    """Of lists by PE and block: by block and PE, which is the order in which they are needed.

    y and x are outputs as phase 0's first tap would make them; the tables of `bank_table` follow
    one another.
    """
    rows, columns = mapping.rows, mapping.columns
    shape = (mapping.lists, mapping.used_pes)
    tables, pitch = _tables(mapping)[1], columns.span_extent
    origins = np.zeros((mapping.channels, len(mapping.phases), mapping.used_pes), np.int64)
    for pe in range(mapping.used_pes):
        row, column = mapping.place(pe)
        for number, (row_phase, column_phase) in enumerate(mapping.phases):
            y = rows.first_output(row, row_phase) - rows.span(row).start
            x = columns.first_output(column, column_phase) - columns.span(column).start
            origins[:, number, pe] = tables[pe] * rows.span_extent * pitch + y * pitch + x
    order = np.arange(len(lists)).reshape(shape[::-1]).T.reshape(-1)
    lengths = lists.lengths[order]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    moved = np.repeat(lists.starts[order] - starts[:-1], lengths)
    vectors = moved + np.arange(len(moved))
    y, x = np.divmod(lists.positions[vectors], mapping.input_pitch)
    number = np.repeat(origins.reshape(-1), lengths)[:, None] + y * pitch + x
    return _operand(starts, lists.values[vectors], number * mapping.filter_pitch)


def weight_operand(mapping: Mapping, lists: zero_run.Lists) -> Operand:
    """The weights of a group."""
    pitches = [mapping.tap_pitch(column) for _, column in mapping.phases] * mapping.channels
    pitch = np.repeat(np.array(pitches, np.int64), lists.lengths)[:, None]
    tap, filter_ = np.divmod(lists.positions, mapping.filter_pitch)
    r, s = np.divmod(tap, pitch)
    address = filter_ - (r * mapping.columns.span_extent + s) * mapping.filter_pitch
    return _operand(lists.starts, lists.values, address)


def _operand(starts: IntArray, values: IntArray, address: IntArray) -> Operand:
    kept = values != 0
    return Operand(
        starts=starts,
        first=np.concatenate([[0], np.cumsum(kept.sum(axis=1))]),
        address=address[kept].astype(np.int32),
    )


def bank_table(design: Scnn, mapping: Mapping) -> BankArray:
    """The bank of every address, `design.banks` beside the plane.

    PEs whose regions lie alike in the plane share a table of [rows, columns, Kp] of a span; one
    table follows another.
    """
    banks = bank_of_address(design, mapping).reshape(-1, mapping.filter_pitch)
    found = [
        np.where(inside[..., None], banks[np.where(inside, sums, 0)], design.banks)
        for inside, sums in _tables(mapping)[0]
    ]
    return np.stack(found).reshape(-1).astype(np.uint16)


def _tables(mapping: Mapping) -> tuple[list[tuple[BoolArray, IntArray]], list[int]]:
    """Whether each output of a span is in the plane, and the number of its place in the region;
    the table of each PE."""
    found: dict[tuple[tuple[int, ...], ...], int] = {}
    tables: list[tuple[BoolArray, IntArray]] = []
    numbers: list[int] = []
    for pe in range(mapping.used_pes):
        row, column = mapping.place(pe)
        key = _places(mapping.rows, row), _places(mapping.columns, column)
        if key not in found:
            found[key] = len(tables)
            rows, columns = (np.array(places, np.int64) for places in key)
            inside = np.logical_and.outer(rows != NOWHERE, columns != NOWHERE)
            tables.append((inside, rows[:, None] * mapping.columns.extent + columns))
        numbers.append(found[key])
    return tables, numbers


def _places(axis: Axis, pe: int) -> tuple[int, ...]:
    """Of the outputs of a PE's span: places in its region, NOWHERE beside the plane."""
    span, region = axis.span(pe), axis.region(pe)
    inside = range(axis.outputs)
    places = [p - region.start if p in inside else NOWHERE for p in span]
    return (*places, *[NOWHERE] * (axis.span_extent - len(places)))


def bank_of_address(design: Scnn, mapping: Mapping) -> IntArray:
    """The bank of every sum of a region, [Hacc · Wacc · Kp].

    linear: address mod A.  dnnsim: ((4·(k₂) ⊕ 8·(x₁) ⊕ 8·(y₁)) + 8·x₀ + 4·y₀ + k₁₀) mod A, as
    that simulator has it: ((((k & 4) << 2) ^ ((x & 2) << 3) ^ ((y & 2) << 3)) + ((x & 1) << 3) +
    ((y & 1) << 2) + (k & 3)) mod A.
    """
    address = np.arange(mapping.accumulators)
    if design.bank_hash == "linear":
        return address % design.banks
    place, k = np.divmod(address, mapping.filter_pitch)
    y, x = np.divmod(place, mapping.columns.extent)
    upper = ((k & 4) << 2) ^ ((x & 2) << 3) ^ ((y & 2) << 3)
    lower = ((x & 1) << 3) + ((y & 1) << 2) + (k & 3)
    return (upper + lower) % design.banks
