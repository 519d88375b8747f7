"""Where products go: the bank of each, from positions in lists.

The sum of a product is that of an output in its PE's region,

    sum = ((p − first row) · Wacc + (q − first column)) · Kp + k

and which bank holds it is asked of a table.  Its addresses are those of all outputs that inputs of
a PE could reach in a plane without a border (`Axis.span`), counted likewise,

    address = ((p − first row) · Wspan + (q − first column)) · Kp + k

so that outputs beside the plane have one too.  Where lists are read from failing cells a PE's
elements may be anywhere: all outputs around its region then have addresses (`Axis.addressed`), and
elements farther away have none.  A product's address is those of its activation and its weight, put
together: p = y − r', q = x − s', address = a + w with w = k − (r' · Wspan + s') · Kp.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from archsim.codecs import zero_run
from archsim.machines.scnn.address_kernels import Along, place_anywhere
from archsim.machines.scnn.axis import COORDINATE_BITS, Axis
from archsim.machines.scnn.backlog import BankArray, Lanes, padded
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.kernels import BoolArray
from archsim.machines.scnn.mapping import Mapping, first_outputs
from archsim.numbers import IntArray

NOWHERE = -1
"""The place of an output beside the plane."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Activations:
    """Lists for the kernel (`archsim.machines.scnn.kernels`), by block and PE.

    starts [lists + 1]: first vectors.  held [vectors]: lanes with an element.  valued [vectors,
    lanes]: whether a lane's value is not zero; near: of those, whether a tap could lead to an
    output of the region; place: that of its address among the `pitch` ones of as many filters.
    """

    starts: IntArray
    held: IntArray
    valued: BoolArray
    near: BoolArray
    place: IntArray
    pitch: int

    def values_by_list(self) -> IntArray:
        """Values that are not zero in each list."""
        return np.add.reduceat(_by_vector(self.valued), self.starts[:-1])

    def lanes(self, addresses: int, scale: int) -> Lanes:
        """For the scan, of a table of so many addresses; each is taken `scale` times.  Lanes
        without a value lie behind all of them, whatever weight is added."""
        vectors, lanes = self.place.shape
        found = np.full((vectors, padded(lanes)), 2 * addresses * scale, np.int32)
        address = self.place * (self.pitch * scale)
        np.copyto(found[:, :lanes], address, where=self.near, casting="unsafe")
        return self.held, found


def _by_vector(lanes: BoolArray) -> IntArray:
    """How many lanes of each vector; a sum along so short an axis takes five times as long."""
    return (lanes.view(np.uint8) @ np.ones(lanes.shape[1], np.int32)).astype(np.int64)


def activation_operand(mapping: Mapping, lists: zero_run.Lists) -> Activations:
    """Of lists by PE and block: by block and PE, which is the order in which they are needed.

    y and x are outputs as phase 0's first tap would make them; the tables of `bank_table` follow
    one another.
    """
    rows, columns = mapping.rows, mapping.columns
    shape = (mapping.lists, mapping.used_pes)
    tables, pitch = _tables(mapping)[1], columns.addressed_extent
    origins = np.zeros((len(mapping.phases), mapping.used_pes), np.int64)
    for number, (row_phase, column_phase) in enumerate(mapping.phases):
        y = [rows.first_address(at, row_phase) for at in range(rows.pes)]
        x = [columns.first_address(at, column_phase) for at in range(columns.pes)]
        places = np.array(y)[:, None] * pitch + np.array(x)
        origins[number] = np.array(tables) * (rows.addressed_extent * pitch) + places.reshape(-1)
    if rows.anywhere:
        return _anywhere(mapping, lists, origins)
    order = np.arange(len(lists)).reshape(shape[::-1]).T.reshape(-1)
    lengths = lists.lengths[order]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    moved = np.repeat(lists.starts[order] - starts[:-1], lengths)
    vectors = moved + np.arange(len(moved))
    row, column = np.divmod(np.arange(mapping.input_places), mapping.input_pitch)
    place = np.append(row * pitch + column, 0)  # the last one: NOWHERE
    number = np.repeat(np.tile(origins, (mapping.channels, 1)).reshape(-1), lengths)
    positions = np.take(lists.positions, vectors, axis=0)
    valued = np.take(lists.values, vectors, axis=0) != 0
    return Activations(
        starts=starts,
        held=_by_vector(positions != zero_run.NOWHERE),
        valued=valued,
        near=valued,
        place=number[:, None] + place[positions],
        pitch=mapping.filter_pitch,
    )


def decoded(mapping: Mapping, positions: IntArray) -> tuple[IntArray, IntArray]:
    """y' and x' of positions, as the core's decoder has them: COORDINATE_BITS of y'."""
    column_bits, row_bits = position_bits(mapping)
    y = positions >> column_bits & (1 << row_bits) - 1
    return y, positions & mapping.input_pitch - 1


def position_bits(mapping: Mapping) -> tuple[int, int]:
    """Bits of a column in a position, and of a row."""
    return (mapping.input_pitch - 1).bit_length(), COORDINATE_BITS


def outputs_of(
    mapping: Mapping, number: IntArray, positions: IntArray
) -> tuple[IntArray, IntArray]:
    """Rows and columns, in their PEs' regions, of the outputs at the first tap of what lies at
    positions [n, ...] of lists [n]."""
    pe, block = np.divmod(number, mapping.lists)
    at = pe, block % len(mapping.phases)
    wide = (-1, *(1 for _ in positions.shape[1:]))
    down, right = (first[at].reshape(wide) for first in first_outputs(mapping))
    y, x = decoded(mapping, positions)
    return y + down, x + right


def _anywhere(mapping: Mapping, lists: zero_run.Lists, origins: IntArray) -> Activations:
    """The same of lists whose elements, or weights, may be anywhere."""
    shape = lists.values.shape
    starts, held = np.empty(len(lists) + 1, np.int64), np.empty(shape[0], np.int64)
    valued, near = np.empty(shape, np.bool_), np.empty(shape, np.bool_)
    place = np.empty(shape, np.int64)
    rows, columns = mapping.rows, mapping.columns
    coding = *position_bits(mapping), columns.addressed_extent, rows.last_tap, columns.last_tap
    values = lists.values.astype(np.int64, copy=False)
    rows_near, columns_near = _near(mapping)
    place_anywhere(
        (values, lists.positions, lists.starts), origins, rows_near, columns_near, coding,
        (starts, held, valued, near, place),
    )  # fmt: skip
    return Activations(
        starts=starts, held=held, valued=valued, near=near, place=place, pitch=mapping.filter_pitch
    )


@lru_cache(maxsize=32)
def _near(mapping: Mapping) -> tuple[Along, Along]:
    """Along both axes, as `place_anywhere` takes them."""
    places = np.array([mapping.place(pe) for pe in range(mapping.used_pes)])
    found: list[tuple[IntArray, IntArray]] = []
    for axis, own, phases in zip(
        (mapping.rows, mapping.columns), places.T, zip(*mapping.phases, strict=True), strict=True
    ):
        first = [[axis.first_address(at, phase) for phase in phases] for at in range(axis.pes)]
        number = [len(axis.addressed(at)) for at in range(axis.pes)]
        found.append((np.array(first, np.int64)[own], np.array(number, np.int64)[own]))
    return found[0], found[1]


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
    by_row, by_column = (
        [_places(axis, at) for at in range(axis.pes)] for axis in (mapping.rows, mapping.columns)
    )
    for pe in range(mapping.used_pes):
        row, column = mapping.place(pe)
        key = by_row[row], by_column[column]
        if key not in found:
            found[key] = len(tables)
            rows, columns = (np.array(places, np.int64) for places in key)
            inside = np.logical_and.outer(rows != NOWHERE, columns != NOWHERE)
            tables.append((inside, rows[:, None] * mapping.columns.extent + columns))
        numbers.append(found[key])
    return tables, numbers


def _places(axis: Axis, pe: int) -> tuple[int, ...]:
    """Of the outputs with addresses: places in its region, NOWHERE beside it, which is beside the
    plane but for elements that are anywhere."""
    region = axis.region(pe)
    places = [p - region.start if p in region else NOWHERE for p in axis.addressed(pe)]
    return (*places, *[NOWHERE] * (axis.addressed_extent - len(places)))


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
